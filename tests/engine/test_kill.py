"""Nothing lost: a crawl killed fifty times ends with exactly the truth, politely, and with whole files."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import pytest

from lycosa.simweb import SimSettings, SimWeb
from lycosa.simweb.audit import Rules, audit
from lycosa.simweb.log import Entry, read_log
from lycosa.simweb.truth import truth
from tests.engine.consistency import problems
from tests.simweb.conftest import lycosa, running_simweb

NOT_PAGES = ("robots.txt", ".xml", ".gz")
HOSTS, PAGES, DELAY_S, KILLS = 50, 20_000, 0.02, 50
LONGEST_S = 200


@pytest.mark.slow
def test_fifty_kills_lose_nothing(tmp_path: Path) -> None:
    log, into = tmp_path / "log", tmp_path / "crawl"
    with running_simweb("--hosts", str(HOSTS), "--pages", str(PAGES), "--log", str(log)) as (ready, _):
        web = SimWeb(SimSettings(hosts=HOSTS, pages=PAGES, port=ready.port))
        seed = f"http://h0.sim:{ready.port}/"
        names = ["--dns", f"127.0.0.1:{ready.dns_port}", "--allow-private", "127.0.0.0/8"]
        command = ["crawl", seed, "--into", str(into), "--scope", "any", "--delay", str(DELAY_S), *names, "--quiet"]
        kills = kill_often(command, random.Random(1))
    entries = list(read_log(log)[1])
    pages = [e for e in entries if e.status == 200 and not e.path.endswith(NOT_PAGES)]
    expected = truth(web, [seed], scope="any", mine="ancestors").pages
    assert {f"http://{e.host}:{ready.port}{e.path}" for e in pages} == expected
    assert unexplained_refetches(pages, kills) == []
    findings = audit(web.settings, entries, Rules(delay_s=DELAY_S))
    assert findings.is_clean, findings.broken()[:5]
    assert problems(into) == []
    files = [str(path) for path in sorted((into / "warc").iterdir())]
    command = [sys.executable, "-m", "warcio.cli", "check", *files]
    check = subprocess.run(command, capture_output=True, text=True, check=False)
    assert check.returncode == 0, check.stdout[-2000:]


def kill_often(command: list[str], chance: random.Random) -> list[float]:
    """Starts the command again and again and kills it at random moments; the last time it runs to its end."""
    kills: list[float] = []
    began = time.monotonic()
    while len(kills) < KILLS:
        assert time.monotonic() - began < LONGEST_S
        process = lycosa(*command)
        try:
            process.wait(timeout=0.6 + 1.2 * chance.random())
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


def unexplained_refetches(pages: list[Entry], kills: list[float]) -> list[str]:
    """URLs fetched again although their request had ended a second or more before every kill."""
    by_url: dict[str, list[Entry]] = defaultdict(list)
    for entry in sorted(pages, key=lambda e: e.start):
        by_url[f"{entry.host}{entry.path}"].append(entry)
    return [
        url
        for url, fetches in by_url.items()
        for before, after in pairwise(fetches)
        if not any(before.end > kill - 1.0 and kill <= after.start for kill in kills)
    ]
