"""Digests of documents and of their text. Pure, no heavy library: known before the first page is.

Called by the analysers, and by the engine, which looks for a document before it has it analysed.
"""

import hashlib

import xxhash

DIGEST_BYTES = 16


def document_fingerprint(body: bytes) -> int:
    """P6: the 64-bit number by which an equal document is looked up (XXH3; anybody can make two bodies collide)."""
    return int(xxhash.xxh3_64_intdigest(body))


def payload_sha1(body: bytes) -> bytes:
    """The digest that archives name a body by."""
    return hashlib.sha1(body, usedforsecurity=False).digest()


def document_digest(body: bytes) -> bytes:
    """P6: the 128 bits that confirm it: the archive's SHA-1, cut. Nobody can make another document pass for a stored
    one of somebody else; whoever makes two that collide, in this and in the fingerprint, has one of his own kept."""
    return payload_sha1(body)[:DIGEST_BYTES]


def text_digest(main_text: bytes) -> bytes:
    """128 bits of the main text, to compare a page with its own past: speed counts, forgery gains nothing (XXH3)."""
    return bytes(xxhash.xxh3_128_digest(main_text))
