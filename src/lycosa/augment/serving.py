"""What the middleware for both kinds of server does: whose table a path asks for, and the answer to it.

    /a/page.tol   is the table of   /a/page.html, /a/page.htm, /a/page.xhtml, /a/page.xml, /a/page or /a/page/
    /a/index.tol  is the table of   /a/, or of /a/index.html and so on

The first of these that answers 200 with a document is it. No I/O here: the application is asked by `wsgi` and `asgi`.
"""

import hashlib
import re
from typing import NamedTuple

from lycosa.augment.document import Wanted, tables_of
from lycosa.augment.site import TYPES
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


def documents_of(path: str) -> list[str]:
    """The paths whose table this may be, the likeliest first."""
    stem = path[:-4]
    endings = [*TYPES, "", "/"]
    found = [stem + ending for ending in endings]
    return [stem.removesuffix("index"), *found] if stem.endswith("/index") else found


def is_document(status: str, content_type: str) -> bool:
    return status.startswith("200") and content_type.partition(";")[0].strip().lower() in _DOCUMENT_TYPES


def link_field(path: str) -> str | None:
    """The Link header by which a document tells of its table; None where the path cannot be written in one."""
    where = beside(path.rpartition("/")[2] or "./", tol.WORD)
    if where is None or not _PLAIN.match(where):
        return None
    return f'<{where}>; rel="{tol.REL}"'


def reply(
    word: str, path: str, body: bytes, content_type: str, coding: str, wanted: Wanted, if_none_match: str
) -> Reply:
    """The table of a document that the application gave, or 404 where it has none."""
    if coding.lower() not in ("", "identity"):
        return NOT_FOUND
    made = tables_of(body, wanted, name=path.rpartition("/")[2], content_type=content_type or None)
    content = made.tol if word == tol.WORD else made.tvi
    if content is None:
        return NOT_FOUND
    etag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    headers = [("ETag", etag), ("Cache-Control", "no-cache")]
    if if_none_match == "*" or etag in [tag.strip().removeprefix("W/") for tag in if_none_match.split(",")]:
        return Reply("304 Not Modified", headers, b"")
    headers += [("Content-Type", MEDIA_TYPE), ("Content-Length", str(len(content)))]
    return Reply("200 OK", headers, content)
