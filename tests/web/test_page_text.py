"""Text codes by the paper's numbers, structure strings by its example, white space by a slower definition."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from lycosa.web.document import Page, TextCodes, document_digest, text_digest
from lycosa.web.page import analyse_page
from lycosa.web.text import BETWEEN, codes_of, collapse

pytestmark = pytest.mark.usefixtures("each_kernel")

# The words in which the paper's two texts differ.
BEFORE = "plays four Illinois"
AFTER = "used to play five Florida"


def html(body: str) -> Page:
    return analyse_page(body.encode(), url="http://host.example/", content_type="text/html; charset=utf-8")


def test_text_code_one_of_the_papers_sums_is_the_papers_code() -> None:
    assert TextCodes(total=56_652, distinct=43).mean_per_symbol == pytest.approx(1317.488403, rel=1e-6)
    assert TextCodes(total=57_113, distinct=43).mean_per_symbol == pytest.approx(1328.209351, rel=1e-6)


def test_text_code_one_of_the_papers_changed_words_differs_by_the_papers_difference() -> None:
    before, after = codes_of(BEFORE.encode()), codes_of(AFTER.encode())

    assert after.total - before.total == 57_113 - 56_652
    assert after.length - before.length == 625 - 619


def test_text_code_two_of_the_papers_sums_is_the_papers_code() -> None:
    assert TextCodes(squares=2_830_106, length=296).root_of_squares == pytest.approx(5.683418, abs=1e-6)
    assert TextCodes(squares=2_876_660, length=300).root_of_squares == pytest.approx(5.653573, abs=1e-6)


def test_text_codes_of_no_text_are_zero() -> None:
    assert codes_of(b"") == TextCodes()
    assert (TextCodes().mean_per_symbol, TextCodes().root_of_squares) == (0.0, 0.0)


@given(st.one_of(st.text(), st.text("aé€\U0001f600", min_size=100, max_size=300)))
def test_text_codes_any_text_equal_the_sums_over_its_characters(text: str) -> None:
    text = text.encode("utf-8", "replace").decode()
    codes = [ord(character) for character in text]

    found = codes_of(text.encode())

    assert found == TextCodes(sum(codes), sum(code * code for code in codes), len(set(codes)), len(codes))


def test_text_codes_one_added_blank_changes_both() -> None:
    before, after = codes_of(b"a b c"), codes_of(b"a  b c")

    assert after.mean_per_symbol != before.mean_per_symbol
    assert after.root_of_squares != before.root_of_squares


@given(st.text(st.sampled_from("ab \t\n\r\fé\x0b\x07")))
def test_collapse_any_text_is_its_words_with_one_space_between(text: str) -> None:
    expected = re.sub(r"[\x00-\x20]+", " ", text).strip().encode()

    assert collapse(text) == expected


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        (("see", "here", "."), "see here."),
        (("(", "here", ")"), "(here)"),
        (("one", "two"), "one two"),
        (("John", "'s"), "John's"),
        (("one ", ", two"), "one , two"),
        ((".",), "."),
        ((".", "."), ".."),
    ],
)
def test_collapse_pieces_stand_apart_except_for_punctuation(pieces: tuple[str, ...], text: str) -> None:
    assert collapse(BETWEEN.join(pieces)) == text.encode()


def test_main_element_stands_apart_and_its_text_alone_is_digested() -> None:
    page = html("<p>menu (</p><main>The  text<b>.</b></main><p>, foot")

    assert page.text == "menu ( The text. , foot"
    assert page.text_digest == text_digest(b"The text.")


def test_bytes_that_are_no_utf_8_stay_unreadable_though_a_nul_between_them_is_dropped() -> None:
    page = analyse_page(b"<p>a\xc2\x00\x80z", url="http://host.example/", content_type="text/html; charset=utf-8")

    assert page.text == "a\ufffd\ufffdz"


def test_document_digest_is_128_bits_and_differs_by_one_bit_of_input() -> None:
    assert len(document_digest(b"a")) == 16
    assert document_digest(b"a") != document_digest(b"c")


def test_structure_of_the_papers_example_is_its_strings() -> None:
    page = html("<html><head><title>Basic</title></head><body><h1>Welcome</h1><p>This<p>There</body></html>")

    assert (page.structure_first, page.structure_last) == ("hhtbhpp", "ldey1pp")


def test_structure_tag_of_one_letter_stands_twice_and_comments_and_scripts_hold_no_tags() -> None:
    page = html("<b>x</b><!-- <i> --><script>'<u>'</script><img alt='<s>'>")

    assert (page.structure_first, page.structure_last) == ("hhbbsi", "ldybtg")


def test_structure_custom_and_drawn_elements_count_like_others() -> None:
    page = html("<x-card><svg><g><linearGradient/></g></svg></x-card><p>")

    assert (page.structure_first, page.structure_last) == ("hhbxsglp", "ldydggtp")


@given(
    st.lists(
        st.sampled_from(["<div>", "</div>", "<b>", "<q-q>", "<Ünï>", "text", "<h2>", "<table>", "<svg>", "<rect>"])
    )
)
def test_structure_any_markup_has_one_letter_an_element_in_both_strings(parts: list[str]) -> None:
    markup = "".join(parts)
    names = [node.tag or "" for node in LexborHTMLParser(markup).css("*")]

    page = html(markup)

    assert page.structure_first == "".join(name[0] for name in names).lower()
    assert page.structure_last == "".join(name[-1] for name in names).lower()
