"""The machine is cut off while a crawl runs: its hosts are not given up for that."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lycosa.api.crawl import Crawl
from lycosa.crawl.addresses import LONGEST_S, Outage
from lycosa.crawl.stats import CrawlStats
from lycosa.records import Failure, Request, Resolved, Response
from lycosa.simweb import AuditRules, SimSettings, SimWeb, audit
from lycosa.simweb.memory import MemoryWeb, run_virtual
from tests.crawl.memory_crawl import front

WEB = SimWeb(SimSettings(hosts=6, pages=60, seed=3))
DELAY_S, DEAD_S = 0.2, 60.0


class CutOffWeb(MemoryWeb):
    """A web whose name server, or whose line, is dead for a minute from a moment on. The first host's name is known;
    with `holds_first` its transfers are some that we held and that break meanwhile."""

    def __init__(self, *, names_from_s: float, line_from_s: float, holds_first: bool) -> None:
        super().__init__(WEB)
        self._names_from_s, self._line_from_s, self._holds_first = names_from_s, line_from_s, holds_first
        self.now = asyncio.get_running_loop().time

    async def resolve(self, name: str) -> Resolved:
        if self._is_dead(self._names_from_s) and name != "h0.sim":
            return Resolved(name, failure=Failure.DNS, detail="timeout")
        return await super().resolve(name)

    def start(self, request: Request, done: Callable[[Response], None]) -> None:
        if not self._is_dead(self._line_from_s):
            super().start(request, done)
            return
        is_held = self._holds_first and request.host == "h0.sim"
        failure = Failure.RESET if is_held else Failure.CONNECT
        answer = Response(request.url, failure=failure, was_held=is_held, started_s=self.now(), ended_s=self.now())
        asyncio.get_running_loop().call_soon(done, answer)

    def _is_dead(self, from_s: float) -> bool:
        return from_s <= self.now() < from_s + DEAD_S


def crawl(
    into: Path, names_from_s: float = 1e9, line_from_s: float = 1e9, holds_first: bool = False
) -> tuple[CrawlStats, MemoryWeb]:
    options: dict[str, Any] = {"scope": "any", "allow_private": ["127.0.0.0/8"], "delay_s": DELAY_S}

    async def main() -> tuple[CrawlStats, MemoryWeb]:
        web = CutOffWeb(names_from_s=names_from_s, line_from_s=line_from_s, holds_first=holds_first)
        parts: dict[str, Any] = {"resolver": web, "downloader": web, "now": web.now}
        async with Crawl(front(WEB), into=into, **parts, **options) as running:
            return await running.finish(), web

    return run_virtual(main())


@pytest.mark.parametrize(
    "dead", [{"names_from_s": 0.0}, {"line_from_s": 1.5}, {"line_from_s": 1.5, "holds_first": True}]
)
def test_a_minute_without_names_or_line_costs_no_page(tmp_path: Path, dead: dict[str, Any]) -> None:
    whole, _ = crawl(tmp_path / "whole")

    stats, web = crawl(tmp_path / "c", **dead)

    assert (stats.pages, stats.queued, stats.failed) == (whole.pages, 0, {})
    assert audit(WEB.settings, web.entries, AuditRules(delay_s=DELAY_S)).is_clean


def test_outage_is_several_hosts_in_a_row_and_not_for_ever() -> None:
    outage = Outage()
    outage.record("a", Failure.CONNECT, 0.0)
    outage.record("b", Failure.CONNECT, 1.0)
    outage.record("b", Failure.CONNECT_TIMEOUT, 2.0)
    assert not outage.explains(Failure.CONNECT, 2.0, is_first=False)
    outage.record("c", Failure.CONNECT, 3.0)
    assert outage.explains(Failure.CONNECT, 3.0, is_first=False)
    assert not outage.explains(Failure.DNS, 3.0, is_first=False)
    assert not outage.explains(Failure.RESET, 3.0, is_first=False)
    assert not outage.explains(Failure.CONNECT, LONGEST_S + 1.0, is_first=False)
    assert not outage.explains(Failure.CONNECT, 3.0, is_first=True)
    outage.record("d", None, 4.0)
    assert not outage.explains(Failure.CONNECT, 4.0, is_first=False)


def test_outage_of_names_ends_with_any_answer_of_the_name_server() -> None:
    outage = Outage()
    for host in "abc":
        outage.record(host, Failure.DNS, 0.0)
    outage.record("d", None, 1.0)  # its address was known
    assert outage.explains(Failure.DNS, 1.0, is_first=False)
    outage.record_name_answer()
    assert not outage.explains(Failure.DNS, 1.0, is_first=False)
