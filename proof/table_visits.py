"""Keeping pages of the simulated web fresh by looking at each once a day: whole, with conditions, or by its table.

Every byte is that of the web's own HTTP, heads included. A visitor has what it stored and nothing else: whether a page
has a table it sees by the marks in what it stored. Used by the experiment `tvi`.
"""

import gzip
from collections.abc import Callable
from typing import NamedTuple, Protocol

from lycosa.recrawl.table_revisits import SAME_TABLES_MOST, TABLE_VISITS_MOST
from lycosa.simweb.protocol import WireRequest, WireResponse, to_wire
from lycosa.simweb.web import Answer
from lycosa.tables import formats as table
from lycosa.tables import formats as tvi
from lycosa.tables.formats import TableRefusal
from lycosa.web import volatile

REQUEST_BYTES = 200  # of a request, about: its line, host, agent, accepted types and codings


class Stored(NamedTuple):
    """What a visitor keeps of a page: its document, the validators of the document and of its table, and how many
    visits in a row fetched only that table, and found it as it was."""

    body: bytes | None = None
    etag: str = ""
    modified: str = ""
    table_etag: str = ""
    by_table: int = 0
    same_tables: int = 0


Answers = Callable[[int, str, float], Answer]


class Line:
    """The way to the web: asks, and counts what that takes."""

    def __init__(self, answer: Answers) -> None:
        self._answer = answer
        self.requests = self.bytes = 0

    def get(self, host: int, path: str, time_s: float, *, etag: str = "", modified: str = "") -> WireResponse:
        asked = WireRequest(accept_encoding="gzip", if_none_match=etag, if_modified_since=modified)
        message = to_wire(self._answer(host, path, time_s), asked, time_s=time_s, gzip=True)
        self.requests += 1
        self.bytes += REQUEST_BYTES + len(etag) + len(modified) + message.size_bytes
        return message


class Visitor(Protocol):
    """One way of looking again. Gives what it has after the visit; a body of None: the page is gone."""

    def __call__(self, line: Line, host: int, path: str, time_s: float, stored: Stored) -> Stored: ...


def whole(line: Line, host: int, path: str, time_s: float, stored: Stored) -> Stored:
    """The document, every time."""
    return _kept(line.get(host, path, time_s), stored)


def conditional(line: Line, host: int, path: str, time_s: float, stored: Stored) -> Stored:
    """The document, if its validators say that it changed."""
    if stored.body is None:
        return whole(line, host, path, time_s, stored)
    return _kept(line.get(host, path, time_s, etag=stored.etag, modified=stored.modified), stored)


def by_table(line: Line, host: int, path: str, time_s: float, stored: Stored) -> Stored:
    """The table, where the stored document has volatile parts; the document where the table shows that it must be, and
    as often as the crawl asks for it anyway."""
    where = table.beside(path, tvi.TVI)
    if stored.by_table >= TABLE_VISITS_MOST or stored.same_tables >= SAME_TABLES_MOST:
        return conditional(line, host, path, time_s, stored)._replace(table_etag="", by_table=0, same_tables=0)
    if stored.body is None or where is None or not volatile.marked_parts(stored.body, is_xml=False):
        return conditional(line, host, path, time_s, stored)
    answer = line.get(host, where, time_s, etag=stored.table_etag)
    if answer.status == 304:
        return stored._replace(by_table=stored.by_table + 1, same_tables=stored.same_tables + 1)
    found = tvi.parse_tvi(_body(answer)) if answer.status == 200 else TableRefusal.NOT_A_TABLE
    patched = tvi.patch_document(stored.body, found, is_xml=False) if isinstance(found, tvi.Tvi) else found
    if isinstance(patched, bytes):
        # the document's own validators are of a version that was never fetched, and would only be asked for in vain
        validators = (stored.etag, stored.modified) if patched == stored.body else ("", "")
        same_tables = stored.same_tables + 1 if patched == stored.body else 0
        return Stored(patched, *validators, _field(answer, "ETag"), stored.by_table + 1, same_tables)
    return conditional(line, host, path, time_s, stored)._replace(table_etag="", by_table=0, same_tables=0)


def _kept(answer: WireResponse, stored: Stored) -> Stored:
    if answer.status == 304:
        return stored
    if answer.status != 200:
        return Stored()
    return Stored(_body(answer), _field(answer, "ETag"), _field(answer, "Last-Modified"))


def _body(answer: WireResponse) -> bytes:
    return gzip.decompress(answer.body) if _field(answer, "Content-Encoding") == "gzip" else answer.body


def _field(answer: WireResponse, name: str) -> str:
    for line in answer.head.decode("latin-1").split("\r\n"):
        if line.startswith(f"{name}: "):
            return line[len(name) + 2 :]
    return ""
