"""Which pages an export takes: every filter through the command, and that a filter on a host reads no other rows."""

from pathlib import Path

import pytest

from lycosa.export.selection import PageSelection, expected_pages, select
from lycosa.inspect import open_to_read
from lycosa.records import Family
from lycosa.store.state import State
from tests.cli.command import lycosa
from tests.crawl.small_site import FIRST, Sent, links
from tests.export.conftest import OTHER, make_collection
from tests.export.test_jsonl import exported

DOCS = {f"{FIRST}docs/x", f"{FIRST}docs/y.txt"}


@pytest.mark.parametrize(
    ("words", "urls"),
    [
        (["--host", "127.0.0.2"], {OTHER}),
        (["--host", "127.0.0.2:9"], {OTHER}),
        (["--host", "127.0.0.2", "--host", "127.0.0.2"], {OTHER}),
        (["--path", "/docs/"], DOCS),
        (["--path", "/*.txt$"], {f"{FIRST}docs/y.txt"}),
        (["--type", "text/plain"], {f"{FIRST}docs/y.txt"}),
        (["--type", "text"], {f"{FIRST}docs/y.txt"}),
        (["--type", "html", "--path", "/docs/"], {f"{FIRST}docs/x"}),
        (["--language", "de"], {f"{FIRST}a", f"{FIRST}b"}),
        (["--language", "deu"], {f"{FIRST}a", f"{FIRST}b"}),
        (["--language", "de-DE"], set()),
        (["--status", "410"], {f"{FIRST}gone"}),
        (["--status", "4xx"], {f"{FIRST}gone", f"{FIRST}old"}),
        (["--status", "200-299", "--host", "127.0.0.2"], {OTHER}),
        (["--until", "1969-01-01"], set()),
        (["--changed-since", "2999-01-01"], set()),
        (["--until", "20000d", "--type", "html"], set()),
        (["--since", "20000d", "--host", "127.0.0.2"], {OTHER}),
        (["--host", "unknown.example"], set()),
    ],
)
def test_filter_takes_these_pages_only(small: Path, words: list[str], urls: set[str]) -> None:
    assert {page["url"] for page in exported(small, *words, "--content", "none")} == urls


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--status", "abc"], "a status such as 404"),
        (["--path", "docs"], "a path begins with /"),
        (["--since", "yesterday"], "--since is 'yesterday': write 2h, 3d or a date"),
        (["--language", "english"], "give a code such as en"),
        (["--type", "nonsense"], "give a media type"),
        (["--host", " "], "--host is empty"),
        (["--host", "http://["], "neither the beginning"),
        (["--like", "gpt"], "choose from dolma, fineweb, c4"),
    ],
)
def test_wrong_filter_is_one_sentence(small: Path, words: list[str], sentence: str) -> None:
    said = lycosa("export", small, "jsonl", *words)
    assert (said.code, said.out) == (2, "")
    assert sentence in said.err
    assert said.err.count("\n") == 1


def test_filter_on_a_host_reads_its_rows_alone(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[bytes] = []
    walk = State.walk

    def watched(self: State, family: Family, start: bytes = b"", end: bytes | None = None):  # type: ignore[no-untyped-def]
        for key, row in walk(self, family, start, end):
            read.append(key)
            yield key, row

    monkeypatch.setattr(State, "walk", watched)
    with open_to_read(small) as collection:
        found = [page.url for page, _ in select(collection, PageSelection.read(host=["127.0.0.2"]))]
    assert found == [OTHER]
    assert len(read) == 1


def test_selection_goes_on_behind_any_cursor(small: Path) -> None:
    with open_to_read(small) as collection:
        for wanted in (PageSelection(), PageSelection(versions=True), PageSelection.read(host=["127.0.0.1"])):
            found = list(select(collection, wanted))
            for at, (_, cursor) in enumerate(found):
                rest = [page.url for page, _ in select(collection, wanted, after=cursor)]
                assert rest == [page.url for page, _ in found[at + 1 :]]


def test_folder_without_a_collection_is_one_sentence(tmp_path: Path) -> None:
    said = lycosa("export", tmp_path, "jsonl")
    assert said.code == 2
    assert "is not a collection" in said.err


def test_unknown_format_names_those_that_there_are(small: Path) -> None:
    said = lycosa("export", small, "xml")
    assert said.code == 2
    assert "there is no format 'xml': choose from jsonl" in said.err


@pytest.mark.parametrize(
    ("query", "urls"),
    [
        ("solar", {FIRST}),
        ("sonne", {f"{FIRST}a", f"{FIRST}b"}),  # a page and its copy
        ("sonne -wärme", set()),
        ("words OR elsewhere", {f"{FIRST}docs/x", OTHER}),
        ("site:127.0.0.2 elsewhere", {OTHER}),
    ],
)
def test_query_takes_all_that_a_search_finds(small: Path, query: str, urls: set[str]) -> None:
    assert {page["url"] for page in exported(small, "--query", query, "--content", "none")} == urls


def test_wrong_query_is_one_sentence(small: Path) -> None:
    said = lycosa("export", small, "jsonl", "--query", '"')
    assert (said.code, said.out) == (2, "")
    assert said.err.count("\n") == 1


def test_expected_pages_are_those_that_come(small: Path) -> None:
    with open_to_read(small) as collection:
        for hosts in ((), ("127.0.0.1",), ("127.0.0.2",), ("127.0.0.1", "127.0.0.2"), ("unknown.example",)):
            wanted = PageSelection(hosts=hosts)
            assert expected_pages(collection, wanted) == len(list(select(collection, wanted)))
        assert expected_pages(collection, PageSelection(paths=("/docs/",))) == 0


def test_answer_that_broke_off_at_every_try_is_no_page(tmp_path: Path) -> None:
    cut = Sent("<html lang=en><title>Cut</title><p>Half of a", {"content-length": "1000"}, failure="reset")
    make_collection(tmp_path / "c", {FIRST: links("cut"), f"{FIRST}cut": cut})
    assert {page["url"] for page in exported(tmp_path / "c")} == {FIRST}
    assert lycosa("status", tmp_path / "c", "--json").facts["pages"] == 1
    assert lycosa("sql", tmp_path / "c", "select count(*) from pages", "--csv").out.split() == ["count_star()", "1"]
    assert [page["status"] for page in exported(tmp_path / "c", "--status", "200", "--path", "/cut")] == [200]
