"""A pattern is what a family of pages has in common."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lycosa.learning.mining import ancestors
from lycosa.learning.series import numbers
from lycosa.learning.traps import MOST_CHARS, path_pattern
from tests.effort import bounded

ADVERSARIAL = (
    "/1",
    "/a1",
    "a",
    "1",
    "%31",
    "/aB3dE5gH",
    "?",
    "a=1&",
    "2024-01-01",
    "deadbeef-",
    "/a/b",
    ";x=1",
    "-",
    "0",
)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("/thread/4711", "/thread/12"),
        ("/2024/05/31/", "/1999/12/01/"),
        ("/x?sid=9f3a11aa22bb33cc", "/x?sid=0123456789abcdef"),
        ("/x?b=1&a=2", "/x?a=7&b=9"),
        ("/o/123e4567-e89b-12d3-a456-426614174000", "/o/ffffffff-0000-1111-2222-333333333333"),
        ("/watch/dQw4w9WgXcQ", "/watch/9bZkp7q19f0"),
        ("/a;jsessionid=9A8B7C6D5E4F", "/a;jsessionid=00112233AABB"),
        ("/loop/a/b/a/", "/loop/a/b/a/b/b/a/"),
        ("/1/2/3/4/5/", "/1/2/3/4/5/6/7/"),
    ],
)
def test_pages_of_one_family_have_one_pattern(one: str, other: str) -> None:
    assert path_pattern(one) == path_pattern(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("/thread/1", "/user/1"),
        ("/thread/1", "/thread/1/"),
        ("/thread/1", "/thread/1?page=2"),
        ("/2024/05/", "/2024/05/31/"),
        ("/solar-power.html", "/wind-power.html"),
        ("/a%20b", "/a%21b"),
        ("/x/index.html", "/y/index.html"),
        ("/docs/api/docs/x.html", "/docs/api/docs/y.html"),
        ("/" + "a" * 300, "/" + "a" * 301),
    ],
)
def test_different_families_stay_apart(one: str, other: str) -> None:
    assert path_pattern(one) != path_pattern(other)


def test_words_with_a_number_are_no_ids() -> None:
    assert path_pattern("/vol1-ch2-p3/JavaScript2Guide") == "/vol#-ch#-p#/JavaScript#Guide"


@given(st.text(max_size=400))
def test_any_text_has_a_bounded_pattern_and_neighbours(path: str) -> None:
    assert len(path_pattern(path)) <= MOST_CHARS
    assert all(folder.endswith("/") for folder in ancestors(path))
    for number in numbers(path):
        assert path.startswith(number.head)
        assert path.endswith(number.tail)


@pytest.mark.parametrize("piece", ADVERSARIAL)
def test_long_adversarial_paths_are_read_in_linear_time(piece: str) -> None:
    path = "/" + piece * (128_000 // len(piece))
    bounded(lambda: (path_pattern(path), numbers(path), list(ancestors(path))), units=1_000)
