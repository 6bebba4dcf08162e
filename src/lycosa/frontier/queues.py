"""Reading hosts' queues from disk: the next entries of a lane in one range read, those that wait in their time.

A window is filled from the committed rows and from what is pending in the batch, and leaves out what is leased or
settled. A seek starts at the window's edge, never at the lane's start, where the tombstones of what is done lie.
"""

from operator import itemgetter

from lycosa.frontier.hosts import NEVER, Host, LaneWindow, TimedLane, due_of
from lycosa.frontier.policy import Policy
from lycosa.frontier.rows import QueueEntry, Rows
from lycosa.records import Family

DUE_READ = 64  # entries that wait for a time, read at once
LOOK_AGAIN_S = 1.0  # for entries that are under way or not committed yet


class Queues:
    """The queues of all hosts, on disk."""

    def __init__(self, rows: Rows, policy: Policy) -> None:
        self._rows, self._policy = rows, policy

    def next_entry(self, host: Host, now: float, now_unix: float, *, room: int) -> QueueEntry | None:
        """The next entry of a host: one whose time has come, or the first of the band whose turn it is. One that failed
        goes when there is nothing else, or when the others have had their time."""
        if host.first:
            return host.first.pop(0)
        self._look(host, host.due, now, now_unix)
        if host.row.retries and not (host.has_others and host.retries_from > now):
            self._look(host, host.retries, now, now_unix)
            if host.retries.ready:
                return host.retries.ready.pop(0)
        if not host.available and not host.due.ready and host.row.late and host.late_at <= now and not host.is_held:
            self._read_late(host, now)
        if host.due.ready:
            return host.due.ready.pop(0)
        if host.is_held:
            return None
        band = self._policy.next_band(host)
        if band is None:
            return None
        window = host.windows[band]
        if window.is_spent:
            self._fill(host, window, room)
        entry = window.take()
        host.available -= entry is not None
        return entry

    def _fill(self, host: Host, window: LaneWindow, room: int) -> None:
        """Reads on in the way that the window moves; one that swings turns round at the lane's ends."""
        if not window.swings:
            self._read(host, window, room)
            return
        for _ in range(3):  # at most: to one end, to the other, and from there on
            if not window.unread:  # all of the lane is here: nothing to read, only to turn round
                window.forwards = not window.forwards
                return
            while not window.is_at_end:  # what a read gives may all be leased or settled
                window.leave()
                self._read(host, window, room)
                if window.entries:
                    return
            window.forwards = not window.forwards

    def _read(self, host: Host, window: LaneWindow, room: int) -> None:
        if window.forwards:
            rows = self._rows.scan(Family.QUEUE, window.hi, window.end, limit=room)
            upto = rows[-1][0] + b"\0" if len(rows) == room else window.end
            lo, hi = window.hi, upto
        else:
            rows = self._rows.scan_back(Family.QUEUE, window.start, window.lo, limit=room)
            upto = rows[-1][0] if len(rows) == room else window.start
            lo, hi = upto, window.lo
        found = {key: QueueEntry.unpack(key, row) for key, row in rows if key not in host.out}
        found |= {key: entry for key, entry in host.pending.items() if lo <= key < hi}
        window.extend((entry for key, entry in found.items() if key not in host.leased), upto, room)

    def _look(self, host: Host, lane: TimedLane, now: float, now_unix: float) -> None:
        """Takes the entries of a lane whose time has come, and notes when the next one is due."""
        if lane.ready or lane.at > now:
            return
        lane.next = None
        for key, entry in self._waiting(host, lane):
            due_in = due_of(entry) - now_unix
            if due_in > 0:
                lane.at, lane.next = now + due_in, entry
                return
            lane.ready.append(entry)
            lane.loaded = key + b"\0"
        if lane.ready:
            lane.at = now
        else:  # they are under way, or there are none
            has_more = host.row.waits if lane is host.due else host.row.retries
            lane.at = now + LOOK_AGAIN_S if has_more > 0 else NEVER

    def _waiting(self, host: Host, lane: TimedLane) -> list[tuple[bytes, QueueEntry]]:
        """The next entries of a lane, those among them that are not committed yet."""
        loaded, end = lane.loaded, lane.end
        rows = self._rows.scan(Family.QUEUE, loaded, end, limit=DUE_READ)
        found = {key: QueueEntry.unpack(key, row) for key, row in rows if key not in host.out}
        upto = rows[-1][0] if len(rows) == DUE_READ else end
        found |= {key: entry for key, entry in host.pending.items() if loaded <= key <= upto and key < end}
        return sorted(((key, entry) for key, entry in found.items() if key not in host.leased), key=itemgetter(0))

    def _read_late(self, host: Host, now: float) -> None:
        """Takes entries before their time that waited for the sake of others: there are none."""
        host.due.ready.extend(entry for _, entry in self._waiting(host, host.due) if entry.is_late)
        if not host.due.ready:  # they are under way, or not committed yet
            host.late_at = now + LOOK_AGAIN_S
