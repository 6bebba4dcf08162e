"""A crawl of the hostile web by the real command, beside good hosts, and what came of each row.

The web is served by this process. The crawl ends when every row has its outcome and the good hosts are done, or when
its time is up. Used by the benchmark `hostile-web` and by the tests.
"""

import asyncio
import json
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from lycosa.simweb import HostileRow, HostileWeb, serve_hostile
from proof.ground.commands import lycosa, memory_mb

LOOK_S = 0.25  # how often the log is read
CALM_S = 1.0  # how long a crawl goes on when all has come, to be caught at more
SLACK_S = 3.0  # a busy machine ends a transfer this much after its deadline


class RowResult(NamedTuple):
    """What a crawl made of a row: the outcome of its front page, its requests, and the longest of them."""

    row: HostileRow
    outcome: str
    requests: int
    longest_s: float

    def wrong(self, total_s: float) -> str:
        """What is not as the row has it; "" where all is right."""
        if self.outcome not in self.row.front.split("|"):
            return f"{self.row.name}: {self.outcome}, not {self.row.front}"
        if self.requests > self.row.most:
            return f"{self.row.name}: {self.requests} requests, at most {self.row.most} are right"
        if self.longest_s > total_s + SLACK_S:
            return f"{self.row.name}: a request took {self.longest_s:.1f} s"
        return ""


class HostileCrawl(NamedTuple):
    """One crawl: how it ended, the most memory it took, what came of the rows, and of the good hosts."""

    code: int
    said: str
    peak_mb: float
    cpu_s: float
    results: list[RowResult]
    good_pages: int
    good_done: bool
    good_rate: float
    trespasses: list[str]
    heads: dict[str, str]


def crawl_hostile(
    rows: Sequence[HostileRow],
    folder: Path,
    *,
    good: int,
    good_pages: int,
    total_s: float,
    most_s: float,
    delay_s: float = 0.02,
    whole_time: bool = False,
) -> HostileCrawl:
    """Crawls the rows and so many good hosts into `folder`/crawl. `whole_time`: for all of `most_s`."""
    return asyncio.run(_crawl(rows, folder, good, good_pages, total_s, most_s, delay_s, whole_time))


async def _crawl(
    rows: Sequence[HostileRow],
    folder: Path,
    good: int,
    good_pages: int,
    total_s: float,
    most_s: float,
    delay_s: float,
    whole_time: bool,
) -> HostileCrawl:
    log, ca_file, config = folder / "requests.jsonl", folder / "ca.pem", folder / "hostile.toml"
    async with serve_hostile(ca_file=ca_file, good_pages=good_pages) as web:
        config.write_text(f'total_s = {total_s}\nca_file = "{ca_file}"\n')
        seeds = [*(web.seed(row) for row in rows), *(web.good_seed(number) for number in range(good))]
        (folder / "seeds.txt").write_text("".join(f"{seed}\n" for seed in seeds))
        words: list[str | Path] = [
            "crawl",
            "-i",
            folder / "seeds.txt",
            "--into",
            folder / "crawl",
            "--config",
            config,
            "-q",
        ]
        words += ["--scope", "domain", "--images", "--cookies", "--delay", str(delay_s), "--request-log", log]
        words += ["--dns", f"127.0.0.1:{web.dns_port}", "--allow-private", web.ALLOWED]
        said = folder / "said.txt"
        process = await asyncio.to_thread(_start, [str(word) for word in lycosa(*words)], said)
        peak_mb = await _watch(process, log, web, rows, good * good_pages, most_s, whole_time)
        _, status, usage = os.wait4(process.pid, 0)  # noqa: ASYNC222  # it has ended
        process.returncode = os.waitstatus_to_exitcode(status)
        asked = _good_asked(web)
        return HostileCrawl(
            process.returncode,
            said.read_text(),
            peak_mb,
            usage.ru_utime + usage.ru_stime,
            _results(rows, web, _read(log)),
            asked,
            asked >= good * good_pages,
            asked / max(web.good_until_s - web.good_since_s, 1e-9),
            list(web.trespasses),
            dict(web.heads),
        )


def _start(command: list[str], said: Path) -> "subprocess.Popen[bytes]":
    with said.open("wb") as output:
        return subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)


async def _watch(
    process: "subprocess.Popen[bytes]",
    log: Path,
    web: HostileWeb,
    rows: Sequence[HostileRow],
    good_pages: int,
    most_s: float,
    whole_time: bool,
) -> float:
    """Until the crawl has ended by itself, or was told to. Returns the most memory that it took: what the system says
    of a process that has ended counts what its parent had."""
    until, peak_mb, is_told = time.monotonic() + most_s, 0.0, False
    ended = os.WEXITED | os.WNOWAIT
    while os.waitid(os.P_PID, process.pid, ended | os.WNOHANG) is None:  # noqa: ASYNC222  # it does not wait
        await asyncio.sleep(LOOK_S)
        peak_mb = max(peak_mb, memory_mb(process.pid, peak=True))
        if is_told:
            continue
        is_over = time.monotonic() > until
        if not is_over and not whole_time and _good_asked(web) >= good_pages:
            wanting = [result for result in _results(rows, web, _read(log)) if result.outcome == "-"]
            is_over = all("-" in result.row.front.split("|") for result in wanting)
            await asyncio.sleep(CALM_S if is_over else 0)
        if is_over:
            process.send_signal(signal.SIGINT)
            is_told = True
    return peak_mb


def _good_asked(web: HostileWeb) -> int:
    """Pages of good hosts that were asked for."""
    return sum(count for name, count in web.pages.items() if name.startswith("good-"))


def _read(log: Path) -> list[dict[str, object]]:
    lines = log.read_bytes().splitlines(keepends=True) if log.exists() else []
    return [json.loads(line) for line in lines if line.endswith(b"\n")]


def _results(rows: Sequence[HostileRow], web: HostileWeb, lines: list[dict[str, object]]) -> list[RowResult]:
    by_url: dict[str, dict[str, object]] = {}
    longest: dict[str, float] = {}
    for line in lines:
        url = str(line["url"])
        by_url.setdefault(url, line)
        host = url.split("/")[2].partition(":")[0]
        longest[host] = max(longest.get(host, 0.0), float(str(line.get("total_ms", 0))) / 1_000)
    found = []
    for row in rows:
        seed = web.seed(row)
        front, robots = by_url.get(seed), by_url.get(f"{seed}robots.txt", {})
        outcome = str(front.get("failure") or front.get("status")) if front else str(robots.get("failure") or "-")
        found.append(RowResult(row, outcome, web.asked[row.name], longest.get(row.host, 0.0)))
    return found
