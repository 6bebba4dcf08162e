"""The frontier alone, on disk, without a network: `python -m proof.bench.frontier [--urls 10000000]`.

Feeds URLs of many hosts through `Frontier.admit`, gives half of them out and takes them back as done, commits every few
thousand. Prints rates, memory above start, seen tests a second (half of them known, drawn evenly), bytes a URL on disk
over all families after compaction, and how long opening and loading the collection takes. Memory is the most that the
process ever held; seen tests count by the clock, with their CPU time beside it for a machine that is shared.
"""

import argparse
import random
import re
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from lycosa.frontier.frontier import Frontier
from lycosa.frontier.host_cache import ProcessStart
from lycosa.frontier.hosts import Host
from lycosa.frontier.lease import Lease, Politeness
from lycosa.frontier.policy import Policy
from lycosa.frontier.rankings import BREADTH
from lycosa.frontier.rows import UrlState
from lycosa.records import Family, Mapped
from lycosa.store import Batch, CollectionStore
from lycosa.web.url import Url, split_url, url_key
from proof.bench.ground import say
from proof.bench.measure import Verdict, load

RSS_BAR_MB, SEEN_BAR, BYTES_BAR, OPEN_BAR_S = 400, 100_000, 80, 3.0
A_COMMIT = 5_000
HOSTS = 10_000
WORDS = ("docs", "blog", "article", "news", "about", "products", "item", "user", "archive", "topic", "guide", "page")


def url_of(number: int) -> Url:
    """URL `number`: hosts uneven, paths as sites have them."""
    host = int(HOSTS ** (number * 0.6180339887498949 % 1.0))
    first, second = WORDS[number % 12], WORDS[number // 12 % 12]
    return split_url(f"https://www.site{host}.example/{first}/{second}/{number // 7:x}/entry-{number}.html")


def held_mb(what: str) -> float:
    """Memory of this process: now (`VmRSS`) or at most (`VmHWM`)."""
    found = re.search(rf"{what}:\s+(\d+)", Path("/proc/self/status").read_text())
    assert found
    return int(found[1]) / 1024


def locate(host: Host) -> Mapped:
    return Mapped(host.host, host.host, float("inf"))


class Feed:
    """A frontier on a collection, with its commits."""

    def __init__(self, collection: CollectionStore, policy: Policy = BREADTH) -> None:
        self.collection, self.now = collection, 0.0
        pace = Politeness(delay_s=0.0, per_host=8, per_ip=8, robots=False)
        start = ProcessStart(0.0, 0.0, is_restart=False)
        self.frontier = Frontier(collection.state, pace, start, locate=locate, policy=policy)
        self._begin()

    def _begin(self) -> None:
        self.batch = Batch()
        self.frontier.batch = self.batch

    def commit(self) -> None:
        self.now += 0.25
        self.frontier.write_hosts()
        self.collection.commit(self.batch)
        self._begin()
        self.frontier.committed(self.now)

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
                lease = self.frontier.next(self.now, self.now)
                if lease is None:
                    break
                leases.append(lease)
            for lease in leases:
                self.frontier.finish(lease, UrlState.DONE)
                self.frontier.release(lease, self.now, self.now)
            done += len(leases)
            self.commit()
            if not leases and self.frontier.queued <= 0:
                break
        return done


class Seen(NamedTuple):
    """Tests a second, by the clock and by this thread's CPU time."""

    by_clock: float
    by_cpu: float


def asked_keys(urls: int, count: int = 400_000) -> list[bytes]:
    """Keys drawn evenly, half of them of known URLs."""
    chance = random.Random(1)
    return [url_key(url_of(chance.randrange(2 * urls)).href) for _ in range(count)]


def seen_tests(collection: CollectionStore, keys: list[bytes]) -> Seen:
    """The best of three rounds, in sets of fifty."""
    rounds = []
    for _ in range(3):
        began_s, began_busy_s = time.perf_counter(), time.thread_time()
        for start in range(0, len(keys), 50):
            collection.state.get_many(Family.URL, keys[start : start + 50])
        took_s, busy_s = time.perf_counter() - began_s, time.thread_time() - began_busy_s
        rounds.append(Seen(len(keys) / took_s, len(keys) / busy_s))
    return max(rounds)


def feed_all(collection: CollectionStore, urls: int, start_mb: float) -> None:
    """All URLs in, half of them out."""
    feed = Feed(collection)
    began_s, began_busy_s = time.perf_counter(), time.process_time()
    for step in range(10):
        feed.admit(urls * step // 10, urls * (step + 1) // 10)
        say(f"{urls * (step + 1) // 10:,} known, {held_mb('VmRSS') - start_mb:.0f} MB above start")
    _rate("admitted", urls, time.perf_counter() - began_s, time.process_time() - began_busy_s)
    began_s, began_busy_s = time.perf_counter(), time.process_time()
    taken = 0
    for _ in range(10):
        taken += feed.take(urls // 20)
        say(f"{taken:,} given out, {held_mb('VmRSS') - start_mb:.0f} MB above start")
    _rate("given out and taken back", taken, time.perf_counter() - began_s, time.process_time() - began_busy_s)


def _rate(what: str, urls: int, wall_s: float, cpu_s: float) -> None:
    print(f"{what}: {urls:,} URLs, {urls / wall_s:,.0f}/s, {cpu_s / urls * 1e6:.0f} µs of CPU each")


def open_and_load_s(path: Path) -> float:
    began = time.perf_counter()
    with CollectionStore.open(path) as collection:
        Feed(collection).frontier.load(0.0)
        return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--urls", type=int, default=10_000_000)
    urls = parser.parse_args().urls
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "collection"
        start_mb = held_mb("VmRSS")
        with CollectionStore.create(path) as collection:
            feed_all(collection, urls, start_mb)
            peak_mb = held_mb("VmHWM") - start_mb
            keys = asked_keys(urls)
            as_written = seen_tests(collection, keys)
            collection.state.compact()
            compacted = seen_tests(collection, keys)
            size = sum(file.stat().st_size for file in (path / "state").iterdir())
        open_s = min(open_and_load_s(path) for _ in range(3))
    print(load())
    verdict = Verdict()
    verdict.judge(f"{peak_mb:.0f} MB above start at most, ≤ {RSS_BAR_MB}", peak_mb <= RSS_BAR_MB)
    for when, seen in (("as written", as_written), ("compacted", compacted)):
        words = f"{seen.by_clock:,.0f} seen tests/s {when} ({seen.by_cpu:,.0f} a second of CPU), ≥ {SEEN_BAR:,}"
        verdict.judge(words, seen.by_clock >= SEEN_BAR)
    verdict.judge(f"{size / urls:.1f} bytes a URL on disk, ≤ {BYTES_BAR}", size / urls <= BYTES_BAR)
    verdict.judge(f"{open_s:.2f} s to open and load, ≤ {OPEN_BAR_S}", open_s <= OPEN_BAR_S)
    verdict.exit()


if __name__ == "__main__":
    main()
