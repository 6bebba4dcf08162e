"""Which links of a page are followed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lycosa.crawl.reading import followed_links
from lycosa.web.document import Page
from lycosa.web.links import LinkKind, Links
from lycosa.web.media import Media, MediaKind
from lycosa.web.page import analyse_page
from lycosa.web.url import FOLLOWED_KINDS, FOLLOWED_RELS, LinkRules

pytestmark = pytest.mark.usefixtures("each_kernel")

URL = "http://a.example/d/p"

RELS = st.sampled_from(
    ["", "nofollow", "NoFollow ugc", "canonical", "stylesheet", "next nofollow", "Alternate", "nofollowed"]
)
LINKS = st.lists(
    st.tuples(st.sampled_from([kind for kind in LinkKind if kind is not LinkKind.REDIRECT]), RELS), max_size=20
)
HTML = b"""<link rel=stylesheet href=s><link rel=next href=n><a href=a>a</a><a href=b rel=nofollow>b</a>
<img src=i><iframe src=f></iframe><meta http-equiv=refresh content='0; url=r'>"""


def page_with(links: list[tuple[LinkKind, str]]) -> Page:
    columns = Links(
        tuple(f"h{n}" for n in range(len(links))),
        bytes(kind for kind, _ in links),
        ("",) * len(links),
        tuple(rel for _, rel in links),
    )
    return Page(
        url="", media=Media(MediaKind.HTML, "text/html"), charset=None, fingerprint=0, digest=b"", links=columns
    )


@given(LINKS, st.booleans(), st.booleans())
def test_followed_hrefs_any_links_same_as_judging_one_by_one(
    links: list[tuple[LinkKind, str]], images: bool, obeys_nofollow: bool
) -> None:
    def is_followed(kind: LinkKind, rel: str) -> bool:
        words = rel.lower().split()
        if kind in FOLLOWED_KINDS:
            return not (obeys_nofollow and "nofollow" in words)
        return images if kind is LinkKind.IMG else bool(FOLLOWED_RELS & set(words))

    following = LinkRules(agent="x", images=images, obeys_nofollow=obeys_nofollow)
    one_by_one = tuple(f"h{n}" for n, (kind, rel) in enumerate(links) if is_followed(kind, rel))
    row = followed_links(page_with(links), following, URL)
    assert row.hrefs == one_by_one
    assert list(row.joined.items()) == [(href, f"http://a.example/d/{href}") for href in one_by_one]


@pytest.mark.parametrize(("images", "hrefs"), [(False, {"n", "a", "f", "r"}), (True, {"n", "a", "f", "r", "i"})])
def test_followed_hrefs_of_a_page(images: bool, hrefs: set[str]) -> None:
    page = analyse_page(HTML, url="http://a.example/", content_type="text/html")
    row = followed_links(page, LinkRules(agent="x", images=images), URL)
    assert set(row.hrefs) == hrefs


def test_followed_hrefs_that_differ_in_their_fragment_have_the_first_words_of_all() -> None:
    html = b"""<a href='/y#a'><img></a><a href='/z'>Zed</a><a href='/y'>Title of y</a><a href='/y#b'>later</a>
<a href='/x '></a><a href='/x #a'>not that</a><a href='/x#b'>X</a>
<map><area href='/w' alt=''><area href='/w#a' alt=W></map>"""
    page = analyse_page(html, url="http://a.example/", content_type="text/html")

    row = followed_links(page, LinkRules(agent="x"), URL)

    assert dict(zip(row.hrefs, row.anchors, strict=True)) == {
        "/y": "Title of y",
        "/z": "Zed",
        "/x": "X",
        "/x #a": "not that",
        "/w": "W",
    }
    assert row.kinds == bytes([LinkKind.A] * 4 + [LinkKind.AREA])
    assert list(row.joined.values()) == [f"http://a.example/{name}" for name in ("y", "z", "x", "x%20", "w")]


HREFS = st.sampled_from(["x", "x#f", "/y?q=é", "\\z", "//b.example", "http://B.example/", "mailto:x", "?q", "", "x y"])
BASE_HREFS = st.sampled_from(
    ["", "<base href=/d2/>", "<base href='http://b.example/e/#f'>", "<base href='\\e'>", "<base href=data:,>"]
)


@given(st.lists(HREFS, max_size=6), BASE_HREFS, st.sampled_from(["utf-8", "koi8-r", "latin-1"]))
def test_links_followed_while_the_page_is_read_are_those_followed_afterwards(
    hrefs: list[str], base: str, charset: str
) -> None:
    html = base + "".join(f"<a href='{href}'>{n % 3 or ''}</a>" for n, href in enumerate(hrefs))
    body, rules = html.encode("utf-8" if charset == "koi8-r" else charset), LinkRules(agent="x")
    ahead, after = [
        analyse_page(body, url=URL, content_type=f"text/html; charset={charset}", follow=follow)
        for follow in (rules, None)
    ]

    assert followed_links(ahead, rules, URL) == followed_links(after, rules, URL)
    assert list(followed_links(ahead, rules, URL).joined) == list(followed_links(after, rules, URL).joined)
