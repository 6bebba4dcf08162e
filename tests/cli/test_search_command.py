"""`lycosa search` and `lycosa index` on a crawl that is over, and beside one that runs."""

import contextlib
import fcntl
import os
import pty
import re
import struct
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from lycosa.records import Family, Request, Response
from lycosa.search.documents import VERSION
from lycosa.search.index import current
from lycosa.store import Batch, CollectionStore, HttpExchange, response_exchange
from lycosa.store.page_rows import PageRow, pack_row
from lycosa.web.url import url_key
from tests.cli.command import Web, ended, lycosa, simulated_web, started


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Web, Path]]:
    folder = tmp_path_factory.mktemp("search")
    with simulated_web(folder, "--hosts", "2", "--pages", "80") as web:
        assert lycosa(*web.crawl(folder / "c", "--scope", "any", "--quiet", "--index")).code == 0
        yield web, folder / "c"


def test_crawl_with_index_leaves_it_complete(crawled: tuple[Web, Path]) -> None:
    facts = lycosa("index", crawled[1], "--json").facts
    assert facts["documents"] > 50
    assert (facts["pages"], facts["renamed"]) == (0, 0), "there was nothing left to do"


def test_search_shows_results_for_people_and_programs(crawled: tuple[Web, Path]) -> None:
    web, into = crawled
    facts = lycosa("search", into, "site:h0.sim", "--json", "-n", "3").facts
    assert len(facts["results"]) == 3 < facts["total"]
    first = facts["results"][0]
    assert {"url", "title", "score", "snippet", "highlights", "date", "copies"} <= set(first)
    word = max(first["title"].split(), key=len)
    said = lycosa("search", into, f"title:{word}", "-n", "1")
    assert said.code == 0
    assert "  1  " in said.out
    assert web.url().removesuffix("/") in said.out
    assert " ms" in said.err
    later = lycosa("search", into, "site:h0.sim", "--json", "-n", "3", "--page", "2").facts
    assert not {each["url"] for each in later["results"]} & {each["url"] for each in facts["results"]}


def test_results_come_as_lines_for_scripts(crawled: tuple[Web, Path]) -> None:
    said = lycosa("search", crawled[1], "site:h0.sim", "--jsonl", "-n", "3", "--facets")

    assert said.code == 0
    lines = [msgspec.json.decode(line) for line in said.out.splitlines()]
    assert len(lines) == 3
    assert all("h0.sim" in line["url"] for line in lines)
    assert "hosts      h0.sim" in said.err


def test_search_that_finds_nothing_suggests_another_query(crawled: tuple[Web, Path]) -> None:
    first = lycosa("search", crawled[1], "site:h0.sim", "--json", "-n", "1").facts["results"][0]
    word = max(first["title"].split(), key=len).lower()
    typed = f"title:{word[:3]}{word[2:]}"

    said = lycosa("search", crawled[1], typed)

    assert "0 pages" in said.err
    assert f"did you mean: title:{word}" in said.err
    assert lycosa("search", crawled[1], typed, "--json").facts["suggestion"] == f"title:{word}"


def test_index_of_another_version_is_made_anew_and_that_is_said(crawled: tuple[Web, Path]) -> None:
    listed = crawled[1] / "index" / "current"
    listed.write_bytes(msgspec.json.encode(msgspec.json.decode(listed.read_bytes()) | {"version": VERSION - 1}))

    refused = lycosa("search", crawled[1], "site:h0.sim", "--no-update")
    made = lycosa("search", crawled[1], "site:h0.sim", "--json")

    assert refused.code == 4
    assert "another version" in refused.err
    assert "made by another version of Lycosa: it is made anew" in made.err
    assert made.facts["total"] > 5
    assert "anew" not in lycosa("search", crawled[1], "site:h0.sim").err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("",), "empty"),
        (("x", "--json", "--jsonl"), "exclude each other"),
        (("a*",), "two letters or more"),
        (("word " * 10_000,), "10,000 words"),
        (("-x",), "only says what not"),
        (("-news",), "only says what not"),
        (("x", "--jsom"), "No such option: --jsom"),
        (("x", "--facet"), "Possible options: --facets"),
        (("x", "--limit", "5"), "No such option: --limit"),
        (("x", "--page"), "requires an argument"),
    ],
)
def test_search_says_what_is_wrong_with_a_query(crawled: tuple[Web, Path], words: tuple[str, ...], says: str) -> None:
    said = lycosa("search", crawled[1], *words)
    assert said.code == 2
    assert says in said.err
    assert "Traceback" not in said.err


def test_page_of_results_that_is_not_there_names_the_last_one(crawled: tuple[Web, Path]) -> None:
    total = lycosa("search", crawled[1], "site:sim", "--json", "--all").facts["total"]
    last = -(-total // 7)
    assert lycosa("search", crawled[1], "site:sim", "--all", "-n7", "--page", str(last)).out
    said = lycosa("search", crawled[1], "site:sim", "--all", "-n7", "--page", "99")
    assert (said.code, said.out) == (0, "")
    assert f"; --page 99 is behind the last one, --page {last}\n" in said.err


def test_snippets_are_as_wide_as_the_terminal(crawled: tuple[Web, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)  # which would count before the terminal
    widest = {}
    for columns in (60, 160):
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        running = started("search", crawled[1], "site:sim", "-n", "20", terminal=theirs)
        os.close(theirs)
        said = b""
        with contextlib.suppress(OSError):  # it has ended
            while chunk := os.read(ours, 65_536):
                said += chunk
        os.close(ours)
        assert running.wait(60) == 0
        lines = re.sub(r"\x1b\[[0-9;]*[a-zA-Z]", "", said.decode()).splitlines()
        widest[columns] = max(len(line) for line in lines if line.startswith("     ") and "://" not in line)
    assert widest[60] <= 60
    assert 100 < widest[160] <= 160


def test_word_with_a_dash_after_the_folder_is_a_part_of_the_query(crawled: tuple[Web, Path]) -> None:
    every = lycosa("search", crawled[1], "site:sim", "--json", "--all").facts
    title = max(every["results"][0]["title"].split(), key=len).lower()
    word = f"n{title}"

    with_title = lycosa("search", crawled[1], "site:sim", title, "--json", "--all").facts["total"]
    without_title = lycosa("search", crawled[1], "site:sim", f"-{title}", "--json", "--all").facts["total"]
    same = lycosa("search", crawled[1], "site:sim", f"-{word}", "-n2", "--json", "--all").facts
    behind = lycosa("search", "--json", "--all", crawled[1], "-n", "2", "--", "site:sim", "--x").facts

    assert with_title + without_title == every["total"]
    assert (same["total"], len(same["results"])) == (every["total"], 2)
    assert behind["total"] >= 0


@pytest.mark.slow
def test_damaged_index_says_how_to_rebuild_it_and_that_works(tmp_path: Path) -> None:
    """In processes of their own: one that had mapped the index could not survive that it shrinks."""
    with simulated_web(tmp_path, "--hosts", "1", "--pages", "20") as web:
        assert lycosa(*web.crawl(tmp_path / "c", "--quiet")).code == 0
    assert ended(started("index", tmp_path / "c")).code == 0
    for file in current(tmp_path / "c").iterdir():
        if file.suffix in (".idx", ".term", ".fast"):
            file.write_bytes(file.read_bytes()[:20])
    said = ended(started("search", tmp_path / "c", "site:h0.sim"))
    assert said.code == 4
    assert f"lycosa index {tmp_path / 'c'} makes it anew" in said.err
    assert "Traceback" not in said.err
    assert ended(started("index", tmp_path / "c")).code == 0
    assert ended(started("search", tmp_path / "c", "site:h0.sim", "--json")).facts["total"] > 5


@pytest.mark.slow
def test_pages_are_found_seconds_after_they_came(tmp_path: Path) -> None:
    with simulated_web(tmp_path, "--hosts", "4", "--pages", "20000") as web:
        words = ["--scope", "any", "--quiet", "--index", "--time", "300"]
        running = started(*web.crawl(tmp_path / "c", *words, delay="0.05"))
        try:
            totals: list[int] = []
            while running.poll() is None and len(totals) < 3:
                time.sleep(2)
                said = lycosa("search", tmp_path / "c", "site:sim", "--json")
                if said.code == 0 and said.facts["total"] > (totals or [0])[-1]:
                    totals.append(said.facts["total"])
            assert len(totals) == 3, "more pages are found each time"
        finally:
            running.terminate()
            ended(running)


def test_get_of_a_redirect_says_where_it_leads(tmp_path: Path) -> None:
    url, request = "https://a.example/old", Request("https://a.example/old", "h", 80, "127.0.0.1")
    with CollectionStore.create(tmp_path / "c") as collection:
        head = b"HTTP/1.1 301 Moved\r\nLocation: new?\xc3\xa4\r\n\r\n"
        made = response_exchange(request, Response(url, 301, head), fetched_s=1.0)
        place = collection.warc.append(made.members)[HttpExchange.RESPONSE].pack()
        batch = Batch()
        batch.put(Family.PAGE, url_key(url), pack_row(PageRow(301, 1.0, place=place, location="https://a.example/new")))
        collection.commit(batch)
    said = lycosa("get", url, "--in", tmp_path / "c")
    assert (said.code, said.out) == (1, "")
    assert "leads to https://a.example/new?%C3%A4" in said.err
    shown = lycosa("get", url, "--in", tmp_path / "c", "--headers")
    assert shown.code == 0
    assert "301" in shown.out
