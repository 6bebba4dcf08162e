"""What a failed request means for its URL and its host, by the retry table; pure but for the rows it writes.

Failures that concern a whole host are counted with the host: a host of a thousand URLs that refuses connections is
tried three times, not three thousand. The others are counted with the URL, which waits by itself, behind the others of
its host; the host waits when several URLs in a row fail that are asked for the first time (a second failure of a URL
says more of the URL than of the host). `--wait` never gives a host up.
"""

from collections.abc import Callable

from lycosa.crawl.addresses import HostAddresses
from lycosa.crawl.keeper import Archive
from lycosa.crawl.shard import Shard
from lycosa.fetch import AT_ONCE, RETRY_SHARE, RetryRule, parse_retry_after, retry_rule, retry_wait
from lycosa.frontier import Host, Lease, QueueEntry, Reason, RequestKind, UrlState, requisite_hops
from lycosa.learning import UrlMining
from lycosa.records import Failure, Request, Response
from lycosa.store import SITEMAP, PageRow
from lycosa.web import url_key

# With --wait a host that the table would give up is asked again after this.
PATIENT_WAIT_S = 300.0
FORGETS_ADDRESS = frozenset({Failure.CONNECT, Failure.CONNECT_TIMEOUT})


# Called instead of failing the URL where the table has nothing more to try: lease, request, response, reason.
GiveUp = Callable[[Lease, Request | None, Response, str], None]


class FailureHandler:
    """Retries or gives up URLs whose request did not end well. `is_past`: answers are of the past, nobody is asked
    again, and a failure says nothing of how the host is now."""

    def __init__(
        self, shard: Shard, archive: Archive, addresses: HostAddresses, mining: UrlMining, *, is_past: bool = False
    ) -> None:
        self._shard, self._archive, self._addresses, self._mining = shard, archive, addresses, mining
        self._is_past = is_past

    def rule_of(self, response: Response) -> RetryRule | None:
        """What the table says of an answer; None when it was no failure."""
        return retry_rule(response.failure, response.status, is_first=not self._shard.counters.has_answer)

    def handle(
        self, lease: Lease, request: Request | None, response: Response, *, give_up: GiveUp | None = None
    ) -> bool:
        """Deals with a failure: the URL is retried or given up and its lease released. False: it was none."""
        rule = self.rule_of(response)
        if rule is None:
            if lease.host.row.tries or lease.host.row.failing:
                lease.host.record_answer()
            return False
        shard, host, entry = self._shard, lease.host, lease.entry
        assert entry is not None
        name = str(response.failure or response.status)
        if not self._is_past:
            _count_with_host(host, entry, response, rule)
        if response.failure in FORGETS_ADDRESS:
            self._addresses.forget(host)
        self._archive.keep_answer(lease, request, response)
        wait_s, host_s = (None, 0.0) if self._is_past else self._waits(host, entry, response, rule)
        if wait_s is None:
            if give_up is not None:
                give_up(lease, request, response, name)
            self._give_up(lease, entry, response, rule, name, is_revisit=give_up is not None)
            shard.release(lease, response, wait_s=host_s, reason=name)
            return True
        now = shard.now()
        took_s = max(0.0, response.ended_s - response.started_s) + host.delay_s
        host.hold_back_retries(now + took_s / RETRY_SHARE)
        shard.frontier.retry(
            lease,
            due_unix=shard.now_unix() + wait_s,
            due=now + wait_s,
            failed=name,
            counts=not rule.gives_up_on_host,
        )
        shard.release(lease, response, wait_s=host_s, reason=name)
        return True

    def _waits(self, host: Host, entry: QueueEntry, response: Response, rule: RetryRule) -> tuple[float | None, float]:
        """How long the URL waits for its next try, None when there is none; and how long its host waits."""
        shard, row = self._shard, host.row
        is_hosts = rule.host_after == AT_ONCE
        tried = row.tries if rule.gives_up_on_host else entry.tries + 1
        has_more = tried < rule.tries
        # the longer the host has failed, the longer it is left alone
        rounds = max(tried, row.tries) if is_hosts else row.failing - rule.host_after + 1
        host_s = 0.0
        if rule.host_after and rounds > 0:
            if not has_more and shard.settings.wait:
                return 0.0, PATIENT_WAIT_S
            if has_more or not rule.gives_up_on_host:
                asked_for = parse_retry_after(response.headers.get("retry-after", ""), now_unix_s=shard.now_unix())
                rounds = min(rounds, rule.tries - 1)
                host_s = retry_wait(rule, rounds, random=shard.roll(), retry_after_s=asked_for) or 0.0
        if is_hosts and has_more:
            return 0.0, host_s
        return retry_wait(rule, tried, random=shard.roll()), host_s

    def _give_up(
        self, lease: Lease, entry: QueueEntry, response: Response, rule: RetryRule, name: str, *, is_revisit: bool
    ) -> None:
        shard, host = self._shard, lease.host
        if rule.gives_up_on_host:
            if not is_revisit:  # the URL fails with its host, and comes back with it
                shard.events.write("failed", url=lease.url, reason=name, detail=response.detail)
                shard.frontier.return_to_queue(lease)
            if not host.row.gave_up:
                shard.events.write("host-given-up", host=host.origin, reason=name, queued=host.row.queued)
            shard.frontier.give_up(host, name, shard.now())
        if is_revisit or rule.gives_up_on_host:
            return
        self._mining.record_outcome(lease, is_hit=False)
        if entry.origin.is_guess:
            shard.frontier.finish(lease, UrlState.DROPPED, Reason.GUESS)
            return
        shard.counters.failed(name)
        host.count(failed=1)
        shard.frontier.finish(lease, UrlState.FAILED, Reason.FAILURE if response.failure else Reason.STATUS)
        essence = SITEMAP if lease.kind is RequestKind.SITEMAP else ""
        row = PageRow(
            response.status, shard.now_unix(), entry.depth, essence=essence, failure=name, tries=entry.tries + 1
        )
        if lease.kind is RequestKind.REQUISITE:
            row.requisite, _ = requisite_hops(entry.hops)
        row.is_external = lease.kind is RequestKind.EXTERNAL
        shard.linker.gone(lease.url, url_key(lease.url), row)
        self._archive.write_row(lease, row, None)
        shard.events.write("failed", url=lease.url, reason=name, detail=response.detail)


def _count_with_host(host: Host, entry: QueueEntry, response: Response, rule: RetryRule) -> None:
    """Counts with the host what the failure says of it."""
    if rule.host_after == AT_ONCE:
        host.record_failure(tries=1)
    elif rule.host_after:
        host.record_failure(failing=int(entry.tries == 0))
    elif response.failure is None:  # it answers
        host.record_answer()
