"""The link index of a collection: for each URL the pages that point to it (Y5), as segments and a list of them.

    graph/links.json     which segments there are, oldest first, and up to which commit of the feed they cover
    graph/*.links        segments

`LinkIndex` answers; `LinkWriter` also takes pages in, each `add` one more segment and one step in the feed, and has
neighbouring segments of like size joined by a process of its own (`lycosa.graph.merge`). The list is replaced at once,
after the segments it names are on disk: whoever is killed in between leaves files that nobody names, which the next
writer deletes. Any number of readers beside the one writer.
"""

import os
import secrets
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec
import numpy as np

from lycosa.errors import StoreError
from lycosa.graph.columns import LinkChanges, LinkColumns, from_pages, url_id, url_ids
from lycosa.graph.packing import I64, U64
from lycosa.graph.segment import SUFFIX, Inlink, Segment, write_segment
from lycosa.store import storage_error

LINK_INDEX_FOLDER = "graph"
LIST = "links.json"
JOINED_AT_ONCE = 8  # neighbours of like size: each link is then joined about log8(segments) times
SMALL_LINKS = 100_000  # all segments up to this size are alike
_READ_TRIES = 20  # a reader that finds a segment gone reads the list again

Changed = Callable[[U64, I64], None]


class SegmentList(msgspec.Struct, frozen=True):
    """The list of segments."""

    covered: int = 0
    names: tuple[str, ...] = ()


class LinkIndex:
    """The index as it was when opened. `tail` are changes that no segment has yet."""

    def __init__(self, path: Path, listed: SegmentList, segments: Sequence[Segment]) -> None:
        self.path, self.covered = path, listed.covered
        self.segments = list(segments)

    @classmethod
    def open(cls, collection: Path) -> "LinkIndex":
        """The newest list whose segments are all there; an index that is not there is empty."""
        path = collection / LINK_INDEX_FOLDER
        for tried in range(_READ_TRIES):
            listed = read_list(path)
            try:
                return cls(path, listed, [Segment.open(path / name) for name in listed.names])
            except FileNotFoundError as error:  # joined with others just now
                if tried == _READ_TRIES - 1 or listed == read_list(path):
                    raise storage_error(error, path=path, doing="reading the link index") from error
        raise AssertionError

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.path} covered={self.covered} segments={len(self.segments)}>"

    @property
    def links(self) -> int:
        return sum(segment.links for segment in self.segments)

    def lay_over(self, pages: Sequence[LinkChanges]) -> None:
        """Pages that were committed after what is covered, for this reader only."""
        if pages:
            self.segments.append(Segment.of(from_pages(pages)))

    def counts(self, urls: Sequence[str]) -> list[int]:
        """For each normalised URL the number of pages that point to it, itself not counted."""
        return self.counts_of(url_ids(urls)).tolist()  # type: ignore[no-any-return]

    def counts_of(self, ids: U64) -> I64:
        total = np.zeros(len(ids), dtype=np.int64)
        for segment in self.segments:
            total += segment.counts(ids)
        return total

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


class LinkWriter(LinkIndex):
    """The one that takes pages in. `on_change` hears of every `add` which counts it moved, and by how much."""

    def __init__(self, path: Path, listed: SegmentList, segments: Sequence[Segment]) -> None:
        super().__init__(path, listed, segments)
        self.on_change: Changed | None = None
        self._merge: _Merge | None = None
        self._can_join = True

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

    def add(self, pages: Sequence[LinkChanges], covered: int) -> None:
        """Takes in what the feed tells up to commit `covered`; raises StoreError with nothing changed."""
        self.add_all([pages], covered)

    def add_all(self, slices: Iterable[Sequence[LinkChanges]], covered: int) -> None:
        """As `add`, for more pages than one segment should hold: all of them or none."""
        added: list[Segment] = []
        changes: list[LinkColumns] = []
        for pages in slices:
            if not pages:
                continue
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

    def clear(self) -> None:
        """Forgets everything: it is built anew."""
        forgotten = self.segments
        self._install([], 0)
        for segment in forgotten:
            (self.path / segment.name).unlink(missing_ok=True)

    def _install(self, segments: list[Segment], covered: int) -> None:
        write_list(self.path, SegmentList(covered, tuple(segment.name for segment in segments)))
        self.segments, self.covered = segments, covered

    # joining

    def tidy(self) -> None:
        """Takes in what a joining process has made, and starts one where it is time. Cheap; call it now and then."""
        if self._merge is not None:
            if self._merge.process.poll() is None:
                return
            merge, self._merge = self._merge, None
            if merge.process.returncode == 0:
                self._replace(merge)
            else:
                self._can_join = False  # no space, or no processes: a later run tries again
        first = neighbours([segment.links for segment in self.segments]) if self._can_join else None
        if first is not None:
            self._merge = _Merge(self.path, self.segments[first:], is_whole=first == 0)

    def _replace(self, merge: "_Merge") -> None:
        start = self.segments.index(merge.parts[0])
        rest = self.segments[start + len(merge.parts) :]
        joined = Segment.open(self.path / merge.name)
        self._install([*self.segments[:start], joined, *rest], self.covered)
        for part in merge.parts:
            (self.path / part.name).unlink(missing_ok=True)

    def close(self) -> None:
        """Ends a joining process that is under way: its work is done again another time."""
        if self._merge is not None:
            self._merge.process.terminate()
            self._merge.process.wait()
            self._merge = None


class _Merge:
    """A process that joins neighbouring segments into one."""

    def __init__(self, path: Path, parts: Sequence[Segment], *, is_whole: bool) -> None:
        self.parts = list(parts)
        self.name = secrets.token_hex(8) + SUFFIX
        words = ["--whole"] if is_whole else []
        source = str(Path(__file__).parents[2])
        known = os.environ.get("PYTHONPATH")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "lycosa.graph.merge", *words, str(path / self.name)]
            + [str(path / part.name) for part in parts],
            env={**os.environ, "PYTHONPATH": f"{source}{os.pathsep}{known}" if known else source},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is not meant for it
        )


def neighbours(sizes: Sequence[int]) -> int | None:
    """Where the segments begin that should be one: the last eight of like size, and smaller ones among them."""
    levels = [_level(size) for size in sizes]
    for level in sorted(set(levels)):
        start = len(levels)
        while start and levels[start - 1] <= level:
            start -= 1
        if levels[start:].count(level) >= JOINED_AT_ONCE:
            return start
    return None


def _level(links: int) -> int:
    level = 0
    while links > SMALL_LINKS:
        links //= JOINED_AT_ONCE
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
    """Why the folder of the index, or a file in it, cannot be used, in one sentence."""
    folder = path if path.name == LINK_INDEX_FOLDER else path.parent
    if folder.is_file():
        return StoreError(f"{folder} is a file, where the folder of the link index would be: move it away")
    return storage_error(error, path=path, doing=doing)


def write_list(path: Path, listed: SegmentList) -> None:
    hidden = path / f".{LIST}.new"
    try:
        hidden.write_bytes(msgspec.json.encode(listed))
        hidden.replace(path / LIST)
    except OSError as error:
        raise storage_error(error, path=path, doing="writing the link index") from error
