"""What a collection keeps of visits: the `visit` row of a page, its history in `change`, and what is due in `due`.

    visit   url key                          → VisitRow
    change  url key · NUL · time (ms)        → ChangeRow: one a change; the first version is written with the first one
    due     time (ms) · url key              → nothing; the time is that of the visit row

A page that was never visited again has none of them: a first crawl writes nothing here. `recrawl.recorder` writes them
in the commit that ends a visit, `recrawl.plan` when a page gets its first time.
"""

from collections.abc import Iterator

import msgspec

from lycosa.records import Family
from lycosa.recrawl.change.content import Masks
from lycosa.recrawl.change.schedule import USUAL, VisitIntervals
from lycosa.recrawl.change.verdict import WORD_OF, ChangedImage, ChangeKind, ChangeWord, Presence
from lycosa.store import State

KEY_END = b"\0"
_VERSIONS = frozenset({ChangeKind.NEW, ChangeKind.TEXT, ChangeKind.STRUCTURE, ChangeKind.IMAGE})
TIME_BYTES = 8


class VisitRow(msgspec.Struct, array_like=True, omit_defaults=True):
    """A page that is visited again. Intervals and rates are in days.

    `digest` is that of the stored content under `masks`. `fails` counts visits in a row that brought nothing, `trouble`
    says why the last one did. `saved` are the bytes that did not have to be sent again. `hint_s` is when its host last
    said that it had changed. `patches` are versions in the history that are no changes: volatile parts from a table,
    whose ETag is `table_etag`; `by_table` counts visits in a row that fetched nothing but that table, `same_tables`
    those among them that found it unchanged.
    """

    checked_s: float = 0.0
    due_s: float = 0.0
    interval: float = 0.0
    rate: float = USUAL.median
    seen: VisitIntervals = VisitIntervals()
    presence: Presence = Presence.PAGE
    digest: bytes = b""
    masks: Masks = Masks()
    visits: int = 0
    changes: int = 0
    fails: int = 0
    saved: int = 0
    hint_s: float = 0.0
    patches: int = 0
    table_etag: str = ""
    by_table: int = 0
    trouble: str = ""
    same_tables: int = 0

    def pack(self) -> bytes:
        return _encode(self)


class ChangeRow(msgspec.Struct, array_like=True, omit_defaults=True):
    """One change. `place` is where the version that it brought is archived, if it brought one. Its sizes and text codes
    are those of its page row, `structure` is the `structure_digest` of its strings. `pictures` are the images of the
    page that have changed; their versions are in their own histories."""

    kind: ChangeKind
    where: str = ""
    size: int = 0
    also: tuple[ChangeKind, ...] = ()
    status: int = 0
    essence: str = ""
    size_bytes: int = 0
    place: bytes = b""
    payload_sha1: bytes = b""
    document_bytes: int = 0
    codes: tuple[int, int, int, int] = (0, 0, 0, 0)
    structure: tuple[int, int, int] = (0, 0, 0)
    pictures: tuple[ChangedImage, ...] = ()

    def pack(self) -> bytes:
        return _encode(self)

    @property
    def is_version(self) -> bool:
        """Did the change bring another document? One that is kept has a place; without an archive the kind tells."""
        return bool(self.place) or (self.kind in _VERSIONS and bool(self.payload_sha1))

    @property
    def word(self) -> ChangeWord:
        return WORD_OF[self.kind]


_encode = msgspec.msgpack.Encoder().encode
_decode_visit = msgspec.msgpack.Decoder(VisitRow).decode
_decode_change = msgspec.msgpack.Decoder(ChangeRow).decode


def unpack_visit(row: bytes) -> VisitRow:
    return _decode_visit(row)


def unpack_change(row: bytes) -> ChangeRow:
    return _decode_change(row)


def visit_of(state: State, key: bytes) -> VisitRow | None:
    row = state.get(Family.VISIT, key)
    return unpack_visit(row) if row else None


def _milliseconds(time_s: float) -> bytes:
    return max(0, int(time_s * 1000)).to_bytes(TIME_BYTES)


def due_key(key: bytes, due_s: float) -> bytes:
    return _milliseconds(due_s) + key


def due_before(now_s: float) -> bytes:
    """The end of the range of keys that are due now."""
    return _milliseconds(now_s + 0.001)


def key_of_due(due: bytes) -> bytes:
    return due[TIME_BYTES:]


def change_key(key: bytes, time_s: float) -> bytes:
    return key + KEY_END + _milliseconds(time_s)


def history(state: State, key: bytes) -> Iterator[tuple[float, ChangeRow]]:
    """The changes of one URL with their times, the oldest first."""
    for found, row in history_rows(state, key):
        yield split_change_key(found)[1], row


def history_rows(state: State, key: bytes) -> Iterator[tuple[bytes, ChangeRow]]:
    """The changes of one URL with the keys of their rows, the oldest first."""
    for found, row in state.walk(Family.CHANGE, key + KEY_END, key + b"\1"):
        yield found, unpack_change(row)


def split_change_key(found: bytes) -> tuple[bytes, float]:
    """The URL key and the time of a key in `change`."""
    at = len(found) - TIME_BYTES
    return found[: at - 1], int.from_bytes(found[at:]) / 1000
