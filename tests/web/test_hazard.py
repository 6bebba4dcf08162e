"""The quick look at a large document never lets pass what the look tag by tag would not."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from lycosa.web import hazard
from lycosa.web.page import analyse_page
from tests.effort import bounded

PARTS = [
    b"<b>",
    b"</b>",
    b"<br>",
    b"<p>text</p>",
    b"<!-- -->",
    b"<",
    b"</",
    b"a < b",
    b"x" * 500,
    b"<i a='" + b"y " * 900,
]
RUNS = st.lists(st.tuples(st.sampled_from([*PARTS, b"<a " + b"b=c " * 1500 + b">"]), st.integers(1, 450)), max_size=10)


def is_plain(body: bytes) -> bool:
    codes = np.frombuffer(body, dtype=np.uint8)
    return hazard._most_open(codes, codes == ord("<")) <= hazard._SURELY_SAFE


def is_tame_by_tags(body: bytes) -> bool:
    codes = np.frombuffer(body, dtype=np.uint8)
    return hazard._is_safe_by_tags(body, codes, codes == ord("<"))


@given(RUNS, st.integers(0, 5000))
def test_is_plain_any_run_of_tags_tame_tag_by_tag_too(runs: list[tuple[bytes, int]], cut: int) -> None:
    body = b"<p>" + b"".join(part * times for part, times in runs)
    body = body[: max(1, len(body) - cut)]
    if is_plain(body):
        assert is_tame_by_tags(body)


def test_is_plain_an_ordinary_large_page_true() -> None:
    page = b"<ul>" + b"<li><a href='/x'>some words</a> and <b>more</b></li>\n" * 3000 + b"</ul>"
    assert is_plain(page)
    assert hazard.is_safe_to_parse(page)


def test_is_tame_deep_nesting_or_a_crowded_tag_in_a_large_page_false() -> None:
    filling = b"<p>words</p>" * 3000
    assert not hazard.is_safe_to_parse(filling + b"<div>" * 6000 + b"</div>" * 6000)
    assert not hazard.is_safe_to_parse(filling + b"<a " + b"b%d=c " * 3000 + b">" + filling)


@pytest.mark.parametrize("tag", [b"<b>", b'<FONT face="A>B" size=1>', b"<i><u><small>"])
def test_is_tame_the_same_formatting_tags_by_the_thousand_true(tag: bytes) -> None:
    assert hazard.is_safe_to_parse(b"".join(tag + b"<a href=p%d>text %d</a><br>" % (n, n) for n in range(1500)))


DISTINCT = [
    b"<p><b id=%d>x",
    b"<p><font color='#%06x'>x",
    b'<p><b title="a>b" id=%d>x',
    b"<p><b><b><b><b id=%d>x",
    b"<p><b id=%d>x<b id=1></b>",
    b"<p><B ID=%d>x</i>",
    b"<p><STRONG\nid=%d>x</i>",
]


@pytest.mark.parametrize("pattern", DISTINCT)
def test_is_tame_distinct_formatting_tags_false_and_cut_in_time(pattern: bytes) -> None:
    body = b"".join(pattern % n for n in range(3000))

    page = bounded(lambda: analyse_page(body, url="http://h.example/", content_type="text/html"), units=300)

    assert page.is_cut


def test_is_tame_formatting_tags_that_differ_in_the_case_of_their_values_false() -> None:
    cased = itertools.product((b"a", b"A"), repeat=12)
    assert not hazard.is_safe_to_parse(b"".join(b"<p><b id=%b>x" % b"".join(letters) for letters in cased))


TAGS = st.sampled_from([b"<b>", b"<b id=1>", b"<B id=2>", b"</b>", b"</B >x"])


@given(st.lists(TAGS, min_size=1, max_size=40))
def test_open_formatting_any_tags_of_one_name_are_those_the_parser_opens_again(tags: list[bytes]) -> None:
    markup = b"".join(tags)
    node = LexborHTMLParser(b"<p>" + markup + b"</p><p><q>").css_first("q")
    reopened = -1
    while node is not None and node.tag in ("q", "b"):
        reopened, node = reopened + 1, node.parent

    assert list(hazard._open_formatting(markup))[-1] == reopened


@pytest.mark.parametrize("name", [b"b", b"U", b"font", b"Strike"])
def test_is_tame_few_distinct_formatting_tags_before_many_paragraphs_false(name: bytes) -> None:
    few = b"<p>" + b"".join(b"<%b id=%d>" % (name, n) for n in range(100)) + b"</p>"
    assert hazard.is_safe_to_parse(few + b"<p>x</p>" * 2_000)
    assert not hazard.is_safe_to_parse(few + b"<p>x</p>" * 10_000)


def test_is_tame_many_formatting_tags_that_are_closed_true() -> None:
    assert hazard.is_safe_to_parse(
        b"".join(b"<p><i class='c%d'></i><code>x</code><b id=%d>y</b></p>" % (n, n) for n in range(9000))
    )


def test_is_tame_a_large_drawing_true() -> None:
    drawing = b"<svg>" + b"<path d='M1,2'\n style='x' /><circle r=1 />" * 6_000 + b"</svg>"
    assert hazard.is_safe_to_parse(drawing)
    assert not hazard.is_safe_to_parse(drawing + b"<div>" * 6000)
    assert not hazard.is_safe_to_parse(b"<svg></svg>" + b"<path />" * 6000)  # there they nest
