"""`lycosa sql`: questions over all tables, forms of output, what a query may not do, and errors in one sentence."""

import csv
import json
from pathlib import Path

import pytest

from lycosa.simweb import SimSettings, SimWeb
from lycosa.store import CollectionStore
from tests.cli.command import Said, ended, lycosa, started
from tests.crawl.memory_crawl import crawl, front

WEB = SimWeb(SimSettings(hosts=4, pages=200, seed=3, trouble={"not-found": 0.1}))


@pytest.fixture(scope="module")
def into(tmp_path_factory: pytest.TempPathFactory) -> Path:
    into = tmp_path_factory.mktemp("sql") / "c"
    crawl(WEB, into, front(WEB), pages=80)
    return into


def asked(into: Path, query: str) -> list[dict[str, object]]:
    said = lycosa("sql", into, query, "--json")
    assert said.code == 0, said.err
    return [json.loads(line) for line in said.out.splitlines()]


def test_counts_are_those_of_status(into: Path) -> None:
    status = lycosa("status", into, "--json").facts

    assert asked(into, "select count(*) as n from pages") == [{"n": status["pages"]}]
    assert asked(into, "select state, count(*) as n from urls where state in ('queued', 'failed') group by 1") == [
        {"state": "queued", "n": status["queued"]},
        {"state": "failed", "n": status["failed"]},
    ]


def test_tables_are_joined_and_named_as_often_as_a_query_likes(into: Path) -> None:
    (row,) = asked(
        into,
        "select count(*) as links, count(b.url) as to_pages, count(u.url) as to_known from links l"
        " join pages a on a.url = l.source left join pages b on b.url = l.target left join urls u on u.url = l.target",
    )

    assert row["links"] >= row["to_known"] > row["to_pages"] > 0  # type: ignore[operator]


def test_text_and_headers_of_pages_can_be_asked_for(into: Path) -> None:
    (row,) = asked(into, "select url, text, headers['content-type'] as type, fetched from pages where depth = 0")

    assert row["text"].startswith("Host 0")  # type: ignore[attr-defined]
    assert row["type"] == "text/html; charset=utf-8"
    assert str(row["fetched"]).endswith("Z")


@pytest.mark.parametrize("table", ["pages", "links", "hosts", "changes", "urls"])
def test_star_is_every_column_of_a_table(into: Path, table: str) -> None:
    described = [row["column_name"] for row in asked(into, f"describe {table}")]

    for row in asked(into, f"select * from {table} limit 2"):
        assert list(row) == described


def test_star_of_pages_has_their_content(into: Path) -> None:
    (row,) = asked(into, "select * from pages where depth = 0")

    assert str(row["text"]).startswith("Host 0")


def test_table_for_the_eye_has_columns_and_counts_its_rows(into: Path) -> None:
    said = lycosa("sql", into, "select host, count(*) as pages from pages group by host order by host")

    head, *lines = said.out.splitlines()
    assert head.split() == ["host", "pages"]
    assert [line.split()[0] for line in lines] == ["h0.sim", "h1.sim", "h2.sim", "h3.sim"]
    assert said.err == "4 rows\n"


def test_csv_has_no_formula_and_keeps_numbers(into: Path) -> None:
    said = lycosa("sql", into, "select '=1+1' as a, -1 as b, timestamp '2026-01-02 03:04:05' as c", "--csv")

    assert list(csv.reader(said.out.splitlines())) == [["a", "b", "c"], ["'=1+1", "-1", "2026-01-02 03:04:05"]]


def test_without_a_query_tables_and_columns_are_listed(into: Path) -> None:
    lines = lycosa("sql", into).out.splitlines()

    assert [line.partition(":")[0] for line in lines if line[0] != " "] == [
        "pages",
        "links",
        "hosts",
        "changes",
        "urls",
    ]
    assert any(line.split()[:2] == ["text", "string"] for line in lines)


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("select * from pagess", "there is no table pagess: pages, links, hosts, changes, urls"),
        ("selec 1", 'the query is wrong: syntax error at or near "selec"'),
        ("", "the query is empty: write one such as 'select count(*) from pages'"),
        ("select * from read_csv('/etc/passwd')", "a query reads the tables of the collection alone: no files, no ext"),
        ("copy pages to 'stolen.csv'", "a query reads the tables of the collection alone: no files, no extensions"),
        ("attach 'other.db'", "a query reads the tables of the collection alone: no files, no extensions"),
        ("install httpfs", "a query reads the tables of the collection alone: no files, no extensions"),
        ("set memory_limit = '9GB'", 'the query is wrong: Cannot change configuration option ""memory_limit""'),
        ("select urll from pages", 'Candidate bindings: "url"'),
    ],
)
def test_query_that_cannot_be_answered_gets_one_sentence(into: Path, query: str, sentence: str) -> None:
    said = lycosa("sql", into, query)

    assert (said.code, said.out, len(said.err.splitlines())) == (2, "", 1)
    assert sentence in said.err


def test_variables_of_the_program_are_no_tables(into: Path) -> None:
    assert "there is no table text" in lycosa("sql", into, "select * from text").err


def test_two_forms_of_output_exclude_each_other(into: Path) -> None:
    sentence = "lycosa: --json and --csv exclude each other\n"
    assert lycosa("sql", into, "select 1", "--json", "--csv") == Said(2, "", sentence)


def test_archive_that_is_missing_is_named(into: Path, tmp_path: Path) -> None:
    crawl(WEB, tmp_path / "c", front(WEB), pages=3)
    for file in (tmp_path / "c" / "warc").glob("*.warc.gz"):
        file.unlink()

    assert asked(tmp_path / "c", "select count(*) as n from pages") == [{"n": 3}]
    said = lycosa("sql", tmp_path / "c", "select text from pages")
    assert said.code == 4
    assert said.err.startswith("lycosa: the archive file ")
    assert said.err.count("\n") == 1


def test_empty_collection_has_empty_tables(tmp_path: Path) -> None:
    CollectionStore.create(tmp_path / "c").close()

    for table in ("pages", "links", "hosts", "changes", "urls"):
        assert asked(tmp_path / "c", f"select count(*) as n from {table}") == [{"n": 0}]


@pytest.mark.slow
def test_reader_that_goes_away_ends_it_quietly(into: Path) -> None:
    process = started("sql", into, "select * from range(100000000)", "--csv")
    assert process.stdout is not None
    assert process.stdout.readline() == "range\n"
    process.stdout.close()
    process.stdout = None

    assert ended(process)[::2] in {(0, ""), (0, None)}
