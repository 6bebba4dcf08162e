"""`lycosa links` and `lycosa rank`: who points where in a collection, and which pages and hosts stand out.

They read the committed state beside a running crawl, or without one; `rank` leaves its result in the collection.
"""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lycosa.cli.collection import Folder
from lycosa.errors import MissingExtra, SettingsError, StoreError

if TYPE_CHECKING:
    from lycosa.engine.link_views import LinkView, Ranked

MOST_POINTS = 400  # of a plotted curve: more cannot be seen and only make the file large
ROWS = 20


def register(app: typer.Typer) -> None:
    app.command()(links)
    app.command()(rank)


def links(
    url: Annotated[str, typer.Argument(metavar="URL", help="Any URL, fetched or not.")],
    into: Annotated[Path, typer.Option("--in", metavar="DIR", help="The collection.")],
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    rows: Annotated[int, typer.Option("-n", min=0, metavar="N", help="Show so many links each way.")] = ROWS,
) -> None:
    """Who points to a URL, with what words, and where it points."""
    import msgspec

    from lycosa.cli.wording import counted
    from lycosa.engine.link_views import links_of
    from lycosa.engine.views import open_to_read

    with open_to_read(into) as collection:
        found = links_of(collection, url, most=rows, note=_note)
    if json:
        sys.stdout.buffer.write(msgspec.json.encode(found) + b"\n")
        return
    print(found.url)
    _show(f"{found.pages_in:,} {_pages(found.pages_in)} here", found.links_in, found.pages_in)
    _show(f"points to {counted(found.pages_out, 'URL')}", found.links_out, found.pages_out)


def _note(text: str) -> None:
    print(text, file=sys.stderr)


def _pages(count: int) -> str:
    return "page points" if count == 1 else "pages point"


def _show(title: str, links: "Sequence[LinkView]", count: int) -> None:
    from lycosa.cli.wording import printable

    print(f"  {title}")
    for link in links:
        words = f'"{link.anchor}"' if link.anchor else ""
        print(printable(f"    {link.kind:<8} {link.url}  {words}".rstrip(), sys.stdout.encoding))
    if count > len(links):
        print(f"    and {count - len(links):,} more; -n shows them")


def rank(
    into: Folder,
    rows: Annotated[int, typer.Option("-n", min=0, metavar="N", help="Show so many.")] = ROWS,
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

    from lycosa.engine.link_views import rank_hosts, rank_pages, ranked_pages
    from lycosa.engine.views import open_to_read

    _check(export, plot)
    steps = 0
    with open_to_read(into) as collection:
        if hosts:
            everyone: Iterable[Ranked] = rank_hosts(collection, _note)
            values = [each.rank for each in everyone]
        else:
            ranks, steps = rank_pages(collection, _note)
            values = ranks.ranks.tolist()
            everyone = ranked_pages(collection, ranks, most=None if export else rows)
        shown = _written(export, everyone, rows)
    if plot:
        _draw(plot, values, "centrality" if hosts else "PageRank")
    if json:
        kind = "hosts" if hosts else "pages"
        told = {kind: len(values), "steps": steps, "top": shown}
        sys.stdout.buffer.write(msgspec.json.encode(told) + b"\n")
        return
    _list(shown, len(values), "hosts" if hosts else "pages")


def _list(shown: "Sequence[Ranked]", count: int, what: str) -> None:
    from lycosa.cli.wording import printable

    for each in shown:
        print(printable(f"{each.place:>6}  {each.rank:<10.4g}  {each.url}", sys.stdout.encoding))
    print(f"{len(shown):,} of {count:,} {what}", file=sys.stderr)


def _check(export: Path | None, plot: Path | None) -> None:
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


def _written(export: Path | None, everyone: "Iterable[Ranked]", rows: int) -> "list[Ranked]":
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


def _draw(path: Path, values: list[float], what: str) -> None:
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
