"""The quick look at a large document never lets pass what the look tag by tag would not."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lycosa.web import hazard

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
    return hazard._is_plain(codes, codes == ord("<"))


def is_tame_by_tags(body: bytes) -> bool:
    codes = np.frombuffer(body, dtype=np.uint8)
    return hazard._is_tame_by_tags(body, codes, codes == ord("<"))


@given(RUNS, st.integers(0, 5000))
def test_is_plain_any_run_of_tags_tame_tag_by_tag_too(runs: list[tuple[bytes, int]], cut: int) -> None:
    body = b"<p>" + b"".join(part * times for part, times in runs)
    body = body[: max(1, len(body) - cut)]
    if is_plain(body):
        assert is_tame_by_tags(body)


def test_is_plain_an_ordinary_large_page_true() -> None:
    page = b"<ul>" + b"<li><a href='/x'>some words</a> and <b>more</b></li>\n" * 3000 + b"</ul>"
    assert is_plain(page)
    assert hazard.is_tame(page)


def test_is_tame_deep_nesting_or_a_crowded_tag_in_a_large_page_false() -> None:
    filling = b"<p>words</p>" * 3000
    assert not hazard.is_tame(filling + b"<div>" * 6000 + b"</div>" * 6000)
    assert not hazard.is_tame(filling + b"<a " + b"b%d=c " * 3000 + b">" + filling)
