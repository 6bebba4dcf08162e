"""The books of the frontier: what is queued, where it stands, what became of it, and how many there are of each.

Every change of a URL is one write to the open batch and one to the host's windows, and both are made here, so that
memory, disk and counts agree. Knows nothing of clocks, slots and turns: `frontier.frontier` does, and calls this.
"""

import random
from collections import Counter
from itertools import count

import msgspec

from lycosa.frontier.hosts import Host
from lycosa.frontier.lease import Lease, Watcher
from lycosa.frontier.policy import Policy, Ranking
from lycosa.frontier.rows import (
    DUE_LANE,
    KEY_END,
    RETRY_LANE,
    Entry,
    Kind,
    Origin,
    Reason,
    Rows,
    Standing,
    UrlRow,
    UrlState,
    Writes,
    lane_start,
)
from lycosa.frontier.shelf import Shelf
from lycosa.frontier.timed import DUE_COUNTER_BITS
from lycosa.records import Family
from lycosa.web.url import url_key

FRONTS_URLS = 100_000  # entries in all fronts together
FRONT_MOST, FRONT_LEAST = 512, 4  # entries in one front


class Ledger:
    """See the module. `batch` is the open one; the engine sets it after every commit."""

    def __init__(self, rows: Rows, shelf: Shelf, policy: Policy, *, room: int = FRONT_MOST) -> None:
        self._rows, self.shelf, self.policy, self._most_room = rows, shelf, policy, policy.walk.leaves or room
        self._link_counter = policy.link_counter
        self.batch: Writes | None = None
        self._pending: dict[bytes, UrlRow] = {}  # url rows in the batch that is not committed yet
        # Not from 0: a process after this one, with a clock that went back, must not write over what still waits.
        self._due_counter = count(random.getrandbits(DUE_COUNTER_BITS))
        self.watchers: list[Watcher] = []
        self.known = self.queued = self.revisiting = 0
        self.failed: Counter[str] = Counter()  # URLs of hosts given up, by the host's reason
        self.dropped: Counter[str] = Counter()

    # queued

    def _enqueue(
        self,
        host: Host,
        key: bytes,
        path: str,
        credit: float,
        *,
        kind: Kind,
        depth: int,
        hops: int = 0,
        origin: Origin = Origin.LINK,
        links: int | None = None,
    ) -> None:
        """Puts a URL into the band where it belongs. `links`: how many are on its page, where that is known."""
        ranking = self.policy.ranking
        band = self._band(ranking, credit, host, links) if ranking else 1
        walk = self.policy.walk
        order = walk.order(path) if walk.by_path else host.next_sequence()
        entry = Entry(lane_start(host.key, band) + order, path, kind, depth, 0, hops, origin)
        standing = Standing(band, order, credit, links if self._link_counter else None) if ranking else None
        if host.row.entered is None or depth < host.row.entered:
            host.row.entered = depth
        self._put_url(key, UrlRow(UrlState.QUEUED, depth, Reason.NONE, origin, standing))
        self._put(Family.QUEUE, entry.key, entry.pack())
        host.add(entry, room=self._room())
        self.shelf.touch(host)
        if host.row.gave_up:
            self.failed[host.row.gave_up] += 1
        else:
            self.queued += 1
        for watcher in self.watchers:
            watcher.queued(host, entry)

    def _band(self, ranking: Ranking, credit: float, host: Host, links: int | None) -> int:
        """Where a URL belongs."""
        if links is None or self._link_counter is None:
            return ranking.band(credit, host.row)
        return self._link_counter.band_with(links, credit, host.row)

    def credit(self, href: str) -> float:
        """What spoke for a URL that is queued, where the policy ranks."""
        [row] = self.rows_of([url_key(href)])
        return row.standing.credit if row and row.standing else 0.0

    def rows_of(self, keys: list[bytes]) -> list[UrlRow | None]:
        """What is known of URLs at this moment, committed or not."""
        found = zip(keys, self._rows.get_many(Family.URL, keys), strict=True)
        return [self._pending.get(key) or (UrlRow.unpack(packed) if packed else None) for key, packed in found]

    def _move(self, host: Host, old: Standing, band: int, credit: float, links: int | None) -> Standing:
        """Where a queued URL stands now; one that is under way keeps its place."""
        queue_key = lane_start(host.key, old.band) + old.order
        if band == old.band or queue_key in host.leased or queue_key in host.out:
            is_same = credit == old.credit and links == old.links
            return old if is_same else Standing(old.band, old.order, credit, links)
        entry = host.pending.get(queue_key) or self._entry_at(queue_key)
        if entry is None:  # it waits for its time
            return old
        host.remove(queue_key, old.band)
        self._delete(Family.QUEUE, queue_key)
        new_key = lane_start(host.key, band) + old.order
        self._put(Family.QUEUE, new_key, row := entry.pack())
        host.add(Entry.unpack(new_key, row), room=self._room())
        self.shelf.touch(host)
        return Standing(band, old.order, credit, links)

    def _entry_at(self, queue_key: bytes) -> Entry | None:
        row = self._rows.get(Family.QUEUE, queue_key)
        return Entry.unpack(queue_key, row) if row else None

    def _revive(self, host: Host) -> None:
        row = host.row
        self.queued += row.queued - row.revisits
        self.revisiting += row.revisits
        self.failed[row.gave_up] -= row.queued - row.revisits
        row.gave_up, row.tries, row.robots_tries, row.wait_until = "", 0, 0, 0.0
        self.shelf.touch(host)

    def _room(self) -> int:
        return min(self._most_room, max(FRONT_LEAST, FRONTS_URLS // max(1, len(self.shelf))))

    # settled

    def finish(self, lease: Lease, state: UrlState, reason: Reason = Reason.NONE) -> None:
        """The URL of the lease is settled for good."""
        if lease.entry is not None:
            self._close(lease.host, lease.entry, state, reason)

    def _close(self, host: Host, entry: Entry, state: UrlState, reason: Reason) -> None:
        self._take_out(host, entry)
        row = UrlRow(state, entry.depth, reason, entry.origin)
        self._put_url(host.key + KEY_END + entry.path.encode(), row)
        host.row.queued -= 1
        if entry.kind is Kind.REVISIT:
            host.row.revisits -= 1
            self.revisiting -= not host.row.gave_up
        elif host.row.gave_up:  # counted as failed when the host was given up
            self.failed[host.row.gave_up] -= 1
        else:
            self.queued -= 1
        if state is UrlState.DROPPED:
            self.dropped[reason] += 1
            for watcher in self.watchers:
                watcher.dropped(host, entry, reason)
        self.shelf.touch(host)

    def retry(self, lease: Lease, *, due_unix: float, due: float, failed: str = "", counts: bool = True) -> None:
        """The URL of the lease is asked for again when it is due. If it `failed`, the others of its host go first."""
        host, entry = lease.host, lease.entry
        if entry is None:
            return
        tries = min(entry.tries + counts, 255)
        self._put_off(host, entry, due_unix=due_unix, due=due, tries=tries, failed=failed)

    def _put_off(
        self,
        host: Host,
        entry: Entry,
        *,
        due_unix: float,
        due: float,
        tries: int,
        late: bool = False,
        failed: str = "",
    ) -> None:
        """Moves an entry that is in no window to the due lane, or to that of retries."""
        lane = host.retries if failed else host.due
        key = lane.key(due_unix, next(self._due_counter))
        later = msgspec.structs.replace(entry, key=key, tries=tries, is_late=late, failed=failed)
        self._take_out(host, entry)
        self._put(Family.QUEUE, key, later.pack())
        host.pending[key] = later
        host.row.waits += not failed
        host.row.retries += bool(failed)
        host.row.late += late
        lane.add(later, due)
        self.shelf.touch(host)

    def _take_out(self, host: Host, entry: Entry) -> None:
        """An entry that is in no window leaves its lane."""
        self._delete(Family.QUEUE, entry.key)
        host.leased.discard(entry.key)
        host.pending.pop(entry.key, None)
        host.out.add(entry.key)
        if entry.lane == DUE_LANE:
            host.row.waits -= 1
            host.row.late -= entry.is_late
        elif entry.lane == RETRY_LANE:
            host.row.retries -= 1

    def put_back(self, lease: Lease) -> None:
        """The request was cancelled: the URL is still queued, and goes first."""
        lease.host.awaits_robots = False
        if lease.entry is not None:
            self._give_back(lease.host, lease.entry)

    def goes_next(self, lease: Lease, links: int | None = None) -> None:
        """Something else was asked for in place of the URL of the lease: it stays leased, the next of its host; unless
        its page has so few `links`, by its table, that it belongs into a worse band."""
        if lease.host.row.gave_up:
            self.leave(lease)
        elif lease.entry is not None and not self._sinks(lease, lease.entry, links):
            lease.host.first.append(lease.entry)

    def _sinks(self, lease: Lease, entry: Entry, links: int | None) -> bool:
        counter = self._link_counter
        if links is None or counter is None or entry.lane >= DUE_LANE or entry.origin is Origin.WISH:
            return False
        credit = self.credit(lease.url)
        is_worse = counter.band_with(links, credit, lease.host.row) > entry.lane
        if is_worse:
            self.rejudge(lease, credit, links)
        return is_worse

    def leave(self, lease: Lease) -> None:
        """The host of the lease is given up, or was a moment ago: the URL stays in its queue, on disk."""
        if lease.entry is None:
            return
        self._give_back(lease.host, lease.entry)
        if lease.host.row.gave_up:
            self._forget_queue(lease.host)

    def _give_back(self, host: Host, entry: Entry) -> None:
        host.leased.discard(entry.key)
        if entry.lane >= DUE_LANE:
            (host.due if entry.lane == DUE_LANE else host.retries).ready.insert(0, entry)
        else:
            host.window(entry.lane).give_back(entry)
            host.available += 1

    def _forget_queue(self, host: Host) -> None:
        """What is queued is read anew from disk if the host is wanted again."""
        for window in host.windows.values():
            window.forget()
        host.leased.difference_update([entry.key for entry in host.first])
        host.first.clear()
        host.due.forget(host.row.waits)
        host.retries.forget(host.row.retries)

    def rejudge(self, lease: Lease, credit: float, links: int | None = None) -> None:
        """The head of the page was read, or its table: the URL is queued again where it belongs now."""
        host, entry, ranking = lease.host, lease.entry, self.policy.ranking
        assert entry is not None
        assert ranking is not None
        band = self._band(ranking, credit, host, links)
        order = entry.order if entry.lane < DUE_LANE else host.next_sequence()
        again = msgspec.structs.replace(entry, key=lane_start(host.key, band) + order, has_head=True)
        self._take_out(host, entry)
        host.row.queued -= 1
        self._put(Family.QUEUE, again.key, again.pack())
        host.add(again, room=self._room())
        row = UrlRow(UrlState.QUEUED, entry.depth, origin=entry.origin, standing=Standing(band, order, credit, links))
        self._put_url(host.key + KEY_END + entry.path.encode(), row)
        self.shelf.touch(host)

    # written

    def write_hosts(self) -> None:
        """Puts the rows of all hosts that changed into the batch; the engine calls it before a commit."""
        assert self.batch is not None
        self.shelf.write(self.batch)

    def _put_url(self, key: bytes, row: UrlRow) -> None:
        self._pending[key] = row
        self._put(Family.URL, key, row.pack())

    def _put(self, family: Family, key: bytes, value: bytes) -> None:
        assert self.batch is not None
        self.batch.put(family, key, value)

    def _delete(self, family: Family, key: bytes) -> None:
        assert self.batch is not None
        self.batch.delete(family, key)
