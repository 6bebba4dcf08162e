"""Real crawlers as real processes on a simulated web behind a narrow line, one after the other, judged by its log.

The line is the web's: all answers of all hosts together get so many bytes a second, so it is the same limit for
whoever asks. What a crawler fetched, found and used is worked out from the log alone, in the same way for all of them.
Used by experiments.
"""

import contextlib
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urljoin

from lycosa.errors import LycosaError
from lycosa.simweb import SimSettings, SimWeb
from lycosa.simweb.log import AuditRules, LoggedRequest, audit, read_log
from proof import heritrix, peers

SPARE_S = 60.0  # for a process to begin before its time and to end by itself after it, on a busy machine
BINS = 15  # of line use
SPIDER = Path(__file__).with_name("scrapy_spider.py")
_LOC = re.compile(rb"<loc>([^<]*)</loc>")

Arguments = Callable[["Ground"], list[str]]


class Ground(NamedTuple):
    """What a crawler's command may depend on."""

    start: str
    dns_port: int
    folder: Path
    names: Path


class Race(NamedTuple):
    """The course: a web, the width of the line, and the crawler's limits."""

    web: SimSettings
    seconds: int
    transfers: int
    delay_s: float = 1.0

    def options(self) -> list[str]:
        """The web's settings for the command that serves it; those that no race turns are left out."""
        s = self.web
        counts = {"seed": s.seed, "hosts": s.hosts, "pages": s.pages, "addresses": s.addresses}
        line = {"rtt": s.rtt_ms, "rtt-spread": s.rtt_spread, "line": s.line_bytes_s}
        words = [word for name, value in (counts | line).items() for word in (f"--{name}", str(value))]
        return [*words, "--no-gzip", "--port", "0", "--dns-port", "0"]


class Ran(NamedTuple):
    """One crawler's run: its documents and discoveries over time, and what it took of the line."""

    document_ends: list[float]
    found: list[int]  # URLs known after each document
    line_use: list[float]  # share of the line in each of `BINS`
    requests: int
    broken: int  # rules of politeness

    @property
    def documents(self) -> int:
        return len(self.document_ends)


def lycosa_command(race: Race, *settings: str) -> Arguments:
    """`lycosa crawl` with the race's limits and more settings, as in lycosa.toml."""

    def command(ground: Ground) -> list[str]:
        config = ground.folder / "race.toml"
        manners = [f"transfers = {race.transfers}", f"delay_s = {race.delay_s}", f"time_s = {race.seconds}"]
        config.write_text("\n".join([*manners, *settings]) + "\n")
        into, name_server = str(ground.folder / "crawl"), f"127.0.0.1:{ground.dns_port}"
        web = ["--scope", "any", "--dns", name_server, "--allow-private", "127.0.0.0/8"]
        return [*_lycosa("crawl", ground.start), "--into", into, "--config", str(config), *web, "--quiet"]

    return command


def scrapy_command(race: Race) -> Arguments:
    """The spider beside this module with the race's limits; `LycosaError` where Scrapy cannot be had."""
    python = str(peers.scrapy())
    settings = {
        "CONCURRENT_REQUESTS": race.transfers,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
        "DOWNLOAD_DELAY": race.delay_s,
        "RANDOMIZE_DOWNLOAD_DELAY": False,
        "CLOSESPIDER_TIMEOUT": race.seconds,
        # breadth first, as its manual advises for broad crawls
        "DEPTH_PRIORITY": 1,
        "SCHEDULER_DISK_QUEUE": "scrapy.squeues.PickleFifoDiskQueue",
        "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
    }
    return lambda ground: [python, str(SPIDER), ground.start, json.dumps(settings), str(ground.names)]


def heritrix_command(race: Race) -> Arguments:
    """Heritrix with the race's limits; `LycosaError` where it cannot be had."""
    jars = peers.heritrix()

    def command(ground: Ground) -> list[str]:
        job = heritrix.Job(ground.start, race.transfers, delay_s=race.delay_s, seconds=race.seconds + 5, any_host=True)
        return heritrix.command(jars, job, ground.folder, json.loads(ground.names.read_text()))

    return command


def run(race: Race, crawler: Arguments, advance: Callable[[], None]) -> Ran:
    """One crawler on a web of its own; `advance` is called every second."""
    with tempfile.TemporaryDirectory(prefix="lycosa-lab-") as folder:
        with _web(race, Path(folder)) as ground:
            process = subprocess.Popen(crawler(ground), cwd=folder, stdout=subprocess.DEVNULL)
            _wait(process, race.seconds, advance)
        settings, entries = read_log(Path(folder) / "requests.jsonl")
        return judged(race, settings, list(entries))


@contextlib.contextmanager
def _web(race: Race, folder: Path) -> Iterator[Ground]:
    """`lycosa simweb` for the block, with its log in `folder`."""
    command = _lycosa("simweb", *race.options(), "--log", str(folder / "requests.jsonl"), "--json")
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert server.stdout is not None
    try:
        ready = json.loads(server.stdout.readline())
        layout, names = SimWeb(race.web).layout, folder / "names.json"
        hosts = range(race.web.hosts)
        names.write_text(json.dumps({layout.host_name(host): layout.address_of(host) for host in hosts}))
        yield Ground(f"http://h0.sim:{ready['port']}/", ready["dns_port"], folder, names)
    finally:
        server.terminate()
        server.wait(timeout=SPARE_S)
        server.stdout.close()


def _wait(crawler: "subprocess.Popen[bytes]", seconds: int, advance: Callable[[], None]) -> None:
    """Until the crawler ends by itself; one that does not is ended. `advance` is called `seconds` times at most."""
    deadline, left = time.monotonic() + seconds + SPARE_S, seconds
    try:
        while crawler.poll() is None and time.monotonic() < deadline:
            with contextlib.suppress(subprocess.TimeoutExpired):
                crawler.wait(timeout=1.0)
            if left > 0:
                advance()
            left -= 1
    finally:
        if crawler.poll() is None:
            crawler.kill()
            crawler.wait(timeout=SPARE_S)
    if crawler.returncode:
        raise LycosaError(f"a crawler ended with code {crawler.returncode}: see its words above")


def _lycosa(*words: str) -> list[str]:
    return [sys.executable, "-m", "lycosa", *words]


# what the log says


def judged(race: Race, settings: SimSettings, entries: list[LoggedRequest]) -> Ran:
    """What a log says of the crawler that ran in it."""
    if not entries:
        raise LycosaError("a crawler asked for nothing: see its words above")
    began = min(entry.start for entry in entries)
    in_time = sorted((e for e in entries if e.end <= began + race.seconds), key=lambda entry: entry.end)
    web = SimWeb(settings)
    ends: list[float] = []
    counts: list[int] = []
    known: set[str] = set()
    for entry in in_time:
        urls, is_document = _read(web, entry)
        known |= urls
        if is_document:
            ends.append(entry.end - began)
            counts.append(len(known))
    rules = AuditRules(delay_s=race.delay_s)
    use = _line_use(entries, began, race)
    return Ran(ends, counts, use, len(in_time), len(audit(settings, entries, rules).broken()))


def _read(web: SimWeb, entry: LoggedRequest) -> tuple[set[str], bool]:
    """The URLs that an answer makes known, its own among them, and whether it is a page."""
    host = web.layout.host_number(entry.host)
    if host is None or entry.status != 200:
        return set(), False
    url = web.linker.origin(host) + entry.path
    place = web.layout.locate(host, entry.path)
    if place is None:
        return {loc.decode() for loc in _LOC.findall(web.answer(host, entry.path).body)}, False
    links = web.pages.all_links(web.pages.source(place))
    return {url, *(urljoin(url, href) for href, _ in links)}, True


def _line_use(entries: list[LoggedRequest], began: float, race: Race) -> list[float]:
    """The share of the line in use in each bin; the bytes of an answer come evenly over its time."""
    bins, bin_s = [0.0] * BINS, race.seconds / BINS
    for entry in entries:
        start, end = entry.start - began, max(entry.end - began, entry.start - began + 1e-6)
        for i in range(int(start / bin_s), min(BINS, int(end / bin_s) + 1)):
            inside = min(end, (i + 1) * bin_s) - max(start, i * bin_s)
            bins[i] += entry.bytes * max(0.0, inside) / (end - start)
    return [size / (race.web.line_bytes_s * bin_s) for size in bins]
