"""Links in columns, grouped by the URL they point to: what a segment holds, in memory and packed into few bytes.

A link is a pair (target, source) with a sign: plus where a page points there, minus where it no longer does. The signs
of a pair alternate, so the number of pages that point to a URL is the sum of its signs, whatever the number of segments
they are spread over. A newer change of a pair replaces an older one: a pair keeps its first sign if that is minus, and
its last if that is plus. Anchor texts are interned: each distinct text is kept once and found by its number, the most
frequent one first. Made by `from_pages` and `join_columns`, written and read by `graph.segments`.

The first part packs arrays of numbers into as few bytes as they need, without a Python loop over the numbers:

    varints          seven bits a byte, the last byte below 128: small numbers take one byte
    bits             numbers one behind the other, all of one width
    sorted numbers   Elias–Fano: the lower bits as such numbers; the upper bits in unary, two bits and a half each
    frames           varints, compressed by Zstandard group by group, so that a question opens only what it needs

A number of up to 57 bits lies within eight bytes, which NumPy reads at any byte. Bits begin with the lowest. Pure.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import chain, pairwise
from typing import Any, NamedTuple

import msgspec
import numpy as np
import xxhash
import zstandard
from numpy.typing import NDArray

from lycosa.errors import StoreError
from lycosa.web import native

U8 = NDArray[np.uint8]
U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]

_BITS = 7
_LOW, _MORE = np.uint8(0x7F), np.uint8(0x80)


def encode_varints(numbers: NDArray[Any]) -> tuple[U8, I64]:
    """The bytes, and where each number begins in them."""
    values = numbers.astype(np.uint64, copy=False)
    sizes = np.ones(len(values), dtype=np.int64)
    largest = int(values.max()) if len(values) else 0
    for bits in range(_BITS, largest.bit_length(), _BITS):
        sizes += values >= np.uint64(1 << bits)
    ends = np.cumsum(sizes)
    starts = ends - sizes
    out = np.empty(int(ends[-1]) if len(ends) else 0, dtype=np.uint8)
    left, at, remaining = values, starts, sizes
    while len(left):
        goes_on = remaining > 1
        out[at] = (left & np.uint64(_LOW)).astype(np.uint8) | (goes_on * _MORE)
        left, at, remaining = left[goes_on] >> np.uint64(_BITS), at[goes_on] + 1, remaining[goes_on] - 1
    return out, starts


def decode_varints(data: U8) -> U64:
    """The numbers in `data`, which ends where a number ends."""
    ends = np.flatnonzero(data <= _LOW)
    starts = np.empty_like(ends)
    if len(starts):
        starts[0], starts[1:] = 0, ends[:-1] + 1
    out = (data[starts] & _LOW).astype(np.uint64)
    places = np.flatnonzero(ends > starts)
    shift = _BITS
    while len(places):
        at = starts[places] + shift // _BITS
        out[places] |= (data[at] & _LOW).astype(np.uint64) << np.uint64(shift)
        places = places[ends[places] > at]
        shift += _BITS
    return out


def deltas(sorted_numbers: NDArray[Any]) -> NDArray[Any]:
    """Each number less the one before it; the first as it is."""
    out = sorted_numbers.copy()
    out[1:] -= sorted_numbers[:-1]
    return out


_PADDING = 8  # bytes behind the last number, so that eight can be read anywhere


class SortedNumbers(NamedTuple):
    """Packed sorted numbers: the width of their lower bits, these bits, and the upper ones."""

    width: int
    lower: U8
    upper: U8


def pack_bits(numbers: U64, width: int) -> U8:
    """The numbers, which have `width` bits at most. Every eighth begins at the same bit, `width` bytes further on:
    those are put there together, byte by byte."""
    out = np.zeros((len(numbers) * width + 7) // 8 + _PADDING, dtype=np.uint8)
    for place in range(min(8, len(numbers)) if width else 0):
        first, shift = divmod(place * width, 8)
        some = numbers[place::8] << np.uint64(shift)
        for byte in range((shift + width + 7) // 8):
            end = first + byte + width * (len(some) - 1) + 1
            out[first + byte : end : width] |= (some >> np.uint64(8 * byte)).astype(np.uint8)
    return out


def unpack_bits(data: U8, width: int, places: I64) -> U64:
    """The numbers at these places."""
    first = places * width
    words: U64 = np.ndarray((len(data) - _PADDING + 1,), dtype="<u8", buffer=data, strides=(1,))
    found: U64 = (words[first >> 3] >> (first & 7).astype(np.uint64)) & np.uint64((1 << width) - 1)
    return found


def pack_sorted(numbers: U64) -> SortedNumbers:
    """Numbers below 2^57, none less than the one before it."""
    largest = int(numbers[-1]) if len(numbers) else 0
    width = max(0, (largest // max(1, len(numbers))).bit_length() - 1)
    ones = (numbers >> np.uint64(width)).astype(np.int64) + np.arange(len(numbers))
    is_one = np.zeros(int(ones[-1]) + 1 if len(ones) else 0, dtype=np.uint8)
    is_one[ones] = 1
    lower = numbers & np.uint64((1 << width) - 1)
    return SortedNumbers(width, pack_bits(lower, width), np.packbits(is_one, bitorder="little"))


def unpack_sorted(packed: SortedNumbers) -> U64:
    """Unpacks all of the numbers."""
    upper = _upper(packed)
    lower = unpack_bits(packed.lower, packed.width, np.arange(len(upper)))
    return (upper.astype(np.uint64) << np.uint64(packed.width)) | lower


def find_sorted(packed: SortedNumbers, wanted: U64) -> tuple[I64, NDArray[np.bool_]]:
    """The place of each wanted number, and whether it is there."""
    upper, width = _upper(packed), packed.width
    sought = (wanted >> np.uint64(width)).astype(np.int64)
    at = np.searchsorted(upper, sought).astype(np.int64)
    is_known = np.zeros(len(wanted), dtype=bool)
    left = np.flatnonzero(at < len(upper))
    lower = wanted & np.uint64((1 << width) - 1)
    while len(left := left[upper[at[left]] == sought[left]]):  # with the same upper bits there are one or two
        is_known[left] = unpack_bits(packed.lower, width, at[left]) == lower[left]
        left = left[~is_known[left]]
        at[left] += 1
        left = left[at[left] < len(upper)]
    return at, is_known


def _upper(packed: SortedNumbers) -> I64:
    """The upper bits of each number."""
    ones = np.flatnonzero(np.unpackbits(packed.upper, bitorder="little"))
    return ones - np.arange(len(ones))


_LEVEL = 3  # above it takes longer and gains two in a hundred


class Frames(NamedTuple):
    """Frames one behind the other, and where each ends."""

    data: U8
    ends: U64


def pack_frames(numbers: NDArray[Any], edges: I64) -> Frames:
    """One frame for each part of `numbers`; parts end at `edges`."""
    compressor = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=False, write_content_size=True)
    packed, starts = encode_varints(numbers)
    places = np.append(starts, len(packed))[np.append(0, edges)]
    raw, frames = packed.tobytes(), []
    for first, last in zip(places[:-1].tolist(), places[1:].tolist(), strict=True):
        frames.append(compressor.compress(raw[first:last]) if last > first else b"")
    ends = np.cumsum([len(frame) for frame in frames], dtype=np.uint64)
    return Frames(np.frombuffer(b"".join(frames), dtype=np.uint8), ends)


def unpack_frames(frames: Frames, chosen: Iterable[int] | None = None) -> U64:
    """The numbers of the chosen frames one behind the other; of all of them if none is named."""
    decompressor = zstandard.ZstdDecompressor()
    ends = frames.ends.tolist()
    parts = []
    for place in range(len(ends)) if chosen is None else chosen:
        first = ends[place - 1] if place else 0
        if ends[place] > first:
            try:
                parts.append(decompressor.decompress(frames.data[first : ends[place]].tobytes()))
            except zstandard.ZstdError as error:
                raise StoreError("a segment of the link index is damaged: delete graph, it is built anew") from error
    return decode_varints(np.frombuffer(b"".join(parts), dtype=np.uint8))


BLOCK_TEXTS = 512
_hash = xxhash.xxh3_64_intdigest


class LinkTexts(NamedTuple):
    """Distinct texts in UTF-8, one behind the other; `ids` are their hashes, `sizes` their lengths in bytes."""

    ids: U64
    sizes: I64
    data: U8

    def take(self, places: I64) -> "LinkTexts":
        """The texts at `places`, in that order."""
        starts = np.cumsum(self.sizes) - self.sizes
        sizes = self.sizes[places]
        ends = np.cumsum(sizes)
        total = int(ends[-1]) if len(ends) else 0
        at = np.arange(total, dtype=np.int64) + np.repeat(starts[places] - (ends - sizes), sizes)
        return LinkTexts(self.ids[places], sizes, self.data[at])


def intern_texts(texts: Sequence[str]) -> tuple[LinkTexts, I64]:
    """A table of the distinct texts, and the number of each."""
    # half a character may come from an analyser of someone's own
    encoded = [text.encode("utf-8", "replace") for text in texts]
    ids = np.fromiter(map(_hash, encoded), dtype=np.uint64, count=len(encoded))
    distinct, first, inverse = np.unique(ids, return_index=True, return_inverse=True)
    chosen = [encoded[place] for place in first.tolist()]
    sizes = np.fromiter(map(len, chosen), dtype=np.int64, count=len(chosen))
    return LinkTexts(distinct, sizes, np.frombuffer(b"".join(chosen), dtype=np.uint8)), inverse.astype(np.int64)


def join_texts(tables: Sequence[LinkTexts]) -> tuple[LinkTexts, list[I64]]:
    """One table of all texts, and for each of the old tables the new numbers of its texts."""
    ids = np.concatenate([table.ids for table in tables])
    _, first, inverse = np.unique(ids, return_index=True, return_inverse=True)
    whole = LinkTexts(
        ids, np.concatenate([table.sizes for table in tables]), np.concatenate([table.data for table in tables])
    )
    ends = np.cumsum([len(table.ids) for table in tables])
    return whole.take(first.astype(np.int64)), np.split(inverse.astype(np.int64), ends[:-1])


def most_used_first(table: LinkTexts, used: I64) -> tuple[LinkTexts, I64]:
    """The table in the order of use, without what nobody uses, and the new numbers of `used`."""
    counts = np.bincount(used, minlength=len(table.ids))
    order = np.argsort(-counts, kind="stable")[: int(np.count_nonzero(counts))]
    number = np.zeros(len(counts), dtype=np.int64)
    number[order] = np.arange(len(order))
    return table.take(order), number[used]


def pack_texts(table: LinkTexts) -> dict[str, U8 | U64]:
    """The sections of a segment that hold the table."""
    compressor = zstandard.ZstdCompressor(level=_LEVEL)
    ends = np.cumsum(table.sizes)
    edges = [0, *ends[BLOCK_TEXTS - 1 :: BLOCK_TEXTS].tolist()]
    if len(ends) % BLOCK_TEXTS:
        edges.append(int(ends[-1]))
    data = table.data.tobytes()
    blocks = [compressor.compress(data[a:b]) for a, b in pairwise(edges)]
    places = np.cumsum([0, *map(len, blocks)]).astype(np.uint64)
    return {
        "text_sizes": encode_varints(table.sizes)[0],
        "text_blocks": places,
        "text_data": np.frombuffer(b"".join(blocks), dtype=np.uint8),
    }


def unpack_texts(sizes: U8, blocks: U64, data: U8) -> LinkTexts:
    """The whole table again."""
    decompressor = zstandard.ZstdDecompressor()
    parts = [decompressor.decompress(data[a:b].tobytes()) for a, b in pairwise(blocks.tolist())]
    raw, lengths = b"".join(parts), decode_varints(sizes).astype(np.int64)
    edges = [0, *np.cumsum(lengths).tolist()]
    ids = np.fromiter((_hash(raw[a:b]) for a, b in pairwise(edges)), dtype=np.uint64, count=len(lengths))
    return LinkTexts(ids, lengths, np.frombuffer(raw, dtype=np.uint8))


def read_text_block(block: int, sizes: I64, blocks: U64, data: U8) -> list[str]:
    """The texts of one block."""
    raw = zstandard.ZstdDecompressor().decompress(data[int(blocks[block]) : int(blocks[block + 1])].tobytes())
    edges = [0, *np.cumsum(sizes[block * BLOCK_TEXTS : (block + 1) * BLOCK_TEXTS]).tolist()]
    return [raw[a:b].decode("utf-8", "replace") for a, b in pairwise(edges)]


KIND_BITS = 3  # kinds are 1 to 8
URL_ID_BITS = 42  # of ten million URLs some twenty share their number with another
_SPARE_BITS = 64 - URL_ID_BITS


def url_id(url: str) -> int:
    """The number of a URL, fetched or not: 42 bits of a hash, the same in every collection."""
    return _hash(url.encode()) >> _SPARE_BITS


def url_ids(urls: Sequence[str]) -> U64:
    hashes = np.fromiter(map(_hash, map(str.encode, urls)), dtype=np.uint64, count=len(urls))
    return hashes >> np.uint64(_SPARE_BITS)


class LinkChanges(msgspec.Struct, frozen=True):
    """The changes of one page's links: URLs it points to now, with kinds and anchors, and URLs it no longer does.

    Where a URL stands twice in `urls` its last words count; one in `lost` too has new words. `is_gone`: the page itself
    is no more. `kernel`: what the kernel keeps of a new page's links, in place of URLs, kinds and anchors.
    """

    file_num: int
    url: str
    urls: Sequence[str] = ()
    kinds: bytes = b""
    anchors: Sequence[str] = ()
    lost: Sequence[str] = ()
    is_gone: bool = False
    kernel: Any = None

    def written_out(self) -> "LinkChanges":
        """The same without the kernel's part."""
        if self.kernel is None:
            return self
        hrefs, kinds, anchors = self.kernel.columns()
        joined = self.kernel.joined(hrefs)[0]
        columns = zip(hrefs, kinds, anchors, strict=True)
        rows = [(joined[href], kind, words) for href, kind, words in columns if href in joined]
        urls, kinds_of, words_of = zip(*rows, strict=True) if rows else ((), (), ())
        return LinkChanges(self.file_num, self.url, urls, bytes(kinds_of), words_of, self.lost, self.is_gone)


class LinkColumns(NamedTuple):
    """`sources` are sorted, `present` says of each whether it is still a page.

    `targets` are sorted; the links of target i are `sizes[i]` in number and lie one target behind the other in `places`
    (into `sources`), `minus` and `codes` (the number of the anchor text, and three bits of kind).
    """

    sources: U64
    present: NDArray[np.bool_]
    targets: U64
    sizes: I64
    places: I64
    minus: NDArray[np.bool_]
    codes: I64
    texts: LinkTexts

    @property
    def links(self) -> int:
        return len(self.places)


def from_pages(pages: Sequence[LinkChanges]) -> LinkColumns:
    """The columns of pages in the order in which they were committed."""
    with suppress(UnicodeEncodeError):  # half a character, from an analyser of someone's own
        if (kernel := native()) is not None:
            packed, texts = kernel.link_columns(list(pages))
            columns = map(np.frombuffer, packed, ("<u8", "?", "<u8", "<i8", "<i8", "?", "<i8"))
            return LinkColumns._make([*columns, LinkTexts._make(map(np.frombuffer, texts, ("<u8", "<i8", "u1")))])
    pages = [page.written_out() for page in pages]
    lengths = np.array([(len(page.lost), len(page.urls)) for page in pages], dtype=np.int64).reshape(-1)
    urls = list(chain.from_iterable(chain(page.lost, page.urls) for page in pages))
    words = list(chain.from_iterable(chain(("",) * len(page.lost), page.anchors) for page in pages))
    kinds = b"".join(b"\1" * len(page.lost) + page.kinds for page in pages)
    own = url_ids([page.url for page in pages])
    files = np.array([page.file_num for page in pages], dtype=np.uint64)
    present = np.array([not page.is_gone for page in pages], dtype=bool)
    table, numbers = intern_texts(words)
    rows = _LinkRows(
        target=url_ids(urls),
        source=np.repeat(np.repeat(files, 2), lengths),
        minus=np.repeat(np.tile(np.array([True, False]), len(pages)), lengths),
        code=(numbers << KIND_BITS) | (np.frombuffer(kinds, dtype=np.uint8).astype(np.int64) - 1),
    )
    is_other = rows.target != np.repeat(np.repeat(own, 2), lengths)  # a page that points to itself says nothing
    rows = _LinkRows(*(column[is_other] for column in rows))
    return _arrange(rows, files, present, table)


def join_columns(parts: Sequence[LinkColumns], *, is_whole: bool) -> LinkColumns:
    """Joins many columns into one, oldest first. `is_whole`: nothing older exists, so removals need not be kept."""
    table, numbers = join_texts([part.texts for part in parts])
    rows = _LinkRows(
        target=np.concatenate([np.repeat(part.targets, part.sizes) for part in parts]),
        source=np.concatenate([part.sources[part.places] for part in parts]),
        minus=np.concatenate([part.minus for part in parts]),
        code=np.concatenate([_recoded(part.codes, new) for part, new in zip(parts, numbers, strict=True)]),
    )
    files = np.concatenate([part.sources for part in parts])
    present = np.concatenate([part.present for part in parts])
    joined = _arrange(rows, files, present, table)
    return _without_gone(joined) if is_whole else joined


class _LinkRows(NamedTuple):
    target: U64
    source: U64
    minus: NDArray[np.bool_]
    code: I64


def _recoded(codes: I64, numbers: I64) -> I64:
    if not len(codes):
        return codes
    recoded: I64 = (numbers[codes >> KIND_BITS] << KIND_BITS) | (codes & ((1 << KIND_BITS) - 1))
    return recoded


def _arrange(rows: _LinkRows, files: U64, present: NDArray[np.bool_], table: LinkTexts) -> LinkColumns:
    """Sorts rows by target and source; a newer row of a pair replaces an older one."""
    sources, last = _last_of_each(files)
    targets, target_place = np.unique(rows.target, return_inverse=True)
    pair = target_place.astype(np.int64) * max(1, len(sources)) + np.searchsorted(sources, rows.source)
    order = np.argsort(pair, kind="stable")
    pair, minus = pair[order], rows.minus[order]
    order = order[kept := _effective(pair, minus)]
    pair, minus = pair[kept], minus[kept]
    target_of, places = np.divmod(pair, max(1, len(sources)))
    sizes = np.bincount(target_of, minlength=len(targets)).astype(np.int64)
    code = rows.code[order]
    table, number = most_used_first(table, code >> KIND_BITS) if len(code) else (table.take(_NONE), _NONE)
    code = (number << KIND_BITS) | (code & ((1 << KIND_BITS) - 1))
    is_used = sizes > 0
    return LinkColumns(sources, present[last], targets[is_used], sizes[is_used], places, minus, code, table)


_NONE = np.empty(0, dtype=np.int64)


def _last_of_each(files: U64) -> tuple[U64, I64]:
    """The distinct sources, and where each stands last."""
    order = np.argsort(files, kind="stable")
    ordered = files[order]
    is_last = np.append(ordered[1:] != ordered[:-1], True) if len(ordered) else np.empty(0, dtype=bool)
    return ordered[is_last], order[is_last]


def _effective(pair: I64, minus: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Tells which rows still count: the first of a pair if it is minus, the last if it is plus."""
    if not len(pair):
        return np.empty(0, dtype=bool)
    differs = pair[1:] != pair[:-1]
    if differs.all():
        return np.ones(len(pair), dtype=bool)
    is_first, is_last = np.append(True, differs), np.append(differs, True)
    return (is_first & minus) | (is_last & ~minus)


def _without_gone(columns: LinkColumns) -> LinkColumns:
    """Leaves out removed pages and links that were taken back: there is nothing older for them to change."""
    stays, plus = columns.present, ~columns.minus
    place = np.cumsum(stays) - 1
    plus &= stays[columns.places]
    sizes = _sums(plus, columns.sizes)
    is_used = sizes > 0
    return columns._replace(
        sources=columns.sources[stays],
        present=columns.present[stays],
        targets=columns.targets[is_used],
        sizes=sizes[is_used],
        places=place[columns.places[plus]],
        minus=columns.minus[plus],
        codes=columns.codes[plus],
    )


def _sums(values: NDArray[Any], sizes: I64) -> I64:
    """The sum of each run of `values`; runs may be empty."""
    ends = np.append(0, np.cumsum(values, dtype=np.int64))
    edges = np.append(0, np.cumsum(sizes))
    return ends[edges[1:]] - ends[edges[:-1]]  # type: ignore[no-any-return]
