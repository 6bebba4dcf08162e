"""Crossings and claims as bytes: in columns under zstd, the URLs sorted so that like ones lie together. Pure."""

from collections.abc import Sequence

import msgspec
import zstandard

from lycosa.engine.copies import Claim
from lycosa.frontier.crossing import Crossing

LEVEL = 3

Parcel = Crossing | Claim


class _Columns(msgspec.Struct, array_like=True, omit_defaults=True):
    hrefs: list[str]
    depths: list[int]
    kinds: bytes
    hops: bytes
    origins: bytes
    credits: list[float]
    sources: list[str]
    vouches: bytes
    claims: list[Claim] = []


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Columns)


def pack(parcels: Sequence[Parcel]) -> bytes:
    """The crossings as bytes, in the order of their URLs, and the claims as they come."""
    crossings = [one for one in parcels if isinstance(one, Crossing)]
    ordered = sorted(crossings, key=lambda crossing: crossing.href)
    columns = _Columns(
        [crossing.href for crossing in ordered],
        [crossing.depth for crossing in ordered],
        bytes(crossing.kind for crossing in ordered),
        bytes(min(crossing.hops, 255) for crossing in ordered),
        bytes(crossing.origin for crossing in ordered),
        [crossing.credit for crossing in ordered] if any(crossing.credit for crossing in ordered) else [],
        [crossing.source for crossing in ordered],
        bytes(crossing.is_vouch for crossing in ordered),
        [one for one in parcels if isinstance(one, Claim)],
    )
    return zstandard.ZstdCompressor(level=LEVEL).compress(_encoder.encode(columns))


def unpack(packed: bytes) -> list[Parcel]:
    """What `pack` was given."""
    row = _decoder.decode(zstandard.ZstdDecompressor().decompress(packed))
    worth, vouches = row.credits or [0.0] * len(row.hrefs), map(bool, row.vouches)
    columns = row.hrefs, row.depths, row.kinds, row.hops, row.origins, worth, row.sources, vouches
    return [*(Crossing(*columns) for columns in zip(*columns, strict=True)), *row.claims]
