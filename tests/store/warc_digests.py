"""Do the digests that a WARC record names agree with what it holds? None when it names none, or one unknown here."""

import hashlib
from base64 import b32encode, b64encode, urlsafe_b64encode
from collections.abc import Callable

from lycosa.store import WarcRecord

_DIGESTS: dict[str, Callable[..., "hashlib._Hash"]] = {
    "sha1": hashlib.sha1,
    "sha256": hashlib.sha256,
    "md5": hashlib.md5,
}


def block_digest_agrees(record: WarcRecord) -> bool | None:
    return _agrees(record.header("WARC-Block-Digest"), record.block)


def payload_digest_agrees(record: WarcRecord) -> bool | None:
    """A revisit names the digest of a body that is elsewhere: None."""
    named = record.header("WARC-Payload-Digest")
    if record.type == "revisit":
        return None
    if not (record.header("Content-Type") or "").startswith("application/http"):
        return _agrees(named, record.block)
    # Writers differ on whether a chunked body is digested with its chunk sizes.
    return _agrees(named, record.http()[1]) or _agrees(named, record.block.partition(b"\r\n\r\n")[2])


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
