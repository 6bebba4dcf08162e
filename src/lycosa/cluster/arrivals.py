"""What comes into a shard from others: taken once and in order, and told of only when it is on disk.

How far each sender's rows have come is written in the same commit as their URLs. A sender hears two positions: what is
committed here, so that it sends no more of it, and what is *covered* by what would be restored of this shard, so that
it may forget it. Without copies elsewhere both are the same. Rows: `in:` sender.
"""

from collections.abc import Mapping

from lycosa.cluster.messages import START, Message, Position, Reply, Word, pack_position, unpack_position
from lycosa.cluster.packing import Parcel, unpack
from lycosa.records import Family
from lycosa.store import Batch, State

_PREFIX, _END = b"in:", b"in;"


class Arrivals:
    """How far every sender has come. `is_restorable`: covered is what `cover` says, and no longer every commit."""

    def __init__(self, state: State, *, is_restorable: bool = False) -> None:
        self._is_restorable = is_restorable
        rows = state.walk(Family.META, _PREFIX, _END)
        self._taken = {key[len(_PREFIX) :].decode(): unpack_position(row) for key, row in rows}
        self._writing: dict[str, Position] = {}
        self._committed = dict(self._taken)
        self._covered: dict[str, Position] = {} if is_restorable else dict(self._taken)
        self.rows_taken = 0

    def __repr__(self) -> str:
        return f"<Arrivals from {len(self._taken)} rows={self.rows_taken}>"

    def open(self, message: Message) -> list[Parcel] | None:
        """What is in those rows of a message that were not taken before; None if rows are missing in between."""
        taken = self._taken.get(message.sender, START)
        if message.after > taken:
            return None
        parcels: list[Parcel] = []
        for position, row in message.rows:
            if position > taken:
                parcels += unpack(row)
        return parcels

    def note(self, message: Message) -> None:
        """The URLs of a message are in the open batch."""
        if message.rows:
            last = message.rows[-1][0]
            if last > self._taken.get(message.sender, START):
                self._taken[message.sender] = last
                self._writing[message.sender] = last
                self.rows_taken += 1

    def write(self, batch: Batch) -> None:
        for sender, position in self._writing.items():
            batch.put(Family.META, _PREFIX + sender.encode(), pack_position(position))

    def committed(self) -> None:
        self._committed |= self._writing
        self._writing = {}
        if not self._is_restorable:
            self._covered = self._committed

    def wait_for_copies(self) -> None:
        """From now on covered is what `cover` says, and no longer every commit."""
        self._is_restorable, self._covered = True, {}

    def positions(self) -> dict[str, Position]:
        """How far every sender's rows are on disk: what a checkpoint of now covers."""
        return dict(self._committed)

    def cover(self, positions: Mapping[str, Position]) -> None:
        """A checkpoint with these positions is where it would be restored from."""
        self._covered = dict(positions)

    def reply(self, sender: str, word: Word) -> Reply:
        return Reply(word, self._committed.get(sender, START), self._covered.get(sender, START))
