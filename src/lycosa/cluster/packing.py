"""Crossings as bytes: in columns under zstd, the URLs sorted so that like ones lie together. Pure."""

from collections.abc import Sequence

import msgspec
import zstandard

from lycosa.frontier.crossing import Crossing

LEVEL = 3

_Columns = tuple[list[str], list[int], bytes, bytes, bytes, list[float], list[str], bytes]
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Columns)


def pack(crossings: Sequence[Crossing]) -> bytes:
    """The crossings as bytes, in the order of their URLs."""
    ordered = sorted(crossings, key=lambda crossing: crossing.href)
    columns: _Columns = (
        [crossing.href for crossing in ordered],
        [crossing.depth for crossing in ordered],
        bytes(crossing.kind for crossing in ordered),
        bytes(min(crossing.hops, 255) for crossing in ordered),
        bytes(crossing.origin for crossing in ordered),
        [crossing.credit for crossing in ordered] if any(crossing.credit for crossing in ordered) else [],
        [crossing.source for crossing in ordered],
        bytes(crossing.is_vouch for crossing in ordered),
    )
    return zstandard.ZstdCompressor(level=LEVEL).compress(_encoder.encode(columns))


def unpack(packed: bytes) -> list[Crossing]:
    """What `pack` was given."""
    hrefs, depths, kinds, hops, origins, credits, sources, vouches = _decoder.decode(
        zstandard.ZstdDecompressor().decompress(packed)
    )
    worth = credits or [0.0] * len(hrefs)
    rows = zip(hrefs, depths, kinds, hops, origins, worth, sources, map(bool, vouches), strict=True)
    return [Crossing(*row) for row in rows]
