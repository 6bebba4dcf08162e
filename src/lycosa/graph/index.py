"""The link index of a collection: for each URL the pages that point to it, as segments and a list of them.

    graph/links.json     which segments there are, oldest first, and up to which commit of the feed they cover
    graph/*.links        segments (`graph.segments`)

`LinkIndex` answers; `LinkWriter` also adds pages, each `add` one more segment, and merges neighbouring segments of like
size in a process of its own: a busy second thread would cost the crawl more than the work itself, and a process gives
back the memory it took. The list is replaced at once, after the segments it names are on disk: a process that is killed
in between leaves files that no list names, which the next writer deletes. There may be any number of readers beside the
one writer.
"""

import os
import secrets
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from lycosa.errors import StoreError, storage_error, storage_errors
from lycosa.files import replace_file
from lycosa.graph.columns import I64, U64, LinkChanges, LinkColumns, from_pages, join_columns, url_id, url_ids
from lycosa.graph.segments import Inlink, Segment, write_segment
from lycosa.processes import start_helper

SUFFIX = ".links"
LINK_INDEX_FOLDER = "graph"
LIST = "links.json"
MERGED_AT_ONCE = 8  # neighbours of like size: each link is then merged about log8(segments) times
SMALL_LINKS = 100_000  # all segments up to this size are alike
# The first merge waits for more of them: to start its process takes twice the CPU of the work on eight small segments.
SMALL_MERGED_AT_ONCE = 32
_READ_TRIES = 20  # a reader that finds a segment gone reads the list again

Changed = Callable[[U64, I64], None]


class SegmentList(msgspec.Struct, frozen=True):
    """The list of segments."""

    covered: int = 0
    names: tuple[str, ...] = ()


class LinkIndex:
    """The index as it was when opened."""

    def __init__(self, path: Path, listed: SegmentList, segments: Sequence[Segment]) -> None:
        self.path, self.covered = path, listed.covered
        self.segments = list(segments)

    @classmethod
    def open(cls, collection: Path) -> "LinkIndex":
        """Opens the newest list whose segments are all there; an index that is not there is empty."""
        path = collection / LINK_INDEX_FOLDER
        for tried in range(_READ_TRIES):
            listed = read_list(path)
            try:
                return cls(path, listed, [Segment.open(path / name) for name in listed.names])
            except FileNotFoundError as error:  # merged with others just now
                if tried == _READ_TRIES - 1 or listed == read_list(path):
                    raise storage_error(error, path=path, doing="reading the link index") from error
        raise AssertionError

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.path} covered={self.covered} segments={len(self.segments)}>"

    @property
    def links(self) -> int:
        return sum(segment.links for segment in self.segments)

    def overlay(self, pages: Sequence[LinkChanges]) -> None:
        """Adds pages that were committed after what is covered, in memory, for this reader only."""
        if pages:
            self.segments.append(Segment.of(from_pages(pages)))

    def counts(self, urls: Sequence[str]) -> list[int]:
        """The number of pages that point to each normalised URL, itself not counted."""
        ids, total = url_ids(urls), np.zeros(len(urls), dtype=np.int64)
        for segment in self.segments:
            total += segment.counts(ids)
        return total.tolist()

    def links_to(self, urls: Sequence[str]) -> tuple[I64, U64]:
        """The pages that point to some normalised URLs, in two columns: the place of the URL and the FileNum of the
        page, sorted."""
        ids = url_ids(urls)
        rows = [segment.links_to(ids)[:3] for segment in self.segments] if len(urls) else []
        if not rows:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.uint64)
        page, source, is_plus = (np.concatenate(column) for column in zip(*rows, strict=True))
        order = standing_links(page, source, is_plus)
        return page[order], source[order]

    def inlinks(self, url: str) -> list[Inlink]:
        """The pages that point to a URL, with kind and words, in the order of their FileNums."""
        target = url_id(url)
        found: dict[int, Inlink] = {}
        for segment in self.segments:
            for link in segment.inlinks(target):
                if link.is_minus:
                    found.pop(link.source, None)
                else:
                    found[link.source] = link
        return [found[source] for source in sorted(found)]


def standing_links(page: I64, source: U64, is_plus: NDArray[np.bool_]) -> I64:
    """Where in these columns, of all segments with the oldest first, the links are that stand now: sorted, each pair
    once."""
    order = np.lexsort((source, page))  # stable: the newest change of a pair stands last
    page, source = page[order], source[order]
    is_last = np.append((page[1:] != page[:-1]) | (source[1:] != source[:-1]), True) if len(page) else is_plus
    return order[is_last & is_plus[order]]


class LinkWriter(LinkIndex):
    """The one writer of an index. `on_change` is called after every `add` with the counts it moved, and by how much."""

    def __init__(self, path: Path, listed: SegmentList, segments: Sequence[Segment]) -> None:
        super().__init__(path, listed, segments)
        self.on_change: Changed | None = None
        self._merge: _MergeProcess | None = None
        self._can_merge = True

    @classmethod
    def open(cls, collection: Path) -> "LinkWriter":
        path = collection / LINK_INDEX_FOLDER
        try:
            path.mkdir(exist_ok=True)
            try:
                opened = super().open(collection)
            except StoreError:  # after a power loss: it is empty, and so behind the feed
                opened = cls(path, SegmentList(), [])
            named = {segment.name for segment in opened.segments}
            for file in path.iterdir():
                if (file.suffix == SUFFIX or file.name.startswith(".")) and file.name not in named:
                    file.unlink()
        except OSError as error:
            raise not_usable(error, path, doing="opening the link index") from error
        assert isinstance(opened, LinkWriter)
        return opened

    def add(self, slices: Iterable[Sequence[LinkChanges]], covered: int) -> int:
        """Adds the pages of the feed up to sequence `covered`, each slice as one segment: all of them, or none with a
        StoreError. Returns how many pages."""
        added: list[Segment] = []
        changes: list[LinkColumns] = []
        count = 0
        for pages in slices:
            if not pages:
                continue
            count += len(pages)
            columns = from_pages(pages)
            name = secrets.token_hex(8) + SUFFIX
            write_segment(self.path / name, columns)
            added.append(Segment.open(self.path / name))
            if self.on_change is not None and columns.links:
                changes.append(columns)
        self._install([*self.segments, *added], covered)
        for columns in changes:
            starts = np.cumsum(columns.sizes) - columns.sizes
            assert self.on_change is not None
            self.on_change(columns.targets, np.add.reduceat(np.where(columns.minus, -1, 1), starts))
        return count

    def clear(self) -> None:
        """Deletes everything, before a rebuild."""
        forgotten = self.segments
        self._install([], 0)
        for segment in forgotten:
            (self.path / segment.name).unlink(missing_ok=True)

    def _install(self, segments: list[Segment], covered: int) -> None:
        write_list(self.path, SegmentList(covered, tuple(segment.name for segment in segments)))
        self.segments, self.covered = segments, covered

    # merging

    def merge_if_due(self) -> None:
        """Installs the result of a merging process, and starts one where it is time. Cheap; called now and then."""
        if self._merge is not None:
            if self._merge.process.poll() is None:
                return
            merge, self._merge = self._merge, None
            if merge.process.returncode == 0:
                self._replace(merge)
            else:
                self._can_merge = False  # no space, or no processes: a later run tries again
        first = neighbours([segment.links for segment in self.segments]) if self._can_merge else None
        if first is not None:
            self._merge = _MergeProcess(self.path, self.segments[first:], is_whole=first == 0)

    def _replace(self, merge: "_MergeProcess") -> None:
        start = self.segments.index(merge.parts[0])
        rest = self.segments[start + len(merge.parts) :]
        merged = Segment.open(self.path / merge.name)
        self._install([*self.segments[:start], merged, *rest], self.covered)
        for part in merge.parts:
            (self.path / part.name).unlink(missing_ok=True)

    def close(self) -> None:
        """Ends a merging process that is under way: its work is done again another time."""
        if self._merge is not None:
            self._merge.process.terminate()
            self._merge.process.wait()
            self._merge = None


class _MergeProcess:
    """A process that merges neighbouring segments into one; killed at any moment it leaves nothing that counts."""

    def __init__(self, path: Path, parts: Sequence[Segment], *, is_whole: bool) -> None:
        self.parts = list(parts)
        self.name = secrets.token_hex(8) + SUFFIX
        flags = ["--whole"] if is_whole else []
        self.process = start_helper(
            "lycosa.graph.index", *flags, path / self.name, *(path / part.name for part in parts), has_pipes=False
        )


def main() -> None:
    """The merging process: `[--whole] OUT PART…`."""
    os.nice(10)
    out, *parts = (Path(word) for word in sys.argv[1:] if word != "--whole")
    merge_segments(out, parts, is_whole="--whole" in sys.argv)


def merge_segments(out: Path, parts: Sequence[Path], *, is_whole: bool) -> None:
    """Writes one segment for many, oldest first. `is_whole`: there are no older ones."""
    write_segment(out, join_columns([Segment.open(part).columns() for part in parts], is_whole=is_whole))


def neighbours(sizes: Sequence[int]) -> int | None:
    """The place from which segments should be merged: the last of like size, if there are enough of them, and smaller
    ones among them."""
    levels = [_level(size) for size in sizes]
    for level in sorted(set(levels)):
        start = len(levels)
        while start and levels[start - 1] <= level:
            start -= 1
        if levels[start:].count(level) >= (MERGED_AT_ONCE if level else SMALL_MERGED_AT_ONCE):
            return start
    return None


def _level(links: int) -> int:
    level = 0
    while links > SMALL_LINKS:
        links //= MERGED_AT_ONCE
        level += 1
    return level


def read_list(path: Path) -> SegmentList:
    try:
        return msgspec.json.decode((path / LIST).read_bytes(), type=SegmentList)
    except FileNotFoundError:
        return SegmentList()
    except msgspec.DecodeError as error:
        raise StoreError(f"{path / LIST} is damaged: the next crawl into the collection makes it anew") from error
    except OSError as error:
        raise not_usable(error, path / LIST, doing="reading the link index") from error


def not_usable(error: OSError, path: Path, *, doing: str) -> StoreError:
    """The error that says in one sentence why the folder of the index, or a file in it, cannot be used."""
    folder = path if path.name == LINK_INDEX_FOLDER else path.parent
    if folder.is_file():
        return StoreError(f"{folder} is a file, where the folder of the link index would be: move it away")
    return storage_error(error, path=path, doing=doing)


def write_list(path: Path, listed: SegmentList) -> None:
    with storage_errors(path, doing="writing the link index"):
        replace_file(path / LIST, msgspec.json.encode(listed))
