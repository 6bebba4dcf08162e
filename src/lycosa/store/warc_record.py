"""Builds WARC 1.1 records, each as one gzip member ready to append.

Invariants: nothing from outside can add a line to a record's header; a response or revisit names the digest of its
payload, which is the body with its transfer coding undone and its content coding kept. Answers of up to a kilobyte
(redirects, errors, revisits), texts and warcinfo name the digest of their block, too. For pages that would be the body
digested twice, 3 % of the CPU time of a crawl, for requests and metadata 2 % of the archive: gzip's checksum has to do.
A body is stored with its transfer coding undone, and sometimes cut short. A header that still says otherwise would
make readers decode twice or wait for bytes that never come, so it is renamed, not dropped: what the server said
stays readable. Everything else is kept byte for byte.
Pure but for random ids. Called by whoever commits pages; the members go to `WarcWriter.append` in the order given.
The records of a fetch are made by the native kernel where it is installed, byte for byte as they are made here.
"""

import os
import re
from base64 import b32encode
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache, lru_cache
from math import modf
from typing import Any, ClassVar, NamedTuple
from urllib.parse import quote

import msgspec
from isal import ISAL_MAJOR_VERSION, isal_zlib

from lycosa.errors import StoreError
from lycosa.records import Request, Response
from lycosa.store.warc_read import RENDERED_FIELD, WarcLocation, WarcRecord, parse_head
from lycosa.web import native
from lycosa.web import payload_sha1 as sha1_of

# The prefix archives use for headers they had to put aside.
ASIDE = b"X-Archive-Orig-"

_WELL_FORMED = re.compile(rb"HTTP/1\.[01] (?:[^\r\n]+\r\n)+\r\n")
_HTTP_1 = re.compile(rb"HTTP/1\.[01] ")
_HTTP_VERSION = re.compile(rb"HTTP/(?!1\.[01] )[0-9.]+ +")
# Also where a line begins with a space: some readers take it for a header all the same.
_FRAMING = re.compile(rb"^([ \t]*)((transfer-encoding|content-length)[ \t]*:([^\r\n]*))", re.I | re.M)
_LINE_ENDS = re.compile(rb"[\r\n]+")
_BLOCK_DIGEST = re.compile(rb"WARC-Block-Digest: [^\r]*\r\n")


def header_block(block: bytes, status: int, body_bytes: int | None) -> bytes:
    """The block as readers need it to find the body, which has `body_bytes` bytes and no transfer coding (None: the
    block may say of it what it likes)."""
    block = _well_formed(block, status)
    length = b"%d" % (body_bytes or 0)
    framing = _FRAMING.findall(block) if body_bytes is not None else []
    is_wrong = [name.lower() == b"transfer-encoding" or value.strip() != length for _, _, name, value in framing]
    if not any(is_wrong):
        return block
    verdicts = iter(is_wrong)
    block = _FRAMING.sub(lambda found: found[1] + (ASIDE if next(verdicts) else b"") + found[2], block)
    return block[:-2] + b"Content-Length: " + length + b"\r\n\r\n" if all(is_wrong) else block


def _well_formed(block: bytes, status: int) -> bytes:
    """An HTTP/1 status line, CRLF line ends, one empty line at the end; what has all that is kept as it is."""
    if _WELL_FORMED.fullmatch(block):
        return block
    lines = [line for line in _LINE_ENDS.split(block) if line.strip()]
    first = lines[0] if lines else b""
    if version := _HTTP_VERSION.match(first):
        # Binary versions have no status line of their own; readers know the two textual ones.
        lines[0] = b"HTTP/1.1 " + first[version.end() :]
    elif not _HTTP_1.match(first):
        lines[:1] = [b"HTTP/1.1 %d " % status, *([ASIDE + b"Status: " + first] if first else [])]
    return b"\r\n".join(lines) + b"\r\n\r\n"


# Both levels and the limit are also in native/src/gzip.rs.
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
_CONCURRENT = b"WARC-Concurrent-To: <urn:uuid:%b>\r\n"
_REFERS = b"WARC-Profile: %b\r\nWARC-Refers-To-Target-URI: %b\r\nWARC-Refers-To-Date: %b\r\n"

# Fields of our own in a revisit of the profile `PATCHED`: where the whole document is (file, offset, length), and how
# long the record of its table is, which ends where the revisit begins.
_OF_BODY = frozenset((b"content-type", b"content-encoding", b"content-length", b"transfer-encoding"))
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


class Fetched(NamedTuple):
    """A fetch whose records are to be made; `fetched_s` is Unix time. `payload_sha1` is that of the response's body,
    from whoever has it already; empty: the kernel puts it in. A request without a method is not known: the metadata
    stands in its place."""

    request: Request
    response: Response
    fetched_s: float
    metadata: Mapping[str, str] = {}
    payload_sha1: bytes | None = None


def response_parts(fetch: Fetched) -> "ExchangeParts":
    """What the records of one fetch are made of."""
    body, truncated = fetch.response.body, fetch.response.truncated
    after = b"" if truncated is None else b"WARC-Truncated: " + truncated.encode() + b"\r\n"
    return _parts(fetch, b"response", after=after, body_bytes=len(body), body=body)


def response_exchange(
    request: Request,
    response: Response,
    *,
    fetched_s: float,
    metadata: Mapping[str, str] | None = None,
    payload_sha1: bytes | None = None,
) -> HttpExchange:
    """Request, response and metadata records of one fetch."""
    fetch = Fetched(request, response, fetched_s, metadata or {}, payload_sha1)
    return _exchange(fetch, response_parts(fetch))


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
    # A 304 names the length of a body that was not sent.
    body_bytes = None if profile is RevisitProfile.NOT_MODIFIED else len(response.body)
    refers = _REFERS % (profile.encode(), _uri(original.url), _date(original.fetched_s))
    fetch = Fetched(request, response, fetched_s, metadata or {}, original.payload_sha1)
    return _exchange(fetch, _parts(fetch, b"revisit", before=refers, body_bytes=body_bytes, body=b""))


def patched_exchange(response: Response, *, fetched_s: float, metadata: Mapping[str, str]) -> HttpExchange:
    """The records of a response that was put together here; in place of a request stands a record that says how."""
    digest, date, (metadata_id, response_id, _) = sha1_of(response.body), _date(fetched_s), _record_ids(os.urandom(16))
    about = b"WARC-Target-URI: " + _uri(response.url) + b"\r\n"
    block = header_block(response.header_block, response.status, len(response.body)), response.body
    members = [
        _member(b"metadata", metadata_id, date, about + _CONCURRENT % response_id, _FIELDS, (_fields(metadata),)),
        _member(b"response", response_id, date, about + _digest_line(digest), _HTTP_RESPONSE, block),
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
    request_member, table_member = response_exchange(request, answer, fetched_s=fetched_s).members
    digest, date, (revisit_id, metadata_id, _) = sha1_of(document.body), _date(fetched_s), _record_ids(os.urandom(16))
    about = b"WARC-Target-URI: " + _uri(document.url) + b"\r\n"
    refers = _REFERS % (RevisitProfile.PATCHED.encode(), _uri(whole.url), _clean(whole.date))
    lies = (WHOLE_FIELD.encode(), whole.place.file_number, whole.place.offset, whole.place.length)
    places = b"%b: %d %d %d\r\n%b: %d\r\n" % (*lies, TABLE_FIELD.encode(), len(table_member))
    extra = about + refers + _digest_line(digest) + places
    head = header_block(document.header_block, document.status, len(document.body))
    members = [
        table_member,
        _member(b"revisit", revisit_id, date, extra, _HTTP_RESPONSE, (head,)),
        request_member,
        _member(b"metadata", metadata_id, date, about + _CONCURRENT % revisit_id, _FIELDS, (_fields(metadata),)),
    ]
    return HttpExchange(members, digest, fetched_s)


def patch_locations(record: WarcRecord, place: WarcLocation) -> tuple[WarcLocation, WarcLocation] | None:
    """For a revisit of `patch_on_read_exchange` at `place`: where the whole document is, and where its table."""
    whole, table = record.header(WHOLE_FIELD) or "", record.header(TABLE_FIELD) or ""
    numbers = [int(word) for word in (*whole.split(), table) if word.isascii() and word.isdecimal()]
    if record.header("WARC-Profile") != RevisitProfile.PATCHED or len(numbers) != 4 or numbers[3] > place.offset:
        return None
    return WarcLocation(*numbers[:3]), WarcLocation(place.file_number, place.offset - numbers[3], numbers[3])


def rendered_exchange(fetch: Fetched, document: bytes) -> HttpExchange:
    """The records of a page that a browser has rendered: what it made of the response, in UTF-8, is a conversion before
    the response, which says how long its member is."""
    parts = response_parts(fetch)
    _, response_id, _ = _record_ids(parts[2][5])
    member = conversion(
        fetch.request.url,
        document,
        fetched_s=fetch.fetched_s,
        refers_to=f"<urn:uuid:{response_id.decode()}>",
        content_type=b"text/html; charset=utf-8",
    )
    after = parts[2][3] + b"%b: %d\r\n" % (RENDERED_FIELD.encode(), len(member))
    made = _exchange(fetch, (*parts[:2], (*parts[2][:3], after, *parts[2][4:])))
    request, response, *metadata = made.members
    return HttpExchange([member, response, request, *metadata], made.payload_sha1, made.fetched_s)


def rendered_message(
    record: WarcRecord, place: WarcLocation, read: Callable[[WarcLocation], WarcRecord]
) -> tuple[bytes, bytes] | None:
    """For a response at `place` that a browser has rendered: its header block, but for what is said of the body, and
    the document that the browser made. None for all others, and where the two were parted."""
    said = record.header(RENDERED_FIELD) or ""
    size = int(said) if said.isascii() and said.isdecimal() and len(said) < 12 else 0
    if not 0 < size <= place.offset:
        return None
    try:
        found = read(WarcLocation(place.file_number, place.offset - size, size))
    except StoreError:
        return None
    if found.type != "conversion" or found.header("WARC-Refers-To") != record.header("WARC-Record-ID"):
        return None
    lines = record.http()[0].rstrip(b"\r\n").split(b"\r\n")
    kept = [line for line in lines if line.partition(b":")[0].strip().lower() not in _OF_BODY]
    return b"\r\n".join([*kept, b"Content-Type: text/html; charset=utf-8", b"", b""]), found.block


def warcinfo(fields: Mapping[str, str], *, filename: str, created_s: float) -> bytes:
    """The record that a WARC file opens with: who wrote it, with what settings."""
    block = _fields(fields)
    extra = b"WARC-Filename: " + _clean(filename) + b"\r\n" + _block_digest_line(block)
    return _member(b"warcinfo", _record_ids(os.urandom(16))[0], _date(created_s), extra, _FIELDS, (block,))


def conversion(
    url: str,
    text: bytes,
    *,
    fetched_s: float,
    refers_to: str,
    language: str = "",
    content_type: bytes = b"text/plain",
) -> bytes:
    """The record of the text that was made of the record `refers_to`; `language` is of ISO 639-3."""
    lines = [b"WARC-Target-URI: " + _uri(url), b"WARC-Refers-To: " + _clean(refers_to)]
    if language:
        lines.append(b"WARC-Identified-Content-Language: " + _clean(language))
    extra = b"\r\n".join([*lines, _block_digest_line(text)])
    return _member(b"conversion", _record_ids(os.urandom(16))[0], _date(fetched_s), extra, content_type, (text,))


# What `MemberWriter.exchanges` takes, and `_members`: URL, method, header lines, whether these name the host, address;
# header block, status, the length of the body that the block must name (None: whatever it says), the body that is kept;
# type, lines before the payload digest, that digest, lines behind it, date, random bytes for the ids, metadata.
ExchangeParts = tuple[
    tuple[str, str, bytes, bool, str],
    tuple[bytes, int, int | None, bytes],
    tuple[bytes, bytes, bytes, bytes, bytes, bytes, bytes],
]


def _parts(
    fetch: Fetched, kind: bytes, *, before: bytes = b"", after: bytes = b"", body_bytes: int | None, body: bytes
) -> ExchangeParts:
    request, response, fetched_s, metadata, digest = fetch
    digest = sha1_of(body) if digest is None else digest
    return (
        (request.url, request.method, *_request_lines(request.headers), response.address),
        (response.header_block, response.status, body_bytes, body),
        (
            kind,
            before,
            sha1_of(body) if digest is None else digest,
            after,
            _date(fetched_s),
            os.urandom(16),
            _fields(metadata),
        ),
    )


def _exchange(fetch: Fetched, parts: ExchangeParts) -> HttpExchange:
    """The records of a fetch: by the native kernel, unless it has a string that the kernel does not take."""
    writer = member_writer()
    records = (writer and writer.exchange(parts)) or _members(*parts)
    if not fetch.request.method and len(records) > HttpExchange.RESPONSE + 1:
        records = [records[-1], records[HttpExchange.RESPONSE]]
    return HttpExchange(records, parts[2][2], fetch.fetched_s)


def members_of(parts: ExchangeParts, payload_sha1: bytes) -> list[bytes]:
    """The records of one fetch, by its parts, with the digest of its body put in."""
    asked, answer, (kind, before, _, after, date, random, fields) = parts
    return _members(asked, answer, (kind, before, payload_sha1, after, date, random, fields))


@cache
def member_writer() -> Any:
    """What makes members natively, with the very compressor that is used here; None where there is no kernel, or none
    of the ISA-L that it knows how to call."""
    kernel = native()
    if kernel is None or ISAL_MAJOR_VERSION != kernel.ISAL_MAJOR_VERSION:
        return None
    try:
        return kernel.MemberWriter(isal_zlib.__file__)
    except OSError:
        return None


def _members(
    asked: tuple[str, str, bytes, bool, str],
    answer: tuple[bytes, int, int | None, bytes],
    record: tuple[bytes, bytes, bytes, bytes, bytes, bytes, bytes],
) -> list[bytes]:
    """Request, response (or revisit) and metadata; the first and the last name the response as concurrent."""
    url, method, lines, names_host, address = asked
    block, status, body_bytes, body = answer
    kind, before, payload_sha1, after, date, random, fields = record
    request_id, response_id, metadata_id = _record_ids(random)
    about = b"WARC-Target-URI: " + _uri(url) + b"\r\n"
    if version := _BINARY_HTTP.match(block):
        about += b"WARC-Protocol: h" + version[1] + b"\r\n"
    if address:
        about += b"WARC-IP-Address: " + _clean(address) + b"\r\n"
    concurrent, own = about + _CONCURRENT % response_id, about + before + _digest_line(payload_sha1) + after
    head, request = header_block(block, status, body_bytes), _request_block(url, method, lines, names_host)
    if len(head) + len(body) <= _SMALL_BYTES:
        own += _block_digest_line(head + body)
    members = [
        _member(b"request", request_id, date, concurrent, _HTTP_REQUEST, (request,)),
        _member(kind, response_id, date, own, _HTTP_RESPONSE, (head, body)),
    ]
    if fields:
        members.append(_member(b"metadata", metadata_id, date, concurrent, _FIELDS, (fields,)))
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


def record_bytes(record: WarcRecord) -> bytes:
    """A record as it is written, before it is compressed."""
    fields = "".join(f"{name}: {value}\r\n" for name, value in record.headers)
    return b"WARC/1.1\r\n" + fields.encode() + b"\r\n" + record.block + b"\r\n\r\n"


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
    head = _BLOCK_DIGEST.sub(_block_digest_line(block), head)
    fields, _, content_type = head.replace(b"WARC-Type: response", b"WARC-Type: revisit", 1).rpartition(
        b"Content-Type: "
    )
    kind = content_type.partition(b"\r\n")[0]
    refers = b"WARC-Profile: %b\r\nWARC-Refers-To-Target-URI: %b\r\n"
    extra = refers % (RevisitProfile.SAME_PAYLOAD.encode(), _uri(original))
    return b"%b%bContent-Type: %b\r\nContent-Length: %d\r\n\r\n%b\r\n\r\n" % (fields, extra, kind, len(block), block)


def _request_block(url: str, method: str, lines: bytes, names_host: bool) -> bytes:
    """The request as it was sent, rebuilt from what was set; a normalised URL always has a path."""
    authority, _, path = url.partition("#")[0].partition("://")[2].partition("/")
    host = b"" if names_host else b"Host: " + _clean(authority.rpartition("@")[2]) + b"\r\n"
    return b"%b /%b HTTP/1.1\r\n%b%b\r\n" % (_clean(method), _uri(path), host, lines)


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


def _block_digest_line(block: bytes) -> bytes:
    return b"WARC-Block-Digest: sha1:" + b32encode(sha1_of(block)) + b"\r\n"


def _digest_line(payload_sha1: bytes) -> bytes:
    return b"WARC-Payload-Digest: sha1:" + b32encode(payload_sha1) + b"\r\n"


def _date(unix_s: float) -> bytes:
    """UTC with microseconds, as WARC 1.1 allows."""
    fraction, second = modf(unix_s)
    carry, microsecond = divmod(round(fraction * 1e6), 1_000_000)
    return b"%b.%06dZ" % (_second(int(second) + carry), microsecond)


@lru_cache(64)
def _second(unix_s: int) -> bytes:
    """The date of all records of a second, up to its fraction."""
    return datetime.fromtimestamp(unix_s, UTC).isoformat()[:19].encode()


def _record_ids(random: bytes) -> tuple[bytes, bytes, bytes]:
    """Version 4 UUIDs for the records of one fetch: 118 bits of `random` that they share, and a last digit each."""
    digits = random.hex()
    variant = "89ab"[int(digits[16], 16) & 3]
    shared = f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:31]}".encode()
    return shared + b"0", shared + b"1", shared + b"2"
