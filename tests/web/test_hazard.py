"""Documents that would choke a parser end where it is still quick; honest ones do not, and kernel and twin agree."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lycosa.web import hazard, kernel
from lycosa.web.page import analyse_page

FILLING = b"<p>words</p>" * 3000


def is_whole(body: bytes) -> bool:
    return hazard.safe_length(body) == len(body)


def test_ordinary_large_page_is_whole() -> None:
    assert is_whole(b"<ul>" + b"<li><a href='/x'>some words</a> and <b>more</b></li>\n" * 3000 + b"</ul>")


def test_deep_nesting_ends_the_page_where_it_is_too_deep() -> None:
    assert hazard.safe_length(FILLING + b"<div>" * 6000 + b"</div>" * 6000) == len(FILLING) + len(b"<div>") * 5000
    assert is_whole(FILLING + b"<div>" * 4000 + b"</div>" * 4000)


@pytest.mark.parametrize("attribute", [b"b%d=c ", b"b%d ", b"b%d='<a>' ", b"/b%d", b"=b%d "])
def test_crowded_tag_ends_a_large_page(attribute: bytes) -> None:
    crowded = b"<a " + b"".join(attribute % n for n in range(3000)) + b">"
    assert hazard.safe_length(FILLING * 2 + crowded + FILLING) == len(FILLING * 2)


def test_long_attribute_is_whole() -> None:
    assert is_whole(b'<a href="' + b"x " * 2_000_000 + b'">')


def test_tags_and_bytes_have_an_end() -> None:
    assert hazard.safe_length(b"<br>" * 500_000) == len(b"<br>") * hazard.MAX_TAGS
    assert hazard.safe_length(bytes(20 << 20)) == hazard.MAX_BYTES


@pytest.mark.parametrize("tag", [b"<b>", b'<FONT face="A>B" size=1>', b"<i><u><small>"])
def test_the_same_formatting_tags_by_the_thousand_are_whole(tag: bytes) -> None:
    assert is_whole(b"".join(tag + b"<a href=p%d>text %d</a><br>" % (n, n) for n in range(1500)))


DISTINCT = [
    b"<p><b id=%d>x",
    b"<p><font color='#%06x'>x",
    b'<p><b title="a>b" id=%d>x',
    b"<p><b><b><b><b id=%d>x",
    b"<p><b id=%d>x<b id=1></b>",
    b"<p><B ID=%d>x</i>",
    b"<p><STRONG\nid=%d>x</i>",
    b"<b id=%d><object></b></object>",
    b"<b id=%d><table><td></b></table>",
]


@pytest.mark.parametrize("pattern", DISTINCT)
def test_distinct_formatting_tags_end_the_page(pattern: bytes) -> None:
    body = b"".join(pattern % n for n in range(3000))

    assert analyse_page(body, url="http://h.example/", content_type="text/html").is_cut


def test_formatting_tags_that_differ_in_the_case_of_their_values_end_the_page() -> None:
    cased = itertools.product((b"a", b"A"), repeat=12)
    assert not is_whole(b"".join(b"<p><b id=%b>x" % b"".join(letters) for letters in cased))


@pytest.mark.parametrize("name", [b"b", b"U", b"font", b"Strike"])
def test_few_distinct_formatting_tags_before_many_paragraphs_end_the_page(name: bytes) -> None:
    few = b"<p>" + b"".join(b"<%b id=%d>" % (name, n) for n in range(100)) + b"</p>"
    assert is_whole(few + b"<p>x</p>" * 2_000)
    assert not is_whole(few + b"<p>x</p>" * 10_000)


def test_many_formatting_tags_that_are_closed_are_whole() -> None:
    assert is_whole(b"".join(b"<p><i class='c%d'></i><code>x</code><b id=%d>y</b></p>" % (n, n) for n in range(9000)))


def test_large_drawing_is_whole() -> None:
    drawing = b"<svg>" + b"<path d='M1,2'\n style='x' /><circle r=1 />" * 6_000 + b"</svg>"
    assert is_whole(drawing)
    assert not is_whole(drawing + b"<div>" * 6000)
    assert not is_whole(b"<svg></svg>" + b"<path />" * 6000)  # there they nest


PARTS = [
    *(
        b"<b>",
        b"</b>",
        b"<br>",
        b"<p>text</p>",
        b"<!-- -->",
        b"<",
        b"</",
        b"a < b",
        b"<svg>",
        b"</SVG>",
        b"<path d=1 />",
    ),
    *(
        b"<div>",
        b"</div>",
        b"<I a=1>",
        b"</i>",
        b"<i b=2 >",
        b"<b/",
        b"<font\nsize=1>",
        b"<tt<tt>",
        b"<b/='='",
        b"<em>",
        b"<i a='" + b"y " * 900,
    ),
    *(b"<a " + b"b=c " * 400, b"='", b'="', b'" >', b">", b"x" * 500),
]
RUNS = st.lists(st.tuples(st.sampled_from(PARTS), st.integers(1, 3000)), max_size=12)


@pytest.mark.skipif(kernel.native() is None, reason="the native kernel is not installed")
@settings(deadline=None, max_examples=150)
@given(RUNS, st.integers(0, 5000))
def test_kernel_and_twin_end_a_document_at_the_same_byte(runs: list[tuple[bytes, int]], cut: int) -> None:
    module = kernel.native()
    assert module is not None
    body = b"".join(part * min(times, 400_000 // len(part)) for part, times in runs)
    body = body[: max(1, len(body) - cut)]

    assert module.safe_length(body) == hazard.safe_length(body)
