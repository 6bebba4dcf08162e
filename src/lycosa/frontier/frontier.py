"""The frontier decides which URL is fetched next, keeps every known URL once, and keeps politeness.

A URL is queued, leased, and then finished, retried or dropped. Every change of a URL is one write to the open batch and
one to the host's windows, so that memory, disk and counts agree. A leased URL keeps its queue row until the commit of
its outcome, so a crash loses nothing. The frontier takes `now`, never reads a clock, and does no I/O of its own: it
reads through `Rows` and writes into the batch. Memory: the hosts with work and the fronts of their queues.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import count, repeat

import msgspec

from lycosa.frontier.host_cache import HostCache, ProcessStart
from lycosa.frontier.hosts import DUE_COUNTER_BITS, LAST_OFFER, NEVER, Host, HostPlace, RobotsJob
from lycosa.frontier.lease import (
    FrontierStats,
    Lease,
    Politeness,
    UrlForwarder,
    Watcher,
    forward_evidence,
    forward_foreign,
)
from lycosa.frontier.policy import HeadReader, Policy, Ranking
from lycosa.frontier.politeness import MARGIN_S, HostGroups, Share
from lycosa.frontier.queues import Queues
from lycosa.frontier.rankings import BREADTH
from lycosa.frontier.rows import (
    DUE_LANE,
    KEY_END,
    RETRY_LANE,
    Origin,
    QueueEntry,
    QueuePosition,
    Reason,
    RequestKind,
    Rows,
    UrlRow,
    UrlState,
    Writes,
    lane_start,
)
from lycosa.frontier.scheduler import HostScheduler
from lycosa.records import Family, Mapped, Response
from lycosa.web import BUCKET_BYTES, Robots, Url, url_key

FRONTS_URLS = 100_000  # entries in all fronts together
FRONT_MOST, FRONT_LEAST = 512, 4  # entries in one front


class Ledger:
    """See the module. `batch` is the open one; the engine sets it after every commit."""

    def __init__(self, rows: Rows, shelf: HostCache, policy: Policy, *, room: int = FRONT_MOST) -> None:
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
        kind: RequestKind,
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
        entry = QueueEntry(lane_start(host.key, band) + order, path, kind, depth, 0, hops, origin)
        standing = QueuePosition(band, order, credit, links if self._link_counter else None) if ranking else None
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

    def _move(self, host: Host, old: QueuePosition, band: int, credit: float, links: int | None) -> QueuePosition:
        """Where a queued URL stands now; one that is under way keeps its place."""
        queue_key = lane_start(host.key, old.band) + old.order
        if band == old.band or queue_key in host.leased or queue_key in host.out:
            is_same = credit == old.credit and links == old.links
            return old if is_same else QueuePosition(old.band, old.order, credit, links)
        entry = host.pending.get(queue_key) or self._entry_at(queue_key)
        if entry is None:  # it waits for its time
            return old
        host.remove(queue_key, old.band)
        self._delete(Family.QUEUE, queue_key)
        new_key = lane_start(host.key, band) + old.order
        self._put(Family.QUEUE, new_key, row := entry.pack())
        host.add(QueueEntry.unpack(new_key, row), room=self._room())
        self.shelf.touch(host)
        return QueuePosition(band, old.order, credit, links)

    def _entry_at(self, queue_key: bytes) -> QueueEntry | None:
        row = self._rows.get(Family.QUEUE, queue_key)
        return QueueEntry.unpack(queue_key, row) if row else None

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

    def _close(self, host: Host, entry: QueueEntry, state: UrlState, reason: Reason) -> None:
        self._take_out(host, entry)
        row = UrlRow(state, entry.depth, reason, entry.origin)
        self._put_url(host.key + KEY_END + entry.path.encode(), row)
        host.row.queued -= 1
        if entry.kind is RequestKind.REVISIT:
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
        entry: QueueEntry,
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

    def _take_out(self, host: Host, entry: QueueEntry) -> None:
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

    def _sinks(self, lease: Lease, entry: QueueEntry, links: int | None) -> bool:
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

    def _give_back(self, host: Host, entry: QueueEntry) -> None:
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
        row = UrlRow(
            UrlState.QUEUED, entry.depth, origin=entry.origin, standing=QueuePosition(band, order, credit, links)
        )
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


REVIEWS_A_COMMIT = 100  # hosts put last that are looked at again
DROPS_A_CALL = 500  # URLs that `next` may drop or put off before the loop gets a turn; fewer where rules are many


class Frontier(Ledger):
    """See the module; what is written down is the ledger's. `locate` says where a host lives, or None when it has to be
    resolved first."""

    def __init__(
        self,
        rows: Rows,
        pace: Politeness,
        start: ProcessStart,
        *,
        locate: Callable[[Host], Mapped | None],
        policy: Policy = BREADTH,
        room: int = FRONT_MOST,
        elsewhere: UrlForwarder | None = None,
    ) -> None:
        restarted_at = start.now if start.is_restart else None
        self.turns = HostScheduler(step_hosts=policy.walk.steps, slack=policy.slack, restarted_at=restarted_at)
        shelf = HostCache(
            rows, self.turns, start, delay_s=pace.delay_s, per_host=pace.per_host, swings=policy.walk.swings
        )
        super().__init__(rows, shelf, policy, room=room)
        self.pace, self._locate, self._elsewhere = pace, locate, elsewhere
        self._queues = Queues(rows, policy)
        self._groups, self._head_reader = HostGroups(pace.groups), policy.head_reader
        self._drops_left = DROPS_A_CALL
        self._put_last: dict[bytes, Host] = {}  # hosts that let others go first, those reviewed lately last

    def __repr__(self) -> str:
        return f"<Frontier {self.policy.name} known={self.known} queued={self.queued} {self.turns!r}>"

    def stats(self) -> FrontierStats:
        places = self.turns.places
        active = sum(
            places[place] for place in HostPlace if place not in (HostPlace.IDLE, HostPlace.PARKED, HostPlace.WAITING)
        )
        return FrontierStats(
            self.known,
            self.queued,
            self.shelf.count,
            active,
            places[HostPlace.WAITING],
            places[HostPlace.PARKED],
            self.revisiting,
        )

    # taking URLs in

    def admit(
        self,
        urls: Iterable[Url],
        *,
        depth: int,
        kind: RequestKind = RequestKind.PAGE,
        hops: int = 0,
        now: float,
        origin: Origin = Origin.LINK,
        credits: Iterable[float] | None = None,
        source: str = "",
    ) -> list[Url]:
        """Takes in those of the URLs that are not known yet, and returns them. A wish revives a host given up.

        `credits`: what speaks for each of them, where the policy ranks; it counts for those that are known, too.
        `source` is the host of the page they are on. URLs of other shards are sent there, and returned if that is new.
        """
        sent: list[Url] = []
        if self._elsewhere is not None:
            urls, credits, sent = forward_foreign(
                self._elsewhere, urls, credits, depth=depth, kind=kind, hops=hops, origin=origin, source=source
            )
        pending, is_wish = self._pending, origin is Origin.WISH
        worth = list(zip(urls, credits, strict=True)) if credits is not None else None
        asked = [
            (url, key, credit)
            for url, credit in (worth if worth is not None else zip(urls, repeat(0.0), strict=False))
            if (key := url_key(url.href)) not in pending or is_wish
        ]
        found = self._rows.get_many(Family.URL, [key for _, key, _ in asked]) if asked else []
        touched: dict[bytes, Host] = {}
        new: list[Url] = []
        for (url, key, credit), known in zip(asked, found, strict=True):
            if known is not None and not is_wish:
                continue
            host = self._host(key, now)
            if is_wish and host.row.gave_up:
                self._revive(host)
                touched[host.key] = host
            if known is not None or key in pending:
                continue
            self._enqueue(host, key, url.path, credit, kind=kind, depth=depth, hops=hops, origin=origin)
            touched[host.key] = host
            new.append(url)
        self.known += len(new)
        for host in touched.values():
            self._changed(host, now)
        if worth is not None and len(new) < len(worth):
            taken = {url.href for url in new}
            self.vouch({url.href: credit for url, credit in worth if credit and url.href not in taken}, now)
        return new + sent if sent else new

    def owns(self, host: str) -> bool:
        """Does a host belong to this shard?"""
        return self._elsewhere is None or self._elsewhere.owns(host)

    def _changed(self, host: Host, now: float) -> None:
        """A host has more to give than before: it may go on, or go before others."""
        if (
            host.place is HostPlace.IDLE
            or (host.place in (HostPlace.WAITING, HostPlace.PARKED) and host.waits_for_due)
            or (host.place in (HostPlace.WAITING, HostPlace.READY) and self._offer(host, now) != host.offered)
        ):
            self._settle(host, now)

    def requeue(
        self,
        href: str,
        depth: int,
        *,
        kind: RequestKind,
        now: float,
        pages: int = 0,
        failed: int = 0,
        origin: Origin = Origin.LOST,
        links: int | None = None,
    ) -> None:
        """Queues a URL again that was done but whose result is lost, and with it `pages` pages of its host; or one that
        had failed, and with it `failed` failures. `links`: how many are on its page, as far as that is known."""
        key = url_key(href)
        host = self._host(key, now)
        host.row.pages -= pages
        host.row.failed -= failed
        self._enqueue(host, key, _path(href), 0.0, kind=kind, depth=depth, origin=origin, links=links)
        self._changed(host, now)

    def revisit(self, href: str, depth: int, origin: Origin, *, now: float, now_unix: float) -> None:
        """Queues a URL that is settled to be asked for again, before what else its host has; it stays settled."""
        host = self._host(url_key(href), now)
        if host.row.gave_up:
            self._revive(host)
        key = host.due.key(now_unix, next(self._due_counter))
        entry = QueueEntry(key, _path(href), RequestKind.REVISIT, depth, origin=origin)
        self._put(Family.QUEUE, key, entry.pack())
        host.pending[key] = entry
        host.row.queued += 1
        host.row.waits += 1
        host.row.revisits += 1
        self.revisiting += 1
        host.due.add(entry, now)
        self.shelf.touch(host)
        self._changed(host, now)

    def hold(self) -> None:
        """From now on only what is due is given out; called before anything is loaded."""
        self.shelf.holds = True

    def vouch(self, evidence: Mapping[str, float], now: float) -> None:
        """More speaks for URLs than before: those that are queued may rise, or fall, to another band."""
        ranking = self.policy.ranking
        if ranking is None or not evidence:
            return
        if self._elsewhere is not None:
            evidence = forward_evidence(self._elsewhere, evidence)
        keys = [url_key(href) for href in evidence]
        touched: dict[bytes, Host] = {}
        for key, more, packed in zip(keys, evidence.values(), self._rows.get_many(Family.URL, keys), strict=True):
            row = self._pending.get(key) or (UrlRow.unpack(packed) if packed else None)
            if row is None or row.state is not UrlState.QUEUED or row.standing is None:
                continue
            host, links = self._host(key, now), row.standing.links
            credit = ranking.combine(row.standing.credit, more)
            standing = self._move(host, row.standing, self._band(ranking, credit, host, links), credit, links)
            if standing is not row.standing:
                self._put_url(key, msgspec.structs.replace(row, standing=standing))
                touched[host.key] = host
        for host in touched.values():
            self._changed(host, now)

    def _host(self, url_key: bytes, now: float) -> Host:
        """The host of a URL, in memory from now on."""
        host, is_new = self.shelf.get(url_key[: url_key.index(KEY_END, BUCKET_BYTES)])
        if is_new:  # it may have work from before
            if host.row.gave_up and self.shelf.tries_again:
                self._revive(host)
            self._settle(host, now)
        return host

    # giving URLs out

    def next(self, now: float, now_unix: float) -> Lease | None:
        """The next URL that may be asked for now, or None."""
        self._drops_left = DROPS_A_CALL
        while self._drops_left > 0 and (host := self.turns.next_ready(now)):
            lease = self._lease(host, now, now_unix)
            if lease is not None:
                return lease
        return None

    @property
    def has_more(self) -> bool:
        """Did `next` give nothing only because it had much to drop? It goes on when it is called again."""
        return self._drops_left <= 0

    def _lease(self, host: Host, now: float, now_unix: float) -> Lease | None:
        """Gives out one URL of a ready host, or puts the host where it has to wait."""
        if host.slots.next_at() > now:
            self._settle(host, now)
            return None
        mapped = self._locate(host)
        if mapped is None:
            self.turns.wait_for_name(host)
            return None
        shares = self._shares(host, mapped)
        if not self.turns.claim(host, shares, now):
            return None
        lease = self._choose(host, mapped, shares, now, now_unix)
        if lease is not None:
            host.slots.take()
            self.turns.take(host, shares)
            self.turns.gave(host)
            if lease.entry is not None:
                host.leased.add(lease.entry.key)
            host.awaits_robots |= lease.kind is RequestKind.ROBOTS and lease.job is None
        self._settle(host, now)
        return lease

    def _shares(self, host: Host, mapped: Mapped) -> tuple[Share, ...]:
        """The slots that a request to the host takes, beside the host's own."""
        if mapped.failure is not None:  # nobody will be asked
            return ()
        address = Share(mapped.address, self.pace.per_ip, self.pace.ip_delay_s)
        group = self._groups.of(host.host)
        return (address,) if group is None else (address, group)

    def _choose(
        self, host: Host, mapped: Mapped, shares: tuple[Share, ...], now: float, now_unix: float
    ) -> Lease | None:
        """What a host is asked for next: robots.txt for another host, its own, or the next entry that is allowed."""
        if host.jobs:
            job = host.jobs.popleft()
            return _lease_of(host, RequestKind.ROBOTS, _path(job.url), mapped, shares, job=job)
        if host.awaits_robots or not (host.has_work or host.waits_until <= now) or self._is_filling(host):
            return None
        if self._puts_last(host) and not host.is_put_last:
            self._put_last[host.key] = host
            host.is_put_last = True
            return None
        rules = host.row.robots
        if self.pace.robots and (rules is None or host.row.robots_until < now_unix):
            return _lease_of(host, RequestKind.ROBOTS, "/robots.txt", mapped, shares)
        while self._drops_left > 0 and (entry := self._queues.next_entry(host, now, now_unix, room=self._room())):
            self._drops_left -= 1 if rules is None else rules.effort
            if self.pace.robots and rules is not None and not rules.allows(entry.path):
                self._close(host, entry, UrlState.DROPPED, Reason.ROBOTS)
            elif (
                entry.kind is RequestKind.REVISIT or entry.key in host.leased
            ):  # it was given out before: it was judged then
                return _lease_of(host, entry.kind, entry.path, mapped, shares, entry=entry)
            elif self._is_full(host):
                self._close(host, entry, UrlState.DROPPED, Reason.PAGES_PER_HOST)
            elif self._is_too_deep(host, entry):
                self._close(host, entry, UrlState.DROPPED, Reason.DEPTH)
            elif isinstance(verdict := self._judge(host, entry, now_unix), Reason):
                self._close(host, entry, UrlState.DROPPED, verdict)
            elif verdict is not None:
                self._put_off(host, entry, due_unix=now_unix + verdict, due=now + verdict, tries=entry.tries, late=True)
            else:
                lease = _lease_of(host, entry.kind, entry.path, mapped, shares, entry=entry)
                return lease if self._head_reader is None else self._with_a_look(self._head_reader, lease, entry)
        return None

    def beside(self, lease: Lease, kind: RequestKind, url: str, now: float) -> Lease | None:
        """Another request to the host of a lease, if robots.txt allows it and slots for it are free now."""
        host = lease.host
        if host.slots.next_at() > now or not self.turns.is_free(lease.shares, now) or not self._allows(host, url):
            return None
        mapped = self._locate(host)
        if mapped is None or mapped.failure is not None or mapped.address != lease.address:  # not there, or not now
            return None
        host.slots.take()
        self.turns.take(host, lease.shares)
        self._settle(host, now)
        return Lease(host, kind, url, lease.address, shares=lease.shares)

    def instead(self, lease: Lease, kind: RequestKind, url: str) -> Lease | None:
        """Another request in the slots of a lease, if robots.txt allows it; the lease itself then `goes_next`."""
        return (
            Lease(lease.host, kind, url, lease.address, shares=lease.shares) if self._allows(lease.host, url) else None
        )

    def _allows(self, host: Host, url: str) -> bool:
        rules = host.row.robots
        return not self.pace.robots or (rules is not None and rules.allows(_path(url)))

    def _with_a_look(self, reader: HeadReader, lease: Lease, entry: QueueEntry) -> Lease:
        """The same lease, or one for the head of the page, if it pays to read that first."""
        if entry.has_head or entry.tries or entry.kind is not RequestKind.PAGE or entry.origin is Origin.WISH:
            return lease
        host = lease.host
        if not reader.may_want_head(entry.lane, host.row, host.delay_s):
            return lease
        credit = self.credit(lease.url)
        is_head = reader.wants_head(credit, host.row, host.delay_s)
        return msgspec.structs.replace(lease, is_head=is_head, credit=credit)

    def _judge(self, host: Host, entry: QueueEntry, now_unix: float) -> Reason | float | None:
        for watcher in self.watchers:
            verdict = watcher.judge(host, entry, now_unix)
            if verdict is not None:
                return verdict
        return None

    def _puts_last(self, host: Host) -> bool:
        for watcher in self.watchers:  # noqa: SIM110 - for every URL given out
            if watcher.puts_last(host):
                return True
        return False

    def _is_full(self, host: Host) -> bool:
        most = self.pace.pages_per_host
        return most is not None and host.row.pages >= most

    def _is_too_deep(self, host: Host, entry: QueueEntry) -> bool:
        """Are there too many links between where the host was entered and this URL?"""
        most = self.pace.host_depth
        return most is not None and entry.depth - (host.row.entered or 0) > most

    def _is_filling(self, host: Host) -> bool:
        """May what is under way be the last pages that this host gives? If it fails, others take its place."""
        most = self.pace.pages_per_host
        return most is not None and host.row.pages < most <= host.row.pages + host.slots.in_use

    def _settle(self, host: Host, now: float) -> None:
        """Puts a host where it belongs now."""
        turns, at = self.turns, host.slots.next_at()
        host.offer = self._offer(host, now)
        host.waits_for_due = not host.has_work
        if host.awaits_robots and not host.jobs:
            turns.move(host, HostPlace.ROBOTS)
            return
        if at == NEVER or (self._is_filling(host) and not host.jobs):
            turns.move(host, HostPlace.BUSY)
            return
        is_wanted = not host.row.gave_up and (host.has_work or host.row.waits or host.row.retries)
        if not is_wanted and not host.jobs:
            turns.move(host, HostPlace.IDLE)
            return
        if not host.has_work:
            at = max(at, host.waits_until)
        if at == NEVER:  # nothing left, or what waits for its time is under way
            turns.move(host, HostPlace.IDLE)
        elif at <= now:
            turns.ready(host)
        else:
            turns.wait(host, at, HostPlace.PARKED if host.row.wait_reason else HostPlace.WAITING)

    def _offer(self, host: Host, now: float) -> int:
        """What a host has to give, seen from outside; 0 is the best."""
        if host.is_put_last:
            return LAST_OFFER
        return 0 if host.is_due(now) else self.policy.offer(host)

    def named(self, name: str, now: float) -> None:
        """A name has been resolved: its hosts may go on."""
        for host in self.turns.named(name):
            self._settle(host, now)

    # what became of a lease

    def release(
        self, lease: Lease, ended: float, now: float, *, wait_s: float = 0.0, reason: str = "", now_unix: float = 0.0
    ) -> None:
        """The request has ended: its slots are free again a delay later, the whole host after `wait_s` at least."""
        host = lease.host
        host.slots.give_back(ended + host.delay_s)
        if host.slots.floor <= now:
            host.row.wait_reason, host.row.wait_until = "", 0.0
        self.turns.give_back(lease.shares, ended)
        if wait_s:
            self._hold(host, now, wait_s=wait_s, reason=reason, now_unix=now_unix)
        self.shelf.touch(host)
        self._settle(host, now)

    def park(self, host: Host, now: float, *, wait_s: float, reason: str, now_unix: float) -> None:
        """The whole host waits, for something that happened elsewhere."""
        self._hold(host, now, wait_s=wait_s, reason=reason, now_unix=now_unix)
        self.shelf.touch(host)
        if host.place in (HostPlace.READY, HostPlace.WAITING, HostPlace.IDLE):
            self._settle(host, now)

    def _hold(self, host: Host, now: float, *, wait_s: float, reason: str, now_unix: float) -> None:
        host.slots.not_before(now + wait_s + MARGIN_S)
        host.row.wait_reason, host.row.wait_until = reason, now_unix + wait_s

    # robots.txt

    def want_robots(
        self, host_key: bytes, url: Url, hops: int, now: float, answer: Callable[[Response], None] | None = None
    ) -> None:
        """A host's robots.txt has to be fetched from `url`, on whatever host that is. `answer`: for another shard."""
        other = self._host(url_key(url.href), now)
        other.jobs.append(RobotsJob(url.href, host_key, hops, answer))
        if other.place in (HostPlace.IDLE, HostPlace.WAITING, HostPlace.PARKED, HostPlace.ROBOTS):
            self._settle(other, now)

    def set_robots(self, host: Host, robots: Robots, *, until_unix: float, now: float) -> None:
        """The host's rules are known: it may go on."""
        host.row.robots, host.row.robots_until, host.row.robots_tries = robots, until_unix, 0
        before, host.delay_s = host.delay_s, self.shelf.delay_of(host.row)
        if host.delay_s > before:
            host.slots.later_by(host.delay_s - before)
        self._robots_answered(host, now)

    def robots_failed(self, host: Host, now: float) -> None:
        """The host's rules could not be had: they are asked for again when it may be asked again."""
        host.row.robots_tries += 1
        self._robots_answered(host, now)

    def _robots_answered(self, host: Host, now: float) -> None:
        host.awaits_robots = False
        self.shelf.touch(host)
        if host.place is HostPlace.ROBOTS:
            self._settle(host, now)

    def give_up(self, host: Host, reason: str, now: float) -> None:
        """Nothing more is asked of this host; its queue stays on disk, in case it is wanted again."""
        if host.row.gave_up:
            return
        host.row.gave_up = reason
        self.queued -= host.row.queued - host.row.revisits
        self.revisiting -= host.row.revisits
        self.failed[reason] += host.row.queued - host.row.revisits
        self._forget_queue(host)
        self.shelf.touch(host)
        self._settle(host, now)  # it may still have to ask for somebody else's robots.txt

    # commits

    def load(self, now: float) -> None:
        """Brings the first hosts with work into memory; the others follow as there is room. Where nothing is queued it
        looks on for hosts that earlier runs gave up."""
        self._take_in(self.shelf.rotate(), now)
        while self.queued <= 0 and self.shelf.tries_again and self.shelf.room > 0:
            self._take_in(self.shelf.rotate(), now)

    def _take_in(self, hosts: Iterable[Host], now: float) -> None:
        """Hosts have come from disk. Those that an earlier run gave up are tried again: it may have been the line."""
        for host in hosts:
            if host.row.gave_up:
                self._revive(host)
            self._settle(host, now)

    def committed(self, now: float) -> None:
        """The batch is on disk: what was in it can be read now."""
        self._pending.clear()
        self._take_in(self.shelf.committed(now), now)
        for _ in range(min(REVIEWS_A_COMMIT, len(self._put_last))):
            self._review(next(iter(self._put_last)), now)

    def _review(self, host_key: bytes, now: float) -> None:
        """Does a host still have to let others go first?"""
        host = self._put_last.pop(host_key)
        if self.shelf.hosts.get(host_key) is not host:
            return
        if self._puts_last(host):
            self._put_last[host_key] = host
            return
        host.is_put_last = False
        if host.place in (HostPlace.READY, HostPlace.WAITING):
            self._settle(host, now)


def _lease_of(
    host: Host,
    kind: RequestKind,
    path: str,
    mapped: Mapped,
    shares: tuple[Share, ...],
    *,
    entry: QueueEntry | None = None,
    job: RobotsJob | None = None,
) -> Lease:
    return Lease(host, kind, host.origin + path, mapped.address, entry, job, mapped.failure, mapped.detail, shares)


def _path(url: str) -> str:
    return url[url.index("/", 8) :]
