"""Ten million known URLs, half of them queued: memory, seen tests a second and bytes a URL of the state.

    python -m proof.bench.state [--urls 10000000] [--folder DIR]

Keys are host first as the frontier makes them: a bucket of two bytes, reversed name, port and scheme, zero, path.
Hosts and paths are made by arithmetic from a number, so that any known key can be asked for without holding it.
"""

import argparse
import random
import shutil
import struct
import tempfile
import time
import zlib
from pathlib import Path

from lycosa.records import Family
from lycosa.store.state import Batch, State

HOSTS = 20_000
WORDS = 4_000
BATCH_URLS = 2_000  # about what a quarter second of crawling commits
ASK_AT_ONCE = 100  # about the links of a page and of its neighbours in a commit
ASKED = 200_000


class Web:
    """Made-up URLs: `key(i)` is a known key, `path` and `host` its parts."""

    def __init__(self) -> None:
        choose = random.Random(7)
        syllables = [a + b for a in "bcdfghklmnprstvwz" for b in "aeiou"]
        self.words = ["".join(choose.choices(syllables, k=choose.randint(2, 4))) for _ in range(WORDS)]
        self.hosts = [self._host(choose, number) for number in range(HOSTS)]
        self.sections = [choose.choices(self.words, k=12) for _ in range(HOSTS)]

    def _host(self, choose: random.Random, number: int) -> bytes:
        domain = f"{choose.choice(['com', 'org', 'net', 'de', 'fr', 'uk.co'])}.{choose.choice(self.words)}{number}"
        bucket = zlib.crc32(domain.encode()) & 0xFFFF
        return struct.pack(">H", bucket) + f"{domain}{choose.choice(['.www', '', '.docs'])}:443:https".encode()

    def url(self, number: int) -> tuple[int, bytes]:
        """(host, path): hosts skewed, the first ones large; the number in the path makes it unique."""
        mixed = (number * 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
        mixed = ((mixed ^ (mixed >> 29)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
        host = int(HOSTS * ((mixed & 0xFFFFF) / 0x100000) ** 3)
        section, words, rest = self.sections[host], self.words, mixed >> 20
        first, second = section[rest % 12], section[rest // 12 % 7]
        one, two, three = words[(rest >> 7) % WORDS], words[(rest >> 19) % WORDS], words[(rest >> 31) % WORDS]
        kind = number % 10
        if kind < 6:
            return host, f"/{first}/{second}/{one}-{two}-{three}-{number}.html".encode()
        if kind < 8:
            return host, f"/{first}/{one}-{two}/{number}/".encode()
        return host, f"/{first}/{second}?id={number}&view={one}".encode()

    def key(self, number: int) -> bytes:
        host, path = self.url(number)
        return self.hosts[host] + b"\0" + path


def fill(state: State, web: Web, urls: int) -> None:
    sequence = [0] * HOSTS
    for start in range(0, urls, BATCH_URLS):
        batch = Batch()
        for number in range(start, min(start + BATCH_URLS, urls)):
            host, path = web.url(number)
            key = web.hosts[host]
            batch.put(Family.URL, key + b"\0" + path, struct.pack(">BBBBI", 1, 3, 0, 0, number & 0xFFFF))
            if number & 1:
                sequence[host] += 1
                batch.put(Family.QUEUE, key + b"\0\x01" + sequence[host].to_bytes(6), path)
        state.write(batch)


def ask(state: State, web: Web, urls: int, *, known_share: float, seed: int) -> tuple[float, float]:
    """Seen tests a second by the clock and by this thread's CPU time, the making of keys not counted."""
    choose, spent_s, busy_s, found, expected = random.Random(seed), 0.0, 0.0, 0, 0
    for _ in range(ASKED // ASK_AT_ONCE):
        are_known = [choose.random() < known_share for _ in range(ASK_AT_ONCE)]
        keys = [web.key(choose.randrange(urls)) + (b"" if is_known else b"~") for is_known in are_known]
        started_s, started_busy_s = time.perf_counter(), time.thread_time()
        answers = state.has_many(Family.URL, keys)
        spent_s += time.perf_counter() - started_s
        busy_s += time.thread_time() - started_busy_s
        found, expected = found + sum(answers), expected + sum(are_known)
    assert found == expected, f"{found} of {expected} known URLs found"
    return ASKED / spent_s, ASKED / busy_s


def memory_bytes() -> int:
    return _status_bytes("VmRSS")


def peak_bytes() -> int:
    """The most memory the process ever held."""
    return _status_bytes("VmHWM")


def _status_bytes(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def report(state: State, web: Web, urls: int, *, when: str) -> None:
    print(f"{when}:")
    for name, share in (("unknown", 0.0), ("half known", 0.5), ("known", 1.0)):
        clock, busy = ask(state, web, urls, known_share=share, seed=int(share * 2))
        print(f"  seen tests/s, {name:10}  {clock:12,.0f}  ({busy:,.0f} a second of its CPU time)")


def run(folder: Path, urls: int) -> None:
    web = Web()
    base_bytes = memory_bytes()
    with State.open(folder / "state") as state:
        started_s = time.perf_counter()
        fill(state, web, urls)
        print(f"{urls:,} URLs, {urls // 2:,} queued, written in {time.perf_counter() - started_s:.0f} s")
        report(state, web, urls, when="as written")
        started_s = time.perf_counter()
        state.compact()
        print(f"compacted in {time.perf_counter() - started_s:.0f} s")
        report(state, web, urls, when="compacted")
        stats = state.stats()
        grown_bytes = peak_bytes() - base_bytes
    print(f"disk, B/URL over all families  {stats.disk_bytes / urls:8.1f}")
    for name, family in stats.families.items():
        if family.disk_bytes:
            print(f"  {name:28} {family.disk_bytes / urls:8.1f}  of {family.keys_estimate:,} keys")
    cache_mb = stats.cache_most_bytes / 1e6
    print(f"memory above start, MB         {grown_bytes / 1e6:8.0f}  at most; block cache {cache_mb:.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--urls", type=int, default=10_000_000)
    parser.add_argument("--folder", type=Path, help="where to put the state (default: a temporary folder)")
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="lycosa-bench-", dir=arguments.folder))
    try:
        run(folder, arguments.urls)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
