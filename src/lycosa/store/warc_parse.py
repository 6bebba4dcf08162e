"""What a WARC record says, taken from its bytes: header fields, target, HTTP message, digests.

Pure: no files, no clock. `lycosa.store.warc_read` finds the bytes; readers of records use `WarcRecord`.
"""

import hashlib
import re
from base64 import b32encode, b64encode, urlsafe_b64encode
from collections.abc import Callable

import msgspec

Headers = tuple[tuple[str, str], ...]

_HEAD_END = re.compile(rb"\r?\n\r?\n")
_FOLD = re.compile(r"\r?\n[ \t]+")
_CHUNKED = re.compile(rb"^transfer-encoding[ \t]*:[^\r\n]*chunked", re.I | re.M)
_CHUNK_SIZE = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,15})[^\r\n]*\r?\n")
_DIGESTS: dict[str, Callable[..., "hashlib._Hash"]] = {
    "sha1": hashlib.sha1,
    "sha256": hashlib.sha256,
    "md5": hashlib.md5,
}


class WarcRecord(msgspec.Struct, frozen=True):
    """One record; `offset` and `length` say where it lies in its file."""

    type: str
    headers: Headers
    block: bytes
    offset: int
    length: int

    def header(self, name: str) -> str | None:
        """The first field of this name, in any case of letters."""
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)

    @property
    def url(self) -> str | None:
        """The target, without the angle brackets and with the spaces encoded that some tools write."""
        target = self.header("WARC-Target-URI")
        return None if target is None else target.removeprefix("<").removesuffix(">").replace(" ", "%20")

    def http(self) -> tuple[bytes, bytes]:
        """Header block and body of the HTTP message, a chunked body put together; content coding is kept."""
        head, body = self._http_as_stored()
        return head, unchunk(body) if _CHUNKED.search(head) else body

    def _http_as_stored(self) -> tuple[bytes, bytes]:
        found = _HEAD_END.search(self.block)
        end = found.end() if found else len(self.block)
        return self.block[:end], self.block[end:]

    def block_digest_agrees(self) -> bool | None:
        """None when the record names no digest, or one of a kind unknown here."""
        return _agrees(self.header("WARC-Block-Digest"), self.block)

    def payload_digest_agrees(self) -> bool | None:
        """As above. A revisit names the digest of a body that is elsewhere: None."""
        named = self.header("WARC-Payload-Digest")
        if self.type == "revisit":
            return None
        if not (self.header("Content-Type") or "").startswith("application/http"):
            return _agrees(named, self.block)
        # Writers differ on whether a chunked body is digested with its chunk sizes.
        return _agrees(named, self.http()[1]) or _agrees(named, self._http_as_stored()[1])


def parse_head(data: bytes) -> tuple[str, Headers, int, int] | None:
    """(type, fields, bytes of the header, bytes of the block), or None when no record begins here."""
    end = _HEAD_END.search(data)
    if not data.startswith(b"WARC/") or end is None:
        return None
    text = _FOLD.sub(" ", data[: end.start()].decode("utf-8", "replace"))
    fields = (line.partition(":") for line in text.split("\n")[1:])
    headers = tuple((name.strip(), value.strip()) for name, colon, value in fields if colon)
    named = {name.lower(): value for name, value in reversed(headers)}
    length = named.get("content-length", "")
    if not (length.isascii() and length.isdigit()):
        return None
    return named.get("warc-type", ""), headers, end.end(), int(length)


def unchunk(body: bytes) -> bytes:
    """The body without its chunk sizes; from where it is not chunked it is taken as it is."""
    parts: list[bytes] = []
    at = 0
    while found := _CHUNK_SIZE.match(body, at):
        size = int(found[1], 16)
        if not size:
            return b"".join(parts)
        parts.append(body[found.end() : found.end() + size])
        at = found.end() + size
        at += 2 if body[at : at + 2] == b"\r\n" else 0
    return b"".join([*parts, body[at:]])


def _agrees(named: str | None, data: bytes) -> bool | None:
    algorithm, _, value = (named or "").partition(":")
    digest = _DIGESTS.get(algorithm.strip().lower().replace("-", ""))
    if digest is None:
        return None
    found = digest(data, usedforsecurity=False).digest()
    # The standard names no encoding; letters of hex and base32 come in both cases.
    spellings = (found.hex().upper(), b32encode(found).decode())
    exact = (b64encode(found).decode(), urlsafe_b64encode(found).decode())
    value = value.strip()
    return value.upper() in spellings or value in exact
