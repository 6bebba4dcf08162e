"""How fast the simulated web is, and whether its memory stays flat.

One server process with its log on and gzip off; wrk asks for distinct URLs in random order over 32 connections.
Memory is the server's resident set right after its 1,000th request and after its last; CPU is the server's own, user
and system, over the timed runs.
"""

import http.client
import re
import shutil
import subprocess
from pathlib import Path

from lycosa.errors import LycosaError
from lycosa.simweb import SimSettings, SimWeb
from lycosa.simweb.vocabulary import mix
from proof import Bar, Experiment, Run
from proof.ground.commands import cpu_s, memory_mb, scratch
from proof.ground.servers import simulated_web

HOSTS = 50
URLS, QUICK_URLS = 200_000, 20_000  # distinct ones
REQUESTS, QUICK_REQUESTS = 1_000_000, 50_000  # for the memory figure
RUN_S = 10
CONNECTIONS = 32
EARLY_REQUESTS = 1_000
# wrk picks a line of the file for each request: the host's name and the path.
LUA = """
local targets = {}
for line in io.lines(os.getenv("TARGETS")) do
  local host, path = line:match("(%S+) (%S+)")
  targets[#targets + 1] = wrk.format("GET", path, {["Host"] = host})
end
local i = 0
request = function()
  i = i + 1
  if i > #targets then i = 1 end
  return targets[i]
end
"""


def ensure_wrk() -> None:
    if shutil.which("wrk"):
        return
    subprocess.run(["apt-get", "install", "-y", "-qq", "wrk"], check=True, stdout=subprocess.DEVNULL)


def write_targets(path: Path, settings: SimSettings, count: int) -> None:
    """`count` distinct pages in random order."""
    web = SimWeb(settings)
    numbers = sorted(range(settings.pages), key=lambda i: mix(i, 0, 99))[:count]
    starts, total = [], 0
    for size in web.layout.sizes:
        starts.append(total)
        total += size
    with path.open("w") as file:
        for number in numbers:
            host = next(h for h in range(len(starts) - 1, -1, -1) if starts[h] <= number)
            index, page = divmod(number - starts[host], 32)
            folder = web.layout.folder(host, index)
            file.write(f"h{host}.sim:{settings.port} {folder.path}{folder.name(page)}\n")


def ask_for_first(folder: Path, port: int, count: int) -> None:
    """The first pages one by one, without wrk: it cannot be told to stop after so many."""
    line = http.client.HTTPConnection("127.0.0.1", port)
    for target in (folder / "targets").read_text().splitlines()[:count]:
        host, path = target.split()
        line.request("GET", path, headers={"Host": host})
        line.getresponse().read()


def run_wrk(folder: Path, port: int, seconds: int) -> float:
    env = {"TARGETS": str(folder / "targets"), "PATH": "/usr/bin:/bin:/usr/local/bin"}
    words = ["-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "-s", str(folder / "wrk.lua")]
    command = ["wrk", *words, f"http://127.0.0.1:{port}/"]
    out = subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout
    if "Non-2xx" in out:
        raise LycosaError(f"wrk saw errors:\n{out}")
    return float(re.search(r"Requests/sec:\s+([\d.]+)", out)[1])  # type: ignore[index]


def measure(run: Run) -> None:
    urls, requests = (QUICK_URLS, QUICK_REQUESTS) if run.quick else (URLS, REQUESTS)
    ensure_wrk()
    with scratch() as folder:
        (folder / "wrk.lua").write_text(LUA)
        with simulated_web(folder / "log", "--hosts", str(HOSTS), "--pages", str(urls), "--no-gzip") as web:
            write_targets(folder / "targets", SimSettings(hosts=HOSTS, pages=urls, port=web.port), urls)
            ask_for_first(folder, web.port, EARLY_REQUESTS)
            early_mb, asked, busy_s = memory_mb(web.pid), web.served(), cpu_s(web.pid)
            rates = [run_wrk(folder, web.port, RUN_S) for _ in range(run.runs)]
            cpu_us = (cpu_s(web.pid) - busy_s) / (web.served() - asked) * 1e6
            while (left := requests - web.served()) > 0:
                run.say(f"{left:,} requests to go for the memory figure")
                run_wrk(folder, web.port, int(min(60, left / max(rates) + 1)))
            late_mb, served = memory_mb(web.pid), web.served()
    run.setting("distinct URLs", urls)
    run.figure("pages/s, best run", max(rates), "/s")
    run.figure("pages/s, worst run", min(rates), "/s")
    run.figure("the server's CPU a page", cpu_us, "µs")
    run.figure(f"memory after {EARLY_REQUESTS:,} requests", early_mb, "MB")
    run.figure(f"memory after {served:,} requests", late_mb, "MB")
    run.figure("growth", 100 * (late_mb / early_mb - 1), "%")


EXPERIMENT = Experiment(
    name="simweb",
    summary="pages a second and memory of the simulated web, driven by wrk",
    run=measure,
    runs=3,
    bars=(
        Bar("fast", "pages/s, best run", ">=", 4_000),
        Bar("memory stays flat", "growth", "<=", 10.0),
    ),
)
