"""HTTP around an answer: conditions, ranges, coding, HEAD; from request facts to the bytes of a response.

Pure. Used alike by the server and by the in-memory web, so that both speak the same HTTP.
"""

import re
from email.utils import parsedate_to_datetime

import msgspec
from isal import igzip

from lycosa.simweb.documents import EPOCH_S, http_date
from lycosa.simweb.web import Answer

GZIP_LEAST = 256  # smaller bodies are not worth a header
# What goes wrong after the headers: an answer to HEAD is over by then.
BODY_TROUBLE = frozenset({"drip", "reset", "truncated", "wrong-length", "endless"})
_RANGE = re.compile(r"bytes=([0-9]{0,15})-([0-9]{0,15})\Z")  # more digits than any file has bytes
REASONS = {
    200: "OK",
    206: "Partial Content",
    301: "Moved Permanently",
    304: "Not Modified",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    410: "Gone",
    416: "Range Not Satisfiable",
    421: "Misdirected Request",
    429: "Too Many Requests",
    500: "Internal Server Error",
    503: "Service Unavailable",
}


class Asked(msgspec.Struct, frozen=True):
    """What a request says beside its target; header values as text, empty where missing."""

    method: str = "GET"
    accept_encoding: str = ""
    if_none_match: str = ""
    if_modified_since: str = ""
    range: str = ""


class Wire(msgspec.Struct, frozen=True):
    """A response as bytes; `tail` follows the body and is shared by many. `trouble` is what to do instead."""

    status: int
    head: bytes
    body: bytes
    tail: bytes = b""
    trouble: str = ""

    @property
    def size_bytes(self) -> int:
        return len(self.head) + len(self.body) + len(self.tail)


def wire(answer: Answer, asked: Asked, *, time_s: float, gzip: bool, keep_alive: bool = True) -> Wire:
    """The response to `asked`, conditions and coding applied."""
    status, body, headers = answer.status, answer.body, list(answer.headers)
    is_spoiled = bool(answer.trouble)
    if status == 200 and not is_spoiled:
        if _is_unchanged(answer, asked):
            status, body = 304, b""
        elif asked.range and asked.method == "GET":
            status, body, extra = _ranged(body, asked.range)
            headers += extra
        elif gzip and len(body) >= GZIP_LEAST and accepts_gzip(asked.accept_encoding) and _is_text(answer.content_type):
            body = igzip.compress(body, compresslevel=1, mtime=0)
            headers += [("Content-Encoding", "gzip"), ("Vary", "Accept-Encoding")]
    length = len(body) // 2 if answer.trouble == "wrong-length" else len(body) + len(answer.tail)
    date = http_date(int(EPOCH_S + time_s))
    head = [f"HTTP/1.1 {status} {REASONS.get(status, 'Unknown')}\r\nServer: simweb\r\nDate: {date}\r\n"]
    if answer.etag:
        head.append(f"ETag: {answer.etag}\r\n")
    if answer.modified_s:
        head.append(f"Last-Modified: {http_date(answer.modified_s)}\r\n")
    if status != 304:
        head.append(f"Content-Type: {answer.content_type}\r\nContent-Length: {length}\r\n")
    head += [f"{name}: {value}\r\n" for name, value in headers]
    head.append("\r\n" if keep_alive else "Connection: close\r\n\r\n")
    block = "".join(head).encode("latin-1")
    if asked.method == "HEAD":
        return Wire(status, block, b"", trouble="" if answer.trouble in BODY_TROUBLE else answer.trouble)
    return Wire(status, block, body, answer.tail, answer.trouble)


def accepts_gzip(accept_encoding: str) -> bool:
    """`gzip` is named, and not with a weight of nothing."""
    if ";" not in accept_encoding:
        return "gzip" in accept_encoding
    codings = [coding.replace(" ", "") for coding in accept_encoding.lower().split(",")]
    return any(re.match(r"gzip(?:;q=(?!0(?:\.0*)?\Z)|\Z)", coding) for coding in codings)


def _is_text(content_type: str) -> bool:
    return content_type.startswith("text/") or "xml" in content_type


def _is_unchanged(answer: Answer, asked: Asked) -> bool:
    """An entity tag decides alone when it is given; else the date does."""
    if asked.if_none_match and answer.etag:
        return asked.if_none_match.strip() == "*" or answer.etag in asked.if_none_match
    if asked.if_modified_since and answer.modified_s and not asked.if_none_match:
        try:
            return answer.modified_s <= parsedate_to_datetime(asked.if_modified_since).timestamp()
        except ValueError:
            return False
    return False


def _ranged(body: bytes, asked: str) -> tuple[int, bytes, list[tuple[str, str]]]:
    """One byte range; anything else is answered whole."""
    match = _RANGE.match(asked.strip())
    first, last = match.groups() if match else ("", "")
    if not (first or last) or (first and last and int(first) > int(last)):
        return 200, body, []
    start = int(first) if first else max(0, len(body) - int(last))
    end = min(int(last), len(body) - 1) if first and last else len(body) - 1
    if start > end:
        return 416, b"", [("Content-Range", f"bytes */{len(body)}")]
    return 206, body[start : end + 1], [("Content-Range", f"bytes {start}-{end}/{len(body)}")]
