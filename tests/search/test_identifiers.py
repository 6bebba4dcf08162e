"""Identifiers are found by the words in them, and by themselves."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lycosa.search.identifiers import LONGEST, _identifiers, identifiers, parts_of
from lycosa.search.snippet import Highlighter, highlighted
from lycosa.search.view import SearchView
from tests.search.shop import Shop

DOM, LIST, SNAKE, WORDS = (f"https://a.example/{name}" for name in ("dom", "list", "snake", "words"))


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> SearchView:
    path = tmp_path_factory.mktemp("identifiers") / "c"
    shop = Shop(path)
    shop.page(DOM, "<html lang=en><title>DOM</title><p>Call getElementById, or use an XMLHttpRequest.", language="en")
    shop.page(LIST, "<html lang=de><title>Sammlungen</title><p>Die Liste java.util.ArrayList.", language="de")
    shop.page(SNAKE, "<title>Python</title><p>Names such as snake_case_names are usual.", language="en")
    shop.page(WORDS, "<title>Chemistry</title><p>An element is a substance. Get used to it.", language="en")
    shop.index()
    shop.close()
    return SearchView(path)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("getElementById", [DOM]),
        ("getelementbyid", [DOM]),
        ("element", [WORDS, DOM]),
        ("elements", [WORDS, DOM]),
        ("get element", [WORDS, DOM]),
        ("http requests", [DOM]),
        ("XMLHttpRequest", [DOM]),
        ("java.util.ArrayList", [LIST]),
        ("util", [LIST]),
        ("array", [LIST]),
        ("snake_case_names", [SNAKE]),
        ("case", [SNAKE]),
        ("element -title:DOM", [WORDS]),
        ("text:element", [WORDS]),
        ('"get element"', []),
        ("requ*", [DOM]),
    ],
)
def test_identifier_is_found_by_itself_and_by_the_words_in_it(
    view: SearchView, query: str, expected: list[str]
) -> None:
    found = view.search(query)

    assert [result.url for result in found.results] == expected
    assert not found.is_loose


@pytest.mark.parametrize(
    ("identifier", "parts"),
    [
        ("getElementById", ("get", "element", "by", "id")),
        ("XMLHttpRequest", ("xml", "http", "request")),
        ("parseJSON", ("parse", "json")),
        ("utf8Decoder", ("utf8", "decoder")),
        ("getX", ("get",)),
    ],
)
def test_identifier_is_split_where_a_word_begins(identifier: str, parts: tuple[str, ...]) -> None:
    assert parts_of(identifier) == parts
    assert identifiers(f"see {identifier}, Words UPPER lower été") == {identifier}


@given(st.text(alphabet="aB1é _.太", max_size=80))
def test_identifiers_are_the_words_that_have_several_parts(text: str) -> None:
    words = "".join(letter if letter.isalnum() else " " for letter in text).split()
    begins = [
        word
        for word in words
        if len(word.encode()) < LONGEST
        and any(
            (one in "a1" and two == "B") or (one == two == "B" and three in ("a", "1"))
            for one, two, three in zip(word, word[1:], [*word[2:], ""], strict=False)
        )
    ]
    assert identifiers(text) == _identifiers(text) == set(begins)


def test_snippet_highlights_the_identifier_that_was_found() -> None:
    text = "A way to reach it is getElementById, which is old."

    piece = Highlighter(["element"], "en").snippet(text)

    assert highlighted(piece, "[", "]") == "A way to reach it is [getElementById], which is old."


def test_snippet_highlights_every_word_that_begins_as_asked() -> None:
    piece = Highlighter(["vacu"], "en", ["vacu"]).snippet("VACUUM and vacuumdb, evacuated")

    assert highlighted(piece, "[", "]") == "[VACUUM] and [vacuumdb], evacuated"


def test_text_without_capitals_inside_words_has_no_identifiers(tmp_path: Path) -> None:
    assert identifiers("") == identifiers("a") == identifiers("aB"[:1]) == identifiers("Plain words. UPPER.") == set()
    assert identifiers("a" * 100_000 + "B") == set(), "too long to be one"
