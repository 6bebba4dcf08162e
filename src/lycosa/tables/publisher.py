"""Tables beside the documents of a static site, written where a document is new or has changed.

Tables are made with the crawler's own analyser, so that a crawler finds in them what it would find in the document. A
table holds the digest of its document and the options, so a second run reads, compares and writes nothing; `check`
makes every table anew and tells which differ. A table of ours whose document is gone is removed; a file that has a
table's name and is none belongs to the publisher and stays. Files are replaced in one step, so a server never sends
half of one. Hidden files and folders are not published; pipes, sockets and devices are no files. Called by the command
line, and for single documents by `tables.serving`.
"""

import gc
import os
import re
import stat
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from lycosa.tables.formats import (
    TOL,
    TVI,
    TableRefusal,
    Tol,
    has_xml_parts,
    read_table_headers,
    table_digest,
    table_url,
    tvi_of,
    write_tol,
    write_tvi,
)
from lycosa.web import Links, analyse_page

# The media type that a server gives a file with this ending. Of two documents that share a table's name the one whose
# ending stands first here has the table.
MEDIA_TYPES = {
    ".html": "text/html",
    ".htm": "text/html",
    ".xhtml": "application/xhtml+xml",
    ".xml": "application/xml",
}
NOT_A_DOCUMENT = "its kind has no links"
NAME_TAKEN = "another document has the table's name"
NOT_OURS = "a file that is no table has the table's name"
CHUNK_BYTES = 3_000_000  # some 30 documents, a tenth of a second
FILE_BYTES = 20_000  # what a document costs beside its bytes
MOST_PROCESSES = 8
TOO_LARGE_BYTES = 64 * 1024 * 1024
_ORDER = {ending: place for place, ending in enumerate(MEDIA_TYPES)}
_UNFINISHED = re.compile(r"\..+\.(?:tol|tvi)\.([1-9][0-9]{0,9})\Z")
_FIRST_LINE = re.compile(rb"(?:\xef\xbb\xbf)?# (tol|tvi) [0-9]+\r?\n")


class AugmentOptions(NamedTuple):
    """The publisher's choices: the origin of the site, and a CSS selector of elements that are volatile."""

    site: str = ""
    selector: str = ""


class DocumentTables(NamedTuple):
    """The tables of a document as bytes. `tvi` is None for a document without volatile parts, `refused` says why there
    is no table of links."""

    tol: bytes | None
    tvi: bytes | None
    refused: str = ""


def tables_of(
    body: bytes, options: AugmentOptions, *, name: str, content_type: str | None, tells_of_tvi: bool = True
) -> DocumentTables:
    """Makes the tables of a document. Raises ValueError for a selector that cannot be parsed.

    With `tells_of_tvi` the TOL says that there is a TVI, if there is one.
    """
    found = analyse_page(body, url=f"http://site.invalid/{name}", content_type=content_type)
    if not found.media.kind.has_links:
        return DocumentTables(None, None, NOT_A_DOCUMENT)
    tvi = tvi_of(body, is_xml=has_xml_parts(body, content_type), selector=options.selector, of=name)
    tvi_bytes = write_tvi(tvi) if tvi else None
    if isinstance(tvi_bytes, TableRefusal):
        tvi = tvi_bytes = None
    tol = Tol(
        found.links or Links(),
        base_href=found.base_href or "",
        robots=", ".join(found.robots),
        of=name,
        document=tvi.document if tvi else table_digest(body),
        site=options.site,
        selector=options.selector,
        volatile=len(tvi.parts) if tvi and tells_of_tvi else 0,
    )
    tol_bytes = write_tol(tol)
    if isinstance(tol_bytes, TableRefusal):
        return DocumentTables(None, tvi_bytes, tol_bytes)
    return DocumentTables(tol_bytes, tvi_bytes)


class SiteDocument(NamedTuple):
    """A document of a static site and the paths of its tables."""

    path: Path
    size: int
    tables: dict[str, Path]  # the word of a table, `tol` or `tvi` → where it is, or would be
    existing: frozenset[str]  # the words of those that exist

    def read_existing(self, word: str) -> bytes | None:
        """The content of a table that exists."""
        return _read_file(self.tables[word]) if word in self.existing else None

    def is_foreign(self, word: str, content: bytes | None) -> bool:
        """Does a file of the publisher's own have the name of this table?"""
        first = _FIRST_LINE.match(content or b"")
        return word in self.existing and (first is None or first[1] != word.encode())


def _walk(root: Path) -> Iterator[tuple[Path, list[str], list[Path]]]:
    """Every folder, the names of its files, and the unfinished tables that killed runs have left in it."""
    for name, folders, files in os.walk(root):
        folders[:] = sorted(folder for folder in folders if not folder.startswith("."))
        unfinished = [path for file in files if file.startswith(".") and _is_abandoned(path := Path(name) / file)]
        yield Path(name), sorted(file for file in files if not file.startswith(".")), unfinished


def _is_abandoned(path: Path) -> bool:
    """Is it an unfinished table whose writer has died? The file's name ends with the writer's process id."""
    writer = _UNFINISHED.match(path.name)
    if writer is None or _is_alive(int(writer[1])):
        return False
    content = _read_file(path)
    return content is not None and (not content or _FIRST_LINE.match(content) is not None)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass  # another user's process
    return True


def _documents(folder: Path, names: list[str], refused: list[Path]) -> Iterator[SiteDocument]:
    """The documents of a folder; those whose table would have the name of another's go into `refused`."""
    table_names, present = set[str](), set(names)
    sizes = {
        name: size for name in names if _ending(name) in MEDIA_TYPES and (size := _size(folder / name)) is not None
    }
    for name in sorted(sizes, key=lambda name: _ORDER[_ending(name)]):
        table_name = table_url(name, TOL) or ""
        if table_name in table_names:
            refused.append(folder / name)
            continue
        table_names.add(table_name)
        tables = {word: folder / (table_url(name, word) or "") for word in (TOL, TVI)}
        existing = frozenset(word for word, path in tables.items() if path.name in present)
        yield SiteDocument(folder / name, sizes[name], tables, existing)


def _ending(name: str) -> str:
    return os.path.splitext(name)[1].lower()  # noqa: PTH122 -- of every file of a site; a Path takes ten times as long


def _read_file(path: Path) -> bytes | None:
    try:
        return None if _size(path) is None else path.read_bytes()
    except OSError:
        return None


def _size(path: Path) -> int | None:
    """The size of a file; None for a pipe, a socket or a device, since reading one may never end."""
    try:
        found = path.stat()
    except OSError:
        return 0  # reading it says what is wrong
    return found.st_size if stat.S_ISREG(found.st_mode) else None


class DocumentWithoutTable(msgspec.Struct, frozen=True):
    """A document that was left without a table, and why. `file` is its path in the site, or the path of the file that
    stands in the table's place."""

    file: str
    reason: str


class AugmentSummary(msgspec.Struct):
    """The counts of a run over a site. `refused` counts documents without a table by reason, `without` names them."""

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


def augment_site(root: Path, options: AugmentOptions, *, check: bool = False) -> AugmentSummary:
    """Brings the tables of a site up to date, or with `check` only says in `stale` which are not.

    Raises ValueError for a selector that cannot be parsed.
    """
    summary = AugmentSummary()
    documents: list[SiteDocument] = []
    orphans: list[Path] = []
    for folder, names, unfinished in _walk(root):
        for path in unfinished if not check else ():
            path.unlink(missing_ok=True)
        refused: list[Path] = []
        found = list(_documents(folder, names, refused))
        for path in refused:
            summary.refuse(path, NAME_TAKEN)
        expected = {path.name for document in found for path in document.tables.values()}
        others = [folder / name for name in names if name.endswith((".tol", ".tvi")) and name not in expected]
        orphans += [path for path in others if _is_orphan(path, names)]
        documents += found
    for done in _in_chunks(partial(_process, options=options, check=check), documents):
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
    """A path relative to the site; what is not UTF-8 in a name is replaced."""
    return os.fsencode(path.removeprefix(f"{root}{os.sep}")).decode(errors="replace")


def _in_chunks(
    process: Callable[[list[SiteDocument]], AugmentSummary], documents: list[SiteDocument]
) -> Iterator[AugmentSummary]:
    """Processes documents on all cores if there are enough of them; one more process costs as much as 20 documents."""
    chunks = _chunks(documents)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if len(chunks) < 4 or cores == 1:
        yield from map(process, chunks)
        return
    from concurrent.futures import ProcessPoolExecutor  # takes a while, and whoever only reads tables needs none

    # The collector looks for cycles, and this work makes none.
    with ProcessPoolExecutor(min(cores, len(chunks), MOST_PROCESSES), initializer=gc.disable) as pool:
        yield from pool.map(process, chunks)


def _chunks(documents: list[SiteDocument]) -> list[list[SiteDocument]]:
    """Chunks of much the same weight, the largest documents first, so that no core is left with one at the end."""
    chunks: list[list[SiteDocument]] = []
    weight = CHUNK_BYTES
    for document in sorted(documents, key=lambda document: (-document.size, document.path)):
        if weight >= CHUNK_BYTES:
            chunks.append([])
            weight = 0
        chunks[-1].append(document)
        weight += document.size + FILE_BYTES
    return chunks


def _process(documents: list[SiteDocument], *, options: AugmentOptions, check: bool) -> AugmentSummary:
    summary = AugmentSummary()
    for document in documents:
        summary.documents += 1
        body = _read_document(document.path, summary)
        if body is None:
            continue
        if not check and _is_current(document, table_digest(body), options):
            summary.unchanged += 1
            continue
        tables = _own_tables(document, body, options, summary)
        outdated = [table for table in tables if table[1] != table[2]]
        for path, old, new in outdated:
            if check:
                why = "missing" if old is None else "not wanted any more" if new is None else "stale"
                summary.stale.append(f"{path}: {why}")
            else:
                _replace(path, new, summary)
        summary.written += bool(outdated) and not check
        summary.unchanged += bool(tables) and not outdated
    return summary


def _read_document(path: Path, summary: AugmentSummary) -> bytes | None:
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


def _own_tables(
    document: SiteDocument, body: bytes, options: AugmentOptions, summary: AugmentSummary
) -> list[tuple[Path, bytes | None, bytes | None]]:
    """The tables that are ours to write: path, old content, new content.

    Files of the publisher's own are left out; if the TOL cannot be written, so is the TVI, of which it would tell.
    """
    made = tables_of(
        body,
        options,
        name=document.path.name,
        content_type=MEDIA_TYPES[document.path.suffix.lower()],
        tells_of_tvi=not document.is_foreign(TVI, document.read_existing(TVI)),
    )
    if made.refused:
        summary.refuse(document.path, made.refused)
    found: list[tuple[Path, bytes | None, bytes | None]] = []
    for word, new in ((TOL, made.tol), (TVI, made.tvi)):
        old = document.read_existing(word)
        if not document.is_foreign(word, old):
            found.append((document.tables[word], old, new))
        elif new is not None:
            summary.refuse(document.tables[word], NOT_OURS)
            if word == TOL:
                return []
    return [each for each in found if each[1:] != (None, None)]


def _replace(path: Path, content: bytes | None, summary: AugmentSummary) -> None:
    """Puts `content` at `path` in one step, or removes what is there."""
    if content is None:
        path.unlink()
        summary.removed += 1
        return
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        unfinished.write_bytes(content)
        unfinished.replace(path)
    except BaseException:  # also Ctrl-C, and a disk that is full
        unfinished.unlink(missing_ok=True)
        raise
    summary.table_bytes += len(content)


def _is_current(document: SiteDocument, digest: str, options: AugmentOptions) -> bool:
    """Were both tables made from this document, with the same options?"""
    links = _headers(document.read_existing(TOL), TOL)
    known = links.get("document"), links.get("of"), links.get("site", ""), links.get("volatile", "")
    if known != (digest, document.path.name, options.site, options.selector):
        return False
    tvi = document.read_existing(TVI)
    return _headers(tvi, TVI).get("document") == digest if "parts" in links else tvi is None


def _headers(body: bytes | None, word: str) -> dict[str, str]:
    found = read_table_headers(body, word) if body is not None else TableRefusal.NOT_A_TABLE
    return {} if isinstance(found, TableRefusal) else found


def _is_orphan(path: Path, names: list[str]) -> bool:
    """Is it a table of ours whose document no longer exists?"""
    headers = _headers(_read_file(path), path.suffix[1:])
    return bool(headers.get("of")) and headers["of"] not in names
