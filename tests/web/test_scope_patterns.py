"""Wildcards: the same answer as a regular expression, without its worst case."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lycosa.web.scope import matches_pattern, pattern_pieces
from tests.effort import bounded


@given(st.text("ab*", max_size=8), st.text("ab", max_size=10), st.booleans())
def test_matches_any_pattern_same_as_regular_expression(pattern: str, text: str, to_end: bool) -> None:
    expression = re.escape(pattern).replace(r"\*", ".*") + (r"\Z" if to_end else "")
    assert matches_pattern(pattern_pieces(pattern), text, to_end=to_end) == bool(re.match(expression, text))


@pytest.mark.parametrize("pattern", ["*" * 10_000 + "b", "*a" * 5_000 + "b", ("*" + "a" * 99) * 100 + "b"])
def test_matches_hostile_pattern_linear_time(pattern: str) -> None:
    pieces = pattern_pieces(pattern)
    assert not bounded(lambda: matches_pattern(pieces, "a" * 10_000, to_end=True), units=50)
