"""Bounds what is kept of old versions: the rows of a page's history, and the space of their records in the archive.

`keep_versions` keeps so many versions of a page, the current one among them; `keep_days` those that stood there within
so many days. What a page was before the oldest version that is kept, its history no longer knows. A row goes in one
commit with a note that its record is dead; a file of which a large part is dead is rewritten without it, in the way of
`store.warc_edit`. Before that, rows that need the body of a version that goes get their own. So it can be killed at any
moment and run again. Called at the end of a crawl and by `lycosa prune`; no crawl runs meanwhile.
"""

import time
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

import msgspec

from lycosa.records import Family
from lycosa.recrawl import DAY_S, ChangeRow, split_change_key, unpack_change, visit_of
from lycosa.removal.archive import OwnBodies, rewrite_files
from lycosa.search import delete_past_indexes
from lycosa.store import (
    Batch,
    CollectionStore,
    WarcLocation,
    WarcRecord,
    begun_moves,
    pack_row,
    patch_locations,
    unpack_page,
    warc_path,
)

DEAD_SHARE = 0.25  # of a file: with more it is rewritten, so that the archive has a third too much at most
AT_ONCE = 10_000  # versions that go together: all rows of the collection are looked through for each such group
_DEAD = b"dead:"  # + the place of a record that no row needs -> nothing


class VersionLimits(NamedTuple):
    """What is kept of a page's versions; None is no limit."""

    versions: int | None = None
    days: float | None = None

    def __bool__(self) -> bool:
        return self != VersionLimits()


class Pruned(msgspec.Struct):
    """What was dropped: versions, and bytes and files of the archive that were freed or rewritten."""

    versions: int = 0
    bytes: int = 0
    files: int = 0


class _OldRow(NamedTuple):
    key: bytes  # of the row
    change: ChangeRow


def prune_versions(collection: CollectionStore, limits: VersionLimits, *, now_s: float | None = None) -> Pruned:
    """Drops the versions that are over the limits, and frees their space where it is worth it."""
    done, now = Pruned(), time.time() if now_s is None else now_s
    old = _old_rows(collection, limits, now)
    while group := _some(old):
        done.versions += sum(row.change.is_version for row in group)
        _drop(collection, group)
    if done.versions:
        delete_past_indexes(collection.path)
    _free_space(collection, done)
    return done


def count_old_versions(collection: CollectionStore, limits: VersionLimits) -> int:
    """The number of versions that are over the limits."""
    return sum(row.change.is_version for row in _old_rows(collection, limits, time.time()))


def _some(rows: Iterator[_OldRow]) -> list[_OldRow]:
    found = list[_OldRow]()
    for row in rows:
        found.append(row)
        if len(found) == AT_ONCE:
            break
    return found


def _old_rows(collection: CollectionStore, limits: VersionLimits, now_s: float) -> Iterator[_OldRow]:
    """The rows of histories that go."""
    rows = ((key, unpack_change(packed)) for key, packed in collection.state.walk(Family.CHANGE))
    for _, history in groupby(rows, key=lambda pair: split_change_key(pair[0])[0]):
        page = list(history)
        first = _first_kept([(split_change_key(key)[1], row) for key, row in page], limits, now_s)
        yield from (_OldRow(key, row) for key, row in page[:first])


def _first_kept(history: Sequence[tuple[float, ChangeRow]], limits: VersionLimits, now_s: float) -> int:
    """The number of rows at the beginning of a history that go; its last version always stays."""
    versions = [at for at, (_, row) in enumerate(history) if row.is_version]
    if not versions:
        return 0
    first = 0
    if limits.versions is not None:
        first = max(0, len(versions) - max(1, limits.versions))
    if limits.days is not None:
        since = now_s - limits.days * DAY_S
        # A version stood there until the next one came.
        gone = sum(history[following][0] < since for following in versions[1:])
        first = max(first, gone)
    return versions[first] if first else 0


def _drop(collection: CollectionStore, group: Sequence[_OldRow]) -> None:
    keys = frozenset(row.key for row in group)
    digests = frozenset(row.change.payload_sha1 for row in group if row.change.place)
    _give_own_bodies(collection, keys, digests)
    needed = _patched_places(collection, {split_change_key(row.key)[0] for row in group}, keys)
    kept = {place for place in _places(collection, keys) if place}
    batch = Batch()
    for row in group:
        batch.delete(Family.CHANGE, row.key)
        if row.change.place and row.change.place not in needed and row.change.place not in kept:
            batch.put(Family.META, _DEAD + row.change.place, b"")
    collection.commit(batch, sync=True)


def _places(collection: CollectionStore, gone: frozenset[bytes]) -> Iterator[bytes]:
    """The places that rows which stay name, of the pages whose rows go."""
    state = collection.state
    for key in {split_change_key(row)[0] for row in gone}:
        if packed := state.get(Family.PAGE, key):
            yield unpack_page(packed).place
        for found, change in state.walk(Family.CHANGE, key + b"\0", key + b"\1"):
            if found not in gone:
                yield unpack_change(change).place


def _give_own_bodies(collection: CollectionStore, gone: frozenset[bytes], digests: frozenset[bytes]) -> None:
    """Rows that stay and have the payload of one that goes: a revisit becomes a record with a body."""
    bodies, batch, state = OwnBodies(collection), Batch(), collection.state
    for key, packed in state.walk(Family.PAGE):
        row = unpack_page(packed)
        before = row.place
        if before and row.payload_sha1 in digests and bodies.give_page(key, row, batch):
            batch.put(Family.PAGE, key, pack_row(row))
            batch.put(Family.META, _DEAD + before, b"")
    for key, packed in state.walk(Family.CHANGE):
        change = unpack_change(packed)
        needs_body = key not in gone and change.place and change.payload_sha1 in digests
        if needs_body and bodies.give_change(key, change, batch):
            batch.put(Family.META, _DEAD + change.place, b"")
    collection.commit(batch, sync=True)


def _patched_places(collection: CollectionStore, pages: set[bytes], gone: frozenset[bytes]) -> set[bytes]:
    """The places of records that versions which stay are patched into whenever they are read."""
    found, state = set[bytes](), collection.state
    for key in pages:
        visit = visit_of(state, key)
        if visit is None or not visit.patches:
            continue
        for row_key, packed in state.walk(Family.CHANGE, key + b"\0", key + b"\1"):
            place = unpack_change(packed).place
            if row_key not in gone and place:
                at = WarcLocation.unpack(place)
                places = patch_locations(collection.record(at), at)
                found |= {places[0].pack()} if places else set()
    return found


# space


def _free_space(collection: CollectionStore, done: Pruned) -> None:
    """Rewrites the files of which a large part is dead."""
    dead = dict[int, set[bytes]]()
    for key, _ in collection.state.walk(Family.META, _DEAD, _DEAD[:-1] + b";"):
        place = key[len(_DEAD) :]
        dead.setdefault(WarcLocation.unpack(place).file_number, set()).add(place)
    open_file = warc_path(collection.warc_folder, collection.warc.number)
    if open_file.exists() and _is_mostly_dead(dead.get(collection.warc.number, set()), open_file.stat().st_size):
        collection.warc.finish_file()
    lengths, begun = collection.finished_files(), begun_moves(collection)
    for number in sorted(set(dead) & set(lengths)):
        if number not in begun and not _is_mostly_dead(dead[number], lengths[number]):
            continue
        _rewrite(collection, number, dead[number])
        done.bytes += _bytes_at(dead[number])
        done.files += 1


def _bytes_at(places: set[bytes]) -> int:
    return sum(WarcLocation.unpack(place).length for place in places)


def _is_mostly_dead(places: set[bytes], length: int) -> bool:
    return bool(places) and _bytes_at(places) >= DEAD_SHARE * length


def _rewrite(collection: CollectionStore, number: int, dead: set[bytes]) -> None:
    ids = {collection.record(WarcLocation.unpack(place)).header("WARC-Record-ID") for place in dead}

    def is_dropped(record: WarcRecord, place: WarcLocation) -> bool:
        names = record.header("WARC-Concurrent-To"), record.header("WARC-Refers-To")
        return place.pack() in dead or not ids.isdisjoint(filter(None, names))

    rewrite_files(collection, [number], is_dropped)
    batch = Batch()
    for place in dead:
        batch.delete(Family.META, _DEAD + place)
    collection.commit(batch, sync=True)
