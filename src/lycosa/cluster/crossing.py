"""What crosses from shard to shard: URLs with all that their owner needs to know, packed by the thousand.

A crossing is what `Frontier.admit` or `vouch` would have been told had the URL been the sender's own. Packed crossings
are columns under zstd: URLs sorted, so that common beginnings lie together. Pure.
"""

from collections.abc import Sequence
from enum import IntEnum

import msgspec
import zstandard

LEVEL = 3


class Ask(IntEnum):
    """What is asked of the owner. Values are stored: never renumber."""

    ADMIT = 0
    VOUCH = 1  # the URL is not to be taken in, but if it is known, this speaks for it
    WIDEN = 2  # to be taken in, and its host becomes part of the scope


class Crossing(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One URL on its way to its owner. `kind` and `origin` are those of `frontier.rows`."""

    href: str
    depth: int = 0
    kind: int = 0
    hops: int = 0
    origin: int = 0
    credit: float = 0.0
    ask: int = Ask.ADMIT


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(tuple[list[str], list[tuple[int, int, int, int, float, int]]])


def pack(crossings: Sequence[Crossing]) -> bytes:
    """The crossings as bytes, in the order of their URLs."""
    ordered = sorted(crossings, key=lambda crossing: crossing.href)
    hrefs = [crossing.href for crossing in ordered]
    rest = [(c.depth, c.kind, c.hops, c.origin, c.credit, c.ask) for c in ordered]
    return zstandard.ZstdCompressor(level=LEVEL).compress(_encoder.encode((hrefs, rest)))


def unpack(packed: bytes) -> list[Crossing]:
    """What `pack` was given."""
    hrefs, rest = _decoder.decode(zstandard.ZstdDecompressor().decompress(packed))
    return [Crossing(href, *words) for href, words in zip(hrefs, rest, strict=True)]
