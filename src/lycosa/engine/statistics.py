"""The statistics that every collection keeps (T7): media types, languages, sizes and link counts of its documents.

They are counted from a page's row, so that what is counted when a page is stored is taken back when another version
takes its place. A copy is counted with its original. Sizes and link counts are counted by powers of two: the key is the
smallest power that is not smaller.
"""

from collections import Counter

from lycosa.engine.pages import PageRow
from lycosa.engine.stats import Totals


def tally(totals: Totals, row: PageRow, sign: int = 1) -> None:
    """Counts a document, or with -1 takes it back; what is no document, or a copy, counts nothing."""
    if not row.is_page or row.original:
        return
    totals.types[row.essence or "unknown"] += sign
    if row.language:
        totals.languages[row.language.partition("-")[0].lower()] += sign
    _count(totals.sizes, row.size_bytes, sign)
    _count(totals.links, row.links, sign)


def _count(histogram: "Counter[str]", value: int, sign: int) -> None:
    histogram[str(1 << (value - 1).bit_length() if value > 0 else 0)] += sign
