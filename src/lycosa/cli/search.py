"""`lycosa index`: the search index of a collection, made or brought up to date, beside a running crawl or not."""

import sys
import time
from typing import Annotated

import typer

from lycosa.cli.collection import Folder

PROGRESS_S = 1.0


def register(app: typer.Typer) -> None:
    app.command()(index)


def index(
    into: Folder,
    rebuild: Annotated[bool, typer.Option("--rebuild", help="Make it anew from the archive.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Make the search index, or bring it up to date with what was crawled."""
    import msgspec

    from lycosa.cli.wording import count, duration, size
    from lycosa.engine.search_views import make_index

    made = make_index(into, anew=rebuild, progress=Progress())
    if json:
        sys.stdout.buffer.write(msgspec.json.encode(made) + b"\n")
        return
    print(
        f"{count(made.documents)} documents, {size(made.size_bytes)};"
        f" {count(made.pages)} pages taken in, {count(made.renamed)} renamed, in {duration(made.seconds)}"
    )


class Progress:
    """A line on standard error now and then; in a terminal the same line."""

    def __init__(self) -> None:
        self._began = self._next = time.monotonic()

    def __call__(self, done: int, pages: int) -> None:
        from lycosa.cli.wording import count, rate

        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + PROGRESS_S
        of = f" of {count(pages)}" if pages else ""
        line = f"indexing: {count(done)}{of} pages, {rate(done / max(0.001, now - self._began))}/s"
        is_terminal = sys.stderr.isatty()
        print(f"\r{line}" if is_terminal else line, file=sys.stderr, end="" if is_terminal else "\n", flush=True)
