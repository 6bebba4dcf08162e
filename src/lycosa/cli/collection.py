"""Commands that look into a collection: `status`, `why`, `hosts`, `tree`, `links`, `rank`.

They read the committed state beside a running crawl, or without one; `rank` stores its result in the collection.
"""

import csv
import importlib.util
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from lycosa.cli.options import AsJson, AsJsonLines, CommandTable, Folder, InFolder, UrlPrefix
from lycosa.cli.summary import as_json, limit_reached, limit_used_up, summary
from lycosa.cli.wording import count, counted, duration, folder_word, note, printable, reason, say, say_json, size
from lycosa.cluster import lost_shards
from lycosa.errors import MissingExtra, NoPage, SettingsError, StoreError
from lycosa.graph import LinkView, Ranked, links_of, rank_hosts, rank_pages, ranked_pages
from lycosa.inspect import (
    HostColumn,
    HostTable,
    HostView,
    asked_url,
    explain_url,
    host_views,
    open_to_read,
    settings_of,
    stats_of,
    url_tree,
    url_view,
)
from lycosa.records import Family
from lycosa.web import url_key

ROWS = 50

TREE_ROWS = 40
MAX_TREE_ROWS = 10_000  # what one can look at; a whole list of URLs is not what a tree is for
LINK_ROWS = 20
MOST_POINTS = 400  # of a plotted curve: more cannot be seen and only make the file large
_INDENT = "  "

app = CommandTable()


@app.command()
def status(into: Folder, json: AsJson = False) -> None:
    """Show what a collection holds and how its crawl is doing.

    The numbers are those of the last commit; of a crawl that is running, its pace is shown as well. With --json, types,
    languages, sizes and links count each document once: duplicates are left out.
    """
    with open_to_read(into) as collection:
        stats = stats_of(collection)
        has_shards = hasattr(collection, "shards")
        used_up, settings, waiting = "", None, 0
        with suppress(SettingsError):  # settings that cannot be read are for the next crawl to complain of
            settings = settings_of(collection)
            if settings.webhook or settings.atom or settings.apprise:
                from lycosa.notify import undelivered_changes  # lazy: only where somebody is to be told

                waiting = undelivered_changes(collection.state)
            if stats.queued and not stats.is_running:
                used_up = limit_used_up(settings, limit_reached(settings, stats))
    if has_shards:
        _tell_lost_shards(into)
    if json:
        sys.stdout.buffer.write(as_json(stats) + b"\n")
    else:
        print(summary(stats, into, used_up=used_up, is_status=True, settings=settings))
    if waiting:
        note(f"{counted(waiting, 'change')} not told to everybody yet: log.jsonl says why, the next run tells them")


def _tell_lost_shards(into: Path) -> None:
    for words in lost_shards(into):
        note(f"lycosa: {words}")


@app.command()
def why(
    url: Annotated[str, typer.Argument(metavar="URL", help="Any URL, known or not.")],
    into: InFolder,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object, with sizes and rates of change.")
    ] = False,
) -> None:
    """Say why a URL was fetched, is queued, failed or was skipped."""
    with open_to_read(into) as collection:
        if json:
            say_json(url_view(collection, url))
            return
        first, *others = explain_url(collection, url)
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


_COLUMNS: dict[HostOrder, HostColumn] = {
    HostOrder.PAGES: "pages",
    HostOrder.QUEUED: "queued",
    HostOrder.ERRORS: "failed",
    HostOrder.RETRIES: "retries",
    HostOrder.BYTES: "bytes",
    HostOrder.MEAN: "mean_s",
    HostOrder.DELAY: "delay_s",
    HostOrder.TIME: "time_s",
    HostOrder.NAME: "host",
}


@app.command()
def hosts(
    into: Folder,
    json: AsJsonLines = False,
    all_rows: Annotated[bool, typer.Option("--all", help=f"Show every host, not the first {ROWS}.")] = False,
    sort: Annotated[
        HostOrder, typer.Option("--sort", metavar="COLUMN", help=f"Sort by this column: {', '.join(HostOrder)}.")
    ] = HostOrder.PAGES,
) -> None:
    """List the hosts with their pages, pace and waits.

    Of each host it shows the pages kept, the URLs queued and failed, the bytes received, the mean response time, the
    delay between two requests, the time from its first to its last answer, what it waits for, and what it says on the
    use of its content.
    """
    with open_to_read(into) as collection:
        rows = host_views(collection, HostTable(collection).find(sort=_COLUMNS[sort]))
        if json:
            for row in rows:
                say_json(row)
            return
        print(f"{'pages':>8}{'queued':>9}{'failed':>8}{'bytes':>10}{'mean s':>8}{'delay':>7}{'time':>9}  host")
        for row in rows if all_rows else islice(rows, ROWS):
            print(_host_line(row))
        if not all_rows and next(rows, None) is not None:
            print(f"more than {ROWS} hosts; --all shows them")


def _host_line(row: HostView) -> str:

    counts = f"{row.pages:>8,}{row.queued:>9,}{row.failed:>8,}{size(row.bytes):>10}{row.mean_s:>8.2f}{row.delay_s:>7g}"
    notes = [f"given up: {reason(row.gave_up)}"] if row.gave_up else [row.waits] if row.waits else []
    if row.retries:
        others = f" and {count(row.retries - 1)} more" if row.retries > 1 else ""
        notes.append(f"{row.next_retry}{others}")
    if row.preferences:
        notes.append(f"says: {row.preferences}")
    line = f"{counts}{duration(row.time_s) if row.requests else '-':>9}  {row.host}"
    return printable(line + (f"  ({'; '.join(notes)})" if notes else ""), sys.stdout.encoding)


@app.command(
    epilog="""
        lycosa tree my-crawl                             hosts and largest folders
        lycosa tree my-crawl --depth 1                   hosts only
        lycosa tree my-crawl example.org                 all hosts of a domain
        lycosa tree my-crawl https://example.org/docs/   one folder
    """
)
def tree(
    into: Folder,
    prefix: UrlPrefix = "",
    depth: Annotated[int | None, typer.Option(min=1, metavar="N", help="Go at most this many folders down.")] = None,
    rows: Annotated[
        int, typer.Option(min=1, max=MAX_TREE_ROWS, metavar="N", help="Show this many branches.")
    ] = TREE_ROWS,
    json: AsJsonLines = False,
) -> None:
    """Show known URLs as a tree of hosts and folders.

    Every line counts the URLs that start with its prefix: how many are known, queued, done, failed and dropped.
    A folder ends with a slash, a query with its question mark. The largest branches are shown wherever they are, so
    traps show: a calendar, a session id or a loop of folders outweighs the pages around it.
    """
    with open_to_read(into) as collection:
        found = url_tree(collection, prefix, depth=depth, rows=rows)
    if not found[0].known:
        about = f"that starts with {found[0].prefix}" if "://" in found[0].prefix else f"of {found[0].prefix}"
        note(f"{into} knows no URL {about if prefix else 'yet'}")
    if json:
        for branch in found:
            say_json(branch)
    elif found[0].known:
        print(f"{'known':>10}{'queued':>10}{'done':>10}{'failed':>8}{'dropped':>9}")
        for branch in found:
            counts = f"{branch.known:>10,}{branch.queued:>10,}{branch.done:>10,}{branch.failed:>8,}{branch.dropped:>9,}"
            more = f"  ({branch.left_out:,} more below)" if branch.left_out else ""
            line = f"{counts}  {_INDENT * branch.level}{branch.prefix or 'all'}{more}"
            say(line)


@app.command()
def links(
    url: Annotated[str, typer.Argument(metavar="URL", help="Any URL, fetched or not.")],
    into: InFolder,
    json: AsJson = False,
    rows: Annotated[int, typer.Option("-n", min=0, metavar="N", help="Show this many links each way.")] = LINK_ROWS,
) -> None:
    """Show which pages link to a URL, with what words, and where it links."""
    with open_to_read(into) as collection:
        asked = asked_url(collection, url)
        found = links_of(collection, asked.href, most=rows, note=note)
        if not found.pages_in and collection.state.get(Family.URL, url_key(asked.href)) is None:
            raise NoPage(
                f"{into} does not know {asked.href}, and no page of it links there:"
                f" lycosa why {asked.href} --in {folder_word(into)} says more"
            )
    if json:
        say_json(found)
        return
    print(found.url)
    _show_links(
        f"{counted(found.pages_in, 'page')} {'links' if found.pages_in == 1 else 'link'} here",
        found.links_in,
        found.pages_in,
    )
    _show_links(f"links to {counted(found.pages_out, 'URL')}", found.links_out, found.pages_out)


def _show_links(title: str, links: Sequence[LinkView], count: int) -> None:
    print(f"  {title}")
    for link in links:
        words = f'"{link.anchor}"' if link.anchor else ""
        say(f"    {link.kind:<8} {link.url}  {words}".rstrip())
    if count > len(links):
        print(f"    and {count - len(links):,} more; -n shows them")


@app.command()
def rank(
    into: Folder,
    rows: Annotated[int, typer.Option("-n", min=0, metavar="N", help="Show this many.")] = LINK_ROWS,
    hosts: Annotated[bool, typer.Option("--hosts", help="Rank hosts by harmonic centrality instead of pages.")] = False,
    export: Annotated[
        Path | None, typer.Option("--export", metavar="FILE", help="Write all of them to FILE.csv or FILE.jsonl.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE.svg", help="Plot how the ranks are distributed.")
    ] = None,
    json: AsJson = False,
) -> None:
    """List the most important pages or hosts by their links (PageRank).

    The ranks stay with the collection: searches and revisits go by them.
    """
    _check_outputs(export, plot)
    steps = 0
    with open_to_read(into) as collection:
        if hosts:
            everyone: Iterable[Ranked] = rank_hosts(collection, note)
            values = [each.rank for each in everyone]
        else:
            ranks, steps = rank_pages(collection, note)
            values = ranks.ranks.tolist()
            everyone = ranked_pages(collection, ranks, most=None if export else rows)
        shown = _write_ranking(export, everyone, rows)
    if plot:
        _draw_ranks(plot, values, "centrality" if hosts else "PageRank")
    if json:
        kind = "hosts" if hosts else "pages"
        say_json({kind: len(values), "steps": steps, "top": shown})
        return
    _show_ranking(shown, len(values), "hosts" if hosts else "pages")


def _show_ranking(shown: Sequence[Ranked], count: int, what: str) -> None:
    for each in shown:
        say(f"{each.place:>6}  {each.rank:<10.4g}  {each.url}")
    note(f"{len(shown):,} of {count:,} {what}")


def _check_outputs(export: Path | None, plot: Path | None) -> None:
    """Says now what would only fail after the work."""
    if export and export.suffix not in (".csv", ".jsonl"):
        raise SettingsError(f"--export writes FILE.csv or FILE.jsonl, not {export.name!r}")
    if plot and plot.suffix != ".svg":
        raise SettingsError(f"--plot writes FILE.svg, not {plot.name!r}")
    if plot and importlib.util.find_spec("matplotlib") is None:
        raise MissingExtra.of("plot", what="--plot")
    for path in (export, plot):
        if path and not path.absolute().parent.is_dir():
            raise SettingsError(f"{path} cannot be written: there is no folder {path.parent}")


def _write_ranking(export: Path | None, everyone: Iterable[Ranked], rows: int) -> list[Ranked]:
    """Writes all of them to the file, if one is wanted; returns the first ones."""
    shown: list[Ranked] = []
    if export is None:
        for each in everyone:
            if len(shown) == rows:
                break
            shown.append(each)
        return shown
    new = export.with_name(export.name + ".new")
    try:
        with new.open("w", encoding="utf-8", newline="") as file:
            table = csv.writer(file, lineterminator="\n") if export.suffix == ".csv" else None
            if table:
                table.writerow(("place", "url", "rank"))
            for each in everyone:
                if len(shown) < rows:
                    shown.append(each)
                if table:
                    table.writerow((each.place, each.url, repr(each.rank)))
                else:
                    file.write(msgspec.json.encode(each).decode() + "\n")
        new.replace(export)
    except OSError as error:
        raise StoreError(f"{export} cannot be written: {error.strerror}") from error
    note(f"{export} written")
    return shown


def _draw_ranks(path: Path, values: list[float], what: str) -> None:
    """The share of pages at or above each value, both axes logarithmic: the usual picture of a heavy tail."""
    if not any(value > 0 for value in values):
        raise SettingsError("there is nothing to draw: no page of the collection links to another")
    is_rank = what == "PageRank"
    descending = sorted((value * len(values) if is_rank else value for value in values), reverse=True)
    places = sorted({round(len(values) ** (i / MOST_POINTS)) for i in range(MOST_POINTS + 1)})  # dense in the thin tail
    from matplotlib import rc_context  # an extra, which only --plot needs
    from matplotlib.figure import Figure

    # The same values give the same file: no date, no random ids; text stays text.
    with rc_context({"svg.hashsalt": path.stem, "svg.fonttype": "none"}):
        figure = Figure(figsize=(6.8, 4.2), layout="constrained")
        panel = figure.add_subplot(
            title=f"Few have much: {what} of {len(values):,}",
            xlabel=f"{what} × count, 1 is the mean" if is_rank else what,
            ylabel="share of values ≥ x",
        )
        heights = [place / len(values) for place in places]
        panel.loglog([descending[place - 1] for place in places], heights, color="#0072b2")
        panel.grid(color="#e4e4e4")
        try:
            figure.savefig(path, format="svg", metadata={"Creator": None, "Date": None})
        except OSError as error:
            raise StoreError(f"{path} cannot be written: {error.strerror}") from error
    note(f"{path} written")
