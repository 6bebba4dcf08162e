"""Forgets URLs and hosts: their pages go from the state, the archive and all that is derived, and do not come back.

    1  the list of what is forgotten is written (`store.Forgotten`): from now on nothing of it is admitted
    2  copies of forgotten pages get their own body, and another original
    3  rows of forgotten URLs go, with their counts
    4  their records go from the archive: the others are moved to new files, or they are blanked where they are
    5  link index and ranks are made anew; search indexes, texts and the feed are deleted, the next search makes them
    6  lines of the log and of the inbox go, and the state is compacted, so that nothing is left on the disk

Killed at any moment, it can be run again: every step asks the list, not what an earlier step has left.
"""

import contextlib
import shutil
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from itertools import chain
from pathlib import Path

import msgspec

from lycosa.crawl import EVERY, INBOX_FOLDER, Counters, Totals, counts_row, load_counts
from lycosa.duplicates import INDEX_FOLDER
from lycosa.errors import SettingsError
from lycosa.frontier import HostRow, QueueEntry, RequestKind, UrlRow, UrlState, pack_host, unpack_host
from lycosa.graph import LINK_INDEX_FOLDER, cut_feed, rebuild_link_index
from lycosa.notify import delete_notices
from lycosa.records import Family
from lycosa.recrawl import due_key, history_rows, split_change_key, unpack_change, visit_of
from lycosa.removal.archive import OwnBodies, blank_gone, rewrite_without
from lycosa.search import delete_index
from lycosa.settings import merge, settings_of_folder
from lycosa.store import (
    CLAIMED_PREFIX,
    COPIES_FOLDER,
    Batch,
    CollectionStore,
    Forgotten,
    PageRow,
    doc_key,
    is_sharded,
    pack_row,
    page_at,
    read_entry,
    released_files,
    shard_paths,
    unpack_page,
    write_forgotten,
)
from lycosa.version import __version__
from lycosa.web import url_from_key

AT_ONCE = 1_000  # rows or records in a commit
_KEY_END = b"\0"
_SHA1_BYTES, _DIGEST_BYTES = 20, 16
_LEARNED = (b"mind:", b"plain:", b"copy:")  # rows of what is learned of a host, before its key
_VIA = b"via:"  # before the key of a requisite -> the page that needs it
_OF_URL = (EVERY, b"drop:", _VIA)  # rows of a URL, before its key
_MOMENT, _IMPORTED = b"moment", b"import:"  # the latter + a payload -> the key of the URL that had it


class ArchiveRemoval(StrEnum):
    """What becomes of the records of forgotten pages."""

    REWRITE = "rewrite"
    BLANK = "blank"
    KEEP = "keep"


class Removal(msgspec.Struct):
    """What a removal takes out, or would: known URLs, pages, earlier versions; `copies` of them under other URLs, which
    stay and get their own bodies; records of the archive, and files that had some."""

    urls: int = 0
    pages: int = 0
    versions: int = 0
    copies: int = 0
    records: int = 0
    files: int = 0


Progress = Callable[[str], None]


def plan_removal(path: Path, entries: Sequence[str]) -> Removal:
    """What there is of these URLs and hosts in a collection; nothing is changed."""
    forgotten, found = Forgotten((_entry(entry), "") for entry in entries), Removal()
    with CollectionStore.open(path, read_only=True) as collection:
        for key in _known_keys(collection, forgotten):
            found.urls += 1
            row = page_at(collection.state, key)
            found.pages += row is not None and row.is_page and 0 < row.status < 400
            found.versions += sum(change.is_version for _, change in history_rows(collection.state, key))
    return found


def forget(
    path: Path,
    entries: Sequence[str],
    *,
    archive: ArchiveRemoval = ArchiveRemoval.REWRITE,
    progress: Progress | None = None,
) -> Removal:
    """Forgets URLs and hosts; without any, all that the list has: what an interrupted removal has left."""
    named = [_entry(entry) for entry in entries]
    tell, total = progress or (lambda text: None), Removal()
    with open_shards_to_write(path) as shards:
        if archive is not ArchiveRemoval.KEEP:
            for shard in shards:
                _require_archive_here(shard)
        forgotten = write_forgotten(path, named)
        for shard in shards:
            tell(f"taking pages out of {shard.path}")
            _ShardRemoval(shard, forgotten, total).run(archive, tell)
    for folder in _folders(path):
        _open(folder).close()  # begins a new manifest, without the keys of the files that are gone
    return total


@contextlib.contextmanager
def open_shards_to_write(path: Path) -> Iterator[list[CollectionStore]]:
    """A collection, or all its shards, with the writer's lock held."""
    with contextlib.ExitStack() as opened:
        yield [opened.enter_context(_open(folder)) for folder in _folders(path)]


def undo_forget(path: Path, entries: Sequence[str]) -> list[str]:
    """Takes URLs and hosts off the list: a crawl may find them again. Returns those that were on it."""
    named = [_entry(entry) for entry in entries]
    known = Forgotten.of(path).entries
    write_forgotten(path, named, is_undone=True)
    return [entry for entry in named if entry in known]


def _entry(text: str) -> str:
    entry = read_entry(text)
    if not entry:
        raise SettingsError(f"{text!r} is neither a URL nor the name of a host")
    return entry


def _folders(path: Path) -> list[Path]:
    if not is_sharded(path):
        return [path]
    if any((path / COPIES_FOLDER).glob("*")):
        raise SettingsError(f"{path} has shards on other machines: forget pages there, in the folder of each shard")
    return shard_paths(path)


def _open(path: Path) -> CollectionStore:
    kept = settings_of_folder(path)
    info = {"software": f"lycosa/{__version__}", "format": "WARC File Format 1.1"}
    if kept is None:
        return CollectionStore.open(path, warc_info=info)
    return CollectionStore.open(path, warc_info=info, warc_bytes=merge(kept).warc_bytes)


def _require_archive_here(collection: CollectionStore) -> None:
    away = released_files(collection.state)
    if away:
        raise SettingsError(
            f"{len(away)} archive files of {collection.path} are in a central store, which is not rewritten: --archive"
            " keep takes the pages out of everything else"
        )


class _ForgottenKeys:
    """The keys of what is forgotten."""

    def __init__(self, forgotten: Forgotten) -> None:
        self.urls, self.ranges = forgotten.url_keys, forgotten.host_ranges
        self._set, self._starts = frozenset(self.urls), [start for start, _ in self.ranges]

    def has(self, key: bytes) -> bool:
        at = bisect_right(self._starts, key) - 1
        return key in self._set or (at >= 0 and key < self.ranges[at][1])


def _known_keys(collection: CollectionStore, forgotten: Forgotten) -> Iterator[bytes]:
    """The keys of all URLs of the state that are forgotten."""
    keys, state = _ForgottenKeys(forgotten), collection.state
    for start, end in keys.ranges:
        yield from (key for key, _ in state.walk(Family.URL, start, end))
    in_ranges = _ForgottenKeys(Forgotten((entry, at) for entry, at in forgotten.entries.items() if "/" not in entry))
    yield from (key for key in keys.urls if not in_ranges.has(key) and state.get(Family.URL, key) is not None)


class _ShardRemoval:
    """The removal from one collection, or one shard of it."""

    def __init__(self, collection: CollectionStore, forgotten: Forgotten, total: Removal) -> None:
        self._collection, self._state, self._forgotten, self._total = collection, collection.state, forgotten, total
        self._keys = _ForgottenKeys(forgotten)
        self._totals = load_counts(self._state, Totals)
        kernel = self._totals.kernel
        self._counters = Counters(self._totals)
        self._totals.kernel = kernel
        self._hosts: dict[bytes, HostRow] = {}

    def run(self, archive: ArchiveRemoval, tell: Progress) -> None:
        self._collection.warc.finish_file()
        self._detach_copies()
        self._delete_rows()
        if archive is not ArchiveRemoval.KEEP:
            tell(f"taking records out of the archive of {self._collection.path}")
            edit = rewrite_without if archive is ArchiveRemoval.REWRITE else blank_gone
            done = edit(self._collection, self._forgotten.has_href)
            self._total.records += done.records
            self._total.files += done.files
        tell(f"making anew what is derived from {self._collection.path}")
        self._renew_derived()
        self._clean_logs()
        self._state.compact()

    # copies

    def _detach_copies(self) -> None:
        """Rows that stay and depend on one that goes: by its body, or because it is noted as their original."""
        digests, firsts, batch, count = self._forgotten_digests(), dict[bytes, bytes](), Batch(), 0
        bodies = OwnBodies(self._collection)
        for key, packed in self._state.walk(Family.PAGE):
            if self._keys.has(key):
                continue
            row = unpack_page(packed)
            needs_body = bool(row.place) and int.from_bytes(row.payload_sha1[:8]) in digests
            has_own = needs_body and bodies.give_page(key, row, batch)
            has_new = bool(row.original) and self._forgotten.has_href(row.original)
            if has_new:
                self._give_original(key, row, firsts, batch)
            if has_own or has_new:
                batch.put(Family.PAGE, key, pack_row(row))
                count += 1
            if count >= AT_ONCE:
                self._commit(batch)
                batch, count = Batch(), 0
        for key, packed in self._state.walk(Family.CHANGE):
            change = unpack_change(packed)
            needs_body = bool(change.place) and int.from_bytes(change.payload_sha1[:8]) in digests
            if needs_body and not self._keys.has(split_change_key(key)[0]):
                bodies.give_change(key, change, batch)
        self._commit(batch)

    def _give_original(self, key: bytes, row: PageRow, firsts: dict[bytes, bytes], batch: Batch) -> None:
        """The first of the copies is a page of its own now, the others are its copies."""
        self._counters.remove(row)
        first = firsts.setdefault(row.digest, key)
        row.original, row.is_elsewhere = ("" if first == key else url_from_key(first)), False
        self._counters.add(row)
        if first == key:
            batch.put(Family.DOC, doc_key(row.fingerprint), row.digest + key)
        self._total.copies += 1

    def _forgotten_digests(self) -> "_Digests":
        """The payloads of the pages that go, and of their versions."""
        found = array("Q")
        for key in _known_keys(self._collection, self._forgotten):
            row = page_at(self._state, key)
            changes = (change.payload_sha1 for _, change in history_rows(self._state, key))
            for sha1 in (row.payload_sha1 if row else b"", *changes):
                if sha1:
                    found.append(int.from_bytes(sha1[:8]))
        return _Digests(found)

    # rows

    def _delete_rows(self) -> None:
        batch = Batch()
        for count, key in enumerate(_known_keys(self._collection, self._forgotten), 1):
            self._delete_url(key, batch)
            if count % AT_ONCE == 0:
                self._commit(batch)
                batch = Batch()
        self._delete_queued(batch)
        for start, end in self._keys.ranges:
            for _, packed in self._state.walk(Family.HOST, start, end):
                self._uncount_host(unpack_host(packed))
            families = (Family.URL, Family.QUEUE, Family.PAGE, Family.LINK, Family.VISIT, Family.CHANGE, Family.HOST)
            for family in families:
                batch.delete_range(family, start, end)
            for name in (*_LEARNED, *_OF_URL):
                batch.delete_range(Family.META, name + start, name + end)
        for key, value in self._state.walk(Family.DOC, CLAIMED_PREFIX, CLAIMED_PREFIX[:-1] + b";"):
            if self._keys.has(value[_SHA1_BYTES:]):
                batch.delete(Family.DOC, key)
        for key, value in self._state.walk(Family.META, _IMPORTED, _IMPORTED[:-1] + b";"):
            if self._keys.has(value):
                batch.delete(Family.META, key)
        for key, value in self._state.walk(Family.META, _VIA, _VIA[:-1] + b";"):
            if self._forgotten.has_href(value.decode("utf-8", "replace")):
                batch.delete(Family.META, key)
        delete_notices(self._state, batch, self._forgotten.has_href)
        batch.delete(Family.META, _MOMENT)
        self._commit(batch)

    def _delete_url(self, key: bytes, batch: Batch) -> None:
        """Deletes what is known of a URL but for its place in the queue, and takes its counts back."""
        state, total = self._state, self._total
        packed, row, visit = state.get(Family.URL, key), page_at(state, key), visit_of(state, key)
        url = UrlRow.unpack(packed) if packed else None
        total.urls += 1
        if url is not None and url.state is not UrlState.QUEUED:
            self._totals.known -= 1
            if url.state is UrlState.DROPPED:
                self._totals.dropped[url.reason] -= 1
            elif row is not None:
                self._uncount_page(key, row)
            batch.delete(Family.URL, key)
        if row is not None:
            total.pages += row.is_page and 0 < row.status < 400
            if row.file_num:
                batch.delete(Family.FILE, row.file_num.to_bytes(8))
            first = state.get(Family.DOC, doc_key(row.fingerprint)) if row.fingerprint else None
            if first is not None and first[_DIGEST_BYTES:] == key:
                batch.delete(Family.DOC, doc_key(row.fingerprint))
        for found, change in history_rows(state, key):
            total.versions += change.is_version
            batch.delete(Family.CHANGE, found)
        if visit is not None:
            batch.delete(Family.DUE, due_key(key, visit))
        for name in _OF_URL:
            batch.delete(Family.META, name + key)
        for family in (Family.PAGE, Family.LINK, Family.VISIT):
            batch.delete(family, key)

    def _uncount_page(self, key: bytes, row: PageRow) -> None:
        self._counters.remove(row)
        host = self._host(key)
        if host is None:
            return
        if row.failure or not (row.location or row.is_sitemap or 0 < row.status < 400):
            host.failed -= 1
        elif row.is_page:
            host.pages -= 1

    def _host(self, key: bytes) -> HostRow | None:
        """The row of the host of a URL, to be changed."""
        host_key = key[: key.index(_KEY_END, 2)]
        if host_key not in self._hosts:
            packed = self._state.get(Family.HOST, host_key)
            if packed is None:
                return None
            self._hosts[host_key] = unpack_host(packed)
        return self._hosts[host_key]

    def _delete_queued(self, batch: Batch) -> None:
        """Deletes the entries of forgotten URLs from the queues of hosts that are kept."""
        for host_key in sorted({key[: key.index(_KEY_END, 2)] for key in self._keys.urls}):
            row = self._host(host_key + _KEY_END)
            if row is None or not row.queued:
                continue
            for queue_key, packed in self._state.walk(Family.QUEUE, host_key + _KEY_END, host_key + b"\1"):
                entry = QueueEntry.unpack(queue_key, packed)
                key = host_key + _KEY_END + entry.path.encode()
                if not self._keys.has(key):
                    continue
                is_requisite = entry.kind is RequestKind.REQUISITE
                one = HostRow(queued=1, revisits=_is_revisit(entry), requisites=is_requisite, gave_up=row.gave_up)
                self._uncount_host(one, hosts=0)
                row.take_out(entry)
                batch.delete(Family.QUEUE, queue_key)
                if not _is_revisit(entry):
                    batch.delete(Family.URL, key)

    def _uncount_host(self, row: HostRow, hosts: int = 1) -> None:
        """Takes back what waits in a queue."""
        totals, waiting = self._totals, row.queued - row.revisits
        totals.hosts -= hosts
        totals.known -= waiting
        if row.gave_up:
            totals.failed[row.gave_up] -= waiting
        else:
            totals.queued -= waiting
            totals.revisiting -= row.revisits
            totals.requisites_queued -= row.requisites

    def _commit(self, batch: Batch) -> None:
        for host_key, row in self._hosts.items():
            if not self._keys.has(host_key):  # those go as a whole, with the last batch
                batch.put(Family.HOST, host_key, pack_host(row))
        batch.put(*counts_row(self._totals))
        self._collection.commit(batch, sync=True)

    # what is derived

    def _renew_derived(self) -> None:
        path = self._collection.path
        delete_index(path)
        cut_feed(self._state, path)
        shutil.rmtree(path / LINK_INDEX_FOLDER, ignore_errors=True)
        shutil.rmtree(path / INDEX_FOLDER, ignore_errors=True)
        rebuild_link_index(self._collection)

    def _clean_logs(self) -> None:
        _keep_lines(self._collection.log_path, self._is_line_kept)
        inbox = self._collection.path / INBOX_FOLDER
        for file in inbox.glob("*.urls") if inbox.is_dir() else ():
            _keep_lines(file, lambda line: not self._forgotten.has_href(line.partition("\t")[0].strip()))

    def _is_line_kept(self, line: str) -> bool:
        try:
            values = msgspec.json.decode(line, type=dict[str, object]).values()
        except msgspec.DecodeError:
            return False  # a line that was cut off by a crash may hold anything
        entries = self._forgotten.entries
        named = chain.from_iterable(each if isinstance(each, list) else [each] for each in values)
        return not any(isinstance(each, str) and (each in entries or self._forgotten.has_href(each)) for each in named)


class _Digests:
    """A set of 64-bit numbers, in eight bytes each."""

    def __init__(self, numbers: "array[int]") -> None:
        self._sorted = array("Q", sorted(numbers))

    def __contains__(self, number: int) -> bool:
        at = bisect_right(self._sorted, number) - 1
        return at >= 0 and self._sorted[at] == number


def _is_revisit(entry: QueueEntry) -> bool:
    return entry.kind is RequestKind.REVISIT


def _keep_lines(path: Path, is_kept: Callable[[str], bool]) -> None:
    """Leaves out the lines of a file that are not kept."""
    if not path.is_file():
        return
    new = path.with_name(f"{path.name}.new")
    has_dropped = False
    with path.open(errors="replace") as lines, new.open("w") as kept:
        for line in lines:
            if is_kept(line):
                kept.write(line)
            else:
                has_dropped = True
    if has_dropped:
        new.replace(path)
    else:
        new.unlink()
