"""Words: folding of case, accents and punctuation, scripts without spaces, and any text at all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lycosa.web.words import fold_text, split_words, word_forms


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Solar-Power, (storage)!", ["solar", "power", "storage"]),
        (
            "https://h1.sim:8800/a_b/C%20d.html?x=1",
            ["https", "h1", "sim", "8800", "a", "b", "c", "20d", "html", "x", "1"],
        ),
        ("Café ÖFEN — “Straße”", ["cafe", "ofen", "strasse"]),
        ("cafe\u0301", ["cafe"]),
        ("Энергия Солнца", ["энергия", "солнца"]),
        ("太陽光発電", ["太陽", "陽光", "光発", "発電"]),
        ("solar太陽", ["solar", "太陽"]),
        ("", []),
    ],
)
def test_words_of_text_are_folded(text: str, expected: list[str]) -> None:
    assert split_words(text) == expected


def test_fold_keeps_lines() -> None:
    assert [line.split() for line in fold_text("One–two\nthree").split("\n")] == [["one", "two"], ["three"]]


@given(st.text())
def test_words_of_any_text_fold_to_themselves(text: str) -> None:
    once = split_words(text)
    assert all(word and " " not in word for word in once)
    assert fold_text(text).count("\n") == text.count("\n")


@given(st.text(st.characters(max_codepoint=0x24F)))
def test_words_folded_twice_are_the_same_in_latin(text: str) -> None:
    once = split_words(text)
    assert split_words(" ".join(once)) == once


@pytest.mark.parametrize(
    ("word", "other"), [("battery", "batteries"), ("panels", "panel"), ("panel", "panels"), ("cities", "city")]
)
def test_forms_of_a_word_hold_its_plural_or_singular(word: str, other: str) -> None:
    assert {word, other} <= word_forms(word)


@pytest.mark.parametrize("word", ["gas", "glass", "太陽"])
def test_forms_of_words_without_a_plain_singular_hold_no_stump(word: str) -> None:
    assert all(len(form) >= len(word) for form in word_forms(word))
