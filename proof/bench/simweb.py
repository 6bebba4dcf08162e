"""How fast the simulated web is, and whether its memory stays flat: `make bench NAME=simweb`.

One server process with its log on and gzip off; wrk asks for distinct URLs in random order over 32 connections.
Memory is the server's resident set right after its 1,000th request and after its last; CPU is the server's own, user
and system, over the timed runs.
"""

import argparse
import http.client
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from lycosa.simweb import SimSettings, SimWeb
from lycosa.simweb.vocabulary import mix

PAGES_S_BAR = 4_000
GROWTH_BAR = 0.10
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
    print("installing wrk from the system's packages", file=sys.stderr)
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


def resident_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024  # type: ignore[index]


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def ask_for_first(folder: Path, port: int, count: int) -> None:
    """The first pages one by one, without wrk: it cannot be told to stop after so many."""
    line = http.client.HTTPConnection("127.0.0.1", port)
    for target in (folder / "targets").read_text().splitlines()[:count]:
        host, path = target.split()
        line.request("GET", path, headers={"Host": host})
        line.getresponse().read()


def requests_served(port: int) -> int:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/.simweb/stats") as answer:
        return int(json.load(answer)["requests"])


def run_wrk(folder: Path, port: int, seconds: int) -> float:
    env = {"TARGETS": str(folder / "targets"), "PATH": "/usr/bin:/bin:/usr/local/bin"}
    command = [
        "wrk",
        "-t1",
        f"-c{CONNECTIONS}",
        f"-d{seconds}s",
        "-s",
        str(folder / "wrk.lua"),
        f"http://127.0.0.1:{port}/",
    ]
    out = subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout
    if "Non-2xx" in out:
        sys.exit(f"wrk saw errors:\n{out}")
    return float(re.search(r"Requests/sec:\s+([\d.]+)", out)[1])  # type: ignore[index]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--urls", type=int, default=200_000, help="distinct URLs asked for")
    parser.add_argument("--requests", type=int, default=1_000_000, help="requests for the memory figure")
    parser.add_argument("--runs", type=int, default=3, help="timed runs of ten seconds; the best counts")
    options = parser.parse_args()
    ensure_wrk()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "wrk.lua").write_text(LUA)
        shape = ["--hosts", "50", "--pages", str(options.urls), "--no-gzip", "--log", str(folder / "log")]
        command = [sys.executable, "-m", "lycosa", "simweb", *shape, "--port", "0", "--dns-port", "0", "--json"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            port = int(json.loads(server.stdout.readline())["port"])  # type: ignore[union-attr]
            write_targets(folder / "targets", SimSettings(hosts=50, pages=options.urls, port=port), options.urls)
            ask_for_first(folder, port, EARLY_REQUESTS)
            early_mb, early = resident_mb(server.pid), requests_served(port)
            busy_s, asked = cpu_s(server.pid), requests_served(port)
            rates = [run_wrk(folder, port, 10) for _ in range(options.runs)]
            cpu_us = (cpu_s(server.pid) - busy_s) / (requests_served(port) - asked) * 1e6
            while requests_served(port) < options.requests:
                left = options.requests - requests_served(port)
                print(f"  {left:,} requests to go for the memory figure", file=sys.stderr)
                run_wrk(folder, port, int(min(60, left / max(rates) + 1)))
            late_mb, late = resident_mb(server.pid), requests_served(port)
        finally:
            server.terminate()
            server.wait(timeout=10)
        time.sleep(0.1)
    growth = late_mb / early_mb - 1
    fast, flat = max(rates) >= PAGES_S_BAR, growth <= GROWTH_BAR
    each = ", ".join(f"{rate:,.0f}" for rate in rates)
    print(f"pages/s over {options.urls:,} distinct URLs: {each}; best {max(rates):,.0f}")
    print(f"  {cpu_us:.0f} µs of the server's CPU a page")
    print(f"  at least {PAGES_S_BAR:,}: {'yes' if fast else 'NO'}")
    print(f"memory: {early_mb:.0f} MB after {early:,} requests, {late_mb:.0f} MB after {late:,} ({growth:+.1%})")
    print(f"  flat within {GROWTH_BAR:.0%}: {'yes' if flat else 'NO'}")
    sys.exit(0 if fast and flat else 1)


if __name__ == "__main__":
    main()
