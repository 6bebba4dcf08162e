"""`lycosa report`: what is broken, doubled, missing or slow on a site, for its owner.

It reads a collection beside a running crawl or without one. The exit code is for scripts: 1 with `--fail-on` where
something was found that it names.
"""

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from lycosa.cli.options import CommandTable, Folder
from lycosa.cli.wording import ProgressLine, count, counted, note, printable
from lycosa.report import (
    ReportComparison,
    Severity,
    SiteReport,
    json_pieces,
    make_report,
    output_paths,
    read_names,
    write_report,
)

EXAMPLES = 3  # pages of a finding that the summary names
FINDINGS = 1  # the exit code where --fail-on found something

app = CommandTable()


@app.command(
    epilog="""
        lycosa report my-crawl                           a summary
        lycosa report my-crawl --out report              a folder: HTML, CSV, JSON
        lycosa report my-crawl --out report.html         the page alone
        lycosa report my-crawl --json | jq '.findings[] | {name, count}'
        lycosa report new-crawl --compare old-crawl      what got better or worse
        lycosa report my-crawl --fail-on error,orphans   exit code 1 if there are any
    """
)
def report(
    into: Folder,
    out: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Write PATH.html, PATH.csv or PATH.json, or all three into the folder PATH."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the whole report as one JSON object.")] = False,
    compare: Annotated[
        Path | None,
        typer.Option(metavar="OTHER_DIR", help="Say what has changed since this earlier crawl of the site."),
    ] = None,
    fail_on: Annotated[
        str,
        typer.Option(
            metavar="WORDS",
            help="Exit with 1 if there are findings as bad as error, warning or notice, or of these names; "
            "several with commas.",
        ),
    ] = "",
) -> None:
    """Report what is broken, doubled, missing or slow on a site."""
    judged = read_names(fail_on)
    if out is not None:
        output_paths(out)  # says what is wrong before any work is done
    progress = _ReportProgress()
    with ExitStack() as opened:
        made = opened.enter_context(make_report(into, progress))
        older = opened.enter_context(make_report(compare, progress)) if compare is not None else None
        progress.end()
        comparison = ReportComparison(made, older) if older is not None else None
        if out is not None:
            written = write_report(made, out, comparison)
            note(f"{', '.join(map(str, written))} written")
        if json:
            for piece in json_pieces(made, comparison):
                sys.stdout.buffer.write(piece.encode())
        else:
            _show(made)
            if out is None and any(each.rows for each in made.findings):
                note("\n--out FOLDER writes all of it as a page, a table and JSON")
            if comparison is not None:
                _show_comparison(comparison)
        found = [each for each in made.findings if each.rows and each.rule.name in judged]
    if found:
        names = ", ".join(f"{count(each.rows)} {each.rule.name}" for each in found)
        note(f"--fail-on {fail_on}: {names}")
        raise typer.Exit(FINDINGS)


def _show(made: SiteReport) -> None:
    totals = ", ".join(counted(made.count(severity), severity.value) for severity in Severity)
    _say(f"{made.name}: {counted(made.survey.pages, 'page')}; {totals}")
    for remark in made.remarks:
        note(remark)
    for severity in Severity:
        for each in made.findings:
            if each.rows and each.rule.severity is severity:
                pages = "" if each.pages == each.rows else f" on {counted(each.pages, 'page')}"
                _say(f"\n{severity.value:8} {each.rule.title}: {count(each.rows)}{pages}   [{each.rule.name}]")
                for row in made.rows(each.rule.name, EXAMPLES):
                    leads = f" -> {row.target}" if row.target and row.target != row.page else ""
                    said = ", ".join(filter(None, (f'"{row.words}"' if row.words else "", row.detail)))
                    _say(f"         {row.page}{leads}{f'   ({said})' if said else ''}")
                if each.rows > EXAMPLES:
                    _say(f"         and {count(each.rows - EXAMPLES)} more")


def _show_comparison(comparison: ReportComparison) -> None:
    older = comparison.older
    _say(
        f"\ncompared with {older.path}: {count(older.survey.pages)} -> "
        f"{counted(comparison.newer.survey.pages, 'page')}, {count(comparison.came)} came,"
        f" {count(comparison.went)} went"
    )
    moved = [change for change in comparison.changes if change.has_changed]
    for change in moved:
        numbers = f"{count(change.before)} -> {count(change.now)}"
        how = f"{count(change.new)} new, {count(change.fixed)} fixed, {count(change.gone)} gone with their page"
        _say(f"{change.verdict:12}{change.rule.name:24}{numbers:>18}   {how}")
    if same := len(comparison.changes) - len(moved):
        _say(f"the same    {counted(same, 'finding' if not moved else 'other finding')}")


def _say(line: str) -> None:
    """A line with text that came from elsewhere."""
    newline = "\n" if line.startswith("\n") else ""
    print(newline + printable(line.lstrip("\n"), sys.stdout.encoding))


class _ReportProgress(ProgressLine):
    """How far the reading of a collection is."""

    def __call__(self, done: int, pages: int) -> None:
        if self.is_due:
            self.draw(f"reading: {count(done)} of {count(pages)} pages, {self.pace(done)}")
