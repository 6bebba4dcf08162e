"""How soon a crawl begins: the time to the first request, of a new crawl and in a collection that was killed.

The server takes connections and never says a word. What counts is the time of the clock less the time that the command
stood in line for a processor that other processes had. The collection knows a million URLs, all queued, and was left
by a process that died; each run opens a copy of it, since opened once it is no longer as it was left.
"""

import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from proof import Bar, Experiment, Run
from proof.ground.commands import lycosa, run_command, scratch

URLS, QUICK_URLS = 1_000_000, 20_000
ANEW, KILLED = "first request of a new crawl", "first request after a crawl was killed"


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
    for name, times in ((ANEW, anew), (KILLED, killed)):
        run.figure(name, median(times), "s")
        run.figure(f"{name}, at most", max(times), "s")


EXPERIMENT = Experiment(
    name="start",
    summary="how soon the first request comes: of a new crawl, and of one with a million URLs that was killed",
    run=measure,
    runs=5,
    bars=(Bar("at once", ANEW, "<=", 0.5), Bar("recovery", KILLED, "<=", 3.0)),
)
