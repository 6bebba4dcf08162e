"""Ctrl-C in the first moments of a command, whatever it is importing or opening just then."""

import random
import re
import signal
import socket
import time
from pathlib import Path

import pytest

from tests.cli.command import Said, ended, lycosa, started

INTERRUPTED = 130
MOMENTS = 24
# Before these have run there is only Python, which says what it always says.
NOT_YET_OURS = re.compile(r"runpy>|<frozen|lycosa/(__init__|__main__|cli/__init__|cli/beginning)\.py|/lib/python3")

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
        for number in range(MOMENTS):
            running = started("crawl", url, "--into", tmp_path / str(number), "-q")
            time.sleep(rng.uniform(0.0, until_request_s))
            running.send_signal(signal.SIGINT)
            said = ended(running)
            if is_too_early(said):
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
        again = started("crawl", url, "--into", into, "-q", "--time", "1")
        silent.accept()[0].close()
        again.send_signal(signal.SIGINT)
        assert "Traceback" not in ended(again).err


def test_command_that_tidies_up_interrupted_tidies_up(tmp_path: Path) -> None:
    running = started("simweb", "--port", "0", "--dns-port", "0", "--json", "--hosts", "2", "--pages", "20")
    assert running.stdout is not None
    running.stdout.readline()
    running.send_signal(signal.SIGINT)
    assert "Traceback" not in ended(running).err


def test_command_without_interruption_is_as_ever() -> None:
    assert lycosa("--version").code == 0
