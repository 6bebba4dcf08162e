"""Clusters of a collection: exact copies and near ones, each with its representative, also of shards."""

import csv
import json
from pathlib import Path

import pytest

import lycosa
from lycosa.duplicates import DuplicatePage, Relation, clusters, duplicate_pages
from lycosa.errors import SettingsError
from lycosa.inspect import open_to_read
from lycosa.store import SHARDED_FILE, SHARDS_FOLDER
from tests.cli.command import Said
from tests.cli.command import lycosa as command
from tests.crawl.small_site import FIRST, crawl_site, links
from tests.search.shop import Shop

HOST = FIRST.rstrip("/")


def text(name: str, *more: str, words: int = 300) -> str:
    return " ".join([*(f"{name}{number}" for number in range(words)), *more])


def canonical(path: str) -> str:
    return f"<link rel=canonical href='{path}'>"


PAGES = {
    "/": "<title>home</title>"
    + links("/copy-b", "/copy-a", "/near-1", "/near-2", "/near-3", "/short-1", "/short-2", "/prices?n=1")
    + links("/prices?n=2", "/empty-1", "/empty-2", "/alone", "/gone"),
    "/copy-a": f"<title>Copy</title><p>{text('copy')}</p>",
    "/copy-b": f"<title>Copy</title><p>{text('copy')}</p>",
    "/near-1": f"<p>{text('near', 'one more')}</p>",
    "/near-2": f"{canonical('/near-2')}<p>{text('near', 'one other')}</p>",
    "/near-3": f"{canonical('/near-2')}<p>{text('near')}</p>" + links("/alone"),
    "/short-1": "<p>this text is short, number 1</p>",
    "/short-2": "<p>this text is short, number 2</p>",
    "/prices?n=1": f"<p>{text('price', '17')}</p>",
    "/prices?n=2": f"<p>{text('price', '34')}</p>",
    "/empty-1": "",
    "/empty-2": "",
    "/alone": f"<p>{text('alone')}</p>",
}


def answer(url: str) -> str | None:
    return PAGES.get(url.removeprefix(HOST))


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("clusters") / "c"
    crawl_site(path, answer)
    return path


def found(path: Path, **wanted: object) -> list[DuplicatePage]:
    with open_to_read(path) as collection:
        return list(duplicate_pages(collection.state, **wanted))  # type: ignore[arg-type]


def short(pages: list[DuplicatePage]) -> list[tuple[int, str, str]]:
    return [(page.cluster, str(page.relation), page.url.removeprefix(HOST)) for page in pages]


def test_clusters_have_the_representative_first_then_copies_then_near_copies(collection: Path) -> None:
    pages = short(found(collection))
    assert pages[:3] == [(1, "representative", "/near-2"), (1, "near", "/near-1"), (1, "near", "/near-3")]
    assert {page[1:] for page in pages[3:]} == {
        ("representative", "/copy-a"),
        ("exact", "/copy-b"),
        ("representative", "/prices?n=1"),
        ("near", "/prices?n=2"),
    }
    assert [page[0] for page in pages[3:]] == [2, 2, 3, 3]
    assert {page.pages for page in found(collection)} == {2, 3}


@pytest.mark.parametrize("at_once", [1, 2, 3])
def test_clusters_are_the_same_however_many_pages_are_looked_up_at_once(
    collection: Path, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    whole = found(collection)
    monkeypatch.setattr(clusters, "AT_ONCE", at_once)
    assert found(collection) == whole


def test_clusters_can_be_chosen_by_what_they_have(collection: Path) -> None:
    assert {page.url.removeprefix(HOST) for page in found(collection, relation=Relation.EXACT)} == {
        "/copy-a",
        "/copy-b",
    }
    assert len(found(collection, relation=Relation.NEAR)) == 5
    assert len(found(collection, host="127.0.0.1")) == 7
    assert found(collection, host="other.example") == []


def test_page_that_a_redirect_leads_to_represents_its_cluster(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    for path in ("a", "longer"):
        shop.page(f"{FIRST}{path}", f"<p>{text('same', path)}</p>")
    shop.redirect(f"{FIRST}old", f"{FIRST}longer")
    shop.close()
    assert short(found(tmp_path)) == [(1, "representative", "/longer"), (1, "near", "/a")]


def test_chain_of_small_changes_is_not_one_cluster(tmp_path: Path) -> None:
    shop, words = Shop(tmp_path), [f"word{number}" for number in range(300)]
    for step in range(40):
        words[5 * step : 5 * step + 5] = [f"other{step}-{number}" for number in range(5)]
        shop.page(f"{FIRST}{step:02d}", f"<p>{' '.join(words)}</p>")
    shop.close()
    sizes = {page.representative: page.pages for page in found(tmp_path)}
    assert len(sizes) > 2
    assert max(sizes.values()) < 20


def test_page_that_changed_or_was_forgotten_leaves_its_cluster(tmp_path: Path) -> None:
    crawl_site(tmp_path, answer)
    assert (tmp_path / "similar").is_dir() is False, "a crawl of a few pages needs no index"
    said: Said = command("forget", tmp_path, f"{HOST}/copy-b", "--yes")
    assert said.code == 0, said.err
    assert found(tmp_path, relation=Relation.EXACT) == []


def test_shards_are_one_collection(tmp_path: Path) -> None:
    (tmp_path / SHARDED_FILE).write_text("{}")
    for number in (1, 2):
        shop = Shop(tmp_path / SHARDS_FOLDER / str(number), warc_first=100 * number)
        shop.page(f"https://s{number}.example/", f"<p>{text('same', str(number))}</p>")
        shop.page(f"https://s{number}.example/copy", f"<p>{text('copy')}</p>")
        shop.close()
    said = {(page.url, str(page.relation)) for page in found(tmp_path)}
    assert said == {
        ("https://s1.example/", "representative"),
        ("https://s2.example/", "near"),
        ("https://s1.example/copy", "representative"),
        ("https://s2.example/copy", "exact"),
    }


def test_library_has_the_same_clusters(collection: Path) -> None:
    with lycosa.open(collection) as opened:
        assert list(opened.duplicates()) == found(collection)
        assert list(opened.duplicates(relation="near")) == found(collection, relation=Relation.NEAR)
        with pytest.raises(SettingsError, match="exact copies and near ones"):
            opened.duplicates(relation="far")  # type: ignore[arg-type]


def test_command_shows_clusters_as_text_json_and_csv(collection: Path) -> None:
    table = command("duplicates", collection)
    assert table.out.startswith(f"3 pages: {HOST}/near-2\n  ~ {HOST}/near-1\n  ~ {HOST}/near-3\n")
    assert table.err.splitlines()[-1] == "3 clusters: 1 exact and 3 near copies"
    lines = [json.loads(line) for line in command("duplicates", collection, "--json", "--exact").out.splitlines()]
    assert [(line["relation"], line["title"]) for line in lines] == [("representative", "Copy"), ("exact", "Copy")]
    rows = list(csv.DictReader(command("duplicates", collection, "--csv", "-n", "1").out.splitlines()))
    assert [row["canonical"].removeprefix(HOST) for row in rows] == ["/near-2", "", "/near-2"]


def test_command_says_what_is_wrong(collection: Path, tmp_path: Path) -> None:
    assert command("duplicates", tmp_path).code == 2
    assert command("duplicates", collection, "--json", "--csv").code == 2
    nothing = command("duplicates", collection, "--host", "other.example")
    assert (nothing.code, nothing.out) == (0, "")
    assert "no such copies" in nothing.err
