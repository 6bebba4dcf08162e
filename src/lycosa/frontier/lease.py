"""A lease is a URL in flight: `Leasing` decides which URL of a ready host is fetched, `LeaseOutcomes` what becomes of
it.

Every lease that `Leasing.next` makes ends with `LeaseOutcomes.release`, and with one of the others there for its URL:
it is finished, fetched again later, or goes back to its queue. A URL that none of them is told of is still queued on
disk. Whose turn it is says `frontier.scheduler`, which of a host's URLs comes first `frontier.queues`, and whether it
may be fetched now `FetchChecks.judge`. Time is an argument, as in the whole room.
"""

from collections.abc import Callable
from itertools import count

import msgspec

from lycosa.frontier.hosts import Host, HostJob
from lycosa.frontier.policy import HeadReader
from lycosa.frontier.politeness import HostGroups, Politeness, Share
from lycosa.frontier.queues import Queues
from lycosa.frontier.rows import DUE_LANE, Origin, QueueEntry, Reason, RequestKind, UrlState
from lycosa.frontier.scheduler import FetchChecks, HostScheduler
from lycosa.records import Failure, Mapped

# A host may have a million URLs that its new robots.txt forbids: `next` drops or postpones at most so many, fewer where
# the rules are many, and then gives the event loop a turn, which has transfers to serve.
MAX_DROPS_PER_CALL = 500


class Lease(msgspec.Struct, frozen=True):
    """A URL in flight, with the address to fetch it from; `failure` says why the host has none, `ticket` names the
    lease."""

    host: Host
    kind: RequestKind
    url: str
    address: str
    entry: QueueEntry | None = None
    job: HostJob | None = None
    failure: Failure | None = None
    detail: str = ""
    shares: tuple[Share, ...] = ()
    is_head: bool = False  # only the beginning is asked for
    is_claimed: bool = False  # nobody is asked: its answer was there before it, and it takes no slot
    credit: float | None = None  # what spoke for it, where that was looked up
    ticket: int = msgspec.field(default_factory=count(1).__next__)

    @property
    def depth(self) -> int:
        return self.entry.depth if self.entry else 0


class Leasing:
    """The way out of the frontier of one shard: leases are made here, and slots are taken."""

    def __init__(
        self,
        scheduler: HostScheduler,
        queues: Queues,
        checks: FetchChecks,
        politeness: Politeness,
        *,
        locate: Callable[[Host], Mapped | None],
        head_reader: HeadReader | None,
    ) -> None:
        self._scheduler, self._queues, self._checks = scheduler, queues, checks
        self._locate, self._groups, self._head_reader = locate, HostGroups(politeness), head_reader
        self._drops_left = MAX_DROPS_PER_CALL

    def __repr__(self) -> str:
        return f"<Leasing {self._scheduler!r}>"

    def next(self, now: float, now_unix: float) -> Lease | None:
        """Lease the next URL that may be fetched now; None if there is none."""
        self._drops_left = MAX_DROPS_PER_CALL
        while self._drops_left > 0 and (host := self._scheduler.next_ready(now)):
            lease = self._lease(host, now, now_unix)
            if lease is not None:
                return lease
        return None

    @property
    def has_more(self) -> bool:
        """Return whether `next` gave nothing only because it had too much to drop; it goes on when called again."""
        return self._drops_left <= 0

    def _lease(self, host: Host, now: float, now_unix: float) -> Lease | None:
        """Lease one URL of a ready host, or put the host where it has to wait."""
        if host.slots.next_at() > now:
            self._scheduler.place(host, now)
            return None
        # Names are resolved when a host's turn comes, not when it is found: most hosts that links name are never asked,
        # and an address from an hour ago may be another's by now.
        mapped = self._locate(host)
        if mapped is None:
            self._scheduler.wait_for_name(host)
            return None
        shares = self._shares(host, mapped)
        if not self._scheduler.claim(host, shares, now):
            return None
        lease = self._choose(host, mapped, shares, now, now_unix)
        if lease is not None:
            host.slots.take()
            self._scheduler.take(host, shares)
            self._scheduler.on_leased(host)
            if lease.entry is not None:
                # The queue row stays until the outcome is committed: after a crash the URL is simply still queued, and
                # a lease costs no write (decision 5).
                host.leased.add(lease.entry.key)
            host.awaits_robots |= lease.kind is RequestKind.ROBOTS and lease.job is None
        self._scheduler.place(host, now)
        return lease

    def _shares(self, host: Host, mapped: Mapped) -> tuple[Share, ...]:
        """Return the shared slots that a request to the host takes, beside one of its own."""
        # A host without an address is leased all the same: its failure is an outcome like any other, and goes through
        # the retry table. But nobody will be asked, so no slot is taken.
        if mapped.failure is not None:
            return ()
        group = self._groups.of(host.host)
        address = self._groups.address(mapped.address)
        return (address,) if group is None else (address, group)

    def _choose(
        self, host: Host, mapped: Mapped, shares: tuple[Share, ...], now: float, now_unix: float
    ) -> Lease | None:
        """Choose what to fetch from a host: robots.txt for another host, its own, or the next URL that may go."""
        checks = self._checks
        if host.jobs:
            job = host.jobs.popleft()
            return _lease_of(host, job.kind, path_of(job.url), mapped, shares, None, job)
        if host.awaits_robots or not (host.has_work or host.waits_until <= now) or checks.may_reach_page_limit(host):
            return None
        # Deferred, not dropped: when no other host can be asked soon its URLs go on, and no slot stands idle.
        if checks.puts_last(host) and not host.is_deferred:
            self._scheduler.defer(host)
            return None
        # Rules that are too old are fetched again before anything else: a site may have closed a folder since.
        if checks.needs_robots(host, now_unix):
            return _lease_of(host, RequestKind.ROBOTS, "/robots.txt", mapped, shares)
        rule_cost = 1 if host.row.robots is None else host.row.robots.rule_cost
        while self._drops_left > 0 and (entry := self._queues.next_entry(host, now, now_unix)):
            self._drops_left -= rule_cost
            verdict = checks.judge(host, entry, now_unix)
            if verdict is None:
                lease = _lease_of(host, entry.kind, entry.path, mapped, shares, entry)
                return lease if self._head_reader is None else self._with_head(self._head_reader, lease, entry)
            if isinstance(verdict, Reason):
                self._queues.close(host, entry, UrlState.DROPPED, verdict)
                checks.on_dropped(host, entry, verdict)
            else:
                due_unix, due = now_unix + verdict, now + verdict
                # A sitemap waits until others are read, not for other URLs of its host: its turn is not before.
                yields = entry.kind is not RequestKind.SITEMAP
                self._queues.postpone(
                    host, entry, due_unix=due_unix, due=due, tries=entry.tries, yields_to_others=yields
                )
        return None

    def additional(self, lease: Lease, kind: RequestKind, url: str, now: float) -> Lease | None:
        """Lease another URL of the same host in addition to a lease, if robots.txt allows it and slots are free now."""
        host = lease.host
        if host.slots.next_at() > now or not self._scheduler.is_free(lease.shares, now):
            return None
        if not self._checks.allows(host, path_of(url)):
            return None
        mapped = self._locate(host)
        if mapped is None or mapped.failure is not None or mapped.address != lease.address:  # not there, or not now
            return None
        host.slots.take()
        self._scheduler.take(host, lease.shares)
        self._scheduler.place(host, now)
        return Lease(host, kind, url, lease.address, shares=lease.shares)

    def in_place_of(self, lease: Lease, kind: RequestKind, url: str) -> Lease | None:
        """Lease another URL in the slots of a lease, if robots.txt allows it; the caller then has to call
        `keep_as_next` for the lease itself."""
        is_allowed = self._checks.allows(lease.host, path_of(url))
        return Lease(lease.host, kind, url, lease.address, shares=lease.shares) if is_allowed else None

    def _with_head(self, reader: HeadReader, lease: Lease, entry: QueueEntry) -> Lease:
        """Return the same lease, or one for the head of the page if it pays to read that first."""
        host = lease.host
        if entry.has_head or entry.tries or entry.kind is not RequestKind.PAGE or entry.origin is Origin.SEED:
            return lease
        if entry.key in host.leased:  # it was its turn before
            return lease
        if not reader.may_want_head(entry.lane, host.row, host.delay_s):
            return lease
        credit = self._queues.credit(lease.url)
        is_head = reader.wants_head(credit, host.row, host.delay_s)
        return msgspec.structs.replace(lease, is_head=is_head, credit=credit)


def _lease_of(
    host: Host,
    kind: RequestKind,
    path: str,
    mapped: Mapped,
    shares: tuple[Share, ...],
    entry: QueueEntry | None = None,
    job: HostJob | None = None,
) -> Lease:
    return Lease(host, kind, host.origin + path, mapped.address, entry, job, mapped.failure, mapped.detail, shares)


def path_of(url: str) -> str:
    return url[url.index("/", 8) :]


class LeaseOutcomes:
    """The way back into the frontier of one shard, called by the crawl and by the features that hang on it."""

    def __init__(self, scheduler: HostScheduler, queues: Queues, checks: FetchChecks, *, counts_links: bool) -> None:
        self._scheduler, self._queues, self._checks, self._counts_links = scheduler, queues, checks, counts_links

    def __repr__(self) -> str:
        return f"<LeaseOutcomes {self._scheduler!r}>"

    def finish(self, lease: Lease, state: UrlState, reason: Reason = Reason.NONE) -> None:
        """Record that the URL of the lease is done, failed or dropped for good."""
        if lease.entry is not None:
            self._queues.close(lease.host, lease.entry, state, reason)
            if state is UrlState.DROPPED:
                self._checks.on_dropped(lease.host, lease.entry, reason)

    def retry(
        self,
        lease: Lease,
        *,
        due_unix: float,
        due: float,
        failed: str = "",
        counts: bool = True,
        is_other_kind: bool = False,
    ) -> None:
        """Fetch the URL of the lease again when it is due. If it `failed`, the host's other URLs go before it;
        `is_other_kind`: before it was by our own doing, and now it was not, or the other way round."""
        if (entry := lease.entry) is not None:
            if is_other_kind:
                entry = entry.of_other_kind()
            tries = min(entry.tries + counts, 255)
            self._queues.postpone(lease.host, entry, due_unix=due_unix, due=due, tries=tries, failed=failed)

    def rerank(self, lease: Lease, credit: float, links: int | None = None) -> None:
        """Enqueue the URL of the lease again in the band of its new credit: the head of its page, or its table, was
        read."""
        assert lease.entry is not None
        self._queues.rerank(lease.host, lease.entry, credit, links)

    def keep_as_next(self, lease: Lease, links: int | None = None) -> None:
        """Keep the URL of the lease as the next one of its host: something else was fetched in its place. If its page
        has so few `links`, by its table, that it belongs into a worse band, it is queued there instead."""
        entry, host = lease.entry, lease.host
        if host.row.gave_up or entry is None:
            self.return_to_queue(lease)
            return
        if links is not None and self._counts_links and entry.lane < DUE_LANE and entry.origin is not Origin.SEED:
            credit = self._queues.credit(lease.url)
            if self._queues.is_worse(host, entry, credit, links):
                self.rerank(lease, credit, links)
                return
        host.next_entries.append(entry)

    def return_to_queue(self, lease: Lease) -> None:
        """Return the URL of the lease to the front of its lane: the request was cancelled, or its host is given up."""
        # Nobody will answer for robots.txt: without this the host would wait for it for ever.
        if lease.kind is RequestKind.ROBOTS:
            lease.host.awaits_robots = False
        if lease.entry is not None:
            self._queues.return_to_queue(lease.host, lease.entry)

    def release(
        self, lease: Lease, ended: float, now: float, *, wait_s: float = 0.0, reason: str = "", now_unix: float = 0.0
    ) -> None:
        """Free the slots of a request that has ended, a delay later; the whole host waits for `wait_s` at least."""
        host = lease.host
        if lease.is_claimed:
            return
        # From the end of the request, not its start: a server that is slow gets longer pauses.
        host.slots.release_slot(ended + host.delay_s)
        # A wait that another slot's request began still holds, and so does its reason.
        if host.slots.floor <= now:
            host.row.wait_reason, host.row.wait_until = "", 0.0
        self._scheduler.release_shares(lease.shares, ended)
        if wait_s:
            host.wait(now, wait_s, reason, now_unix)
        host.touch()
        self._scheduler.place(host, now)
