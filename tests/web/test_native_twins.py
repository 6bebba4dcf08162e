"""Small native functions and their twins in Python give the same results."""

import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from lycosa.frontier import RecentUrls
from lycosa.graph.columns import intern_texts, url_id, url_ids
from lycosa.learning.traps import sign_page

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


def test_interned_texts_are_kept_once_and_found_by_number() -> None:
    words = ["Next", "", "Größe", "Next", "\U0001f577", ""]
    table, numbers = intern_texts(words)

    ends = table.sizes.cumsum().tolist()
    texts = [bytes(table.data[end - size : end]).decode() for end, size in zip(ends, table.sizes.tolist(), strict=True)]
    assert [texts[number] for number in numbers.tolist()] == words
    assert table.ids.tolist() == sorted(set(table.ids.tolist()))
    assert len(texts) == 4


def test_half_a_character_in_an_anchor_is_replaced() -> None:
    table, _ = intern_texts(["a\ud800"])

    assert bytes(table.data) == b"a?"


def test_ids_of_many_urls_are_those_of_each() -> None:
    urls = ("http://a.example/", "http://b.example/%C3%BC?x=1")

    assert url_ids(urls).tolist() == [url_id(url) for url in urls]


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
