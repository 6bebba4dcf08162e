"""Messages between shards: numbered rows of URLs one way, and how far the receiver has come the other way.

Every row that a sender writes for a receiver has a position: the sender's incarnation and a number that grows. Rows are
sent and taken in that order. The incarnation comes from the coordinator and is never given twice, so a sender that was
restored from an older copy of itself never uses a position for other URLs than before. Pure.
"""

# Why rows for a receiver, and not for a bucket: a bucket's rows could simply follow it to a new owner, but with 65,536
# buckets a row would hold one URL. When a bucket moves nothing is renumbered; what reaches the old owner afterwards is
# forwarded like any link that it finds itself.

import struct
from collections.abc import Sequence
from enum import StrEnum

import msgspec
import zstandard

from lycosa.crawl import CopyClaim
from lycosa.frontier import ForwardedUrl

ZSTD_LEVEL = 3

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
    """Rows for one receiver, in order.

    `after` is the position of the row before the first one: a receiver that has not got that far must not take them.
    `epoch` is that of the table by which they were sent. `is_parting`: the sender leaves for good once a checkpoint of
    the receiver has what it sent.
    """

    sender: str
    epoch: int
    after: Position
    rows: tuple[tuple[Position, bytes], ...]
    is_parting: bool = False


class ReplyCode(StrEnum):
    """A receiver's answer to a message."""

    TAKEN = "taken"
    GAP = "gap"  # rows are missing: go on from `committed`
    EPOCH = "epoch"  # one of the two has an old table
    # The disk refuses, or the shard is not open: send the same again, later.
    BUSY = "busy"


class Reply(msgspec.Struct, frozen=True):
    """How far the receiver has come with this sender's rows.

    `committed` is on its disk: nothing up to there has to be sent. `covered` is in what would be restored of it: the
    sender may forget what is up to there.
    """

    code: ReplyCode
    committed: Position
    covered: Position


def busy_reply() -> Reply:
    """The answer of a shard that is not open, or whose hosts are moving."""
    return Reply(ReplyCode.BUSY, START_POSITION, START_POSITION)


ExchangeItem = ForwardedUrl | CopyClaim


class _ItemColumns(msgspec.Struct, array_like=True, omit_defaults=True):
    """The items of a row, column by column: like values lie together, and zstd finds them. The order of the fields is
    the format of rows on disk."""

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


def pack_items(items: Sequence[ExchangeItem]) -> bytes:
    """The URLs as bytes, sorted, and the claims as they come."""
    urls = sorted((item for item in items if isinstance(item, ForwardedUrl)), key=lambda url: url.href)
    columns = _ItemColumns(
        [url.href for url in urls],
        [url.depth for url in urls],
        bytes(url.kind for url in urls),
        bytes(min(url.hops, 255) for url in urls),
        bytes(url.origin for url in urls),
        [url.credit for url in urls] if any(url.credit for url in urls) else [],
        [url.source for url in urls],
        bytes(url.is_vouch for url in urls),
        [item for item in items if isinstance(item, CopyClaim)],
    )
    return zstandard.ZstdCompressor(level=ZSTD_LEVEL).compress(_encoder.encode(columns))


def unpack_items(packed: bytes) -> list[ExchangeItem]:
    """The items that `pack_items` was given."""
    row = _decoder.decode(zstandard.ZstdDecompressor().decompress(packed))
    credits, vouches = row.credits or [0.0] * len(row.hrefs), map(bool, row.vouches)
    columns = row.hrefs, row.depths, row.kinds, row.hops, row.origins, credits, row.sources, vouches
    return [*(ForwardedUrl(*fields) for fields in zip(*columns, strict=True)), *row.claims]
