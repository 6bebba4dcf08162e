"""Which pages of a collection can be found, and what the search index is told of them. Pure."""

from functools import lru_cache
from typing import NamedTuple

from msgspec.structs import replace

from lycosa.engine.pages import PageRow
from lycosa.search.document import Found
from lycosa.web.date import epoch_of
from lycosa.web.readable import Readable

ALIKE_CHARS = 200  # of text: pages with less may differ by what is no text, and are not alike


class Member(NamedTuple):
    """A page that can be found."""

    number: int
    url: str
    row: PageRow

    @property
    def cluster(self) -> int:
        return int.from_bytes(self.row.digest[:8]) if self.row.digest and self.row.size_bytes else self.number


def is_searchable(row: PageRow, now_unix: float) -> bool:
    """Is it a document that is there, and that does not ask to be left out, for ever or by now?"""
    return 200 <= row.status < 300 and row.is_page and not row.noindex and not has_expired(row, now_unix)


def has_expired(row: PageRow, now_unix: float) -> bool:
    """Is the time over up to which it wants to be found?"""
    return 0 < row.unavailable_s <= now_unix


def found_of(number: int, cluster: int, url: str, row: PageRow, read: Readable | None = None) -> Found:
    """What the index is told of a page; of one that the archive no longer has, what its row says."""
    found = Found(number, cluster, url, date_of(row), row.essence, row.language, row.title, alike=alike_of(row))
    if read is None:
        return found
    return replace(found, title=row.title or read.title, headings=read.headings, text=read.text)


def alike_of(row: PageRow) -> int:
    """The same number for pages whose main text is the same, whatever stands around it; 0 where that is short."""
    has_enough = row.codes[-1] >= ALIKE_CHARS and row.text_digest
    return int.from_bytes(row.text_digest[:8]) if has_enough else 0


def date_of(row: PageRow) -> float:
    """When the document is from: what the server says, unless that lies in the future; else when it was fetched."""
    said = _epoch(row.last_modified) if row.last_modified else None
    return said if said is not None and 0 < said <= row.fetched_s else row.fetched_s


_epoch = lru_cache(10_000)(epoch_of)  # a site's files are often of one day
