"""`lycosa export`: writes what a collection holds in the form that another program reads.

The options of single formats come from the table of formats (`lycosa.export.OPTIONS`).
"""

import inspect
import sys
from typing import Annotated, Any

import typer

from lycosa.cli.options import CommandTable, FieldEntries, FieldsFile, Folder, LycosaCommand, asked_fields, one_of
from lycosa.cli.wording import ProgressLine, count, counted, duration, note, printable, rate, say_json, size
from lycosa.export import (
    FORMATS,
    OPTIONS,
    ExportJob,
    ExportProgress,
    ExportReport,
    FormatOption,
    PageSelection,
    export_pages,
)
from lycosa.web import Purpose, format_date

STANDARD = "standard output"
SELECTING, OF_FORMATS = "Which pages", "Options of some formats"
WIDEST = max(map(len, FORMATS))


class ExportCommand(LycosaCommand):
    """The command, whose help lists the formats."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Formats"):
            formatter.write_dl([(name.ljust(WIDEST), entry.summary) for name, entry in FORMATS.items()])
        super().format_options(ctx, formatter)


app = CommandTable()


def _select(name: str, help: str, metavar: str) -> Any:
    return typer.Option(f"--{name}", metavar=metavar, help=help, rich_help_panel=SELECTING)


def export(
    into: Folder,
    format: Annotated[
        str, typer.Argument(metavar="FORMAT", help="One of the formats above.", autocompletion=one_of(FORMATS))
    ],
    out: Annotated[
        str,
        typer.Option(
            metavar="PATH",
            help="Write to this file, folder or fsspec URL; it appears when it is whole. .gz and .zst compress.",
            show_default="standard output, for formats of lines",
        ),
    ] = "-",
    host: Annotated[
        list[str] | None, _select("host", "Pages of this host and the hosts below it. Repeatable.", "HOST")
    ] = None,
    path: Annotated[
        list[str] | None,
        _select("path", "Paths that begin so; * stands for anything, $ for the end. Repeatable.", "PATH"),
    ] = None,
    since: Annotated[str, _select("since", "Fetched on this date or later: 2026-01-31, or 7d ago.", "DATE")] = "",
    until: Annotated[str, _select("until", "Fetched on this date or earlier.", "DATE")] = "",
    changed_since: Annotated[str, _select("changed-since", "New or changed on this date or later.", "DATE")] = "",
    type: Annotated[
        list[str] | None, _select("type", "A media type (text/html, image/*) or kind (html, pdf). Repeatable.", "TYPE")
    ] = None,
    status: Annotated[
        list[str] | None,
        _select("status", "Answers with this status (404, 3xx, 400-499), redirects and errors too. Repeatable.", "N"),
    ] = None,
    language: Annotated[
        list[str] | None, _select("language", "Pages in this language: de, de-AT, deu. Repeatable.", "XX")
    ] = None,
    query: Annotated[str, _select("query", "Pages that a search for this finds.", "QUERY")] = "",
    versions: Annotated[
        bool,
        typer.Option("--versions", help="Every stored version of a page, the oldest first.", rich_help_panel=SELECTING),
    ] = False,
    purpose: Annotated[
        str,
        _select("purpose", f"Leave out what its publisher forbids for this: {', '.join(Purpose)}.", "PURPOSE"),
    ] = "",
    ignore_preferences: Annotated[
        bool,
        typer.Option(
            "--ignore-preferences",
            help="Write pages whatever their publishers say on their use.",
            rich_help_panel=SELECTING,
        ),
    ] = False,
    since_last: Annotated[
        bool,
        typer.Option(
            "--since-last",
            help="Write what is new or has changed since the last finished export to --out, beside it.",
            rich_help_panel=SELECTING,
        ),
    ] = False,
    field: FieldEntries = None,
    fields: FieldsFile = None,
    restart: Annotated[
        bool, typer.Option("--restart", help="Begin anew where the same export was interrupted.")
    ] = False,
    skip_missing: Annotated[
        bool, typer.Option("--skip-missing", help="Leave out pages whose archive files are lost.")
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print the result as one JSON object, on standard error beside lines.")
    ] = False,
    **options: str | bool | None,
) -> None:
    """Write what a collection holds in the form that other programs read.

    An export that was interrupted goes on where it was when the same command is given again.
    """
    selection = PageSelection.read(
        host=host or (),
        path=path or (),
        since=since,
        until=until,
        type=type or (),
        status=status or (),
        language=language or (),
        query=query,
        changed_since=changed_since,
        versions=versions,
        purpose=purpose,
    )
    given = {name: "yes" if value is True else str(value) for name, value in options.items() if value}
    progress = ExportView()
    rules = asked_fields(field, fields)
    job = ExportJob(
        format,
        out,
        selection,
        given,
        restart=restart,
        skip_missing=skip_missing,
        since_last=since_last,
        fields=None if rules is None else tuple(rules),
        ignores_preferences=ignore_preferences,
    )
    try:
        report = export_pages(into, job, tell=progress)
    except KeyboardInterrupt:
        progress.end()
        note("interrupted: the same command goes on where this one was, if its format and place can be resumed")
        raise
    finally:
        progress.end()
    _tell(report, as_json=json)


def _with_format_options() -> Any:
    """The command with the options of the formats."""
    own = [each for each in inspect.signature(export).parameters.values() if each.kind is not each.VAR_KEYWORD]
    made = [_parameter(name, option) for name, option in OPTIONS.items()]
    export.__signature__ = inspect.Signature([*own, *made])  # type: ignore[attr-defined]
    return export


def _parameter(name: str, option: FormatOption) -> inspect.Parameter:
    spelled = f"--{name.replace('_', '-')}"
    help = f"{', '.join(option.formats)}: {option.help}"
    metavar = None if option.is_switch else "|".join(option.choices) or option.metavar
    completes = one_of(option.choices)
    about = typer.Option(spelled, metavar=metavar, help=help, rich_help_panel=OF_FORMATS, autocompletion=completes)
    kind: Any = bool if option.is_switch else str | None
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=False if option.is_switch else None,
        annotation=Annotated[kind, about],
    )


app.command(
    cls=ExportCommand,
    epilog="""
        lycosa export my-crawl jsonl > pages.jsonl
        lycosa export shop jsonl --field 'price=.price' --content none > prices.jsonl
        lycosa export my-crawl jsonl --like dolma --purpose ai-train --out c.jsonl.zst
        lycosa export my-crawl csv --host example.org --path /docs/ --out docs.csv
        lycosa export my-crawl markdown --query 'heat pump' --out notes
        lycosa export my-crawl graph --edges gexf --out links.gexf
        lycosa export my-crawl jsonl --since-last --out s3://bucket/pages.jsonl.gz
    """,
)(_with_format_options())


def _tell(report: ExportReport, *, as_json: bool) -> None:
    if as_json:
        say_json(report, stream=sys.stderr if report.out == STANDARD else sys.stdout)
        return
    if report.since_s and not report.out:
        note(f"nothing is new since {format_date(report.since_s)}")
        return
    one = "capture" if report.has_records else "answer" if report.has_answers else "page"
    what = counted(report.pages, "version" if report.has_versions and one == "page" else one)
    if report.has_answers:
        what += " (redirects and errors, too)"
    line = f"{what}, {size(report.bytes)}, in {duration(report.seconds)}"
    if report.resumed:
        line += f"; went on behind {counted(report.resumed, 'page')}"
    if report.out != STANDARD:
        line += f": {printable(report.out, sys.stderr.encoding)}"
    note(line)
    if report.forbidden:
        are = "page was" if report.forbidden == 1 else "pages were"
        note(f"{count(report.forbidden)} {are} left out, since their publishers forbid this use")
    if report.unread:
        are = "page was" if report.unread == 1 else "pages were"
        note(f"{count(report.unread)} {are} left out, since their records cannot be read")


class ExportView(ProgressLine):
    """How far an export is."""

    def __call__(self, progress: ExportProgress) -> None:
        if self.is_due:
            self.draw(progress_line(progress))


def progress_line(progress: ExportProgress) -> str:
    """`12,345 of 50,000 pages, 120 MB, 3,100/s, 12 s left`."""
    per_s = (progress.pages - progress.resumed) / max(0.001, progress.seconds)
    of = f" of {count(progress.total)}" if progress.total else ""
    parts = [f"{count(progress.pages)}{of} pages", size(progress.written_bytes), f"{rate(per_s)}/s"]
    if progress.total > progress.pages and per_s > 0:
        parts.append(f"{duration((progress.total - progress.pages) / per_s)} left")
    return ", ".join(parts)
