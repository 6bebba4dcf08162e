"""Bytes and microseconds a URL of the compressed trie, beside marisa-trie, a set, a Bloom filter and the disk.

    python -m benchmarks.trie [--urls 2000000] [--folder DIR]

The URLs are the file names of Debian's documentation packages under realistic hosts (`benchmarks.url_lists`), the keys
those of the state. marisa-trie is measured in an environment of its own and is left out with `--without-marisa`.
"""

import argparse
import ctypes
import gc
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, islice
from pathlib import Path
from typing import NamedTuple

from benchmarks.ground import environment, say
from benchmarks.measure import Verdict, cpu_s, load, resident_mb, table
from benchmarks.url_lists import documentation_urls
from lycosa.frontier.rows import UrlRow, UrlState
from lycosa.frontier.trie import UrlTrie
from lycosa.records import Family
from lycosa.store.state import Batch, State
from lycosa.web.url import url_key

LEAST_URLS = 1_000_000
MOST_BYTES, MOST_DISK_BYTES = 12.0, 25.0
MOST_COUNT_S, MOST_LEAF_S = 0.010, 0.001
HOST_URLS = 100_000  # what a large host has
ASKED = 5_000
BATCH_URLS = 2_000
PAGE_LINKS = 50
SCATTERED_URLS = 200_000
SEED = 4


class Clock:
    """CPU seconds of calls, one after the other: the mean and the worst."""

    def __init__(self) -> None:
        self.rows: dict[str, tuple[float, float]] = {}

    def time(self, what: str, call: Callable[[bytes], object], keys: Sequence[bytes]) -> float:
        spent = []
        for key in keys:
            began = time.thread_time()
            call(key)
            spent.append(time.thread_time() - began)
        mean_s, worst_s = sum(spent) / len(spent), max(spent)
        self.rows[what] = (mean_s, worst_s)
        return mean_s

    def table(self) -> str:
        rows = [[what, f"{mean * 1e6:,.1f}", f"{worst * 1e6:,.0f}"] for what, (mean, worst) in self.rows.items()]
        return table(["trie, CPU µs a call", "mean", "worst"], rows)


def memory_bytes() -> float:
    """Resident memory, after what is free has gone back to the kernel."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return resident_mb(os.getpid()) * 1024 * 1024


def marisa(keys: list[bytes], host: bytes) -> dict[str, float]:
    python = environment("marisa", "marisa-trie>=1.4")
    say("marisa-trie")
    stream = b"".join(len(key).to_bytes(2) + key for key in keys)
    command = [str(python), str(Path(__file__).with_name("trie_marisa.py")), host.hex()]
    done = subprocess.run(command, input=stream, capture_output=True, check=False)
    if done.returncode:
        sys.exit(f"marisa-trie failed:\n{done.stderr.decode()}")
    found: dict[str, float] = json.loads(done.stdout)
    return found


def disk_bytes(folder: Path, keys: list[bytes]) -> float:
    """Bytes a URL of the `url` family, written in any order and compacted, with its rows, index and filter."""
    rows = [UrlRow(UrlState.QUEUED, depth=depth).pack() for depth in range(8)]
    shuffled = random.Random(SEED).sample(keys, len(keys))
    with State.open(folder / "state") as state:
        for start in range(0, len(shuffled), BATCH_URLS):
            batch = Batch()
            for key in shuffled[start : start + BATCH_URLS]:
                batch.put(Family.URL, key, rows[key.count(b"/") % 8])
            state.write(batch)
        state.compact()
        family = state.stats().families[Family.URL]
        assert family.keys_estimate == len(keys)
        return family.disk_bytes / len(keys)


def largest_host(keys: list[bytes]) -> tuple[bytes, int]:
    """The host whose number of URLs is nearest to 100,000 from above, as a prefix; else the largest."""
    sizes = Counter(key[: key.index(b"\0", 2) + 1] for key in keys)
    above = [(size, host) for host, size in sizes.items() if size >= HOST_URLS]
    size, host = min(above) if above else max((size, host) for host, size in sizes.items())
    return host, size


class Built(NamedTuple):
    """A trie, the CPU seconds that making it took, and those of the longest single update."""

    trie: UrlTrie
    cpu_s: float
    worst_s: float


def build(updates: list[list[bytes]]) -> Built:
    trie, spent_s, worst_s = UrlTrie(), 0.0, 0.0
    for update in random.Random(SEED).sample(updates, len(updates)):
        began = time.thread_time()
        trie.update(update)
        took_s = time.thread_time() - began
        spent_s, worst_s = spent_s + took_s, max(worst_s, took_s)
    return Built(trie, spent_s, worst_s)


def by_folder(keys: list[bytes]) -> list[list[bytes]]:
    """The links of one page after the other: neighbours of one folder, as many as a page has."""
    folders = groupby(keys, key=lambda key: key[: key.rindex(b"/")])
    return [list(page) for _, folder in folders for page in batched(folder)]


def batched(keys: Iterable[bytes]) -> Iterator[list[bytes]]:
    rest = iter(keys)
    while some := list(islice(rest, PAGE_LINKS)):
        yield some


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--urls", type=int, default=2_000_000, help="at most, the first in key order")
    parser.add_argument("--folder", type=Path, help="where to put the state (default: a temporary folder)")
    parser.add_argument("--without-marisa", action="store_true")
    options = parser.parse_args()
    say("making the URLs")
    keys = [url_key(url) for url in documentation_urls()][: options.urls]
    host, host_urls = largest_host(keys)
    print(f"{len(keys):,} URLs, {host_urls:,} of them on the large host; {load()}")
    Scenario(keys, host, host_urls, options.folder, with_marisa=not options.without_marisa).run()


class Scenario:
    """Every measurement over one list of keys."""

    def __init__(self, keys: list[bytes], host: bytes, host_urls: int, folder: Path | None, *, with_marisa: bool):
        self.keys, self.host, self.host_urls, self.folder = keys, host, host_urls, folder
        self.with_marisa = with_marisa
        self.clock = Clock()
        self.sizes: list[list[str]] = []

    def run(self) -> None:
        print()
        say("building the trie, one sorted stream")
        before = memory_bytes()
        began = cpu_s()
        streamed = UrlTrie.from_sorted(self.keys)
        stream_s, resident = cpu_s() - began, memory_bytes() - before
        say("building the trie, folder by folder in any order")
        built = build(by_folder(self.keys))
        stats, each = built.trie.stats(), len(self.keys)
        in_memory = stats.segment_bytes / (stats.keys - stats.front)
        some = random.Random(SEED).sample(self.keys, SCATTERED_URLS)
        scattered_s = build(list(batched(some))).cpu_s / len(some)
        self.size("trie, built folder by folder", in_memory, f"{built.cpu_s / each * 1e6:.1f} µs a URL")
        one_bytes = streamed.stats().segment_bytes / each
        self.size("trie, built from a sorted stream", one_bytes, f"{stream_s / each * 1e6:.1f} µs a URL")
        self.size("the same, as the kernel counts it", resident / each, "first keys of blocks not counted twice")
        self.operations(built.trie)
        self.others()
        with tempfile.TemporaryDirectory(prefix="lycosa-bench-", dir=self.folder) as name:
            say("the state, written in any order and compacted")
            on_disk = disk_bytes(Path(name), self.keys)
        self.size("disk: the compacted url family", on_disk, "with rows, index and Bloom filter")
        print(table(["", "B/URL", ""], self.sizes))
        print()
        print(self.clock.table())
        print(f"\n{stats.segments} segments, {stats.front:,} keys in front of them")
        print(f"the longest update, with the merge it set off, took {built.worst_s * 1e3:,.0f} ms of CPU")
        print(f"{len(some):,} URLs one by one from anywhere: {scattered_s * 1e6:.1f} µs a URL")
        self.judge(in_memory, on_disk)

    def size(self, what: str, each: float, words: str = "") -> None:
        self.sizes.append([what, f"{each:.2f}", words])

    def operations(self, trie: UrlTrie) -> None:
        say("asking it")
        some = random.Random(SEED).sample(self.keys, ASKED)
        unknown = [key + b"~" for key in some]
        clock = self.clock
        assert trie.count(self.host) == self.host_urls
        clock.time("has, known", trie.__contains__, some)
        clock.time("has, unknown", trie.__contains__, unknown)
        clock.time("count of the large host", lambda _: trie.count(self.host), some[:500])
        clock.time("count of a folder", lambda key: trie.count(key[: key.rindex(b"/") + 1]), some)
        clock.time("leftmost leaf of a folder", lambda key: trie.leftmost(key[: key.rindex(b"/") + 1]), some)
        clock.time("at or after", trie.at_or_after, unknown)
        clock.time("before", trie.before, unknown)
        clock.time("add", trie.add, unknown)
        clock.time("discard, just added", trie.discard, unknown)
        clock.time("discard, from a segment", trie.discard, some)

    def others(self) -> None:
        keys, each = self.keys, len(self.keys)
        if self.with_marisa:
            found = marisa(keys, self.host)
            assert found["count"] == self.host_urls
            self.size("marisa-trie", found["bytes"] / each, f"{found['build_s'] / each * 1e6:.1f} µs a URL")
            calls = {"has, known": "has_s", "has, unknown": "lacks_s", "count of the large host": "count_s"}
            calls["leftmost leaf of a folder"] = "leaf_s"
            rows = [[what, f"{found[name] * 1e6:,.1f}"] for what, name in calls.items()]
            print(table(["marisa-trie, CPU µs a call", "mean"], rows), end="\n\n")
        text = sum(map(len, keys)) / each
        members = set(keys)
        self.size("Python set of bytes", (sys.getsizeof(members) + sum(map(sys.getsizeof, members))) / each)
        self.size("raw text", text + 1, "one a line")
        bloom = -math.log(0.01) / math.log(2) ** 2 / 8
        self.size("Bloom filter, 1 % wrong", bloom, "computed: no counts, no order")

    def judge(self, in_memory: float, on_disk: float) -> None:
        verdict = Verdict()
        rows = self.clock.rows
        count_s = rows["count of the large host"][0]
        leaf_s = max(rows[what][0] for what in ("leftmost leaf of a folder", "at or after", "before"))
        verdict.judge(f"{len(self.keys):,} URLs, at least {LEAST_URLS:,}", len(self.keys) >= LEAST_URLS)
        verdict.judge(f"in memory {in_memory:.2f} B/URL, at most {MOST_BYTES:g}", in_memory <= MOST_BYTES)
        verdict.judge(f"on disk {on_disk:.2f} B/URL, at most {MOST_DISK_BYTES:g}", on_disk <= MOST_DISK_BYTES)
        verdict.judge(
            f"count of {self.host_urls:,} URLs in {count_s * 1e3:.3f} ms, at most 10", count_s <= MOST_COUNT_S
        )
        verdict.judge(f"a host of {self.host_urls:,}, at least {HOST_URLS:,}", self.host_urls >= HOST_URLS)
        verdict.judge(f"leaf and neighbours in {leaf_s * 1e3:.3f} ms, at most 1", leaf_s <= MOST_LEAF_S)
        verdict.exit()


if __name__ == "__main__":
    main()
