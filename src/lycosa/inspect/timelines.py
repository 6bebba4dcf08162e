"""How a host was doing over time, by what is stored of its URLs: a crawl writes nothing more for it.

A URL counts at the time when it was asked for last. Of very large hosts the first URLs by path stand for all.
"""

from itertools import islice

import msgspec

from lycosa.inspect.pages import host_key_of
from lycosa.records import Family
from lycosa.store import CollectionStore, unpack_page
from lycosa.web import url_key

SPANS = 60
MOST_URLS = 20_000  # looked at: a tenth of a second


class HostMoment(msgspec.Struct, frozen=True):
    """A span of time that ends at `at_unix`: what a host gave in it, and how long its answers took on average; None
    where there was none."""

    at_unix: float
    pages_per_s: float
    errors_per_s: float
    mean_s: float | None


class HostTimeline(msgspec.Struct, frozen=True):
    """A host over time in spans of equal length. `is_partial`: it has more URLs than were looked at."""

    moments: list[HostMoment]
    is_partial: bool


def host_timeline(collection: CollectionStore, host: str) -> HostTimeline:
    """The timeline of a host by its origin, such as https://example.org."""
    start = host_key_of(url_key(f"{host}/")) + b"\0"
    packed = collection.state.walk(Family.PAGE, start, start[:-1] + b"\1")
    rows = [row for _, data in islice(packed, MOST_URLS) if (row := unpack_page(data)).fetched_s]
    if len(rows) < 2:
        return HostTimeline([], False)
    first, last = min(row.fetched_s for row in rows), max(row.fetched_s for row in rows)
    span_s = max((last - first) / SPANS, 0.001)
    pages, errors, answers, took_s = ([0.0] * SPANS for _ in range(4))
    for row in rows:
        place = min(SPANS - 1, int((row.fetched_s - first) / span_s))
        pages[place] += row.is_page and not row.has_failed
        errors[place] += row.has_failed
        answers[place] += row.took_ms > 0
        took_s[place] += row.took_ms / 1_000
    moments = [
        HostMoment(
            at_unix=first + (place + 1) * span_s,
            pages_per_s=pages[place] / span_s,
            errors_per_s=errors[place] / span_s,
            mean_s=took_s[place] / answers[place] if answers[place] else None,
        )
        for place in range(SPANS)
    ]
    return HostTimeline(moments, len(rows) == MOST_URLS)
