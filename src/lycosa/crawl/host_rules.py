"""The rules of a host, read before its pages: robots.txt, the sitemaps that it names, and files on the use of content.

Nothing of a host is asked for before its robots.txt is known. Where it cannot be had, the host's address is forgotten
and it is tried again as the retry table says; then the host is given up. Where the purpose of the crawl asks for them,
tdmrep.json and the licences of RSL are read in the same way, right after robots.txt and once with each.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha1
from typing import TYPE_CHECKING

import msgspec

from lycosa.crawl.addresses import HostAddresses
from lycosa.crawl.keeper import Archive
from lycosa.crawl.pages import PATIENT_WAIT_S, PageHandler, RequestBuilder
from lycosa.crawl.progress import ROBOTS
from lycosa.crawl.reading import LeaseAnswer, decoded_body, decoded_pieces, redirect_location
from lycosa.crawl.seams import Fetch, OtherShards, ReadPage, Shard
from lycosa.fetch import hsts_age, retry_rule, retry_wait
from lycosa.frontier import FrontierHook, Host, HostJob, Lease, Origin, QueueEntry, Reason, RequestKind, UrlState
from lycosa.records import Request, Response, Truncation
from lycosa.store import REDIRECTS, SITEMAP, PageRow
from lycosa.web import (
    DIGEST_BYTES,
    TDM_RESERVATION,
    Purpose,
    Robots,
    SitemapEntry,
    Steps,
    Url,
    parse_url,
    read_sitemap_steps,
    robots_from_response_steps,
)

if TYPE_CHECKING:
    from hashlib import _Hash

MAX_ROBOTS_HOPS = 5
MAX_LICENSES = 3  # of one host that are read
ROBOTS_FOR_S = 24 * 3600.0
ROBOTS_BYTES = 512 * 1024  # the standard asks for 500 KiB at least
SITEMAP_BYTES = 50 * 1024 * 1024
URLS_PER_STEP = 250  # of a sitemap
SITEMAPS_MOST = 8  # fetched or read at a time, however many hosts have one: each may be 50 MB and 50,000 URLs
SITEMAP_WAIT_S = 10.0
SITEMAP_DEPTH = 3  # an index of indexes of sitemaps


class _UsageFiles(msgspec.Struct):
    """A host whose rules are known but for its files on the use of content, and those that are still to be read."""

    rules: Robots
    left: list[Url]


def _usage_files(host: Host, rules: Robots, purpose: Purpose) -> list[Url]:
    """The files on the use of its content that a host may have and that concern the purpose: tdmrep.json, and licences
    that its robots.txt names and that are on the host itself."""
    from lycosa.web import TDMREP_PATH  # lazy: crawls for an archive never need it

    names = [TDMREP_PATH] if purpose in TDM_RESERVATION["1"] else []
    home = f"{host.origin}/"
    found = [url for name in (*names, *rules.licenses[:MAX_LICENSES]) if (url := parse_url(name, home))]
    own = [url for url in found if url.href.startswith(home) and rules.allows(url.path)]
    return list(dict.fromkeys(own))


def _hashed(pieces: Iterable[bytes], digest: "_Hash") -> Iterator[bytes]:
    """The pieces, each of which the digest has seen when it is given out: that of a sitemap is of what was read."""
    for piece in pieces:
        digest.update(piece)
        yield piece


class RobotsHandler:
    """Asks for robots.txt and reads the answers."""

    def __init__(self, rules: "HostRules") -> None:
        self._rules = rules

    def request(self, lease: Lease) -> Request:
        return self._rules.requests.build(lease, body_limit_bytes=ROBOTS_BYTES, takes_any_type=True)

    def handle(self, answer: LeaseAnswer) -> None:
        self._rules.robots(answer.lease, answer.request, answer.response)


class SitemapHandler:
    """Asks for sitemaps and reads the answers."""

    def __init__(self, rules: "HostRules", pages: PageHandler) -> None:
        self._rules, self._pages = rules, pages

    def request(self, lease: Lease) -> Request:
        return self._rules.requests.build(lease, body_limit_bytes=SITEMAP_BYTES, takes_any_type=True)

    def handle(self, answer: LeaseAnswer) -> ReadPage | None:
        lease, request, response = answer.lease, answer.request, answer.response
        if self._pages.failures.handle(lease, request, response):
            return None
        if response.truncated is Truncation.UNWANTED or response.status in REDIRECTS:
            return self._pages.answered(answer)
        self._rules.sitemap(lease, request, response)
        self._rules.release(lease, response)
        return None


class HostRules(FrontierHook):
    """Reads robots.txt and sitemaps, in the background where they are large; lets few sitemaps be fetched at a time.
    `in_flight` has the fetches under way by ticket."""

    def __init__(
        self,
        shard: Shard,
        archive: Archive,
        addresses: HostAddresses,
        requests: RequestBuilder,
        in_flight: Mapping[int, Fetch],
        other_shards: OtherShards | None = None,
    ) -> None:
        self._shard, self._archive, self._addresses, self._other_shards = shard, archive, addresses, other_shards
        self.requests, self._purpose, self._in_flight = requests, Purpose(shard.settings.purpose), in_flight
        self._sitemaps_read = 0  # those under way
        self._with_files: dict[bytes, _UsageFiles] = {}  # by the key of hosts whose files on use are being read
        self.on_dates: Callable[[Host, Sequence[SitemapEntry]], Steps[int]] | None = None
        shard.frontier.add_hook(self)

    def judge(self, host: Host, entry: QueueEntry, now_unix: float) -> float | None:
        """Has a sitemap wait while as many are fetched or read as may be in memory."""
        if entry.kind is not RequestKind.SITEMAP:
            return None
        fetched = sum(fetch.lease.kind is RequestKind.SITEMAP for fetch in self._in_flight.values())
        return SITEMAP_WAIT_S if fetched + self._sitemaps_read >= SITEMAPS_MOST else None

    def robots(self, lease: Lease, request: Request | None, response: Response) -> None:
        """Takes in a robots.txt, follows where it leads, or has it retried."""
        shard = self._shard
        self._archive.keep_answer(lease, request, response)
        if (age_s := hsts_age(response)) is not None:
            lease.host.record_hsts(shard.now_unix() + age_s if age_s else 0.0)
        if lease.job is not None and lease.job.answer is not None:  # another shard wanted it
            shard.release(lease, response)
            lease.job.answer(response)
            return
        wanted_by, hops = (lease.job.wanted_by, lease.job.hops) if lease.job else (lease.host.key, 0)
        host = shard.frontier.hosts.get(wanted_by)
        if lease.job is None:
            self._with_files.pop(wanted_by, None)
        if host is None:  # nobody waits for it any more
            shard.release(lease, response)
            return
        self._answered(host, lease, response, hops)

    def _answered(self, host: Host, lease: Lease | None, response: Response, hops: int) -> None:
        """What a host's robots.txt gave; without a lease another shard has asked for it."""
        shard = self._shard
        if response.status in REDIRECTS and response.failure is None and hops < MAX_ROBOTS_HOPS:
            written = redirect_location(response)
            target = parse_url(written, response.url) if written else None
            if target is not None:
                self.release(lease, response)
                self._follow(host, target, hops + 1)
                return
        shard.background.start(self._learn(host, lease, response), host.host)

    def _learn(self, host: Host, lease: Lease | None, response: Response) -> Steps[None]:
        shard = self._shard
        if (files := self._with_files.get(host.key)) is not None:
            self._learn_use(host, lease, response, files)
            return
        status = 0 if response.failure is not None else response.status
        rules = yield from robots_from_response_steps(
            status, decoded_body(response, ROBOTS_BYTES), agent=shard.settings.agent
        )
        if rules.is_unreachable:
            self._unreachable(host, lease, response)
            return
        if self._purpose is not Purpose.ARCHIVE and (urls := _usage_files(host, rules, self._purpose)):
            self._with_files[host.key] = files = _UsageFiles(rules, urls)
            self.release(lease, response)
            self._follow(host, files.left[0], 0)
            return
        self._set_rules(host, rules)
        self.release(lease, response)

    def _set_rules(self, host: Host, rules: Robots) -> None:
        shard = self._shard
        shard.frontier.host_control.set_robots(host, rules, until_unix=shard.now_unix() + ROBOTS_FOR_S, now=shard.now())
        if shard.settings.sitemaps and shard.link_filter.has_host(host.host, host.port):
            self._admit_sitemaps(rules.sitemaps, host.host, depth=0)

    def _learn_use(self, host: Host, lease: Lease | None, response: Response, files: "_UsageFiles") -> None:
        """Reads a file on the use of a host's content; it goes on with the next, or else the host's rules are known.
        One that cannot be had says nothing."""
        # lazy: crawls for an archive never need it
        from lycosa.web import MAX_USAGE_FILE_BYTES, TDMREP_PATH, read_reservations, read_terms

        url = files.left.pop(0)
        if response.failure is None and 200 <= response.status < 300:
            body = decoded_body(response, MAX_USAGE_FILE_BYTES)
            if url.path == TDMREP_PATH:
                files.rules = msgspec.structs.replace(files.rules, reservations=read_reservations(body))
            else:
                terms = (*files.rules.terms, *read_terms(body, host.origin))
                files.rules = msgspec.structs.replace(files.rules, terms=terms)
        if files.left:
            self.release(lease, response)
            self._follow(host, files.left[0], 0)
            return
        del self._with_files[host.key]
        self._set_rules(host, files.rules)
        self.release(lease, response)

    def release(self, lease: Lease | None, response: Response) -> None:
        if lease is not None:
            self._shard.release(lease, response)

    def _follow(self, host: Host, target: Url, hops: int) -> None:
        """Who may ask there does: this shard, or the one whose host it is."""
        shard, key = self._shard, host.key

        def then(response: Response) -> None:
            waiting = shard.frontier.hosts.get(key)
            if waiting is not None and waiting.awaits_robots:
                self._answered(waiting, None, response, hops)

        if self._other_shards is None or shard.frontier.owns(target.host):
            shard.frontier.host_control.want(HostJob(target.href, key, hops), shard.now())
        else:
            self._other_shards.ask_robots(target, then)

    def _unreachable(self, host: Host, lease: Lease | None, response: Response) -> None:
        shard = self._shard
        if lease is not None:
            self._addresses.forget(lease.host)
        is_first = not shard.counters.has_answer
        is_outage = self._addresses.outage.explains(response.failure, shard.now(), is_first=is_first)
        shard.frontier.host_control.robots_failed(host, shard.now(), counts=not is_outage)
        name = str(response.failure or response.status)
        rule = retry_rule(response.failure, response.status, is_first=is_first)
        wait_s = retry_wait(rule, max(host.row.robots_tries, 1), random=shard.roll()) if rule else None
        if wait_s is None and not shard.settings.wait:
            reason = name if response.failure else Reason.ROBOTS_UNREACHABLE
            shard.events.write("host-given-up", host=host.origin, reason=reason, detail=response.detail)
            shard.frontier.host_control.give_up(host, reason, shard.now())
            self.release(lease, response)
            return
        wait_s, why = PATIENT_WAIT_S if wait_s is None else wait_s, ROBOTS + name
        if lease is not None and lease.host is host:
            shard.release(lease, response, wait_s=wait_s, reason=why)
        else:
            self.release(lease, response)
            shard.frontier.host_control.make_wait(
                host, shard.now(), wait_s=wait_s, reason=why, now_unix=shard.now_unix()
            )

    def _admit_sitemaps(self, urls: Sequence[str], host: str, *, depth: int) -> int:
        """A host's own sitemaps are read even where the scope is a folder of it; others must be in scope. Returns how
        many are new."""
        shard = self._shard
        found = [url for text in urls if (url := parse_url(text))]
        kept = [url for url in found if url.host == host]
        kept += shard.link_filter.sift([url.href for url in found if url.host != host])
        kind, origin = RequestKind.SITEMAP, Origin.SITEMAP
        return len(shard.frontier.admit(kept, depth=depth, kind=kind, now=shard.now(), origin=origin))

    def sitemap(
        self, lease: Lease, request: Request | None, response: Response, then: Callable[[int], None] | None = None
    ) -> None:
        """Takes in what a sitemap lists; the pages count as one link away from a seed. `then` is called when all of it
        is in, before the commit with the last of it, with the number of URLs that are new."""
        self._sitemaps_read += 1
        self._shard.background.start(self._take_in(lease, request, response, then), lease.host.host)

    def _take_in(
        self, lease: Lease, request: Request | None, response: Response, then: Callable[[int], None] | None
    ) -> Steps[None]:
        """What it lists may take several commits. It is done with the last: until then it is still queued, and after a
        crash it is fetched again."""
        shard, depth, digest = self._shard, lease.depth, sha1(usedforsecurity=False)
        pieces = _hashed(decoded_pieces(response, SITEMAP_BYTES), digest)
        found = yield from read_sitemap_steps(pieces, lease.url)
        if self.on_dates is not None:
            yield from self.on_dates(lease.host, found.entries)
        urls = [entry.url for entry in found.entries]
        new = 0
        most, counts = shard.settings.depth, lease.kind is not RequestKind.REVISIT  # what is read again was counted
        for start in range(0, len(urls), URLS_PER_STEP):
            some = urls[start : start + URLS_PER_STEP]
            if not found.is_index and (most is None or most >= 1):
                parsed = [url.href for text in some if (url := parse_url(text))]
                kept = shard.link_filter.sift(parsed, counts=counts)
                new += len(shard.frontier.admit(kept, depth=1, now=shard.now(), origin=Origin.SITEMAP))
            elif found.is_index and depth < SITEMAP_DEPTH:
                new += self._admit_sitemaps(some, lease.host.host, depth=depth + 1)
            shard.committer.count_outcomes(len(some))
            yield
        self._sitemaps_read -= 1
        if then is not None:
            then(new)
        self._keep(lease, request, response, digest.digest()[:DIGEST_BYTES])

    def _keep(self, lease: Lease, request: Request | None, response: Response, digest: bytes) -> None:
        shard = self._shard
        now = shard.now_unix()
        row = PageRow(
            response.status,
            now,
            lease.depth,
            essence=SITEMAP,
            size_bytes=len(response.body),
            payload_sha1=sha1(response.body, usedforsecurity=False).digest(),
            digest=digest,
            etag=response.headers.get("etag", ""),
            last_modified=response.headers.get("last-modified", ""),
        )
        self._archive.write_row(lease, row, self._archive.keep_answer(lease, request, response, now))
        shard.counters.sitemap()
        shard.frontier.outcomes.finish(lease, UrlState.DONE)
