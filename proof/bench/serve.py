"""What the live page costs a crawl, and how long a large collection takes to open in it.

Real documentation on nginx is crawled with nobody watching, with one viewer and with twenty: none, one, twenty, twenty,
one, none, and so on. A viewer opens the page before the crawl begins and reads its events, as a browser does; where
there is none, there is no server either. What the crawl keeps of its speed is told from processor time, which is the
same on a machine that others use, too: what a page takes with nobody beside what it takes with viewers, less the cores
that the server keeps busy, as if crawl and server shared one core. Pages a second by the clock, from the first response
to the last in nginx's log, stand beside it. All is compared within each round, in which the machine is much the same;
the median of the rounds counts. The large collection has ten million URLs, nine of ten fetched, and 100,000 hosts; its
pages count by the processor time of the server.
"""

import contextlib
import random
import shutil
import threading
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from http.client import HTTPException
from pathlib import Path
from statistics import mean, median
from typing import NamedTuple
from urllib.parse import urlsplit

from lycosa.crawl import Totals, counts_row
from lycosa.frontier import UrlRow, UrlState, pack_host, unpack_host
from lycosa.records import Family
from lycosa.store import Batch, CollectionStore, PageRow, pack_row
from lycosa.version import __version__
from lycosa.web import Robots, split_url, url_key
from proof import Bar, Experiment, Run
from proof.bench.frontier import WORDS, FrontierFeed, url_of
from proof.ground.browser import browser
from proof.ground.commands import cpu_s, memory_mb, run_command, scratch
from proof.ground.peers import CACHE
from proof.ground.servers import Nginx, live_page
from proof.ground.sites import RealSite, SiteCrawl, crawl_command, served_site

ROUND = (0, 1, 20, 20, 1, 0)  # viewers: what changes steadily in a round is the same for all
SETTLE_S = 1.0
ENOUGH_PAGES = 1_000_000
BESIDE_NONE, KEPT = "pages/s with {} beside none, by the clock", "speed that the crawl keeps with {}"
OPENS, SLOWEST = "the large collection opens, CPU", "the slowest page, CPU"
OPENS_BY_CLOCK, PAINTED = "the large collection opens, by the clock", "first paint of its {} in Chromium"
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
def watched(into: Path, viewers: int) -> Iterator[Callable[[], float]]:
    """The live page with so many viewers, from the moment they have opened it; nothing where there are none. What is
    yielded says how many cores the server has kept busy since."""
    if not viewers:
        yield lambda: 0.0
        return
    ended = threading.Event()
    with live_page(into) as page:
        threads = [threading.Thread(target=view, args=(Ask(page.link), ended), daemon=True) for _ in range(viewers)]
        for thread in threads:
            thread.start()
        time.sleep(SETTLE_S)
        began, before_s = time.monotonic(), cpu_s(page.pid)
        yield lambda: (cpu_s(page.pid) - before_s) / (time.monotonic() - began)
        ended.set()


class WatchedCrawl(NamedTuple):
    """A crawl, how many watched it, the processor time that a page took it, and the cores that the live page kept busy
    meanwhile."""

    viewers: int
    pages_per_s: float
    cpu_us: float
    server_cores: float


def crawl(server: Nginx, site: RealSite, viewers: int) -> WatchedCrawl:
    with scratch() as folder:
        command = crawl_command(server, site, folder / "c")
        run_command([*command, "--pages", "1"])  # there is something to open
        server.served()
        with watched(folder / "c", viewers) as cores:
            usage = run_command([*command, "--pages", str(ENOUGH_PAGES)])
            server_cores = cores()
        crawled = SiteCrawl.of(server.served(), usage)
        return WatchedCrawl(viewers, crawled.pages_per_s, crawled.cpu_us, server_cores)


def measure_viewers(run: Run) -> None:
    found = list[list[WatchedCrawl]]()
    with served_site(run) as (site, server), run.progress(run.runs * len(ROUND), "crawls") as step:
        for _ in range(run.runs):
            found.append([])
            for viewers in ROUND:
                found[-1].append(crawl(server, site, viewers))
                step.advance()
    rows = [
        (number, each.viewers, round(each.pages_per_s), round(each.cpu_us), round(each.server_cores, 4))
        for number, crawls in enumerate(found, 1)
        for each in crawls
    ]
    run.table(["round", "viewers", "pages/s", "CPU µs/page", "cores of the server"], rows)
    unwatched = [
        max(rates) / min(rates) for crawls in found if (rates := [each.pages_per_s for each in with_(crawls, 0)])
    ]
    run.figure("the faster of two crawls that nobody watches beside the other", median(unwatched), "×")
    for viewers in (1, 20):
        name = f"{viewers} viewer{'' if viewers == 1 else 's'}"
        everyone = [each for crawls in found for each in crawls if each.viewers == viewers]
        run.figure(f"cores of the server with {name}", median(each.server_cores for each in everyone), "cores")
        run.figure(BESIDE_NONE.format(name), median(clock_ratio(crawls, viewers) for crawls in found), "×")
        run.figure(KEPT.format(name), median(kept(crawls, viewers) for crawls in found), "×")


def with_(crawls: list[WatchedCrawl], viewers: int) -> list[WatchedCrawl]:
    return [each for each in crawls if each.viewers == viewers]


def clock_ratio(crawls: list[WatchedCrawl], viewers: int) -> float:
    watched_rate, rate = (sum(each.pages_per_s for each in with_(crawls, many)) for many in (viewers, 0))
    return watched_rate / rate


def kept(crawls: list[WatchedCrawl], viewers: int) -> float:
    """The share of its speed that a crawl would keep if it had to share one core with the server."""
    watched_us, alone_us = (sum(each.cpu_us for each in with_(crawls, many)) for many in (viewers, 0))
    return alone_us / watched_us * (1 - mean(each.server_cores for each in with_(crawls, viewers)))


def large_collection(run: Run, urls: int) -> Path:
    """A collection of so many URLs, in the cache. It is made once for a version, in minutes, so that what is measured
    can be measured when the machine has nothing else to do."""
    path = CACHE / f"serve-{urls}-{__version__}"
    if not path.is_dir():
        shutil.rmtree(part := path.with_suffix(".part"), ignore_errors=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        make_large(run, part, urls)
        part.rename(path)
    return path


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
        rows = list(collection.state.walk(Family.HOST))
        for start in range(0, len(rows), A_COMMIT):
            collection.commit(asked_hosts(rows[start : start + A_COMMIT]))
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


def asked_hosts(rows: Iterable[tuple[bytes, bytes]]) -> Batch:
    """The rows of hosts, as they are when some of their pages were fetched and their robots.txt was read."""
    batch = Batch()
    for key, packed in rows:
        row = unpack_host(packed)
        chance = random.Random(key)
        row.requests = row.pages = chance.randrange(1, 1_000)
        row.bytes, row.seconds = row.pages * 9_000, row.pages * chance.uniform(0.02, 2.0)
        row.first_asked, row.last_asked = 1.8e9, 1.8e9 + chance.uniform(1e3, 1e4)
        row.address = f"192.0.2.{chance.randrange(256)}"
        rules = tuple(f"/{word}/*" for word in WORDS[: chance.randrange(len(WORDS))])
        row.robots = Robots("lycosa", disallow=rules, crawl_delay_s=chance.choice((None, 1.0, 5.0)))
        batch.put(Family.HOST, key, pack_host(row))
    return batch


def painted_s(link: str, path: str) -> float:
    """When Chromium first shows something of a page, from when it is asked for. It has been there once."""
    with browser() as page:
        at = urlsplit(link)
        page.open(link)
        page.open(f"{at.scheme}://{at.netloc}{path}")
        return float(page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")) / 1_000


def measure_large(run: Run) -> None:
    urls = QUICK_URLS if run.quick else URLS
    run.setting("URLs of the large collection", urls)
    run.setting("hosts of the large collection", HOSTS)
    into = large_collection(run, urls)
    began = time.perf_counter()
    with live_page(into) as page:
        ask = Ask(page.link)
        started_s = time.perf_counter() - began
        rows = [("the server starts", started_s, cpu_s(page.pid))]
        for name, path in VIEWS.items():
            before_s = cpu_s(page.pid)
            seconds = ask.seconds(path)
            rows.append((name, round(seconds, 3), round(cpu_s(page.pid) - before_s, 2)))
        paint_s = {name: painted_s(page.link, path) for name, path in (("overview", "/"), ("hosts", "/hosts"))}
        run.figure("memory of the server at most", memory_mb(page.pid, peak=True), "MB")
    run.table(["page", "seconds", "CPU seconds"], rows)
    run.figure(OPENS, rows[0][2] + rows[1][2], "s")
    run.figure(OPENS_BY_CLOCK, rows[0][1] + rows[1][1], "s")
    for name, seconds in paint_s.items():
        run.figure(PAINTED.format(name), seconds, "s")
    run.figure(SLOWEST, max(taken_s for _, _, taken_s in rows[2:]), "s")


def measure(run: Run) -> None:
    if "viewers" in run.chosen:
        measure_viewers(run)
    else:
        run.leave_out(KEPT.format("1 viewer"), "not run")
        run.leave_out(KEPT.format("20 viewers"), "not run")
    if "large" in run.chosen:
        measure_large(run)
    else:
        run.leave_out(OPENS, "not run")
        run.leave_out(PAINTED.format("overview"), "not run")
        run.leave_out(SLOWEST, "not run")


EXPERIMENT = Experiment(
    name="serve",
    summary="the live page: what viewers cost a crawl, and how a large collection opens",
    run=measure,
    runs=5,
    choices=("viewers", "large"),
    bars=(
        Bar("one viewer is not felt", KEPT.format("1 viewer"), ">=", 0.97),
        Bar("twenty are hardly", KEPT.format("20 viewers"), ">=", 0.9),
        Bar("it opens at once", OPENS, "<=", 2.0),
        Bar("so does every page", SLOWEST, "<=", 1.0),
        Bar("it is seen at once", PAINTED.format("overview"), "<=", 1.0),
    ),
)
