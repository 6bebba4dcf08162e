"""A lane whose entries wait for a time: on disk in the order in which they are due, in memory those that are due.

A host has two: `DUE_LANE`, whose entries go before the others of the host when they are due, and `RETRY_LANE`, whose
entries have failed and go behind them. Filled by `frontier.ledger`, read from disk by `frontier.queues`.
"""

from lycosa.frontier.rows import Entry, lane_start

DUE_COUNTER_BITS = 20  # the order in the lane is the time in milliseconds and a counter
NEVER = float("inf")


class TimedLane:
    """One such lane of one host. `ready` are the entries that are due; `at` is when the first of the others is, as far
    as known, and `next` that entry; what lies before the key `loaded` was read."""

    __slots__ = ("at", "loaded", "next", "ready", "start")

    def __init__(self, host_key: bytes, lane: int, *, entries: int) -> None:
        self.start = lane_start(host_key, lane)
        self.ready: list[Entry] = []
        self.forget(entries)

    def __repr__(self) -> str:
        return f"<TimedLane {len(self.ready)} ready, the next at {self.at:.3f}>"

    @property
    def end(self) -> bytes:
        return self.start[:-1] + bytes((self.start[-1] + 1,))

    def forget(self, entries: int) -> None:
        """Everything is to be read anew; there are so many entries."""
        self.ready.clear()
        self.loaded = self.start
        self.at = 0.0 if entries else NEVER
        self.next: Entry | None = None

    def is_due(self, now: float) -> bool:
        return bool(self.ready) or self.at <= now

    def add(self, entry: Entry, due: float) -> None:
        """Counts an entry in that is in the batch."""
        if due < self.at:
            self.at, self.next = due, entry

    def key(self, due_unix: float, counter: int) -> bytes:
        """The key under which a URL waits for its time; never before what was read already.

        Entries of a run before may stand right behind what was read, so a key that would come too early goes to the
        next millisecond rather than to the next number.
        """
        number = counter % (1 << DUE_COUNTER_BITS)
        order = int(due_unix * 1000) << DUE_COUNTER_BITS | number
        if len(self.loaded) > len(self.start):
            loaded = int.from_bytes(self.loaded[-9:-1])
            if order <= loaded:
                order = ((loaded >> DUE_COUNTER_BITS) + 1) << DUE_COUNTER_BITS | number
        return self.start + order.to_bytes(8)


def due_of(entry: Entry) -> float:
    """When an entry of such a lane is due, by the wall clock."""
    return (int.from_bytes(entry.order) >> DUE_COUNTER_BITS) / 1000
