"""Ctrl-C in the first moments of a command, whatever it is importing or opening just then."""

import contextlib
import json
import os
import random
import re
import signal
import socket
import time
from pathlib import Path

import pytest

from tests.cli.command import TIMEOUT_S, Said, ended, lycosa, simulated_web, started
from tests.simweb.conftest import running_simweb

INTERRUPTED = 130
MOMENTS = 24
# Before these have run there is only Python, which says what it always says.
NOT_YET_OURS = re.compile(r"runpy>|<frozen|lycosa/(__init__|__main__|cli/__init__|cli/startup)\.py|/lib/python3")

pytestmark = pytest.mark.slow


def is_too_early(said: Said) -> bool:
    """Whether the signal came before the command's first line was done."""
    if (said.code == -signal.SIGINT and not said.err) or "<frozen site>" in said.err:  # before Python was all there
        return True
    files = re.findall(r'File "([^"]*)"', said.err)
    return "Traceback" in said.err and all(NOT_YET_OURS.search(file) and "site-packages" not in file for file in files)


def test_crawl_interrupted_at_any_early_moment_ends_at_once_in_a_word(tmp_path: Path) -> None:
    rng = random.Random(3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        begun = time.monotonic()
        first = started("crawl", url, "--into", tmp_path / "first", "-q")
        silent.accept()[0].close()
        until_request_s = time.monotonic() - begun
        first.kill()
        first.communicate()
        told = 0
        for number in range(10 * MOMENTS):
            if number >= MOMENTS and told >= MOMENTS // 2:
                break
            running = started("crawl", url, "--into", tmp_path / str(number), "-q")
            time.sleep(rng.uniform(0.0, until_request_s))
            running.send_signal(signal.SIGINT)
            said = ended(running)
            if is_too_early(said):
                until_request_s *= 1.05  # the first one may have had the machine for itself
                continue
            told += 1
            assert said.code == INTERRUPTED, said
            assert (said.out, said.err) in {("", "interrupted\n"), ("", "")}, said  # a crawl under way ends as ever
    assert told >= MOMENTS // 2


def test_crawl_interrupted_while_it_makes_its_folder_goes_on_with_the_same_command(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        into = tmp_path / "c"
        running = started("crawl", url, "--into", into, "-q")
        while not into.exists():
            time.sleep(0.001)
        running.send_signal(signal.SIGINT)
        assert ended(running).code == INTERRUPTED
        again = started("crawl", url, "--into", into, "-q")
        silent.accept()[0].close()
        again.send_signal(signal.SIGINT)
        assert "Traceback" not in ended(again).err


NOHUP = ("sh", "-c", 'exec nohup "$@" >/dev/null 2>&1', "sh")


@pytest.mark.parametrize("before", [(), NOHUP], ids=["as it is", "nohup"])
def test_crawl_whose_terminal_is_closed_commits_and_ends_unless_it_is_to_live_on(
    tmp_path: Path, before: tuple[str, ...]
) -> None:
    into = tmp_path / "c"
    most = 40 if before else 1_000  # more than it gets to, or all of them
    with simulated_web(tmp_path, "--hosts", "1", "--pages", "1500") as web:
        master, terminal = os.openpty()
        words = web.crawl(into, "--pages", str(most), delay="0.05")
        usual = ("env", "--default-signal=HUP")  # these tests may run below nohup themselves
        running = started(*words, before=("setsid", "--ctty", "--wait", *usual, *before), terminal=terminal)
        os.close(terminal)
        os.set_blocking(master, False)
        while len(web.requests()) < 8:
            with contextlib.suppress(OSError):
                os.read(master, 65536)
            time.sleep(0.01)
        os.close(master)
        code = running.wait(TIMEOUT_S)
    last = json.loads((into / "log.jsonl").read_text().splitlines()[-1])
    if before:
        assert (code, last["event"], last["pages"]) == (0, "stop", most)
    else:
        assert (code, last["event"], last["reason"]) == (INTERRUPTED, "stop", "interrupted")
        assert 4 <= last["pages"] < most


def test_crawl_that_keeps_fresh_interrupted_says_who_goes_on_and_loses_no_visit(tmp_path: Path) -> None:
    into = tmp_path / "c"
    with running_simweb("--hosts", "1", "--pages", "30", "--seed", "5") as (ready, _):
        web = ("--dns", f"127.0.0.1:{ready.dns_port}", "--allow-private", "127.0.0.0/8", "--delay", "0.01")
        running = started("crawl", f"http://h0.sim:{ready.port}/", "--into", into, *web, "--keep-fresh")
        while not _is_crawled(into):
            time.sleep(0.2)
        running.send_signal(signal.SIGINT)
        said = ended(running)
        assert (said.code, "Traceback" in said.err) == (INTERRUPTED, False)
        assert "\n  interrupted: the same command continues to keep it fresh\n" in said.out
        every = lycosa("recrawl", into, "--all", "--json").facts["visits"]

        settings = (into / "lycosa.toml").read_text()
        slow = settings.replace("\ndelay_s = 0.01 ", "\ndelay_s = 0.4 ")
        assert slow != settings
        (into / "lycosa.toml").write_text(slow)
        again = started("recrawl", into, "--all")
        assert again.stderr is not None
        again.stderr.readline()  # it has begun
        time.sleep(1.0)
        again.send_signal(signal.SIGINT)
        said = ended(again)
        assert said.code == INTERRUPTED
        (into / "lycosa.toml").write_text(settings)
        rest = lycosa("recrawl", into, "--json").facts
    done = re.search(r"revisited (\d+)", said.out)
    assert re.search(rf"interrupted: \d+ URLs still to be visited, `lycosa recrawl {into}` continues", said.out)
    assert done is not None
    assert int(done[1]) + rest["run_visits"] == every
    assert rest["visits"] == 2 * every


def _is_crawled(into: Path) -> bool:
    if not (into / "lycosa.format").exists():
        return False
    facts = lycosa("status", into, "--json").facts
    return bool(facts["pages"] and not facts["queued"])


def test_command_that_tidies_up_interrupted_tidies_up(tmp_path: Path) -> None:
    running = started("simweb", "--port", "0", "--dns-port", "0", "--json", "--hosts", "2", "--pages", "20")
    assert running.stdout is not None
    running.stdout.readline()
    running.send_signal(signal.SIGINT)
    assert "Traceback" not in ended(running).err


def test_command_without_interruption_is_as_ever() -> None:
    assert lycosa("--version").code == 0


def test_commands_told_to_end_end_as_if_interrupted_and_servers_without_error(tmp_path: Path) -> None:
    into = tmp_path / "c"
    with simulated_web(tmp_path, "--hosts", "1", "--pages", "5") as web:
        assert lycosa(*web.crawl(into, "--quiet")).code == 0
    usual = ("env", "--default-signal=HUP")  # these tests may run below nohup themselves
    wanted = [
        (INTERRUPTED, ("shell", into, "-c", "import time; print('ready', flush=True); time.sleep(60)")),
        (INTERRUPTED, ("watch", into)),
        (0, ("serve", into, "--port", "0")),
        (0, ("replay", into, "--port", "0")),
    ]
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        for code, words in wanted:
            running = started(*words, before=usual)
            assert running.stdout is not None
            assert running.stdout.readline()
            running.send_signal(signum)
            said = ended(running)
            assert (said.code, "Traceback" in said.err) == (code, False), (signum, words, said)
