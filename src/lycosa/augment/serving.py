"""What the middleware for both kinds of server does: whose table a path asks for, and the answer to it.

    /a/page.tol   is the table of   /a/page.html, /a/page.htm, /a/page.xhtml, /a/page.xml, /a/page or /a/page/
    /a/index.tol  is the table of   /a/, or of /a/index.html and so on

The first of these that answers 200 with a document is it. No I/O here: the application is asked by `wsgi` and `asgi`.
"""

import hashlib
import re
from typing import NamedTuple

from lycosa.augment.document import Wanted, tables_of
from lycosa.augment.files import TYPES
from lycosa.web import tol
from lycosa.web.table import beside

MEDIA_TYPE = "text/plain; charset=utf-8"
# A longer document is not held in memory for its table.
MAX_DOCUMENT_BYTES = 16 * 1024 * 1024
_PLAIN = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=@/-]+\Z")
_DOCUMENT_TYPES = ("text/html", "application/xhtml+xml", "application/xml", "text/xml")


class Reply(NamedTuple):
    """An answer of the middleware's own."""

    status: str
    headers: list[tuple[str, str]]
    body: bytes


NOT_FOUND = Reply("404 Not Found", [("Content-Type", "text/plain"), ("Content-Length", "0")], b"")


def word_of(path: str) -> str:
    """The table that a path asks for, `tol` or `tvi`; empty if it asks for none."""
    word = path[-4:]
    return word[1:] if word in (".tol", ".tvi") else ""


def _documents_of(path: str) -> list[str]:
    """The paths whose table this may be, the likeliest first."""
    stem = path[:-4]
    endings = [*TYPES, "", "/"]
    found = [stem + ending for ending in endings]
    return [stem.removesuffix("index"), *found] if stem.endswith("/index") else found


def _is_document(status: str, content_type: str) -> bool:
    return status.startswith("200") and content_type.partition(";")[0].strip().lower() in _DOCUMENT_TYPES


def link_field(path: str, status: str, content_type: str) -> str | None:
    """The Link header by which a document tells of its table; None for what is none, or has no name for a header."""
    where = beside(path.rpartition("/")[2] or "./", tol.WORD) if _is_document(status, content_type) else None
    return f'<{where}>; rel="{tol.REL}"' if where is not None and _PLAIN.match(where) else None


class Asking:
    """One request for a table: says which path the application has to be asked for next, takes what it answered, and
    has the `reply` when there is nothing left to ask."""

    def __init__(self, path: str, wanted: Wanted, if_none_match: str) -> None:
        self._word, self._wanted, self._if_none_match = word_of(path), wanted, if_none_match
        self._rest = iter(_documents_of(path))
        self._is_own = True  # the first question: does the application have such a file itself?
        self.path: str | None = path
        self.reply = NOT_FOUND

    def heard(self, found: Reply | None) -> None:
        """What the application answers to a GET of `path`; None: nothing that can be used."""
        asked, self.path = self.path or "", None
        if self._is_own:
            self._is_own = False
            if found is not None and not found.status.startswith("404"):
                self.reply = found
                return
        elif found is not None:
            fields = {name.lower(): value for name, value in found.headers}
            if _is_document(found.status, fields.get("content-type", "")):
                self.reply = self._table(asked, found.body, fields)
                return
        self.path = next(self._rest, None)

    def _table(self, path: str, body: bytes, fields: dict[str, str]) -> Reply:
        """The table of a document that the application gave, or 404 where it has none."""
        if fields.get("content-encoding", "").lower() not in ("", "identity"):
            return NOT_FOUND
        made = tables_of(body, self._wanted, name=path.rpartition("/")[2], content_type=fields["content-type"] or None)
        content = made.tol if self._word == tol.WORD else made.tvi
        if content is None:
            return NOT_FOUND
        etag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
        headers = [("ETag", etag), ("Cache-Control", "no-cache")]
        known = [tag.strip().removeprefix("W/") for tag in self._if_none_match.split(",")]
        if self._if_none_match == "*" or etag in known:
            return Reply("304 Not Modified", headers, b"")
        headers += [("Content-Type", MEDIA_TYPE), ("Content-Length", str(len(content)))]
        return Reply("200 OK", headers, content)
