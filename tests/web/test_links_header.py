"""The Link header: what its grammar allows is read, the rest is passed over."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lycosa.web.links import MAX_HEADER_LINKS, parse_link_header


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ('</a>; rel="next"', [("/a", {"next"})]),
        ("</a>; rel=next, <b>;REL=Prev", [("/a", {"next"}), ("b", {"prev"})]),
        ('<a,b;c>; title="x, <y>; rel=no"; rel="next start"', [("a,b;c", {"next", "start"})]),
        ('</a>; rel="next"; rel="prev"', [("/a", {"next"})]),
        ("</a>", [("/a", set())]),
        ('</a>; anchor="/other"; rel=next', []),
        ('</a> ; rel = "next"', [("/a", {"next"})]),
        ('</a>; title="a \\" b"; rel=next', [("/a", {"next"})]),
        ("/a; rel=next, <", []),
    ],
)
def test_links_of_a_header_are_read(value: str, found: list[tuple[str, set[str]]]) -> None:
    assert [(link.href, set(link.rels)) for link in parse_link_header(value)] == found


@settings(deadline=None)
@given(st.text(st.sampled_from('<>;,="\\ relabc/'), max_size=60))
def test_any_value_is_read_without_an_error(value: str) -> None:
    parse_link_header(value)


@pytest.mark.parametrize("piece", ["<", "<a>;", '<a>;x="', "<a>;rel=next,", "<a> ;", '"'])
def test_long_values_take_linear_time_and_are_bounded(piece: str) -> None:
    assert len(parse_link_header(piece * 100_000)) <= MAX_HEADER_LINKS
