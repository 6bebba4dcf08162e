"""`lycosa crawl` and `lycosa recrawl`: run a crawl with a live view, a summary and an exit code.

The same command on the same folder continues. The first Ctrl-C lets requests in flight end, commits and exits; the
second one stops at once, and files stay valid.
"""

import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from lycosa.cli.collection import Folder
from lycosa.cli.options import ARCHIVE_HELP, PATCH_HELP, CrawlCommand, CrawlJob, with_crawl_options
from lycosa.cli.startup import INTERRUPTED
from lycosa.errors import SettingsError

if TYPE_CHECKING:
    from lycosa.api.crawl import Crawl
    from lycosa.cluster.run import RunningCrawl
    from lycosa.crawl.stats import CrawlStats
    from lycosa.settings import CrawlSettings


VIEW_EVERY_S = 0.25
INDEXING_EVERY_S = 5.0
NOTHING_FETCHED, LIMIT = 1, 3
LIMITS = ("pages", "bytes", "time")
HINTS = {
    "address-refused": "--allow-private opens private networks",
    "connect": "nobody takes connections there, check the host and the port",
    "no-such-host": "check how the host is spelled",
    "protocol": "what answers there is no web server",
}


def register(app: typer.Typer) -> None:
    command = with_crawl_options(run)
    app.command(
        name="crawl",
        cls=CrawlCommand,
        help="Crawl from URLs into a folder; the same command on the same folder goes on where it stopped.",
    )(command)


def run(order: CrawlJob) -> None:
    """Carries out an order and ends with its exit code."""
    import uvloop

    if order.settings.images and (order.recrawl or order.settings.keep_fresh):
        _tell_if_blind()
    stats, ended_by = uvloop.run(_crawl(order))
    if order.settings.workers and order.settings.index:
        ended_by = _index_shards(order, stats, ended_by)
    _end(order, stats, ended_by)


def _tell_if_blind() -> None:
    from lycosa.recrawl.change.image import can_decode

    if not can_decode():
        _tell_trouble(
            "Pillow is not installed: a picture with other bytes counts as changed; "
            "pip install lycosa[images] compares what pictures show"
        )


def finish(order: CrawlJob, crawl: "Callable[[ClusterCallbacks], Awaitable[tuple[CrawlStats, str]]]") -> None:
    """Carries out an order by several processes, wherever they are, and ends with its exit code."""
    import uvloop

    if order.settings.index:
        _tell_trouble(f"--index is for one machine: a search, or lycosa index {order.into}, takes in the shards here")
    _end(order, *uvloop.run(_crawl_with_others(order, crawl)))


def _index_shards(order: CrawlJob, stats: "CrawlStats", ended_by: str) -> str:
    """Nobody follows shards: their index is made when they are closed, unless the user wants to leave. Returns what
    ended it all."""
    from lycosa.cli.search import IndexingProgress
    from lycosa.errors import StoreError
    from lycosa.search import make_index

    if ended_by != "interrupted" and stats.pages:
        progress = IndexingProgress()
        try:
            make_index(order.into, progress=None if order.quiet else progress)
        except KeyboardInterrupt:
            ended_by = "interrupted"
        except StoreError as error:
            _tell_trouble(f"the search index was not brought up to date: {error}")
        progress.end()
    if ended_by == "interrupted":
        _tell_if_behind(order)
    return ended_by


def _end(order: CrawlJob, stats: "CrawlStats", ended_by: str) -> None:
    from lycosa.cli.summary import as_json, limit_used_up, summary, visits_left

    if order.json:
        sys.stdout.buffer.write(as_json(stats, ended_by=ended_by or "done") + b"\n")
    elif not order.quiet:
        used_up = order.rest or ("" if order.recrawl else limit_used_up(order.settings, ended_by))
        budget = order.recrawl.budget if order.recrawl else None
        if budget is None and (order.recrawl or order.settings.keep_fresh):
            budget = order.settings.visits_per_day
        left = visits_left(stats, ended_by, keeps_fresh=order.settings.keep_fresh and not order.recrawl)
        if order.recrawl and order.recrawl.everything and order.recrawl.most and not (stats.run_visits or ended_by):
            left = "every page was looked at within the hour: --all without --visits looks at them once more"
        print(summary(stats, order.into, used_up=used_up, left=left, budget=budget))
    is_recrawl = order.recrawl is not None or stats.run_visits > 0
    code = _exit_code(stats, ended_by, fail_on_limit=order.settings.fail_on_limit, is_recrawl=is_recrawl)
    if code:
        raise typer.Exit(code)


def _exit_code(stats: "CrawlStats", ended_by: str, *, fail_on_limit: bool, is_recrawl: bool = False) -> int:
    from lycosa.cli.wording import most_first

    if ended_by == "interrupted":
        return INTERRUPTED
    if is_recrawl and stats.has_only_silence:
        why = _worded(most_first(stats.run_statuses))
        print(f"lycosa: no page could be looked at again, nobody answered: {why}", file=sys.stderr)
        return NOTHING_FETCHED
    if ended_by in LIMITS:
        return LIMIT if fail_on_limit else 0
    if stats.pages == 0:
        why = stats.standing if ended_by == "waiting" else _reasons(stats)
        print(f"lycosa: nothing could be fetched: {why}", file=sys.stderr)
        return NOTHING_FETCHED
    if stats.has_only_silence:
        why = _worded(most_first(stats.run_statuses))
        print(f"lycosa: nobody answered in this run: {why}; the same command asks again", file=sys.stderr)
        return NOTHING_FETCHED
    return 0


def _reasons(stats: "CrawlStats") -> str:
    """`no such host (2), connect (1)`, and what helps where an option does."""
    from lycosa.cli.wording import most_first

    why = most_first({**stats.failed, **stats.dropped}) or most_first(stats.ignored)
    return _worded(why)


def _worded(why: list[tuple[str, int]]) -> str:
    from lycosa.cli.wording import count, reason

    words = ", ".join(f"{reason(name)} ({count(many)})" for name, many in why) or "no page was found"
    return "; ".join([words, *(HINTS[name] for name, _ in why[:1] if name in HINTS)])


async def _crawl(order: CrawlJob) -> tuple["CrawlStats", str]:
    import asyncio
    import signal

    from lycosa.api.crawl import Crawl
    from lycosa.api.process import freeze_garbage_collector, return_large_blocks
    from lycosa.cli.progress import view_on

    if order.settings.workers:
        return await _crawl_with_workers(order)
    _require_no_shards(order.settings)
    view = view_on(sys.stderr, quiet=order.quiet)
    async with Crawl(into=order.into, settings=order.settings, recrawl=order.recrawl) as crawl:
        freeze_garbage_collector()
        return_large_blocks()
        loop = asyncio.get_running_loop()
        for signum in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(signum, crawl.stop, "interrupted")
        shower = None if order.quiet else loop.create_task(_show(crawl, view.show))
        try:
            stats = await crawl.finish()
        finally:
            if shower is not None:
                shower.cancel()
            view.close()
    following = crawl.following
    if following is not None and not following.is_complete:
        _tell_if_behind(order)
    return stats, "interrupted" if following is not None and following.is_hurried else crawl.engine.stopped_by


def _require_no_shards(settings: "CrawlSettings") -> None:
    """What only shards can do is not left undone in silence."""
    if settings.store:
        raise SettingsError("--store is for the shards of --workers N: say how many")
    if settings.assignment != type(settings)().assignment:
        raise SettingsError("--assignment is for the shards of --workers N: say how many")
    if settings.letters:
        raise SettingsError("letters are for --workers N and --assignment letter-sum")
    if settings.places:
        raise SettingsError("--places is for a cluster: lycosa cluster crawl")


class ClusterCallbacks(NamedTuple):
    """How a crawl of several processes is shown, and whom Ctrl-C goes to."""

    show: "Callable[[CrawlStats], None]"
    tell: "Callable[[str], None]"
    on_start: "Callable[[RunningCrawl], None]"


async def _crawl_with_others(
    order: CrawlJob, crawl: "Callable[[ClusterCallbacks], Awaitable[tuple[CrawlStats, str]]]"
) -> tuple["CrawlStats", str]:
    import asyncio
    import signal

    from lycosa.cli.progress import view_on

    view = view_on(sys.stderr, quiet=order.quiet)

    def on_start(cluster: "RunningCrawl") -> None:
        for signum in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(signum, cluster.stop, "interrupted")

    try:
        return await crawl(ClusterCallbacks(view.show, _tell_trouble, on_start))
    finally:
        view.close()


async def _crawl_with_workers(order: CrawlJob) -> tuple["CrawlStats", str]:
    from lycosa.cluster import run as local

    if order.settings.index and order.settings.keep_fresh:
        _tell_trouble("--index with --workers makes the search index at the end; a search before that makes its own")

    async def crawl(showing: ClusterCallbacks) -> tuple["CrawlStats", str]:
        return await local.crawl_on_this_machine(order.into, order.settings, **showing._asdict())

    return await _crawl_with_others(order, crawl)


def _tell_if_behind(order: CrawlJob) -> None:
    from lycosa.search import is_index_behind

    if is_index_behind(order.into):
        what = f"the next search, or lycosa index {order.into}, brings it up to date"
        _tell_trouble(f"the search index is behind: {what}")


def _tell_trouble(words: str) -> None:
    print(f"lycosa: {words}", file=sys.stderr)


async def _show(crawl: "Crawl", show: "object") -> None:
    import asyncio

    from lycosa.cli.wording import counted

    assert callable(show)
    while not crawl.is_indexing:
        show(crawl.stats())
        await asyncio.sleep(VIEW_EVERY_S)
    while crawl.following is not None:
        await asyncio.sleep(INDEXING_EVERY_S)
        behind = crawl.following.behind
        what = f"{counted(behind, 'URL')} to go" if behind else "names and ranks"
        print(f"indexing: {what}; Ctrl-C leaves the rest to the next search", file=sys.stderr)


def register_recrawl(app: typer.Typer) -> None:
    app.command(name="recrawl")(recrawl)


def recrawl(
    into: Folder,
    budget: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Pages looked at a day, over all runs, each once an hour at most [a tenth of all]."
        ),
    ] = None,
    visits: Annotated[int | None, typer.Option(min=1, metavar="N", help="Stop after N visits.")] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Every page, due or not, oldest first, and URLs that have failed.")
    ] = False,
    time_s: Annotated[str | None, typer.Option("--time", metavar="TIME", help="Stop after 90, 10m or 2h.")] = None,
    archive: Annotated[str | None, typer.Option(metavar="WORD", help=ARCHIVE_HELP)] = None,
    patch: Annotated[str | None, typer.Option(metavar="WORD", help=PATCH_HELP)] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output at the end.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
) -> None:
    """Look again at the pages that are due, and keep what has changed.

    When a page is due follows from how often it changed and how much it matters. A run makes up for a week at most; the
    same command again goes on. `lycosa changes DIR` shows what was found.
    """
    from lycosa.cli.options import CrawlJob, gather
    from lycosa.cluster.run import require_one_process
    from lycosa.crawl.limits import Recrawl
    from lycosa.inspect import open_to_read

    with open_to_read(into):
        pass  # says so if this is no collection
    require_one_process(into)
    order = Recrawl(budget=budget, most=visits, everything=everything, time_s=_seconds(time_s))
    run(
        CrawlJob(
            gather(
                {name: word for name, word in (("archive", archive), ("patch", patch)) if word},
                into=into,
                options={"archive": "--archive", "patch": "--patch"},
            ),
            into,
            json=json,
            quiet=quiet,
            recrawl=order,
        )
    )


def _seconds(text: str | None) -> float | None:
    """Read as the setting of the same name is."""
    from lycosa.settings import SettingsSource, merge

    return None if text is None else merge(SettingsSource({"time_s": text}, lambda _: "--time")).time_s
