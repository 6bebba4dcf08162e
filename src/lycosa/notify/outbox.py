"""The outbox: changes that are to be told, kept in the state until everybody has acknowledged them.

    meta   "notice:next"                 → the next sequence number
    meta   "notice:row:" sequence (8)    → Notice, written in the commit that holds the change itself
    meta   "notice:told:" target         → the last sequence that this target has acknowledged

So a change is in the outbox exactly if it is in the history, whatever is killed when. A target that is new hears of
what comes from then on; one that replaces another of its kind goes on where that one stood. Rows that all targets have
acknowledged are deleted. Filled by `Notifier.take`, emptied by `acknowledge`.
"""

from collections.abc import Callable, Sequence

import msgspec

from lycosa.records import Family
from lycosa.store import Batch, State

_NEXT, _ROW, _TOLD = b"notice:next", b"notice:row:", b"notice:told:"
_TOLD_END = b"notice:told;"
_SEQUENCE_BYTES = 8


class Notice(msgspec.Struct, array_like=True, frozen=True):
    """One change, as it is told. `id` is a UUID by which a receiver knows one that comes twice; `added` and `removed`
    are pieces of text, some of them at most."""

    id: str
    url: str
    at_s: float
    word: str
    kind: str
    also: tuple[str, ...] = ()
    where: str = ""
    size: int = 0
    title: str = ""
    status: int = 0
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Notice).decode


class NoticeOutbox:
    """The outbox of one shard, for targets by their ids, which begin with their kind: `webhook:3f2a…`."""

    def __init__(self, state: State, targets: Sequence[str]) -> None:
        self._state = state
        packed = state.get(Family.META, _NEXT)
        self.next = int.from_bytes(packed) if packed else 1
        rows = state.walk(Family.META, _TOLD, _TOLD_END)
        known = {key[len(_TOLD) :].decode(): int.from_bytes(value) for key, value in rows}
        gone = {name: told for name, told in known.items() if name not in targets}
        batch = Batch()
        for name in gone:
            batch.delete(Family.META, _TOLD + name.encode())
        self._told = {name: known[name] if name in known else _begins_at(name, gone, self.next - 1) for name in targets}
        for name in targets:
            if not self.pending(name, 1):  # the rest was forgotten (`delete_notices`)
                self._told[name] = self.next - 1
            batch.put(Family.META, _TOLD + name.encode(), _packed(self._told[name]))
        state.write(batch)

    def __repr__(self) -> str:
        return f"<NoticeOutbox next={self.next} told={self._told}>"

    def append(self, batch: Batch, notice: Notice) -> None:
        """Adds a change to the commit that `batch` will be."""
        batch.put(Family.META, _ROW + _packed(self.next), _encode(notice))
        self.next += 1
        batch.put(Family.META, _NEXT, _packed(self.next))

    def pending(self, target: str, most: int) -> list[tuple[int, Notice]]:
        """The oldest committed changes that a target has not acknowledged, with their sequences."""
        rows = self._state.scan(
            Family.META, _ROW + _packed(self._told[target] + 1), _ROW + _packed(self.next), limit=most
        )
        return [(int.from_bytes(key[len(_ROW) :]), _decode(value)) for key, value in rows]

    def waiting(self, target: str) -> int:
        """How many changes a target has not acknowledged."""
        return self.next - 1 - self._told[target]

    def acknowledge(self, target: str, sequence: int) -> None:
        """A target has taken everything up to a sequence: it is never sent there again. Raises StoreError if the disk
        refuses; it counts in this process all the same."""
        before, self._told[target] = min(self._told.values()), sequence
        batch, after = Batch(), min(self._told.values())
        batch.put(Family.META, _TOLD + target.encode(), _packed(sequence))
        if after > before:
            batch.delete_range(Family.META, _ROW, _ROW + _packed(after + 1))
        self._state.write(batch)


def undelivered_changes(state: State) -> int:
    """How many changes wait for an acknowledgement; of all shards, if the state is that of several."""
    return state.count(Family.META, _ROW, _ROW[:-1] + b";")


def delete_notices(state: State, batch: Batch, is_gone: Callable[[str], bool]) -> None:
    """Deletes the changes of URLs that are gone: nobody hears of them any more."""
    for key, value in state.walk(Family.META, _ROW, _ROW[:-1] + b";"):
        if is_gone(_decode(value).url):
            batch.delete(Family.META, key)


def _packed(number: int) -> bytes:
    return number.to_bytes(_SEQUENCE_BYTES)


def _begins_at(target: str, gone: dict[str, int], last: int) -> int:
    """What a target that is new need not hear: all that was there before, unless it replaces another of its kind."""
    kind = target.partition(":")[0]
    return min((told for name, told in gone.items() if name.partition(":")[0] == kind), default=last)
