"""What the sorted keys on disk answer as a trie, in microseconds and bytes a URL, beside marisa-trie in memory.

The URLs are the file names of Debian's documentation packages under realistic hosts (`ground/debian_urls.py`), the
keys those of the state. marisa-trie is measured in an environment of its own (`--only state` leaves it out).
"""

import ctypes
import gc
import json
import random
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from lycosa.errors import LycosaError
from lycosa.frontier import UrlRow, UrlState
from lycosa.inspect import known_urls
from lycosa.records import Family
from lycosa.store import Batch, State
from lycosa.web import url_from_key, url_key
from proof import Bar, Experiment, Run
from proof.ground.commands import memory_mb, scratch
from proof.ground.debian_urls import documentation_urls
from proof.ground.peers import environment

URLS, QUICK_URLS = 2_000_000, 100_000  # at most, the first in key order
HOST_URLS = 100_000  # what a large host has
ASKED = 5_000
BATCH_URLS = 2_000
SEED = 4
QUESTIONS = Path(__file__).parents[1] / "ground" / "marisa_questions.py"


def cpu_of_calls(call: Callable[[str], object], urls: Sequence[str]) -> tuple[float, float]:
    """CPU microseconds of a call: the mean and the worst."""
    spent = []
    for url in urls:
        began = time.thread_time()
        call(url)
        spent.append(time.thread_time() - began)
    return 1e6 * sum(spent) / len(spent), 1e6 * max(spent)


def memory_bytes() -> float:
    """Resident memory, after what is free has gone back to the kernel."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return memory_mb() * 1024 * 1024


def marisa(keys: list[bytes], host: bytes) -> dict[str, float]:
    python = environment("marisa", "marisa-trie>=1.4")
    stream = b"".join(len(key).to_bytes(2) + key for key in keys)
    command = [str(python), str(QUESTIONS), host.hex()]
    done = subprocess.run(command, input=stream, capture_output=True, check=False)
    if done.returncode:
        raise LycosaError(f"marisa-trie failed:\n{done.stderr.decode()}")
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
        assert sum(1 for _ in state.walk(Family.URL)) == len(keys)
        return sum(table.stat().st_size for table in state.path.glob("*.sst")) / len(keys)


def largest_host(keys: list[bytes]) -> tuple[bytes, int]:
    """The host whose number of URLs is nearest to 100,000 from above, as a prefix; else the largest."""
    sizes = Counter(key[: key.index(b"\0", 2) + 1] for key in keys)
    above = [(size, host) for host, size in sizes.items() if size >= HOST_URLS]
    size, host = min(above) if above else max((size, host) for host, size in sizes.items())
    return host, size


def measure(run: Run) -> None:
    run.say("making the URLs")
    keys = [url_key(url) for url in documentation_urls()][: QUICK_URLS if run.quick else URLS]
    host, host_urls = largest_host(keys)
    run.figure("URLs", len(keys))
    run.figure("URLs of the large host", host_urls)
    if "marisa-trie" in run.chosen:
        run.say("marisa-trie")
        found = marisa(keys, host)
        assert found["count"] == host_urls
        calls = {"has, known": "has_s", "has, unknown": "lacks_s", "count of the large host": "count_s"}
        calls["leftmost leaf of a folder"] = "leaf_s"
        rows = [(what, round(found[name] * 1e6, 1)) for what, name in calls.items()]
        run.table(["marisa-trie in memory", "CPU µs a call"], rows)
        run.figure("marisa-trie, in memory", found["bytes"] / len(keys), "B/URL")
    with scratch() as folder:
        run.say("the state, written in any order and compacted")
        run.figure("on disk", write(folder, keys), "B/URL")
        some = [url_from_key(key) for key in random.Random(SEED).sample(keys, ASKED)]
        total = len(keys)
        del keys
        grown, calls_us = ask(folder, some, url_from_key(host + b"/"), host_urls)
    run.figure("in memory, caches included", grown / total, "B/URL")
    asked = [(what, round(mean, 1), round(worst)) for what, (mean, worst) in calls_us.items()]
    run.table(["the state on disk", "CPU µs a call", "worst"], asked)
    run.figure("count of the large host", calls_us["count of the large host"][0] / 1000, "ms")
    near = max(calls_us[what][0] for what in ("leftmost leaf of a folder", "after", "before"))
    run.figure("leaf and neighbours", near / 1000, "ms")


def ask(folder: Path, some: list[str], host: str, host_urls: int) -> tuple[float, dict[str, tuple[float, float]]]:
    """By how many bytes the process grows while it asks, and the CPU of every question, of known and unknown URLs."""
    unknown = [url + "~" for url in some]
    before = memory_bytes()
    with State.open(folder / "state") as state:
        known = known_urls(state)
        assert known.count(host) == host_urls
        calls: dict[str, tuple[Callable[[str], object], Sequence[str]]] = {
            "has, known": (known.__contains__, some),
            "has, unknown": (known.__contains__, unknown),
            "count of the large host": (lambda _: known.count(host), some[:20]),
            "count of a folder": (lambda url: known.count(folder_of(url)), some),
            "leftmost leaf of a folder": (lambda url: known.first(folder_of(url)), some),
            "after": (known.after, unknown),
            "before": (known.before, unknown),
        }
        found = {what: cpu_of_calls(call, urls) for what, (call, urls) in calls.items()}
        return memory_bytes() - before, found


def folder_of(url: str) -> str:
    return url[: url.rindex("/") + 1]


EXPERIMENT = Experiment(
    name="trie",
    summary="two million real URLs: bytes a URL in memory and on disk, and what a question costs",
    run=measure,
    choices=("state", "marisa-trie"),
    bars=(
        Bar("URLs enough", "URLs", ">=", 1_000_000),
        Bar("a host that is large", "URLs of the large host", ">=", HOST_URLS),
        Bar("small in memory", "in memory, caches included", "<=", 12.0),
        Bar("small on disk", "on disk", "<=", 25.0),
        Bar("a large host is counted quickly", "count of the large host", "<=", 100.0),
        Bar("neighbours are found at once", "leaf and neighbours", "<=", 1.0),
    ),
)
