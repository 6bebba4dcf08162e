"""A crawl starts at once, stops when told, and goes on from there without asking twice."""

import contextlib
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.command import REPOSITORY, TIMEOUT_S, Web, ended, lycosa, simulated_web, started
from tests.cli.small_disk import check

STOP_S = 20.0  # an answer may take thirty
INTERRUPTED = 130
# A crawl whose first Ctrl-C gives what is in flight more time than any test has.
PATIENT = "import lycosa.crawl.loop; lycosa.crawl.loop.STOP_GRACE_S = 3_600.0; from lycosa.cli import main; main()"

pytestmark = pytest.mark.slow


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """A server that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(120)
        yield listener


@pytest.fixture
def slow_web(tmp_path: Path) -> Iterator[Web]:
    """It takes seconds to crawl, however fast the machine."""
    with simulated_web(tmp_path, "--hosts", "4", "--pages", "300", "--rtt", "300") as web:
        yield web


@pytest.fixture
def endless_web(tmp_path: Path) -> Iterator[Web]:
    """More pages than a test waits for, however slow the machine."""
    with simulated_web(tmp_path, "--hosts", "4", "--pages", "20000", "--rtt", "100") as web:
        yield web


def url_of(listener: socket.socket) -> str:
    return f"http://127.0.0.1:{listener.getsockname()[1]}/"


def wait_for(what: Callable[[], bool], *, within_s: float = 120.0) -> None:
    deadline = time.monotonic() + within_s
    while not what():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


def test_crawl_of_a_collection_that_was_killed_goes_on_with_its_queue(silent: socket.socket, tmp_path: Path) -> None:
    """How soon it does with a million URLs is measured by `make bench NAME=start`."""
    build = [sys.executable, "-m", "proof.ground.killed_collection", str(tmp_path / "c"), "5000"]
    subprocess.run(build, check=True, cwd=REPOSITORY, timeout=300)

    running = started("crawl", url_of(silent), "--into", tmp_path / "c", "-q", "--dns", "127.0.0.1:9")
    silent.accept()[0].close()
    running.kill()
    running.communicate()

    assert lycosa("status", tmp_path / "c", "--json").facts["queued"] == 5_001


def test_crawl_interrupted_ends_soon_and_asks_for_nothing_twice(slow_web: Web, tmp_path: Path) -> None:
    words = slow_web.crawl(tmp_path / "c", "--scope", "any", "--per-host", "4", "--json", "-q")
    running = started(*words)
    wait_for(lambda: len(slow_web.requests()) >= 30)
    running.send_signal(signal.SIGINT)
    first = ended(running)
    second = lycosa(*words)

    assert (first.code, second.code) == (INTERRUPTED, 0)
    assert (first.complaints, second.complaints) == ([], [])
    asked = Counter((entry["host"], entry["path"]) for entry in slow_web.requests())
    assert [request for request, times in asked.items() if times > 1] == []
    assert 0 < first.facts["pages"] < second.facts["pages"]
    assert second.facts["queued"] == 0
    assert check(tmp_path / "c" / "warc").code == 0


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_crawl_interrupted_does_not_wait_for_a_host_that_is_silent(
    silent: socket.socket, tmp_path: Path, signum: signal.Signals
) -> None:
    running = started("crawl", url_of(silent), "--into", tmp_path / "c", "-q")
    with silent.accept()[0]:
        running.send_signal(signum)
        running.wait(timeout=STOP_S)
        said = ended(running)

    assert (said.code, said.complaints) == (INTERRUPTED, [])
    assert "1 still queued" in lycosa("status", tmp_path / "c").out


def test_crawl_interrupted_twice_does_not_wait_for_what_is_in_flight(silent: socket.socket, tmp_path: Path) -> None:
    into, command = tmp_path / "c", [sys.executable, "-c", PATIENT, "crawl", url_of(silent), "--into"]
    running = subprocess.Popen([*command, into, "-q"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with silent.accept()[0]:
        for patience_s in (1, 30, TIMEOUT_S):  # two that come before the first one is heard are one
            running.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                running.wait(patience_s)
                break
        said = ended(running)

    assert (said.code, said.complaints) == (INTERRUPTED, [])
    assert "1 still queued" in lycosa("status", into).out


# beside a running crawl


def test_commands_beside_a_running_crawl_tell_and_feed_it(endless_web: Web, tmp_path: Path) -> None:
    into = tmp_path / "c"
    running = started(*endless_web.crawl(into, "--per-host", "2", "--json", "-q"))  # scope: the first host alone
    try:
        wait_for(lambda: len(endless_web.requests()) >= 20)
        wait_for(lambda: lycosa("status", into, "--json").facts["pages"] > 0)
        before = lycosa("status", into, "--json")
        rows = lycosa("hosts", into, "--json")
        done, unknown = (
            lycosa("why", endless_web.url(), "--in", into),
            lycosa("why", endless_web.url(host=2), "--in", into),
        )
        added = lycosa("add", into, endless_web.url(host=2))
        wait_for(lambda: any(entry["host"] == "h2.sim" for entry in endless_web.requests()))
        wait_for(lambda: "done" in lycosa("why", endless_web.url(host=2), "--in", into).out)
        after = lycosa("status", into, "--json")
    finally:
        running.send_signal(signal.SIGINT)
        crawl = ended(running)

    assert [said.complaints for said in (before, rows, done, unknown, after, crawl)] == [[]] * 6
    assert '"host":"http://h0.sim' in rows.out
    assert "done" in done.out
    assert "out-of-scope" in unknown.out
    assert added.code == 0
    assert 0 < before.facts["pages"] < after.facts["pages"] <= crawl.facts["pages"]
    assert after.facts["hosts"] == before.facts["hosts"] + 1


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_crawl_without_a_standard_stream_is_a_crawl(closed: str, tmp_path: Path) -> None:
    with simulated_web(tmp_path, "--hosts", "1", "--pages", "20") as web:
        said = ended(started(*web.crawl(tmp_path / "c", "--pages", "3"), before=("sh", "-c", f'"$@" {closed}', "sh")))

    assert said.code == 0
    assert lycosa("status", tmp_path / "c", "--json").facts["pages"] == 3
    assert ended(started("urls", tmp_path / "c", before=("sh", "-c", f'"$@" {closed}', "sh"))).code == 0
