"""Messages between shards: numbered rows of URLs one way, and how far the receiver has come the other way.

Every row that a sender writes for a receiver has a position: the sender's incarnation and a number that grows. Rows are
sent and taken in that order. The incarnation comes from the coordinator and is never given twice, so a sender that was
restored from an older copy of itself never uses a position for other URLs than before. Pure.
"""

import struct
from collections.abc import Sequence
from enum import StrEnum

import msgspec
import zstandard

from lycosa.crawl.copies import CopyClaim
from lycosa.frontier import ForwardedUrl

Position = tuple[int, int]
START_POSITION: Position = (0, 0)

_POSITION = struct.Struct(">QQ")


def pack_position(position: Position) -> bytes:
    """Sixteen bytes that sort as positions do."""
    return _POSITION.pack(*position)


def unpack_position(packed: bytes) -> Position:
    incarnation, number = _POSITION.unpack(packed)
    return incarnation, number


class Message(msgspec.Struct, frozen=True):
    """Rows for one receiver, in order. `after` is the position of the row before the first one: a receiver that has not
    got that far must not take them. `epoch` is that of the table by which they were sent. `is_parting`: the sender
    leaves for good when a copy of the receiver has what it sent."""

    sender: str
    epoch: int
    after: Position
    rows: tuple[tuple[Position, bytes], ...]
    is_parting: bool = False


class ReplyCode(StrEnum):
    """What a receiver says to a message."""

    TAKEN = "taken"
    GAP = "gap"  # rows are missing: go on from `committed`
    EPOCH = "epoch"  # one of us two has an old table
    BUSY = "busy"  # the disk refuses, or the shard is not open: the same again, later


class Reply(msgspec.Struct, frozen=True):
    """How far the receiver has come with this sender's rows: on its disk, and in what would be restored of it."""

    word: ReplyCode
    committed: Position
    covered: Position


ZSTD_LEVEL = 3

ExchangeItem = ForwardedUrl | CopyClaim


class _ItemColumns(msgspec.Struct, array_like=True, omit_defaults=True):
    hrefs: list[str]
    depths: list[int]
    kinds: bytes
    hops: bytes
    origins: bytes
    credits: list[float]
    sources: list[str]
    vouches: bytes
    claims: list[CopyClaim] = []


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_ItemColumns)


def pack_items(parcels: Sequence[ExchangeItem]) -> bytes:
    """The crossings as bytes, in the order of their URLs, and the claims as they come."""
    crossings = [one for one in parcels if isinstance(one, ForwardedUrl)]
    ordered = sorted(crossings, key=lambda crossing: crossing.href)
    columns = _ItemColumns(
        [crossing.href for crossing in ordered],
        [crossing.depth for crossing in ordered],
        bytes(crossing.kind for crossing in ordered),
        bytes(min(crossing.hops, 255) for crossing in ordered),
        bytes(crossing.origin for crossing in ordered),
        [crossing.credit for crossing in ordered] if any(crossing.credit for crossing in ordered) else [],
        [crossing.source for crossing in ordered],
        bytes(crossing.is_vouch for crossing in ordered),
        [one for one in parcels if isinstance(one, CopyClaim)],
    )
    return zstandard.ZstdCompressor(level=ZSTD_LEVEL).compress(_encoder.encode(columns))


def unpack_items(packed: bytes) -> list[ExchangeItem]:
    """What `pack` was given."""
    row = _decoder.decode(zstandard.ZstdDecompressor().decompress(packed))
    worth, vouches = row.credits or [0.0] * len(row.hrefs), map(bool, row.vouches)
    columns = row.hrefs, row.depths, row.kinds, row.hops, row.origins, worth, row.sources, vouches
    return [*(ForwardedUrl(*columns) for columns in zip(*columns, strict=True)), *row.claims]
