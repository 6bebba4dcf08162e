"""`lycosa urls`: every URL that a collection knows, by state, status, type, depth and host.

It reads the committed state beside a running crawl, or without one, and writes as it reads.
"""

import csv
import sys
from collections.abc import Callable, Iterable, Iterator
from io import StringIO
from typing import Annotated

import msgspec
import typer

from lycosa.cli.options import CommandTable, Folder, UrlPrefix
from lycosa.cli.wording import note, printable
from lycosa.errors import SettingsError
from lycosa.inspect import KnownUrl, KnownUrlFilter, open_to_read, url_batches
from lycosa.wording import safe_cell

TABLE = ("url", "state", "status", "type", "depth", "reason", "tries", "referrers")  # what its lines show
TYPE_COLUMNS = 24
_SECONDS = len("2026-01-31T12:00:00")
_LINE = f"%-8s%6s  %-{TYPE_COLUMNS}s%5s%6s%8s  %s"
_INDENT = " " * (TYPE_COLUMNS + 37)

app = CommandTable()


@app.command(
    epilog="""
        lycosa urls my-crawl --state failed                what failed, and why
        lycosa urls my-crawl --status 404 --referrers 5    and who links there
        lycosa urls my-crawl --type application/pdf --csv  for a spreadsheet
        lycosa urls my-crawl example.org --plain           URLs alone, one a line
    """
)
def urls(
    into: Folder,
    prefix: UrlPrefix = "",
    states: Annotated[
        list[str] | None,
        typer.Option(
            "--state", metavar="STATE", help="List URLs that are queued, done, failed or dropped. Repeatable."
        ),
    ] = None,
    statuses: Annotated[
        list[str] | None,
        typer.Option("--status", metavar="N", help="List those with this status: 404, 4xx, 500-599. Repeatable."),
    ] = None,
    types: Annotated[
        list[str] | None,
        typer.Option(
            "--type", metavar="TYPE", help="List those of this media type: text/html, image/*, pdf. Repeatable."
        ),
    ] = None,
    depths: Annotated[
        list[str] | None,
        typer.Option("--depth", metavar="N", help="List those so many links from the seeds: 3, 2-5. Repeatable."),
    ] = None,
    host: Annotated[str, typer.Option(metavar="HOST", help="List those of this host alone.")] = "",
    referrers: Annotated[
        int, typer.Option(min=0, max=1_000, metavar="N", help="Name the first N pages that link to each URL.")
    ] = 0,
    rows: Annotated[int | None, typer.Option("-n", min=1, metavar="N", help="List this many.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV with a header.")] = False,
    plain: Annotated[bool, typer.Option("--plain", help="Print the URLs alone, one a line.")] = False,
) -> None:
    """List known URLs with their state, status, type, depth, reason, tries and referrers.

    A URL is queued, done, failed or dropped. The reason says why it failed, was dropped or is tried again; `lycosa why`
    says more about one URL. `links` counts the pages that link to it. URLs come in the order of hosts and paths.
    """
    if json + as_csv + plain > 1:
        raise SettingsError("--json, --csv and --plain exclude each other")
    if plain and referrers:
        raise SettingsError("--plain prints the URLs alone: leave out --referrers")
    wanted = KnownUrlFilter(
        below=prefix,
        host=host,
        states=_words(states),
        statuses=_words(statuses),
        types=_words(types),
        depths=_words(depths),
    )
    columns = ("url",) if plain else TABLE if not (json or as_csv) else None
    write = _json_lines if json else _csv if as_csv else _plain if plain else _table
    with open_to_read(into) as collection:
        batches = url_batches(collection, wanted, columns=columns, referrers=referrers)
        listed = write(_first(batches, rows), bool(referrers))
    if not listed:
        note(f"{into} knows no such URL")


def _words(texts: list[str] | None) -> tuple[str, ...]:
    return tuple(word.strip() for text in texts or () for word in text.split(",") if word.strip())


def _first(batches: Iterable[list[KnownUrl]], most: int | None) -> Iterator[list[KnownUrl]]:
    for batch in batches:
        if most is not None and len(batch) >= most:
            yield batch[:most]
            return
        yield batch
        most = most and most - len(batch)


Batches = Iterable[list[KnownUrl]]


def _json_lines(batches: Batches, has_referrers: bool) -> int:
    encode, listed = msgspec.json.Encoder().encode_lines, 0
    for batch in batches:
        listed += len(batch)
        sys.stdout.buffer.write(encode(batch))
    return listed


def _plain(batches: Batches, has_referrers: bool) -> int:
    return _lines(batches, lambda known: known.url)


def _lines(batches: Batches, line: Callable[[KnownUrl], str]) -> int:
    listed = 0
    for batch in batches:
        listed += len(batch)
        sys.stdout.write("".join(f"{line(known)}\n" for known in batch))
    return listed


def _csv(batches: Batches, has_referrers: bool) -> int:
    names = KnownUrl.__struct_fields__ if has_referrers else KnownUrl.__struct_fields__[:-1]
    listed = 0
    for batch in batches:
        text = StringIO()
        writer = csv.writer(text, lineterminator="\n")
        if not listed:
            writer.writerow(names)
        listed += len(batch)
        writer.writerows([_cells(known)[: len(names)] for known in batch])
        sys.stdout.write(text.getvalue())
    return listed


def _cells(known: KnownUrl) -> tuple[str | int | None, ...]:
    return (
        known.url,
        known.state,
        known.status,
        known.type if known.type[:1].isalpha() else safe_cell(known.type),
        known.depth,
        known.host,
        known.origin,
        known.reason and safe_cell(known.reason),
        known.tries,
        f"{known.fetched.isoformat()[:_SECONDS]}Z" if known.fetched else None,  # a third of what strftime takes
        known.referrers,
        " ".join(known.linked_from),
    )


def _table(batches: Batches, has_referrers: bool) -> int:
    encoding = sys.stdout.encoding
    listed = 0
    for batch in batches:
        if not listed:
            sys.stdout.write(_LINE % ("state", "status", "type", "depth", "tries", "links", "url") + "\n")
        listed += len(batch)
        sys.stdout.write("".join(_table_line(known, encoding) for known in batch))
    return listed


def _table_line(known: KnownUrl, encoding: str) -> str:
    kind = known.type[: TYPE_COLUMNS - 1] or "-"  # the one text of a line that comes from a server as it is
    if not (kind.isascii() and kind.isprintable()):
        kind = printable(kind, encoding)
    line = _LINE % (known.state, known.status or "-", kind, known.depth, known.tries or "-", known.referrers, known.url)
    line += f"  ({known.reason})\n" if known.reason else "\n"
    return line + "".join(f"{_INDENT}from {page}\n" for page in known.linked_from)
