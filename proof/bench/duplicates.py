"""Copies and near-copies: are they found, and nothing else; what the index of texts takes; what it costs a crawl.

A simulated web with mirrors and near-copies is crawled, and `Collection.duplicates` is compared with how that web was
made. A near-copy has the prose of another page, with one passage and all links replaced; it counts as one where the
passage is at most a twentieth of the prose. The index has random SimHashes, and is asked for as many as a crawl asks
for at once. A real site is crawled by turns with and without SimHashes; CPU time of the whole command.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np

import lycosa
from lycosa.duplicates import SimHashIndex
from lycosa.simweb import SimSettings, SimWeb
from lycosa.simweb.layout import PagePlace
from proof import Bar, Experiment, Run
from proof.ground import without_simhash
from proof.ground.commands import memory_mb, run_command, scratch
from proof.ground.memory_crawl import look
from proof.ground.sites import crawl_command, served_site

PAGES, QUICK_PAGES = 20_000, 3_000
HASHES, QUICK_HASHES = 1_000_000, 100_000
LOOK_UPS, AT_ONCE = 50_000, 512
MOST_CHANGED = 0.05  # of the passages of a near-copy
EXACT, FALSE, NEAR, PRECISE = (
    "exact copies found",
    "pages merged wrongly as exact",
    "near-copies found",
    "near precision",
)
MEMORY, RATE, COST = "memory of the index", "look-ups a second of CPU", "a crawl: CPU with SimHashes beside without"


def measure(run: Run) -> None:
    parts: dict[str, tuple[Callable[[], None], tuple[str, ...]]] = {
        "quality": (lambda: _quality(run, QUICK_PAGES if run.quick else PAGES), (EXACT, FALSE, NEAR, PRECISE)),
        "index": (lambda: _index(run, QUICK_HASHES if run.quick else HASHES), (MEMORY, RATE)),
        "crawl": (lambda: _crawl(run), (COST,)),
    }
    for name, (part, figures) in parts.items():
        if name in run.chosen:
            part()
        else:
            for figure in figures:
                run.leave_out(figure, "not asked for")


class _Truth:
    """What the simulated web says of the pages that were fetched."""

    def __init__(self, web: SimWeb, urls: list[str]) -> None:
        self._web = web
        found = ((url, web.layout.locate(*web.address_of(url))) for url in urls)
        self.places = {url: place for url, place in found if place is not None}

    def served(self, url: str) -> PagePlace:
        """The page whose document is at a URL."""
        return self._web.pages.source(self.places[url])

    def prose(self, url: str) -> PagePlace:
        """The page whose prose is at a URL."""
        return self._web.pages.prose_source(self.served(url))

    def changed(self, url: str) -> float:
        """The share of the prose that is another."""
        served, prose = self.served(url), self.prose(url)
        return 0.0 if served == prose else 1 / self._web.pages.plan(prose)[1]


def _quality(run: Run, pages: int) -> None:
    web = SimWeb(SimSettings(seed=run.seed, hosts=20, pages=pages, mirrors=0.05, near_duplicates=0.08))
    with scratch() as folder:
        run.say("crawling the simulated web")
        look(web, folder / "c", days=0, moves=False, delay_s=0.0, mine="off", tables="off")
        with lycosa.open(folder / "c") as collection:
            truth = _Truth(web, [page.url for page in collection])
            began = time.process_time()
            found = {page.url: page for page in collection.duplicates() if page.url in truth.places}
            spent = time.process_time() - began
    first = dict[PagePlace, str]()
    for url in sorted(truth.places):
        if truth.places[url] == truth.served(url):
            first[truth.places[url]] = url
    cluster = {url: page.cluster for url, page in found.items()}

    def share(pairs: list[tuple[str, str]]) -> float:
        return 100 * sum(cluster.get(one, 0) == cluster.get(other, -1) for one, other in pairs) / max(1, len(pairs))

    copies = [(url, original) for url in truth.places if (original := first.get(truth.served(url), url)) != url]
    near = [
        (url, original)
        for url in truth.places
        if 0 < truth.changed(url) <= MOST_CHANGED and (original := first.get(truth.prose(url), url)) != url
    ]
    exact = [page for page in found.values() if page.relation == "exact"]
    said = [page for page in found.values() if page.relation == "near"]
    right = sum(truth.prose(page.url) == truth.prose(page.representative) for page in said)
    run.setting("pages crawled", len(truth.places))
    run.figure("planted copies", len(copies))
    run.figure("planted near-copies", len(near))
    run.figure(EXACT, share(copies), "%")
    run.figure(FALSE, sum(truth.served(page.url) != truth.served(page.representative) for page in exact))
    run.figure(NEAR, share(near), "%")
    run.figure(PRECISE, 100 * right / max(1, len(said)), "%")
    run.figure("clusters, CPU a page", 1e6 * spent / max(1, len(truth.places)), "µs")


def random_hashes(count: int, seed: int) -> "np.ndarray[tuple[int, int], np.dtype[np.uint64]]":
    """SimHashes of texts that have nothing in common."""
    draw = np.random.default_rng(seed)
    hashes = draw.integers(0, 1 << 64, (count, 2), np.uint64)
    hashes[:, 1] = 0
    for block in range(4):
        one = draw.integers(0, 16, count, np.uint64)
        other = (one + draw.integers(1, 16, count, np.uint64)) % np.uint64(16)
        for bit in (one, other):
            hashes[:, 1] |= np.uint64(1) << (bit + np.uint64(16 * block))
    return hashes


def _index(run: Run, count: int) -> None:
    run.setting("SimHashes in the index", count)
    asked = random_hashes(LOOK_UPS, run.seed + 1)
    with scratch() as folder, run.progress(count, "SimHashes") as step:
        before = memory_mb()
        index, began = SimHashIndex(folder / "similar"), time.process_time()
        for start in range(0, count, 10_000):
            index.add(random_hashes(10_000, run.seed + 2 + start))
            step.advance(10_000)
        index.flush()
        added_s, began = time.process_time() - began, time.process_time()
        for start in range(0, LOOK_UPS, AT_ONCE):
            index.near(asked[start : start + AT_ONCE])
        spent_s = time.process_time() - began
        run.figure(MEMORY, memory_mb() - before, "MB")
        run.figure("on disk", sum(file.stat().st_size for file in (folder / "similar").iterdir()) / 1e6, "MB")
    run.figure(RATE, LOOK_UPS / spent_s)
    run.figure("adding, CPU", 1e6 * added_s / count, "µs")


def _crawl(run: Run) -> None:
    spent: dict[str, list[float]] = {"with": [], "without": []}
    rows = []
    with served_site(run) as (site, server), run.progress(2 * run.runs, "crawls") as step:
        for number in range(run.runs):
            for name in ("without", "with") if number % 2 else ("with", "without"):
                with scratch() as folder:
                    command = crawl_command(server, site, folder / "crawl")
                    words = command[command.index("crawl") :]
                    script = str(Path(without_simhash.__file__))
                    usage = run_command(command if name == "with" else [sys.executable, script, *words])
                spent[name].append(usage.cpu_s)
                rows.append((f"{name}, run {number + 1}", round(usage.wall_s, 2), round(usage.cpu_s, 2)))
                step.advance()
    run.table(["", "command s", "CPU s"], rows)
    run.figure(COST, median(spent["with"]) / median(spent["without"]), "×")


EXPERIMENT = Experiment(
    name="duplicates",
    summary="copies and near-copies: found or not, the size and speed of their index, what they cost a crawl",
    run=measure,
    runs=5,
    choices=("quality", "index", "crawl"),
    bars=(
        Bar("every copy", EXACT, ">=", 100.0),
        Bar("no false copy", FALSE, "<=", 0),
        Bar("near-copies", NEAR, ">=", 95.0),
        Bar("nothing else", PRECISE, ">=", 98.0),
        Bar("small", MEMORY, "<=", 200),
        Bar("fast", RATE, ">=", 20_000),
        Bar("a crawl hardly notices", COST, "<=", 1.05),
    ),
)
