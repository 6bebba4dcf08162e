"""The statistics that every crawl keeps (T7): media types, languages, sizes and link counts of analysed pages.

A `Statistics` part like any other; its counts are kept with the collection's counters. Sizes and link counts are
counted by powers of two: the key is the smallest power that is not smaller.
"""

from collections import Counter

from lycosa.engine.stats import Totals
from lycosa.records import Response
from lycosa.web.page import Page


class PageStatistics:
    """Counts into the collection's counters."""

    def __init__(self, totals: Totals) -> None:
        self._totals = totals

    def page(self, page: Page, response: Response) -> None:
        totals = self._totals
        totals.types[page.media.essence or "unknown"] += 1
        if page.language:
            totals.languages[page.language.partition("-")[0].lower()] += 1
        _count(totals.sizes, len(response.body))
        _count(totals.links, len(page.links))


def _count(histogram: "Counter[str]", value: int) -> None:
    histogram[str(1 << (value - 1).bit_length() if value > 0 else 0)] += 1
