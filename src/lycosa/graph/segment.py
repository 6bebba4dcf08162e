"""A segment: the links of some thousand pages or of a million, as one file that never changes.

    head       magic, length of the table, table: section → (type, offset, bytes)
    total      number of links
    sources    FileNums as differences        gone  places of sources that are no more
    targets    URL ids, sorted: upper 32 bits, and lower 16 bits in target_ends
    sizes      links of each target (1 byte; 255: see large_at, large_sizes)
    starts     links before each 64th target
    links      for each target its sources' places, as differences       link_blocks  byte of each 128th link
    minus      which links are taken back
    codes      anchor text and kind of each link                         code_blocks  byte of each 128th code
    text_*     the anchor texts, each once

Up to `minus` it is the graph, at most two bytes a link on a real site; the rest are the anchors. Read through a memory
map: a question touches a few pages of the file. Written whole under a hidden name, then renamed.
"""

import mmap
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from lycosa.errors import StoreError
from lycosa.graph import texts
from lycosa.graph.columns import KIND_BITS, Columns
from lycosa.graph.sections import ALIGN, MAGIC, mapped, unfolded
from lycosa.graph.varint import I64, U64, decode, deltas, encode
from lycosa.store.failures import failure

BLOCK_TARGETS, BLOCK_LINKS = 64, 128
LARGE = 255
_END_BITS = 16
SUFFIX = ".links"
_ID_SECTIONS = frozenset(
    "sources gone targets target_ends sizes large_at large_sizes starts links link_blocks minus".split()
)
_DEAR = 400  # links: to find those of one target by its blocks takes as long as to decode so many in whole columns


class Inlink(NamedTuple):
    """A page that points somewhere: its FileNum, the kind of the link, its words; or that it no longer does."""

    source: int
    kind: int
    anchor: str
    is_minus: bool


def write(path: Path, columns: Columns) -> None:
    """Writes a segment so that it is there whole or not at all, unless the power fails: then the index is made anew."""
    hidden = path.with_name(f".{path.name}.new")
    sections = _sections(columns)
    table = {name: (str(section.dtype), section.nbytes) for name, section in sections.items()}
    head = msgspec.msgpack.encode(table)
    try:
        with hidden.open("wb") as file:
            file.write(MAGIC + len(head).to_bytes(8, "little") + head)
            for section in sections.values():
                file.write(b"\0" * (-file.tell() % ALIGN))
                file.write(section.tobytes())
        hidden.replace(path)
    except OSError as error:
        raise failure(error, path=path, doing="writing the link index") from error


def _sections(columns: Columns) -> dict[str, NDArray[Any]]:
    ends = np.cumsum(columns.sizes)
    is_large = columns.sizes >= LARGE
    steps = deltas(columns.places)
    steps[(ends - columns.sizes)] = columns.places[ends - columns.sizes]  # each list begins anew
    links, link_starts = encode(steps)
    codes, code_starts = encode(columns.codes)
    return {
        "total": np.array([columns.links], dtype=np.uint64),
        "sources": encode(deltas(columns.sources))[0],
        "gone": np.flatnonzero(~columns.present).astype(np.uint32),
        "targets": (columns.targets >> np.uint64(_END_BITS)).astype(np.uint32),
        "target_ends": columns.targets.astype(np.uint16),
        "sizes": np.minimum(columns.sizes, LARGE).astype(np.uint8),
        "large_at": np.flatnonzero(is_large).astype(np.uint32),
        "large_sizes": columns.sizes[is_large].astype(np.uint32),
        "starts": (ends - columns.sizes)[::BLOCK_TARGETS].astype(np.uint64),
        "links": links,
        "link_blocks": link_starts[::BLOCK_LINKS].astype(np.uint32 if len(links) < 1 << 32 else np.uint64),
        "minus": np.flatnonzero(columns.minus).astype(np.uint32),
        "codes": codes,
        "code_blocks": code_starts[::BLOCK_LINKS].astype(np.uint32 if len(codes) < 1 << 32 else np.uint64),
        **texts.pack(columns.texts),
    }


class Segment:
    """An open segment. The file may be deleted meanwhile: what is open stays readable."""

    def __init__(self, name: str, sections: Mapping[str, NDArray[Any]], size_bytes: int) -> None:
        self.name, self.size_bytes = name, size_bytes
        self._sections = sections
        self._minus: NDArray[np.uint32] = sections["minus"]

    @classmethod
    def open(cls, path: Path) -> "Segment":
        try:
            with path.open("rb") as file:
                data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except FileNotFoundError:
            raise
        except (OSError, ValueError) as error:
            raise StoreError(f"reading the link index failed: {path}: {error}") from error
        try:
            if data[: len(MAGIC)] == MAGIC:
                return cls(path.name, mapped(data), len(data))
        except (ValueError, TypeError, msgspec.DecodeError):
            pass  # cut off
        raise StoreError(f"{path} is damaged: the next crawl into the collection builds the link index anew")

    @classmethod
    def of(cls, columns: Columns) -> "Segment":
        """A segment in memory, of what is not in a file yet."""
        return cls("", _sections(columns), 0)

    def __repr__(self) -> str:
        return f"<Segment {self.name} links={self.links} targets={len(self._sections['targets'])}>"

    @property
    def id_bytes(self) -> int:
        """Bytes of the graph itself, anchors apart."""
        return sum(section.nbytes for name, section in self._sections.items() if name in _ID_SECTIONS)

    @property
    def links(self) -> int:
        return int(self._sections["total"][0])

    @property
    def _sizes(self) -> I64:
        sizes = self._sections["sizes"].astype(np.int64)
        sizes[self._sections["large_at"]] = self._sections["large_sizes"]
        return sizes

    @cached_property
    def sources(self) -> U64:
        return np.cumsum(decode(self._sections["sources"]), dtype=np.uint64)

    @property
    def targets(self) -> U64:
        upper: U64 = self._sections["targets"].astype(np.uint64) << np.uint64(_END_BITS)
        upper |= self._sections["target_ends"]
        return upper

    @property
    def present(self) -> NDArray[np.bool_]:
        is_present = np.ones(len(self.sources), dtype=bool)
        is_present[self._sections["gone"]] = False
        return is_present

    def counts(self, ids: U64) -> I64:
        """For each URL id the pages that point to it, as far as this segment knows; may be negative."""
        at, is_known = self._find(ids)
        counts = np.zeros(len(ids), dtype=np.int64)
        found = at[is_known]
        sizes = self._sections["sizes"][found].astype(np.int64)
        is_large = sizes == LARGE
        if is_large.any():
            sizes[is_large] = self._sections["large_sizes"][
                np.searchsorted(self._sections["large_at"], found[is_large].astype(np.uint32))
            ]
        if len(self._minus):
            sizes -= 2 * np.array([self._minus_in(*self._range(int(place))) for place in found], dtype=np.int64)
        counts[is_known] = sizes
        return counts

    def _find(self, ids: U64) -> tuple[I64, NDArray[np.bool_]]:
        """Where URL ids stand among the targets, and whether they do. Nothing is unpacked: halves are compared."""
        uppers, ends = self._sections["targets"], self._sections["target_ends"]
        upper, end = (ids >> np.uint64(_END_BITS)).astype(np.uint32), ids.astype(np.uint16)
        at = np.searchsorted(uppers, upper).astype(np.int64)
        is_known = np.zeros(len(ids), dtype=bool)
        left = np.flatnonzero(at < len(uppers))
        while len(left := left[uppers[at[left]] == upper[left]]):  # ids with the same upper half are few
            is_known[left] = ends[at[left]] == end[left]
            left = left[~is_known[left]]
            at[left] += 1
            left = left[at[left] < len(uppers)]
        return at, is_known

    def _minus_in(self, start: int, end: int) -> int:
        first, last = np.searchsorted(self._minus, [start, end])
        return int(last - first)

    def _range(self, place: int) -> tuple[int, int]:
        """Where the links of a target begin and end."""
        block = place // BLOCK_TARGETS
        sizes = self._sections["sizes"][block * BLOCK_TARGETS : place + 1].astype(np.int64)
        for large in np.flatnonzero(sizes == LARGE):
            at = np.searchsorted(self._sections["large_at"], np.uint32(block * BLOCK_TARGETS + large))
            sizes[large] = self._sections["large_sizes"][at]
        end = int(self._sections["starts"][block]) + int(sizes.sum())
        return end - int(sizes[-1]), end

    def inlinks(self, target: int) -> list[Inlink]:
        """Who points to a URL id, in the order of the sources."""
        at, is_known = self._find(np.array([target], dtype=np.uint64))
        if not is_known[0]:
            return []
        start, end = self._range(int(at[0]))
        places = np.cumsum(self._numbers("links", "link_blocks", start, end)).astype(np.int64)
        codes = self._numbers("codes", "code_blocks", start, end).astype(np.int64)
        minus = np.isin(np.arange(start, end), self._minus)
        rows = zip(self.sources[places].tolist(), codes.tolist(), minus.tolist(), strict=True)
        return [
            Inlink(source, (code & ((1 << KIND_BITS) - 1)) + 1, self._text(code >> KIND_BITS), is_minus)
            for source, code, is_minus in rows
        ]

    def links_to(self, ids: U64) -> tuple[I64, U64, NDArray[np.bool_], I64]:
        """The links to some URL ids in columns: place among `ids`, source, whether it came or went, code."""
        at, is_known = self._find(ids)
        asked = np.flatnonzero(is_known)
        places, codes, links = (
            self._some_links(at[asked]) if len(asked) * _DEAR < self.links else self._all_links(at[asked])
        )
        sizes = np.array([len(each) for each in links], dtype=np.int64)
        numbers = np.concatenate(links) if len(links) else np.empty(0, dtype=np.int64)
        is_plus = ~np.isin(numbers, self._minus)
        return np.repeat(asked, sizes), self.sources[places], is_plus, codes

    def _some_links(self, targets: I64) -> tuple[I64, I64, list[I64]]:
        """Places of sources, codes, and numbers of the links to targets; only their blocks are read."""
        links = [np.arange(*self._range(int(target)), dtype=np.int64) for target in targets]
        edges = [(int(each[0]), int(each[-1]) + 1) for each in links]
        places = [np.cumsum(self._numbers("links", "link_blocks", *edge)).astype(np.int64) for edge in edges]
        codes = [self._numbers("codes", "code_blocks", *edge).astype(np.int64) for edge in edges]
        empty = [np.empty(0, dtype=np.int64)]
        return np.concatenate(places or empty), np.concatenate(codes or empty), links

    def _all_links(self, targets: I64) -> tuple[I64, I64, list[I64]]:
        """The same from whole columns."""
        starts, places, codes = self._whole
        links = [np.arange(starts[target], starts[target + 1], dtype=np.int64) for target in targets.tolist()]
        chosen = np.concatenate(links) if links else np.empty(0, dtype=np.int64)
        return places[chosen].astype(np.int64), codes[chosen].astype(np.int64), links

    @cached_property
    def _whole(self) -> tuple[I64, NDArray[np.uint32], NDArray[np.uint32]]:
        sizes = self._sizes
        places = unfolded(decode(self._sections["links"]), sizes).astype(np.uint32)
        return np.append(0, np.cumsum(sizes)), places, decode(self._sections["codes"]).astype(np.uint32)

    def _numbers(self, section: str, blocks: str, start: int, end: int) -> U64:
        """The numbers from `start` to `end` of a section; blocks before and after are not touched."""
        first, last = start // BLOCK_LINKS, -(-end // BLOCK_LINKS)
        places, data = self._sections[blocks], self._sections[section]
        stop = int(places[last]) if last < len(places) else len(data)
        skipped = start - first * BLOCK_LINKS
        return decode(data[int(places[first]) : stop])[skipped : skipped + end - start]

    @cached_property
    def _text_sizes(self) -> I64:
        return decode(self._sections["text_sizes"]).astype(np.int64)

    def _text(self, number: int) -> str:
        return texts.read(number, self._text_sizes, self._sections["text_blocks"], self._sections["text_data"])

    def text_block(self, block: int) -> list[str]:
        """The texts of one block, in the order of their numbers."""
        return texts.read_block(block, self._text_sizes, self._sections["text_blocks"], self._sections["text_data"])

    def pairs(self) -> tuple[I64, I64, NDArray[np.bool_]]:
        """Every link as (place among targets, place among sources, is taken back)."""
        sizes = self._sizes
        minus = np.zeros(self.links, dtype=bool)
        minus[self._minus] = True
        return np.repeat(np.arange(len(sizes)), sizes), unfolded(decode(self._sections["links"]), sizes), minus

    def columns(self) -> Columns:
        """All of it, to be joined with others."""
        sections = self._sections
        _, places, minus = self.pairs()
        table = texts.unpack(sections["text_sizes"], sections["text_blocks"], sections["text_data"])
        codes = decode(sections["codes"]).astype(np.int64)
        return Columns(self.sources, self.present, self.targets, self._sizes, places, minus, codes, table)
