"""`lycosa search`, `index` and `get`: find pages of a collection, keep the index that finds them, print a page.

They work beside a running crawl or without one. A search updates the index first, unless a crawl does.
"""

import math
import re
import shutil
import sys
import textwrap
from itertools import islice
from typing import Annotated, Any, TextIO

import msgspec
import typer

from lycosa.cli.options import (
    AsJson,
    CommandTable,
    FieldEntries,
    FieldsFile,
    Folder,
    InFolder,
    LycosaCommand,
    asked_fields,
)
from lycosa.cli.wording import ProgressLine, count, counted, duration, note, printable, say_json, size
from lycosa.errors import LycosaError, MissingExtra, SettingsError
from lycosa.inspect import page_of, size_words
from lycosa.search import (
    MOST_SHOWN,
    Facets,
    SearchResult,
    SearchResults,
    SearchView,
    Snippet,
    Weights,
    highlighted,
    make_index,
    parse_query,
    past_time,
    unread_words,
    update_index,
)
from lycosa.web import MediaKind, can_read_pdf, media_kind, read_pdf

ROWS = 10
ROWS_OPTION = re.compile(r"-n\d+")
SNIPPET_COLUMNS = 100  # where the output is no terminal
LEAST_COLUMNS = 20
_INDENT = "     "
AS_OF = "{} it was at the end of 2026-01, of 2026-01-31, or at 2026-01-31T12:00 (UTC)."
QUERY = (
    'Words, "a phrase", begin*, -without, OR, (…); title: heading: text: url: anchor: before a word look there alone; '
    "site:HOST lang:XX filetype:X after:DATE before:DATE."
)

app = CommandTable()


class QueryCommand(LycosaCommand):
    """A command with a query, in which `-word` stands for pages without the word: of one dash only `-n` is an
    option."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        with_values = {name for param in self.params if not getattr(param, "is_flag", True) for name in param.opts}
        options, words, rest = list[str](), list[str](), iter(args)
        for word in rest:
            if word == "--":
                words += rest
            elif word in with_values:
                value = [*islice(rest, 1)]
                if not value:
                    return super().parse_args(ctx, [word])  # says that it wants one
                options += [word, *value]
            elif word.startswith("--") or (word.startswith("-") and not words) or ROWS_OPTION.fullmatch(word):
                options.append(word)
            else:
                words.append(word)
        return super().parse_args(ctx, [*options, "--", *words])


@app.command(
    cls=QueryCommand,
    epilog="""
        lycosa search my-crawl solar power
        lycosa search my-crawl '"heat pump" -gas lang:en after:2026-01'
        lycosa search my-crawl 'vacu*' --facets
        lycosa search my-crawl 'title:report site:example.org' --jsonl -n 1000
    """,
)
def search(
    into: Folder,
    query: Annotated[list[str], typer.Argument(metavar="QUERY", help=QUERY)],
    rows: Annotated[int, typer.Option("-n", min=1, max=1_000, metavar="N", help="Show this many pages.")] = ROWS,
    page: Annotated[int, typer.Option("--page", min=1, metavar="N", help="Show the Nth list of results.")] = 1,
    weights: Annotated[
        str,
        typer.Option(
            metavar="NAME=X,…", help="Change the weights of title, headings, text, url, anchors, rank, identifiers."
        ),
    ] = "",
    facets: Annotated[
        bool, typer.Option("--facets", help="Count all pages that match by host, language, type and year.")
    ] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Show copies and near-copies as well, not only the best of them.")
    ] = False,
    update: Annotated[bool, typer.Option("--update/--no-update", help="Update the index first.")] = True,
    as_of: Annotated[str, typer.Option(metavar="DATE", help=AS_OF.format("Search the collection as"))] = "",
    json: AsJson = False,
    jsonl: Annotated[bool, typer.Option("--jsonl", help="Print one JSON object a page, each on a line.")] = False,
) -> None:
    """Find pages by their words, the best first."""
    if json and jsonl:
        raise SettingsError("--json and --jsonl exclude each other")
    asked, chosen = " ".join(query), Weights.read(weights)
    parse_query(asked)  # says what is wrong before any work is done
    progress = IndexingProgress()
    if update and past_time(as_of) is None:
        update_index(into, progress=progress, note=note)
    with SearchView(into, as_of=as_of, progress=progress) as view:
        progress.end()
        offset = (page - 1) * rows
        found = view.search(asked, most=rows, offset=offset, weights=chosen, facets=facets, fold=not everything)
    if json:
        say_json(found)
        return
    if jsonl:
        sys.stdout.buffer.write(msgspec.json.Encoder().encode_lines(found.results))
    else:
        for place, result in enumerate(found.results, found.offset + 1):
            _show_one(place, result, names_copies=everything)
    if found.facets is not None and found.total:
        _show_facets(found.facets, sys.stderr if jsonl else sys.stdout)
    _sum_up(found, rows)


@app.command(
    epilog="""
        lycosa get https://example.org/ --in my-crawl > page.html
        lycosa get https://example.org/ --in my-crawl --text
        lycosa get https://example.org/ --in my-crawl --markdown > page.md
        lycosa get https://example.org/ --in my-crawl --as-of 2026-01
        lycosa get https://example.org/ --in my-crawl --metadata
        lycosa get https://example.org/ --in my-crawl --field 'price=.price'
    """
)
def get(
    url: Annotated[str, typer.Argument(metavar="URL", help="A page of the collection.")],
    into: InFolder,
    as_of: Annotated[str, typer.Option(metavar="DATE", help=AS_OF.format("Print the page as"))] = "",
    text: Annotated[
        bool, typer.Option("--text", help="Print what is for reading in the page, a line for each block.")
    ] = False,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the page as Markdown, without navigation.")
    ] = False,
    extractor: Annotated[
        str, typer.Option(metavar="main|article", help="Who finds the text; article is slower, for news and blogs.")
    ] = "main",
    headers: Annotated[
        bool, typer.Option("--headers", help="Print the status, the time and the header fields instead.")
    ] = False,
    metadata: Annotated[
        bool, typer.Option("--metadata", help="Print title, author, dates, structured data and fields as JSON.")
    ] = False,
    field: FieldEntries = None,
    fields: FieldsFile = None,
) -> None:
    """Print a page as it is archived, or as it once was."""
    rules = asked_fields(field, fields)
    if extractor not in ("main", "article"):
        raise SettingsError(f"--extractor is {extractor!r}: choose from main, article")
    if extractor == "article" and not (text or markdown):
        raise SettingsError("--extractor goes with --text or --markdown")
    found = page_of(into, url, as_of=as_of, fields=rules)
    if headers:
        said = (f"{name}: {value}" for name, value in found.headers.items())
        sizes = size_words(found.sent_bytes, len(found.body))
        print("\n".join([f"{found.status} {found.url}", f"fetched {found.fetched}, {sizes}", *said]))
    elif found.is_redirect:
        where = found.leads_to.encode("unicode_escape").decode("ascii") or "nowhere"
        raise LycosaError(f"{found.url} is no page, it leads to {where}; --headers shows what came")
    elif metadata:
        say_json({"url": found.url, "fetched": found.fetched, "metadata": found.metadata, "fields": found.fields})
    elif rules is not None:
        say_json(found.fields)
    elif text or markdown:
        source = found.article if extractor == "article" else found
        shown = source.markdown if markdown else source.text
        is_pdf = media_kind(found.content_type) is MediaKind.PDF
        if is_pdf and not shown and not can_read_pdf():
            raise MissingExtra.of("pdf", what="the text of a PDF document")
        print(shown)
        if is_pdf and (pdf := read_pdf(found.body)).error and pdf.text == shown:
            note(f"lycosa: not all of it could be read: {pdf.error}")
    else:
        sys.stdout.buffer.write(found.body)


def _show_facets(facets: Facets, stream: TextIO) -> None:
    kinds = {"hosts": facets.hosts, "languages": facets.languages, "types": facets.types, "years": facets.years}
    for name, values in kinds.items():
        shown = [f"{each.value} {count(each.pages)}" for each in values]
        if name == "hosts" and facets.other_hosts:
            shown.append(f"others {count(facets.other_hosts)}")
        print(printable(f"{name:<10} {', '.join(shown) or '-'}", stream.encoding), file=stream)


def _sum_up(found: SearchResults, rows: int) -> None:
    about = "" if found.is_exact else "about "
    line = f"{about}{counted(found.total, 'page')} in {1000 * found.seconds:.0f} ms"
    if found.folded:
        are = "is a copy" if found.folded == 1 else "are copies"
        line += f"; {count(found.folded)} more {are}, --all shows them"
    if found.is_loose and found.total:
        line += "; no page has all of the words, these have most of them"
    if found.behind:
        are = "is" if found.behind == 1 else "are"
        line += f"; {counted(found.behind, 'change')} {are} not in the index yet"
    shown = found.offset + len(found.results)
    if found.offset and not found.results and found.total:
        last = math.ceil(min(found.total, MOST_SHOWN) / rows)
        line += f"; --page {found.offset // rows + 1} is behind the last one, --page {last}"
    elif shown >= MOST_SHOWN and found.total > MOST_SHOWN:
        line += f"; only the first {count(MOST_SHOWN)} are shown: narrow the query"
    elif shown < found.total and found.results:
        line += f"; --page {shown // max(1, len(found.results)) + 1} shows more"
    note(line)
    if found.suggestion:
        note(f"did you mean: {found.suggestion}")


def _show_one(place: int, result: SearchResult, *, names_copies: bool) -> None:
    mark = {"\1": "\x1b[1m", "\2": "\x1b[0m"} if sys.stdout.isatty() else {"\1": "*", "\2": "*"}
    encoding = sys.stdout.encoding
    print(printable(f"{place:>3}  {result.title or '(no title)'}", encoding))
    others = f"  (+{count(result.copies)} the same)" if result.copies else ""
    others += f"  (+{count(result.alike)} with the same text)" if result.alike else ""
    others += f"  (+{count(result.variants)} that name it as canonical)" if result.variants else ""
    others += f"  (+{count(result.near)} with nearly the same text)" if result.near else ""
    print(printable(f"     {result.url}{others}", encoding))
    for url in result.copy_urls if names_copies else ():
        print(printable(f"     = {url}", encoding))
    text = highlighted(Snippet(result.snippet, result.highlights), "\1", "\2")
    for line in textwrap.wrap(text, _snippet_columns()):
        pieces = (mark.get(piece) or printable(piece, encoding) for piece in re.split("([\1\2])", line))
        print(_INDENT + "".join(pieces))
    print(f"{_INDENT}{result.date}  score {result.score:.3g}\n")


def _snippet_columns() -> int:
    if not sys.stdout.isatty():
        return SNIPPET_COLUMNS
    return max(LEAST_COLUMNS, shutil.get_terminal_size((SNIPPET_COLUMNS, 24)).columns - len(_INDENT))


@app.command()
def index(
    into: Folder,
    rebuild: Annotated[bool, typer.Option("--rebuild", help="Build the index anew from the archive.")] = False,
    skip_missing: Annotated[
        bool, typer.Option("--skip-missing", help="Index pages whose archive files are lost by title and URL.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Build or update the search index."""
    progress = IndexingProgress()
    made = make_index(into, anew=rebuild, skips_missing=skip_missing, progress=progress)
    progress.end()
    if made.unread:
        note(unread_words(made.unread))
    if json:
        say_json(made)
        return
    print(
        f"{counted(made.documents, 'document')}, {size(made.size_bytes)};"
        f" {counted(made.pages, 'page')} indexed, {count(made.renamed)} renamed, in {duration(made.seconds)}"
    )


class IndexingProgress(ProgressLine):
    """How far the search index is."""

    def __call__(self, done: int, pages: int) -> None:
        if self.is_due:
            of = f" of {count(max(done, pages))}" if pages else ""
            self.draw(f"indexing: {count(done)}{of} URLs, {self.pace(done)}")
