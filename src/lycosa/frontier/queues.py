"""Reading hosts' queues from disk: the next entries of a lane in one range read, those of the due lane in their time.

A window is filled from the committed rows and from what is pending in the batch, and leaves out what is leased or
settled. A seek starts at the window's edge, never at the lane's start, where the tombstones of what is done lie.
"""

from operator import itemgetter

from lycosa.frontier.hosts import Host
from lycosa.frontier.policy import Policy
from lycosa.frontier.rows import DUE_LANE, KEY_END, Entry, Rows, lane_start
from lycosa.frontier.window import Window
from lycosa.records import Family

DUE_READ = 64  # entries of the due lane read at a time
DUE_COUNTER_BITS = 20  # the order in the due lane is the time in milliseconds and a counter
LOOK_AGAIN_S = 1.0  # for entries that are under way or not committed yet


class Queues:
    """The queues of all hosts, on disk."""

    def __init__(self, rows: Rows, policy: Policy) -> None:
        self._rows, self._policy = rows, policy

    def next_entry(self, host: Host, now: float, now_unix: float, *, room: int) -> Entry | None:
        """The next entry of a host: one whose time has come, or the first of the band whose turn it is."""
        if not host.due and host.due_at <= now:
            self._read_due(host, now, now_unix)
        if not host.due and not host.available and host.row.late and host.late_at <= now and not host.is_held:
            self._read_late(host, now)
        if host.due:
            return host.due.popleft()
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

    def _fill(self, host: Host, window: Window, room: int) -> None:
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

    def _read(self, host: Host, window: Window, room: int) -> None:
        if window.forwards:
            rows = self._rows.scan(Family.QUEUE, window.hi, window.end, limit=room)
            upto = rows[-1][0] + b"\0" if len(rows) == room else window.end
            lo, hi = window.hi, upto
        else:
            rows = self._rows.scan_back(Family.QUEUE, window.start, window.lo, limit=room)
            upto = rows[-1][0] if len(rows) == room else window.start
            lo, hi = upto, window.lo
        found = {key: Entry.unpack(key, row) for key, row in rows if key not in host.out}
        found |= {key: entry for key, entry in host.pending.items() if lo <= key < hi}
        window.extend((entry for key, entry in found.items() if key not in host.leased), upto, room)

    def _read_due(self, host: Host, now: float, now_unix: float) -> None:
        """Takes the entries whose time has come, and notes when the next one is due."""
        for key, entry in self._waiting(host):
            due_in = (int.from_bytes(entry.order) >> DUE_COUNTER_BITS) / 1000 - now_unix
            if due_in > 0:
                host.due_at = now + due_in
                return
            host.due.append(entry)
            host.due_loaded = key + b"\0"
        if host.due:
            host.due_at = now
        else:
            host.due_at = now + LOOK_AGAIN_S if host.row.waits > 0 else float("inf")

    def _waiting(self, host: Host) -> list[tuple[bytes, Entry]]:
        """The next entries of the due lane, those among them that are not committed yet."""
        end = host.key + KEY_END + bytes((DUE_LANE + 1,))
        rows = self._rows.scan(Family.QUEUE, host.due_loaded, end, limit=DUE_READ)
        found = {key: Entry.unpack(key, row) for key, row in rows if key not in host.out}
        upto = rows[-1][0] if len(rows) == DUE_READ else end
        found |= {key: entry for key, entry in host.pending.items() if host.due_loaded <= key <= upto and key < end}
        return sorted(((key, entry) for key, entry in found.items() if key not in host.leased), key=itemgetter(0))

    def _read_late(self, host: Host, now: float) -> None:
        """Takes entries before their time that waited for the sake of others: there are none."""
        host.due.extend(entry for _, entry in self._waiting(host) if entry.is_late)
        if not host.due:  # they are under way, or not committed yet
            host.late_at = now + LOOK_AGAIN_S


def due_key(host: Host, due_unix: float, counter: int) -> bytes:
    """The key under which a URL waits for its time; never before what was read already.

    Entries of a run before may stand right behind what was read, so a key that would come too early goes to the next
    millisecond rather than to the next number.
    """
    start = lane_start(host.key, DUE_LANE)
    number = counter % (1 << DUE_COUNTER_BITS)
    order = int(due_unix * 1000) << DUE_COUNTER_BITS | number
    if len(host.due_loaded) > len(start):
        loaded = int.from_bytes(host.due_loaded[-9:-1])
        if order <= loaded:
            order = ((loaded >> DUE_COUNTER_BITS) + 1) << DUE_COUNTER_BITS | number
    return start + order.to_bytes(8)
