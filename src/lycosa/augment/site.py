"""Tables beside the documents of a static site: written where a document is new or has changed, nowhere else.

A table holds the digest of its document and what was asked for, so a second run reads and compares and writes nothing;
`check` makes every table anew and tells which differ. A table whose document is gone is removed, if it is ours; a file
that has a table's name and is none is the publisher's own and stays as it is. Files are replaced in one step, so a
server never sends half of one. Called by the command line.
"""

import gc
import os
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import msgspec

from lycosa.augment.document import Tables, Wanted, tables_of
from lycosa.augment.files import TYPES, File, bytes_of, documents, folders, unfinished
from lycosa.web import table, tol, tvi
from lycosa.web.table import Refusal, digest_of

NAME_TAKEN = "another document has the table's name"
NOT_OURS = "a file that is no table has the table's name"
CHUNK_BYTES = 3_000_000  # some 30 documents, a tenth of a second
FILE_BYTES = 20_000  # what a document costs beside its bytes
MOST_PROCESSES = 8
TOO_LARGE_BYTES = 64 * 1024 * 1024


class Without(msgspec.Struct, frozen=True):
    """A document that was left without a table, and why; `file` is its path in the site, or that of what is there in
    the table's place."""

    file: str
    reason: str


class Summary(msgspec.Struct):
    """What became of a site's documents and tables. `refused` counts documents without a table, by reason; `without`
    names them."""

    documents: int = 0
    written: int = 0
    unchanged: int = 0
    removed: int = 0
    table_bytes: int = 0
    document_bytes: int = 0
    refused: Counter[str] = msgspec.field(default_factory=Counter)
    without: list[Without] = msgspec.field(default_factory=list)
    stale: list[str] = msgspec.field(default_factory=list)

    def refuse(self, path: Path, reason: str) -> None:
        self.refused[reason] += 1
        self.without.append(Without(str(path), reason))

    def add(self, other: "Summary") -> None:
        for name in self.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


def augment(root: Path, wanted: Wanted, *, check: bool = False) -> Summary:
    """Bring the tables of a site up to date, or with `check` only say in `stale` which are not.

    Raises ValueError for a selector that is none.
    """
    summary = Summary()
    files: list[File] = []
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
    summary.without = [Without(_in_site(each.file, root), each.reason) for each in without]
    return summary


def _in_site(path: str, root: Path) -> str:
    """A path without that of the site; a name that is no UTF-8 is shown as far as it can be."""
    return os.fsencode(path.removeprefix(f"{root}{os.sep}")).decode(errors="replace")


def _each_chunk(take: Callable[[list[File]], Summary], files: list[File]) -> Iterator[Summary]:
    """The work in pieces, on all cores if there is enough of it; a process more costs as much as twenty documents."""
    chunks = _chunks(files)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if len(chunks) < 4 or cores == 1:
        yield from map(take, chunks)
        return
    # What is collected are cycles, of which this work makes none: nodes, rows and bytes go when they are done with.
    with ProcessPoolExecutor(min(cores, len(chunks), MOST_PROCESSES), initializer=gc.disable) as pool:
        yield from pool.map(take, chunks)


def _chunks(files: list[File]) -> list[list[File]]:
    """Pieces of much the same weight, the largest documents first: none of those is left to one core at the end."""
    chunks: list[list[File]] = []
    weight = CHUNK_BYTES
    for file in sorted(files, key=lambda file: (-file.size, file.path)):
        if weight >= CHUNK_BYTES:
            chunks.append([])
            weight = 0
        chunks[-1].append(file)
        weight += file.size + FILE_BYTES
    return chunks


def _take(files: list[File], *, wanted: Wanted, check: bool) -> Summary:
    summary = Summary()
    for file in files:
        summary.documents += 1
        (_check if check else _update)(file, wanted, summary)
    return summary


def _made(file: File, body: bytes, wanted: Wanted, summary: Summary) -> Tables:
    name, kind = file.path.name, TYPES[file.path.suffix.lower()]
    can_have_tvi = not file.is_foreign(tvi.WORD, file.before(tvi.WORD))
    made = tables_of(body, wanted, name=name, content_type=kind, tells_of_tvi=can_have_tvi)
    if made.refused:
        summary.refuse(file.path, made.refused)
    return made


def _read(path: Path, summary: Summary) -> bytes | None:
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


def _update(file: File, wanted: Wanted, summary: Summary) -> None:
    body = _read(file.path, summary)
    if body is None:
        return
    if _is_current(file, digest_of(body), wanted):
        summary.unchanged += 1
        return
    changed = False
    tables = _wanted_tables(file, body, wanted, summary)
    for path, before, content in tables:
        changed |= _put(path, before, content, summary)
    summary.written += changed
    summary.unchanged += bool(tables) and not changed


def _wanted_tables(
    file: File, body: bytes, wanted: Wanted, summary: Summary
) -> list[tuple[Path, bytes | None, bytes | None]]:
    """Where tables are ours to write: their path, what is there and what should be. Files of the publisher's own are
    left out, and with a table of links that cannot be written the other, of which it would tell."""
    made = _made(file, body, wanted, summary)
    found: list[tuple[Path, bytes | None, bytes | None]] = []
    for word, content in ((tol.WORD, made.tol), (tvi.WORD, made.tvi)):
        before = file.before(word)
        if not file.is_foreign(word, before):
            found.append((file.beside[word], before, content))
        elif content is not None:
            summary.refuse(file.beside[word], NOT_OURS)
            if word == tol.WORD:
                return []
    return [each for each in found if each[1:] != (None, None)]


def _put(path: Path, before: bytes | None, content: bytes | None, summary: Summary) -> bool:
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


def _is_current(file: File, digest: str, wanted: Wanted) -> bool:
    """Whether both tables were made from this document, by the same wishes."""
    links = _headers(file.before(tol.WORD), tol.WORD)
    if (
        links.get("document") != digest
        or links.get("of") != file.path.name
        or links.get("site", "") != wanted.site
        or links.get("volatile", "") != wanted.selector
    ):
        return False
    volatile = file.before(tvi.WORD)
    return _headers(volatile, tvi.WORD).get("document") == digest if "parts" in links else volatile is None


def _headers(body: bytes | None, word: str) -> dict[str, str]:
    found = table.read_headers(body, word) if body is not None else Refusal.NOT_A_TABLE
    return {} if isinstance(found, Refusal) else found


def _check(file: File, wanted: Wanted, summary: Summary) -> None:
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
