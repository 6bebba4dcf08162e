"""A small real experiment, registered by the tests as another package would: how even is assignment by hash?"""

import hashlib
import random

from proof import Axis, Bar, Column, ColumnChart, Distribution, Experiment, Line, LineChart, Mark, Run, Sample

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def letter_sum(host: str) -> int:
    return sum(LETTERS.find(letter) + 1 for letter in host)


def digest(host: str) -> int:
    return int.from_bytes(hashlib.blake2b(host.encode(), digest_size=8).digest())


HASHES = {"sum of letters": letter_sum, "digest of the host": digest}


def largest_share(hosts: list[str], crawlers: int, hash_name: str) -> float:
    """The largest part, as a multiple of the fair one."""
    parts = [0] * crawlers
    for host in hosts:
        parts[HASHES[hash_name](host) % crawlers] += 1
    return max(parts) * crawlers / len(hosts)


def run(run: Run) -> None:
    hosts_count, tries = (300, 3) if run.quick else (2000, 10)
    crawler_counts = [2, 4, 8, 16, 32]
    run.setting("hosts", hosts_count)
    run.setting("tries", tries)
    found: dict[str, dict[int, list[float]]] = {name: {n: [] for n in crawler_counts} for name in HASHES}
    with run.progress(tries, "tries") as step:
        for attempt in range(tries):
            source = random.Random(f"{run.seed}/{attempt}")
            hosts = ["".join(source.choices(LETTERS, k=source.randint(4, 14))) for _ in range(hosts_count)]
            for name in HASHES:
                for n in crawler_counts:
                    found[name][n].append(largest_share(hosts, n, name))
            step.advance()
    means = {name: {n: sum(found[name][n]) / tries for n in crawler_counts} for name in HASHES}
    run.figure("largest part of 8", means["sum of letters"][8], "fair parts")
    run.figure("largest part of 32", means["sum of letters"][32], "fair parts")
    run.figure("hosts", hosts_count)
    rows = [(n, means["sum of letters"][n], means["digest of the host"][n]) for n in crawler_counts]
    run.table(["crawlers", *HASHES], rows)
    lines = []
    for name in HASHES:
        low = [min(found[name][n]) for n in crawler_counts]
        high = [max(found[name][n]) for n in crawler_counts]
        lines.append(Line(name, crawler_counts, [means[name][n] for n in crawler_counts], low, high))
    x, y = Axis("crawlers", log=True), Axis("largest part", "fair parts")
    run.plot(
        LineChart(
            "The largest part grows with the number of crawlers", x, y, tuple(lines), (Mark(1, "perfectly even"),)
        )
    )
    columns = tuple(Column(n, means[n][32], min(found[n][32]), max(found[n][32])) for n in HASHES)
    run.plot(ColumnChart("With 32 crawlers the largest part is a quarter too large", y, columns, (Mark(1, "even"),)))
    values = [part for parts in found["sum of letters"].values() for part in parts]
    run.plot(Distribution("All tries", y, (Sample("sum of letters", values),)))


EXPERIMENT = Experiment(
    name="hash-share",
    summary="how even the parts are when hosts are assigned by hash",
    claim_id="H1",
    claim="The standard deviation of the parts is near 0.",
    bars=(
        Bar("even among 8", "largest part of 8", "<=", 1.4),
        Bar("no part below fair", "largest part of 32", ">=", 1.0),
        Bar("a plausible part", "largest part of 8", "within", (1.0, 2.0)),
    ),
    run=run,
)
