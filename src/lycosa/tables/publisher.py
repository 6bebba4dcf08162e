"""Tables beside the documents of a static site, written where a document is new or has changed.

Tables are made with the crawler's own analyser, so that a crawler finds in them what it would find in the document. A
table holds the digest of its document and the options, so a second run reads, compares and writes nothing; `check`
makes
every table anew and tells which differ. A table of ours whose document is gone is removed; a file that has a table's
name
and is none belongs to the publisher and stays. Files are replaced in one step, so a server never sends half of one.
Hidden files and folders are not published; pipes, sockets and devices are no files. Called by the command line, and for
single documents by `tables.serving`.
"""

import gc
import os
import re
import stat
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from lycosa.tables import formats as table
from lycosa.tables import formats as tol
from lycosa.tables import formats as tvi
from lycosa.tables.formats import TableRefusal, beside, table_digest
from lycosa.web import Links, extract_links


class AugmentOptions(NamedTuple):
    """What the publisher asks for: which origin the site has, and which elements are volatile beside the marked."""

    site: str = ""
    selector: str = ""


class DocumentTables(NamedTuple):
    """The tables of a document as bytes; `tvi` is None where it has no volatile parts, `refused` says why there is no
    table of links."""

    tol: bytes | None
    tvi: bytes | None
    refused: str = ""


NOT_A_DOCUMENT = "its kind has no links"


def tables_of(
    body: bytes, wanted: AugmentOptions, *, name: str, content_type: str | None, tells_of_tvi: bool = True
) -> DocumentTables:
    """The tables of `body`; `tells_of_tvi`: whether that of links says that there is the other, if there is. Raises
    ValueError for a selector that is none."""
    found = extract_links(body, url=f"http://site.invalid/{name}", content_type=content_type)
    if found is None:
        return DocumentTables(None, None, NOT_A_DOCUMENT)
    volatile = tvi.tvi_of(body, is_xml=tvi.is_xml(body, content_type), selector=wanted.selector, of=name)
    volatile_bytes = tvi.write_tvi(volatile) if volatile else None
    if isinstance(volatile_bytes, TableRefusal):
        volatile = volatile_bytes = None
    made = tol.write_tol(
        tol.Tol(
            found.links or Links(),
            base_href=found.base_href or "",
            robots=", ".join(found.robots),
            of=name,
            document=volatile.document if volatile else table_digest(body),
            site=wanted.site,
            selector=wanted.selector,
            volatile=len(volatile.parts) if volatile and tells_of_tvi else 0,
        )
    )
    return (
        DocumentTables(None, volatile_bytes, made)
        if isinstance(made, TableRefusal)
        else DocumentTables(made, volatile_bytes)
    )


# What a server will say of a file, by its ending; the first of two that share a name has the table.
TYPES = {
    ".html": "text/html",
    ".htm": "text/html",
    ".xhtml": "application/xhtml+xml",
    ".xml": "application/xml",
}
_ORDER = {ending: place for place, ending in enumerate(TYPES)}
_WORDS = (tol.TOL, tvi.TVI)
_UNFINISHED = re.compile(r"\..+\.(?:tol|tvi)\.([1-9][0-9]{0,9})\Z")
_FIRST_LINE = re.compile(rb"(?:\xef\xbb\xbf)?# (tol|tvi) [0-9]+\r?\n")


class SiteDocument(NamedTuple):
    """A document and the tables beside it."""

    path: Path
    size: int
    beside: dict[str, Path]  # the word of a table → where it is, or would be
    there: frozenset[str]  # the words of those that are there

    def before(self, word: str) -> bytes | None:
        """What is in a table now."""
        return bytes_of(self.beside[word]) if word in self.there else None

    def is_foreign(self, word: str, before: bytes | None) -> bool:
        """Is what has a table's name the publisher's own?"""
        first = _FIRST_LINE.match(before or b"")
        return word in self.there and (first is None or first[1] != word.encode())


def folders(root: Path) -> Iterator[tuple[Path, list[str], list[Path]]]:
    """Every folder with the names of its files, and with what runs that were killed have left in it."""
    for name, folders, files in os.walk(root):
        folders[:] = sorted(folder for folder in folders if not folder.startswith("."))
        left = [path for file in files if file.startswith(".") and _is_left(path := Path(name) / file)]
        yield Path(name), sorted(file for file in files if not file.startswith(".")), left


def unfinished(path: Path) -> Path:
    """The name of a table until it is whole: it says who writes it."""
    return path.with_name(f".{path.name}.{os.getpid()}")


def _is_left(path: Path) -> bool:
    """Is it an unfinished table whose writer is no more?"""
    writer = _UNFINISHED.match(path.name)
    if writer is None or _is_alive(int(writer[1])):
        return False
    content = bytes_of(path)
    return content is not None and (not content or _FIRST_LINE.match(content) is not None)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass  # somebody else's
    return True


def documents(folder: Path, names: list[str], taken: list[Path]) -> Iterator[SiteDocument]:
    """The documents of a folder; into `taken` go those whose table has a name that is another's."""
    table_names: set[str] = set()
    there = set(names)
    sizes = {name: size for name in names if _ending(name) in TYPES and (size := size_of(folder / name)) is not None}
    for name in sorted(sizes, key=lambda name: _ORDER[_ending(name)]):
        table_name = beside(name, tol.TOL) or ""
        if table_name in table_names:
            taken.append(folder / name)
            continue
        table_names.add(table_name)
        paths = {word: folder / (beside(name, word) or "") for word in _WORDS}
        yield SiteDocument(
            folder / name, sizes[name], paths, frozenset(word for word, path in paths.items() if path.name in there)
        )


def _ending(name: str) -> str:
    return os.path.splitext(name)[1].lower()  # noqa: PTH122 -- of every file of a site; a Path takes ten times as long


def bytes_of(path: Path) -> bytes | None:
    try:
        return None if size_of(path) is None else path.read_bytes()
    except OSError:
        return None


def size_of(path: Path) -> int | None:
    """How long a file is; None for a pipe, a socket or a device: to read one may take for ever."""
    try:
        found = path.stat()
    except OSError:
        return 0  # reading it says what is wrong
    return found.st_size if stat.S_ISREG(found.st_mode) else None


NAME_TAKEN = "another document has the table's name"
NOT_OURS = "a file that is no table has the table's name"
CHUNK_BYTES = 3_000_000  # some 30 documents, a tenth of a second
FILE_BYTES = 20_000  # what a document costs beside its bytes
MOST_PROCESSES = 8
TOO_LARGE_BYTES = 64 * 1024 * 1024


class DocumentWithoutTable(msgspec.Struct, frozen=True):
    """A document that was left without a table, and why; `file` is its path in the site, or that of what is there in
    the table's place."""

    file: str
    reason: str


class AugmentSummary(msgspec.Struct):
    """What became of a site's documents and tables. `refused` counts documents without a table, by reason; `without`
    names them."""

    documents: int = 0
    written: int = 0
    unchanged: int = 0
    removed: int = 0
    table_bytes: int = 0
    document_bytes: int = 0
    refused: Counter[str] = msgspec.field(default_factory=Counter)
    without: list[DocumentWithoutTable] = msgspec.field(default_factory=list)
    stale: list[str] = msgspec.field(default_factory=list)

    def refuse(self, path: Path, reason: str) -> None:
        self.refused[reason] += 1
        self.without.append(DocumentWithoutTable(str(path), reason))

    def add(self, other: "AugmentSummary") -> None:
        for name in self.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


def augment(root: Path, wanted: AugmentOptions, *, check: bool = False) -> AugmentSummary:
    """Bring the tables of a site up to date, or with `check` only say in `stale` which are not.

    Raises ValueError for a selector that is none.
    """
    summary = AugmentSummary()
    files: list[SiteDocument] = []
    orphans: list[Path] = []
    for folder, names, left in folders(root):
        for path in left if not check else ():
            path.unlink(missing_ok=True)
        taken: list[Path] = []
        found = list(documents(folder, names, taken))
        for path in taken:
            summary.refuse(path, NAME_TAKEN)
        kept = {path.name for file in found for path in file.beside.values()}
        tables = [folder / name for name in names if name.endswith((".tol", ".tvi")) and name not in kept]
        orphans += [path for path in tables if _is_orphan(path, names)]
        files += found
    for done in _each_chunk(partial(_take, wanted=wanted, check=check), files):
        summary.add(done)
    for path in orphans:
        if check:
            summary.stale.append(f"{path}: its document is gone")
        else:
            path.unlink()
            summary.removed += 1
    summary.stale = sorted(_in_site(line, root) for line in summary.stale)
    without = sorted(summary.without, key=lambda each: each.file)
    summary.without = [DocumentWithoutTable(_in_site(each.file, root), each.reason) for each in without]
    return summary


def _in_site(path: str, root: Path) -> str:
    """A path without that of the site; a name that is no UTF-8 is shown as far as it can be."""
    return os.fsencode(path.removeprefix(f"{root}{os.sep}")).decode(errors="replace")


def _each_chunk(
    take: Callable[[list[SiteDocument]], AugmentSummary], files: list[SiteDocument]
) -> Iterator[AugmentSummary]:
    """The work in pieces, on all cores if there is enough of it; a process more costs as much as twenty documents."""
    chunks = _chunks(files)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if len(chunks) < 4 or cores == 1:
        yield from map(take, chunks)
        return
    # What is collected are cycles, of which this work makes none: nodes, rows and bytes go when they are done with.
    with ProcessPoolExecutor(min(cores, len(chunks), MOST_PROCESSES), initializer=gc.disable) as pool:
        yield from pool.map(take, chunks)


def _chunks(files: list[SiteDocument]) -> list[list[SiteDocument]]:
    """Pieces of much the same weight, the largest documents first: none of those is left to one core at the end."""
    chunks: list[list[SiteDocument]] = []
    weight = CHUNK_BYTES
    for file in sorted(files, key=lambda file: (-file.size, file.path)):
        if weight >= CHUNK_BYTES:
            chunks.append([])
            weight = 0
        chunks[-1].append(file)
        weight += file.size + FILE_BYTES
    return chunks


def _take(files: list[SiteDocument], *, wanted: AugmentOptions, check: bool) -> AugmentSummary:
    summary = AugmentSummary()
    for file in files:
        summary.documents += 1
        (_check if check else _update)(file, wanted, summary)
    return summary


def _made(file: SiteDocument, body: bytes, wanted: AugmentOptions, summary: AugmentSummary) -> DocumentTables:
    name, kind = file.path.name, TYPES[file.path.suffix.lower()]
    can_have_tvi = not file.is_foreign(tvi.TVI, file.before(tvi.TVI))
    made = tables_of(body, wanted, name=name, content_type=kind, tells_of_tvi=can_have_tvi)
    if made.refused:
        summary.refuse(file.path, made.refused)
    return made


def _read(path: Path, summary: AugmentSummary) -> bytes | None:
    try:
        size = path.stat().st_size
        if size > TOO_LARGE_BYTES:
            summary.refuse(path, "the document is too large")
            return None
        body = path.read_bytes()
    except OSError as error:
        summary.refuse(path, f"the document cannot be read: {error.strerror}")
        return None
    summary.document_bytes += size
    return body


def _update(file: SiteDocument, wanted: AugmentOptions, summary: AugmentSummary) -> None:
    body = _read(file.path, summary)
    if body is None:
        return
    if _is_current(file, table_digest(body), wanted):
        summary.unchanged += 1
        return
    changed = False
    tables = _wanted_tables(file, body, wanted, summary)
    for path, before, content in tables:
        changed |= _put(path, before, content, summary)
    summary.written += changed
    summary.unchanged += bool(tables) and not changed


def _wanted_tables(
    file: SiteDocument, body: bytes, wanted: AugmentOptions, summary: AugmentSummary
) -> list[tuple[Path, bytes | None, bytes | None]]:
    """Where tables are ours to write: their path, what is there and what should be. Files of the publisher's own are
    left out, and with a table of links that cannot be written the other, of which it would tell."""
    made = _made(file, body, wanted, summary)
    found: list[tuple[Path, bytes | None, bytes | None]] = []
    for word, content in ((tol.TOL, made.tol), (tvi.TVI, made.tvi)):
        before = file.before(word)
        if not file.is_foreign(word, before):
            found.append((file.beside[word], before, content))
        elif content is not None:
            summary.refuse(file.beside[word], NOT_OURS)
            if word == tol.TOL:
                return []
    return [each for each in found if each[1:] != (None, None)]


def _put(path: Path, before: bytes | None, content: bytes | None, summary: AugmentSummary) -> bool:
    """Leave `content` at `path`; returns whether anything had to be done."""
    if before == content:
        return False
    if content is None:
        path.unlink()
        summary.removed += 1
        return True
    new = unfinished(path)
    try:
        new.write_bytes(content)
        new.replace(path)
    except BaseException:  # also Ctrl-C, and a disk that is full
        new.unlink(missing_ok=True)
        raise
    summary.table_bytes += len(content)
    return True


def _is_current(file: SiteDocument, digest: str, wanted: AugmentOptions) -> bool:
    """Whether both tables were made from this document, by the same wishes."""
    links = _headers(file.before(tol.TOL), tol.TOL)
    if (
        links.get("document") != digest
        or links.get("of") != file.path.name
        or links.get("site", "") != wanted.site
        or links.get("volatile", "") != wanted.selector
    ):
        return False
    volatile = file.before(tvi.TVI)
    return _headers(volatile, tvi.TVI).get("document") == digest if "parts" in links else volatile is None


def _headers(body: bytes | None, word: str) -> dict[str, str]:
    found = table.read_table_headers(body, word) if body is not None else TableRefusal.NOT_A_TABLE
    return {} if isinstance(found, TableRefusal) else found


def _check(file: SiteDocument, wanted: AugmentOptions, summary: AugmentSummary) -> None:
    body = _read(file.path, summary)
    if body is None:
        return
    tables = _wanted_tables(file, body, wanted, summary)
    is_current = bool(tables)
    for path, before, content in tables:
        if before != content:
            why = "missing" if before is None else "not wanted any more" if content is None else "stale"
            summary.stale.append(f"{path}: {why}")
            is_current = False
    summary.unchanged += is_current


def _is_orphan(path: Path, names: list[str]) -> bool:
    """Is it a table of ours whose document is no longer there?"""
    headers = _headers(bytes_of(path), path.suffix[1:])
    return bool(headers.get("of")) and headers["of"] not in names
