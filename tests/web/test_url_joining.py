"""The kernel joins hrefs as the parser does, and says of those it cannot join that it cannot."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lycosa.web import kernel, url
from lycosa.web.links import LinkKind, Links
from tests.web.test_url import cases, normalised

native: Any = pytest.importorskip("lycosa_native")

BASES = st.sampled_from(
    [
        "http://a.example/",
        "http://a.example/d/p.html",
        "http://a.example/d/p.html?x=/y/",
        "http://a.example/d//p.html",
        "http://a.example:8000/d/%C3%A9/..../f/p.html",
        "https://xn--bcher-kva.example/d/p.html",
        "https://[::1]/d/p.html?",
    ]
)
# What the standard treats in some way of its own, alone and next to each other.
PIECES = (
    "a|b.c|..|.|/|/|?|#|%2e|%|%41|%c3%a9|%aZ|é|字|\U0001f600| |\t|\n|\x00|\x7f|\ud800|\\|http://|https://|http:|HTTP://|//|:|@|"
    "x.org|X.org|a.example|a.example:8000|xn--bcher-kva.example|ab--c|a..b|xn--|1|0x7f|127.1|[::1]|:80|:443|:8080|:0|:99999|&|=|'|\"|<|^|`|{|~|_|-|+|ftp:|mailto:"
).split("|")
HREFS = st.lists(st.lists(st.sampled_from([*PIECES, "|"]), max_size=7).map("".join), max_size=20)


def joined(base: str, hrefs: list[str], max_bytes: int = url.MAX_URL_BYTES) -> tuple[dict[str, str], int]:
    """What kernel and parser together make of hrefs, and how many of them the kernel leaves to the parser."""
    found = native.join_hrefs(base, tuple(hrefs), max_bytes)
    return url.join_map(base, hrefs, max_bytes=max_bytes), len(hrefs) if found is None else len(found[1])


@given(BASES, HREFS, st.sampled_from([30, url.MAX_URL_BYTES]))
def test_kernel_joins_any_hrefs_as_the_parser_does(base: str, hrefs: list[str], max_bytes: int) -> None:
    assert list(joined(base, hrefs, max_bytes)[0].items()) == list(
        url._join(base, dict.fromkeys(hrefs), max_bytes).items()
    )


def test_kernel_joins_every_case_of_the_standard_as_the_parser_does(conformance: Path) -> None:
    inputs = [row["input"] for row in cases(conformance)]
    for base in {normalised(row["base"]) for row in cases(conformance) if row["base"]}:
        assert joined(base, inputs)[0] == url._join(base, inputs, url.MAX_URL_BYTES)


def test_kernel_leaves_only_odd_hrefs_to_the_parser() -> None:
    usual = "|#f|?q|x|x/|/x?a=b&c|../x|./x.html|é|a b|%7e|x'|http://b.example|//b.example:80/x|mailto:x|x:y|https://b.example:8/?"
    odd = (
        "x\\y|a\tb| x|%2e/x|http:x|HTTP://b.example/|http://b.example./|http://127.1/|http://ü.example/|//u@b.example/"
    )

    assert joined("https://a.example/d/p", usual.split("|"))[1] == 0
    assert (
        joined(
            "https://xn--bcher-kva.example:1/d/p", ["//xn--bcher-kva.example:1/x", "https://xn--bcher-kva.example:1"]
        )[1]
        == 0
    )
    assert joined("https://a.example/d/p", odd.split("|"))[1] == len(odd.split("|"))


LINKS = st.lists(
    st.tuples(
        st.sampled_from(["x", "x#f", "x #f", "y", "", "#f", "\\", "mailto:x", "\ud800"]),
        st.integers(0, 9),
        st.sampled_from(["", "one", "two"]),
        st.sampled_from(["", "nofollow", " NOFOLLOW\u2003x", "next", "stylesheet Alternate", "nofollowed", "\u212a"]),
    ),
    max_size=12,
)


@given(LINKS, BASES, st.booleans(), st.booleans(), st.sampled_from([2, 50_000]))
def test_kernel_follows_any_links_as_its_twin_does(
    rows: list[tuple[str, int, str, str]], base: str, images: bool, obeys_nofollow: bool, most: int
) -> None:
    hrefs, kinds, anchors, rels = zip(*rows, strict=True) if rows else ((), (), (), ())
    links = Links(hrefs, bytes(kinds), anchors, rels)
    rules = url.LinkRules(agent="x", images=images, obeys_nofollow=obeys_nofollow, most=most)
    found = []
    for name in ("python", "native"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(kernel.VARIABLE, name)
            kernel.native.cache_clear()
            found.append(url.follow_links(links, base, rules))
    kernel.native.cache_clear()

    assert found[0] == found[1]
    assert list(found[0].joined.items()) == list(found[1].joined.items())
    for links_found in found:
        parts = list(links_found.url_parts(5))
        assert [url for part in parts for url in part] == list(links_found.joined.values())
        assert max(map(len, parts), default=0) <= 5


def test_kernel_follows_the_first_links_of_a_vast_page() -> None:
    hrefs = tuple(f"p/{number}" for number in range(60_000))
    links = Links(hrefs, bytes((LinkKind.A,)) * len(hrefs), ("",) * len(hrefs), ("",) * len(hrefs))

    found = url.follow_links(links, "http://a.example/", url.LinkRules(agent="x"))

    assert found.hrefs == hrefs[:50_000]
    assert list(found.joined.values())[-1] == "http://a.example/p/49999"
