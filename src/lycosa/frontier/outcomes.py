"""What becomes of a lease: its URL is finished, fetched again later, or goes back to its queue, and its slots are free.

Every lease ends with `release`, and with one of the others for its URL; a URL that none of them is told of is still
queued on disk. Called by the crawl and by the features that hang on it, through `Frontier.outcomes`.
"""

from lycosa.frontier.lease import Lease
from lycosa.frontier.queues import Queues
from lycosa.frontier.rows import DUE_LANE, Origin, Reason, RequestKind, UrlState
from lycosa.frontier.scheduler import FetchChecks, HostScheduler


class LeaseOutcomes:
    """The way back into the frontier of one shard."""

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

    def retry(self, lease: Lease, *, due_unix: float, due: float, failed: str = "", counts: bool = True) -> None:
        """Fetch the URL of the lease again when it is due. If it `failed`, the host's other URLs go before it."""
        if (entry := lease.entry) is not None:
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
