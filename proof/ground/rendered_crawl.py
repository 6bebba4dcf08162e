"""One crawl of the benchmark `rendering`: `python -m proof.ground.rendered_crawl URL INTO KILLS`.

Crawls an application with `--render auto` and no delay, kills its browser so many times on the way, and looks at its
memory each second. Prints one JSON object.
"""

import asyncio
import contextlib
import gc
import json
import os
import signal
import sys
import time
from pathlib import Path

from lycosa.api.crawl import Crawl
from proof.ground.commands import descendants
from proof.ground.hostile_crawl import longest_hold_s

KILL_EVERY_S = 3.0
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def private_mb(pid: int) -> float:
    """The memory of a process that it does not share with files."""
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{pid}/statm").read_text().split()
        return (int(fields[1]) - int(fields[2])) * PAGE_BYTES / 1e6
    return 0.0


def command_line(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def browsers() -> list[int]:
    return [pid for pid in descendants(os.getpid()) if b"--lycosa-browser=" in command_line(pid)]


def memory() -> tuple[float, float]:
    """That of this process, and of its browser and driver."""
    return private_mb(os.getpid()), sum(private_mb(pid) for pid in descendants(os.getpid()))


async def kill_browsers(times: int, done: list[float]) -> None:
    while len(done) < times:
        await asyncio.sleep(KILL_EVERY_S)
        if pids := await asyncio.to_thread(browsers):
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            done.append(time.monotonic())


async def watch_memory(samples: list[tuple[int, float, float]], running: Crawl) -> None:
    while True:
        await asyncio.sleep(1.0)
        own, others = await asyncio.to_thread(memory)  # on a thread: all processes are looked at
        samples.append((running.stats().pages, own, others))


async def crawl(url: str, into: Path, kills: int) -> dict[str, object]:
    samples, killed = list[tuple[int, float, float]](), list[float]()
    async with Crawl(url, into=into, delay_s=0, render="auto", mine="off", sitemaps=False) as running:
        gc.freeze()  # as the command does
        beside = [
            asyncio.create_task(work)
            for work in (longest_hold_s(), kill_browsers(kills, killed), watch_memory(samples, running))
        ]
        began = time.monotonic()
        stats = await running.finish()
        seconds = time.monotonic() - began
        for task in beside:
            task.cancel()
        held_s = await beside[0]
    return {"pages": stats.pages, "seconds": seconds, "held_s": held_s, "kills": len(killed), "samples": samples}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(crawl(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])))))
