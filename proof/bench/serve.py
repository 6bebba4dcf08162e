"""What the live page costs a crawl, and how long a large collection takes to open in it.

One crawl of the simulated web is watched by turns by nobody, by one viewer and by twenty: none, one, twenty, twenty,
one, none, and so on, for some seconds each. A viewer opens the page and reads its events, as a browser does. What the
web has answered meanwhile, by its own count, is compared within each such round, in which the crawl is much the same;
the median of the rounds counts. The server runs all the time, and what it takes of the processors is measured beside
it. The large collection has ten million URLs, nine of ten fetched, and 100,000 hosts.
"""

import contextlib
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator
from http.client import HTTPException
from pathlib import Path
from statistics import median
from typing import NamedTuple
from urllib.parse import urlsplit

from lycosa.crawl import Totals, counts_row
from lycosa.frontier import UrlRow, UrlState
from lycosa.records import Family
from lycosa.store import Batch, CollectionStore, PageRow, pack_row
from lycosa.web import split_url, url_key
from proof import Bar, Experiment, Run
from proof.bench.frontier import FrontierFeed, url_of
from proof.ground.commands import cpu_s, lycosa, scratch
from proof.ground.servers import ServedWeb, live_page, simulated_web

ROUND = (0, 1, 20, 20, 1, 0)  # viewers: what changes steadily in a round is the same for all
WINDOW_S, SETTLE_S = 6.0, 1.0
ROUNDS, QUICK_ROUNDS = 6, 1
WARM_UP_PAGES, ENOUGH_PAGES = 2_000, 1_000_000
URLS, QUICK_URLS = 10_000_000, 200_000
HOSTS = 100_000
A_PART, A_COMMIT = 10_000, 1_000
HOST = "https://www.site1.example"  # the largest: it has a thirteenth of all URLs
VIEWS = {
    "overview": "/",
    "overview, again": "/",
    "hosts": "/hosts",
    "hosts, by name": "/hosts?q=9&sort=host",
    "hosts, sorted again": "/hosts?sort=queued",
    "a host": f"/host?host={HOST}",
    "URLs": "/urls",
    "URLs of a host": f"/urls?below={HOST}/",
    "URLs that are queued": "/urls?state=queued",
    "a URL": f"/url?url={HOST}/",
    "changes": "/changes",
    "settings": "/settings",
    "log": "/log",
    "graph": "/graph",
    "metrics": "/metrics",
}


class Ask(NamedTuple):
    """Asks the live page with its token."""

    link: str

    def open(self, path: str, *, timeout_s: float = 120.0) -> "urllib.request._UrlopenRet":
        parts = urlsplit(self.link)
        headers = {"Authorization": f"Bearer {parts.query.removeprefix('token=')}"}
        asked = urllib.request.Request(f"{parts.scheme}://{parts.netloc}{path}", headers=headers)
        return urllib.request.urlopen(asked, timeout=timeout_s)

    def seconds(self, path: str) -> float:
        began = time.perf_counter()
        with self.open(path) as answer:
            answer.read()
        return time.perf_counter() - began


def view(ask: Ask, ended: threading.Event) -> None:
    """One viewer, until the end."""
    with contextlib.suppress(OSError, HTTPException):  # the server has ended
        ask.seconds("/")
        with ask.open("/api/v1/events") as events:
            while not ended.is_set() and events.readline():
                pass


@contextlib.contextmanager
def watched(ask: Ask, viewers: int) -> Iterator[None]:
    """The live page with so many viewers, from the moment they have opened it."""
    ended = threading.Event()
    threads = [threading.Thread(target=view, args=(ask, ended), daemon=True) for _ in range(viewers)]
    for thread in threads:
        thread.start()
    try:
        time.sleep(SETTLE_S)
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join()


class WatchedWindow(NamedTuple):
    """Some seconds of a crawl: answers a second, and the cores that the crawl and the live page kept busy."""

    viewers: int
    answers_per_s: float
    crawl_cores: float
    server_cores: float


def window(web: ServedWeb, ask: Ask, crawl: int, server: int, viewers: int) -> WatchedWindow:
    with watched(ask, viewers):
        began, answers, crawl_s, server_s = time.monotonic(), web.served(), cpu_s(crawl), cpu_s(server)
        time.sleep(WINDOW_S)
        answers, took_s = web.served() - answers, time.monotonic() - began
        return WatchedWindow(
            viewers, answers / took_s, (cpu_s(crawl) - crawl_s) / took_s, (cpu_s(server) - server_s) / took_s
        )


def watch_crawl(run: Run, web: ServedWeb, into: Path, rounds: int) -> list[list[WatchedWindow]]:
    """The windows of each round."""
    words = ["--into", str(into), "--scope", "any", "--delay", "0", "--per-ip", "64", "--quiet", *web.options()]
    crawl = subprocess.Popen(lycosa("crawl", web.front_page(), *words), stderr=subprocess.DEVNULL)
    try:
        while web.served() < WARM_UP_PAGES:
            time.sleep(0.1)
        with live_page(into) as page, run.progress(rounds * len(ROUND), "windows") as step:
            ask, found = Ask(page.link), list[list[WatchedWindow]]()
            for _ in range(rounds):
                found.append([])
                for viewers in ROUND:
                    found[-1].append(window(web, ask, crawl.pid, page.pid, viewers))
                    step.advance()
        return found
    finally:
        crawl.terminate()
        crawl.wait(timeout=60)


def measure_viewers(run: Run) -> None:
    rounds = QUICK_ROUNDS if run.quick else ROUNDS
    run.setting("rounds", rounds)
    run.setting("seconds of a window", WINDOW_S)
    with (
        scratch() as folder,
        simulated_web(folder / "web.jsonl", "--hosts", "200", "--pages", str(ENOUGH_PAGES)) as web,
    ):
        found = watch_crawl(run, web, folder / "c", rounds)
    columns = ["round", "viewers", "answers/s", "cores of the crawl", "cores of the server"]
    rows = [
        (number, each.viewers, round(each.answers_per_s), round(each.crawl_cores, 2), round(each.server_cores, 4))
        for number, windows in enumerate(found, 1)
        for each in windows
    ]
    run.table(columns, rows)
    for viewers in sorted(set(ROUND)):
        name = f"{viewers} viewer{'' if viewers == 1 else 's'}"
        everyone = [each for windows in found for each in windows if each.viewers == viewers]
        run.figure(f"cores of the server with {name}", median(each.server_cores for each in everyone), "cores")
        if viewers:
            kept = median(rate_with(windows, viewers) / rate_with(windows, 0) for windows in found)
            run.figure(f"answers a second with {name} beside none", kept, "×")


def rate_with(windows: list[WatchedWindow], viewers: int) -> float:
    rates = [each.answers_per_s for each in windows if each.viewers == viewers]
    return sum(rates) / len(rates)


def make_large(run: Run, path: Path, urls: int) -> None:
    """One URL of ten is queued by a frontier; the others are fetched pages, whose rows are written as they are."""
    with CollectionStore.create(path) as collection, run.progress(urls + HOSTS, "URLs") as step:
        collection.save_settings("")
        feed, queued = FrontierFeed(collection), urls // 10
        for start in range(0, queued, A_PART):
            feed.admit(start, start + A_PART)
            step.advance(A_PART)
        for start in range(0, HOSTS, A_COMMIT):
            feed.frontier.admit(
                [split_url(f"https://h{n}.example/") for n in range(start, start + A_COMMIT)], depth=1, now=feed.now
            )
            feed.commit()
            step.advance(A_COMMIT)
        for start in range(queued, urls, A_PART):
            collection.commit(fetched_pages(start, start + A_PART))
            step.advance(A_PART)
        batch = Batch()
        totals = Totals(pages=urls - queued, known=urls + HOSTS, queued=queued + HOSTS, hosts=HOSTS)
        batch.put(*counts_row(totals))
        collection.commit(batch)
        collection.state.compact()


def fetched_pages(first: int, last: int) -> Batch:
    """The rows of pages that were fetched, a thousand in a second."""
    batch, url_row = Batch(), UrlRow(UrlState.DONE, depth=3).pack()
    for number in range(first, last):
        key = url_key(url_of(number).href)
        row = PageRow(status=200, fetched_s=1.8e9 + number / 1_000, essence="text/html", size_bytes=9_000, took_ms=80)
        batch.put(Family.URL, key, url_row)
        batch.put(Family.PAGE, key, pack_row(row))
    return batch


def measure_large(run: Run) -> None:
    urls = QUICK_URLS if run.quick else URLS
    run.setting("URLs of the large collection", urls)
    run.setting("hosts of the large collection", HOSTS)
    with scratch() as folder:
        make_large(run, folder / "c", urls)
        began = time.perf_counter()
        with live_page(folder / "c") as page:
            ask = Ask(page.link)
            started_s = time.perf_counter() - began
            rows = [(name, round(ask.seconds(path), 3)) for name, path in VIEWS.items()]
    run.figure("the server starts", started_s, "s")
    run.figure("the large collection opens", rows[0][1], "s")
    run.table(["page", "seconds"], rows)
    run.figure("the slowest page", max(seconds for _, seconds in rows[1:]), "s")


def measure(run: Run) -> None:
    if "viewers" in run.chosen:
        measure_viewers(run)
    if "large" in run.chosen:
        measure_large(run)


EXPERIMENT = Experiment(
    name="serve",
    summary="the live page: what viewers cost a crawl, and how a large collection opens",
    run=measure,
    choices=("viewers", "large"),
    bars=(
        Bar("one viewer is not felt", "answers a second with 1 viewer beside none", ">=", 0.97),
        Bar("twenty are hardly", "answers a second with 20 viewers beside none", ">=", 0.9),
        Bar("it opens at once", "the large collection opens", "<=", 2.0),
        Bar("so does every page", "the slowest page", "<=", 1.0),
    ),
)
