"""`lycosa status`, `why`, `hosts` and `add`: what a collection can be asked, and fed, from outside.

They read the committed state beside a running crawl, or without one.
"""

import sys
from contextlib import suppress
from enum import StrEnum
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lycosa.errors import SettingsError

if TYPE_CHECKING:
    from lycosa.engine.views import HostView

ROWS = 50

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="A collection: the folder a crawl went into.")]


def register(app: typer.Typer) -> None:
    app.command()(status)
    app.command()(why)
    app.command()(hosts)
    app.command()(add)


def status(into: Folder, json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False) -> None:
    """What a collection holds and what is still queued; of a crawl that runs, its pace."""
    from lycosa.cli.summary import as_json, limit_reached, limit_used_up, summary
    from lycosa.engine.views import open_to_read, settings_of, stats_of

    with open_to_read(into) as collection:
        stats = stats_of(collection)
        has_shards = hasattr(collection, "shards")
        used_up = ""
        if stats.queued and not json and not stats.is_running:
            with suppress(SettingsError):  # settings that cannot be read are for the next crawl to complain of
                settings = settings_of(collection)
                used_up = limit_used_up(settings, limit_reached(settings, stats))
    if has_shards:
        _tell_lost_shards(into)
    if json:
        sys.stdout.buffer.write(as_json(stats) + b"\n")
    else:
        print(summary(stats, into, used_up=used_up, is_status=True))


def _tell_lost_shards(into: Path) -> None:
    from lycosa.cluster.local import lost_shards

    for words in lost_shards(into):
        print(f"lycosa: {words}", file=sys.stderr)


def why(
    url: Annotated[str, typer.Argument(metavar="URL", help="Any URL, known or not.")],
    into: Annotated[Path, typer.Option("--in", metavar="DIR", help="The collection.")],
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object, with sizes and change parameters.")
    ] = False,
) -> None:
    """Why a URL is where it is: queued, done, failed or dropped, and for what reason."""
    from lycosa.engine.views import open_to_read
    from lycosa.engine.views import why as reasons

    with open_to_read(into) as collection:
        if json:
            import msgspec

            from lycosa.engine.change_views import url_view

            sys.stdout.buffer.write(msgspec.json.encode(url_view(collection, url)) + b"\n")
            return
        first, *others = reasons(collection, url)
    print("\n".join([first, *(f"  {line}" for line in others)]))


class HostOrder(StrEnum):
    """By what hosts are sorted: the most first, names from the top-level domain on."""

    PAGES = "pages"
    QUEUED = "queued"
    ERRORS = "errors"
    RETRIES = "retries"
    BYTES = "bytes"
    MEAN = "mean"
    DELAY = "delay"
    TIME = "time"
    NAME = "name"


_FIELDS = {HostOrder.ERRORS: "failed", HostOrder.MEAN: "mean_s", HostOrder.DELAY: "delay_s", HostOrder.TIME: "time_s"}


def hosts(
    into: Folder,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")] = False,
    all_rows: Annotated[bool, typer.Option("--all", help=f"Show every host, not the first {ROWS}.")] = False,
    sort: Annotated[HostOrder, typer.Option("--sort", help="What comes first: the most of this.")] = HostOrder.PAGES,
) -> None:
    """The hosts of a collection: pages, queue, pace, the time from first to last answer, and what each waits for."""
    import msgspec

    from lycosa.engine.views import hosts as views
    from lycosa.engine.views import open_to_read

    with open_to_read(into) as collection:
        rows = views(collection)
        if sort is HostOrder.NAME:
            rows = iter(sorted(rows, key=lambda row: row.host.partition("://")[2].split(".")[::-1]))
        else:
            rows = iter(sorted(rows, key=attrgetter(_FIELDS.get(sort, sort.value)), reverse=True))
        if json:
            for row in rows:
                sys.stdout.buffer.write(msgspec.json.encode(row) + b"\n")
            return
        print(f"{'pages':>8}{'queued':>9}{'failed':>8}{'bytes':>10}{'mean s':>8}{'delay':>7}{'time':>9}  host")
        for row in rows if all_rows else islice(rows, ROWS):
            print(_host_line(row))
        if not all_rows and next(rows, None) is not None:
            print(f"more than {ROWS} hosts; --all shows them")


def _host_line(row: "HostView") -> str:
    from lycosa.cli.wording import count, duration, printable, reason, size

    counts = f"{row.pages:>8,}{row.queued:>9,}{row.failed:>8,}{size(row.bytes):>10}{row.mean_s:>8.2f}{row.delay_s:>7g}"
    notes = [f"given up: {reason(row.gave_up)}"] if row.gave_up else [row.waits] if row.waits else []
    if row.retries:
        others = f" and {count(row.retries - 1)} more" if row.retries > 1 else ""
        notes.append(f"{row.next_retry}{others}")
    line = f"{counts}{duration(row.time_s) if row.requests else '-':>9}  {row.host}"
    return printable(line + (f"  ({'; '.join(notes)})" if notes else ""), sys.stdout.encoding)


def add(
    into: Folder,
    urls: Annotated[list[str] | None, typer.Argument(metavar="URL", help="URLs to crawl too.")] = None,
    url_files: Annotated[
        list[str] | None, typer.Option("-i", metavar="FILE", help="URLs from a file, one a line; - for standard input.")
    ] = None,
) -> None:
    """Feed URLs to a crawl: to a running one at once, to a stopped one when it goes on."""
    from lycosa.cli.url_list import read_urls
    from lycosa.cli.wording import counted
    from lycosa.engine.inbox import Inbox, refuse_private
    from lycosa.engine.views import open_to_read, settings_of
    from lycosa.settings import Source, merge
    from lycosa.web.url import parse

    with open_to_read(into) as collection:
        settings = settings_of(collection)
    wanted = [*(urls or []), *(url for file in url_files or [] for url in read_urls(file))]
    if not wanted:
        raise SettingsError("there is nothing to add: give a URL, or a file of them with -i FILE")
    seeds = merge(Source({"seeds": wanted}, lambda _: "the list of URLs")).seeds
    refuse_private((url for seed in seeds if (url := parse(seed))), settings, into)
    Inbox(into).put(seeds)
    print(f"{counted(len(seeds), 'URL')} handed to {into}", file=sys.stderr)
