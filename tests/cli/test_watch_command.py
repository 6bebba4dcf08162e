"""`lycosa watch`: the overview on a whole terminal, and lines where there is none."""

import codecs
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from rich.console import Console

from lycosa.cli.progress import STEP_S, STEPS, RateHistory
from lycosa.cli.watch import screen
from lycosa.crawl import CrawlStats
from lycosa.crawl.stats import InFlight
from lycosa.simweb import SimSettings, SimWeb
from tests.cli.command import ended, started
from tests.crawl.memory_crawl import crawl, front

WEB = SimWeb(SimSettings(hosts=2, pages=30, rtt_ms=20))
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    into = tmp_path_factory.mktemp("watch") / "c"
    crawl(WEB, into, front(WEB), pages=8)
    return into


def test_rates_of_samples_that_are_far_apart_fill_the_time_between_them() -> None:
    rates = RateHistory()
    rates.begin(0.0, 0)
    rates.add(STEP_S / 2, 3)  # too soon to say anything
    rates.add(10 * STEP_S, 100 * int(STEP_S))
    assert list(rates.rates) == [10.0] * 10
    rates.begin(1_000.0, 500)  # nobody counted meanwhile
    rates.add(1_000.0 + STEP_S, 500)
    assert list(rates.rates)[10:] == [0.0]
    rates.add(1e9, 600)
    assert len(rates.rates) == STEPS


def test_screen_names_the_state_and_marks_what_fails(tmp_path: Path) -> None:
    stats = CrawlStats(
        pages=12,
        statuses=Counter({"200": 12, "500": 3}),
        failed=Counter({"500": 1}),
        in_flight=1,
        fetching=(InFlight("http://slow.example/", time.time() - 30.0),),
        limit_share=0.4,
    )
    console = Console(width=90, color_system="standard", force_terminal=True, highlight=False, legacy_windows=False)
    with console.capture() as captured:
        console.print(screen(tmp_path, stats, RateHistory(), "running", console.width, "utf-8"))
    lines = captured.get().splitlines()
    assert "running" in lines[0]
    assert any("\x1b[31m" in line and "3 500" in line for line in lines), "answers that fail are red"
    assert any("\x1b[33m" in line and "slow.example" in line for line in lines), "what takes long is yellow"
    assert any("40 %" in line for line in lines)


@pytest.mark.slow
@pytest.mark.parametrize("key", ["Ctrl-C", "q"])
def test_terminal_is_filled_and_given_back(stopped: Path, key: str) -> None:
    leader, follower = pty.openpty()
    words = [sys.executable, "-m", "lycosa", "watch", str(stopped), "--every", "0.2"]
    process = subprocess.Popen(
        words, stdin=follower, stdout=follower, stderr=follower, env={**os.environ, "TERM": "xterm"}
    )
    os.close(follower)
    said, decoded = "", codecs.getincrementaldecoder("utf-8")()  # a piece may end within a character
    while "nothing in flight" not in said:  # the last line of a screen
        said += decoded.decode(os.read(leader, 65_536))
    if key == "q":
        os.write(leader, b"x")
        time.sleep(0.3)
        os.write(leader, b"q")
    else:
        process.send_signal(signal.SIGINT)
    while True:
        try:
            said += decoded.decode(os.read(leader, 65_536))
        except OSError:  # it has ended
            break
    assert process.wait(timeout=120) == (0 if key == "q" else 130)
    os.close(leader)
    shown = ESCAPES.sub("", said)
    assert "\x1b[?1049h" in said and "\x1b[?1049l" in said, "the screen of before comes back"
    assert "stopped" in shown
    assert re.search(r"pages +8, ", shown)
    assert "Traceback" not in shown


@pytest.mark.slow
def test_pipe_gets_a_line_each_time(stopped: Path) -> None:
    process = started("watch", stopped, "--every", "0.2")
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(2)]
    process.send_signal(signal.SIGINT)
    assert ended(process).err == ""
    assert [line.partition(",")[0] for line in lines] == ["8 pages", "8 pages"]
