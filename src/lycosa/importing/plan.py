"""Which captures the archives hold, in the order of their time: found by one reading, sorted on disk if they are many.

A source is a WARC file, or one that a WACZ file holds: such a file is a ZIP file whose archives are stored as they are,
so that they are read where they are. The plan is the same whenever it is made of the same files: an import that was
killed makes it again and goes on where it was. Memory is bounded, whatever the number of captures.
"""

import heapq
import tempfile
import zipfile
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
import xxhash

from lycosa.errors import SettingsError, StoreError
from lycosa.importing.captures import CAPTURES, date_of
from lycosa.store import WarcReader, WarcRecord

# Larger records are named and left out; a body, its copies while it is read, and the rest stay within 400 MB.
RECORD_BYTES = 48 << 20
NO_REQUEST = 2**64 - 1
_ENTRY = np.dtype([("date", "<f8"), ("source", "<u4"), ("offset", "<u8"), ("request", "<u8")])
_RUN_ENTRIES = 200_000  # sorted at once, 6 MB
_READ_ENTRIES = 4_000  # of each run that is merged
_OPEN_SOURCES = 32
_PROBLEMS_MOST = 1_000
_TOLD_EVERY = 1_000
_ZIP_HEADER_BYTES, _ZIP_LENGTHS = 30, slice(26, 30)

Tell = Callable[[int, int], None]


class Source(NamedTuple):
    """A WARC file, or a part of a file that is one. `name` is how a user knows it."""

    path: Path
    name: str
    inside: tuple[int, int] | None = None

    def open(self, start: int = 0) -> WarcReader:
        return WarcReader(self.path, start=start, inside=self.inside, record_bytes=RECORD_BYTES)


class PlannedCapture(NamedTuple):
    """Where a capture is, and the request that belongs to it."""

    date: float
    source: int
    offset: int
    request: int


def sources_of(paths: Sequence[Path]) -> list[Source]:
    """The WARC files that these files are, or hold; raises SettingsError for what is none."""
    found: list[Source] = []
    for path in paths:
        if path.is_dir():
            raise SettingsError(f"{path} is a folder: name the archive files, such as {path}/*.warc.gz")
        try:
            with path.open("rb") as file:
                start = file.read(4)
        except OSError as error:
            raise SettingsError(f"{path} cannot be read: {error.strerror}") from error
        found += _wacz_sources(path) if start == b"PK\3\4" else [Source(path, str(path))]
    return found


def _wacz_sources(path: Path) -> list[Source]:
    try:
        with zipfile.ZipFile(path) as archive, path.open("rb") as file:
            members = [info for info in archive.infolist() if info.filename.endswith((".warc", ".warc.gz"))]
            for info in members:
                if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
                    raise SettingsError(f"{info.filename} is compressed in {path}: unpack it, and import that file")
            return [Source(path, f"{path}, {info.filename}", _stored_at(file, info)) for info in members]
    except (zipfile.BadZipFile, NotImplementedError):  # cut off before its directory: the records in it may be whole
        return [Source(path, str(path))]
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}") from error


def _stored_at(file: BinaryIO, info: zipfile.ZipInfo) -> tuple[int, int]:
    """Where the bytes of a stored member are: behind its local header, whose lengths are its own."""
    file.seek(info.header_offset)
    header = file.read(_ZIP_HEADER_BYTES)
    lengths = header[_ZIP_LENGTHS]
    start = info.header_offset + len(header) + int.from_bytes(lengths[:2], "little")
    return start + int.from_bytes(lengths[2:], "little"), info.file_size


class ImportPlan:
    """The captures of all sources. Made by `make`; iterate over it as often as needed, from any position."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self.sources = list(sources)
        self.records = Counter[str]()  # of all types
        self.problems: list[str] = []
        self.undated = 0
        self.total = 0
        self.read_bytes = 0
        self._runs: list[BinaryIO] = []
        self._open_readers: OrderedDict[int, WarcReader] = OrderedDict()

    def __repr__(self) -> str:
        return f"<ImportPlan {len(self.sources)} sources, {self.total} captures>"

    @property
    def digest(self) -> bytes:
        """Of the sources, by name and size: whether a plan is the same as before."""
        words = "\n".join(f"{source.name} {source.inside} {source.path.stat().st_size}" for source in self.sources)
        return xxhash.xxh3_128_digest(words.encode("utf-8", "surrogateescape"))

    def tell(self, problem: str) -> None:
        """Keeps a sentence about what could not be imported; of very many, the first ones."""
        if len(self.problems) < _PROBLEMS_MOST:
            self.problems.append(problem)

    def make(self, progress: Tell) -> None:
        """Reads all sources. `progress` hears of bytes read and records found."""
        run = np.empty(_RUN_ENTRIES, dtype=_ENTRY)
        filled, before, found = 0, 0, 0
        for number, source in enumerate(self.sources):
            with source.open() as reader:
                for entry in self._captures(reader, number):
                    run[filled] = entry
                    filled += 1
                    if filled == len(run):
                        self._write(run)
                        filled = 0
                    if (found := found + 1) % _TOLD_EVERY == 0:
                        progress(before + entry[2], self.records.total())
                before += reader.size
        self._write(run[:filled])
        self.read_bytes = before
        progress(before, self.records.total())

    def _captures(self, reader: WarcReader, number: int) -> Iterator[tuple[float, int, int, int]]:
        """The captures of a source. A request belongs to the capture of the same URL next to it."""
        held: tuple[float, int, int, int] | None = None
        held_url, asked_url, asked = "", "", NO_REQUEST
        try:
            for record in reader:
                self.records[record.type if record.type.isalpha() else "unknown"] += 1
                url = record.url or ""
                if record.type == "request":
                    if held is not None and held_url == url and held[3] == NO_REQUEST:
                        held = (*held[:3], record.offset)
                    else:
                        asked_url, asked = url, record.offset
                elif record.type in CAPTURES:
                    if held is not None:
                        yield held
                    date = date_of(record)
                    held_url, request = url, asked if asked_url == url else NO_REQUEST
                    held = None if date is None else (date, number, record.offset, request)
                    if date is None:
                        self.undated += 1
                        self.tell(f"{self.sources[number].name}, byte {record.offset}: no date that can be read")
                    asked_url, asked = "", NO_REQUEST
        except StoreError as error:
            source = self.sources[number]
            is_arc = source.name.lower().endswith((".arc", ".arc.gz"))
            how = "; it is an ARC file: warcio recompress OLD.arc.gz NEW.warc.gz makes a WARC file of it"
            self.tell(str(error).replace(str(source.path), source.name, 1) + how * is_arc)
        else:
            for problem in reader.problems:
                self.tell(f"{self.sources[number].name}, {problem}")
        if held is not None:
            yield held

    def _write(self, run: "np.ndarray[tuple[int], np.dtype[np.void]]") -> None:
        if not len(run):
            return
        order = np.lexsort((run["offset"], run["source"], run["date"]))
        file = tempfile.TemporaryFile()  # noqa: SIM115 -- closed with the plan
        file.write(run[order].tobytes())
        self._runs.append(file)
        self.total += len(run)

    def captures(self) -> Iterator[PlannedCapture]:
        """All captures, the oldest first."""
        return (PlannedCapture(*entry) for entry in heapq.merge(*(_entries(file) for file in self._runs)))

    def read(self, source: int, offset: int) -> WarcRecord:
        """The record at a place of the plan; raises StoreError."""
        reader = self._open_readers.get(source)
        if reader is None:
            if len(self._open_readers) >= _OPEN_SOURCES:
                self._open_readers.popitem(last=False)[1].close()
            reader = self._open_readers[source] = self.sources[source].open()
        self._open_readers.move_to_end(source)
        return reader.record_at(offset)

    def close(self) -> None:
        for reader in self._open_readers.values():
            reader.close()
        for file in self._runs:
            file.close()


def _entries(file: BinaryIO) -> Iterator[tuple[float, int, int, int]]:
    at, size = 0, _READ_ENTRIES * _ENTRY.itemsize
    while True:
        file.seek(at)
        data = file.read(size)
        if not data:
            return
        at += len(data)
        yield from np.frombuffer(data, dtype=_ENTRY).tolist()
