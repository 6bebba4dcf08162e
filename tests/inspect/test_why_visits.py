"""`lycosa why` tells of visits that failed, and since when a page is gone."""

from pathlib import Path
from typing import Any

from lycosa.crawl.progress import Recrawl
from lycosa.inspect import KnownUrlFilter, explain_url, list_urls_after, open_to_read
from lycosa.simweb import SimSettings, SimWeb
from lycosa.simweb.web import Answer
from tests.crawl.memory_crawl import front
from tests.recrawl.recrawl_world import run

WEB = SimWeb(SimSettings(seed=5, hosts=1, pages=12, tables=0.0))


def sentences(into: Path) -> str:
    with open_to_read(into) as collection:
        return "\n".join(explain_url(collection, front(WEB)))


def test_why_tells_of_a_visit_that_failed_until_one_succeeds(tmp_path: Path) -> None:
    def broken(original: Any, host: int, target: str, *rest: float) -> Answer:
        return Answer(500, b"") if target == "/" else original(host, target, *rest)

    into = tmp_path / "c"
    run(WEB, into, front(WEB))
    assert "failed" not in sentences(into)
    run(WEB, into, clock_days=1, recrawl=Recrawl(everything=True), answer=broken)
    told = sentences(into)
    assert "looked at 1 time, 0 with a change" in told
    assert "failed: 500; 1 visit in a row brought nothing, so what is stored is kept" in told
    run(WEB, into, clock_days=2, recrawl=Recrawl(everything=True))
    assert "failed" not in sentences(into)
    for day in (3, 4, 5):
        run(WEB, into, clock_days=day, recrawl=Recrawl(everything=True), answer=broken)
    told = sentences(into)
    assert "gone since 20" in told
    assert ": 500" in told
    assert "failed: status 500" in told, "the status by which it is gone"
    with open_to_read(into) as collection:
        gone = list_urls_after(collection, KnownUrlFilter(states=("failed",)), "", most=9).urls
    assert [known.reason for known in gone if known.url == front(WEB)] == ["status 500"]
