"""From a record of an archive to the request and the response that it tells of, whoever wrote it.

Records of type response, resource and revisit are captures. What cannot be one says why (`NotImported`): another scheme
than http, another method than GET, no status line. Header fields are cleaned of what is no field, such as the pseudo
fields of HTTP/2; a chunked body is joined. Pure. Called by `importing.importer`.
"""

import re
from base64 import b32decode
from binascii import Error as Base32Error
from datetime import UTC, datetime
from typing import NamedTuple

from lycosa.records import Request, Response, Truncation
from lycosa.store import WarcRecord
from lycosa.web import Url, parse_url

CAPTURES = frozenset({"response", "resource", "revisit"})
_STATUS = re.compile(rb"HTTP/\d(?:\.\d)?[ \t]+(\d{3})(?!\d)")
_LINES = re.compile(rb"\r?\n(?![ \t])")
_FOLD = re.compile(rb"\r?\n[ \t]+")
_FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+)[ \t]*:[ \t]*(.*?)[ \t]*", re.S)
_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:Z|[+-]00:?00)?")
_SHA1_BYTES = 20
_HEX_CHARS = 2 * _SHA1_BYTES
_EARLIEST_S = 631_152_000.0  # 1990: there was no web before


class NotImported(Exception):
    """Why a record is left out; `is_odd` if the archive is to blame, so that the record is named."""

    def __init__(self, why: str, *, is_odd: bool = False) -> None:
        super().__init__(why)
        self.why, self.is_odd = why, is_odd


class ArchivedCapture(NamedTuple):
    """One answer of the past. `is_revisit`: its body is that of another capture, whose payload has the digest
    `payload_sha1` and which was made of the URL `original`, as far as the record says."""

    url: Url
    fetched_s: float
    request: Request
    response: Response
    is_revisit: bool = False
    payload_sha1: bytes | None = None
    original: str = ""


def capture_of(record: WarcRecord, request: WarcRecord | None, *, fetched_s: float) -> ArchivedCapture:
    """The capture that a record holds; raises `NotImported`."""
    url = parse_url(record.url or "")
    if url is None:
        raise NotImported("not of a page on the web")
    address = _address(record.header("WARC-IP-Address") or "")
    asked = _request(url, request, address)
    if asked.method not in ("GET", ""):
        raise NotImported(f"{asked.method} requests" if asked.method == "POST" else "requests other than GET")
    if record.type == "resource":
        head, body, status = _resource_head(record), record.block, 200
    elif record.type == "revisit" and not record.block.strip():
        head, body, status = b"", b"", 0
    else:
        head, body = record.http()
        found = _STATUS.match(head)
        if found is None:
            raise NotImported("no HTTP message", is_odd=True)
        status = int(found[1])
    head, fields = _clean(head)
    truncated = _truncation(record.header("WARC-Truncated"))
    response = Response(url.href, status, head, fields, body, address, truncated=truncated)
    return ArchivedCapture(
        url,
        fetched_s,
        asked,
        response,
        is_revisit=record.type == "revisit",
        payload_sha1=sha1_of_digest(record.header("WARC-Payload-Digest")),
        original=record.header("WARC-Refers-To-Target-URI") or "",
    )


def date_of(record: WarcRecord) -> float | None:
    """The Unix time of a record; None where it says none, or one that cannot be."""
    found = _DATE.fullmatch((record.header("WARC-Date") or "").strip())
    if found is None:
        return None
    *parts, fraction = found.groups()
    try:
        whole = datetime(*map(int, parts), tzinfo=UTC).timestamp()  # type: ignore[misc,arg-type]
    except ValueError:
        return None
    return whole + float(f"0.{fraction or 0}") if whole >= _EARLIEST_S else None


def sha1_of_digest(named: str | None) -> bytes | None:
    """The SHA-1 that a digest field names, in base 32 or in hexadecimal; None for other algorithms, and for none."""
    algorithm, _, value = (named or "").partition(":")
    if algorithm.strip().lower() not in ("sha1", "sha-1"):
        return None
    try:
        digest = bytes.fromhex(value) if len(value) == _HEX_CHARS else b32decode(value.strip().upper())
    except (ValueError, Base32Error):
        return None
    return digest if len(digest) == _SHA1_BYTES else None


def _request(url: Url, record: WarcRecord | None, address: str) -> Request:
    """The request as it is recorded; without a record, one without a method."""
    method, fields = "", tuple[tuple[str, str], ...]()
    if record is not None:
        head, _ = record.http()
        first, *lines = _LINES.split(head)
        method = first.partition(b" ")[0].decode("latin-1")[:20] or "GET"
        pairs = [_field(line) for line in lines]
        fields = tuple((name.decode(), value.decode("latin-1")) for name, value in filter(None, pairs))
    return Request(url.href, url.host, url.port, address, fields, method)


def _clean(head: bytes) -> tuple[bytes, dict[str, str]]:
    """The header block with nothing but its status line and its fields; and the fields by lower-case name."""
    first, *lines = _LINES.split(head)
    pairs = [pair for line in lines if (pair := _field(line))]
    fields: dict[str, str] = {}
    for name, value in pairs:
        key, text = name.decode().lower(), value.decode("latin-1")
        fields[key] = f"{fields[key]}, {text}" if key in fields else text
    if not first:
        return b"", fields
    return b"\r\n".join([first, *(b"%b: %b" % pair for pair in pairs), b"", b""]), fields


def _field(line: bytes) -> tuple[bytes, bytes] | None:
    found = _FIELD.fullmatch(_FOLD.sub(b" ", line))
    return (found[1], found[2]) if found else None


def _resource_head(record: WarcRecord) -> bytes:
    """The header block that the record of a resource stands for."""
    kind = record.header("Content-Type") or "application/octet-stream"
    clean = "".join(character for character in kind if character.isprintable()).encode("latin-1", "replace")
    return b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nContent-Length: %d\r\n\r\n" % (clean, len(record.block))


def _truncation(named: str | None) -> Truncation | None:
    if not named:
        return None
    known = {Truncation.TIME: Truncation.TIME, Truncation.DISCONNECT: Truncation.DISCONNECT}
    return known.get(named.strip().lower(), Truncation.LENGTH)  # type: ignore[call-overload,no-any-return]


def _address(named: str) -> str:
    return named.strip() if len(named) < 64 and named.isprintable() else ""
