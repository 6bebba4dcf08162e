"""What the live page costs a crawl, and how long a large collection takes to open in it.

The same crawl of the simulated web by turns with no viewer, with one and with twenty; a viewer reads the events and
asks for the charts as a browser does. Pages a second, and the CPU seconds of the crawl itself, are compared run by run;
the median counts. Where crawl, web and server share few cores the clock says more about them than about the crawl: CPU
stands beside it. The large collection has ten million URLs, half of them fetched, and 100,000 hosts.
"""

import json
import os
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from statistics import median
from typing import NamedTuple
from urllib.parse import urlsplit

from lycosa.store import CollectionStore
from lycosa.web import split_url
from proof import Bar, Experiment, Run
from proof.bench.frontier import FrontierFeed
from proof.ground.commands import cpu_s, lycosa, scratch
from proof.ground.servers import ServedWeb, live_page, simulated_web

VIEWERS = (0, 1, 20)
CHARTS_EVERY_S = 5.0
PAGES, QUICK_PAGES = 20_000, 3_000
URLS, QUICK_URLS = 10_000_000, 200_000
HOSTS = 100_000
VIEWS = {
    "overview": "/",
    "hosts": "/hosts",
    "hosts, by name": "/hosts?q=9&sort=host",
    "hosts, sorted again": "/hosts?sort=queued",
    "URLs": "/urls",
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


def view(link: str, ended: threading.Event) -> None:
    """One viewer, until the end."""
    ask, charts_at = Ask(link), 0.0
    try:
        with ask.open("/api/v1/events") as events:
            while not ended.is_set() and events.readline():
                if time.monotonic() >= charts_at:
                    charts_at = time.monotonic() + CHARTS_EVERY_S
                    ask.seconds("/api/v1/timeline?points=300")
    except (OSError, HTTPException):  # the server has ended
        return


@contextmanager
def watched(into: Path, viewers: int) -> Iterator[Callable[[], float]]:
    """The live page with so many viewers, from the moment the collection is there; nothing where there are none.
    What is yielded says how many cores the server has kept busy for them."""
    if not viewers:
        yield lambda: 0.0
        return
    while not (into / "lycosa.format").is_file():
        time.sleep(0.02)
    ended = threading.Event()
    with live_page(into) as page:
        threads = [threading.Thread(target=view, args=(page.link, ended), daemon=True) for _ in range(viewers)]
        for thread in threads:
            thread.start()
        began, before_s = time.monotonic(), cpu_s(page.pid)
        yield lambda: (cpu_s(page.pid) - before_s) / (time.monotonic() - began)
        ended.set()


class WatchedCrawl(NamedTuple):
    """The rate is that of the crawl itself, without its start."""

    pages_per_s: float
    cpu_s: float
    server_cores: float


def crawl(web: ServedWeb, pages: int, viewers: int) -> WatchedCrawl:
    with scratch() as folder:
        into = folder / "c"
        words = ["--into", str(into), "--pages", str(pages), "--scope", "any", "--delay", "0", "--per-ip", "64"]
        command = lycosa("crawl", web.front_page(), *words, "--json", "--quiet", *web.options())
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert process.stdout is not None
        with watched(into, viewers) as cores:
            told = json.loads(process.stdout.read())
            server_cores = cores()
            _, _, usage = os.wait4(process.pid, 0)
        process.returncode = 0
    return WatchedCrawl(told["pages"] / told["seconds"], usage.ru_utime + usage.ru_stime, server_cores)


def measure_viewers(run: Run) -> None:
    pages = QUICK_PAGES if run.quick else PAGES
    run.setting("pages of a crawl", pages)
    found: dict[int, list[WatchedCrawl]] = {viewers: [] for viewers in VIEWERS}
    with (
        scratch() as folder,
        simulated_web(folder / "web.jsonl", "--hosts", "200", "--pages", str(2 * pages)) as web,
        run.progress(run.runs * len(VIEWERS), "crawls") as step,
    ):
        for _ in range(run.runs):
            for viewers in VIEWERS:
                found[viewers].append(crawl(web, pages, viewers))
                step.advance()
    rows = [
        (viewers, round(each.pages_per_s), round(each.cpu_s, 2), round(each.server_cores, 3))
        for viewers in VIEWERS
        for each in found[viewers]
    ]
    run.table(["viewers", "pages/s", "CPU s of the crawl", "cores of the server"], rows)
    for viewers in VIEWERS[1:]:
        pairs = list(zip(found[0], found[viewers], strict=True))
        name = f"{viewers} viewer{'s' if viewers > 1 else ''}"
        run.figure(f"pages/s with {name} beside none", median(b.pages_per_s / a.pages_per_s for a, b in pairs), "×")
        run.figure(f"cores of the server with {name}", median(b.server_cores for _, b in pairs), "cores")
        run.figure(f"CPU of the crawl with {name} beside none", median(b.cpu_s / a.cpu_s for a, b in pairs), "×")


def make_large(run: Run, path: Path, urls: int) -> None:
    with CollectionStore.create(path) as collection, run.progress(urls + HOSTS, "URLs") as step:
        collection.save_settings("")
        feed = FrontierFeed(collection)
        for part in range(10):
            first, last = urls * part // 10, urls * (part + 1) // 10
            feed.admit(first, last)
            feed.take((last - first) // 2)
            step.advance(last - first)
        for start in range(0, HOSTS, 1_000):
            feed.frontier.admit(
                [split_url(f"https://h{n}.example/") for n in range(start, start + 1_000)], depth=1, now=feed.now
            )
            feed.commit()
            step.advance(1_000)
        collection.state.compact()


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
            run.figure("the large collection opens", ask.seconds("/"), "s")
            run.figure("the server starts", started_s, "s")
            rows = [(name, round(ask.seconds(path), 3)) for name, path in VIEWS.items()]
    run.table(["page", "seconds"], rows)
    run.figure("hosts are sorted again", dict(rows)["hosts, sorted again"], "s")


def measure(run: Run) -> None:
    if "viewers" in run.chosen:
        measure_viewers(run)
    if "large" in run.chosen:
        measure_large(run)


EXPERIMENT = Experiment(
    name="serve",
    summary="the live page: what viewers cost a crawl, and how a large collection opens",
    run=measure,
    runs=3,
    choices=("viewers", "large"),
    bars=(
        Bar("one viewer is not felt", "pages/s with 1 viewer beside none", ">=", 0.97),
        Bar("twenty are hardly", "pages/s with 20 viewers beside none", ">=", 0.9),
        Bar("it opens at once", "the large collection opens", "<=", 2.0),
        Bar("hosts come quickly", "hosts are sorted again", "<=", 0.5),
    ),
)
