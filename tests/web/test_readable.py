"""What is for reading in a document: main text without navigation, whatever the bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lycosa.web.readable import Readable, extract_readable

FILLER = "words that make a text long enough to stand for itself " * 6


def read(html: str, content_type: str = "text/html; charset=utf-8") -> Readable:
    return extract_readable(html.encode(), url="https://a.example/", content_type=content_type)


def words(html: str, content_type: str = "text/html; charset=utf-8") -> str:
    return " ".join(read(html, content_type).text.split())


def test_main_element_is_the_text() -> None:
    found = read("<title> T </title><p>around</p><main><h1>Head <b>line</b></h1>inside</main><p>after")
    assert " ".join(found.text.split()) == "Head line inside"
    assert (found.title.strip(), found.headings) == ("T", ("Head  line",))


def test_two_mains_are_none() -> None:
    assert words("<main>a</main><main>b</main>") == "a b"


PARTS = (
    "<nav>x</nav>,<footer>x</footer>,<div role=navigation>x</div>,<div class='top navbar'>x</div>,<script>x</script>,"
    "<style>x</style>,<noscript>x</noscript>,<div id=nav><nav>x</nav></div>"
)


@pytest.mark.parametrize("part", PARTS.split(","))
def test_what_is_not_for_reading_is_left_out(part: str) -> None:
    assert "x" not in words(f"<body>{part}<p>{FILLER}").replace("text", "")


def test_page_that_is_all_navigation_is_read_as_a_whole() -> None:
    assert words("<nav>home and garden</nav><script>no()</script>") == "home and garden"


def test_other_kinds_have_their_text_or_none() -> None:
    assert words("plain words", "text/plain") == "plain words"
    assert read("\x89PNG\r\n\x1a\n", "image/png") == Readable()


@given(
    st.lists(
        st.sampled_from(["<nav>", "</nav>", "<main>", "</main>", "<h1>", "<p>", "x", "<script>", "<!--"]), max_size=40
    )
)
def test_any_markup_gives_a_text(parts: list[str]) -> None:
    assert isinstance(read("".join(parts)).text, str)
