"""Parquet exports: Common Crawl's columns and the kind of query its users write, records that are where they say,
tables of text, links and fields, resumption; read by DuckDB, Polars and pandas."""

from collections import Counter
from pathlib import Path
from typing import Any
from uuid import UUID

import duckdb
import pandas
import polars
import pyarrow.dataset
import pytest
from warcio.archiveiterator import ArchiveIterator

from lycosa import Collection
from lycosa.errors import SettingsError
from lycosa.export import ExportJob, export_pages
from lycosa.export import parquet as parquet_format
from lycosa.export import run as export_run
from lycosa.export.common_crawl import RecordPlace, index_row
from lycosa.store import WarcLocation
from tests.cli.command import lycosa
from tests.crawl.small_site import FIRST
from tests.export.conftest import make_collection

COLUMNS = """
    url_surtkey VARCHAR, url VARCHAR, url_host_name VARCHAR, url_host_tld VARCHAR, url_host_2nd_last_part VARCHAR,
    url_host_3rd_last_part VARCHAR, url_host_4th_last_part VARCHAR, url_host_5th_last_part VARCHAR,
    url_host_registry_suffix VARCHAR, url_host_registered_domain VARCHAR, url_host_private_suffix VARCHAR,
    url_host_private_domain VARCHAR, url_host_name_reversed VARCHAR, url_protocol VARCHAR, url_port INTEGER,
    url_path VARCHAR, url_query VARCHAR, fetch_time TIMESTAMP, fetch_status SMALLINT, fetch_redirect VARCHAR,
    content_digest VARCHAR, content_mime_type VARCHAR, content_mime_detected VARCHAR, content_charset VARCHAR,
    content_languages VARCHAR, content_truncated VARCHAR, warc_record_id BLOB, warc_filename VARCHAR,
    warc_record_offset INTEGER, warc_record_length INTEGER, warc_segment VARCHAR, crawl VARCHAR, subset VARCHAR
"""
NEVER_NULL = {
    "url_surtkey", "url", "url_host_name", "url_protocol", "url_path", "fetch_time", "fetch_status", "warc_record_id",
    "warc_filename", "warc_record_offset", "warc_record_length", "warc_segment",
}  # fmt: skip


@pytest.fixture(scope="module")
def exported(small: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("parquet") / "p"
    words = ("--links", "--crawl", "CC-MAIN-2018-05", "--field", "first=p", "--field", "all=a*")
    said = lycosa("export", small, "parquet", "--out", out, *words)
    assert said.code == 0, said.err
    return out


@pytest.fixture
def index(exported: Path) -> duckdb.DuckDBPyConnection:
    """The table as users of Common Crawl have it."""
    database = duckdb.connect()
    database.execute("create schema ccindex")
    database.execute(
        f"create view ccindex.ccindex as from read_parquet('{exported}/index/**/*.parquet', hive_partitioning = true)"
    )
    return database


def table(exported: Path, name: str) -> list[dict[str, Any]]:
    found = pyarrow.dataset.dataset(exported / name, partitioning="hive").to_table().to_pylist()
    return sorted(found, key=lambda row: str(row["url"]))  # type: ignore[no-any-return]


def test_columns_are_those_of_common_crawl_in_order(index: duckdb.DuckDBPyConnection, exported: Path) -> None:
    found = index.execute("describe ccindex.ccindex").fetchall()

    assert [f"{name} {type}" for name, type, *_ in found] == " ".join(COLUMNS.split()).split(", ")
    (file,) = exported.glob("index/*/subset=warc/*.parquet")
    schema = pyarrow.parquet.read_schema(file)
    assert {field.name for field in schema if not field.nullable} == NEVER_NULL


def test_counts_are_those_of_status(index: duckdb.DuckDBPyConnection, small: Path) -> None:
    status = lycosa("status", small, "--json").facts

    by_subset = dict(index.execute("select subset, count(*) from ccindex.ccindex group by subset").fetchall())

    assert by_subset["warc"] == status["pages"]
    assert by_subset["crawldiagnostics"] == status["redirects"] + status["failed"]


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        (
            # pages, hosts and domains of each top-level domain; an address has none
            'SELECT url_host_tld, COUNT(*) AS pages, COUNT(DISTINCT url_host_name) AS hosts FROM "ccindex"."ccindex" '
            "WHERE crawl = 'CC-MAIN-2018-05' AND subset = 'warc' AND fetch_status = 200 GROUP BY url_host_tld",
            [(None, 6, 2)],
        ),
        (
            # the statuses of what is no page
            'SELECT fetch_status, COUNT(*) AS n FROM "ccindex"."ccindex" WHERE crawl = \'CC-MAIN-2018-05\' '
            "AND subset = 'crawldiagnostics' GROUP BY fetch_status ORDER BY fetch_status",
            [(404, 1), (410, 1)],
        ),
        (
            # media types with the room their records take
            'SELECT content_mime_detected, COUNT(*) AS n, SUM(warc_record_length) > 0 FROM "ccindex"."ccindex" '
            "WHERE crawl = 'CC-MAIN-2018-05' AND subset = 'warc' GROUP BY 1 ORDER BY n DESC",
            [("text/html", 5, True), ("text/plain", 1, True)],
        ),
        (
            # languages, ISO 639-3
            'SELECT content_languages, COUNT(*) AS n FROM "ccindex"."ccindex" WHERE crawl = \'CC-MAIN-2018-05\' '
            "AND subset = 'warc' AND NOT content_languages LIKE '%,%' GROUP BY 1 ORDER BY n DESC, 1",
            [("eng", 3), ("deu", 2)],
        ),
    ],
)
def test_queries_of_common_crawls_users_are_answered(
    index: duckdb.DuckDBPyConnection, query: str, answer: list[tuple[object, ...]]
) -> None:
    assert index.execute(query).fetchall() == answer


def test_record_is_where_the_index_says(index: duckdb.DuckDBPyConnection, small: Path) -> None:
    rows = index.execute(
        "select url, warc_filename, warc_record_offset, warc_record_length, warc_record_id from ccindex.ccindex "
        "where subset = 'warc'"
    ).fetchall()

    for url, name, offset, length, record_id in rows:
        with (small / name).open("rb") as file:
            file.seek(offset)
            record = next(iter(ArchiveIterator(file)))
            assert record.rec_headers["WARC-Target-URI"] == url
            assert record.rec_headers["WARC-Record-ID"] == f"<urn:uuid:{UUID(bytes=record_id)}>"
            record.content_stream().read()
        assert length > 0


def test_texts_links_and_fields_are_those_of_the_pages(exported: Path, small: Path) -> None:
    with Collection(small) as collection:
        pages = {page.url: page for page in collection}
        texts = {row["url"]: row["text"] for row in table(exported, "text")}
        assert texts == {url: page.text for url, page in pages.items()}
        links = Counter(row["url"] for row in table(exported, "links"))
        assert {url: links[url] for url in pages} == {url: len(page.links) for url, page in pages.items()}
    fields = {row["url"]: row for row in table(exported, "fields")}
    assert fields.keys() == pages.keys()
    assert fields[FIRST]["first"] == "Solar heat."
    assert fields[FIRST]["all"][:2] == ["a", "b"]
    assert fields[f"{FIRST}docs/y.txt"]["all"] == []


def test_pandas_and_polars_read_it(exported: Path) -> None:
    frame = pandas.read_parquet(exported / "index")
    other = polars.scan_parquet(exported / "index" / "**" / "*.parquet", hive_partitioning=True).collect()

    assert len(frame) == other.height == 8
    assert set(frame.subset) == set(other["subset"]) == {"warc", "crawldiagnostics"}
    assert set(frame.crawl) == {"CC-MAIN-2018-05"}
    assert str(frame.fetch_time.dtype).startswith("datetime64")
    assert polars.read_parquet(exported / "text" / "**" / "*.parquet").height == 6


def test_export_that_is_interrupted_goes_on_without_a_row_twice(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_format, "LEAST_ROWS", 2)
    monkeypatch.setattr(export_run, "CHECKPOINT_S", 0.0)
    monkeypatch.setattr(export_run, "TOLD_PAGES", 1)
    job = ExportJob("parquet", str(tmp_path / "p"), options={"links": "yes"})
    plain = parquet_format._Part.add
    added = 0

    def dying(part: Any, rows: Any) -> None:
        nonlocal added
        added += 1
        if added == 12:  # in the middle of a page: some of its tables are written
            raise MemoryError
        plain(part, rows)

    monkeypatch.setattr(parquet_format._Part, "add", dying)
    with pytest.raises(MemoryError):
        export_pages(small, job)
    assert not (tmp_path / "p").exists()

    report = export_pages(small, job)

    assert report.resumed > 0
    whole = export_pages(small, ExportJob("parquet", str(tmp_path / "whole"), options={"links": "yes"}))
    assert (report.pages, report.unread) == (whole.pages, whole.unread) == (8, 0)
    for name in ("index", "text", "links"):
        found, expected = (Counter(map(repr, table(tmp_path / at, name))) for at in ("p", "whole"))
        assert found == expected
    assert not list((tmp_path / "p").rglob("*.open"))


def test_export_without_text_or_pages_has_the_columns(small: Path, tmp_path: Path) -> None:
    export_pages(small, ExportJob("parquet", str(tmp_path / "a"), options={"content": "none"}))
    said = lycosa("export", small, "parquet", "--out", tmp_path / "b", "--host", "nowhere.example")

    assert [path.name for path in (tmp_path / "a").iterdir() if path.is_dir()] == ["index"]
    assert said.code == 0
    assert polars.read_parquet(tmp_path / "b" / "index" / "**" / "*.parquet").height == 0


def test_crawl_is_named_after_the_folder_and_a_bad_name_is_refused(small: Path, tmp_path: Path) -> None:
    export_pages(small, ExportJob("parquet", str(tmp_path / "a"), options={"content": "none"}))

    assert [path.name for path in (tmp_path / "a" / "index").iterdir()] == ["crawl=c"]
    with pytest.raises(SettingsError, match=r"--crawl is '\.\./x'"):
        export_pages(small, ExportJob("parquet", str(tmp_path / "b"), options={"crawl": "../x"}))


def test_language_that_a_page_does_not_declare_is_that_of_its_text(tmp_path: Path) -> None:
    words = "The panels on the roofs of these houses make power for the heating of water and rooms in the winter."
    make_collection(tmp_path / "c", {FIRST: f"<title>Solar</title><main><p>{words}</p></main>"})

    for content in ("text", "none"):
        export_pages(tmp_path / "c", ExportJob("parquet", str(tmp_path / content), options={"content": content}))

    assert [row["content_languages"] for row in table(tmp_path / "text", "index")] == ["eng"]
    assert [row["content_languages"] for row in table(tmp_path / "none", "index")] == [None], "no body is read"


def test_offset_beyond_32_bits_is_not_cut_off(small: Path) -> None:
    with Collection(small) as collection:
        page = collection.get(FIRST)

    far = index_row(page, None, RecordPlace("<urn:other:1>", "warc/x.warc.gz", "0", WarcLocation(1, 2**31, 10)), "en")

    assert far[-5:] == (b"urn:other:1", "warc/x.warc.gz", -1, -1, "0")


def test_summary_says_that_redirects_and_errors_are_counted(small: Path, tmp_path: Path) -> None:
    tables = lycosa("export", small, "parquet", "--out", tmp_path / "p")
    lines = lycosa("export", small, "csv", "--out", tmp_path / "c.csv")

    assert "8 answers (redirects and errors, too)" in tables.err
    assert lines.err.startswith("6 pages, ")
