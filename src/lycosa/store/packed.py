"""A finished WARC file as it travels to a central store and rests there: `.warc.zst`.

Records are unpacked from their gzip members and packed together, host by host, a megabyte at a time, each block one
zstd frame: what the pages of a site have in common is stored once a block. `zstd -dc` of the file is the WARC,
uncompressed. At its end, in a frame that zstd skips, is an index: where each record lies, by its place in the
`.warc.gz` it comes from, so that places stay valid; and the digest of that file, which `unpack` makes again, byte for
byte. A file whose end is missing has no index and is refused. See docs/decisions/0019.
"""

import itertools
import re
import struct
from array import array
from bisect import bisect_right
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec
import numpy as np
import xxhash
import zstandard

from lycosa.errors import StoreError, storage_errors
from lycosa.store.central import file_digest
from lycosa.store.warc_file import warc_number
from lycosa.store.warc_read import WarcLocation, WarcRecord, iter_members, parse_member, read_members_at
from lycosa.store.warc_record import recompress_record, revisit_of_record

SUFFIX = ".warc.zst"
BLOCK_BYTES = 1 << 20  # before packing, at most, unless one record is longer: what has to be unpacked to read one
LEVEL = 3  # 60 µs a page of 17 KB; level 9 takes 400 and saves a tenth, 19 takes 10,000 and saves a sixth
_INDEX_LEVEL = 19
_SKIPPED = 0x184D2A5E  # a frame that readers of zstd pass over
_SKIPPED_HEAD = struct.Struct("<II")
_END = struct.Struct("<IQ8s")  # bytes and digest of the index, and a word to know it by
_WORD = b"lycosa-1"
_GUESS_BYTES = 64 << 10  # of an index, read at once
_AHEAD_BYTES = 4 << 20  # blocks read at once where all are wanted
_BLOCKS_KEPT = 8
_TARGET, _HEAD_BYTES = re.compile(rb"\r\nWARC-Target-URI: \w+://([^/\r]*)"), 4096
_URL = re.compile(rb"\r\nWARC-Target-URI: ([^\r]*)")
# Records of one request share their ids up to the last digit.
_KIND = re.compile(rb"WARC/1\.1\r\nWARC-Type: (\w+)\r\nWARC-Record-ID: <urn:uuid:(.{35})")
_ANSWERS = frozenset({b"response", b"revisit"})
_CHOSEN_AT_ONCE = 500  # records, in one call

Read = Callable[[int, int], bytes]  # offset, length


class PackedIndex(msgspec.Struct, frozen=True):
    """The index of a packed file, in columns of 32 bits.

    `members` are the lengths in the gzip file, `records` the unpacked lengths in the order in which they are packed,
    `order` their numbers in the gzip file, each as the difference to the one before. `digest` is that of all records as
    they are packed. `left`: pages and bytes that were left out, or packed as revisits, by reason.
    """

    name: str
    gzip_bytes: int
    gzip_digest: str
    digest: str
    blocks: list[int]  # bytes of each, packed
    counts: list[int]  # records in each
    members: bytes
    records: bytes
    order: bytes
    left: dict[str, tuple[int, int]] = {}


class RecordLeftOut(StoreError):
    """A record is not in a packed file, because its page was left out of the store."""


class Capture(NamedTuple):
    """A response or revisit, by its number in the file that is packed."""

    number: int
    url: str
    place: WarcLocation
    is_revisit: bool


class LeftOutPage(NamedTuple):
    """Why a page is left out, and the bytes of its body. With `original` it is a copy of a page that is stored: a
    revisit of that page is packed in place of its response."""

    reason: str
    bytes: int
    original: str = ""


ChooseLeftOut = Callable[[Sequence[Capture]], Mapping[int, LeftOutPage]]


class _Survey:
    """A first reading of a file: the lengths and hosts of its members, and what `choose` leaves out."""

    def __init__(self, source: Path, choose: ChooseLeftOut | None) -> None:
        self.source = source
        self.lengths, self.hosts = list[int](), list[bytes]()
        self.left, self._revisits = dict[int, LeftOutPage](), set[int]()
        self._groups = array("q")  # the number of the first record of the same request, for each
        gzipped, captures, at, last = xxhash.xxh3_128(), list[Capture](), 0, b""
        for number, (member, record) in enumerate(iter_members(source)):
            gzipped.update(member)
            self.lengths.append(len(member))
            self.hosts.append(_host(record))
            if choose is not None:
                kind, request = found.groups() if (found := _KIND.match(record)) else (b"", b"")
                self._groups.append(self._groups[-1] if request and request == last else number)
                last = request
                if kind in _ANSWERS and (url := _URL.search(record, 0, _HEAD_BYTES)):
                    place = WarcLocation(warc_number(source.name), at, len(member))
                    captures.append(Capture(number, url[1].decode(), place, kind == b"revisit"))
                if len(captures) >= _CHOSEN_AT_ONCE:
                    self._choose(choose, captures)
                    captures = []
            at += len(member)
        if choose is not None and captures:
            self._choose(choose, captures)
        self.gzip_bytes, self.gzip_digest = at, gzipped.hexdigest()

    def _choose(self, choose: ChooseLeftOut, captures: Sequence[Capture]) -> None:
        self.left.update(choose(captures))
        self._revisits.update(capture.number for capture in captures if capture.is_revisit)

    def copies(self) -> dict[int, str]:
        """The responses in whose place a revisit is packed, with the URL that it names."""
        return {n: left.original for n, left in self.left.items() if left.original and n not in self._revisits}

    def staying(self) -> set[int]:
        """The numbers of all records of the requests that are left out."""
        groups = {self._groups[number] for number, left in self.left.items() if not left.original}
        return {number for number, group in enumerate(self._groups) if group in groups} if groups else set()

    def told(self) -> dict[str, tuple[int, int]]:
        """The pages and bytes that are left out, by reason."""
        pages, size = Counter[str](), Counter[str]()
        for left in self.left.values():
            pages[left.reason] += 1
            size[left.reason] += left.bytes
        return {reason: (pages[reason], size[reason]) for reason in pages}


def pack_warc(
    source: Path,
    target: Path,
    choose: ChooseLeftOut | None = None,
    rest: Path | None = None,
    *,
    block_bytes: int = BLOCK_BYTES,
) -> PackedIndex:
    """Packs a WARC file of ours. It is read twice: to see which records belong together, and in that order. What
    `choose` leaves out is packed to `rest`, if there is anything."""
    survey = _Survey(source, choose)
    order = sorted(range(len(survey.hosts)), key=survey.hosts.__getitem__)  # of one host, in the order they came in
    staying, copies = survey.staying(), survey.copies()
    if rest is not None and (staying or copies):
        _write(survey, [number for number in order if number in staying or number in copies], {}, rest, block_bytes)
    return _write(survey, [number for number in order if number not in staying], copies, target, block_bytes)


def _write(
    survey: _Survey, order: Sequence[int], copies: Mapping[int, str], target: Path, block_bytes: int
) -> PackedIndex:
    """Packs the members of these numbers."""
    lengths, unpacked = survey.lengths, xxhash.xxh3_128()
    offsets = list(itertools.accumulate(lengths, initial=0))
    read = read_members_at(survey.source, ((offsets[number], lengths[number]) for number in order))
    pairs = zip(order, read, strict=True)
    contents = (revisit_of_record(content, copies[n]) if n in copies else content for n, content in pairs)
    blocks: list[int] = []
    counts: list[int] = []
    sizes: list[int] = []
    compressor = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True)
    with storage_errors(target, doing="packing the archive"), target.open("wb") as out:
        for block in _blocks(contents, block_bytes):
            data = b"".join(block)
            unpacked.update(data)
            blocks.append(out.write(compressor.compress(data)))
            counts.append(len(block))
            sizes += map(len, block)
        index = PackedIndex(
            name=survey.source.name,
            gzip_bytes=survey.gzip_bytes,
            gzip_digest=survey.gzip_digest,
            digest=unpacked.hexdigest(),
            blocks=blocks,
            counts=counts,
            members=_column(lengths),
            records=_column(sizes),
            order=np.diff(np.array(order, dtype="<i4"), prepend=np.int32(0)).astype("<i4").tobytes(),
            left=survey.told(),
        )
        out.write(_ending(index))
    return index


def _host(record: bytes) -> bytes:
    found = _TARGET.search(record, 0, _HEAD_BYTES)
    return found[1] if found else b""


def _blocks(contents: Iterable[bytes], block_bytes: int) -> Iterator[list[bytes]]:
    """Groups records into blocks."""
    block: list[bytes] = []
    size = 0
    for content in contents:
        if block and size + len(content) > block_bytes:
            yield block
            block, size = [], 0
        block.append(content)
        size += len(content)
    if block:
        yield block


def _column(numbers: list[int]) -> bytes:
    return np.array(numbers, dtype="<u4").tobytes()


def _ending(index: PackedIndex) -> bytes:
    packed = zstandard.ZstdCompressor(level=_INDEX_LEVEL).compress(msgspec.msgpack.encode(index))
    end = _END.pack(len(packed), xxhash.xxh3_64_intdigest(packed), _WORD)
    return _SKIPPED_HEAD.pack(_SKIPPED, len(packed) + len(end)) + packed + end


def read_index(read: Read, size: int, *, name: str) -> PackedIndex:
    """Reads the index at the end of a packed file of `size` bytes."""
    tail = read(max(0, size - _GUESS_BYTES), min(size, _GUESS_BYTES))
    length, digest, word = _END.unpack(tail[-_END.size :]) if len(tail) >= _END.size else (0, 0, b"")
    if word != _WORD or length > size:
        raise StoreError(f"{name} is not whole, or not an archive that Lycosa packed")
    if length + _END.size > len(tail):
        tail = read(size - length - _END.size, length + _END.size)
    packed = tail[-length - _END.size : -_END.size]
    if xxhash.xxh3_64_intdigest(packed) != digest:
        raise StoreError(f"the index of {name} is damaged")
    return msgspec.msgpack.decode(zstandard.ZstdDecompressor().decompress(packed), type=PackedIndex)


class PackedWarc:
    """The records of one packed file, by their locations in the file it was made from. `read` gives parts of it."""

    def __init__(self, read: Read, size: int, *, name: str) -> None:
        self._read, self.name = read, name
        self.index = index = read_index(read, size, name=name)
        self._lengths = np.frombuffer(index.members, dtype="<u4").astype(np.int64)
        self._sizes = np.frombuffer(index.records, dtype="<u4").astype(np.int64)
        self._offsets = np.cumsum(self._lengths) - self._lengths
        self._order = np.cumsum(np.frombuffer(index.order, dtype="<i4").astype(np.int64))
        self._packed_at = np.full(len(self._lengths), -1)
        self._packed_at[self._order] = np.arange(len(self._order))
        self._block_at = list(itertools.accumulate(index.blocks, initial=0))
        self._first = list(itertools.accumulate(index.counts, initial=0))
        self._kept: OrderedDict[int, bytes] = OrderedDict()

    def __repr__(self) -> str:
        return f"<PackedWarc {self.name} records={len(self._lengths)}>"

    def __len__(self) -> int:
        return len(self._lengths)

    def record(self, place: WarcLocation) -> WarcRecord:
        """The record at `place` of the file that this one was made from."""
        at = self._at(place)
        if at is None:
            raise StoreError(f"no record begins at byte {place.offset} of {self.index.name}")
        if at < 0:
            raise RecordLeftOut(f"the record at byte {place.offset} of {self.index.name} was left out of the store")
        block = bisect_right(self._first, at) - 1
        start = int(self._sizes[self._first[block] : at].sum())
        return self._record(at, self._block(block)[start : start + int(self._sizes[at])])

    def has(self, place: WarcLocation) -> bool:
        """Whether the record at `place` is packed here."""
        at = self._at(place)
        return at is not None and at >= 0

    def _at(self, place: WarcLocation) -> int | None:
        """The position of a record among the packed ones; -1: it was left out, None: no record begins at `place`."""
        number = int(np.searchsorted(self._offsets, place.offset))
        if number >= len(self) or (self._offsets[number], self._lengths[number]) != (place.offset, place.length):
            return None
        return int(self._packed_at[number])

    @property
    def is_whole(self) -> bool:
        """Whether every record of the original file is here."""
        return len(self._order) == len(self._lengths)

    def records(self) -> Iterator[WarcRecord]:
        """All records, host by host."""
        return (self._record(at, content) for at, content in enumerate(self.contents()))

    def _record(self, at: int, content: bytes) -> WarcRecord:
        number = int(self._order[at])
        return parse_member(content, int(self._offsets[number]), int(self._lengths[number]), path=Path(self.name))

    def contents(self) -> Iterator[bytes]:
        """The bytes of all records as they are packed, host by host."""
        for block, data in self._all_blocks():
            start = 0
            for size in self._sizes[self._first[block] : self._first[block + 1]].tolist():
                yield data[start : start + size]
                start += size

    def digest(self) -> str:
        """The digest of all records, computed from what is really there."""
        digest = xxhash.xxh3_128()
        for _, data in self._all_blocks():
            digest.update(data)
        return digest.hexdigest()

    def _all_blocks(self) -> Iterator[tuple[int, bytes]]:
        """Reads every block, several at once, and unpacks them."""
        first, count = 0, len(self.index.blocks)
        while first < count:
            last = max(first + 1, bisect_right(self._block_at, self._block_at[first] + _AHEAD_BYTES) - 1)
            start = self._block_at[first]
            data = self._read(start, self._block_at[last] - start)
            for block in range(first, last):
                yield block, self._unpacked(data[self._block_at[block] - start : self._block_at[block + 1] - start])
            first = last

    def _block(self, block: int) -> bytes:
        """One block, cached for the neighbours that are read next."""
        data = self._kept.get(block)
        if data is None:
            data = self._unpacked(self._read(self._block_at[block], self.index.blocks[block]))
            self._kept[block] = data
            if len(self._kept) > _BLOCKS_KEPT:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(block)
        return data

    def _unpacked(self, frame: bytes) -> bytes:
        try:
            return zstandard.ZstdDecompressor().decompress(frame)
        except zstandard.ZstdError as error:
            raise StoreError(f"{self.name} is damaged: {error}") from error

    def members(self) -> Iterator[tuple[int, int, bytes]]:
        """(offset, length, bytes now) of every gzip member of the original file, host by host."""
        for at, content in enumerate(self.contents()):
            number = int(self._order[at])
            yield int(self._offsets[number]), int(self._lengths[number]), recompress_record(content)


def unpack_warc(packed: PackedWarc, target: Path) -> bool:
    """Writes the `.warc.gz` again; True if it is the original, byte for byte.

    If the members have other lengths than they had, by another version of isal, the records are there host by host.
    """
    with storage_errors(target, doing="unpacking the archive"):
        with target.open("wb") as out:
            is_same = packed.is_whole and all(_put(out, *member) for member in packed.members())
            if not is_same:
                out.seek(0)
                out.truncate()
                for _, _, member in packed.members():
                    out.write(member)
        return is_same and file_digest(target) == packed.index.gzip_digest


def _put(out: BinaryIO, offset: int, length: int, member: bytes) -> bool:
    out.seek(offset)
    out.write(member)
    return len(member) == length
