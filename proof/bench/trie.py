"""What the sorted keys on disk answer as a trie, in microseconds and bytes a URL, beside marisa-trie in memory.

    python -m proof.bench.trie [--urls 2000000] [--folder DIR]

The URLs are the file names of Debian's documentation packages under realistic hosts (`proof.bench.url_lists`), the keys
those of the state. marisa-trie is measured in an environment of its own and is left out with `--without-marisa`.
"""

import argparse
import ctypes
import gc
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from lycosa.frontier.rows import UrlRow, UrlState
from lycosa.inspect.tree import known_urls
from lycosa.records import Family
from lycosa.store.state import Batch, State
from lycosa.web.url import url_from_key, url_key
from proof.bench.ground import environment, say
from proof.bench.measure import Verdict, load, resident_mb, table
from proof.bench.url_lists import documentation_urls

LEAST_URLS = 1_000_000
MOST_BYTES, MOST_DISK_BYTES = 12.0, 25.0
MOST_COUNT_S, MOST_NEAR_S = 0.1, 0.001
HOST_URLS = 100_000  # what a large host has
ASKED = 5_000
BATCH_URLS = 2_000
SEED = 4


class Clock:
    """CPU seconds of calls, one after the other: the mean and the worst."""

    def __init__(self) -> None:
        self.rows: dict[str, tuple[float, float]] = {}

    def time(self, what: str, call: Callable[[str], object], urls: Sequence[str]) -> float:
        spent = []
        for url in urls:
            began = time.thread_time()
            call(url)
            spent.append(time.thread_time() - began)
        mean_s, worst_s = sum(spent) / len(spent), max(spent)
        self.rows[what] = (mean_s, worst_s)
        return mean_s

    def table(self) -> str:
        rows = [[what, f"{mean * 1e6:,.1f}", f"{worst * 1e6:,.0f}"] for what, (mean, worst) in self.rows.items()]
        return table(["on disk, CPU µs a call", "mean", "worst"], rows)


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


def write(folder: Path, keys: list[bytes]) -> float:
    """A state with these keys, written in any order and compacted; returns its bytes a URL, with rows, index and
    filter."""
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--urls", type=int, default=2_000_000, help="at most, the first in key order")
    parser.add_argument("--folder", type=Path, help="where to put the state (default: a temporary folder)")
    parser.add_argument("--without-marisa", action="store_true")
    options = parser.parse_args()
    say("making the URLs")
    keys = [url_key(url) for url in documentation_urls()][: options.urls]
    host, host_urls = largest_host(keys)
    print(f"{len(keys):,} URLs, {host_urls:,} of them on the large host; {load()}\n")
    if not options.without_marisa:
        found = marisa(keys, host)
        assert found["count"] == host_urls
        calls = {"has, known": "has_s", "has, unknown": "lacks_s", "count of the large host": "count_s"}
        calls["leftmost leaf of a folder"] = "leaf_s"
        rows = [[what, f"{found[name] * 1e6:,.1f}"] for what, name in calls.items()]
        rows.append(["bytes a URL in memory", f"{found['bytes'] / len(keys):.2f}"])
        print(table(["marisa-trie in memory, CPU µs a call", "mean"], rows), end="\n\n")
    with tempfile.TemporaryDirectory(prefix="lycosa-bench-", dir=options.folder) as name:
        say("the state, written in any order and compacted")
        on_disk = write(Path(name), keys)
        some = [url_from_key(key) for key in random.Random(SEED).sample(keys, ASKED)]
        total = len(keys)
        del keys
        clock = Clock()
        in_memory = ask(Path(name), some, url_from_key(host + b"/"), host_urls, clock) / total
    print(clock.table())
    judge(total, host_urls, in_memory, on_disk, clock)


def ask(folder: Path, some: list[str], host: str, host_urls: int, clock: Clock) -> float:
    """Every question, of known URLs and of unknown ones; returns by how many bytes the process has grown."""
    say("asking it")
    unknown = [url + "~" for url in some]
    before = memory_bytes()
    with State.open(folder / "state") as state:
        known = known_urls(state)
        assert known.count(host) == host_urls
        clock.time("has, known", known.__contains__, some)
        clock.time("has, unknown", known.__contains__, unknown)
        clock.time("count of the large host", lambda _: known.count(host), some[:20])
        clock.time("count of a folder", lambda url: known.count(folder_of(url)), some)
        clock.time("leftmost leaf of a folder", lambda url: known.first(folder_of(url)), some)
        clock.time("after", known.after, unknown)
        clock.time("before", known.before, unknown)
        return memory_bytes() - before


def folder_of(url: str) -> str:
    return url[: url.rindex("/") + 1]


def judge(urls: int, host_urls: int, in_memory: float, on_disk: float, clock: Clock) -> None:
    verdict, count_s = Verdict(), clock.rows["count of the large host"][0]
    near_s = max(clock.rows[what][0] for what in ("leftmost leaf of a folder", "after", "before"))
    verdict.judge(f"{urls:,} URLs, at least {LEAST_URLS:,}", urls >= LEAST_URLS)
    verdict.judge(f"in memory, caches included, {in_memory:.2f} B/URL, at most {MOST_BYTES:g}", in_memory <= MOST_BYTES)
    verdict.judge(f"on disk {on_disk:.2f} B/URL, at most {MOST_DISK_BYTES:g}", on_disk <= MOST_DISK_BYTES)
    verdict.judge(f"count of {host_urls:,} URLs in {count_s * 1e3:.1f} ms, at most 100", count_s <= MOST_COUNT_S)
    verdict.judge(f"a host of {host_urls:,}, at least {HOST_URLS:,}", host_urls >= HOST_URLS)
    verdict.judge(f"leaf and neighbours in {near_s * 1e3:.3f} ms, at most 1", near_s <= MOST_NEAR_S)
    verdict.exit()


if __name__ == "__main__":
    main()
