"""Ten transfers over a narrow line: documents, discoveries and line use, mining on and off, beside Scrapy.

Real processes over real sockets, for so long each, so the numbers differ a little from run to run. The line is the
simulated web's and the same for all; see `lab.line_race` for how it is judged. There is no bar beside Scrapy: a full
line gives everyone the same documents a second, and what is left to differ is how soon it is full, and the manners.
"""

from collections.abc import Sequence

from lycosa.lab import Axis, Bar, Column, Columns, Experiment, Line, Lines, Mark, Run
from lycosa.lab.line_race import BIN_S, Arguments, Race, Ran, lycosa_command, scrapy_command
from lycosa.lab.line_race import run as race_of
from lycosa.simweb import SimSettings

TRANSFERS = 10
LINE_BYTES_S = 250_000  # 2 Mbit/s
HOSTS, PAGES = 60, 1_500  # so few that small hosts are done before the time is up, and guesses get their turn
RTT_MS, RTT_SPREAD = 100.0, 0.5
SECONDS, QUICK_SECONDS = 90, 12
SCRAPY = "Scrapy"
POINTS = 100  # of one curve


def measure(run: Run) -> None:
    seconds = QUICK_SECONDS if run.quick else SECONDS
    web = SimSettings(
        seed=run.seed, hosts=HOSTS, pages=PAGES, rtt_ms=RTT_MS, rtt_spread=RTT_SPREAD, line_bytes_s=LINE_BYTES_S
    )
    race = Race(web, seconds, TRANSFERS)
    for name, value in (("hosts", HOSTS), ("pages", PAGES), ("seconds each", seconds), ("transfers", TRANSFERS)):
        run.setting(name, value)
    run.setting("line", f"{LINE_BYTES_S * 8 / 1e6:g} Mbit/s")
    run.setting("median round trip", f"{RTT_MS:g} ms")
    crawlers = _crawlers(race)
    run.setting("Scrapy", "beside it" if SCRAPY in crawlers else "not found: its row is left out")
    with run.progress(len(crawlers) * seconds, "seconds") as step:
        ran = {name: race_of(race, crawler, step.advance) for name, crawler in crawlers.items()}
    _report(run, race, ran)


def _crawlers(race: Race) -> dict[str, Arguments]:
    found = {f"Lycosa, mining {mine}": lycosa_command(race, f'mine = "{mine}"') for mine in ("off", "all")}
    scrapy = scrapy_command(race)
    return found | ({SCRAPY: scrapy} if scrapy else {})


def _report(run: Run, race: Race, ran: dict[str, Ran]) -> None:
    plain, mined, scrapy = ran["Lycosa, mining off"], ran["Lycosa, mining all"], ran.get(SCRAPY)
    run.figure("documents", plain.documents / race.seconds, "/s")
    run.figure("documents with mining", mined.documents / race.seconds, "/s")
    run.figure("line use once under way", 100 * _steady(plain), "%")
    run.figure("rules broken", plain.broken + mined.broken)
    if scrapy:
        run.figure("documents beside Scrapy", plain.documents / scrapy.documents, "×")
        run.figure("URLs discovered beside Scrapy", plain.found[-1] / scrapy.found[-1], "×")
        run.figure("URLs discovered with mining beside Scrapy", mined.found[-1] / scrapy.found[-1], "×")
    run.table(
        ["crawler", "documents", "documents/s", "URLs discovered", "requests", "line use %", "rules broken"],
        [_row(name, one, race) for name, one in ran.items()],
    )
    time = Axis("time", "s")
    lines = tuple(_over_time(name, one.document_ends, range(1, one.documents + 1)) for name, one in ran.items())
    run.plot(Lines("Documents over a line of 2 Mbit/s", time, Axis("documents"), lines))
    lines = tuple(_over_time(name, one.document_ends, one.found) for name, one in ran.items())
    run.plot(Lines("URLs discovered", time, Axis("URLs"), lines))
    lines = tuple(
        Line(name, [(i + 0.5) * BIN_S for i in range(len(one.line_use))], [100 * use for use in one.line_use])
        for name, one in ran.items()
    )
    run.plot(Lines("The line is full within seconds", time, Axis("line in use", "%"), lines, (Mark(100, "2 Mbit/s"),)))
    columns = tuple(Column(name, one.documents / race.seconds) for name, one in ran.items())
    run.plot(Columns("Documents a second", Axis("documents", "/s"), columns))


def _steady(ran: Ran) -> float:
    """The share of the line in use from the third bin to the middle of the time, while every host has work."""
    bins = ran.line_use[2 : max(3, len(ran.line_use) // 2)]
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
    summary="ten transfers over a line of 2 Mbit/s, beside Scrapy",
    claim_id="T8",
    claim="At ten threads on one line the paper's crawler fetches 1.33 × Heritrix's documents/s and finds more URLs.",
    bars=(
        Bar("the line is used", "line use once under way", ">=", 90.0),
        Bar("polite", "rules broken", "<=", 0),
    ),
    run=measure,
)
