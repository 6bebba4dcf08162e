"""Content coding undone, under a cap: gzip, deflate, br and zstd, up to five on top of each other.

Pure. Invariants: never raises, whatever the bytes; no layer produces more than 1.1 times the cap (from 200 KB on), nor
much more than was sent explains; damaged or cut data gives the part that can be read, and says so. Called on bodies as
received.
"""

import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from io import BytesIO

import brotli
import msgspec
import zstandard
from isal import igzip_lib

# The cap on what a body may become: twice what it may be on the wire by default.
DEFAULT_CAP_BYTES = 20_000_000
# Beyond so much a body may be this many times what was sent of it, by its coding: more is a bomb, of which no more is
# held than what was sent of it so far explains. Of the 207 files above a megabyte of a developer's machine (HTML,
# scripts, JSON, text) gzip made none more than 95 times smaller. br and zstd, which see further back, make a table with
# long class names 332 times smaller, and made a list of the same few words 690 times smaller.
FREE_BYTES = 4_000_000
MOST_TIMES, MOST_TIMES_FAR = 200, 2_000
# More than anyone stacks in earnest; each one multiplies the work.
MAX_CODINGS = 5
# RFC 9659: a decoder of zstd as content coding need not take more than this.
ZSTD_WINDOW_BYTES = 8 * 1024 * 1024
# How finely damaged data is read again; the last slice is then read byte by byte.
SALVAGE_SLICE_BYTES = 4096
# Output is asked for in steps, this large at first and then four times the one before, up to the most: a buffer for the
# whole cap would cost more than a usual page (38 against 10 µs), and be held beside what it is copied to.
FIRST_STEP_BYTES, MOST_STEP_BYTES = 64 * 1024, 1024 * 1024
# So much of the data is handed over at first, then as much again as was before, up to the most, since it is copied.
FIRST_HELD_BYTES, HELD_BYTES = FREE_BYTES // MOST_TIMES, 1024 * 1024
FIRST_HELD_FAR_BYTES = FREE_BYTES // MOST_TIMES_FAR
# A stream of more gzip members or zstd frames than this is built to keep us busy.
MAX_MEMBERS = 10_000

_GZIP_MAGIC = b"\x1f\x8b"


class DecodedBody(msgspec.Struct, frozen=True):
    """A body with its content coding undone.

    `is_cut`: the cap was reached, or it was a bomb. `is_damaged`: the data ended early or was wrong; `body` is what
    could be read, or the bytes as they came where nothing could. `unknown`: a coding we cannot undo; `body` is what
    that coding covers.
    """

    body: bytes
    is_cut: bool = False
    is_damaged: bool = False
    unknown: str = ""


def decode_body(body: bytes, content_encoding: str, *, cap_bytes: int = DEFAULT_CAP_BYTES) -> DecodedBody:
    """Undoes the codings that a Content-Encoding field names, the last one first."""
    sent_bytes = len(body)
    codings = [name for name in (part.strip().lower() for part in content_encoding.split(",")) if name]
    codings = [name for name in codings if name != "identity"]
    if len(codings) > MAX_CODINGS:
        return DecodedBody(body[:cap_bytes], is_cut=len(body) > cap_bytes, unknown=content_encoding[:100])
    is_cut, is_damaged = len(body) > cap_bytes, False
    for name in reversed(codings):
        layer = _LAYERS.get(name)
        if layer is None:
            return DecodedBody(body[:cap_bytes], is_cut, is_damaged, unknown=name)
        if not body:
            break
        most_bytes = max(FREE_BYTES, _TIMES[name] * sent_bytes)
        output = _Output(min(cap_bytes, most_bytes), _TIMES[name])
        is_layer_damaged = layer(body, output)
        if output.is_cut_early and _is_within(min(max(cap_bytes, DEFAULT_CAP_BYTES), most_bytes), layer, body):
            output = _Output(min(cap_bytes, most_bytes))
            is_layer_damaged = layer(body, output)
        is_damaged = is_damaged or is_layer_damaged
        if is_layer_damaged and not output.size:
            break
        body, is_cut = output.body(), is_cut or output.is_cut
    return DecodedBody(body[:cap_bytes], is_cut, is_damaged)


def _is_within(most_bytes: int, layer: Callable[[bytes, "_Output"], bool], body: bytes) -> bool:
    """Does the whole body come to no more than so much? Tables begin with thousands of rows that hardly differ: what
    looks like a bomb at its beginning is one if its end says so, too. Until that is known nothing is held."""
    output = _Output(most_bytes, holds=False)
    layer(body, output)
    return not output.is_cut


def decode_pieces(body: bytes, content_encoding: str, *, cap_bytes: int) -> Iterator[bytes]:
    """What `decode_body` gives, in pieces that are made when they are asked for, so that bombs may go on up to the cap.
    Of damaged data the piece with the damage is missing. Several codings, and those of more than the usual kinds, are
    undone as a whole."""
    make = _PIECES.get(content_encoding.strip().lower())
    if make is None:
        yield decode_body(body, content_encoding, cap_bytes=cap_bytes).body
        return
    size = 0
    try:
        for piece in make(body):
            yield piece[: cap_bytes - size]
            size += len(piece)
            if size >= cap_bytes:
                return
    except (zlib.error, brotli.error, zstandard.ZstdError):
        if not size:
            yield body[:cap_bytes]  # nothing could be read


def _gzip_pieces(data: bytes) -> Iterator[bytes]:
    inflater, members = zlib.decompressobj(zlib.MAX_WBITS | 16), 1
    for start in range(0, len(data), SALVAGE_SLICE_BYTES):
        rest = data[start : start + SALVAGE_SLICE_BYTES]
        while rest:
            if inflater.eof:
                if rest[0] != _GZIP_MAGIC[0] or members >= MAX_MEMBERS:
                    return
                inflater, members = zlib.decompressobj(zlib.MAX_WBITS | 16), members + 1
            yield inflater.decompress(rest, FIRST_STEP_BYTES)
            rest = inflater.unused_data if inflater.eof else inflater.unconsumed_tail


def _brotli_pieces(data: bytes) -> Iterator[bytes]:
    decoder = brotli.Decompressor()
    for start in range(0, len(data), SALVAGE_SLICE_BYTES):
        piece, is_more = data[start : start + SALVAGE_SLICE_BYTES], True
        while is_more:
            part = decoder.process(piece, output_buffer_limit=FIRST_STEP_BYTES)
            yield part
            piece, is_more = b"", len(part) >= FIRST_STEP_BYTES or not decoder.can_accept_more_data()
        if decoder.is_finished():
            return


def _zstd_pieces(data: bytes) -> Iterator[bytes]:
    reader = _zstd_reader(BytesIO(data))
    while piece := reader.read(FIRST_STEP_BYTES):
        yield piece


class _Output:
    """What a layer gives, up to its cap and one byte, which says that there is more. With `times` it may be so many
    times what was handed over so far, or `FREE_BYTES`. Without `holds` it is only counted.

    It grows in place: large bodies are copied neither to join their parts nor to cut them.
    """

    def __init__(self, most_bytes: int, times: int = 0, *, holds: bool = True) -> None:
        self._most, self._times, self._holds = most_bytes, times, holds
        self._cap = min(most_bytes, FREE_BYTES) if times else most_bytes
        self._file, self.size = BytesIO(), 0

    def hand_over(self, end: int) -> None:
        """The data up to `end` is handed to the decoder."""
        self._cap = max(self._cap, min(self._most, self._times * end))

    @property
    def room(self) -> int:
        return self._cap + 1 - self.size

    @property
    def is_cut(self) -> bool:
        return self.size > self._cap

    @property
    def is_cut_early(self) -> bool:
        """Is it cut because of what was handed over so far?"""
        return self.is_cut and self._cap < self._most

    def add(self, part: bytes) -> None:
        if self._holds:
            self._file.write(part)
        self.size += len(part)

    def take_back(self, size: int) -> None:
        """Forgets what came after so many bytes."""
        self._file.seek(size)
        self._file.truncate()
        self.size = size

    def body(self) -> bytes:
        self._file.truncate(self._cap)
        return self._file.getvalue()


def _gunzip(data: bytes, output: _Output) -> bool:
    """Unpacks all members of a gzip stream; what follows the last one is ignored."""
    start = 0
    for _ in range(MAX_MEMBERS):
        if data[start : start + 2] != _GZIP_MAGIC:
            return start == 0
        before = output.size
        try:
            used = _gunzip_member(data, start, output)
        except igzip_lib.IsalError:  # type: ignore[misc]  # its stub says instance
            output.take_back(before)
            _salvage(data[start:], output, window_bits=31)
            return True
        if used == 0 or output.room <= 0:
            return output.room > 0  # not at its end: either cut by us, or the data stopped early
        start += used
    return True


def _gunzip_member(data: bytes, start: int, output: _Output) -> int:
    """Unpacks one member; returns how many bytes it took, 0 when its end was not reached."""
    inflater = igzip_lib.IgzipDecompressor(igzip_lib.DECOMP_GZIP)
    end = _inflate_slices(inflater, data, start, output)
    return end - len(inflater.unused_data) - start if inflater.eof else 0


def _inflate(data: bytes, output: _Output) -> bool:
    """Unpacks deflate, which is a zlib stream by the standard and a raw one by the habit of some servers."""
    is_zlib = data[0] & 0x0F == 8 and len(data) > 1 and (data[0] << 8 | data[1]) % 31 == 0
    if is_zlib:
        is_damaged = _inflate_as(data, output, igzip_lib.DECOMP_ZLIB, zlib.MAX_WBITS)
        if output.size or not is_damaged:
            return is_damaged
    return _inflate_as(data, output, igzip_lib.DECOMP_DEFLATE, -zlib.MAX_WBITS)


def _inflate_as(data: bytes, output: _Output, flag: int, window_bits: int) -> bool:
    inflater = igzip_lib.IgzipDecompressor(flag)
    try:
        _inflate_slices(inflater, data, 0, output)
    except igzip_lib.IsalError:  # type: ignore[misc]  # its stub says instance
        output.take_back(0)
        _salvage(data, output, window_bits=window_bits)
        return True
    return not inflater.eof and output.room > 0


def _inflate_slices(inflater: igzip_lib.IgzipDecompressor, data: bytes, start: int, output: _Output) -> int:
    """What the data gives from `start` on, up to the end of the stream and as far as there is room; returns to where it
    was handed over."""
    if len(data) <= FIRST_HELD_BYTES and start == 0:  # as most pages are
        _inflate_steps(inflater, data, output)
        return len(data)
    # what is left of a slice is handed back where a stream ends in it: those after the first begin with small ones
    size, end = FIRST_HELD_BYTES if start == 0 else SALVAGE_SLICE_BYTES, start
    while end < len(data) and not inflater.eof and output.room > 0:
        at, end = end, min(end + size, len(data))
        output.hand_over(end)
        _inflate_steps(inflater, data[at:end], output)
        size = min(end - start, HELD_BYTES)
    return end


def _inflate_steps(inflater: igzip_lib.IgzipDecompressor, data: bytes, output: _Output) -> None:
    """All that `data` gives, as far as there is room."""
    step = FIRST_STEP_BYTES
    output.add(inflater.decompress(data, min(step, output.room)))
    while output.room > 0 and not inflater.eof and not inflater.needs_input:
        step = min(step * 4, MOST_STEP_BYTES)
        part = inflater.decompress(b"", min(step, output.room))
        if not part:
            break
        output.add(part)


def _salvage(data: bytes, output: _Output, *, window_bits: int) -> None:
    """Unpacks what stands before the damage: by slices from a copy, and the slice that fails byte by byte."""
    inflater = zlib.decompressobj(window_bits)
    for start in range(0, len(data), SALVAGE_SLICE_BYTES):
        piece = data[start : start + SALVAGE_SLICE_BYTES]
        before = inflater.copy()
        try:
            output.add(inflater.decompress(piece, output.room))
        except zlib.error:
            _salvage_bytes(before, piece, output)
            break
        if output.room <= 0 or inflater.eof:
            break


def _salvage_bytes(inflater: "zlib._Decompress", piece: bytes, output: _Output) -> None:
    with suppress(zlib.error):  # this is the damage; what came before it is kept
        for byte in piece:
            output.add(inflater.decompress(bytes((byte,)), output.room))
            if output.room <= 0:
                break


def _unbrotli(data: bytes, output: _Output) -> bool:
    decoder = brotli.Decompressor()
    with suppress(brotli.error):
        for start in range(0, len(data), SALVAGE_SLICE_BYTES):
            piece = data[start : start + SALVAGE_SLICE_BYTES]
            output.hand_over(start + len(piece))
            while output.room > 0:
                step = min(output.room, MOST_STEP_BYTES)
                part = decoder.process(piece, output_buffer_limit=step)
                output.add(part)
                piece = b""
                if len(part) < step and decoder.can_accept_more_data():  # which it says where it holds output back, too
                    break
            if output.room <= 0 or decoder.is_finished():
                return False
    return True


def _unzstd(data: bytes, output: _Output) -> bool:
    try:
        _read_steps(data, output, most=MOST_STEP_BYTES)
    except zstandard.ZstdError:
        output.take_back(0)
        with suppress(zstandard.ZstdError):  # this is the damage; what came before it is kept
            _read_steps(data, output, most=SALVAGE_SLICE_BYTES)
        return True
    return output.room > 0 and not _is_whole_zstd(data, output.size)


def _read_steps(data: bytes, output: _Output, *, most: int) -> None:
    source = BytesIO(data)
    reader, step = _zstd_reader(source), min(FIRST_STEP_BYTES, most)
    while output.room > 0:
        part = reader.read(min(step, output.room))
        if not part:
            break
        output.add(part)
        output.hand_over(source.tell())
        step = min(step * 4, most)


def _zstd_reader(source: BytesIO) -> zstandard.ZstdDecompressionReader:
    decoder = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW_BYTES)
    return decoder.stream_reader(source, read_size=FIRST_HELD_FAR_BYTES, read_across_frames=True)


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


# Each adds to the output what it can read, and says whether the data is damaged.
_LAYERS: dict[str, Callable[[bytes, _Output], bool]] = {
    "gzip": _gunzip,
    "x-gzip": _gunzip,
    "deflate": _inflate,
    "br": _unbrotli,
    "zstd": _unzstd,
}
_TIMES = {"gzip": MOST_TIMES, "x-gzip": MOST_TIMES, "deflate": MOST_TIMES, "br": MOST_TIMES_FAR, "zstd": MOST_TIMES_FAR}
_PIECES: dict[str, Callable[[bytes], Iterator[bytes]]] = {
    "gzip": _gzip_pieces,
    "x-gzip": _gzip_pieces,
    "br": _brotli_pieces,
    "zstd": _zstd_pieces,
}
