"""How costs grow with known URLs, hosts, page size, links a page and shards, and the exponent that fits each.

y = a·n^b is fitted by least squares of the logarithms to the CPU time y that n of something take together: b is 1 where
each costs the same, and n·log n gives about 1.1 over these sizes. For hosts and shards the work stays the same, so that
b is 0 where they cost nothing. The frontier is on disk and has no network, as in the benchmark `frontier`; pages are
made up and read by `analyse_page`; shards crawl a simulated web, and their start is taken off, as in `workers`.
"""

import math
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from lycosa.store import CollectionStore
from lycosa.web import analyse_page, split_url
from proof import Axis, Bar, Experiment, Line, LineChart, Run
from proof.bench import workers
from proof.bench.frontier import A_COMMIT, FrontierFeed
from proof.ground.commands import best_us, scratch

URLS = (10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)
QUICK_URLS = (5_000, 10_000, 20_000)
HOSTS, QUICK_HOSTS = (10, 100, 1_000, 10_000, 100_000), (10, 100, 1_000)
URLS_ON_HOSTS, QUICK_URLS_ON_HOSTS = 100_000, 5_000
SIZES, QUICK_SIZES = (4_000, 16_000, 64_000, 256_000, 1_000_000), (4_000, 16_000, 64_000)
LINKS, QUICK_LINKS = (10, 100, 1_000, 10_000), (10, 100, 1_000)
SHARDS, QUICK_SHARDS = (1, 2, 3, 4), (1, 2)
PAGES_OF_SHARDS, QUICK_PAGES_OF_SHARDS = 4_000, 300
STEEPEST = 1.15  # of n·log n from 10,000 to ten million it is 1.08; the rest is for noise


class GrowthPoint(NamedTuple):
    """How much CPU time `n` of something took together."""

    n: int
    cpu_s: float


class Power(NamedTuple):
    """y = factor · n^exponent."""

    factor: float
    exponent: float

    def of(self, n: float) -> float:
        return float(self.factor * n**self.exponent)


def fitted(points: Sequence[GrowthPoint]) -> Power:
    """The power that is nearest to all points."""
    xs, ys = [math.log(each.n) for each in points], [math.log(each.cpu_s) for each in points]
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    across = sum((x - mean_x) ** 2 for x in xs)
    exponent = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True)) / across
    return Power(math.exp(mean_y - exponent * mean_x), exponent)


def _feed(feed: FrontierFeed, first: int, last: int, hosts: int) -> None:
    """Admits URLs `first` to `last`, spread evenly over so many hosts, fifty at a time as pages have them."""
    for start in range(first, last, A_COMMIT):
        for page in range(start, min(start + A_COMMIT, last), 50):
            numbers = range(page, min(page + 50, last))
            urls = [split_url(f"https://h{n % hosts}.example/folder-{n % 97}/entry-{n}.html") for n in numbers]
            feed.frontier.admit(urls, depth=1, now=feed.now)
        feed.commit()


def by_urls(run: Run) -> list[GrowthPoint]:
    """One frontier that grows: all known URLs admitted, a tenth of them given out and taken back."""
    points, spent_s, before = [], 0.0, 0
    with scratch() as folder, CollectionStore.create(folder / "collection") as collection:
        feed = FrontierFeed(collection)
        for goal in QUICK_URLS if run.quick else URLS:
            began_s = time.process_time()
            _feed(feed, before, goal, hosts=1_000)
            feed.take((goal - before) // 10)
            spent_s, before = spent_s + time.process_time() - began_s, goal
            points.append(GrowthPoint(goal, spent_s))
    return points


def by_hosts(run: Run) -> list[GrowthPoint]:
    """The same number of URLs on more and more hosts."""
    urls, points = QUICK_URLS_ON_HOSTS if run.quick else URLS_ON_HOSTS, []
    for hosts in QUICK_HOSTS if run.quick else HOSTS:
        with scratch() as folder, CollectionStore.create(folder / "collection") as collection:
            feed = FrontierFeed(collection)
            began_s = time.process_time()
            _feed(feed, 0, urls, hosts)
            feed.take(urls // 10)
            points.append(GrowthPoint(hosts, time.process_time() - began_s))
    return points


def by_size(run: Run) -> list[GrowthPoint]:
    """A page of more and more text, with a link in every fifth paragraph."""

    def page(size_bytes: int) -> bytes:
        parts = [
            f"<p>Paragraph {n} of a page that grows, with <b>some</b> words that are its own: {n * 7919:x}.</p>"
            + (f'<a href="/next/{n}.html">more of {n}</a>' if n % 5 == 0 else "")
            for n in range(size_bytes // 100)
        ]
        return _document(parts)

    return [_read(page(n), n) for n in (QUICK_SIZES if run.quick else SIZES)]


def by_links(run: Run) -> list[GrowthPoint]:
    """A page of more and more links, all to pages of their own."""

    def page(links: int) -> bytes:
        return _document([f'<li><a href="/folder/entry-{n}.html">entry {n}</a></li>' for n in range(links)])

    return [_read(page(n), n) for n in (QUICK_LINKS if run.quick else LINKS)]


def by_shards(run: Run) -> list[GrowthPoint]:
    """The same web crawled by more and more shards of this machine."""
    pages = QUICK_PAGES_OF_SHARDS if run.quick else PAGES_OF_SHARDS
    points = []
    for shards in QUICK_SHARDS if run.quick else SHARDS:
        start, whole = workers.crawl(shards, pages, limit=1), workers.crawl(shards, pages)
        points.append(GrowthPoint(shards, whole.crawl_cpu_s - start.crawl_cpu_s))
    return points


def _document(parts: Sequence[str]) -> bytes:
    return f"<!doctype html><html><head><title>Growth</title></head><body>{''.join(parts)}</body></html>".encode()


def _read(body: bytes, n: int) -> GrowthPoint:
    times = max(1, 400_000 // len(body))

    def work() -> None:
        for _ in range(times):
            analyse_page(body, url="http://host.example/", content_type="text/html", wants_main=True)

    return GrowthPoint(n, best_us(work, times) / 1e6)


AXES: dict[str, tuple[Callable[[Run], list[GrowthPoint]], str]] = {
    "urls": (by_urls, "known URLs"),
    "hosts": (by_hosts, "hosts"),
    "size": (by_size, "bytes of a page"),
    "links": (by_links, "links of a page"),
    "shards": (by_shards, "shards"),
}

SHARING = ("hosts", "shards")  # for these the work stays the same


def measure(run: Run) -> None:
    rows: list[tuple[str, int, float, float | str]] = []
    with run.progress(len(AXES), "kinds of growth") as step:
        for name, (work, what) in AXES.items():
            if name not in run.chosen:
                run.leave_out(_exponent(what), "--only without it")
            else:
                points = work(run)
                rows += [(what, each.n, 1000 * each.cpu_s, _of_one(what, each)) for each in points]
                run.figure(_exponent(what), fitted(points).exponent)
                run.plot(_chart(what, points))
            step.advance()
    run.table(["n is", "n", "CPU ms for all", "CPU µs for one"], rows)


def _of_one(what: str, point: GrowthPoint) -> float | str:
    """CPU microseconds; empty where more of it share the same work."""
    return "" if what in SHARING else 1e6 * point.cpu_s / point.n


def _chart(what: str, points: Sequence[GrowthPoint]) -> LineChart:
    """What was measured, and the power that fits it."""
    sizes, power = [each.n for each in points], fitted(points)
    measured = Line("measured", sizes, [each.cpu_s for each in points])
    fit = Line(f"n^{power.exponent:.2f}", sizes, [power.of(n) for n in sizes])
    title = f"{what}: CPU time grows as n^{power.exponent:.2f}"
    return LineChart(title, Axis(what, log=True), Axis("CPU time", "s", log=True), (measured, fit))


def _exponent(what: str) -> str:
    return f"exponent of {what}"


EXPERIMENT = Experiment(
    name="growth",
    summary="CPU time against known URLs, hosts, page size, links a page and shards, with the exponent that fits",
    run=measure,
    choices=tuple(AXES),
    bars=tuple(Bar(f"not above n log n: {what}", _exponent(what), "<=", STEEPEST) for _, what in AXES.values()),
)
