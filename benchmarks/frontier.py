"""The frontier alone, on disk, without a network: `python -m benchmarks.frontier [--urls 10000000]`.

Feeds URLs of many hosts through `Frontier.admit`, gives half of them out and takes them back as done, commits every few
thousand. Prints rates, memory above start, seen tests a second (half of them known, drawn evenly), bytes a URL on disk
over all families after compaction, and how long opening and loading the collection takes.
"""

import argparse
import random
import re
import sys
import tempfile
import time
from pathlib import Path

from lycosa.frontier.frontier import Frontier, Lease, Pace
from lycosa.frontier.hosts import Host
from lycosa.frontier.policies import BREADTH
from lycosa.frontier.policy import Policy
from lycosa.frontier.rows import UrlState
from lycosa.frontier.shelf import Start
from lycosa.records import Family, Mapped
from lycosa.store import Batch, Collection
from lycosa.web.url import Url, split, url_key

RSS_BAR_MB, SEEN_BAR, BYTES_BAR, OPEN_BAR_S = 400, 100_000, 80, 3.0
A_COMMIT = 5_000
HOSTS = 10_000
WORDS = ("docs", "blog", "article", "news", "about", "products", "item", "user", "archive", "topic", "guide", "page")


def url_of(number: int) -> Url:
    """URL `number`: hosts uneven, paths as sites have them."""
    host = int(HOSTS ** (number * 0.6180339887498949 % 1.0))
    first, second = WORDS[number % 12], WORDS[number // 12 % 12]
    return split(f"https://www.site{host}.example/{first}/{second}/{number // 7:x}/entry-{number}.html")


def resident_mb() -> float:
    found = re.search(r"VmRSS:\s+(\d+)", Path("/proc/self/status").read_text())
    assert found
    return int(found[1]) / 1024


def locate(host: Host) -> Mapped:
    return Mapped(host.host, host.host, float("inf"))


class Feed:
    """A frontier on a collection, with its commits."""

    def __init__(self, collection: Collection, policy: Policy = BREADTH) -> None:
        self.collection, self.now = collection, 0.0
        pace = Pace(delay_s=0.0, per_host=8, per_ip=8, robots=False)
        start = Start(0.0, 0.0, is_restart=False)
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


def seen_tests(collection: Collection, urls: int, count: int = 400_000) -> float:
    """Tests a second by the clock, in sets of fifty, half of them of known URLs."""
    chance = random.Random(1)
    keys = [url_key(url_of(chance.randrange(2 * urls)).href) for _ in range(count)]
    began = time.perf_counter()
    for start in range(0, count, 50):
        collection.state.get_many(Family.URL, keys[start : start + 50])
    return count / (time.perf_counter() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--urls", type=int, default=10_000_000)
    urls = parser.parse_args().urls
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "collection"
        start_mb = resident_mb()
        with Collection.create(path) as collection:
            feed = Feed(collection)
            began = time.perf_counter()
            for step in range(10):
                feed.admit(urls * step // 10, urls * (step + 1) // 10)
                print(
                    f"  {urls * (step + 1) // 10:,} known, {resident_mb() - start_mb:.0f} MB above start",
                    file=sys.stderr,
                )
            admitted_s = time.perf_counter() - began
            began = time.perf_counter()
            taken = feed.take(urls // 2)
            taken_s = time.perf_counter() - began
            peak_mb = resident_mb() - start_mb
            seen = max(seen_tests(collection, urls) for _ in range(3))
            peak_mb = max(peak_mb, resident_mb() - start_mb)
            collection.state.compact()
            size = sum(file.stat().st_size for file in (path / "state").iterdir())
        began = time.perf_counter()
        with Collection.open(path) as collection:
            Feed(collection).frontier.load(0.0)
            open_s = time.perf_counter() - began
    print(f"admitted {urls:,} URLs: {urls / admitted_s:,.0f}/s; given out and taken back: {taken / taken_s:,.0f}/s")
    for what, value, bar, holds in (
        ("memory above start, MB", peak_mb, f"≤ {RSS_BAR_MB}", peak_mb <= RSS_BAR_MB),
        ("seen tests/s", seen, f"≥ {SEEN_BAR:,}", seen >= SEEN_BAR),
        ("bytes a URL on disk", size / urls, f"≤ {BYTES_BAR}", size / urls <= BYTES_BAR),
        ("open and load, s", open_s, f"≤ {OPEN_BAR_S}", open_s <= OPEN_BAR_S),
    ):
        print(f"{what:<24}{value:>14,.1f}   {bar:<10} {'yes' if holds else 'NO'}")


if __name__ == "__main__":
    main()
