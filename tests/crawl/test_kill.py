"""Nothing lost: a crawl killed again and again ends with exactly the truth, politely, and with whole files."""

import os
import random
import signal
import subprocess
import time
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from lycosa.records import Family
from lycosa.simweb.log import LoggedRequest
from lycosa.store import CollectionStore, is_collection
from lycosa.web import url_from_key
from tests.crawl.full_crawl import LONGEST_S, FullCrawl, full_crawl, pages_of_whole
from tests.simweb.conftest import lycosa, wait_until_read

PAGES, KILLS = 7_000, 14  # more pages than it can fetch before the last kill


@pytest.mark.slow
def test_kills_lose_nothing(tmp_path: Path) -> None:
    with full_crawl(tmp_path, PAGES) as crawl:
        kills = kill_often(crawl, KILLS, random.Random(1))
    assert kills[-1].committed
    assert refetches_of_committed(pages_of_whole(crawl), kills, crawl.port) == []


class Killed(NamedTuple):
    """When a crawl was killed, when the web had read all its requests, and the URLs that it had committed as pages."""

    at: float
    heard: float
    committed: set[str]


def kill_often(crawl: FullCrawl, times: int, chance: random.Random) -> list[Killed]:
    """Starts the crawl again and again and kills it at random moments; the last time it runs to its end."""
    kills: list[Killed] = []
    slower = 1.0  # on a busy machine a crawl needs longer to get anywhere
    while len(kills) < times:
        if len(kills) > 1 and len(kills[-1].committed) <= len(kills[-2].committed):
            slower *= 1.3
        process = lycosa(*crawl.words)
        try:
            process.wait(timeout=slower * (0.5 + chance.random()))
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            at = time.monotonic()
            process.communicate()
            wait_until_read(crawl.port)
            kills.append(Killed(at, time.monotonic(), committed_pages(crawl.into)))
            continue
        pytest.fail(f"the crawl ended after {len(kills)} kills: {process.communicate()}")
    process = lycosa(*crawl.words)
    try:
        _, err = process.communicate(timeout=LONGEST_S)
    finally:
        process.kill()
    assert process.returncode == 0, err
    return kills


def committed_pages(into: Path) -> set[str]:
    if not is_collection(into):  # killed before there was one
        return set()
    with CollectionStore.open(into, read_only=True) as collection:
        return {url_from_key(key) for key, _ in collection.state.walk(Family.PAGE)}


def refetches_of_committed(pages: list[LoggedRequest], kills: list[Killed], port: int) -> list[str]:
    """URLs fetched again although they were committed at the last kill before, or there was no kill in between."""
    by_url: dict[str, list[LoggedRequest]] = defaultdict(list)
    for entry in sorted(pages, key=lambda e: e.start):
        by_url[f"http://{entry.host}:{port}{entry.path}"].append(entry)
    found = []
    for url, fetches in by_url.items():
        for before, after in pairwise(fetches):
            between = [kill for kill in kills if before.start < kill.heard and kill.at <= after.start]
            if not between or any(url in kill.committed for kill in between):
                found.append(url)
    return found
