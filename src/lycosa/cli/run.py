"""Runs a crawl for a command: live view, Ctrl-C, summary, exit code.

The first Ctrl-C lets requests in flight end, commits and exits; the second one stops at once, and files stay valid.
Called by `crawl`, `recrawl`, `demo` and `cluster crawl`.
"""

import asyncio
import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import typer
import uvloop

from lycosa.api import Crawl
from lycosa.cli.options import CrawlJob
from lycosa.cli.progress import ProgressView, view_on
from lycosa.cli.startup import INTERRUPTED, raise_on_interrupt
from lycosa.cli.summary import as_json, limit_used_up, summary, visits_left
from lycosa.cli.wording import count, counted, duration, folder_word, most_first, reason
from lycosa.crawl import NEW_SETTINGS, CrawlStats
from lycosa.errors import SettingsError, StoreError
from lycosa.processes import return_large_blocks
from lycosa.settings import DEFAULTS, CrawlSettings
from lycosa.web import format_date

if TYPE_CHECKING:
    from lycosa.cluster import RunningCrawl

VIEW_EVERY_S = 0.25
INDEXING_EVERY_S = 5.0
NOTHING_FETCHED, LIMIT = 1, 3
LIMITS = ("pages", "bytes", "time")
NOT_ACCEPTED = "401, although a name and password were given"
HINTS = {
    "401": "the pages want to know who asks, --user NAME:PASSWORD or --header says so",
    NOT_ACCEPTED: "the name and password of --user were not accepted",
    "address-refused": "--allow-private opens private networks",
    "connect": "nobody takes connections there, check the host and the port",
    "login-failed": "the form login did not work, log.jsonl says why",
    "no-such-host": "check how the host is spelled",
    "preferences": "its publisher says that it is not for this --purpose",
    "protocol": "what answers there is no web server",
}


def run(job: CrawlJob) -> None:
    """Does a job and ends with its exit code."""
    if job.settings.images and (job.recrawl or job.settings.keep_fresh):
        _warn_without_pillow()
    if job.settings.webhook or job.settings.atom or job.settings.apprise:
        from lycosa.notify import require_targets  # lazy: only where somebody is to be told

        require_targets(job.settings, job.into)
    with _live_page(job):
        stats, ended_by = uvloop.run(_crawl(job))
        raise_on_interrupt()  # the handlers of the event loop are gone
    if job.settings.workers and job.settings.index:
        ended_by = _index_shards(job, stats, ended_by)
    _end(job, stats, ended_by)


@contextmanager
def _live_page(job: CrawlJob) -> Iterator[None]:
    """The live page beside a crawl, where it is asked for, in a process of its own. It ends with this one, however that
    ends: it listens on a pipe."""
    if not job.serves:
        yield
        return
    words = [sys.executable, "-m", "lycosa", "serve", str(job.into), "--port", "0", "--beside"]
    page = subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert page.stdin is not None
    assert page.stdout is not None
    assert page.stderr is not None
    link = page.stdout.readline().strip()
    if not link:
        raise SettingsError(page.stderr.read().strip().removeprefix("lycosa: ") or "the live page did not start")
    _warn(f"the live page is at {link}")
    try:
        yield
    finally:
        page.stdin.close()
        page.wait(timeout=10)


def finish(job: CrawlJob, crawl: "Callable[[ClusterCallbacks], Awaitable[tuple[CrawlStats, str]]]") -> None:
    """Does a job with several processes, wherever they are, and ends with its exit code."""
    if job.settings.index:
        _warn(
            f"--index is for one machine: the next search, or lycosa index {job.into}, indexes the shards that are here"
        )
    stats, ended_by = uvloop.run(_crawl_with_others(job, crawl))
    raise_on_interrupt()
    _end(job, stats, ended_by, in_cluster=True)


def _warn_without_pillow() -> None:
    from lycosa.recrawl import can_decode  # lazy: change detection, which a first crawl can do without

    if not can_decode():
        _warn(
            "Pillow is not installed, so an image counts as changed when its bytes differ: "
            "pip install lycosa[images] compares what images show"
        )


def _index_shards(job: CrawlJob, stats: CrawlStats, ended_by: str) -> str:
    """Nobody follows shards: their index is made when they are closed, unless the user wants to leave. Returns what
    ended it all."""
    # lazy: search and tantivy take 0.07 s to import
    from lycosa.cli.search import IndexingProgress
    from lycosa.search import make_index  # lazy: likewise

    if ended_by != "interrupted" and stats.pages:
        progress = IndexingProgress()
        try:
            make_index(job.into, progress=None if job.quiet else progress)
        except KeyboardInterrupt:
            ended_by = "interrupted"
        except StoreError as error:
            _warn(f"the search index was not updated: {error}")
        progress.end()
    if ended_by == "interrupted":
        _warn_if_index_is_behind(job)
    return ended_by


def _end(job: CrawlJob, stats: CrawlStats, ended_by: str, *, in_cluster: bool = False) -> None:
    if job.json:
        sys.stdout.buffer.write(as_json(stats, ended_by=ended_by or "done") + b"\n")
    elif not job.quiet:
        used_up = job.leftover_note or ("" if job.recrawl else limit_used_up(job.settings, ended_by))
        budget = job.recrawl.budget if job.recrawl else None
        if budget is None and (job.recrawl or job.settings.keep_fresh):
            budget = job.settings.visits_per_day
        keeps_fresh = job.settings.keep_fresh and not job.recrawl
        command = "the same command"
        if job.recrawl and (job.recrawl.everything or job.recrawl.urls) and not job.recrawl.most:
            command = f"`lycosa recrawl {folder_word(job.into)}`"  # the same one would visit all of them again
        left = visits_left(stats, ended_by, keeps_fresh=keeps_fresh, in_cluster=in_cluster, command=command)
        if job.recrawl and job.recrawl.everything and job.recrawl.most and not (stats.run_visits or ended_by):
            left = "every page was visited within the last hour: --all without --visits visits them once more"
        if job.recrawl and not (job.recrawl.urls or job.recrawl.everything or stats.run_visits or ended_by or left):
            left = _next_visit_words(job)
        print(
            summary(
                stats,
                job.into,
                used_up=used_up,
                left=left,
                budget=budget,
                recrawl=job.recrawl,
                settings=None if job.leftover_note else job.settings,
            )
        )
    code = _exit_code(
        stats,
        ended_by,
        fail_on_limit=job.settings.fail_on_limit,
        is_recrawl=job.recrawl is not None or stats.run_visits > 0,
        has_order=job.recrawl is not None and bool(job.recrawl.everything or job.recrawl.urls),
        bare_seeds=job.bare_seeds,
        has_users=bool(job.settings.users),
    )
    if code:
        raise typer.Exit(code)


def _next_visit_words(job: CrawlJob) -> str:
    """Why nothing was visited, and when something will be."""
    # lazy: views and change detection take 0.1 s to import, which the first request of a crawl need not wait for
    from lycosa.inspect import open_to_read
    from lycosa.recrawl import next_due  # lazy: likewise

    with open_to_read(job.into) as collection:
        at_s = next_due(collection.state)
    if at_s is None:
        return "nothing is due: there is no page to revisit yet"
    if (left_s := at_s - time.time()) <= 0:
        return f"nothing was due when it began; a page is since {format_date(at_s)}: the same command visits it"
    return f"nothing was due; the next page is due in {duration(left_s)}, at {format_date(at_s)}"


def _exit_code(
    stats: CrawlStats,
    ended_by: str,
    *,
    fail_on_limit: bool,
    is_recrawl: bool = False,
    has_order: bool = False,
    bare_seeds: Sequence[str] = (),
    has_users: bool = False,
) -> int:
    """Says what went wrong, too. `has_order`: pages were to be visited, due or not."""
    if ended_by == "interrupted":
        return INTERRUPTED
    hints = Hints(bare_seeds, has_users)
    asked = hints.after(most_first(stats.run_statuses))
    if is_recrawl and stats.has_only_silence:
        is_refused = "address-refused" in stats.run_statuses  # a host that is down is asked with nothing due, too
        if not (stats.run_visits or stats.revisiting or has_order or is_refused):
            return 0
        _warn(f"no page could be visited again, no host answered: {asked}")
        return NOTHING_FETCHED
    if ended_by in LIMITS:
        return LIMIT if fail_on_limit else 0
    if stats.pages == 0:
        why = stats.standing if ended_by == "waiting" else _reasons(stats, hints)
        _warn(f"nothing could be fetched: {why}")
        return NOTHING_FETCHED
    if stats.has_only_silence:
        _warn(f"no host answered in this run: {asked}; the same command tries again")
        return NOTHING_FETCHED
    return 0


def _reasons(stats: CrawlStats, hints: "Hints") -> str:
    """`no such host (2), connect (1)`, and what helps where an option does."""
    return hints.after(most_first({**stats.failed, **stats.dropped}) or most_first(stats.ignored))


class Hints(NamedTuple):
    """What helps, by how the crawl was asked for: seeds without a scheme, a name and password."""

    bare_seeds: Sequence[str]
    has_users: bool

    def after(self, why: list[tuple[str, int]]) -> str:
        """Why URLs failed, the most frequent first, and what helps."""
        words = ", ".join(f"{reason(name)} ({count(many)})" for name, many in why) or "no page was found"
        first = "".join(name for name, _ in why[:1])
        hints = [HINTS[NOT_ACCEPTED if first == "401" and self.has_users else first]] if first in HINTS else []
        if self.bare_seeds and any(name == "tls" for name, _ in why):
            seed = self.bare_seeds[0]
            hints.append(f"{seed} was taken as https: try http://{seed}")
        return "; ".join([words, *hints])


async def _crawl(job: CrawlJob) -> tuple[CrawlStats, str]:
    if job.settings.workers:
        return await _crawl_with_workers(job)
    _require_no_shards(job.settings)
    before: RunBefore | None = None
    while True:
        stats, ended_by, before = await _crawl_once(job, before)
        if ended_by != NEW_SETTINGS:
            return stats, ended_by
        job = job._replace(settings=job.settings.replace(**before.new_settings))


class RunBefore(NamedTuple):
    """How a run ended that is continued: with which settings, and whether somebody had paused it."""

    new_settings: dict[str, Any]
    is_paused: bool


async def _crawl_once(job: CrawlJob, before: RunBefore | None) -> tuple[CrawlStats, str, RunBefore]:
    """A crawl until it ends; it may be to continue with settings that were changed meanwhile (`crawl.steering`)."""
    view = view_on(sys.stderr, quiet=job.quiet)
    return_large_blocks()  # before threads begin
    async with Crawl(into=job.into, settings=job.settings, recrawl=job.recrawl) as crawl:
        if before is not None:
            crawl.engine.orders.continue_run(is_paused=before.is_paused)
        gc.freeze()  # what is there by now stays
        _on_interrupt(view, crawl.stop, lambda: crawl.stats().in_flight)
        shower = None if job.quiet else asyncio.create_task(_show(crawl, view))
        try:
            stats = await crawl.finish()
        finally:
            if shower is not None:
                shower.cancel()
            view.close()
    for left in crawl.engine.features.leftovers():
        _warn(left)
    following = crawl.following
    if following is not None and not following.is_complete:
        _warn_if_index_is_behind(job)
    ended_by, changed = crawl.engine.stopped_by, crawl.engine.orders.new_settings
    if ended_by == NEW_SETTINGS and not job.quiet:
        view.note(f"continuing with {', '.join(f'{name} = {value}' for name, value in changed.items())}")
    elif following is not None and following.is_hurried:
        ended_by = "interrupted"
    return stats, ended_by, RunBefore(changed, crawl.engine.orders.is_paused)


def _on_interrupt(view: ProgressView, stop: Callable[[str], None], in_flight: Callable[[], int]) -> None:
    """From now on the first Ctrl-C is answered at once and stops the crawl gently, the second one at once. A terminal
    that is closed stops it gently, too, unless it is to live on (`nohup`)."""
    has_told = False

    def interrupted() -> None:
        nonlocal has_told
        if not has_told:
            has_told = True
            what = f"finishing {counted(many, 'request')}" if (many := in_flight()) else "writing what there is"
            view.note(f"Stopping: {what}, press Ctrl-C again to stop at once")
        stop("interrupted")

    terminals = [stream.fileno() for stream in (sys.stdout, sys.stderr) if stream.isatty()]

    def hung_up() -> None:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for number in terminals:  # whatever is written there would fail from now on
            os.dup2(nowhere, number)
        os.close(nowhere)
        if not has_told:  # the kernel and the shell both tell
            interrupted()

    loop = asyncio.get_running_loop()
    for signum in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(signum, interrupted)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        loop.add_signal_handler(signal.SIGHUP, hung_up)


def _require_no_shards(settings: CrawlSettings) -> None:
    """What only shards can do is not left undone in silence."""
    if settings.store:
        raise SettingsError("--store is for crawls with several processes: add --workers N")
    if settings.assignment != DEFAULTS["assignment"]:
        raise SettingsError("--assignment is for crawls with several processes: add --workers N")
    if settings.letters:
        raise SettingsError("letters are for --workers N with --assignment letter-sum")
    if settings.places:
        raise SettingsError("--places is for crawls of a cluster: lycosa cluster crawl")


class ClusterCallbacks(NamedTuple):
    """How a crawl of several processes is shown, and whom Ctrl-C goes to."""

    show: Callable[[CrawlStats], None]
    tell: Callable[[str], None]
    on_start: "Callable[[RunningCrawl], None]"


async def _crawl_with_others(
    job: CrawlJob, crawl: Callable[[ClusterCallbacks], Awaitable[tuple[CrawlStats, str]]]
) -> tuple[CrawlStats, str]:
    view, latest = view_on(sys.stderr, quiet=job.quiet), CrawlStats()

    def show(stats: CrawlStats) -> None:
        nonlocal latest
        latest = stats
        view.show(stats)

    def on_start(cluster: "RunningCrawl") -> None:
        _on_interrupt(view, cluster.stop, lambda: latest.in_flight)

    try:
        return await crawl(ClusterCallbacks(show, _warn, on_start))
    finally:
        view.close()


async def _crawl_with_workers(job: CrawlJob) -> tuple[CrawlStats, str]:
    # lazy: the cluster takes 0.03 s to import
    from lycosa.cluster import crawl_on_this_machine

    if job.settings.index and job.settings.keep_fresh:
        _warn("with --workers the search index is built at the end; a search before that builds its own")

    async def crawl(callbacks: ClusterCallbacks) -> tuple[CrawlStats, str]:
        return await crawl_on_this_machine(job.into, job.settings, recrawl=job.recrawl, **callbacks._asdict())

    return await _crawl_with_others(job, crawl)


def _warn_if_index_is_behind(job: CrawlJob) -> None:
    # lazy: search and tantivy take 0.07 s to import
    from lycosa.search import is_index_behind

    if is_index_behind(job.into):
        _warn(f"the search index is behind: the next search, or lycosa index {job.into}, updates it")


def _warn(words: str) -> None:
    print(f"lycosa: {words}", file=sys.stderr)


async def _show(crawl: Crawl, view: ProgressView) -> None:
    while not crawl.is_indexing:
        view.show(crawl.stats())
        await asyncio.sleep(VIEW_EVERY_S)
    while crawl.following is not None:
        await asyncio.sleep(INDEXING_EVERY_S)
        behind = crawl.following.behind
        what = f"{counted(behind, 'URL')} to go" if behind else "names and ranks"
        view.note(f"indexing: {what}; Ctrl-C leaves the rest to the next search")
