"""`lycosa search`, `lycosa index` and `lycosa get`: asking a collection, the index that answers, and a page of it.

Both work beside a running crawl or without one. A search brings the index up to date first, unless a crawl does.
"""

import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lycosa.cli.collection import Folder

if TYPE_CHECKING:
    from lycosa.search import SearchResult, SearchResults

PROGRESS_S = 1.0
ROWS = 10
SNIPPET_COLUMNS = 100
AS_OF = "As it was then: at the end of 2026-01, of 2026-01-31, or of 2026-01-31T12:00 or 2026-01-31T12:00:30 (UTC)."
HELP = (
    'Words, "a phrase", -not, OR, (…); title: heading: text: url: anchor:WORD; '
    "site:HOST lang:XX filetype:X after:DATE before:DATE."
)


def register(app: typer.Typer) -> None:
    app.command(context_settings={"ignore_unknown_options": True})(search)  # -word is part of a query
    app.command()(index)
    app.command()(get)


def search(
    into: Folder,
    query: Annotated[list[str], typer.Argument(metavar="QUERY", help=HELP)],
    rows: Annotated[int, typer.Option("-n", min=1, max=1_000, metavar="N", help="Show so many.")] = ROWS,
    page: Annotated[int, typer.Option("--page", min=1, metavar="N", help="The next N, and so on.")] = 1,
    weights: Annotated[
        str, typer.Option(metavar="NAME=X,…", help="Weights of title, headings, text, url, anchors, rank.")
    ] = "",
    update: Annotated[
        bool, typer.Option("--update/--no-update", help="Bring the index up to date first [yes].")
    ] = True,
    as_of: Annotated[str, typer.Option(metavar="DATE", help=AS_OF)] = "",
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Find pages of a collection, the best first."""
    import msgspec

    from lycosa.search import SearchView, Weights, parse_query, past_time, update_index

    asked, chosen = " ".join(query), Weights.read(weights)
    parse_query(asked)  # says what is wrong before any work is done
    progress = IndexingProgress()
    if update and past_time(as_of) is None:
        update_index(into, progress=progress, note=_note)
    with SearchView(into, as_of=as_of, progress=progress) as view:
        progress.end()
        found = view.search(asked, most=rows, offset=(page - 1) * rows, weights=chosen)
    if json:
        sys.stdout.buffer.write(msgspec.json.encode(found) + b"\n")
    else:
        _show(found)


def get(
    url: Annotated[str, typer.Argument(metavar="URL", help="A page of the collection.")],
    into: Annotated[Path, typer.Option("--in", metavar="DIR", help="The collection.")],
    as_of: Annotated[str, typer.Option(metavar="DATE", help=AS_OF)] = "",
    text: Annotated[bool, typer.Option("--text", help="Only what is for reading in it.")] = False,
    headers: Annotated[bool, typer.Option("--headers", help="Status, time and header fields instead.")] = False,
) -> None:
    """Write a page as the archive holds it to standard output."""
    from lycosa.errors import LycosaError
    from lycosa.inspect import page_of, size_words

    found = page_of(into, url, as_of=as_of)
    if headers:
        fields = (f"{name}: {value}" for name, value in found.fields.items())
        sizes = size_words(found.sent_bytes, len(found.body))
        print("\n".join([f"{found.status} {found.url}", f"fetched {found.fetched}, {sizes}", *fields]))
    elif found.is_redirect:
        where = found.leads_to.encode("unicode_escape").decode("ascii") or "nowhere"
        raise LycosaError(f"{found.url} is no page, it leads to {where}; --headers shows what came")
    elif text:
        print(found.text)
    else:
        sys.stdout.buffer.write(found.body)


def _show(found: "SearchResults") -> None:
    from lycosa.cli.wording import count, counted
    from lycosa.search import MOST_SHOWN

    for place, result in enumerate(found.results, found.offset + 1):
        _show_one(place, result)
    about = "" if found.is_exact else "about "
    line = f"{about}{counted(found.total, 'page')} in {1000 * found.seconds:.0f} ms"
    if found.is_loose and found.total:
        line += "; no page has all of the words, these have most of them"
    if found.behind:
        are = "is" if found.behind == 1 else "are"
        line += f"; {counted(found.behind, 'change')} {are} not in the index yet"
    shown = found.offset + len(found.results)
    if shown >= MOST_SHOWN and found.total > MOST_SHOWN:
        line += f"; only the first {count(MOST_SHOWN)} are shown: ask for less"
    elif shown < found.total and found.results:
        line += f"; --page {shown // max(1, len(found.results)) + 1} shows more"
    print(line, file=sys.stderr)


def _show_one(place: int, result: "SearchResult") -> None:
    import textwrap

    from lycosa.cli.wording import count, printable
    from lycosa.search import Snippet, highlighted

    mark = {"\1": "\x1b[1m", "\2": "\x1b[0m"} if sys.stdout.isatty() else {"\1": "*", "\2": "*"}
    encoding = sys.stdout.encoding
    print(printable(f"{place:>3}  {result.title or '(no title)'}", encoding))
    others = f"  (+{count(result.copies)} the same)" if result.copies else ""
    others += f"  (+{count(result.alike)} with the same text)" if result.alike else ""
    print(printable(f"     {result.url}{others}", encoding))
    text = highlighted(Snippet(result.snippet, result.highlights), "\1", "\2")
    for line in textwrap.wrap(text, SNIPPET_COLUMNS):
        pieces = (mark.get(piece) or printable(piece, encoding) for piece in re.split("([\1\2])", line))
        print("     " + "".join(pieces))
    print(f"     {result.date}  score {result.score:.3g}\n")


def index(
    into: Folder,
    rebuild: Annotated[bool, typer.Option("--rebuild", help="Make it anew from the archive.")] = False,
    skip_missing: Annotated[
        bool, typer.Option("--skip-missing", help="Take in pages of lost archive files by title and URL.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Make the search index, or bring it up to date with what was crawled."""
    import msgspec

    from lycosa.cli.wording import count, counted, duration, size
    from lycosa.search import make_index, unread_words

    progress = IndexingProgress()
    made = make_index(into, anew=rebuild, skips_missing=skip_missing, progress=progress)
    progress.end()
    if made.unread:
        _note(unread_words(made.unread))
    if json:
        sys.stdout.buffer.write(msgspec.json.encode(made) + b"\n")
        return
    print(
        f"{counted(made.documents, 'document')}, {size(made.size_bytes)};"
        f" {counted(made.pages, 'page')} taken in, {count(made.renamed)} renamed, in {duration(made.seconds)}"
    )


def _note(text: str) -> None:
    print(text, file=sys.stderr)


class IndexingProgress:
    """A line on standard error now and then; in a terminal the same line."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._next = self._began + PROGRESS_S
        self._has_drawn = False

    def __call__(self, done: int, pages: int) -> None:
        from lycosa.cli.wording import count, rate

        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + PROGRESS_S
        of = f" of {count(max(done, pages))}" if pages else ""
        line = f"indexing: {count(done)}{of} URLs, {rate(done / max(0.001, now - self._began))}/s"
        self._has_drawn = sys.stderr.isatty()
        print(
            f"\r{line}" if self._has_drawn else line, file=sys.stderr, end="" if self._has_drawn else "\n", flush=True
        )

    def end(self) -> None:
        if self._has_drawn:
            print(file=sys.stderr)
