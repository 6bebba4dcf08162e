"""Content coding undone, under a cap: gzip, deflate, br and zstd, up to five on top of each other.

Pure. Invariants: never raises, whatever the bytes; no layer produces more than 1.1 times the cap (from 200 KB on);
damaged or cut data gives the part that can be read, and says so. Called on bodies as received.
"""

import zlib
from collections.abc import Callable

import brotli
import msgspec
import zstandard
from isal import igzip_lib

# The cap on what a body may become: twice what it may be on the wire by default.
DEFAULT_CAP_BYTES = 20_000_000
# More than anyone stacks in earnest; each one multiplies the work.
MAX_CODINGS = 5
# RFC 9659: a decoder of zstd as content coding need not take more than this.
ZSTD_WINDOW_BYTES = 8 * 1024 * 1024
# How finely damaged data is read again; the last slice is then read byte by byte.
SALVAGE_SLICE_BYTES = 4096
# Output is asked for in steps, this large at first and then four times the one before: a buffer for the whole cap would
# cost more than a usual page (38 against 10 µs).
FIRST_STEP_BYTES = 64 * 1024
# A stream of more gzip members or zstd frames than this is built to keep us busy.
MAX_MEMBERS = 10_000

_GZIP_MAGIC = b"\x1f\x8b"


class DecodedBody(msgspec.Struct, frozen=True):
    """A body with its content coding undone.

    `is_cut`: the cap was reached. `is_damaged`: the data ended early or was wrong; `body` is what could be read, or the
    bytes as they came where nothing could. `unknown`: a coding we cannot undo; `body` is what that coding covers.
    """

    body: bytes
    is_cut: bool = False
    is_damaged: bool = False
    unknown: str = ""


def decode_body(body: bytes, content_encoding: str, *, cap_bytes: int = DEFAULT_CAP_BYTES) -> DecodedBody:
    """Undoes the codings that a Content-Encoding field names, the last one first."""
    codings = [name for name in (part.strip().lower() for part in content_encoding.split(",")) if name]
    codings = [name for name in codings if name != "identity"]
    if len(codings) > MAX_CODINGS:
        return DecodedBody(body[:cap_bytes], is_cut=len(body) > cap_bytes, unknown=content_encoding[:100])
    is_damaged = False
    for name in reversed(codings):
        layer = _LAYERS.get(name)
        if layer is None:
            return DecodedBody(body[:cap_bytes], len(body) > cap_bytes, is_damaged, unknown=name)
        if not body:
            break
        decoded, is_layer_damaged = layer(body, cap_bytes + 1)
        is_damaged = is_damaged or is_layer_damaged
        if is_layer_damaged and not decoded:
            break
        body = decoded
    return DecodedBody(body[:cap_bytes], len(body) > cap_bytes, is_damaged)


def _gunzip(data: bytes, limit: int) -> tuple[bytes, bool]:
    """Unpacks all members of a gzip stream; what follows the last one is ignored."""
    parts: list[bytes] = []
    start = 0
    room = limit
    for _ in range(MAX_MEMBERS):
        if data[start : start + 2] != _GZIP_MAGIC:
            return b"".join(parts), not parts
        # the rest of the data is handed back after each member: whole for the first, by slices for further ones
        size = len(data) if start == 0 else SALVAGE_SLICE_BYTES
        try:
            member, used = _gunzip_member(data, start, size, room)
        except igzip_lib.IsalError:  # type: ignore[misc]  # its stub says instance
            return b"".join(parts) + _salvage(data[start:], room, window_bits=31), True
        parts.append(member)
        room -= len(member)
        if used == 0 or room <= 0:
            # not at its end: either cut by us, or the data stopped early
            return b"".join(parts), room > 0
        start += used
    return b"".join(parts), True


def _gunzip_member(data: bytes, start: int, size: int, room: int) -> tuple[bytes, int]:
    """One member and how many bytes it took; 0 when its end was not reached."""
    inflater = igzip_lib.IgzipDecompressor(igzip_lib.DECOMP_GZIP)
    parts: list[bytes] = []
    for at in range(start, len(data), size):
        piece = data if at == 0 and size >= len(data) else data[at : at + size]
        parts.append(_inflate_steps(inflater, piece, room))
        room -= len(parts[-1])
        if inflater.eof:
            return b"".join(parts), at + len(piece) - len(inflater.unused_data) - start
        if room <= 0:
            break
    return b"".join(parts), 0


def _inflate(data: bytes, limit: int) -> tuple[bytes, bool]:
    """Unpacks deflate, which is a zlib stream by the standard and a raw one by the habit of some servers."""
    is_zlib = data[0] & 0x0F == 8 and len(data) > 1 and (data[0] << 8 | data[1]) % 31 == 0
    if is_zlib:
        body, is_damaged = _inflate_as(data, limit, igzip_lib.DECOMP_ZLIB, zlib.MAX_WBITS)
        if body or not is_damaged:
            return body, is_damaged
    return _inflate_as(data, limit, igzip_lib.DECOMP_DEFLATE, -zlib.MAX_WBITS)


def _inflate_as(data: bytes, limit: int, flag: int, window_bits: int) -> tuple[bytes, bool]:
    inflater = igzip_lib.IgzipDecompressor(flag)
    try:
        body = _inflate_steps(inflater, data, limit)
    except igzip_lib.IsalError:  # type: ignore[misc]  # its stub says instance
        return _salvage(data, limit, window_bits=window_bits), True
    return body, not inflater.eof and len(body) < limit


def _inflate_steps(inflater: igzip_lib.IgzipDecompressor, data: bytes, room: int) -> bytes:
    """All that `data` gives, up to `room` bytes."""
    step = FIRST_STEP_BYTES
    part: bytes = inflater.decompress(data, min(step, room))
    parts = [part]
    room -= len(part)
    while room > 0 and not inflater.eof and not inflater.needs_input:
        step *= 4
        part = inflater.decompress(b"", min(step, room))
        if not part:
            break
        parts.append(part)
        room -= len(part)
    return b"".join(parts) if len(parts) > 1 else parts[0]


def _salvage(data: bytes, limit: int, *, window_bits: int) -> bytes:
    """Unpacks what stands before the damage: by slices from a copy, and the slice that fails byte by byte."""
    inflater = zlib.decompressobj(window_bits)
    parts: list[bytes] = []
    room = limit
    for start in range(0, len(data), SALVAGE_SLICE_BYTES):
        piece = data[start : start + SALVAGE_SLICE_BYTES]
        before = inflater.copy()
        try:
            parts.append(inflater.decompress(piece, room))
        except zlib.error:
            parts.append(_salvage_bytes(before, piece, room))
            break
        room -= len(parts[-1])
        if room <= 0 or inflater.eof:
            break
    return b"".join(parts)


def _salvage_bytes(inflater: "zlib._Decompress", piece: bytes, room: int) -> bytes:
    parts: list[bytes] = []
    try:
        for byte in piece:
            part = inflater.decompress(bytes((byte,)), room)
            parts.append(part)
            room -= len(part)
            if room <= 0:
                break
    except zlib.error:
        pass  # this is the damage; what came before it is kept
    return b"".join(parts)


def _unbrotli(data: bytes, limit: int) -> tuple[bytes, bool]:
    decoder = brotli.Decompressor()
    parts: list[bytes] = []
    produced = 0
    try:
        for start in range(0, len(data), SALVAGE_SLICE_BYTES):
            piece = data[start : start + SALVAGE_SLICE_BYTES]
            while produced < limit:
                parts.append(decoder.process(piece, output_buffer_limit=limit - produced))
                produced += len(parts[-1])
                piece = b""
                if decoder.can_accept_more_data():
                    break
            if produced >= limit or decoder.is_finished():
                return b"".join(parts), False
    except brotli.error:
        return b"".join(parts), True
    return b"".join(parts), True


def _unzstd(data: bytes, limit: int) -> tuple[bytes, bool]:
    try:
        body = _read_steps(_zstd_reader(data), limit)
    except zstandard.ZstdError:
        return _salvage_zstd(data, limit), True
    return body, len(body) < limit and not _is_whole_zstd(data, len(body))


def _read_steps(reader: zstandard.ZstdDecompressionReader, room: int) -> bytes:
    step = FIRST_STEP_BYTES
    parts: list[bytes] = []
    while room > 0:
        part = reader.read(min(step, room))
        if not part:
            break
        parts.append(part)
        room -= len(part)
        step *= 4
    return b"".join(parts)


def _zstd_reader(data: bytes) -> zstandard.ZstdDecompressionReader:
    decoder = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW_BYTES)
    return decoder.stream_reader(data, read_across_frames=True)


def _salvage_zstd(data: bytes, limit: int) -> bytes:
    reader = _zstd_reader(data)
    parts: list[bytes] = []
    room = limit
    try:
        while room > 0:
            part = reader.read(min(room, SALVAGE_SLICE_BYTES))
            if not part:
                break
            parts.append(part)
            room -= len(part)
    except zstandard.ZstdError:
        pass  # this is the damage; what came before it is kept
    return b"".join(parts)


def _is_whole_zstd(data: bytes, size_bytes: int) -> bool:
    """Whether the last frame has its end. The reader does not say; a frame that names its size answers it.

    Otherwise the data is decoded again: by now its output is known to be small enough.
    """
    try:
        if size_bytes and zstandard.get_frame_parameters(data).content_size == size_bytes:
            return True
    except zstandard.ZstdError:
        return False  # not even a frame header
    context = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW_BYTES)
    frame = context.decompressobj()
    frames = 1
    at = 0
    while at < len(data) and frames <= MAX_MEMBERS:
        if frame.eof:
            frame = context.decompressobj()
            frames += 1
        piece = data[at : at + SALVAGE_SLICE_BYTES]
        try:
            frame.decompress(piece)
        except zstandard.ZstdError:
            return False
        at += len(piece) - len(frame.unused_data)
    return frame.eof and at >= len(data)


_LAYERS: dict[str, Callable[[bytes, int], tuple[bytes, bool]]] = {
    "gzip": _gunzip,
    "x-gzip": _gunzip,
    "deflate": _inflate,
    "br": _unbrotli,
    "zstd": _unzstd,
}
