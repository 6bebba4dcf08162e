"""Makes the report of a site: takes a collection in, judges it, and answers what was found.

A `SiteReport` holds the database of its tables; everything long is read from there in pieces. Close it, or use it as a
context manager. Made by the command line and by programs through `make_report`.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from lycosa.inspect import open_to_read
from lycosa.report.database import ReportDatabase
from lycosa.report.findings import judge
from lycosa.report.rules import BY_NAME, RULES, Need, Rule, Severity
from lycosa.report.survey import Progress, Survey, take_in

FOLDERS_SHOWN = 12
# Upper ends of the classes of sizes (bytes) and times (milliseconds) that plots show.
SIZE_CLASSES = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000)
TIME_CLASSES = (10, 30, 100, 300, 1_000, 2_000, 5_000, 10_000)


class FindingRow(msgspec.Struct, frozen=True):
    """One page with one thing that is wrong; `target` is the other URL that it is about."""

    page: str
    target: str = ""
    words: str = ""
    detail: str = ""


class FindingSummary(msgspec.Struct, frozen=True):
    """A rule with what it found. `rows` counts the findings, `pages` the different pages that have them. `unchecked`
    says why it could not be judged, if so."""

    rule: Rule
    rows: int = 0
    pages: int = 0
    unchecked: str = ""


class Bar(msgspec.Struct, frozen=True):
    """One bar of a plot."""

    name: str
    count: int


class SiteReport:
    """What was found. `survey` has the figures, `findings` every rule in its order."""

    def __init__(self, path: Path, database: ReportDatabase, survey: Survey) -> None:
        self.path, self.database, self.survey = path, database, survey
        self.made_s = time.time()
        self.findings = self._summaries()

    def __repr__(self) -> str:
        return f"<SiteReport of {self.path}: {sum(each.rows for each in self.findings)} findings>"

    def __enter__(self) -> "SiteReport":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.database.close()

    def _summaries(self) -> list[FindingSummary]:
        query = "select kind, count(*), count(distinct page) from finding group by kind"
        counts = {kind: (rows, pages) for kind, rows, pages in self.database.rows(query)}
        return [FindingSummary(rule, *counts.get(rule.name, (0, 0)), self._unchecked(rule)) for rule in RULES]

    def _unchecked(self, rule: Rule) -> str:
        survey = self.survey
        if not survey.pages:
            return ""
        if rule.needs is Need.BODIES and not survey.has_bodies:
            return "the collection keeps no bodies of pages (archive = none)"
        if rule.needs is Need.TIMES and not survey.has_times:
            return "the collection was crawled by a version that did not keep times"
        if rule.needs is Need.SITEMAPS and not survey.sitemaps:
            return "no stored sitemap could be read"
        if rule.needs is Need.CLUSTERS and not survey.has_near:
            return "no page has enough text to be compared"
        if rule.needs is Need.REQUISITES and not (survey.has_requisites and survey.has_bodies):
            return "the crawl fetched nothing that pages need to be shown (crawl --requisites)"
        return ""

    @property
    def name(self) -> str:
        """The site in a word or two."""
        sites = self.survey.sites
        return ", ".join(sites[:3]) + (f" and {len(sites) - 3} more" if len(sites) > 3 else "") or self.path.name

    @property
    def remarks(self) -> list[str]:
        """Sentences that say what the report cannot know."""
        survey, said = self.survey, []
        if not survey.pages:
            said.append("The collection has no page of this site yet.")
        if survey.queued:
            queued = f"{survey.queued:,} known URLs are" if survey.queued > 1 else "1 known URL is"
            said.append(f"The crawl is not complete: {queued} still queued, so a page may be linked from one of them.")
        if survey.unread and survey.has_bodies:
            said.append(
                f"The bodies of {survey.unread:,} pages could not be read; what needs them was not checked there."
            )
        reasons = dict.fromkeys(each.unchecked for each in self.findings if each.unchecked)
        for reason in reasons:
            names = "; ".join(each.rule.title.lower() for each in self.findings if each.unchecked == reason)
            said.append(f"Not checked, because {reason}: {names}.")
        return said

    def count(self, severity: Severity) -> int:
        """The findings of one severity."""
        return sum(each.rows for each in self.findings if each.rule.severity is severity)

    def rows(self, name: str, most: int = -1) -> Iterator[FindingRow]:
        """The findings of one rule in their order, at most so many."""
        query = "select page, target, words, detail from finding where kind = ? order by rowid limit ?"
        return (FindingRow(*row) for row in self.database.rows(query, (name, most)))

    def groups(self, name: str, most: int) -> Iterator[tuple[str, int]]:
        """The groups of a rule's findings, the largest first: what they share, and how many there are."""
        column = BY_NAME[name].group
        query = (
            f"select {column}, count(*) from finding where kind = ? group by {column}"
            " order by count(*) desc, min(rowid) limit ?"
        )
        return iter(self.database.rows(query, (name, most)).fetchall())

    def group_rows(self, name: str, value: str, most: int) -> list[FindingRow]:
        """The first findings of one group."""
        query = (
            f"select page, target, words, detail from finding where kind = ? and {BY_NAME[name].group} = ?"
            " order by rowid limit ?"
        )
        return [FindingRow(*row) for row in self.database.rows(query, (name, value, most))]

    # plots

    def plots(self) -> dict[str, list[Bar]]:
        """The counts behind the plots, by name."""
        return {
            "status": self._bars(
                "select case when state = 'blocked' then 'blocked' when status then cast(status as text)"
                " else 'no answer' end as name, count(*) from page where is_internal and state <> 'sitemap'"
                " group by name order by name"
            ),
            "depth": self._bars("select depth, count(*) from good where is_html group by depth order by depth"),
            "size": self._classes("size", SIZE_CLASSES, _size_words),
            "time": self._classes("took", TIME_CLASSES, _time_words) if self.survey.has_times else [],
            "folder": self._folders(),
        }

    def _bars(self, query: str, values: tuple[Any, ...] = ()) -> list[Bar]:
        return [Bar(str(name), count) for name, count in self.database.rows(query, values)]

    def _classes(self, column: str, ends: tuple[int, ...], words: Any) -> list[Bar]:
        cases = " ".join(f"when {column} <= {end} then {place}" for place, end in enumerate(ends))
        query = (
            f"select case {cases} else {len(ends)} end as class, count(*) from good"
            f" where is_html and {column} is not null"
            " group by class"
        )
        counts = dict(self.database.rows(query))
        names = [f"≤ {words(end)}" for end in ends] + [f"> {words(ends[-1])}"]
        bars = [Bar(name, counts.get(place, 0)) for place, name in enumerate(names)]
        filled = [place for place, bar in enumerate(bars) if bar.count]
        return bars[filled[0] : filled[-1] + 1] if filled else []

    def _folders(self) -> list[Bar]:
        one_host = self.database.value("select count(distinct substr(folder, 1, instr(folder, '/'))) from good") == 1
        bars = self._bars(
            "select folder, count(*) from good group by folder order by count(*) desc, folder limit ?", (FOLDERS_SHOWN,)
        )
        rest = self.survey.pages - sum(bar.count for bar in bars)
        shown = [Bar("/" + bar.name.partition("/")[2] if one_host else bar.name, bar.count) for bar in bars]
        return shown + ([Bar("all others", rest)] if rest else [])


def _size_words(size: int) -> str:
    return f"{size // 1_000_000} MB" if size >= 1_000_000 else f"{size // 1_000} kB"


def _time_words(milliseconds: int) -> str:
    return f"{milliseconds // 1_000} s" if milliseconds >= 1_000 else f"{milliseconds} ms"


def make_report(path: Path, progress: Progress | None = None) -> SiteReport:
    """The report of the collection at `path`, of one shard or many, beside a running crawl or without one."""
    database = ReportDatabase()
    try:
        with open_to_read(path) as collection:
            survey = take_in(collection, database, progress)
        judge(database)
        return SiteReport(path, database, survey)
    except BaseException:
        database.close()
        raise
