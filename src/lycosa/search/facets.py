"""Facets: how the matches of a query spread over hosts, languages, kinds of documents and years.

All matches are counted, each once, copies with equal documents left out: one pass over columns of the index, whatever
is shown of the results. The values are those that `site:`, `lang:`, `filetype:`, `after:` and `before:` take. Called by
retrieval where somebody asks for it.
"""

import time
from datetime import UTC, datetime
from itertools import pairwise

import msgspec
from tantivy import Query

from lycosa.search.documents import KINDS, TOKENS
from lycosa.search.index import IndexReader

MOST_VALUES = 10  # of each facet; the others are counted together
_MOST_COUNTED = 1_000  # languages and kinds are fewer, hosts may be more
_FIRST_YEAR = 1970


class FacetValue(msgspec.Struct, frozen=True):
    """A value and how many of the matches have it."""

    value: str
    pages: int


class Facets(msgspec.Struct, frozen=True):
    """The values with the most matches, years in their order; `other_hosts` counts the matches of all hosts that are
    not listed."""

    hosts: tuple[FacetValue, ...]
    languages: tuple[FacetValue, ...]
    types: tuple[FacetValue, ...]
    years: tuple[FacetValue, ...]
    other_hosts: int = 0


def count_facets(reader: IndexReader, query: Query) -> Facets:
    """The facets of all documents that match."""
    last_year = time.gmtime().tm_year + 1
    starts = [int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) for year in range(_FIRST_YEAR, last_year + 1)]
    spans = enumerate(pairwise(starts), _FIRST_YEAR)
    years = [{"key": str(year), "from": start, "to": end} for year, (start, end) in spans]
    found = reader.aggregate(
        query,
        {
            "hosts": {"terms": {"field": "host", "size": MOST_VALUES}},
            "languages": {"terms": {"field": "lang", "size": _MOST_COUNTED}},
            "types": {"terms": {"field": "kind", "size": _MOST_COUNTED}},
            "years": {"range": {"field": "date", "ranges": years}},
        },
    )
    counts = {name: [(each["key"], int(each["doc_count"])) for each in part["buckets"]] for name, part in found.items()}
    languages = [(key, count) for key, count in counts["languages"] if not key.startswith(TOKENS)]
    return Facets(
        _values(counts["hosts"]),
        _values(languages),
        _values([(KINDS[int(key)].value, count) for key, count in counts["types"]]),
        tuple(FacetValue(key, count) for key, count in counts["years"] if count and key.isdigit()),
        int(found["hosts"].get("sum_other_doc_count") or 0),
    )


def _values(counts: list[tuple[str, int]]) -> tuple[FacetValue, ...]:
    ordered = sorted(counts, key=lambda each: (-each[1], each[0]))
    return tuple(FacetValue(value, count) for value, count in ordered[:MOST_VALUES])
