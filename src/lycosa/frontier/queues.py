"""Reading hosts' queues from disk: the next entries of the main lane in one range read, retries when they are due.

Only committed rows can be read, and commits are in order: what is visible of a lane is always its beginning.
A seek starts at the remembered place, never at the lane's start, where the tombstones of what is done lie.
"""

from lycosa.frontier.hosts import Host
from lycosa.frontier.rows import KEY_END, Entry, Lane, Rows, lane_start, queue_key
from lycosa.records import Family

DUE_READ = 64  # retries read at a time
RETRY_COUNTER_BITS = 20  # a retry's sequence is its time in milliseconds and a counter
LOOK_AGAIN_S = 1.0  # for retries that are under way or not committed yet


class Queues:
    """The queues of all hosts, on disk."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def next_entry(self, host: Host, now: float, now_unix: float, *, room: int) -> Entry | None:
        """The next entry of a host: a retry whose time has come, or the first of the front."""
        if not host.due and host.retry_at <= now:
            self._read_due(host, now, now_unix)
        if host.due:
            return host.due.popleft()
        if not host.front and host.has_unread:
            self.read_front(host, room=room)
        return host.front.popleft() if host.front else None

    def read_front(self, host: Host, *, room: int) -> None:
        """Fills the front from where it ends, `room` entries at most."""
        start, end = queue_key(host.key, Lane.MAIN, host.loaded), lane_start(host.key, Lane.RETRY)
        rows = self._rows.scan(Family.QUEUE, start, end, limit=room)
        entries = [Entry.unpack(key, row) for key, row in rows]
        host.front.extend(entry for entry in entries if entry.sequence not in host.leased)
        if len(rows) < room:  # that was all there is on disk
            host.loaded = max(host.loaded, host.committed_tail)
        if entries:
            host.loaded = max(host.loaded, entries[-1].sequence + 1)

    def _read_due(self, host: Host, now: float, now_unix: float) -> None:
        """Takes the retries whose time has come, and notes when the next one is due."""
        end = host.key + KEY_END + bytes((Lane.RETRY + 1,))
        for key, row in self._rows.scan(Family.QUEUE, host.retry_loaded, end, limit=DUE_READ):
            entry = Entry.unpack(key, row)
            due_in = (entry.sequence >> RETRY_COUNTER_BITS) / 1000 - now_unix
            if due_in > 0:
                host.retry_at = now + due_in
                return
            host.due.append(entry)
            host.retry_loaded = key + b"\0"
        if host.due:
            host.retry_at = now
        else:
            host.retry_at = now + LOOK_AGAIN_S if host.row.retries > 0 else float("inf")


def retry_key(host: Host, due_unix: float, counter: int) -> bytes:
    """The key under which a URL waits for its retry; never before what was read already."""
    sequence = int(due_unix * 1000) << RETRY_COUNTER_BITS | counter % (1 << RETRY_COUNTER_BITS)
    if len(host.retry_loaded) > len(lane_start(host.key, Lane.RETRY)):
        sequence = max(sequence, int.from_bytes(host.retry_loaded[-9:-1]) + 1)
    return queue_key(host.key, Lane.RETRY, sequence)
