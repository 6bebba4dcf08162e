"""Scopes and filters: what each keeps, what each drops and why."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lycosa.web.scope import DropReason, Scope, ScopeKind, ShapeFilter, UrlLimits, filter_urls, has_repeats
from lycosa.web.url import Url, split_url

SEEDS = [split_url("https://www.example.org/docs/index.html?q=/x/y"), split_url("http://127.0.0.1:8000/a/b")]


class NoDigits:
    """A filter of someone else's."""

    def reason(self, url: Url) -> DropReason | None:
        return DropReason.FILTER if any(map(str.isdigit, url.path)) else None


@pytest.mark.parametrize(
    ("kind", "inside", "outside"),
    [
        (
            ScopeKind.HOST,
            ["https://www.example.org/", "http://www.example.org/x", "http://127.0.0.1:8000/z"],
            ["https://example.org/", "https://www.example.org:8443/", "http://127.0.0.1/", "http://127.0.0.1:8001/"],
        ),
        (
            ScopeKind.DOMAIN,
            ["https://example.org/", "http://a.b.example.org:8080/x", "http://127.0.0.1:9/"],
            ["https://example.com/", "https://notexample.org/", "http://127.0.0.2:8000/"],
        ),
        (
            ScopeKind.PREFIX,
            ["https://www.example.org/docs/", "http://www.example.org/docs/a/b?c", "http://127.0.0.1:8000/a/c"],
            ["https://www.example.org/", "https://www.example.org/docs", "http://127.0.0.1:8000/b"],
        ),
        (ScopeKind.ANY, ["https://anything.example/", "http://127.0.0.2/"], []),
    ],
)
def test_scope_kind_keeps_what_the_seeds_reach(kind: ScopeKind, inside: list[str], outside: list[str]) -> None:
    scope = Scope(kind, SEEDS)
    assert all(scope.reason(seed) is None for seed in SEEDS)
    assert [scope.reason(split_url(href)) for href in inside] == [None] * len(inside)
    assert [scope.reason(split_url(href)) for href in outside] == [DropReason.OUT_OF_SCOPE] * len(outside)


def test_scope_prefix_two_seeds_of_one_host_both_count() -> None:
    scope = Scope(ScopeKind.PREFIX, [split_url("https://a.example/x/"), split_url("https://a.example/y/")])
    assert scope.reason(split_url("https://a.example/x/1")) is None
    assert scope.reason(split_url("https://a.example/y/1")) is None
    assert scope.reason(split_url("https://a.example/z/1")) is DropReason.OUT_OF_SCOPE


@pytest.mark.parametrize(
    ("limits", "path", "reason"),
    [
        (UrlLimits(), "/", None),
        (UrlLimits(), "/" + "a/" * 2 + "b", None),
        (UrlLimits(max_url_bytes=40), "/" + "x" * 30, DropReason.TOO_LONG),
        (UrlLimits(), "/" + "/".join(map(str, range(20))), None),
        (UrlLimits(), "/" + "/".join(map(str, range(20))) + "/", None),
        (UrlLimits(), "/" + "/".join(map(str, range(21))), DropReason.TOO_DEEP),
        (UrlLimits(), "/x?" + "/a" * 30, None),
        (UrlLimits(), "/a/b/a/b/", None),
        (UrlLimits(), "/a/b/a/b/a/b/", DropReason.REPEATED_SEGMENTS),
        (UrlLimits(max_segment_repeats=3), "/a/b/a/b/a/b/", None),
        (UrlLimits(skip_extensions=frozenset({"gz"})), "/a/B.tar.GZ?v=1", DropReason.EXTENSION),
        (UrlLimits(skip_extensions=frozenset({"gz"})), "/a.gz/b", None),
        (UrlLimits(skip_extensions=frozenset({"gz"})), "/gz", None),
        (UrlLimits(exclude=("/private/*",)), "/private/x", DropReason.EXCLUDED),
        (UrlLimits(exclude=("/private/*",)), "/a/private/x", None),
        (UrlLimits(exclude=("*/private/*",)), "/a/private/x", DropReason.EXCLUDED),
        (UrlLimits(exclude=("/x?y",)), "/x?y", DropReason.EXCLUDED),
        (UrlLimits(exclude=("/x?y",)), "/xay", None),
        (UrlLimits(include=("https://a.example/k/*", "/m*")), "/k/1", None),
        (UrlLimits(include=("https://a.example/k/*", "/m*")), "/m?1", None),
        (UrlLimits(include=("https://a.example/k/*", "/m*")), "/other", DropReason.NOT_INCLUDED),
        (UrlLimits(include=("/k*",), exclude=("*.pdf",)), "/k.pdf", DropReason.EXCLUDED),
    ],
)
def test_shape_filter_limit_gives_its_reason(limits: UrlLimits, path: str, reason: DropReason | None) -> None:
    assert ShapeFilter(limits).reason(split_url("https://a.example" + path)) is reason


@pytest.mark.parametrize("folder", ["/a/a/a/", "////", "/x/a/b/c/a/b/c/a/b/c/y/", "/a/b/b/b/c/"])
def test_has_repeats_run_of_segments_found(folder: str) -> None:
    assert has_repeats(folder, 2)


@given(st.lists(st.sampled_from("ab"), max_size=12), st.integers(1, 3))
def test_has_repeats_any_folder_same_as_comparing_copies(segments: list[str], max_repeats: int) -> None:
    copies = max_repeats + 1
    expected = any(
        segments[start : start + period] * copies == segments[start : start + period * copies]
        for period in range(1, len(segments) + 1)
        for start in range(len(segments) - period * copies + 1)
    )
    assert has_repeats("/" + "".join(f"{segment}/" for segment in segments), max_repeats) is expected


def test_sift_links_kept_in_order_and_dropped_with_first_reason() -> None:
    filters = [Scope(ScopeKind.HOST, SEEDS), ShapeFilter(UrlLimits(exclude=("*.pdf",))), NoDigits()]
    links = [f"https://www.example.org/{name}" for name in ("b", "a", "c.pdf", "d1", "e1.pdf")]
    sifted = filter_urls([*links, "https://other.example/1.pdf"], filters)
    assert [url.href for url in sifted.kept] == links[:2]
    assert sifted.dropped == [
        (links[2], DropReason.EXCLUDED),
        (links[3], DropReason.FILTER),
        (links[4], DropReason.EXCLUDED),
        ("https://other.example/1.pdf", DropReason.OUT_OF_SCOPE),
    ]
