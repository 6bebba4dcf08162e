"""Ten transfers over a narrow line, on a web too large to exhaust: Lycosa's walks, and mining, beside other crawlers.

Real processes over real sockets, for so long each, one after the other, so the numbers differ a little from run to run.
The line is the simulated web's: all answers of all hosts together get so many bytes a second, so it is the same limit
for whoever asks. What a crawler fetched, found and used is worked out from the log alone, in the same way for all. All
keep one request a host and a second between two of them, and obey robots.txt. A crawler that cannot be had is left out,
and the settings say why.
"""

import contextlib
import json
import re
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urljoin

from lycosa.errors import LycosaError
from lycosa.simweb import AuditRules, LoggedRequest, SimSettings, SimWeb, audit, read_log
from proof import Axis, Bar, Column, ColumnChart, Experiment, Line, LineChart, Mark, PaperFigure, Run
from proof.ground import peers
from proof.ground.commands import lycosa, scratch
from proof.ground.servers import ServedWeb, simulated_web

TRANSFERS = 10
LINE_BYTES_S = 250_000  # 2 Mbit/s
HOSTS, PAGES = 300, 60_000  # fifty times what the line carries in the time
RTT_MS, RTT_SPREAD = 100.0, 0.5
SECONDS, QUICK_SECONDS = 75, 12
STEADY = 1 / 3  # of the time, after which all hosts of the beginning have answered
PAPER_TIMES = 1.33
PLAIN, MINED, SCRAPY, HERITRIX = "Lycosa, breadth", "Lycosa, mining", "Scrapy", "Heritrix"
OURS = {
    PLAIN: ('policy = "breadth"', 'mine = "off"'),
    "Lycosa, top-window": ('policy = "top-window"', 'mine = "off"'),
    "Lycosa, leaf-window": ('policy = "leaf-window"', 'mine = "off"'),
    MINED: ('policy = "breadth"', 'mine = "all"'),
}
POINTS = 100  # of one curve
SPARE_S = 60.0  # for a process to begin before its time and to end by itself after it, on a busy machine
BINS = 15  # of line use
_LOC = re.compile(rb"<loc>([^<]*)</loc>")

Arguments = Callable[["RaceGround"], list[str | Path]]


class RaceGround(NamedTuple):
    """What a crawler's command may depend on."""

    web: ServedWeb
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
        return [*words, "--no-gzip"]


class RaceResult(NamedTuple):
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

    def command(ground: RaceGround) -> list[str | Path]:
        config = ground.folder / "race.toml"
        manners = [f"transfers = {race.transfers}", f"delay_s = {race.delay_s}", f"time_s = {race.seconds}"]
        config.write_text("\n".join([*manners, *settings]) + "\n")
        words: list[str | Path] = [
            "--into",
            ground.folder / "crawl",
            "--config",
            config,
            "--scope",
            "any",
            *ground.web.options(),
        ]
        return lycosa("crawl", ground.web.front_page(), *words, "--quiet")

    return command


def scrapy_command(race: Race) -> Arguments:
    """Scrapy's spider with the race's limits; `LycosaError` where Scrapy cannot be had."""
    peers.scrapy()
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
    return lambda ground: [*peers.scrapy_command(ground.web.front_page(), settings, ground.names)]


def heritrix_command(race: Race) -> Arguments:
    """Heritrix with the race's limits; `LycosaError` where it cannot be had."""
    peers.heritrix()
    limits: Any = {"delay_s": race.delay_s, "seconds": race.seconds + 5, "any_host": True}

    def command(ground: RaceGround) -> list[str | Path]:
        job = peers.HeritrixJob(ground.web.front_page(), race.transfers, **limits)
        return [*peers.heritrix_command(job, ground.folder, json.loads(ground.names.read_text()))]

    return command


def race_of(race: Race, crawler: Arguments, advance: Callable[[], None]) -> RaceResult:
    """One crawler on a web of its own; `advance` is called every second."""
    with scratch() as folder:
        names, layout = folder / "names.json", SimWeb(race.web).layout
        hosts = range(race.web.hosts)
        names.write_text(json.dumps({layout.host_name(host): layout.address_of(host) for host in hosts}))
        with simulated_web(folder / "requests.jsonl", *race.options()) as web:
            command = crawler(RaceGround(web, folder, names))
            _wait(subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL), race.seconds, advance)
        settings, entries = read_log(web.log)
        return judged(race, settings, list(entries))


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


# what the log says


def judged(race: Race, settings: SimSettings, entries: list[LoggedRequest]) -> RaceResult:
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
    return RaceResult(ends, counts, use, len(in_time), len(audit(settings, entries, rules).broken()))


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


PEERS: dict[str, Callable[[Race], Arguments]] = {SCRAPY: scrapy_command, HERITRIX: heritrix_command}


def measure(run: Run) -> None:
    seconds = QUICK_SECONDS if run.quick else SECONDS
    # an address each: a limit for each address is something that only some crawlers know
    web = SimSettings(
        seed=run.seed,
        hosts=HOSTS,
        pages=PAGES,
        addresses=HOSTS,
        rtt_ms=RTT_MS,
        rtt_spread=RTT_SPREAD,
        line_bytes_s=LINE_BYTES_S,
    )
    race = Race(web, seconds, TRANSFERS)
    for name, value in (("hosts", HOSTS), ("pages", PAGES), ("seconds each", seconds), ("transfers", TRANSFERS)):
        run.setting(name, value)
    run.setting("line", f"{LINE_BYTES_S * 8 / 1e6:g} Mbit/s")
    run.setting("median round trip", f"{RTT_MS:g} ms")
    crawlers = {name: lycosa_command(race, *settings) for name, settings in OURS.items()}
    for name, command in PEERS.items():
        try:
            crawlers[name] = command(race)
            run.setting(name, "beside it")
        except LycosaError as error:
            run.absent(name, str(error))
    with run.progress(len(crawlers) * seconds, "seconds") as step:
        ran = {name: race_of(race, crawler, step.advance) for name, crawler in crawlers.items()}
    _report(run, race, ran)


def _report(run: Run, race: Race, ran: dict[str, RaceResult]) -> None:
    plain, ours = ran[PLAIN], [ran[name] for name in OURS]
    run.figure("documents", plain.documents / race.seconds, "/s")
    run.figure("line use once under way", 100 * _steady(plain), "%")
    run.figure("rules broken by Lycosa", sum(one.broken for one in ours))
    run.figure("URLs discovered with mining beside without", _times(ran[MINED].found[-1], plain.found[-1]), "×")
    for name in PEERS:
        if name in ran:
            run.figure(f"documents beside {name}", _times(plain.documents, ran[name].documents), "×")
            mined = f"URLs discovered with mining beside {name}"
            run.figure(mined, _times(ran[MINED].found[-1], ran[name].found[-1]), "×")
    if HERITRIX in ran:
        run.remark(_verdict(race, plain, ran[MINED], ran[HERITRIX]))
    run.table(
        ["crawler", "documents", "documents/s", "URLs discovered", "requests", "line use %", "rules broken"],
        [_row(name, one, race) for name, one in ran.items()],
    )
    time = Axis("time", "s")
    rates = {name: [n / end for n, end in enumerate(one.document_ends, 1)] for name, one in ran.items()}
    lines = tuple(_over_time(name, one.document_ends, rates[name]) for name, one in ran.items())
    run.plot(LineChart("Average download rate", time, Axis("documents", "/s"), lines))
    lines = tuple(_over_time(name, one.document_ends, one.found) for name, one in ran.items())
    run.plot(LineChart("URLs discovered", time, Axis("URLs"), lines))
    middles = [(i + 0.5) * race.seconds / BINS for i in range(BINS)]
    lines = tuple(Line(name, middles, [100 * use for use in one.line_use]) for name, one in ran.items())
    run.plot(LineChart("Bandwidth in use", time, Axis("line in use", "%"), lines, (Mark(100, "2 Mbit/s"),)))
    columns = tuple(Column(name, one.documents / race.seconds) for name, one in ran.items())
    run.plot(ColumnChart("Documents a second", Axis("documents", "/s"), columns))


def _verdict(race: Race, plain: RaceResult, mined: RaceResult, heritrix: RaceResult) -> str:
    """Whether the paper's claim holds here, with the figures it is about."""
    times = _times(plain.documents, heritrix.documents)
    paper = f"The paper's {PAPER_TIMES} × Heritrix's documents {_holds(times >= PAPER_TIMES)} here"
    rates = f"{plain.documents / race.seconds:.2f} against {heritrix.documents / race.seconds:.2f} documents/s"
    uses = f"{100 * _steady(plain):.0f} and {100 * _steady(heritrix):.0f} %"
    found = f"{mined.found[-1]:,} with mining against {heritrix.found[-1]:,}"
    return (
        f"{paper}: {times:.2f} × ({rates}; once under way the line was {uses} in use). "
        f"That more URLs are discovered {_holds(mined.found[-1] > heritrix.found[-1])}: {found}; "
        f"mining by itself makes {_times(mined.found[-1], plain.found[-1]):.2f} × of what is found without."
    )


def _holds(is_so: bool) -> str:
    return "holds" if is_so else "does not hold"


def _times(ours: int, theirs: int) -> float:
    return ours / max(1, theirs)


def _steady(ran: RaceResult) -> float:
    """The share of the line in use once under way."""
    bins = ran.line_use[round(STEADY * BINS) :]
    return sum(bins) / len(bins)


def _row(name: str, ran: RaceResult, race: Race) -> tuple[str | int | float, ...]:
    use = 100 * sum(ran.line_use) / len(ran.line_use)
    rate = round(ran.documents / race.seconds, 2)
    return name, ran.documents, rate, ran.found[-1], ran.requests, round(use, 1), ran.broken


def _over_time(label: str, ends: Sequence[float], values: Sequence[float]) -> Line:
    places = sorted({i * (len(ends) - 1) // (POINTS - 1) for i in range(POINTS)})
    return Line(label, [ends[place] for place in places], [values[place] for place in places])


EXPERIMENT = Experiment(
    name="tarantula",
    summary="ten transfers over a line of 2 Mbit/s, beside Heritrix and Scrapy",
    claim_id="T8",
    claim="At ten threads on one line the paper's crawler fetches 1.33 × Heritrix's documents/s and finds more URLs.",
    bars=(
        Bar("the line is used", "line use once under way", ">=", 90.0),
        Bar("polite", "rules broken by Lycosa", "<=", 0),
    ),
    papers=(
        PaperFigure(
            "T8",
            "documents beside Heritrix, ten threads on one line",
            "1.33 × (2 and 1.5 a second)",
            "documents beside Heritrix",
        ),
        PaperFigure(
            "T8", "more URLs discovered than by Heritrix", "more", "URLs discovered with mining beside Heritrix"
        ),
        PaperFigure(
            "T8",
            "the line is in use as much as with Heritrix: share of it",
            "nearly the same",
            "line use once under way",
        ),
    ),
    run=measure,
)
