"""The tables of a collection as Arrow against the same asked one by one; and how little is read for a question."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import lycosa
from lycosa.errors import MissingExtra, SettingsError
from lycosa.inspect import (
    StoredPages,
    arrow_reader,
    hosts,
    open_to_read,
    stats_of,
    table_named,
    tables_of,
)
from lycosa.inspect.arrow import BATCH_BYTES, TableDataset
from lycosa.simweb import SimSettings, SimWeb
from lycosa.store import CollectionStore
from tests.crawl.memory_crawl import crawl, front
from tests.inspect.listing import list_urls

WEB = SimWeb(SimSettings(hosts=4, pages=200, seed=3, trouble={"not-found": 0.1}))


@pytest.fixture(scope="module")
def into(tmp_path_factory: pytest.TempPathFactory) -> Path:
    into = tmp_path_factory.mktemp("tables") / "c"
    crawl(WEB, into, front(WEB), pages=100, fields={"heading": "h1", "words": "p*"})
    return into


@pytest.fixture(scope="module")
def crawled(into: Path) -> Iterator[CollectionStore]:
    with open_to_read(into) as collection:
        yield collection


def rows(collection: CollectionStore, table: str, *columns: str) -> list[dict[str, object]]:
    reader = arrow_reader(collection, table_named(collection, table), columns or None)
    return reader.read_all().to_pylist()  # type: ignore[no-any-return]


def test_pages_are_those_of_the_collection_and_as_many_as_status_says(crawled: CollectionStore) -> None:
    found = rows(crawled, "pages", "url", "title", "status", "text", "body", "headers", "fetched")

    pages = list(StoredPages(crawled).all())
    assert len(found) == stats_of(crawled).pages == 100
    for row, page in zip(found, pages, strict=True):
        assert (row["url"], row["title"], row["status"]) == (page.url, page.title or None, page.status)
        assert (row["text"], row["body"], dict(row["headers"])) == (page.text, page.body, page.headers)  # type: ignore[call-overload]
        assert f"{row['fetched']:%Y-%m-%dT%H:%M:%S}" == page.fetched[:19]


def test_links_are_those_of_each_page(crawled: CollectionStore) -> None:
    found = rows(crawled, "links")

    pages = {page.url: page for page in StoredPages(crawled).all()}
    for url, page in pages.items():
        own = [(row["target"], row["kind"], row["anchor"] or "") for row in found if row["source"] == url]
        assert own == [(link.url, link.kind, link.anchor) for link in page.links]


def test_hosts_and_urls_are_those_of_their_commands(crawled: CollectionStore) -> None:
    assert [(row["origin"], row["pages"]) for row in rows(crawled, "hosts")] == [
        (host.host, host.pages) for host in hosts(crawled)
    ]
    assert [(row["url"], row["state"], row["referrers"]) for row in rows(crawled, "urls")] == [
        (known.url, known.state, known.referrers) for known in list_urls(crawled)
    ]


def test_fields_are_columns_of_their_types(crawled: CollectionStore) -> None:
    found = rows(crawled, "fields", "url", "heading", "words")

    pages = {page.url: page for page in StoredPages(crawled).all()}
    assert {row["url"]: (row["heading"], row["words"]) for row in found} == {
        url: (page.fields["heading"], page.fields["words"]) for url, page in pages.items()
    }
    assert any(row["heading"] for row in found)


def test_fields_are_what_their_table_has_where_no_column_is_named(crawled: CollectionStore) -> None:
    assert arrow_reader(crawled, tables_of(crawled)["fields"]).schema.names == ["url", "heading", "words"]


def test_every_table_can_be_read_whole_and_keeps_its_schema(crawled: CollectionStore) -> None:
    for table in tables_of(crawled).values():
        reader = arrow_reader(crawled, table, [column.name for column in table.columns])
        whole = reader.read_all()
        assert whole.schema == reader.schema
        assert whole.validate(full=True) is None


@pytest.fixture
def read_bodies(crawled: CollectionStore, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    counts: Counter[str] = Counter()
    plain = type(crawled).record
    monkeypatch.setattr(
        type(crawled), "record", lambda self, place: counts.update(["record"]) or plain(self, place), raising=True
    )
    return counts


def scanned(collection: CollectionStore, columns: list[str], filter: object = None) -> pa.Table:
    return TableDataset(collection, table_named(collection, "pages")).scanner(columns, filter).to_reader().read_all()


def test_archive_is_not_read_for_what_the_rows_say(crawled: CollectionStore, read_bodies: Counter[str]) -> None:
    assert len(rows(crawled, "pages")) == 100
    assert not read_bodies


def test_filter_comes_before_content_is_read(crawled: CollectionStore, read_bodies: Counter[str]) -> None:
    first = rows(crawled, "pages", "url")[7]["url"]

    found = scanned(crawled, ["text"], pa.compute.field("url") == first)

    assert found.num_rows == 1
    assert found.column_names == ["text"]
    assert read_bodies["record"] <= 2  # a copy's record refers to another


def test_filter_by_content_reads_it_and_keeps_the_columns_asked_for(crawled: CollectionStore) -> None:
    texts = rows(crawled, "pages", "url", "text")
    word = str(texts[5]["text"]).split()[0]

    found = scanned(crawled, ["url"], pa.compute.match_substring(pa.compute.field("text"), word))

    assert found.to_pylist() == [{"url": row["url"]} for row in texts if word in str(row["text"])]


def test_batches_with_content_are_bounded(crawled: CollectionStore) -> None:
    batches = list(arrow_reader(crawled, table_named(crawled, "pages"), ["body"]))

    largest = max(len(row["body"]) for batch in batches for row in batch.to_pylist())
    assert max(batch.nbytes for batch in batches) <= BATCH_BYTES + 2 * largest


def test_frame_is_of_pandas_or_of_polars(into: Path) -> None:
    with lycosa.open(into) as collection:
        frame = collection.frame("pages", ["url", "depth", "fetched"])
        other = collection.frame("urls", ["url", "state"], engine="polars")

        assert list(frame.columns) == ["url", "depth", "fetched"]
        assert len(frame) == len(collection) == 100
        assert str(frame.fetched.dtype).startswith("datetime64")
        assert other.filter(other["state"] == "done").height >= 100
        assert "text" not in collection.frame().columns


def test_what_is_not_there_is_named(crawled: CollectionStore, into: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SettingsError, match="there is no table 'page': pages, links"):
        table_named(crawled, "page")
    with pytest.raises(SettingsError, match="the table pages has no column 'size': it has url, host"):
        rows(crawled, "pages", "size")
    with lycosa.open(into) as collection:
        with pytest.raises(SettingsError, match="not of 'numpy'"):
            collection.frame(engine="numpy")  # type: ignore[arg-type]
        monkeypatch.setattr("lycosa.api.collection.find_spec", lambda name: None)
        with pytest.raises(MissingExtra, match="pip install pandas"):
            collection.frame()


def test_collection_answers_sql_as_a_table(into: Path) -> None:
    with lycosa.open(into) as collection:
        found = collection.sql("select count(*) as pages, count(distinct host) as hosts from pages")

        assert found.to_pylist() == [{"pages": 100, "hosts": len({page.url.split("/")[2] for page in collection})}]
        assert collection.sql("select url from pages where status = 999").column_names == ["url"]
        with pytest.raises(SettingsError, match="there is no table nope"):
            collection.sql("select * from nope")
