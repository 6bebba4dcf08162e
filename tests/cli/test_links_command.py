"""`lycosa links` and `lycosa rank` on a crawl that is over, and beside one that runs."""

import calendar
import csv
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lycosa.inspect import explain_url, open_to_read
from tests.cli.command import Web, ended, lycosa, simulated_web, started


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Web, Path]]:
    folder = tmp_path_factory.mktemp("links")
    with simulated_web(folder, "--hosts", "3", "--pages", "200") as web:
        assert lycosa(*web.crawl(folder / "c", "--scope", "any", "--quiet")).code == 0
        yield web, folder / "c"


def test_links_shows_who_points_here_with_what_words(crawled: tuple[Web, Path]) -> None:
    web, into = crawled
    facts = lycosa("links", web.url(), "--in", into, "--json", "-n", "5").facts
    assert facts["url"] == web.url()
    assert facts["pages_in"] >= len(facts["links_in"]) == 5
    assert facts["pages_out"] >= len(facts["links_out"]) == 5
    assert {"url", "kind", "anchor"} == set(facts["links_in"][0])
    assert any(link["anchor"] for link in facts["links_in"])
    back = lycosa("links", facts["links_in"][0]["url"], "--in", into, "--json", "-n", "1000").facts
    assert facts["links_in"][0]["anchor"] in [link["anchor"] for link in back["links_out"] if link["url"] == web.url()]


def test_links_for_people_says_how_many_more(crawled: tuple[Web, Path]) -> None:
    web, into = crawled
    said = lycosa("links", web.url(), "--in", into, "-n", "2")
    assert said.code == 0
    assert "pages link here" in said.out
    assert "more; -n shows them" in said.out


@pytest.mark.parametrize("json", [(), ("--json",)])
def test_links_of_an_unknown_url_are_a_sentence(crawled: tuple[Web, Path], json: tuple[str, ...]) -> None:
    said = lycosa("links", "https://nobody.example/x", "--in", crawled[1], *json)
    assert (said.code, said.out) == (2, "")
    assert said.err == (
        f"lycosa: {crawled[1]} does not know https://nobody.example/x, and no page of it links there: "
        f"lycosa why https://nobody.example/x --in {crawled[1]} says more\n"
    )


@pytest.mark.parametrize("words", [("links", "ftp://x/"), ("links", "http://"), ("get", "mailto:x@y")])
def test_what_is_no_url_is_refused_in_the_words_of_why(crawled: tuple[Web, Path], words: tuple[str, str]) -> None:
    said = lycosa(*words, "--in", crawled[1])
    assert said.code == 2
    assert said.err == f"lycosa: {words[1]!r} is not an http or https URL, so it is never asked for\n"
    with open_to_read(crawled[1]) as collection:
        assert [said.err.removeprefix("lycosa: ").strip()] == explain_url(collection, words[1])


def test_url_without_a_scheme_is_the_one_that_is_known(crawled: tuple[Web, Path]) -> None:
    web, into = crawled
    bare = web.url().removeprefix("http://")
    assert lycosa("why", bare, "--in", into).out == lycosa("why", web.url(), "--in", into).out
    assert lycosa("why", bare.rstrip("/"), "--in", into).out.startswith(f"{web.url()}\n  done")
    assert lycosa("links", bare, "--in", into, "--json").facts["url"] == web.url()
    assert lycosa("get", bare, "--in", into).out == lycosa("get", web.url(), "--in", into).out != ""
    assert lycosa("why", "nobody.example/x", "--in", into).out.startswith("https://nobody.example/x\n")


def test_why_of_a_url_that_was_handed_over_says_that_it_waits(crawled: tuple[Web, Path]) -> None:
    into, url = crawled[1], "https://later.example/%c3%a9?a=1"
    assert "waits" not in lycosa("why", url, "--in", into).out
    assert lycosa("add", into, "https://other.example/", url).code == 0
    assert "handed over by you: it waits for the next run" in lycosa("why", url, "--in", into).out
    assert "waits" not in lycosa("why", "https://later.example/", "--in", into).out


def test_why_of_robots_txt_says_what_its_host_knows(crawled: tuple[Web, Path]) -> None:
    web, into = crawled
    said = lycosa("why", f"{web.url()}robots.txt", "--in", into).out
    assert re.search(r"  read 20\d\d-\d\d-\d\d .*: (no|\d+) rules?.*; it is asked for again", said)
    assert "not known" not in said
    read = calendar.timegm(time.strptime(said.split("read ")[1][:19], "%Y-%m-%d %H:%M:%S"))
    assert 0 <= time.time() - read < 300


@pytest.mark.parametrize("command", ["why", "links", "get"])
def test_empty_url_is_refused(crawled: tuple[Web, Path], command: str) -> None:
    said = lycosa(command, " ", "--in", crawled[1])
    assert (said.code, said.out) == (2, "")
    assert "no URL was given" in said.err


def test_rank_lists_exports_and_draws(crawled: tuple[Web, Path], tmp_path: Path) -> None:
    _, into = crawled
    table, lines, plot = tmp_path / "r.csv", tmp_path / "r.jsonl", tmp_path / "r.svg"
    facts = lycosa("rank", into, "--json", "-n", "3", "--export", table, "--plot", plot).facts
    assert [row["place"] for row in facts["top"]] == [1, 2, 3]
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == facts["pages"]
    assert sum(float(row["rank"]) for row in rows) == pytest.approx(1.0)
    assert rows[0]["url"] == facts["top"][0]["url"]
    assert plot.read_text().startswith("<?xml")
    assert lycosa("rank", into, "--export", lines).code == 0
    assert [json.loads(line)["url"] for line in lines.read_text().splitlines()] == [row["url"] for row in rows]


def test_rank_of_hosts_shows_every_host(crawled: tuple[Web, Path]) -> None:
    web, into = crawled
    facts = lycosa("rank", into, "--hosts", "--json").facts
    assert {row["url"] for row in facts["top"]} == {f"http://h{n}.sim:{web.port}" for n in range(facts["hosts"])}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--export", "x.txt"), "FILE.csv or FILE.jsonl"),
        (("--plot", "x.png"), "FILE.svg"),
        (("--export", "/nowhere/x.csv"), "no folder"),
    ],
)
def test_rank_says_what_cannot_be_written(crawled: tuple[Web, Path], words: tuple[str, str], says: str) -> None:
    said = lycosa("rank", crawled[1], *words)
    assert said.code == 2
    assert says in said.err


@pytest.mark.slow
def test_links_and_rank_work_beside_a_running_crawl(tmp_path: Path) -> None:
    with simulated_web(tmp_path, "--hosts", "4", "--pages", "4000") as web:
        running = started(*web.crawl(tmp_path / "c", "--scope", "any", "--quiet", "--time", "20", delay="0.01"))
        try:
            counts = []
            while running.poll() is None and len(counts) < 4:
                said = lycosa("links", web.url(), "--in", tmp_path / "c", "--json")
                if said.code == 0:
                    counts.append(said.facts["pages_in"])
                    assert lycosa("rank", tmp_path / "c", "--json").code == 0
            assert counts == sorted(counts)
            assert counts[-1] > 0
        finally:
            running.terminate()
            ended(running)


def test_private_address_cannot_be_added_and_it_is_said_what_to_do(crawled: tuple[Web, Path]) -> None:
    _, into = crawled
    said = lycosa("add", into, "http://192.168.7.7:8080/x")
    assert said.code == 2
    assert said.err == (
        "lycosa: http://192.168.7.7:8080/x is a special address, private use (192.168.0.0/16), which this crawl may not"
        f" ask: give it as a seed, lycosa crawl http://192.168.7.7:8080/x --into {into}, or open its network with"
        " --allow-private\n"
    )
    assert "192.168.7.7" not in "".join(path.read_text() for path in (into / "inbox").glob("*"))
