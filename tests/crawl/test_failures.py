"""A URL that fails waits by itself, behind the others of its host: what that costs the host, and what is told of it."""

import shutil
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lycosa.inspect import explain_url, host_retries, hosts, open_to_read
from lycosa.inspect.status import due_words
from lycosa.records import Failure, Family, Response
from lycosa.simweb import SimSettings, SimWeb
from lycosa.simweb.log import AuditRules, LoggedRequest, audit
from lycosa.simweb.memory import MemoryWeb
from lycosa.simweb.web import Answer
from lycosa.store import unpack_page
from tests.crawl.memory_crawl import Result, front
from tests.recrawl.recrawl_world import run

WEB = SimWeb(SimSettings(hosts=1, pages=300, seed=5, rtt_ms=20, robots={"sitemap": 0.0}, near_duplicates=0, mirrors=0))
TIME_OUT_S = 30.0  # of the in-memory web's client, for the first byte
DELAY_S = 1.0
OPTIONS = {"delay_s": DELAY_S, "mine": "off", "store_interval_s": 5.0}


class Trouble:
    """Stands in for what the web says: requests that `is_hit` says yes to have this trouble. Counts them by path."""

    def __init__(self, name: str, is_hit: Callable[[str], bool]) -> None:
        self._name, self._is_hit = name, is_hit
        self.hits: Counter[str] = Counter()

    def __call__(self, original: Callable[..., Answer], host: int, target: str, *rest: Any) -> Answer:
        if target == "/robots.txt" or not self._is_hit(target):
            return original(host, target, *rest)
        self.hits[target] += 1
        return Answer(200, b"x" * 1_000, trouble=self._name)


def crawl(into: Path, *, answer: Trouble | None = None, **options: Any) -> Result:
    options = OPTIONS | options
    result = run(WEB, into, front(WEB), answer=answer, **options)
    findings = audit(WEB.settings, result.entries, AuditRules(delay_s=DELAY_S))
    assert findings.is_clean, findings.broken()
    return result


def answers(result: Result, trouble: Trouble | None = None) -> list[LoggedRequest]:
    """The requests that were answered: of every path those after the ones that were hit."""
    left = trouble.hits.copy() if trouble else Counter[str]()
    good = []
    for entry in sorted(result.entries, key=lambda entry: entry.start):
        left[entry.path] -= 1
        if entry.status and left[entry.path] < 0:
            good.append(entry)
    return good


def rate(pages: list[LoggedRequest]) -> float:
    return len(pages) / pages[-1].end


def once(every: int) -> Callable[[str], bool]:
    """Every so many-th URL, the first time it is asked for."""
    seen: set[str] = set()

    def is_hit(path: str) -> bool:
        is_new = path not in seen
        seen.add(path)
        return is_new and len(seen) % every == 0

    return is_hit


def for_good(every: int) -> Callable[[str], bool]:
    """Every so many-th URL of the web, by its name, whenever it is asked for."""
    return lambda path: path != "/" and sum(path.encode()) % every == 0


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> list[LoggedRequest]:
    """The answers of a host that has no trouble."""
    return answers(crawl(tmp_path_factory.mktemp("clean") / "c"))


@pytest.mark.parametrize("is_hit", [once(20), for_good(20)], ids=["once", "for-good"])
def test_host_with_five_percent_resets_keeps_nine_tenths_of_its_rate(
    tmp_path: Path, clean: list[LoggedRequest], is_hit: Any
) -> None:
    trouble = Trouble("reset", is_hit)

    found = answers(crawl(tmp_path / "c", answer=trouble), trouble)

    assert len(trouble.hits) >= 0.049 * len(clean)
    assert rate(found) >= 0.9 * rate(clean)


def test_hanging_urls_cost_their_host_one_time_out_each_between_two_pages(
    tmp_path: Path, clean: list[LoggedRequest]
) -> None:
    trouble = Trouble("hang", for_good(40))

    found = answers(crawl(tmp_path / "c", answer=trouble), trouble)

    assert len(trouble.hits) > 5
    assert set(trouble.hits.values()) == {3}
    assert len(found) > 0.9 * len(clean)
    assert max(b.start - a.end for a, b in pairwise(found)) < TIME_OUT_S + 2 * DELAY_S + 0.5


def test_host_waits_when_three_different_urls_in_a_row_fail(tmp_path: Path, clean: list[LoggedRequest]) -> None:
    """And not before; a wait ends with the first answer."""
    broken = {entry.path for entry in clean[10:14]}
    trouble = Trouble("reset", lambda path: path in broken)

    result = crawl(tmp_path / "c", answer=trouble, pages=30)

    gaps = [b.start - a.end for a, b in pairwise(sorted(result.entries, key=lambda entry: entry.start))]
    long = [(at, round(gap)) for at, gap in enumerate(gaps) if gap > DELAY_S + 0.1]
    assert [at for at, _ in long] == [12, 13], long
    assert long[0][1] in (5, 6)
    assert long[1][1] in (20, 21, 22)


def test_host_does_not_wait_for_urls_that_broke_while_they_were_held(
    tmp_path: Path, clean: list[LoggedRequest], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = {entry.path for entry in clean[10:16]}
    trouble, told = Trouble("reset", lambda path: path in broken), MemoryWeb._response

    def response(*arguments: Any) -> Response:
        found = told(*arguments)
        return msgspec.structs.replace(found, was_held=found.failure is Failure.RESET)

    monkeypatch.setattr(MemoryWeb, "_response", response)
    result = crawl(tmp_path / "c", answer=trouble, pages=30)

    assert set(trouble.hits) == broken
    gaps = [b.start - a.end for a, b in pairwise(sorted(result.entries, key=lambda entry: entry.start))]
    assert max(gaps) <= DELAY_S + 0.1
    with open_to_read(tmp_path / "c") as collection:
        [row] = hosts(collection, now_unix=0.0)
        entries = list(host_retries(collection, row.host))
    assert row.retries == len(broken)  # in their turn, as after any failure
    assert {due_words(entry, 0.0).partition(",")[0] for entry in entries} == {"try 2 of 10 after reset while held"}


def test_url_that_broke_five_times_while_it_was_held_is_fetched_in_the_end(
    tmp_path: Path, clean: list[LoggedRequest], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken, told = clean[10].path, MemoryWeb._response
    trouble = Trouble("reset", lambda path: path == broken and trouble.hits[path] < 5)

    def response(*arguments: Any) -> Response:
        found = told(*arguments)
        return msgspec.structs.replace(found, was_held=found.failure is Failure.RESET)

    monkeypatch.setattr(MemoryWeb, "_response", response)
    result = crawl(tmp_path / "c", answer=trouble)

    assert trouble.hits == {broken: 5}
    assert [entry.status for entry in result.entries if entry.path == broken][-1] == 200
    assert result.stats.failed == {}


@pytest.mark.parametrize(("held", "status", "tries"), [(6, 503, 6), (3, 500, 3), (0, 500, 3)])
def test_url_that_broke_while_it_was_held_has_all_tries_for_what_its_server_answers(
    tmp_path: Path, clean: list[LoggedRequest], monkeypatch: pytest.MonkeyPatch, held: int, status: int, tries: int
) -> None:
    broken, told, asked = clean[10].path, MemoryWeb._response, 0

    def answer(original: Any, host: str, target: str, *rest: Any) -> Any:
        nonlocal asked
        if target != broken:
            return original(host, target, *rest)
        asked += 1
        return Answer(200, b"x" * 1000, trouble="reset") if asked <= held else Answer(status, b"busy")

    def response(*arguments: Any) -> Response:
        found = told(*arguments)
        return msgspec.structs.replace(found, was_held=found.failure is Failure.RESET)

    monkeypatch.setattr(MemoryWeb, "_response", response)
    result = crawl(tmp_path / "c", answer=answer)

    assert asked == held + tries
    assert result.stats.failed == {str(status): 1}
    with open_to_read(tmp_path / "c") as collection:
        rows = [unpack_page(row) for _, row in collection.state.walk(Family.PAGE)]
    assert [row.tries for row in rows if row.failure] == [held + tries]


def test_url_that_is_left_alone_is_told_of_and_keeps_its_tries_through_a_kill(tmp_path: Path) -> None:
    """A copy of the collection right after a commit is what a kill leaves behind."""
    trouble, told = Trouble("hang", lambda path: path == "/"), []

    def look(running: Any) -> None:
        stats = running.stats()
        told.append(stats.standing)
        if stats.retrying and not (tmp_path / "killed").exists():
            shutil.copytree(tmp_path / "c", tmp_path / "killed", ignore=shutil.ignore_patterns("LOCK"))
            [retry] = stats.retries
            assert (retry.url, retry.tries, retry.failed) == (front(WEB), 1, "first-byte-timeout")

    crawl(tmp_path / "c", answer=trouble, act=look)
    assert trouble.hits["/"] == 3
    assert any(line.startswith(f"{front(WEB)}: try 2 of 3 after first byte timeout in ") for line in told), told

    with open_to_read(tmp_path / "killed") as collection:
        [row] = hosts(collection, now_unix=0.0)
        lines = explain_url(collection, front(WEB))
    assert row.retries == 1
    assert row.next_retry.startswith("try 2 of 3 after first byte timeout, at 20")
    assert row.next_retry.endswith(": /")
    assert any(line.startswith("try 2 of 3 after first byte timeout, ") for line in lines), lines

    after = run(WEB, tmp_path / "killed", answer=trouble, **OPTIONS)
    assert trouble.hits["/"] == 3 + 2
    assert after.stats.failed["first-byte-timeout"] == 1
