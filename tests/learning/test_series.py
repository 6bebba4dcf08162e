"""Neighbours go by number and calendar."""

import pytest

from lycosa.learning.mining import ancestors
from lycosa.learning.series import format_number, numbers


def series(path: str) -> list[str]:
    """The neighbours of a path: one number at a time, the last one first, upwards before downwards."""
    found = []
    for number in reversed(numbers(path)):
        for value in (number.value + 1, number.value - 1):
            text = format_number(number.unit + number.between, value, number.width)
            if text is not None:
                found.append(number.head + text + number.tail)
    return found


@pytest.mark.parametrize(
    ("path", "folders"),
    [
        ("/video/clips/x", ["/video/clips/", "/video/", "/"]),
        ("/video/clips/", ["/video/", "/"]),
        ("/x?a=/b/c/", ["/"]),
        ("/", []),
    ],
)
def test_ancestors_are_the_folders_above(path: str, folders: list[str]) -> None:
    assert list(ancestors(path)) == folders


@pytest.mark.parametrize(
    ("path", "neighbours"),
    [
        ("/page1.html", ["/page2.html", "/page0.html"]),
        ("/pics1/", ["/pics2/", "/pics0/"]),
        ("/photo-09.html", ["/photo-10.html", "/photo-08.html"]),
        ("/part_100.html", ["/part_101.html", "/part_99.html"]),
        ("/2024/02/29/", ["/2024/03/01/", "/2024/02/28/"]),
        ("/2024-12-31.html", ["/2025-01-01.html", "/2024-12-30.html"]),
        ("/20241231", ["/20250101", "/20241230"]),
        ("/2024/12/", ["/2025/01/", "/2024/11/"]),
        ("/pics1/page9", ["/pics1/page10", "/pics1/page8", "/pics2/page9", "/pics0/page9"]),
        ("/list?page=2", ["/list?page=3", "/list?page=1"]),
        ("/0", ["/1"]),
        ("/a%20b", []),
        ("/o/9f3a11aa22bb33cc", []),
        ("/t/1700000000", []),
    ],
)
def test_series_gives_the_neighbours_of_every_number(path: str, neighbours: list[str]) -> None:
    assert series(path) == neighbours


def test_day_that_does_not_exist_is_a_month_and_a_number() -> None:
    assert series("/2023/02/31/") == ["/2023/02/32/", "/2023/02/30/", "/2023/03/31/", "/2023/01/31/"]
