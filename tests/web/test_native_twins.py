"""Small native functions and their twins in Python give the same results."""

import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from lycosa.frontier import RecentUrls
from lycosa.graph import columns
from lycosa.graph.columns import LinkChanges
from lycosa.learning.traps import sign_page
from lycosa.store import LinkRow, pack_links, pack_row
from lycosa.web import FollowedLinks, LinkRules, Links, analyse_page, follow_links, native

pytestmark = pytest.mark.usefixtures("each_kernel")


def test_recent_urls_are_told_once_and_forgotten_after_two_generations() -> None:
    recent = RecentUrls(4)

    assert recent.unseen(["a", "b", "a"]) == ["a", "b"]
    assert recent.unseen(["b", "c", "d"]) == ["c", "d"]  # the first generation is full
    assert recent.unseen(["a", "e", "f", "g"]) == ["e", "f", "g"]  # and the second
    assert recent.unseen(["b", "a"]) == ["b"]
    assert recent.is_new("h")
    assert not recent.is_new("h")


@given(st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=6), max_size=12))
def test_recent_urls_agree_with_two_sets(pages: list[list[str]]) -> None:
    recent, young, old = RecentUrls(3), set[str](), set[str]()
    for page in pages:
        expected = [url for n, url in enumerate(page) if url not in young | old and url not in page[:n]]
        young.update(page)
        if len(young) >= 3:
            young, old = set(), young
        assert recent.unseen(page) == expected


URLS = [f"http://a.example/{n}" for n in range(6)]
CHANGES = st.builds(
    lambda file_num, links, lost, is_gone: LinkChanges(
        file_num,
        URLS[file_num],
        [url for url, _, _ in links],
        bytes(kind for _, kind, _ in links),
        [words for _, _, words in links],
        lost,
        is_gone,
    ),
    st.integers(0, 5),
    st.lists(st.tuples(st.sampled_from(URLS), st.integers(1, 8), st.sampled_from(["", "Next", "Größe", "\ud800"]))),
    st.lists(st.sampled_from(URLS), max_size=3),
    st.booleans(),
)


@given(st.lists(CHANGES, max_size=5))
def test_links_in_columns_are_those_of_the_twin(pages: list[LinkChanges]) -> None:
    found = columns.from_pages(pages)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "native", lambda: None)
        expected = columns.from_pages(pages)
    assert [column.tolist() for column in (*found[:-1], *found.texts)] == [
        column.tolist() for column in (*expected[:-1], *expected.texts)
    ]


@pytest.mark.parametrize("count", [0, 1, 15, 16, 300])
@pytest.mark.parametrize("size", [1, 31, 32, 255, 256, 1_900])
def test_followed_links_are_kept_and_found_by_the_kernel_as_by_its_twin(count: int, size: int) -> None:
    hrefs = tuple(f"{n}".rjust(size, "x") for n in range(count))
    anchors = tuple(f"{'Größe' * (size // 6)} {n % 7}" for n in range(count))
    links = Links((*hrefs, "mailto:x@example"), b"\1" * (count + 1), (*anchors, ""), ("",) * (count + 1))
    base, rules = "http://a.example/p/", LinkRules(agent="x")
    found = follow_links(links, base, rules, "/p/")
    plain = FollowedLinks(found.hrefs, found.kinds, found.anchors, found.joined, found.base_href)

    assert (found.kernel is None) == (native() is None)
    assert found == plain
    assert pack_links(found) == pack_row(LinkRow(plain.hrefs, "/p/", plain.kinds, plain.anchors))
    assert (len(found), found.leading) == (len(plain), len(plain.joined))
    assert list(plain.joined) == list(hrefs)
    one, other = RecentUrls(), RecentUrls()
    assert one.unseen(follow_links(links, base, rules).urls) == other.unseen(plain.urls) == list(plain.joined.values())
    assert one.unseen(plain.urls) == []
    urls, words = list(plain.joined.values()), plain.anchors[:count]
    pages = [LinkChanges(1, URLS[0], kernel=found.kernel)] if found.kernel else []
    for page in pages:
        assert page.written_out() == LinkChanges(1, URLS[0], tuple(urls), plain.kinds[:count], words)
        columns_of = [columns.from_pages([page]), columns.from_pages([page.written_out()])]
        one_way, other_way = [[part.tolist() for part in (*each[:-1], *each.texts)] for each in columns_of]
        assert one_way == other_way


def test_signature_of_a_page_ignores_digits_of_its_text_in_one_of_two_hashes() -> None:
    def sign(text: str, images: str = "") -> tuple[int, int]:
        page = sign_page(text=text.encode(), images=images, structure="hbp", digest=b"d", depth=1)
        return page.text, page.bare

    one, other = sign("Visitor 4711 of this long page, welcome"), sign("Visitor 12 of this long page, welcome")
    assert one[0] != other[0]
    assert one[1] == other[1]
    assert sign("4711", "a1.png") != sign("4711", "a2.png")
    assert sign("", "") == sign("", "")
    stored = xxhash.xxh3_64_intdigest(b"Visitor 4711a1.png"), xxhash.xxh3_64_intdigest(b"Visitor a1.png")
    assert sign("Visitor 4711", "a1.png") == stored


@pytest.mark.parametrize(("mark", "is_volatile"), [("data-vol", True), ("data-void", False)])
def test_volatile_parts_are_recognised_by_their_mark(mark: str, is_volatile: bool) -> None:
    page = analyse_page(f"<p>{'text ' * 1_000}<span {mark}=1>5</span>".encode(), url=URLS[0], content_type="text/html")

    assert page.is_volatile is is_volatile
