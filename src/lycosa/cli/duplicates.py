"""`lycosa duplicates`: the pages of a collection that are copies or near-copies of each other.

It reads the committed state beside a running crawl, or without one.
"""

import csv
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Annotated

import msgspec
import typer

from lycosa.cli.options import CommandTable, Folder
from lycosa.cli.wording import ProgressLine, count, counted, note, printable
from lycosa.duplicates import DuplicatePage, Relation, duplicate_pages
from lycosa.errors import SettingsError
from lycosa.inspect import open_to_read
from lycosa.wording import safe_cell

WRITTEN_AT_ONCE = 1_000
_MARKS = {Relation.EXACT: "=", Relation.NEAR: "~"}

app = CommandTable()


@app.command(
    epilog="""
        lycosa duplicates my-crawl                        clusters, the largest first
        lycosa duplicates my-crawl --near                 those that have near-copies
        lycosa duplicates my-crawl --host example.org     those with a page of it
        lycosa duplicates my-crawl --json | jq -r 'select(.relation=="exact").url'
    """
)
def duplicates(
    into: Folder,
    host: Annotated[str, typer.Option(metavar="HOST", help="Show clusters that have a page of this host.")] = "",
    exact: Annotated[bool, typer.Option("--exact", help="Show clusters that have exact copies.")] = False,
    near: Annotated[bool, typer.Option("--near", help="Show clusters that have near-copies.")] = False,
    rows: Annotated[int | None, typer.Option("-n", min=1, metavar="N", help="Show this many clusters.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object a line, one for each page.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV with a header.")] = False,
) -> None:
    """Show pages that are copies or near-copies of each other.

    In a cluster are pages with the same document (=) or nearly the same main text (~). First comes its representative:
    the page that the others name as canonical or that redirects lead to, else the one with the document that most have.
    Pages of fewer than 60 words, without links and navigation, are compared as documents only.
    """
    if json and as_csv:
        raise SettingsError("--json and --csv exclude each other")
    if exact and near:
        raise SettingsError("--exact and --near exclude each other: without both, all clusters are shown")
    relation = Relation.EXACT if exact else Relation.NEAR if near else None
    progress = _ReadingProgress()
    with open_to_read(into) as collection:
        pages = duplicate_pages(collection.state, host=host.lower(), relation=relation, progress=progress)
        if rows is not None:
            pages = _first_clusters(pages, rows)
        shown = (_json_lines if json else _csv if as_csv else _table)(pages)
    progress.end()
    if not shown:
        note(f"{into} has no {'such ' if host or relation else ''}copies")


class _ReadingProgress(ProgressLine):
    """How many rows were read."""

    def __call__(self, pages: int) -> None:
        if self.is_due:
            self.draw(f"reading: {count(pages)} URLs")


def _first_clusters(pages: Iterable[DuplicatePage], most: int) -> Iterator[DuplicatePage]:
    for page in pages:
        if page.cluster > most:
            return
        yield page


def _json_lines(pages: Iterable[DuplicatePage]) -> int:
    encode, shown, rest = msgspec.json.Encoder().encode_lines, 0, iter(pages)
    while some := list(islice(rest, WRITTEN_AT_ONCE)):
        shown += len(some)
        sys.stdout.buffer.write(encode(some))
    return shown


def _csv(pages: Iterable[DuplicatePage]) -> int:
    writer, shown = csv.writer(sys.stdout, lineterminator="\n"), 0
    for page in pages:
        if not shown:
            writer.writerow(DuplicatePage.__struct_fields__)
        shown += 1
        cells = msgspec.structs.astuple(page)
        writer.writerow([safe_cell(cell) if isinstance(cell, str) else cell for cell in cells])
    return shown


def _table(pages: Iterable[DuplicatePage]) -> int:
    shown = clusters = copies = near = 0
    encoding = sys.stdout.encoding
    for page in pages:
        shown += 1
        if page.relation is Relation.REPRESENTATIVE:
            clusters += 1
            title = f"  {printable(page.title, encoding)}" if page.title else ""
            line = f"{counted(page.pages, 'page')}: {page.url}{title}"
            sys.stdout.write(f"{line}\n" if clusters == 1 else f"\n{line}\n")
        else:
            copies += page.relation is Relation.EXACT
            near += page.relation is Relation.NEAR
            sys.stdout.write(f"  {_MARKS[page.relation]} {page.url}\n")
    if shown:
        note(f"{counted(clusters, 'cluster')}: {count(copies)} exact and {count(near)} near copies")
    return shown
