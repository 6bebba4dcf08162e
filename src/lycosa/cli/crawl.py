"""`lycosa crawl`: crawls into a collection with a live view, a summary and an exit code; the same command goes on.

First Ctrl-C: what is in flight may end, then commit and exit. Second: stop at once; files stay valid.
"""

import sys
from typing import TYPE_CHECKING

import typer

from lycosa.cli.beginning import INTERRUPTED
from lycosa.cli.crawl_options import CrawlCommand, CrawlOrder, with_crawl_options

if TYPE_CHECKING:
    from lycosa.engine.crawl import Crawl
    from lycosa.engine.stats import CrawlStats

VIEW_EVERY_S = 0.25
NOTHING_FETCHED, LIMIT = 1, 3
LIMITS = ("pages", "bytes", "time")
HINTS = {
    "address-refused": "--allow-private opens private networks",
    "connect": "nobody takes connections there, check the host and the port",
    "no-such-host": "check how the host is spelled",
    "protocol": "what answers there is no web server",
}
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # glibc's malloc.h
LARGE_BLOCK_BYTES = 512 << 10  # below RocksDB's 1 MB blocks, above the buffers that come and go with every page
HEAP_SPARE_BYTES = 4 << 20


def register(app: typer.Typer) -> None:
    command = with_crawl_options(run)
    app.command(
        name="crawl",
        cls=CrawlCommand,
        help="Crawl from URLs into a folder; the same command on the same folder goes on where it stopped.",
    )(command)


def run(order: CrawlOrder) -> None:
    """Carries out an order and ends with its exit code."""
    import uvloop

    from lycosa.cli.summary import as_json, summary

    stats, ended_by = uvloop.run(_crawl(order))
    if order.json:
        sys.stdout.buffer.write(as_json(stats, ended_by=ended_by or "done") + b"\n")
    elif not order.quiet:
        print(summary(stats, order.into))
    code = _exit_code(stats, ended_by, fail_on_limit=order.settings.fail_on_limit)
    if code:
        raise typer.Exit(code)


def _exit_code(stats: "CrawlStats", ended_by: str, *, fail_on_limit: bool) -> int:
    if ended_by == "interrupted":
        return INTERRUPTED
    if ended_by in LIMITS:
        return LIMIT if fail_on_limit else 0
    if stats.pages == 0:
        print(f"lycosa: nothing could be fetched: {_reasons(stats)}", file=sys.stderr)
        return NOTHING_FETCHED
    return 0


def _reasons(stats: "CrawlStats") -> str:
    """`no such host (2), connect (1)`, and what helps where an option does."""
    from lycosa.cli.wording import count, most_first, reason

    why = most_first({**stats.failed, **stats.dropped}) or most_first(stats.ignored)
    words = ", ".join(f"{reason(name)} ({count(many)})" for name, many in why) or "no page was found"
    return "; ".join([words, *(HINTS[name] for name, _ in why[:1] if name in HINTS)])


async def _crawl(order: CrawlOrder) -> tuple["CrawlStats", str]:
    import asyncio
    import signal

    from lycosa.cli.progress import view_on
    from lycosa.engine.crawl import Crawl

    view = view_on(sys.stderr, quiet=order.quiet)
    async with Crawl(into=order.into, settings=order.settings, recrawl=order.recrawl) as crawl:
        _calm_collector()
        _return_large_blocks()
        loop = asyncio.get_running_loop()
        for signum in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(signum, crawl.stop, "interrupted")
        shower = loop.create_task(_show(crawl, view.show))
        try:
            stats = await crawl.finish()
        finally:
            shower.cancel()
            view.close()
    return stats, crawl.engine.stopped_by


def _calm_collector() -> None:
    """What is there now stays: the collector need not look at it again."""
    import gc

    gc.freeze()


def _return_large_blocks() -> None:
    """Large blocks, such as those of memtables, go back to the kernel when they are freed. By itself glibc soon keeps
    blocks of up to 32 MB on its heap, where small ones settle in the gaps and hold them (docs/decisions/0007)."""
    import contextlib
    import ctypes

    with contextlib.suppress(OSError, AttributeError):  # another C library: it has its own ways
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(M_MMAP_THRESHOLD, LARGE_BLOCK_BYTES)
        mallopt(M_TRIM_THRESHOLD, HEAP_SPARE_BYTES)


async def _show(crawl: "Crawl", show: "object") -> None:
    import asyncio

    assert callable(show)
    while True:
        show(crawl.stats())
        await asyncio.sleep(VIEW_EVERY_S)
