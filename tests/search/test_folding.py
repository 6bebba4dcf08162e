"""Pages that name another one as canonical stand behind it, where they speak of the same."""

from collections.abc import Sequence
from pathlib import Path
from random import Random

from lycosa.search.documents import address_hash
from lycosa.search.folding import MOST_READ, Folding, FoldMarks, PageSource
from lycosa.search.making import make_index
from lycosa.search.view import SearchResults, SearchView
from lycosa.store.joined import SHARDED_FILE, SHARDS_FOLDER
from lycosa.web import simhash, text_sketch
from tests.search.shop import Shop

PAGE = "https://shop.example/chairs"
TEXT = " ".join(f"Chair number {n} is made of oak and costs {3 * n + 7} euros." for n in range(30))


def html(text: str, *, title: str = "Chairs", canonical: str = "") -> str:
    named = f"<link rel=canonical href='{canonical}'>" if canonical else ""
    return f"<html lang=en><head><title>{title}</title>{named}</head><p>{text}</p>"


def search(path: Path, pages: dict[str, str], query: str = "chair") -> SearchResults:
    shop = Shop(path)
    for url, page in pages.items():
        shop.page(url, page, language="en")
    shop.index()
    shop.close()
    with SearchView(path) as view:
        return view.search(query, facets=True)


def variants(count: int, text: str = TEXT) -> dict[str, str]:
    return {
        f"{PAGE}?sort={n}": html(f"Chair chair chair sorted {n}. {text}", canonical="/chairs") for n in range(count)
    }


def test_page_is_folded_under_the_canonical_page_that_it_names(tmp_path: Path) -> None:
    found = search(tmp_path / "c", {**variants(3), PAGE: html(TEXT)})

    assert [result.url for result in found.results] == [PAGE], "though the others have the word more often"
    assert found.results[0].variants == 3
    assert set(found.results[0].variant_urls) == set(variants(3))
    assert (found.total, found.is_exact) == (1, True)


def test_page_that_names_itself_stands_for_the_others(tmp_path: Path) -> None:
    found = search(tmp_path / "c", {**variants(2), PAGE: html(TEXT, canonical=PAGE)})

    assert [(result.url, result.variants) for result in found.results] == [(PAGE, 2)]


def test_pages_whose_canonical_page_is_not_there_are_folded_under_the_best(tmp_path: Path) -> None:
    found = search(tmp_path / "c", variants(3))

    assert [result.variants for result in found.results] == [2]


def test_canonical_page_without_the_words_does_not_hide_a_page_that_has_them(tmp_path: Path) -> None:
    found = search(tmp_path / "c", {PAGE: html(TEXT), **variants(1)}, "sorted")

    assert [result.url for result in found.results] == list(variants(1))


def test_page_that_speaks_of_something_else_is_not_believed(tmp_path: Path) -> None:
    chance = Random(1)
    others = {
        f"https://shop.example/{n}": html(
            "chair " + " ".join("".join(chance.choices("abcdefgh", k=5)) for _ in range(100)), canonical="/"
        )
        for n in range(3)
    }

    found = search(tmp_path / "c", {"https://shop.example/": html(TEXT), **others})

    assert len(found.results) == 4, "a site that names its home page everywhere"


def test_facets_count_what_is_folded(tmp_path: Path) -> None:
    found = search(tmp_path / "c", {**variants(3), PAGE: html(TEXT)})

    assert found.facets is not None
    assert [(each.value, each.pages) for each in found.facets.hosts] == [("shop.example", 4)]


def test_variant_of_a_later_block_stands_behind_the_result_of_an_earlier_one() -> None:
    sketch = text_sketch(TEXT)
    keys = {1: b"one", 2: b"two", 3: b"three"}
    folding = Folding(PageSource(lambda numbers: [keys[n] for n in numbers], lambda number: sketch))
    first = folding.heads([1, 2], {1: FoldMarks(), 2: FoldMarks()})

    later = folding.heads([3], {3: FoldMarks(canonical=address_hash(b"one"), sketch=sketch)})

    assert (first, later, folding.variants) == ([1, 2], [], {1: [3]})


def test_only_some_pages_are_read_to_fold_others() -> None:
    read: list[int] = []

    def sketch(number: int) -> int:
        read.append(number)
        return text_sketch(TEXT)

    def keys(numbers: Sequence[int]) -> list[bytes | None]:
        return [b"page %d" % number for number in numbers]

    folding = Folding(PageSource(keys, sketch))
    named = {
        number: FoldMarks(canonical=address_hash(b"page %d" % (number - 1_000)), sketch=text_sketch(TEXT))
        for number in range(1_001, 1_101)
    }
    plain = {number: FoldMarks() for number in range(1, 101)}

    heads = folding.heads([*plain, *named], plain | named)

    assert len(read) == MOST_READ
    assert len(heads) == 200 - MOST_READ


def test_canonical_page_stands_for_its_near_copies_too(tmp_path: Path) -> None:
    mirror = {"https://mirror.example/chairs": html(f"Chair chair chair. {TEXT}")}

    found = search(tmp_path / "c", {**mirror, **variants(1), PAGE: html(TEXT)})

    assert {result.url: (result.variants, result.near) for result in found.results} == {PAGE: (1, 1)}
    assert found.folded == 2


def test_pages_from_one_template_with_titles_of_their_own_are_results_of_their_own(tmp_path: Path) -> None:
    catalogue = {
        "https://shop.example/oak": html(f"Oak chair. {TEXT}", title="Oak chair"),
        "https://shop.example/elm": html(f"Elm chair. {TEXT}", title="Elm chair"),
        "https://mirror.example/oak": html(f"The oak chair. {TEXT}", title="OAK  chair"),
    }

    found = search(tmp_path / "c", catalogue)

    assert sorted(result.near for result in found.results) == [0, 1]
    assert {result.url.rpartition("/")[2] for result in found.results} == {"oak", "elm"}


def test_near_copy_of_a_later_block_stands_behind_the_lone_page_of_its_title() -> None:
    folding = Folding(PageSource(lambda numbers: [None for _ in numbers], lambda number: 0))
    packed = simhash(TEXT)
    page = FoldMarks(bits=int.from_bytes(packed[:8]), unsure=int.from_bytes(packed[8:]), titled=1)

    assert folding.heads([1, 2], {1: page, 2: page._replace(titled=2)}) == [1, 2]
    assert folding.heads([3, 4], {3: page, 4: page._replace(titled=3)}) == [4]
    assert folding.near == {1: [3]}


def test_page_near_one_that_is_folded_stands_behind_the_same_result() -> None:
    folding = Folding(PageSource(lambda numbers: [None for _ in numbers], lambda number: 0))
    packed = simhash(TEXT)
    bits, unsure = int.from_bytes(packed[:8]), int.from_bytes(packed[8:])
    marks = {1: FoldMarks(9), 2: FoldMarks(9, bits=bits, unsure=unsure), 3: FoldMarks(7, bits=bits, unsure=unsure)}

    assert folding.heads([1, 2, 3], marks) == [1]
    assert (folding.alike, folding.near) == ({1: [2]}, {1: [3]})


def test_near_copies_in_different_shards_are_folded(tmp_path: Path) -> None:
    (tmp_path / SHARDED_FILE).write_text("{}")
    for number, url in ((1, "https://one.example/"), (2, "https://two.example/")):
        shop = Shop(tmp_path / SHARDS_FOLDER / str(number), warc_first=100 * number)
        shop.page(url, html(f"Chair {number}. {TEXT}"), language="en")
        shop.linker.flush()
        shop.close()

    make_index(tmp_path)

    with SearchView(tmp_path) as view:
        found, every = view.search("chair"), view.search("chair", fold=False)
    assert (found.total, found.folded, every.total) == (1, 1, 2)


def test_page_with_the_same_text_stands_behind_the_first() -> None:
    folding = Folding(PageSource(lambda numbers: [None for _ in numbers], lambda number: 0))

    assert folding.heads([5, 6, 7], {5: FoldMarks(9), 6: FoldMarks(9), 7: FoldMarks(8)}) == [5, 7]
    assert (folding.alike, folding.folded) == ({5: [6]}, 1)
