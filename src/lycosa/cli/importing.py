"""`lycosa import`: makes a collection of archives that others made.

The work is that of `lycosa.importing`; here it is shown, and what could not be imported is named.
"""

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from lycosa.cli.options import AsJson, CommandTable
from lycosa.cli.search import IndexingProgress
from lycosa.cli.wording import (
    ProgressLine,
    count,
    counted,
    duration,
    folder_word,
    most_first,
    note,
    printable,
    rate,
    say_json,
    size,
)
from lycosa.importing import ImportProgress, ImportResult, import_archives

PROBLEMS_SHOWN = 20

app = CommandTable()


@app.command(
    "import",
    epilog="""
        lycosa import crawl.warc.gz --into archive    make a collection of a WARC file
        lycosa import *.wacz --into archive --index   WACZ files, ready for search
        lycosa import a.warc.gz --into archive        again: continues after a kill
        lycosa crawl https://example.org --into archive   fetch what it lacks
    """,
)
def import_(
    archives: Annotated[
        list[Path], typer.Argument(metavar="FILE", help="WARC files (.warc, .warc.gz) and WACZ files, of any crawler.")
    ],
    into: Annotated[Path, typer.Option("--into", metavar="DIR", help="The folder of the collection; made if need be.")],
    index: Annotated[bool, typer.Option("--index", help="Build or update the search index afterwards.")] = False,
    json: AsJson = False,
) -> None:
    """Make a collection of archives that others made.

    Each first capture of a URL becomes a page, later ones become its versions, in the order of their time. Nothing is
    fetched. What is damaged, or no capture of a page, is named or counted, and everything else is imported. After a
    kill the same command goes on where it was; files that are given again are not imported twice.
    """
    line = _ImportLine()
    found = import_archives(archives, into, progress=line)
    line.end()
    if index:
        from lycosa.search import update_index  # lazy: tantivy, only with --index

        progress = IndexingProgress()
        update_index(into, progress=progress, note=note)
        progress.end()
    if json:
        say_json(found)
    else:
        _show(found, into)


class _ImportLine(ProgressLine):
    """How far an import is: it reads first, and then imports."""

    def __init__(self) -> None:
        super().__init__()
        self._imports_since, self._first_done = 0.0, -1

    def __call__(self, now: ImportProgress) -> None:
        if now.total and self._first_done < 0:
            self._imports_since, self._first_done = time.monotonic(), now.done
        if not self.is_due:
            return
        if not now.total:
            self.draw(f"reading: {counted(now.records, 'record')}, {size(now.read_bytes)}")
            return
        per_s = (now.done - self._first_done) / max(time.monotonic() - self._imports_since, 1e-9)
        left = f", {duration((now.total - now.done) / per_s)} left" if per_s and now.done < now.total else ""
        self.draw(f"importing: {count(now.done)} of {counted(now.total, 'capture')}, {rate(per_s)}/s{left}")


def _show(found: ImportResult, into: Path) -> None:
    total = sum(found.records.values())
    pace = rate(total / max(found.seconds, 1e-9))
    print(
        f"{counted(found.imported, 'capture')} of {count(found.captures)} imported into {into}, from"
        f" {counted(total, 'record')} in {duration(found.seconds)} ({pace} a second)"
    )
    for why, many in most_first(found.left_out):
        print(f"  left out: {count(many)} {why}")
    for problem in found.problems[:PROBLEMS_SHOWN]:
        note(printable(f"lycosa: {problem}", sys.stderr.encoding))
    if len(found.problems) > PROBLEMS_SHOWN:
        note(f"lycosa: and {count(len(found.problems) - PROBLEMS_SHOWN)} more problems; --json lists them")
    folder = folder_word(into)
    print(f"see it with: lycosa status {folder}; lycosa search {folder} WORDS; lycosa changes {folder}")
