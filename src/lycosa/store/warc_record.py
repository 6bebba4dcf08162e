"""Builds WARC 1.1 records, each as one gzip member ready to append.

Invariants: nothing from outside can add a line to a record's header; a response or revisit names the digest of its
payload, which is the body with its transfer coding undone and its content coding kept. The rest of a record (some
lines, in a request all of it) is covered by gzip's checksum alone: a digest of each would be work for every page.
A body is stored with its transfer coding undone, and sometimes cut short. A header that still says otherwise would
make readers decode twice or wait for bytes that never come, so it is renamed, not dropped: what the server said
stays readable. Everything else is kept byte for byte.
Pure but for random ids. Called by whoever commits pages; the members go to `WarcWriter.append` in the order given.
"""

import os
import re
from base64 import b32encode
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from hashlib import sha1
from math import modf
from typing import ClassVar
from urllib.parse import quote

import msgspec
from isal import isal_zlib

from lycosa.records import Request, Response
from lycosa.store.warc_read import WarcLocation, WarcRecord, parse_head

# The prefix archives use for headers they had to put aside.
ASIDE = b"X-Archive-Orig-"

_HTTP_1 = re.compile(rb"HTTP/1\.[01] ")
_HTTP_VERSION = re.compile(rb"HTTP/(?!1\.[01] )[0-9.]+ +")
# Also where a line begins with a space: some readers take it for a header all the same.
_FRAMING = re.compile(rb"^([ \t]*)((transfer-encoding|content-length)[ \t]*:([^\r\n]*))", re.I | re.M)
_LINE_ENDS = re.compile(rb"[\r\n]+")


def well_formed_header_block(block: bytes, *, status: int) -> bytes:
    """The block as readers need it to find the body: HTTP/1 status line, CRLF line ends, one empty line at its end."""
    if _is_well_formed(block):
        return block
    lines = [line for line in _LINE_ENDS.split(block) if line.strip()]
    first = lines[0] if lines else b""
    if version := _HTTP_VERSION.match(first):
        # Binary versions have no status line of their own; readers know the two textual ones.
        lines[0] = b"HTTP/1.1 " + first[version.end() :]
    elif not _HTTP_1.match(first):
        lines[:1] = [b"HTTP/1.1 %d " % status, *([ASIDE + b"Status: " + first] if first else [])]
    return b"\r\n".join(lines) + b"\r\n\r\n"


def _is_well_formed(block: bytes) -> bool:
    """A status line and headers, no empty line inside, and one at the end: what nearly every server sends."""
    lines = block.count(b"\r\n")
    return (
        block.startswith((b"HTTP/1.1 ", b"HTTP/1.0 "))
        and block[9:10] != b"\r"
        and block.find(b"\r\n\r\n") == len(block) - 4
        and block.count(b"\r") == lines == block.count(b"\n")
    )


def header_block_for_body(block: bytes, *, status: int, body_bytes: int) -> bytes:
    """The well-formed block as it must read before `body_bytes` bytes of body without transfer coding."""
    block = well_formed_header_block(block, status=status)
    length = b"%d" % body_bytes
    lower = block.lower()
    is_said = b"\r\ncontent-length: %b\r\n" % length in lower and lower.count(b"content-length") == 1
    if is_said and b"transfer-encoding" not in lower:
        return block  # as nearly every server has it
    framing = _FRAMING.findall(block)
    is_wrong = [name.lower() == b"transfer-encoding" or value.strip() != length for _, _, name, value in framing]
    if not any(is_wrong):
        return block
    verdicts = iter(is_wrong)
    block = _FRAMING.sub(lambda found: found[1] + (ASIDE if next(verdicts) else b"") + found[2], block)
    if all(is_wrong):
        block = block[:-2] + b"Content-Length: " + length + b"\r\n\r\n"
    return block


# Measured on a 26 KB page: level 1 takes 35 µs (ratio 3.44), 2 38 µs (3.47), 3 72 µs (3.53), zlib 6 244 µs (3.76).
_GZIP_LEVEL = 2
# For small records (requests, metadata) it would take longer to get ready than to compress: 1.4 against 6.7 µs at level
# 0, for 579 bytes in place of 433 of a request.
_SMALL_LEVEL, _SMALL_BYTES = 0, 1024
_GZIP_MEMBER = 31  # zlib's way to ask for a gzip header and trailer around a 32 KB window

_HEAD = (
    b"WARC/1.1\r\nWARC-Type: %b\r\nWARC-Record-ID: <urn:uuid:%b>\r\nWARC-Date: %b\r\n%b"
    b"Content-Type: %b\r\nContent-Length: %d\r\n\r\n"
)
_HTTP_RESPONSE = b"application/http; msgtype=response"
_HTTP_REQUEST = b"application/http; msgtype=request"
_FIELDS = b"application/warc-fields"

# Fields of our own in a revisit of the profile `PATCHED`: where the whole document is (file, offset, length), and how
# long the record of its table is, which ends where the revisit begins.
WHOLE_FIELD, TABLE_FIELD = "Lycosa-Whole", "Lycosa-Table-Bytes"

# What a URI may show as it is; anything else is percent-encoded, angle brackets too because readers strip them.
_URI_SAFE = "!\"#$%&'()*+,-./:;=?@[\\]^_`{|}~"
_UNSAFE_IN_URI = re.compile(r"[^!-;=?-~]")


# Its status line is stored as that of HTTP/1.1, so the protocol is named beside it.
_BINARY_HTTP = re.compile(rb"HTTP/([23])(?:\.0)? ")


class RevisitProfile(StrEnum):
    """Why a body is not stored again."""

    SAME_PAYLOAD = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
    NOT_MODIFIED = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
    # Our own: other bytes, but only in parts that change on every visit. The payload digest is the original's.
    SAME_CONTENT = "urn:lycosa:revisit:same-content"
    # Our own: the body is made from the record that is referred to and the table before this one, whenever it is read.
    PATCHED = "urn:lycosa:revisit:patched-by-table"


class OriginalRecord(msgspec.Struct, frozen=True):
    """The record that a revisit refers to: its URL, its `fetched_s`, and its payload digest."""

    url: str
    fetched_s: float
    payload_sha1: bytes


class PatchBase(msgspec.Struct, frozen=True):
    """The record of a document that a table can be patched into: where it lies, its URL, and its date as written."""

    place: WarcLocation
    url: str
    date: str


class HttpExchange(msgspec.Struct, frozen=True):
    """The records of one fetch, ready to append: request, then response or revisit, then metadata if there is any."""

    members: list[bytes]
    payload_sha1: bytes
    fetched_s: float  # what their WARC-Date says, for whoever refers to them later

    # Where the response or revisit stands in `members`, and so in the places that `append` returns.
    RESPONSE: ClassVar[int] = 1


def response_exchange(
    request: Request,
    response: Response,
    *,
    fetched_s: float,
    metadata: Mapping[str, str] | None = None,
    payload_sha1: bytes | None = None,
) -> HttpExchange:
    """Request, response and metadata records of one fetch; `fetched_s` is Unix time.

    `payload_sha1` is that of the response's body, from whoever has it already.
    """
    digest = payload_sha1 or sha1(response.body, usedforsecurity=False).digest()
    head = header_block_for_body(response.header_block, status=response.status, body_bytes=len(response.body))
    extra = b"WARC-Payload-Digest: sha1:" + b32encode(digest) + b"\r\n"
    if response.truncated is not None:
        extra += b"WARC-Truncated: " + response.truncated.encode() + b"\r\n"
    block = (head, response.body)
    members = _linked(request, response, b"response", block, extra, fetched_s=fetched_s, metadata=metadata or {})
    return HttpExchange(members, digest, fetched_s)


def revisit_exchange(
    request: Request,
    response: Response,
    *,
    fetched_s: float,
    original: OriginalRecord,
    profile: RevisitProfile,
    metadata: Mapping[str, str] | None = None,
) -> HttpExchange:
    """The records of a fetch whose body is already stored: the revisit keeps the headers and refers to the original."""
    if profile is not RevisitProfile.NOT_MODIFIED:
        block = header_block_for_body(response.header_block, status=response.status, body_bytes=len(response.body))
    else:
        block = well_formed_header_block(response.header_block, status=response.status)
    extra = (
        b"WARC-Profile: %b\r\nWARC-Refers-To-Target-URI: %b\r\nWARC-Refers-To-Date: %b\r\n"
        b"WARC-Payload-Digest: sha1:%b\r\n"
    ) % (profile.encode(), _uri(original.url), _date(original.fetched_s), b32encode(original.payload_sha1))
    members = _linked(request, response, b"revisit", (block,), extra, fetched_s=fetched_s, metadata=metadata or {})
    return HttpExchange(members, original.payload_sha1, fetched_s)


def patched_exchange(response: Response, *, fetched_s: float, metadata: Mapping[str, str]) -> HttpExchange:
    """The records of a response that was put together here; in place of a request stands a record that says how."""
    digest = sha1(response.body, usedforsecurity=False).digest()
    head = header_block_for_body(response.header_block, status=response.status, body_bytes=len(response.body))
    date, (metadata_id, response_id, _) = _date(fetched_s), _record_ids()
    about = b"WARC-Target-URI: " + _uri(response.url) + b"\r\n"
    concurrent = about + b"WARC-Concurrent-To: <urn:uuid:" + response_id + b">\r\n"
    extra = about + b"WARC-Payload-Digest: sha1:" + b32encode(digest) + b"\r\n"
    members = [
        _member(b"metadata", metadata_id, date, concurrent, _FIELDS, (_fields(metadata),)),
        _member(b"response", response_id, date, extra, _HTTP_RESPONSE, (head, response.body)),
    ]
    return HttpExchange(members, digest, fetched_s)


def patch_on_read_exchange(
    request: Request,
    answer: Response,
    document: Response,
    *,
    whole: PatchBase,
    fetched_s: float,
    metadata: Mapping[str, str],
) -> HttpExchange:
    """The records of a document that is put together whenever it is read: the response that is its table, and behind it
    a revisit that names the record it is patched into. The revisit's head is the document's, its digest that of the
    patched whole."""
    asked = response_exchange(request, answer, fetched_s=fetched_s)
    digest = sha1(document.body, usedforsecurity=False).digest()
    head = header_block_for_body(document.header_block, status=document.status, body_bytes=len(document.body))
    date, (revisit_id, metadata_id, _) = _date(fetched_s), _record_ids()
    about = b"WARC-Target-URI: " + _uri(document.url) + b"\r\n"
    request_member, table_member = asked.members
    extra = (
        b"WARC-Profile: %b\r\nWARC-Refers-To-Target-URI: %b\r\nWARC-Refers-To-Date: %b\r\n"
        b"WARC-Payload-Digest: sha1:%b\r\n%b: %d %d %d\r\n%b: %d\r\n"
    ) % (
        RevisitProfile.PATCHED.encode(),
        _uri(whole.url),
        _clean(whole.date),
        b32encode(digest),
        WHOLE_FIELD.encode(),
        whole.place.file_number,
        whole.place.offset,
        whole.place.length,
        TABLE_FIELD.encode(),
        len(table_member),
    )
    concurrent = about + b"WARC-Concurrent-To: <urn:uuid:" + revisit_id + b">\r\n"
    members = [
        table_member,
        _member(b"revisit", revisit_id, date, about + extra, _HTTP_RESPONSE, (head,)),
        request_member,
        _member(b"metadata", metadata_id, date, concurrent, _FIELDS, (_fields(metadata),)),
    ]
    return HttpExchange(members, digest, fetched_s)


def patch_locations(record: WarcRecord, place: WarcLocation) -> tuple[WarcLocation, WarcLocation] | None:
    """For a revisit of `patch_on_read_exchange` at `place`: where the whole document is, and where its table."""
    whole, table = record.header(WHOLE_FIELD) or "", record.header(TABLE_FIELD) or ""
    numbers = [int(word) for word in (*whole.split(), table) if word.isascii() and word.isdecimal()]
    if record.header("WARC-Profile") != RevisitProfile.PATCHED or len(numbers) != 4 or numbers[3] > place.offset:
        return None
    return WarcLocation(*numbers[:3]), WarcLocation(place.file_number, place.offset - numbers[3], numbers[3])


def warcinfo(fields: Mapping[str, str], *, filename: str, created_s: float) -> bytes:
    """The record that a WARC file opens with: who wrote it, with what settings."""
    extra = b"WARC-Filename: " + _clean(filename) + b"\r\n"
    return _member(b"warcinfo", _record_ids()[0], _date(created_s), extra, _FIELDS, (_fields(fields),))


def _linked(
    request: Request,
    response: Response,
    kind: bytes,
    block: tuple[bytes, ...],
    extra: bytes,
    *,
    fetched_s: float,
    metadata: Mapping[str, str],
) -> list[bytes]:
    """Request, response (or revisit) and metadata; the first and the last name the response as concurrent."""
    date = _date(fetched_s)
    request_id, response_id, metadata_id = _record_ids()
    about = b"WARC-Target-URI: " + _uri(request.url) + b"\r\n"
    if version := _BINARY_HTTP.match(response.header_block):
        about += b"WARC-Protocol: h" + version[1] + b"\r\n"
    if response.address:
        about += b"WARC-IP-Address: " + _clean(response.address) + b"\r\n"
    concurrent = about + b"WARC-Concurrent-To: <urn:uuid:" + response_id + b">\r\n"
    members = [
        _member(b"request", request_id, date, concurrent, _HTTP_REQUEST, (_request_block(request),)),
        _member(kind, response_id, date, about + extra, _HTTP_RESPONSE, block),
    ]
    if metadata:
        members.append(_member(b"metadata", metadata_id, date, concurrent, _FIELDS, (_fields(metadata),)))
    return members


def _member(
    kind: bytes, record_id: bytes, date: bytes, extra: bytes, content_type: bytes, block: tuple[bytes, ...]
) -> bytes:
    """One record. The block comes in pieces, so that a body is copied once: into the record."""
    size = sum(map(len, block))
    head = _HEAD % (kind, record_id, date, extra, content_type, size)
    return _gzipped(b"".join((head, *block, b"\r\n\r\n")), size)


def _gzipped(record: bytes, block_bytes: int) -> bytes:
    level = _GZIP_LEVEL if block_bytes > _SMALL_BYTES else _SMALL_LEVEL
    member: bytes = isal_zlib.compress(record, level, _GZIP_MEMBER)
    return member


def recompress_record(record: bytes) -> bytes:
    """The gzip member of a record of ours: the same bytes again, by the same version of isal."""
    found = parse_head(record)
    return _gzipped(record, found[3] if found else len(record))


def revisit_of_record(record: bytes, original: str) -> bytes:
    """The revisit that stands for a response of ours whose payload is stored under the URL `original`."""
    found = parse_head(record)
    assert found is not None
    head, block = record[: found[2]], record[found[2] : found[2] + found[3]]
    block = block[: block.index(b"\r\n\r\n") + 4]
    fields, _, content_type = head.replace(b"WARC-Type: response", b"WARC-Type: revisit", 1).rpartition(
        b"Content-Type: "
    )
    kind = content_type.partition(b"\r\n")[0]
    refers = b"WARC-Profile: %b\r\nWARC-Refers-To-Target-URI: %b\r\n"
    extra = refers % (RevisitProfile.SAME_PAYLOAD.encode(), _uri(original))
    return b"%b%bContent-Type: %b\r\nContent-Length: %d\r\n\r\n%b\r\n\r\n" % (fields, extra, kind, len(block), block)


def _request_block(request: Request) -> bytes:
    """The request as it was sent, rebuilt from what was set; a normalised URL always has a path."""
    authority, _, path = request.url.partition("#")[0].partition("://")[2].partition("/")
    lines, names_host = _request_lines(request.headers)
    host = b"" if names_host else b"Host: " + _clean(authority.rpartition("@")[2]) + b"\r\n"
    return b"%b /%b HTTP/1.1\r\n%b%b\r\n" % (_clean(request.method), _uri(path), host, lines)


@lru_cache(64)
def _request_lines(headers: tuple[tuple[str, str], ...]) -> tuple[bytes, bool]:
    """The header lines, the same for nearly all requests of a crawl, and whether they name the host."""
    lines = b"".join(_clean(name) + b": " + _clean(value) + b"\r\n" for name, value in headers)
    return lines, any(name.lower() == "host" for name, _ in headers)


def _fields(fields: Mapping[str, str]) -> bytes:
    return b"".join(_clean(name) + b": " + _clean(value) + b"\r\n" for name, value in fields.items())


def _clean(value: str) -> bytes:
    """The value as one line of text: control characters, line ends and lone surrogates become spaces."""
    if not value.isprintable():
        value = "".join(character if character.isprintable() else " " for character in value)
    return value.encode()


def _uri(url: str) -> bytes:
    if _UNSAFE_IN_URI.search(url):
        url = quote(url, safe=_URI_SAFE, errors="replace")
    return url.encode()


def _date(unix_s: float) -> bytes:
    """UTC with microseconds, as WARC 1.1 allows."""
    fraction, second = modf(unix_s)
    carry, microsecond = divmod(round(fraction * 1e6), 1_000_000)
    return b"%b.%06dZ" % (_second(int(second) + carry), microsecond)


@lru_cache(64)
def _second(unix_s: int) -> bytes:
    """The date of all records of a second, up to its fraction."""
    return datetime.fromtimestamp(unix_s, UTC).isoformat()[:19].encode()


def _record_ids() -> tuple[bytes, bytes, bytes]:
    """Random (version 4) UUIDs for the records of one fetch: 118 random bits that they share, and a last digit each."""
    digits = os.urandom(16).hex()
    variant = "89ab"[int(digits[16], 16) & 3]
    shared = f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:31]}".encode()
    return shared + b"0", shared + b"1", shared + b"2"
