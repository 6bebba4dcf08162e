"""How costs grow with known URLs, hosts, page size and links a page, and the exponent that fits each.

y = a·n^b is fitted by least squares of the logarithms to the CPU time y that n of something take together: b is 1 where
each costs the same, and n·log n gives about 1.1 over these sizes. The frontier is on disk and has no network, as in the
benchmark `frontier`, which has the ten million URLs; pages are made up and read by `analyse_page`. How costs
grow with shards is measured by the benchmarks `scale` and `workers`.
"""

import math
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from lycosa.store import CollectionStore
from lycosa.web import analyse_page, split_url
from proof import Axis, Bar, Experiment, Line, LineChart, Run
from proof.bench.frontier import A_COMMIT, FrontierFeed
from proof.ground.commands import best_us, scratch

URLS, QUICK_URLS = (10_000, 30_000, 100_000, 300_000, 1_000_000), (5_000, 10_000, 20_000)
HOSTS, QUICK_HOSTS = (10, 100, 1_000, 10_000, 100_000), (10, 100, 1_000)
URLS_ON_HOSTS, QUICK_URLS_ON_HOSTS = 100_000, 5_000
SIZES, QUICK_SIZES = (4_000, 16_000, 64_000, 256_000, 1_000_000), (4_000, 16_000, 64_000)
LINKS, QUICK_LINKS = (10, 100, 1_000, 10_000), (10, 100, 1_000)
STEEPEST = 1.15  # of n·log n from 10,000 to a million it is 1.09; the rest is for noise


class GrowthPoint(NamedTuple):
    """How much CPU time `n` of something took together."""

    n: int
    cpu_s: float


def exponent(points: Sequence[GrowthPoint]) -> float:
    """b of y = a·n^b."""
    xs, ys = [math.log(each.n) for each in points], [math.log(each.cpu_s) for each in points]
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    across = sum((x - mean_x) ** 2 for x in xs)
    return sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True)) / across


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
}


def measure(run: Run) -> None:
    rows: list[tuple[str, int, float, float]] = []
    with run.progress(len(AXES), "kinds of growth") as step:
        for name, (work, what) in AXES.items():
            if name not in run.chosen:
                run.leave_out(_exponent(what), "--only without it")
            else:
                points = work(run)
                rows += [(what, each.n, round(each.cpu_s, 5), round(1e6 * each.cpu_s / each.n, 2)) for each in points]
                run.figure(_exponent(what), exponent(points))
                line = Line(what, [each.n for each in points], [each.cpu_s for each in points])
                run.plot(
                    LineChart(
                        f"{what}: CPU time grows as n^{exponent(points):.2f}",
                        Axis(what, log=True),
                        Axis("CPU time", "s", log=True),
                        (line,),
                    )
                )
            step.advance()
    run.table(["n is", "n", "CPU s for all", "CPU µs for one"], rows)


def _exponent(what: str) -> str:
    return f"exponent of {what}"


EXPERIMENT = Experiment(
    name="growth",
    summary="CPU time against known URLs, hosts, page size and links a page, with the exponent that fits",
    run=measure,
    choices=tuple(AXES),
    bars=tuple(Bar(f"not above n log n: {what}", _exponent(what), "<=", STEEPEST) for _, what in AXES.values()),
)
