"""The frontier alone, on disk, without a network: ten million known URLs, half of them queued.

Feeds URLs of many hosts through `Frontier.admit`, gives half of them out and takes them back as done, commits every few
thousand. Measured are rates, memory above start, seen tests a second (half of them known, drawn evenly), bytes a URL
on disk over all families after compaction, and how long opening and loading the collection takes. Memory is the most
that the process ever held; seen tests count by the clock, with their CPU time beside it for a machine that is shared.
"""

import random
import time
from pathlib import Path
from typing import NamedTuple

from lycosa.frontier import BREADTH, Frontier, Host, Lease, Policy, Politeness, ProcessStart, UrlState
from lycosa.records import Family, Mapped
from lycosa.store import Batch, CollectionStore
from lycosa.web import Url, split_url, url_key
from proof import Bar, Experiment, Run
from proof.ground.commands import memory_mb, scratch

URLS, QUICK_URLS = 10_000_000, 200_000
A_COMMIT = 5_000
HOSTS = 10_000
WORDS = ("docs", "blog", "article", "news", "about", "products", "item", "user", "archive", "topic", "guide", "page")


def url_of(number: int) -> Url:
    """URL `number`: hosts uneven, paths as sites have them."""
    host = int(HOSTS ** (number * 0.6180339887498949 % 1.0))
    first, second = WORDS[number % 12], WORDS[number // 12 % 12]
    return split_url(f"https://www.site{host}.example/{first}/{second}/{number // 7:x}/entry-{number}.html")


def locate(host: Host) -> Mapped:
    return Mapped(host.host, host.host, float("inf"))


class FrontierFeed:
    """A frontier on a collection, with its commits."""

    def __init__(self, collection: CollectionStore, policy: Policy = BREADTH) -> None:
        self.collection, self.now = collection, 0.0
        pace = Politeness(delay_s=0.0, per_host=8, per_ip=8, robots=False)
        start = ProcessStart(0.0, 0.0, is_restart=False)
        self.batch = Batch()
        self.frontier = Frontier(collection.state, self.batch, pace, start, locate=locate, policy=policy)

    def commit(self) -> None:
        self.now += 0.25
        self.frontier.before_commit()
        self.collection.commit(self.batch)
        self.batch = Batch()
        self.frontier.on_committed(self.batch, self.now)

    def admit(self, first: int, last: int) -> None:
        for start in range(first, last, A_COMMIT):
            for page in range(start, min(start + A_COMMIT, last), 50):
                self.frontier.admit([url_of(n) for n in range(page, min(page + 50, last))], depth=1, now=self.now)
            self.commit()

    def take(self, count: int) -> int:
        """Gives out and takes back `count` URLs."""
        done = 0
        while done < count:
            leases: list[Lease] = []
            while len(leases) < A_COMMIT and done + len(leases) < count:
                lease = self.frontier.leasing.next(self.now, self.now)
                if lease is None:
                    break
                leases.append(lease)
            for lease in leases:
                self.frontier.outcomes.finish(lease, UrlState.DONE)
                self.frontier.outcomes.release(lease, self.now, self.now)
            done += len(leases)
            self.commit()
            if not leases and self.frontier.counts.queued <= 0:
                break
        return done


class SeenTests(NamedTuple):
    """Tests a second, by the clock and by this thread's CPU time."""

    by_clock: float
    by_cpu: float


def asked_keys(urls: int, count: int = 400_000) -> list[bytes]:
    """Keys drawn evenly, half of them of known URLs."""
    chance = random.Random(1)
    return [url_key(url_of(chance.randrange(2 * urls)).href) for _ in range(count)]


def seen_tests(collection: CollectionStore, keys: list[bytes]) -> SeenTests:
    """The best of three rounds, in sets of fifty."""
    rounds = []
    for _ in range(3):
        began_s, began_busy_s = time.perf_counter(), time.thread_time()
        for start in range(0, len(keys), 50):
            collection.state.get_many(Family.URL, keys[start : start + 50])
        took_s, busy_s = time.perf_counter() - began_s, time.thread_time() - began_busy_s
        rounds.append(SeenTests(len(keys) / took_s, len(keys) / busy_s))
    return max(rounds)


def feed_all(run: Run, collection: CollectionStore, urls: int) -> None:
    """All URLs in, half of them out."""
    feed = FrontierFeed(collection)
    with run.progress(urls + urls // 2, "URLs") as step:
        for what, goal in (("admitted", urls), ("given out and taken back", urls // 2)):
            began_s, began_busy_s, done = time.perf_counter(), time.process_time(), 0
            for part in range(10):
                first, last = goal * part // 10, goal * (part + 1) // 10
                if what == "admitted":
                    feed.admit(first, last)
                    done += last - first
                else:
                    done += feed.take(last - first)
                step.advance(last - first)
            run.figure(what, done / (time.perf_counter() - began_s), "URLs/s")
            run.figure(f"{what}, CPU a URL", (time.process_time() - began_busy_s) / done * 1e6, "µs")


def open_and_load_s(path: Path) -> float:
    began = time.perf_counter()
    with CollectionStore.open(path) as collection:
        FrontierFeed(collection).frontier.load(0.0)
        return time.perf_counter() - began


def measure(run: Run) -> None:
    urls = QUICK_URLS if run.quick else URLS
    run.setting("URLs", urls)
    with scratch() as folder:
        path, start_mb = folder / "collection", memory_mb()
        with CollectionStore.create(path) as collection:
            feed_all(run, collection, urls)
            run.figure("memory above start at most", memory_mb(peak=True) - start_mb, "MB")
            keys = asked_keys(urls)
            for when in ("as written", "compacted"):
                if when == "compacted":
                    collection.state.compact()
                seen = seen_tests(collection, keys)
                run.figure(f"seen tests {when}", seen.by_clock, "/s")
                run.figure(f"seen tests {when}, a second of CPU", seen.by_cpu, "/s")
            size = sum(file.stat().st_size for file in (path / "state").iterdir())
        run.figure("disk", size / urls, "B/URL")
        run.figure("open and load", min(open_and_load_s(path) for _ in range(3)), "s")


EXPERIMENT = Experiment(
    name="frontier",
    summary="ten million known URLs: memory, seen tests a second, bytes a URL, opening",
    run=measure,
    bars=(
        Bar("little memory", "memory above start at most", "<=", 400),
        Bar("quick as written", "seen tests as written", ">=", 100_000),
        Bar("quick when compacted", "seen tests compacted", ">=", 100_000),
        Bar("small on disk", "disk", "<=", 80),
        Bar("opens at once", "open and load", "<=", 3.0),
    ),
)
