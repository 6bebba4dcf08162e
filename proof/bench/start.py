"""How soon a crawl begins, and how long a small one takes: the time to the first request and of a whole command.

What counts is the time of the clock less the time that the command stood in line for a processor that other processes
had. The first request goes to a server that takes connections and never says a word: of a new crawl, and in a
collection that knows a million URLs, all queued, and was left by a process that died. Each run opens a copy of that
one, since opened once it is no longer as it was left. The whole command crawls the small site of the benchmark `site`.
"""

import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from lycosa.errors import LycosaError
from proof import Bar, Experiment, Run
from proof.ground.commands import lycosa, run_command, scratch
from proof.ground.servers import Nginx, nginx_of
from proof.ground.sites import POSTGRESQL, crawl_command

URLS, QUICK_URLS = 1_000_000, 20_000
ANEW, KILLED = "first request of a new crawl", "first request after a crawl was killed"
WHOLE = "whole command, postgresql-doc-15"


def first_request_s(listener: socket.socket, into: Path) -> float:
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
    begun = time.monotonic()
    crawl = subprocess.Popen(lycosa("crawl", url, "--into", into, "-q", "--delay", "0", "--dns", "127.0.0.1:9"))
    try:
        caller, _ = listener.accept()
        took_s = time.monotonic() - begun
        caller.close()
        return took_s - waited_s(crawl.pid)
    finally:
        crawl.kill()
        crawl.wait()


def whole_command_s(server: Nginx, into: Path) -> float:
    begun = time.monotonic()
    crawl = subprocess.Popen(crawl_command(server, POSTGRESQL, into), stdout=subprocess.DEVNULL)
    os.waitid(os.P_PID, crawl.pid, os.WEXITED | os.WNOWAIT)
    took_s = time.monotonic() - begun - waited_s(crawl.pid)
    if crawl.wait():
        raise LycosaError(f"the crawl ended with {crawl.returncode}")
    return took_s


def waited_s(pid: int) -> float:
    """How long a process was ready to run and not let."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9


def measure(run: Run) -> None:
    urls = QUICK_URLS if run.quick else URLS
    run.setting("URLs of the killed crawl", urls)
    with scratch() as folder, socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(60)
        anew = [first_request_s(silent, folder / f"anew-{n}") for n in range(run.runs)]
        run.say(f"making a collection of {urls:,} URLs")
        run_command([sys.executable, "-m", "proof.ground.killed_collection", folder / "killed", str(urls)])
        killed = []
        for n in range(run.runs):
            shutil.copytree(folder / "killed", folder / f"killed-{n}")
            killed.append(first_request_s(silent, folder / f"killed-{n}"))
        with nginx_of(POSTGRESQL.folder(), folder / "nginx") as server:
            whole = [whole_command_s(server, folder / f"whole-{n}") for n in range(run.runs)]
    for name, times in ((ANEW, anew), (KILLED, killed), (WHOLE, whole)):
        run.figure(name, median(times), "s")
        run.figure(f"{name}, at most", max(times), "s")


EXPERIMENT = Experiment(
    name="start",
    summary="how soon the first request comes, anew and after a kill; a small crawl from end to end",
    run=measure,
    runs=5,
    bars=(Bar("at once", ANEW, "<=", 0.4), Bar("recovery", KILLED, "<=", 3.0), Bar("done", WHOLE, "<=", 0.9)),
)
