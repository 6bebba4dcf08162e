"""A finished WARC file as it travels to a central store and rests there: `.warc.zst`.

Records are unpacked from their gzip members and packed together, a megabyte at a time, each block one zstd frame: what
the pages of a site have in common is stored once a block. `zstd -dc` of the file is the WARC, uncompressed. At its end,
in a frame that zstd skips, is an index: where each record lies, by its place in the `.warc.gz` it comes from, so that
places stay valid; and the digest of that file, which `unpack` makes again, byte for byte. A file whose end is missing
has no index and is refused. See docs/decisions/0017.
"""

import itertools
import struct
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import numpy as np
import xxhash
import zstandard

from lycosa.errors import StoreError
from lycosa.store.failures import failure
from lycosa.store.place import Place
from lycosa.store.warc_parse import WarcRecord
from lycosa.store.warc_read import members, record_of
from lycosa.store.warc_record import packed_again

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

Read = Callable[[int, int], bytes]  # offset, length


class Index(msgspec.Struct, frozen=True):
    """`members` and `records` are lengths, in the gzip file and unpacked, as columns of 32 bits; `digest` is that of
    all records, unpacked."""

    name: str
    gzip_bytes: int
    gzip_digest: str
    digest: str
    blocks: list[int]  # bytes of each, packed
    counts: list[int]  # records in each
    members: bytes
    records: bytes


def pack(source: Path, target: Path) -> Index:
    """Packs a WARC file of ours."""
    blocks: list[int] = []
    counts: list[int] = []
    lengths: list[int] = []
    sizes: list[int] = []
    gzipped, unpacked = xxhash.xxh3_128(), xxhash.xxh3_128()
    compressor = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True)
    try:
        with target.open("wb") as out:
            for block in _blocks(source, lengths, gzipped.update):
                data = b"".join(block)
                unpacked.update(data)
                blocks.append(out.write(compressor.compress(data)))
                counts.append(len(block))
                sizes += map(len, block)
            digests = gzipped.hexdigest(), unpacked.hexdigest()
            index = Index(source.name, sum(lengths), *digests, blocks, counts, _column(lengths), _column(sizes))
            out.write(_ending(index))
    except OSError as error:
        raise failure(error, path=target, doing="packing the archive") from error
    return index


def _blocks(source: Path, lengths: list[int], seen: Callable[[bytes], None]) -> Iterator[list[bytes]]:
    """The records of a file, as many together as make a block; `lengths` and `seen` are told of the gzip members."""
    block: list[bytes] = []
    size = 0
    for member, record in members(source):
        lengths.append(len(member))
        seen(member)
        if block and size + len(record) > BLOCK_BYTES:
            yield block
            block, size = [], 0
        block.append(record)
        size += len(record)
    if block:
        yield block


def _column(numbers: list[int]) -> bytes:
    return np.array(numbers, dtype="<u4").tobytes()


def _ending(index: Index) -> bytes:
    packed = zstandard.ZstdCompressor(level=_INDEX_LEVEL).compress(msgspec.msgpack.encode(index))
    end = _END.pack(len(packed), xxhash.xxh3_64_intdigest(packed), _WORD)
    return _SKIPPED_HEAD.pack(_SKIPPED, len(packed) + len(end)) + packed + end


def read_index(read: Read, size: int, *, name: str) -> Index:
    """The index at the end of a packed file of so many bytes."""
    tail = read(max(0, size - _GUESS_BYTES), min(size, _GUESS_BYTES))
    length, digest, word = _END.unpack(tail[-_END.size :]) if len(tail) >= _END.size else (0, 0, b"")
    if word != _WORD or length > size:
        raise StoreError(f"{name} is not whole, or not an archive that Lycosa packed")
    if length + _END.size > len(tail):
        tail = read(size - length - _END.size, length + _END.size)
    packed = tail[-length - _END.size : -_END.size]
    if xxhash.xxh3_64_intdigest(packed) != digest:
        raise StoreError(f"the index of {name} is damaged")
    return msgspec.msgpack.decode(zstandard.ZstdDecompressor().decompress(packed), type=Index)


class PackedWarc:
    """The records of one packed file, by their places in the file it was made from. `read` gives parts of it."""

    def __init__(self, read: Read, size: int, *, name: str) -> None:
        self._read, self.name = read, name
        self.index = index = read_index(read, size, name=name)
        self._lengths = np.frombuffer(index.members, dtype="<u4").astype(np.int64)
        self._sizes = np.frombuffer(index.records, dtype="<u4").astype(np.int64)
        self._offsets = np.cumsum(self._lengths) - self._lengths
        self._block_at = list(itertools.accumulate(index.blocks, initial=0))
        self._first = list(itertools.accumulate(index.counts, initial=0))
        self._kept: OrderedDict[int, bytes] = OrderedDict()

    def __repr__(self) -> str:
        return f"<PackedWarc {self.name} records={len(self._lengths)}>"

    def __len__(self) -> int:
        return len(self._lengths)

    def record(self, place: Place) -> WarcRecord:
        """The record at `place` of the file that this one was made from."""
        at = int(np.searchsorted(self._offsets, place.offset))
        if at >= len(self) or (self._offsets[at], self._lengths[at]) != (place.offset, place.length):
            raise StoreError(f"no record begins at byte {place.offset} of {self.index.name}")
        block = bisect_right(self._first, at) - 1
        start = int(self._sizes[self._first[block] : at].sum())
        return self._record(at, self._block(block)[start : start + int(self._sizes[at])])

    def records(self) -> Iterator[WarcRecord]:
        """All records in order."""
        return (self._record(at, content) for at, content in enumerate(self.contents()))

    def _record(self, at: int, content: bytes) -> WarcRecord:
        return record_of(content, int(self._offsets[at]), int(self._lengths[at]), path=Path(self.name))

    def contents(self) -> Iterator[bytes]:
        """The bytes of all records in order, unpacked."""
        for block, data in self._all_blocks():
            start = 0
            for size in self._sizes[self._first[block] : self._first[block + 1]].tolist():
                yield data[start : start + size]
                start += size

    def digest(self) -> str:
        """The digest of all records, from what is really there."""
        digest = xxhash.xxh3_128()
        for _, data in self._all_blocks():
            digest.update(data)
        return digest.hexdigest()

    def _all_blocks(self) -> Iterator[tuple[int, bytes]]:
        """Every block, unpacked; several are read at once."""
        first, count = 0, len(self.index.blocks)
        while first < count:
            last = max(first + 1, bisect_right(self._block_at, self._block_at[first] + _AHEAD_BYTES) - 1)
            start = self._block_at[first]
            data = self._read(start, self._block_at[last] - start)
            for block in range(first, last):
                yield block, self._unpacked(data[self._block_at[block] - start : self._block_at[block + 1] - start])
            first = last

    def _block(self, block: int) -> bytes:
        """One block, kept for the neighbours that are read next."""
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


def unpack(packed: PackedWarc, target: Path) -> bool:
    """Writes the `.warc.gz` again; True if it is the one that was packed, byte for byte."""
    digest = xxhash.xxh3_128()
    try:
        with target.open("wb") as out:
            for content in packed.contents():
                member = packed_again(content)
                digest.update(member)
                out.write(member)
    except OSError as error:
        raise failure(error, path=target, doing="unpacking the archive") from error
    return digest.hexdigest() == packed.index.gzip_digest
