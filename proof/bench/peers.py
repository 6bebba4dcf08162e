"""Lycosa beside other crawlers: a whole site of real documentation, served by nginx, as fast as each of them goes.

They run in turns, round by round, so that the machine's drift is in all of them; how each is started and what counts
is in `proof.ground.peer_crawls`. Every crawler has to fetch the pages of Lycosa, the folders that it guesses apart. A
crawler that cannot be had is left out with the reason. The benchmark `tls` runs the same with certificates.
"""

from statistics import median

from lycosa.errors import LycosaError
from proof import Bar, Experiment, Run
from proof.ground.peer_crawls import IN_PYTHON, NOT_TO_BE_HAD, OURS, PEERS, SPIDER, PageWork, PeerTurn, take_turn
from proof.ground.sites import CONNECTIONS, served_site

OTHER_PAGES = "most pages that only one of two crawlers has, guessed folders apart"
IN_PYTHON_RATE = "pages/s in Python beside Scrapy"


def measure(run: Run, *, tls: bool = False) -> None:
    turns: dict[str, list[PeerTurn]] = {name: [] for name in PEERS if name == OURS or name in run.chosen}
    absent: dict[str, str] = {name: "--only without it" for name in PEERS if name not in turns}
    with served_site(run, tls=tls) as (site, server), run.progress(run.runs * len(turns), "crawls") as step:
        for _ in range(run.runs):
            for name, taken in turns.items():
                try:
                    if name not in absent:
                        taken.append(take_turn(name, server, site))
                except LycosaError as error:
                    if name in (OURS, IN_PYTHON):
                        raise
                    absent[name] = str(error)
                    server.served()
                step.advance()
    run.setting("connections", CONNECTIONS)
    run.setting("rounds", run.runs)
    _report(run, {name: taken for name, taken in turns.items() if name not in absent}, absent)


def _report(run: Run, ran: dict[str, list[PeerTurn]], absent: dict[str, str]) -> None:
    ours = ran[OURS]
    run.table(
        ["", "pages", "pages/s", "spread", "Lycosa ×", "command s", "CPU µs/page", "Lycosa ×", "peak MB", "MB on disk"],
        [_row(name, taken, ours) for name, taken in ran.items()],
        title="medians of the rounds, with the least and the most",
    )
    work = [[name, *(word or "no" for word in PEERS[name].does)] for name in ran]
    run.table(["", *PageWork._fields], work, title="what each one does for a page")
    for name, why in (NOT_TO_BE_HAD | absent).items():
        run.absent(name, why)
    for name in [name for name in PEERS if name != OURS]:
        if name in ran:
            run.figure(_rate(name), median(_rates(ours, ran[name])), "×")
            run.figure(_cpu(name), median(_cpus(ours, ran[name])), "×")
        else:
            run.leave_out(_rate(name), absent[name])
            run.leave_out(_cpu(name), absent[name])
    if IN_PYTHON in ran and "Scrapy" in ran:
        run.figure(IN_PYTHON_RATE, median(_rates(ran[IN_PYTHON], ran["Scrapy"])), "×")
    else:
        run.leave_out(IN_PYTHON_RATE, absent.get(IN_PYTHON, "") or absent["Scrapy"])
    run.figure(OTHER_PAGES, 100 * _most_other_pages(run, ran) / len(ours[0].crawl.paths), "%")


def _most_other_pages(run: Run, ran: dict[str, list[PeerTurn]]) -> int:
    """The pages that only Lycosa or only another one has, of the one that differs most."""
    most, mine = 0, ran[OURS][0].crawl.paths
    for name, taken in ran.items():
        theirs = taken[0].crawl.paths
        only = {path for path in mine - theirs if not path.endswith("/")}  # folders that nobody links to are guessed
        if only or theirs - mine:
            run.remark(f"pages only by Lycosa {len(only):,}, only by {name} {len(theirs - mine):,}")
        most = max(most, len(only) + len(theirs - mine))
    return most


def _rate(name: str) -> str:
    return f"pages/s beside {name}"


def _cpu(name: str) -> str:
    return f"CPU a page beside {name}"


def _rates(ours: list[PeerTurn], taken: list[PeerTurn]) -> list[float]:
    return [our.crawl.pages_per_s / each.crawl.pages_per_s for our, each in zip(ours, taken, strict=True)]


def _cpus(ours: list[PeerTurn], taken: list[PeerTurn]) -> list[float]:
    return [our.crawl.cpu_us / each.crawl.cpu_us for our, each in zip(ours, taken, strict=True)]


def _row(name: str, taken: list[PeerTurn], ours: list[PeerTurn]) -> list[str | int | float]:
    rates, usages = [each.crawl.pages_per_s for each in taken], [each.crawl.usage for each in taken]
    return [
        name,
        round(median(len(each.crawl.paths) for each in taken)),
        round(median(rates)),
        f"{min(rates):,.0f}–{max(rates):,.0f}",
        _spread(_rates(ours, taken)),
        round(median(usage.wall_s for usage in usages), 1),
        round(median(each.crawl.cpu_us for each in taken)),
        _spread(_cpus(ours, taken)),
        round(max(usage.peak_mb for usage in usages)),
        round(median(each.disk_bytes for each in taken) / 1e6, 1),
    ]


def _spread(ratios: list[float]) -> str:
    spread = f" ({min(ratios):.2f}–{max(ratios):.2f})" if len(ratios) > 1 else ""
    return f"{median(ratios):.2f}{spread}"


EXPERIMENT = Experiment(
    name="peers",
    summary="one site as fast as it goes, beside Scrapy, Heritrix, katana, spider, Crawlee, Colly and wget2, in turns",
    run=measure,
    runs=3,
    choices=tuple(PEERS),
    bars=(
        Bar("faster than Scrapy", _rate("Scrapy"), ">=", 20.0),
        Bar("faster than Heritrix", _rate("Heritrix"), ">=", 7.0),
        Bar("faster than katana", _rate("katana"), ">=", 1.8),
        Bar("as lean as spider", _cpu(SPIDER), "<=", 1.3),
        Bar("without the page kernel faster than Scrapy", IN_PYTHON_RATE, ">=", 8.0),
        Bar("the same pages", OTHER_PAGES, "<=", 1.0),
    ),
)
