"""Ten transfers over a narrow line, on a web too large to exhaust: Lycosa's walks, and mining, beside other crawlers.

Real processes over real sockets, for so long each, so the numbers differ a little from run to run. The line is the
simulated web's and the same for all; see `lab.line_race` for how it is judged. All keep one request a host and a second
between two of them, and obey robots.txt. A crawler that cannot be had is left out, and the settings say why.
"""

from collections.abc import Callable, Sequence

from lycosa.errors import LycosaError
from lycosa.simweb import SimSettings
from proof import Axis, Bar, Column, Columns, Experiment, Line, Lines, Mark, Run
from proof.line_race import BINS, Arguments, Race, Ran, heritrix_command, lycosa_command, scrapy_command
from proof.line_race import run as race_of

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
PEERS: dict[str, Callable[[Race], Arguments]] = {SCRAPY: scrapy_command, HERITRIX: heritrix_command}
POINTS = 100  # of one curve


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
            run.setting(name, f"left out: {error}")
    with run.progress(len(crawlers) * seconds, "seconds") as step:
        ran = {name: race_of(race, crawler, step.advance) for name, crawler in crawlers.items()}
    _report(run, race, ran)


def _report(run: Run, race: Race, ran: dict[str, Ran]) -> None:
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
    run.plot(Lines("Average download rate", time, Axis("documents", "/s"), lines))
    lines = tuple(_over_time(name, one.document_ends, one.found) for name, one in ran.items())
    run.plot(Lines("URLs discovered", time, Axis("URLs"), lines))
    middles = [(i + 0.5) * race.seconds / BINS for i in range(BINS)]
    lines = tuple(Line(name, middles, [100 * use for use in one.line_use]) for name, one in ran.items())
    run.plot(Lines("Bandwidth in use", time, Axis("line in use", "%"), lines, (Mark(100, "2 Mbit/s"),)))
    columns = tuple(Column(name, one.documents / race.seconds) for name, one in ran.items())
    run.plot(Columns("Documents a second", Axis("documents", "/s"), columns))


def _verdict(race: Race, plain: Ran, mined: Ran, heritrix: Ran) -> str:
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


def _steady(ran: Ran) -> float:
    """The share of the line in use once under way."""
    bins = ran.line_use[round(STEADY * BINS) :]
    return sum(bins) / len(bins)


def _row(name: str, ran: Ran, race: Race) -> tuple[str | int | float, ...]:
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
    run=measure,
)
