"""Nothing lost: a crawl killed again and again ends with exactly the truth, politely, and with whole files."""

import os
import random
import signal
import subprocess
import time
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from lycosa.simweb.log import LoggedRequest
from tests.crawl.full_crawl import LONGEST_S, full_crawl, pages_of_whole
from tests.simweb.conftest import lycosa

PAGES, KILLS = 7_000, 14  # more pages than it can fetch before the last kill


@pytest.mark.slow
def test_kills_lose_nothing(tmp_path: Path) -> None:
    with full_crawl(tmp_path, PAGES) as crawl:
        kills = kill_often(crawl.words, KILLS, random.Random(1))
    assert unexplained_refetches(pages_of_whole(crawl), kills) == []


def kill_often(command: Sequence[str], times: int, chance: random.Random) -> list[float]:
    """Starts the command again and again and kills it at random moments; the last time it runs to its end."""
    kills: list[float] = []
    while len(kills) < times:
        process = lycosa(*command)
        try:
            process.wait(timeout=0.5 + chance.random())
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            kills.append(time.monotonic())
            process.communicate()
            continue
        pytest.fail(f"the crawl ended after {len(kills)} kills: {process.communicate()}")
    process = lycosa(*command)
    try:
        _, err = process.communicate(timeout=LONGEST_S)
    finally:
        process.kill()
    assert process.returncode == 0, err
    return kills


def unexplained_refetches(pages: list[LoggedRequest], kills: list[float]) -> list[str]:
    """URLs fetched again although their request had ended a second or more before every kill."""
    by_url: dict[str, list[LoggedRequest]] = defaultdict(list)
    for entry in sorted(pages, key=lambda e: e.start):
        by_url[f"{entry.host}{entry.path}"].append(entry)
    return [
        url
        for url, fetches in by_url.items()
        for before, after in pairwise(fetches)
        if not any(before.end > kill - 1.0 and kill <= after.start for kill in kills)
    ]
