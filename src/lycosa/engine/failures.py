"""What a failed request means for its URL and its host, by the retry table; pure but for the rows it writes.

Failures that concern a whole host are counted with the host: a host of a thousand URLs that refuses connections is
tried three times, not three thousand. The others are counted with the URL. `--wait` never gives a host up.
"""

from collections.abc import Callable

from lycosa.engine.archive import Archive
from lycosa.engine.mining import Mining
from lycosa.engine.pages import SITEMAP, PageRow
from lycosa.engine.shard import Shard
from lycosa.fetch.retry import Rule, decide, parse_retry_after, rule_for
from lycosa.frontier.hosts import Host
from lycosa.frontier.lease import Lease
from lycosa.frontier.rows import Entry, Kind, Reason, UrlState
from lycosa.records import Failure, Request, Response
from lycosa.web.url import url_key

# With --wait a host that the table would give up is asked again after this.
PATIENT_WAIT_S = 300.0
FORGETS_ADDRESS = frozenset({Failure.CONNECT, Failure.CONNECT_TIMEOUT})


class Failures:
    """Settles requests that did not end well."""

    def __init__(self, shard: Shard, archive: Archive, mining: Mining) -> None:
        self._shard, self._archive, self._mining = shard, archive, mining
        self.on_revisit: Callable[[Lease, Request | None, Response, str], None] | None = None

    def rule_of(self, response: Response) -> Rule | None:
        """What the table says of an answer; None when it was no failure."""
        return rule_for(response.failure, response.status, is_first=not self._shard.counters.has_answer)

    def settle(self, lease: Lease, request: Request | None, response: Response, rule: Rule) -> None:
        shard, host, entry = self._shard, lease.host, lease.entry
        assert entry is not None
        name = str(response.failure or response.status)
        host.row.tries += rule.waits_host
        if response.failure in FORGETS_ADDRESS:
            shard.mapper.forget(host.host)
            host.row.address_until = 0.0
        self._archive.keep_answer(lease, request, response)
        wait_s = self._wait(host, entry, response, rule)
        if wait_s is None:
            self._give_up(lease, entry, request, response, rule, name)
            return
        due_in = 0.0 if rule.waits_host else wait_s
        shard.frontier.retry(
            lease, due_unix=shard.now_unix() + due_in, due=shard.now() + due_in, counts=not rule.gives_up_on_host
        )
        shard.release(lease, response, wait_s=wait_s if rule.waits_host else 0.0, reason=name)

    def _wait(self, host: Host, entry: Entry, response: Response, rule: Rule) -> float | None:
        """How long to wait before the next try; None when there is none."""
        shard = self._shard
        tried = host.row.tries if rule.gives_up_on_host else entry.tries + 1
        asked_for = parse_retry_after(response.headers.get("retry-after", ""), now_unix_s=shard.now_unix())
        if tried >= rule.tries:
            return PATIENT_WAIT_S if shard.settings.wait and rule.waits_host else None
        if rule.waits_host:  # the longer the host has failed, the longer it is left alone
            tried = min(max(tried, host.row.tries), rule.tries - 1)
        verdict = decide(
            response.failure,
            response.status,
            tried=tried,
            random=shard.roll(),
            retry_after_s=asked_for,
            is_first=not shard.counters.has_answer,
        )
        return verdict.wait_s if verdict else None

    def _give_up(
        self, lease: Lease, entry: Entry, request: Request | None, response: Response, rule: Rule, name: str
    ) -> None:
        shard, host = self._shard, lease.host
        is_revisit = lease.kind is Kind.REVISIT
        if is_revisit and self.on_revisit is not None:
            self.on_revisit(lease, request, response, name)
        if rule.gives_up_on_host:
            if not is_revisit:  # the URL fails with its host, and comes back with it
                shard.events.write("failed", url=lease.url, reason=name, detail=response.detail)
                shard.frontier.leave(lease)
            if not host.row.gave_up:
                shard.events.write("host-given-up", host=host.origin, reason=name, queued=host.row.queued)
            shard.frontier.give_up(host, name, shard.now())
        if is_revisit or rule.gives_up_on_host:
            shard.release(lease, response)
            return
        self._mining.settled(lease, is_hit=False)
        if entry.origin.is_guess:
            shard.frontier.finish(lease, UrlState.DROPPED, Reason.GUESS)
            shard.release(lease, response)
            return
        shard.counters.totals.failed[name] += 1
        host.row.failed += 1
        shard.frontier.finish(lease, UrlState.FAILED, Reason.FAILURE if response.failure else Reason.STATUS)
        essence = SITEMAP if lease.kind is Kind.SITEMAP else ""
        row = PageRow(response.status, shard.now_unix(), entry.depth, essence=essence, failure=name)
        shard.linker.gone(lease.url, url_key(lease.url), row)
        self._archive.put(lease, row, None)
        shard.events.write("failed", url=lease.url, reason=name, detail=response.detail)
        shard.release(lease, response)
