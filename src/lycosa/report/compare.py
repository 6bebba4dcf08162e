"""Two reports side by side: what got better, what got worse, which pages came and went.

A finding is the same in both where rule, page and target are. One that is no longer there is fixed, or gone with its
page if that is no page any more. Done by joins in the database of the newer report. Used by the command line and by
whoever writes the report.
"""

from collections.abc import Iterator
from itertools import starmap

import msgspec

from lycosa.report.database import uid
from lycosa.report.making import FindingRow, SiteReport
from lycosa.report.rules import Rule

_NOT_IN = (
    "not exists (select 1 from {other}.finding as o where o.kind = f.kind and o.page = f.page and o.target = f.target)"
)
_NEW = f"main.finding as f where {_NOT_IN.format(other='old')}"
_LOST = f"old.finding as f where {_NOT_IN.format(other='main')}"
_CAME = "{one}.good as g where not exists (select 1 from {other}.page as p where p.uid = g.uid and p.state = 'page')"


class RuleChange(msgspec.Struct, frozen=True):
    """A rule in both reports: `before` and `now` count its findings, `new` and `fixed` say what is behind; `gone` are
    findings whose page is no longer known."""

    rule: Rule
    before: int
    now: int
    new: int
    fixed: int
    gone: int

    @property
    def has_changed(self) -> bool:
        return bool(self.new or self.fixed or self.gone)

    @property
    def verdict(self) -> str:
        """Whether it got better or worse, in a word or two."""
        if self.now == self.before:
            return "the same" if not self.new else "other pages"
        return "better" if self.now < self.before else "worse"


class ReportComparison:
    """The newer report against an older one, which must stay open."""

    def __init__(self, newer: SiteReport, older: SiteReport) -> None:
        self.newer, self.older = newer, older
        self._database = newer.database
        self._database.attach(older.database, "old")
        self._database.define("uid_of", uid)
        # What was wrong with a redirect or a broken URL is mended by its end; a page must still be one.
        was = "exists (select 1 from old.page as p where p.uid = uid_of(f.page) and p.state = 'page')"
        still = "exists (select 1 from main.page as p where p.uid = uid_of(f.page) and p.state = 'page')"
        self._database.execute(
            "create temp table fixed as select f.kind, f.page, f.target, f.words, f.detail,"
            f" not {was} or {still} as is_fixed from {_LOST} order by f.rowid"
        )
        self.changes = self._changes()
        self.came = self._database.value(f"select count(*) from {_CAME.format(one='main', other='old')}")
        self.went = self._database.value(f"select count(*) from {_CAME.format(one='old', other='main')}")

    def __repr__(self) -> str:
        return f"<ReportComparison of {self.newer!r} with {self.older!r}>"

    def _changes(self) -> list[RuleChange]:
        new = dict(self._database.rows(f"select f.kind, count(*) from {_NEW} group by f.kind"))
        query = "select kind, sum(is_fixed), count(*) from fixed group by kind"
        lost = {kind: (fixed, count) for kind, fixed, count in self._database.rows(query)}
        rows = zip(self.older.findings, self.newer.findings, strict=True)
        found = []
        for before, now in rows:
            fixed, count = lost.get(now.rule.name, (0, 0))
            change = RuleChange(now.rule, before.rows, now.rows, new.get(now.rule.name, 0), fixed, count - fixed)
            if before.rows or now.rows:
                found.append(change)
        return found

    def new(self, name: str, most: int = -1) -> Iterator[FindingRow]:
        """The findings of a rule that were not there before."""
        query = f"select f.page, f.target, f.words, f.detail from {_NEW} and f.kind = ? order by f.rowid limit ?"
        return starmap(FindingRow, self._database.rows(query, (name, most)))

    def fixed(self, name: str, most: int = -1) -> Iterator[FindingRow]:
        """The findings of a rule that are no longer there, while their page is."""
        query = "select page, target, words, detail from fixed where kind = ? and is_fixed order by rowid limit ?"
        return starmap(FindingRow, self._database.rows(query, (name, most)))

    def pages_came(self, most: int = -1) -> Iterator[str]:
        """The pages that were none before."""
        return self._urls("main", "old", most)

    def pages_went(self, most: int = -1) -> Iterator[str]:
        """The pages that are none any more."""
        return self._urls("old", "main", most)

    def _urls(self, one: str, other: str, most: int) -> Iterator[str]:
        query = f"select url from {_CAME.format(one=one, other=other)} order by id limit ?"
        return (url for (url,) in self._database.rows(query, (most,)))
