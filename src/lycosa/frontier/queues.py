"""The queues of all hosts, on disk and in memory, and the row of every known URL.

Every change of a URL is one write to the open batch, one to its host's lanes and one to the counts. All three are made
here, so that disk, memory and counts agree. Reads see the committed rows and, over them, what the open batch holds.
Knows nothing of slots and turns: `Frontier` decides, this writes it down. Called in this room only, but for `rows_of`
and `credit`.
"""

import random
from collections.abc import Iterable, Mapping
from itertools import count
from operator import itemgetter

import msgspec

from lycosa.frontier.host_cache import MemoryLimits
from lycosa.frontier.hosts import Host
from lycosa.frontier.lanes import NEVER, LaneWindow, TimedLane
from lycosa.frontier.policy import Policy
from lycosa.frontier.politeness import believed_wait_s
from lycosa.frontier.rows import (
    DUE_COUNTER_BITS,
    DUE_LANE,
    KEY_END,
    RETRY_LANE,
    Origin,
    QueueEntry,
    QueuePosition,
    Reason,
    RequestKind,
    Rows,
    UrlCounts,
    UrlRow,
    UrlState,
    Writes,
)
from lycosa.records import Family
from lycosa.web import url_key

WINDOW_LEAST = 4  # entries in one window, however many hosts there are
DUE_READ = 64  # entries that wait for a time, read at once
LOOK_AGAIN_S = 1.0  # for entries that are in flight or not committed yet


class Queues:
    """The queues of one shard. `hosts` are those in memory."""

    def __init__(
        self,
        rows: Rows,
        batch: Writes,
        policy: Policy,
        hosts: Mapping[bytes, Host],
        counts: UrlCounts,
        memory: MemoryLimits,
    ) -> None:
        self._rows, self._batch, self._policy, self._hosts, self.counts = rows, batch, policy, hosts, counts
        self._memory, self._most_room = memory, policy.walk.leaves or memory.window
        self._link_counter = policy.link_counter
        self.pending: dict[bytes, UrlRow] = {}  # url rows in the batch that is not committed yet
        # Not from 0: a process after this one, with a clock that went back, must not write over what still waits.
        self._due_counter = count(random.getrandbits(DUE_COUNTER_BITS))
        self._fit_windows()

    def __repr__(self) -> str:
        return f"<Queues known={self.counts.known} queued={self.counts.queued} pending={len(self.pending)}>"

    # what is known

    def rows_of(self, keys: list[bytes]) -> list[UrlRow | None]:
        """Return what is known of URLs at this moment, committed or not."""
        found = zip(keys, self._rows.get_many(Family.URL, keys), strict=True)
        return [self.pending.get(key) or (UrlRow.unpack(packed) if packed else None) for key, packed in found]

    def committed(self, keys: list[bytes]) -> list[bytes | None]:
        """Return the packed rows of URLs as the last commit left them: all that the seen test needs."""
        return self._rows.get_many(Family.URL, keys) if keys else []

    def credit(self, href: str) -> float:
        """Return the credit of a queued URL, where the policy ranks."""
        [row] = self.rows_of([url_key(href)])
        return row.position.credit if row and row.position else 0.0

    # in

    def enqueue(
        self,
        host: Host,
        key: bytes,
        path: str,
        credit: float,
        *,
        kind: RequestKind,
        depth: int,
        hops: int = 0,
        origin: Origin = Origin.LINK,
        links: int | None = None,
    ) -> None:
        """Put a URL into the band where it belongs. `links` is the number of links on its page, if known."""
        ranking, walk = self._policy.ranking, self._policy.walk
        band = self._band(credit, host, links) if ranking else 1
        order = walk.order(path) if walk.by_path else host.next_sequence()
        window = host.window(band)
        entry = QueueEntry(window.start + order, path, kind, depth, 0, hops, origin)
        position = QueuePosition(band, order, credit, links if self._link_counter else None) if ranking else None
        # Kept as the least depth, because a host may be found deep in the crawl first and near the seeds later.
        if host.row.entered is None or depth < host.row.entered:
            host.row.entered = depth
        self._put_url(key, UrlRow(UrlState.QUEUED, depth, Reason.NONE, origin, position))
        self._put_entry(host, entry, window)
        # The queue of a host given up stays on disk; its URLs count as failed, by the host's reason (decision 3).
        if host.row.gave_up:
            self.counts.failed[host.row.gave_up] += 1
        else:
            self.counts.queued += 1

    def enqueue_requisite(
        self, host: Host, key: bytes, path: str, *, depth: int, hops: int, now: float, now_unix: float
    ) -> None:
        """Put what a page needs to be shown into the due lane: it goes before the next pages of its host, and no policy
        ranks it."""
        queue_key = host.due.key(now_unix, next(self._due_counter))
        entry = QueueEntry(queue_key, path, RequestKind.REQUISITE, depth, 0, hops)
        self._put_url(key, UrlRow(UrlState.QUEUED, depth))
        self._batch.put(Family.QUEUE, queue_key, entry.pack())
        host.pending[queue_key] = entry
        host.row.queued += 1
        host.row.waits += 1
        host.row.requisites += 1
        if host.row.gave_up:
            self.counts.failed[host.row.gave_up] += 1
        else:
            self.counts.queued += 1
            self.counts.requisites += 1
        host.due.add(entry, now)
        host.touch()

    def enqueue_revisit(
        self, host: Host, path: str, depth: int, origin: Origin, *, now: float, now_unix: float
    ) -> None:
        """Put a finished URL into the due lane, to be visited again before what else its host has."""
        # Its `url` row stays as it is: a page that waits for its next visit is still a page, in all counts and
        # indexes (decision 16). So revisits are counted apart.
        key = host.due.key(now_unix, next(self._due_counter))
        entry = QueueEntry(key, path, RequestKind.REVISIT, depth, origin=origin)
        self._batch.put(Family.QUEUE, key, entry.pack())
        host.pending[key] = entry
        host.row.queued += 1
        host.row.waits += 1
        host.row.revisits += 1
        self.counts.revisiting += 1
        host.due.add(entry, now)
        host.touch()

    def claim(self, host: Host, path: str, kind: RequestKind, depth: int, origin: Origin) -> QueueEntry:
        """Count a URL as queued, without a row in the queue, and return its entry: its answer is there already."""
        host.row.queued += 1
        if kind is RequestKind.REVISIT:
            host.row.revisits += 1
            self.counts.revisiting += not host.row.gave_up
        else:
            host.row.entered = 0 if host.row.entered is None else min(host.row.entered, depth)
            self.counts.queued += 1
        return QueueEntry(host.window(1).start + host.next_sequence(), path, kind, depth, origin=origin)

    def _band(self, credit: float, host: Host, links: int | None) -> int:
        ranking = self._policy.ranking
        assert ranking is not None
        if links is None or self._link_counter is None:
            return ranking.band(credit, host.row)
        return self._link_counter.band_with(links, credit, host.row)

    def _put_entry(self, host: Host, entry: QueueEntry, window: LaneWindow) -> None:
        self._batch.put(Family.QUEUE, entry.key, entry.pack())
        host.add(entry, window, self._room)

    def _put_url(self, key: bytes, row: UrlRow) -> None:
        self.pending[key] = row
        self._batch.put(Family.URL, key, row.pack())

    def _fit_windows(self) -> None:
        # The more hosts are in memory, the smaller each window, so that all of them together stay within bounds; a host
        # with few entries in memory is read from disk more often, which is cheap as long as it is one range.
        self._room = min(self._most_room, max(WINDOW_LEAST, self._memory.windows // max(1, len(self._hosts))))

    # to another place

    def add_evidence(self, host: Host, key: bytes, row: UrlRow, more: float) -> bool:
        """Add to the credit of a queued URL, which may move it to another band; return whether anything has changed."""
        ranking, old = self._policy.ranking, row.position
        if ranking is None or old is None:
            return False
        credit = ranking.combine(old.credit, more)
        position = self._move(host, old, self._band(credit, host, old.links), credit)
        if position is old:
            return False
        self._put_url(key, msgspec.structs.replace(row, position=position))
        return True

    def _move(self, host: Host, old: QueuePosition, band: int, credit: float) -> QueuePosition:
        """Move a queued URL to a band and return its new position; one that is in flight keeps its place."""
        # The order stays: the first of two URLs that rise to a band is still the first there.
        queue_key = host.window(old.band).start + old.order
        if band == old.band or queue_key in host.leased or queue_key in host.out:
            return old if credit == old.credit else QueuePosition(old.band, old.order, credit, old.links)
        entry = host.pending.get(queue_key) or self._entry_at(queue_key)
        if entry is None:  # it waits for its time
            return old
        host.remove(queue_key, old.band)
        self._batch.delete(Family.QUEUE, queue_key)
        window = host.window(band)
        self._put_entry(host, msgspec.structs.replace(entry, key=window.start + old.order), window)
        return QueuePosition(band, old.order, credit, old.links)

    def _entry_at(self, queue_key: bytes) -> QueueEntry | None:
        row = self._rows.get(Family.QUEUE, queue_key)
        return QueueEntry.unpack(queue_key, row) if row else None

    def is_worse(self, host: Host, entry: QueueEntry, credit: float, links: int) -> bool:
        """Return whether a leased URL belongs into a worse band, now that the number of links on its page is known."""
        return self._band(credit, host, links) > entry.lane

    def rerank(self, host: Host, entry: QueueEntry, credit: float, links: int | None) -> None:
        """Put a leased URL back into the band where it belongs by what is known now."""
        band = self._band(credit, host, links)
        # In a timed lane the order is a time: back in a band the URL needs one of the band's own.
        order = entry.order if entry.lane < DUE_LANE else host.next_sequence()
        self._take_out(host, entry)
        host.row.queued -= 1
        window = host.window(band)
        self._put_entry(host, msgspec.structs.replace(entry, key=window.start + order, has_head=True), window)
        position = QueuePosition(band, order, credit, links)
        row = UrlRow(UrlState.QUEUED, entry.depth, origin=entry.origin, position=position)
        self._put_url(host.key + KEY_END + entry.path.encode(), row)

    def postpone(
        self,
        host: Host,
        entry: QueueEntry,
        *,
        due_unix: float,
        due: float,
        tries: int,
        yields_to_others: bool = False,
        failed: str = "",
    ) -> None:
        """Move an entry that is in no window to the due lane, or to the lane of retries if it has `failed`. If it
        `yields_to_others`, it may come before its time once its host has no others."""
        lane = host.retries if failed else host.due
        key = lane.key(due_unix, next(self._due_counter))
        later = msgspec.structs.replace(entry, key=key, tries=tries, is_late=yields_to_others, failed=failed)
        # Out and in with one batch: at no instant is the URL in two lanes on disk, or in none.
        self._take_out(host, entry)
        self._batch.put(Family.QUEUE, key, later.pack())
        host.pending[key] = later
        host.row.waits += not failed
        host.row.retries += bool(failed)
        host.row.late += yields_to_others
        lane.add(later, due)
        host.touch()

    def return_to_queue(self, host: Host, entry: QueueEntry) -> None:
        """Put a leased URL that was not fetched after all at the front of its lane."""
        host.leased.discard(entry.key)
        if entry.lane >= DUE_LANE:
            (host.due if entry.lane == DUE_LANE else host.retries).ready.insert(0, entry)
        else:
            host.window(entry.lane).return_to_queue(entry)
            host.available += 1
        if host.row.gave_up:
            host.forget_queue()

    # out

    def close(self, host: Host, entry: QueueEntry, state: UrlState, reason: Reason) -> None:
        """Finish a URL that is in no window."""
        self._take_out(host, entry)
        row = UrlRow(state, entry.depth, reason, entry.origin)
        self._put_url(host.key + KEY_END + entry.path.encode(), row)
        host.row.queued -= 1
        if entry.kind is RequestKind.REVISIT:
            host.row.revisits -= 1
            self.counts.revisiting -= not host.row.gave_up
        elif host.row.gave_up:  # counted as failed when the host was given up
            self.counts.failed[host.row.gave_up] -= 1
        else:
            self.counts.queued -= 1
        if entry.kind is RequestKind.REQUISITE:
            host.row.requisites -= 1
            self.counts.requisites -= not host.row.gave_up
        if state is UrlState.DROPPED:
            self.counts.dropped[reason] += 1
        host.touch()

    def _take_out(self, host: Host, entry: QueueEntry) -> None:
        """Take an entry that is in no window out of its lane."""
        self._batch.delete(Family.QUEUE, entry.key)
        host.leased.discard(entry.key)
        host.pending.pop(entry.key, None)
        host.out.add(entry.key)
        lane = entry.lane
        if lane == DUE_LANE:
            host.row.waits -= 1
            host.row.late -= entry.is_late
        elif lane == RETRY_LANE:
            host.row.retries -= 1
            if not host.row.retries:  # nobody looks into an empty lane, and its time would have come for ever
                host.retries.at = NEVER

    def give_up(self, host: Host, reason: str) -> None:
        """Let the URLs of a host fail with it. There may be a million of them, so their rows stay (decision 3)."""
        row = host.row
        row.gave_up = reason
        self.counts.queued -= row.queued - row.revisits
        self.counts.revisiting -= row.revisits
        self.counts.requisites -= row.requisites
        self.counts.failed[reason] += row.queued - row.revisits
        host.forget_queue()
        host.touch()

    def revive(self, host: Host) -> None:
        """Queue the URLs of a host that was given up, as before."""
        row = host.row
        self.counts.queued += row.queued - row.revisits
        self.counts.revisiting += row.revisits
        self.counts.requisites += row.requisites
        self.counts.failed[row.gave_up] -= row.queued - row.revisits
        row.gave_up, row.tries, row.robots_tries, row.wait_until = "", 0, 0, 0.0
        host.touch()

    def on_committed(self, batch: Writes) -> None:
        """The batch is on disk; `batch` is the next one."""
        self._batch = batch
        self.pending.clear()
        self._fit_windows()

    # the next entry of a host

    def next_entry(self, host: Host, now: float, now_unix: float) -> QueueEntry | None:
        """Take the next entry of a host: one that is due, or the first of the band whose turn it is. A retry goes when
        there is nothing else, or when the others have had their time."""
        if host.next_entries:
            return host.next_entries.pop(0)
        self._look(host, host.due, now, now_unix)
        # Retries cost what their first try cost, often a whole time-out: they get a share of the host's time, no more,
        # while it has other URLs.
        if host.row.retries and not (host.has_others and host.retries_from > now):
            self._look(host, host.retries, now, now_unix)
            if host.retries.ready:
                return host.retries.ready.pop(0)
        # What waits for the sake of others goes at once where there are none: a crawl does not end up waiting for a
        # trap.
        if not host.available and not host.due.ready and host.row.late and host.late_at <= now and not host.only_due:
            self._read_late(host, now)
        if host.due.ready:
            return host.due.ready.pop(0)
        if host.only_due:
            return None
        band = self._policy.next_band(host)
        if band is None:
            return None
        window = host.windows[band]
        if window.is_spent:
            self._fill(host, window)
        entry = window.take()
        host.available -= entry is not None
        return entry

    def _fill(self, host: Host, window: LaneWindow) -> None:
        """Read on in the direction of the window; one that alternates its direction turns round at the lane's ends."""
        if not window.alternates_direction:
            self._read(host, window)
            return
        for _ in range(3):  # at most: to one end, to the other, and from there on
            if not window.unread:  # all of the lane is here: nothing to read, only to turn round
                window.forwards = not window.forwards
                return
            while not window.is_at_end:  # what a read gives may all be leased or finished
                window.leave()
                self._read(host, window)
                if window.entries:
                    return
            window.forwards = not window.forwards

    def _read(self, host: Host, window: LaneWindow) -> None:
        # From the window's edge, never from the lane's start, where the tombstones of what is done lie.
        room = self._room
        if window.forwards:
            rows = self._rows.scan(Family.QUEUE, window.hi, window.end, limit=room)
            upto = rows[-1][0] + b"\0" if len(rows) == room else window.end
            lo, hi = window.hi, upto
        else:
            rows = self._rows.scan_back(Family.QUEUE, window.start, window.lo, limit=room)
            upto = rows[-1][0] if len(rows) == room else window.start
            lo, hi = upto, window.lo
        found = _unpacked(host, rows)
        found |= {key: entry for key, entry in host.pending.items() if lo <= key < hi}
        window.extend((entry for key, entry in found.items() if key not in host.leased), upto, room)

    def _look(self, host: Host, lane: TimedLane, now: float, now_unix: float) -> None:
        """Take the entries of a lane that are due, and note when the next one is."""
        if lane.ready or lane.at > now:
            return
        lane.next = None
        for key, entry in self._waiting(host, lane):
            if due_in := believed_wait_s(entry.due_unix, now_unix):
                lane.at, lane.next = now + due_in, entry
                return
            lane.ready.append(entry)
            lane.loaded = key + b"\0"
        if lane.ready:
            lane.at = now
        # None could be taken: those that there are are in flight, and may come back to this lane.
        else:
            has_more = host.row.waits if lane is host.due else host.row.retries
            lane.at = now + LOOK_AGAIN_S if has_more > 0 else NEVER

    def _waiting(self, host: Host, lane: TimedLane) -> list[tuple[bytes, QueueEntry]]:
        """Return the next entries of a lane, with those that are not committed yet."""
        loaded, end = lane.loaded, lane.end
        rows = self._rows.scan(Family.QUEUE, loaded, end, limit=DUE_READ)
        found = _unpacked(host, rows)
        upto = rows[-1][0] if len(rows) == DUE_READ else end
        found |= {key: entry for key, entry in host.pending.items() if loaded <= key <= upto and key < end}
        return sorted(((key, entry) for key, entry in found.items() if key not in host.leased), key=itemgetter(0))

    def _read_late(self, host: Host, now: float) -> None:
        """Take entries before their time that waited for the sake of others, of which there are none left."""
        host.due.ready.extend(entry for _, entry in self._waiting(host, host.due) if entry.is_late)
        if not host.due.ready:  # they are in flight, or not committed yet
            host.late_at = now + LOOK_AGAIN_S


def _unpacked(host: Host, rows: Iterable[tuple[bytes, bytes]]) -> dict[bytes, QueueEntry]:
    """Return the entries of rows that were read, without those that the open batch deletes."""
    return {key: QueueEntry.unpack(key, row) for key, row in rows if key not in host.out}
