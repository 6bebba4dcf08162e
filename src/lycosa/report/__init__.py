"""The report of a site for its owner: what is broken, doubled, missing or slow, as a page, a table or JSON.

`make_report` reads a collection once and judges it by `RULES`; `compare` sets two reports side by side; `write_report`
writes one or more forms of it. Everything here only reads the collection.
"""

from typing import TYPE_CHECKING

from lycosa.doors import open_lazily

if TYPE_CHECKING:
    from lycosa.report.compare import ReportComparison, RuleChange
    from lycosa.report.files import json_pieces, output_paths, write_report
    from lycosa.report.making import FindingRow, FindingSummary, SiteReport, make_report
    from lycosa.report.page import html_pieces, page_policy
    from lycosa.report.rules import RULES, Rule, Severity, read_names

# Module → names. Each is imported when it is first used: a worker needs no more than what reads pages.
__getattr__ = open_lazily(
    __name__,
    {
        "compare": "ReportComparison RuleChange",
        "files": "json_pieces output_paths write_report",
        "making": "FindingRow FindingSummary SiteReport make_report",
        "page": "html_pieces page_policy",
        "rules": "RULES Rule Severity read_names",
    },
)


__all__ = [
    "RULES",
    "FindingRow",
    "FindingSummary",
    "ReportComparison",
    "Rule",
    "RuleChange",
    "Severity",
    "SiteReport",
    "html_pieces",
    "json_pieces",
    "make_report",
    "output_paths",
    "page_policy",
    "read_names",
    "write_report",
]  # fmt: skip
