"""A segment of the link index: the links of some thousand pages, or of a million, as one file that never changes.

    head       magic, length of the table, table: section → (type, bytes)
    counts     number of links, of targets, of sources; lower bits of a target
    sources    FileNums as differences (one frame)     gone  places of sources that are no more
    lower      URL ids, sorted: the lower bits         upper  the upper bits (`columns`)
    sizes      links of each target, less one          one frame a group of 4,096 targets, as for links and codes
    starts     links before each group
    firsts     for each target the place of its first source, all of one width
    links      for each target the further ones, as differences less one
    minus      which links are taken back
    codes      anchor text and kind of each link
    text_*     the anchor texts, each once
    digest     of all before it

Up to `minus` it is the graph, less than two bytes a link on a real site; the rest are the anchors. `*_ends` say where
each frame ends. The sections lie one behind the other and are read through a memory map: a question about one URL opens
the upper bits and one group. `write_segment` makes a file, whole under a hidden name, then renamed; `Segment` answers
questions about it; `graph.index` knows which there are.
"""

import mmap
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import xxhash
from numpy.typing import NDArray

from lycosa.errors import StoreError, storage_errors
from lycosa.files import replacing
from lycosa.graph.columns import (
    BLOCK_TEXTS,
    I64,
    KIND_BITS,
    U64,
    Frames,
    LinkColumns,
    SortedNumbers,
    decode_varints,
    deltas,
    find_sorted,
    pack_bits,
    pack_frames,
    pack_sorted,
    pack_texts,
    read_text_block,
    unpack_bits,
    unpack_frames,
    unpack_sorted,
    unpack_texts,
)

FORMAT = b"lycosa links "
MAGIC = FORMAT + b"2\n\0"
ALIGN = 8
DIGEST = "digest"  # the last section: of all bytes before it
CHECKED_BYTES = 16 * 1024 * 1024  # segments up to this size, among them the latest, are held against it when opened


def mapped(data: mmap.mmap) -> dict[str, NDArray[Any]]:
    """The sections of an open file."""
    at = len(MAGIC)
    size = int.from_bytes(data[at : at + 8], "little")
    table: dict[str, tuple[str, int]] = msgspec.msgpack.decode(data[at + 8 : at + 8 + size])
    at += 8 + size
    sections = {}
    for name, (kind, size_bytes) in table.items():
        at += -at % ALIGN
        dtype = np.dtype(kind)
        sections[name] = np.frombuffer(data, dtype=dtype, count=size_bytes // dtype.itemsize, offset=at)
        at += size_bytes
    return sections


def _is_whole(data: mmap.mmap, sections: Mapping[str, NDArray[Any]]) -> bool:
    if DIGEST not in sections or len(data) > CHECKED_BYTES:  # of an earlier version, or merged long ago
        return True
    digest = xxhash.xxh3_64_intdigest(memoryview(data)[:-8])
    if hasattr(mmap, "MADV_DONTNEED"):  # a crawl opens all of them and asks them nothing
        data.madvise(mmap.MADV_DONTNEED)
    return digest == int(sections[DIGEST][0])


def unfolded(steps: I64, sizes: I64) -> I64:
    """The numbers of differences that begin anew with every target."""
    sums = np.cumsum(steps)
    starts = np.cumsum(sizes) - sizes
    before = np.append(0, sums)[starts]
    return sums - np.repeat(before, sizes)  # type: ignore[no-any-return]


GROUP = 4_096  # targets
_ANCHOR_SECTIONS = ("codes", "code_ends", "text_sizes", "text_blocks", "text_data")
_KIND_MASK = (1 << KIND_BITS) - 1
_BLOCKS_KEPT = 256  # of anchor texts, unpacked
_MANY = 0.5  # of the groups: when so many are asked for, all of them are opened, and kept


class Inlink(NamedTuple):
    """A page that points somewhere: its FileNum, the kind of the link, its words; or that it no longer does."""

    source: int
    kind: int
    anchor: str
    is_minus: bool


def write_segment(path: Path, columns: LinkColumns) -> None:
    """Writes a segment so that it is there whole or not at all, unless the power fails: then the index is made anew."""
    sections = _sections(columns)
    table = {name: (str(section.dtype), section.nbytes) for name, section in sections.items()} | {DIGEST: ("<u8", 8)}
    head, digest = msgspec.msgpack.encode(table), xxhash.xxh3_64()
    with storage_errors(path, doing="writing the link index"), replacing(path) as file:

        def write(data: bytes) -> None:
            file.write(data)
            digest.update(data)

        write(MAGIC + len(head).to_bytes(8, "little") + head)
        for section in sections.values():
            write(b"\0" * (-file.tell() % ALIGN))
            write(section.tobytes())
        write(b"\0" * (-file.tell() % ALIGN))
        file.write(digest.intdigest().to_bytes(8, "little"))


def _sections(columns: LinkColumns) -> dict[str, NDArray[Any]]:
    sizes, places = columns.sizes, columns.places
    ends = np.cumsum(sizes)
    first = ends - sizes
    is_further = np.ones(len(places), dtype=bool)
    is_further[first] = False
    targets = np.append(np.arange(GROUP, len(sizes), GROUP), [len(sizes)] if len(sizes) else []).astype(np.int64)
    groups = ends[targets - 1]  # where the links of each group end
    ids = pack_sorted(columns.targets)
    size_frames = pack_frames(sizes - 1, targets)
    link_frames = pack_frames(deltas(places)[is_further] - 1, groups - targets)
    code_frames = pack_frames(columns.codes, groups)
    counts = [columns.links, len(sizes), len(columns.sources), ids.width]
    return {
        "counts": np.array(counts, dtype=np.uint64),
        "sources": pack_frames(deltas(columns.sources), np.array([len(columns.sources)])).data,
        "gone": np.flatnonzero(~columns.present).astype(np.uint32),
        "lower": ids.lower,
        "upper": ids.upper,
        "sizes": size_frames.data,
        "size_ends": size_frames.ends,
        "starts": np.append(0, groups[:-1]).astype(np.uint64) if len(groups) else np.empty(0, dtype=np.uint64),
        "firsts": pack_bits(places[first].astype(np.uint64), _width(len(columns.sources))),
        "links": link_frames.data,
        "link_ends": link_frames.ends,
        "minus": np.flatnonzero(columns.minus).astype(np.uint32),
        "codes": code_frames.data,
        "code_ends": code_frames.ends,
        **pack_texts(columns.texts),
    }


def _width(sources: int) -> int:
    """Bits for a place among the sources."""
    return max(1, sources - 1).bit_length()


class Segment:
    """An open segment. The file may be deleted meanwhile: what is open stays readable."""

    def __init__(self, name: str, sections: Mapping[str, NDArray[Any]]) -> None:
        self.name, self._sections = name, sections
        self._minus: NDArray[np.uint32] = sections["minus"]
        self.links, self._targets, self._sources, width = (int(count) for count in sections["counts"])
        self._ids = SortedNumbers(width, sections["lower"], sections["upper"])
        self._text_blocks: dict[int, list[str]] = {}

    @classmethod
    def open(cls, path: Path) -> "Segment":
        try:
            with path.open("rb") as file:
                data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except FileNotFoundError:
            raise
        except (OSError, ValueError) as error:
            raise StoreError(f"reading the link index failed: {path}: {error}") from error
        is_ours = data[: len(FORMAT)] == FORMAT
        if is_ours and data[: len(MAGIC)] != MAGIC:
            raise StoreError(f"{path} was written by another version of Lycosa: the link index is to be built anew")
        try:
            if is_ours and _is_whole(data, sections := mapped(data)):
                return cls(path.name, sections)
        except (ValueError, TypeError, KeyError, msgspec.DecodeError):
            pass  # cut off
        raise StoreError(f"{path} is damaged: the link index is to be built anew")

    @classmethod
    def of(cls, columns: LinkColumns) -> "Segment":
        """A segment in memory, of what is not in a file yet."""
        return cls("", _sections(columns))

    def __repr__(self) -> str:
        return f"<Segment {self.name} links={self.links} targets={self._targets}>"

    @property
    def id_bytes(self) -> int:
        """Bytes of the graph itself, anchors apart."""
        return sum(section.nbytes for name, section in self._sections.items() if name not in _ANCHOR_SECTIONS)

    @cached_property
    def sources(self) -> U64:
        data = self._sections["sources"]
        return np.cumsum(unpack_frames(Frames(data, np.array([len(data)], dtype=np.uint64))), dtype=np.uint64)

    @property
    def targets(self) -> U64:
        return unpack_sorted(self._ids)

    @property
    def present(self) -> NDArray[np.bool_]:
        is_present = np.ones(self._sources, dtype=bool)
        is_present[self._sections["gone"]] = False
        return is_present

    # groups

    def _frames(self, column: str, ends: str) -> Frames:
        return Frames(self._sections[column], self._sections[ends])

    def _sizes(self, groups: Sequence[int] | None = None) -> I64:
        """The links of each target of some groups, or of all."""
        return unpack_frames(self._frames("sizes", "size_ends"), groups).astype(np.int64) + 1

    def _codes(self, groups: Sequence[int] | None = None) -> I64:
        return unpack_frames(self._frames("codes", "code_ends"), groups).astype(np.int64)

    def _places(self, sizes: I64, groups: Sequence[int] | None = None) -> I64:
        """The places of the sources of each link of some groups, or of all; `sizes` are those of their targets."""
        if groups is None:
            targets = np.arange(self._targets)
        else:
            targets = np.concatenate([_NONE, *(self._in_group(group) for group in groups)])
        first = np.cumsum(sizes) - sizes
        steps = np.empty(int(sizes.sum()), dtype=np.int64)
        is_first = np.zeros(len(steps), dtype=bool)
        is_first[first] = True
        steps[~is_first] = unpack_frames(self._frames("links", "link_ends"), groups).astype(np.int64) + 1
        steps[first] = unpack_bits(self._sections["firsts"], _width(self._sources), targets).astype(np.int64)
        return unfolded(steps, sizes)

    def _in_group(self, group: int) -> I64:
        return np.arange(group * GROUP, min(self._targets, (group + 1) * GROUP), dtype=np.int64)

    def _ranges(self, targets: I64) -> tuple[I64, I64, I64]:
        """The groups that hold these targets; and for each target the number of its first link and how many it has."""
        groups, place = np.unique(targets // GROUP, return_inverse=True)
        sizes = self._sizes(groups.tolist())
        counts = np.minimum(GROUP, self._targets - groups * GROUP)
        before = np.cumsum(sizes) - sizes
        opened = np.cumsum(counts) - counts
        # Links are numbered through the segment: those of a group go on from where it starts.
        shift = self._sections["starts"][groups].astype(np.int64) - before[opened]
        at = opened[place] + targets % GROUP
        return groups, before[at] + shift[place], sizes[at]

    # questions

    def counts(self, ids: U64) -> I64:
        """For each URL id the pages that point to it, as far as this segment knows; may be negative."""
        at, is_known = find_sorted(self._ids, ids)
        counts = np.zeros(len(ids), dtype=np.int64)
        if is_known.any():
            _, first, sizes = self._ranges(at[is_known])
            taken = np.searchsorted(self._minus, np.stack([first, first + sizes])) if len(self._minus) else None
            counts[is_known] = sizes if taken is None else sizes - 2 * (taken[1] - taken[0])
        return counts

    def inlinks(self, target: int) -> list[Inlink]:
        """The links to a URL id, in the order of their sources."""
        _, sources, is_plus, codes = self.links_to(np.array([target], dtype=np.uint64))
        rows = zip(sources.tolist(), codes.tolist(), is_plus.tolist(), strict=True)
        return [
            Inlink(source, (code & _KIND_MASK) + 1, self.text(code >> KIND_BITS), not plus)
            for source, code, plus in rows
        ]

    def links_to(self, ids: U64) -> tuple[I64, U64, NDArray[np.bool_], I64]:
        """The links to some URL ids in columns: place among `ids`, source, whether it came or went, code."""
        at, is_known = find_sorted(self._ids, ids)
        asked = np.flatnonzero(is_known)
        groups, first, sizes = self._ranges(at[asked])
        ends = np.cumsum(sizes)
        numbers = np.arange(int(ends[-1]) if len(ends) else 0) + np.repeat(first - (ends - sizes), sizes)
        places, codes = self._some_links(numbers, groups)
        is_plus = ~np.isin(numbers, self._minus)
        return np.repeat(asked, sizes), self.sources[places], is_plus, codes

    def _some_links(self, numbers: I64, groups: I64) -> tuple[I64, I64]:
        """Places of sources and codes of links by their numbers; `groups` are those that hold them."""
        if len(groups) > _MANY * len(self._sections["starts"]):
            all_places, all_codes = self._whole
            return all_places[numbers].astype(np.int64), all_codes[numbers].astype(np.int64)
        chosen = groups.tolist()
        sizes = self._sizes(chosen)
        places, codes = self._places(sizes, chosen), self._codes(chosen)
        # From numbers in the segment to places among what was opened.
        starts = np.append(self._sections["starts"], self.links).astype(np.int64)
        lengths = starts[groups + 1] - starts[groups]
        of_link = np.searchsorted(starts[groups], numbers, side="right") - 1
        at = numbers - starts[groups][of_link] + (np.cumsum(lengths) - lengths)[of_link]
        return places[at], codes[at]

    @cached_property
    def _whole(self) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        return self._places(self._sizes()).astype(np.uint32), self._codes().astype(np.uint32)

    @cached_property
    def _text_sizes(self) -> I64:
        return decode_varints(self._sections["text_sizes"]).astype(np.int64)

    def text(self, number: int) -> str:
        """An anchor text by its number."""
        block, place = divmod(number, BLOCK_TEXTS)
        if block not in self._text_blocks:
            if len(self._text_blocks) >= _BLOCKS_KEPT:
                self._text_blocks.clear()
            sections = self._sections["text_blocks"], self._sections["text_data"]
            self._text_blocks[block] = read_text_block(block, self._text_sizes, *sections)
        return self._text_blocks[block][place]

    def pairs(self) -> tuple[I64, I64, NDArray[np.bool_]]:
        """Every link as (place among targets, place among sources, is taken back)."""
        sizes = self._sizes()
        minus = np.zeros(self.links, dtype=bool)
        minus[self._minus] = True
        return np.repeat(np.arange(len(sizes)), sizes), self._places(sizes), minus

    def columns(self) -> LinkColumns:
        """The whole segment in columns, to be merged with others."""
        sections = self._sections
        _, places, minus = self.pairs()
        table = unpack_texts(sections["text_sizes"], sections["text_blocks"], sections["text_data"])
        return LinkColumns(self.sources, self.present, self.targets, self._sizes(), places, minus, self._codes(), table)


_NONE = np.empty(0, dtype=np.int64)
