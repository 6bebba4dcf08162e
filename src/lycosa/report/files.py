"""Writes a report: as one page of HTML, as a table (CSV), as JSON, each whole under its name or not at all.

What is long is written piece by piece. Text that came from a site stays text: cells of a table do not become formulas
in a spreadsheet. Called by the command line and by programs.
"""

import csv
import io
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from lycosa.errors import SettingsError, storage_errors
from lycosa.files import replacing
from lycosa.report.compare import ReportComparison
from lycosa.report.making import FindingRow, SiteReport
from lycosa.report.page import html_pieces
from lycosa.web import format_timestamp
from lycosa.wording import safe_cell

FOLDER_FILES = ("report.html", "findings.csv", "report.json")
COLUMNS = ("finding", "severity", "page", "target", "words", "detail")


def write_report(report: SiteReport, out: Path, comparison: ReportComparison | None = None) -> list[Path]:
    """Writes PATH.html, PATH.csv or PATH.json, or all three into the folder PATH; returns what was written."""
    paths = output_paths(out)
    for path in paths:
        write_whole(path, FORMS[path.suffix](report, comparison))
    return paths


def output_paths(out: Path) -> list[Path]:
    """The files that will be written; raises SettingsError where that cannot be."""
    if out.is_dir() or not out.suffix:
        if out.exists() and not out.is_dir():
            raise SettingsError(f"{out} is a file: name a folder, or a file ending in {', '.join(FORMS)}")
        return [out / name for name in FOLDER_FILES]
    if out.suffix not in FORMS:
        raise SettingsError(f"a report is written to a folder or to FILE{', FILE'.join(FORMS)}, not to {out.name!r}")
    if not out.absolute().parent.is_dir():
        raise SettingsError(f"{out} cannot be written: there is no folder {out.parent}")
    return [out]


def write_whole(path: Path, pieces: Iterator[str]) -> None:
    """Writes a text; what was there before stays until all of it is written."""
    with storage_errors(path, doing="writing the report"):
        path.parent.mkdir(exist_ok=True)
        with replacing(path) as file:
            file.writelines(piece.encode("utf-8", "replace") for piece in pieces)


def csv_pieces(report: SiteReport, comparison: ReportComparison | None = None) -> Iterator[str]:
    """One long table: a row for each page with each finding."""
    del comparison  # a table is of one crawl
    buffer = io.StringIO()
    table = csv.writer(buffer, lineterminator="\n")
    table.writerow(COLUMNS)
    for each in report.findings:
        for row in report.rows(each.rule.name):
            cells = (each.rule.name, each.rule.severity.value, row.page, row.target, row.words, row.detail)
            table.writerow([safe_cell(cell) for cell in cells])
            if buffer.tell() > 1 << 16:
                yield buffer.getvalue()
                buffer.seek(0)
                buffer.truncate()
    yield buffer.getvalue()


def json_pieces(report: SiteReport, comparison: ReportComparison | None = None) -> Iterator[str]:
    """The whole report as one object."""
    survey = report.survey
    head = {
        "site": report.name,
        "collection": str(report.path),
        "made": format_timestamp(report.made_s),
        "pages": survey.pages,
        "first_fetched": format_timestamp(survey.first_s) if survey.pages else None,
        "last_fetched": format_timestamp(survey.last_s) if survey.pages else None,
        "queued": survey.queued,
        "remarks": report.remarks,
        "plots": report.plots(),
    }
    yield _json(head)[:-1] + ', "findings": ['
    for place, each in enumerate(report.findings):
        rule = each.rule
        about = {
            "name": rule.name,
            "title": rule.title,
            "severity": rule.severity,
            "means": rule.means,
            "fix": rule.fix,
            "count": each.rows,
            "pages": each.pages,
            "unchecked": each.unchecked or None,
        }
        yield (", " if place else "") + _json(about)[:-1] + ', "rows": '
        yield from _json_list(report.rows(rule.name))
        yield "}"
    yield "]"
    if comparison is not None:
        yield ', "comparison": '
        yield from _json_comparison(comparison)
    yield "}\n"


def _json_comparison(comparison: ReportComparison) -> Iterator[str]:
    head = {"with": str(comparison.older.path), "pages_came": comparison.came, "pages_went": comparison.went}
    yield _json(head)[:-1] + ', "came": '
    yield from _json_list(comparison.pages_came())
    yield ', "went": '
    yield from _json_list(comparison.pages_went())
    yield ', "findings": ['
    for place, change in enumerate(comparison.changes):
        counts = {
            "name": change.rule.name,
            "verdict": change.verdict,
            **{name: getattr(change, name) for name in ("before", "now", "new", "fixed", "gone")},
        }
        yield (", " if place else "") + _json(counts)[:-1] + ', "new_rows": '
        yield from _json_list(comparison.new(change.rule.name))
        yield ', "fixed_rows": '
        yield from _json_list(comparison.fixed(change.rule.name))
        yield "}"
    yield "]}"


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _json_list(items: Iterator[FindingRow] | Iterator[str]) -> Iterator[str]:
    yield "["
    for place, item in enumerate(items):
        yield (", " if place else "") + _json(item)
    yield "]"


FORMS: dict[str, Callable[[SiteReport, ReportComparison | None], Iterator[str]]] = {
    ".html": html_pieces,
    ".csv": csv_pieces,
    ".json": json_pieces,
}
