"""Cells of CSV files that come from the web: no spreadsheet takes them for a formula.

Used by whatever writes CSV: `lycosa urls`, `sql` and `duplicates`, exports and reports.
"""

_STARTS = frozenset("=+-@\t\r\n|%＝＋－＠")  # of formulas, commands and their full-width spellings


def safe_cell(value: str) -> str:
    """The text with an apostrophe before it where a spreadsheet would take it for a formula, and without NUL."""
    if not value:
        return value
    text = value.replace("\0", "") if "\0" in value else value
    return f"'{text}" if text[:1] in _STARTS or text.lstrip(" ")[:1] in _STARTS else text
