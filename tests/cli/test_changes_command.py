"""`lycosa recrawl`, `changes` and `freshness` on a collection that was looked at again."""

import json
import re
import shutil
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lycosa.cli.commands import app
from lycosa.cli.search import IndexingProgress
from lycosa.crawl.progress import Recrawl
from lycosa.simweb import SimSettings, SimWeb
from tests.cli.command import lycosa
from tests.crawl.memory_crawl import front
from tests.crawl.small_site import FIRST, crawl_site
from tests.recrawl.recrawl_world import BEGIN_S, DAY_S, run


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    into = tmp_path_factory.mktemp("changes") / "crawl"
    web = SimWeb(SimSettings(seed=1, hosts=2, pages=80))
    run(web, into, front(web))
    run(web, into, days=20, recrawl=Recrawl(everything=True))
    run(web, into, days=40, recrawl=Recrawl(everything=True))
    return into


def say(*words: str | Path) -> str:
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    return result.stdout


def listed(*words: str | Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in say("changes", *words, "--json", "-n", "1000").splitlines()]


def test_changes_lists_the_newest_first_with_kind_and_place(crawled: Path) -> None:
    found = listed(crawled)
    times = [change["at_s"] for change in found]
    assert times == sorted(times, reverse=True)
    assert {"text", "structure", "gone"} <= {change["kind"] for change in found}
    assert "html > body > main" in say("changes", crawled, "--kind", "structure")


def test_changes_are_filtered_by_time_host_kind_and_word(crawled: Path) -> None:
    every = listed(crawled)
    recent = listed(crawled, "--since", "2026-01-26")
    assert recent == [change for change in every if change["at_s"] >= BEGIN_S + 25 * DAY_S]
    assert 0 < len(recent) < len(every)
    assert listed(crawled, "--until", "2026-01-25") == [change for change in every if change not in recent]
    assert listed(crawled, "--since", "2026", "--until", "2026") == every
    assert listed(crawled, "--since", "2027") == []
    assert {change["kind"] for change in listed(crawled, "--kind", "gone", "--kind", "back")} <= {"gone", "back"}
    assert {change["word"] for change in listed(crawled, "--kind", "removed")} == {"removed"}
    assert {change["kind"] for change in every}.isdisjoint({"volatile", "none"})
    assert {change["kind"] for change in listed(crawled, "--kind", "new")} <= {"back", "new"}
    here = listed(crawled, "--host", "h1.sim")
    assert here == [change for change in every if str(change["url"]).startswith("http://h1.sim:8800/")]
    assert here == listed(crawled, "--host", "h1.sim:8800")


def test_time_that_is_shown_can_be_asked_for_wherever_one_is(crawled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        every = listed(crawled)
        shown = [line[:20] for line in say("changes", crawled, "-n", "1000").splitlines()]
        part = next(number for number, change in enumerate(every) if float(str(change["at_s"])) % 1)
        assert shown[part].endswith("Z")
        for written in (shown[part], shown[part].removesuffix("Z")):
            assert every[part] in listed(crawled, "--until", written)  # a second counts to its end
            assert every[part] in listed(crawled, "--since", written)
        before = shown[part][:11] + "00:00:00"
        assert every[part] not in listed(crawled, "--until", before)
    finally:
        monkeypatch.undo()
        time.tzset()


def test_changes_of_a_page_show_its_versions_and_their_difference(crawled: Path) -> None:
    url = next(str(change["url"]) for change in listed(crawled, "--kind", "text") if not change["also"])
    shown = say("changes", crawled, url)
    assert "  1  2026-01-0" in shown
    assert "new " in shown
    assert "\n  ~ " in shown or "\n  + " in shown
    found = json.loads(say("changes", crawled, url, "--json"))
    assert [version["archived"] for version in found["versions"]] == [True] * len(found["versions"])
    assert found["diff"]["lines"]
    first = json.loads(say("changes", crawled, url, "--old", "1", "--new", "1", "--json"))
    assert first["diff"]["lines"] == []


def test_changes_of_a_page_that_is_gone_still_show_what_it_said(crawled: Path) -> None:
    url = str(listed(crawled, "--kind", "gone")[0]["url"])
    assert "nothing stored" in say("changes", crawled, url)


def test_counts_of_status_add_up_to_those_of_the_tree(crawled: Path) -> None:
    status = say("status", crawled).partition("links not followed")[0]
    kinds = r"pages? kept|redirects?\b|sitemaps?\b|failed|skipped|still queued"
    parts = re.findall(rf"^ *([\d,]+) (?:{kinds})|, (\d+) sitemap", status, re.M)
    known = int(say("tree", crawled).splitlines()[1].split()[0].replace(",", ""))
    assert sum(int((first or second).replace(",", "")) for first, second in parts) == known


def test_progress_of_the_index_says_what_it_counts(capsys: pytest.CaptureFixture[str]) -> None:
    view = IndexingProgress()
    view._next_s = 0.0
    view(200, 860)
    assert capsys.readouterr().err.startswith("indexing: 200 of 860 URLs, ")


def test_freshness_adds_up_to_the_collection(crawled: Path) -> None:
    rows = [json.loads(line) for line in say("freshness", crawled, "--json").splitlines()]
    assert {row["host"] for row in rows} == {"http://h0.sim:8800", "http://h1.sim:8800"}
    status = json.loads(say("status", crawled, "--json"))
    assert status["redirects"] > 0
    assert status["sitemaps"] > 0
    assert sum(row["pages"] for row in rows) == status["pages"]
    assert sum(row["gone"] for row in rows) == status["failed"] > 0
    assert sum(row["visits"] for row in rows) == status["visits"]
    assert sum(row["changes"] for row in rows) == status["visits_changed"]
    assert sum(row["saved_bytes"] for row in rows) == status["visits_saved_bytes"]
    assert "fresh %" in say("freshness", crawled)


def test_freshness_before_the_first_recrawl_says_what_plans_visits(tmp_path: Path) -> None:
    crawl_site(tmp_path / "c", {FIRST: "Words."}.get)
    said = lycosa("freshness", tmp_path / "c")
    assert said.code == 0 and f"lycosa recrawl {tmp_path / 'c'} plans them" in said.err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["changes", "--kind", "new-ish"], "--kind is 'new-ish'"),
        (["changes", "--since", "soon"], "--since is 'soon'"),
        (["changes", "--since", " "], "--since is empty"),
        (["changes", "http://elsewhere.example/"], "was never fetched into this collection"),
        (["changes", "--host", "a/b"], "is not the name of a host"),
    ],
)
def test_changes_asked_wrongly_say_what_is_wrong(crawled: Path, words: list[str], sentence: str) -> None:
    result = CliRunner().invoke(app, [words[0], str(crawled), *words[1:]])
    assert sentence in str(result.exception)


def test_recrawl_of_what_is_no_collection_says_so(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["recrawl", str(tmp_path / "none")])
    assert "there is no collection" in str(result.exception)


def test_host_that_is_not_known_is_told_from_one_without_a_change(crawled: Path) -> None:
    unknown = CliRunner().invoke(app, ["changes", str(crawled), "--host", "nope"])
    assert unknown.exit_code != 0
    assert "knows no host nope" in str(unknown.exception)
    quiet = CliRunner().invoke(app, ["changes", str(crawled), "--host", "h1.sim", "--since", "1h"])
    assert quiet.exit_code == 0
    assert "no change of these is known" in quiet.output


def test_changes_of_shards_are_read_as_one_and_advice_names_a_command_that_works(crawled: Path, tmp_path: Path) -> None:
    shutil.copytree(crawled, tmp_path / "shards" / "s0")
    (tmp_path / "cluster.json").write_text("{}")
    assert listed(tmp_path) == listed(crawled)
    url = str(listed(crawled)[0]["url"])
    assert say("changes", tmp_path, url) == say("changes", crawled, url)
    none = CliRunner().invoke(app, ["changes", str(tmp_path), "--since", "2030"])
    assert none.stderr == f"no change of these is known; `lycosa recrawl {tmp_path}` revisits pages\n"
    assert f"`lycosa recrawl {crawled}`" in CliRunner().invoke(app, ["changes", str(crawled), "--since", "2030"]).stderr
