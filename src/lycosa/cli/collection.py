"""Commands that read a collection: `status`, `why`, `hosts`, `tree`, `links`, `rank`; and `add`, which feeds it URLs.

They read the committed state beside a running crawl, or without one; `rank` stores its result in the collection.
"""

import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from enum import StrEnum
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lycosa.errors import MissingExtra, SettingsError, StoreError

if TYPE_CHECKING:
    from lycosa.graph import LinkView, Ranked
    from lycosa.inspect import HostView


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
    from lycosa.inspect import open_to_read, settings_of, stats_of

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
    from lycosa.cluster.run import lost_shards

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
    from lycosa.inspect import explain_url as reasons
    from lycosa.inspect import open_to_read

    with open_to_read(into) as collection:
        if json:
            import msgspec

            from lycosa.inspect import url_view

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

    from lycosa.inspect import hosts as views
    from lycosa.inspect import open_to_read

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
    from lycosa.cli.options import read_urls
    from lycosa.cli.wording import counted
    from lycosa.crawl.inbox import Inbox, refuse_private
    from lycosa.inspect import open_to_read, settings_of
    from lycosa.settings import SettingsSource, merge
    from lycosa.web import parse_url

    with open_to_read(into) as collection:
        settings = settings_of(collection)
    wanted = [*(urls or []), *(url for file in url_files or [] for url in read_urls(file))]
    if not wanted:
        raise SettingsError("there is nothing to add: give a URL, or a file of them with -i FILE")
    seeds = merge(SettingsSource({"seeds": wanted}, lambda _: "the list of URLs")).seeds
    refuse_private((url for seed in seeds if (url := parse_url(seed))), settings, into)
    Inbox(into).put(seeds)
    print(f"{counted(len(seeds), 'URL')} handed to {into}", file=sys.stderr)


TREE_ROWS = 40
MAX_TREE_ROWS = 10_000  # what one can look at; a whole list of URLs is not what a tree is for
_INDENT = "  "


def register_tree(app: typer.Typer) -> None:
    app.command()(tree)


def tree(
    into: Annotated[Path, typer.Argument(metavar="DIR", help="A collection: the folder a crawl went into.")],
    prefix: Annotated[
        str,
        typer.Argument(
            metavar="URL-PREFIX",
            help="The beginning of a URL (https://example.org/docs/), or a host or domain (example.org).",
            show_default=False,
        ),
    ] = "",
    depth: Annotated[
        int | None, typer.Option("--depth", min=1, metavar="N", help="Go at most N folders down.", show_default=False)
    ] = None,
    rows: Annotated[
        int, typer.Option("--rows", min=1, max=MAX_TREE_ROWS, metavar="N", help="Branches to show.")
    ] = TREE_ROWS,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")] = False,
) -> None:
    """The known URLs as a tree of hosts and folders, the heaviest branches first.

    Every line counts the URLs that start with its prefix: how many are known, queued, done, failed and dropped.
    A folder ends with a slash, a query with its question mark. The heaviest branches are shown wherever they are, so a
    trap shows itself: a calendar, a session id or a loop of folders outweighs the pages around it.

    \b
    lycosa tree my-crawl                                  hosts and their largest folders
    lycosa tree my-crawl --depth 1                        hosts only
    lycosa tree my-crawl example.org                      a domain: its hosts, every port and scheme
    lycosa tree my-crawl https://example.org/docs/        one folder
    lycosa why https://example.org/docs/a --in my-crawl   one URL
    """
    import msgspec

    from lycosa.cli.wording import printable
    from lycosa.inspect import open_to_read
    from lycosa.inspect import url_tree as branches

    with open_to_read(into) as collection:
        found = branches(collection, prefix, depth=depth, rows=rows)
    if not found[0].known:
        about = f"that starts with {found[0].prefix}" if "://" in found[0].prefix else f"of {found[0].prefix}"
        print(f"{into} knows no URL {about if prefix else 'yet'}", file=sys.stderr)
    if json:
        for branch in found:
            sys.stdout.buffer.write(msgspec.json.encode(branch) + b"\n")
    elif found[0].known:
        print(f"{'known':>10}{'queued':>10}{'done':>10}{'failed':>8}{'dropped':>9}")
        for branch in found:
            counts = f"{branch.known:>10,}{branch.queued:>10,}{branch.done:>10,}{branch.failed:>8,}{branch.dropped:>9,}"
            more = f"  ({branch.left_out:,} more below)" if branch.left_out else ""
            line = f"{counts}  {_INDENT * branch.level}{branch.prefix or 'all'}{more}"
            print(printable(line, sys.stdout.encoding))


MOST_POINTS = 400  # of a plotted curve: more cannot be seen and only make the file large
LINK_ROWS = 20


def register_links(app: typer.Typer) -> None:
    app.command()(links)
    app.command()(rank)


def links(
    url: Annotated[str, typer.Argument(metavar="URL", help="Any URL, fetched or not.")],
    into: Annotated[Path, typer.Option("--in", metavar="DIR", help="The collection.")],
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    rows: Annotated[int, typer.Option("-n", min=0, metavar="N", help="Show so many links each way.")] = LINK_ROWS,
) -> None:
    """Who points to a URL, with what words, and where it points."""
    import msgspec

    from lycosa.cli.wording import counted
    from lycosa.graph import links_of
    from lycosa.inspect import asked_url, open_to_read

    with open_to_read(into) as collection:
        found = links_of(collection, asked_url(collection, url).href, most=rows, note=_note)
    if json:
        sys.stdout.buffer.write(msgspec.json.encode(found) + b"\n")
        return
    print(found.url)
    _show_links(f"{found.pages_in:,} {_pages(found.pages_in)} here", found.links_in, found.pages_in)
    _show_links(f"points to {counted(found.pages_out, 'URL')}", found.links_out, found.pages_out)


def _note(text: str) -> None:
    print(text, file=sys.stderr)


def _pages(count: int) -> str:
    return "page points" if count == 1 else "pages point"


def _show_links(title: str, links: "Sequence[LinkView]", count: int) -> None:
    from lycosa.cli.wording import printable

    print(f"  {title}")
    for link in links:
        words = f'"{link.anchor}"' if link.anchor else ""
        print(printable(f"    {link.kind:<8} {link.url}  {words}".rstrip(), sys.stdout.encoding))
    if count > len(links):
        print(f"    and {count - len(links):,} more; -n shows them")


def rank(
    into: Folder,
    rows: Annotated[int, typer.Option("-n", min=0, metavar="N", help="Show so many.")] = LINK_ROWS,
    hosts: Annotated[bool, typer.Option("--hosts", help="Hosts by harmonic centrality instead of pages.")] = False,
    export: Annotated[
        Path | None, typer.Option("--export", metavar="FILE", help="Write all of them to FILE.csv or FILE.jsonl.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE.svg", help="Draw how the ranks are spread.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """The pages that links say matter most (PageRank); the ranks stay with the collection."""
    import msgspec

    from lycosa.graph import rank_hosts, rank_pages, ranked_pages
    from lycosa.inspect import open_to_read

    _check_outputs(export, plot)
    steps = 0
    with open_to_read(into) as collection:
        if hosts:
            everyone: Iterable[Ranked] = rank_hosts(collection, _note)
            values = [each.rank for each in everyone]
        else:
            ranks, steps = rank_pages(collection, _note)
            values = ranks.ranks.tolist()
            everyone = ranked_pages(collection, ranks, most=None if export else rows)
        shown = _write_ranking(export, everyone, rows)
    if plot:
        _draw_ranks(plot, values, "centrality" if hosts else "PageRank")
    if json:
        kind = "hosts" if hosts else "pages"
        told = {kind: len(values), "steps": steps, "top": shown}
        sys.stdout.buffer.write(msgspec.json.encode(told) + b"\n")
        return
    _show_ranking(shown, len(values), "hosts" if hosts else "pages")


def _show_ranking(shown: "Sequence[Ranked]", count: int, what: str) -> None:
    from lycosa.cli.wording import printable

    for each in shown:
        print(printable(f"{each.place:>6}  {each.rank:<10.4g}  {each.url}", sys.stdout.encoding))
    print(f"{len(shown):,} of {count:,} {what}", file=sys.stderr)


def _check_outputs(export: Path | None, plot: Path | None) -> None:
    """Says now what would only fail after the work."""
    if export and export.suffix not in (".csv", ".jsonl"):
        raise SettingsError(f"--export writes FILE.csv or FILE.jsonl, not {export.name!r}")
    if plot and plot.suffix != ".svg":
        raise SettingsError(f"--plot writes FILE.svg, not {plot.name!r}")
    if plot:
        import importlib.util

        if importlib.util.find_spec("matplotlib") is None:
            raise MissingExtra.of("plot", what="--plot")
    for path in (export, plot):
        if path and not path.absolute().parent.is_dir():
            raise SettingsError(f"{path} cannot be written: there is no folder {path.parent}")


def _write_ranking(export: Path | None, everyone: "Iterable[Ranked]", rows: int) -> "list[Ranked]":
    """Writes all of them to the file, if one is wanted; returns the first ones."""
    import csv

    import msgspec

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
    print(f"{export} written", file=sys.stderr)
    return shown


def _draw_ranks(path: Path, values: list[float], what: str) -> None:
    """The share of pages at or above each value, both axes logarithmic: the usual picture of a heavy tail."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    if not any(value > 0 for value in values):
        raise SettingsError("there is nothing to draw: no page of the collection points to another")
    is_rank = what == "PageRank"
    descending = sorted((value * len(values) if is_rank else value for value in values), reverse=True)
    places = sorted({round(len(values) ** (i / MOST_POINTS)) for i in range(MOST_POINTS + 1)})  # dense in the thin tail
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
    print(f"{path} written", file=sys.stderr)
