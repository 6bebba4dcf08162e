"""Numbers for people: short, unambiguous, and never wider than said."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lycosa.cli.wording import counted, duration, fit, folder_word, most_first, printable, rate, size
from tests.cli.command import lycosa


@pytest.mark.parametrize(
    ("folder", "word"), [("my-crawl", "my-crawl"), ("my crawl", "'my crawl'"), ("-d", "./-d"), ("/a/$b", "'/a/$b'")]
)
def test_folder_is_named_as_it_is_typed(folder: str, word: str) -> None:
    assert folder_word(Path(folder)) == word


@pytest.mark.parametrize(
    ("size_bytes", "words"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (999_499, "999 kB"),
        (999_500, "1.0 MB"),
        (99_949, "99.9 kB"),
        (99_950, "100 kB"),
        (152_400_000, "152 MB"),
        (2 * 10**15, "2,000 TB"),
    ],
)
def test_size_is_in_the_unit_that_suits_it(size_bytes: int, words: str) -> None:
    assert size(size_bytes) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0.0 s"),
        (0.42, "0.4 s"),
        (9.96, "10 s"),
        (59.4, "59 s"),
        (59.6, "1m 00s"),
        (192, "3m 12s"),
        (3599.7, "1h 00m"),
        (7500, "2h 05m"),
        (86_400, "1d 00h"),
        (273_600, "3d 04h"),
    ],
)
def test_duration_has_the_two_units_that_matter(seconds: float, words: str) -> None:
    assert duration(seconds) == words


@pytest.mark.parametrize(
    ("per_s", "words"), [(0, "0.0"), (0.123, "0.12"), (8.34, "8.3"), (87.31, "87.3"), (1204.4, "1,204")]
)
def test_rate_has_as_many_digits_as_say_something(per_s: float, words: str) -> None:
    assert rate(per_s) == words


@given(st.lists(st.text("ab", min_size=1, max_size=9), min_size=1, max_size=9), st.integers(1, 60))
def test_fit_takes_the_first_items_that_fit_and_counts_the_others(items: list[str], width: int) -> None:
    line = fit(items, width)
    shown = [item for item in line.split(", ") if not item.startswith("+")]
    left_out = len(items) - len(shown)
    assert shown == items[: len(shown)]
    assert line.endswith(f", +{left_out}") == (left_out > 0)
    assert len(line) <= width or len(shown) == 1


def test_most_first_leaves_out_zeros_and_orders_equals_by_name() -> None:
    assert most_first({"b": 1, "a": 1, "none": 0, "c": 5}) == [("c", 5), ("a", 1), ("b", 1)]


def test_printable_takes_control_characters_and_what_the_terminal_cannot_show() -> None:
    assert printable("wait\x1b[2Jé\n", "ascii") == "wait [2J? "


@pytest.mark.parametrize(
    ("number", "thing", "words"),
    [(0, "page", "0 pages"), (1, "page", "1 page"), (1_200, "page", "1,200 pages"), (2, "address", "2 addresses")],
)
def test_things_are_counted_in_the_singular_where_there_is_one(number: int, thing: str, words: str) -> None:
    assert counted(number, thing) == words


@pytest.mark.parametrize("words", [(), ("cluster",)])
def test_command_alone_shows_its_help_line_by_line(words: tuple[str, ...]) -> None:
    alone, asked = lycosa(*words), lycosa(*words, "--help")
    assert (alone.code, alone.err, alone.out) == (0, "", asked.out)
    assert len(alone.out.splitlines()) > 10


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("export", "pages"), "Missing argument 'FORMAT'; see lycosa export --help"),
        (("urls", "pages", "--limit", "3"), "No such option: --limit; see lycosa urls --help"),
        (("exprt",), "No such command 'exprt'. Did you mean 'export', 'report'?"),
        (("nonsense",), "No such command 'nonsense'; see lycosa --help"),
    ],
)
def test_wrong_command_line_is_told_where_it_is_written_how(words: tuple[str, ...], sentence: str) -> None:
    said = lycosa(*words)

    assert (said.code, said.err) == (2, f"lycosa: {sentence}\n")
