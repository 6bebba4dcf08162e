"""The gate between the browser and the network: whatever a rendered page asks for is fetched by the crawl.

A subresource becomes a requisite of its page in the frontier: robots.txt, delays, the address guard, the limits and the
archive hold for it as for all. What the collection has already is read from it, so that a bundle that all pages share
is fetched once; a bounded cache saves most of these reads. Redirects are followed here, each hop a request of its own.
On a cluster the hosts of other shards cannot be asked from here: such a request of the browser fails. Everything runs
on the crawl's event loop, and every request is answered exactly once. Called by `render.rendering`.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable

from lycosa.crawl import FetchObserver, ReadPage, Requisites, Shard, decoded_body, redirect_location
from lycosa.errors import StoreError
from lycosa.fetch import decode_body, parse_fields
from lycosa.frontier import FrontierHook, Host, Lease, QueueEntry, Reason, RequestKind, UrlState
from lycosa.records import Response
from lycosa.render.messages import Subresource
from lycosa.store import REDIRECTS, WarcLocation, page_at
from lycosa.web import parse_url, url_key

CACHE_BYTES = 64 << 20
CACHED_MOST_BYTES = 8 << 20  # of one body
OTHERS_WAIT_S = 20.0  # for a URL that is queued for another reason, such as a page
MOST_REDIRECTS = 10
_ASKED = frozenset((RequestKind.PAGE, RequestKind.REQUISITE, RequestKind.REVISIT))


Answered = Callable[[Subresource | None], None]


class SubresourceGate(FetchObserver, FrontierHook):
    """Has subresources fetched. `wake` tells the loop that there is more to do."""

    def __init__(self, shard: Shard, requisites: Requisites, wake: Callable[[], None]) -> None:
        self._shard, self._requisites, self._wake = shard, requisites, wake
        self._waiting: dict[str, list[Answered]] = {}
        self._cache: OrderedDict[str, Subresource] = OrderedDict()
        self._cached_bytes = 0
        self._given_up: set[str] = set()  # hosts from which nothing more will come in this run
        shard.frontier.add_hook(self)

    def __repr__(self) -> str:
        return f"<SubresourceGate waiting={len(self._waiting)} cached={self._cached_bytes >> 20} MB>"

    def fetch(self, text: str, page: str, depth: int, done: Answered, redirects: int = 0) -> None:
        """Has `text`, a URL, fetched for a page; `done` hears what came, None where nothing may or does."""
        url, frontier = parse_url(text), self._shard.frontier
        if url is None or redirects > MOST_REDIRECTS or not frontier.owns(url.host):
            done(None)
            return
        if url.href.removesuffix(url.path) in self._given_up:
            done(None)
            return
        if (cached := self._cache.get(url.href)) is not None:
            self._cache.move_to_end(url.href)
            done(cached)
            return

        def follow(found: Subresource | None) -> None:
            if found is not None and found.status in REDIRECTS:
                target = parse_url(found.headers.get("location", ""), url.href)
                self.fetch(target.href if target else "", page, depth, done, redirects + 1)
            else:
                done(found)

        key = url_key(url.href)
        [row] = frontier.rows_of([key])
        if row is None:
            self._waiting.setdefault(url.href, []).append(follow)
            self._requisites.need(url.href, page, depth=depth)
            if frontier.rows_of([key]) == [None]:  # excluded, or forgotten
                self._answer(url.href, None)
            self._wake()
        elif row.state is UrlState.QUEUED:
            self._wait_for_others(url.href, follow)
        else:
            follow(self._stored(key) if row.state is UrlState.DONE else None)

    def _wait_for_others(self, url: str, done: Answered) -> None:
        """It is on its way for another reason; but maybe not soon."""
        self._waiting.setdefault(url, []).append(done)

        def give_up() -> None:
            if done in (some := self._waiting.get(url, [])):
                some.remove(done)
                if not some:
                    del self._waiting[url]
                done(None)

        asyncio.get_running_loop().call_later(OTHERS_WAIT_S, give_up)

    def _stored(self, key: bytes) -> Subresource | None:
        """What the collection has under a URL."""
        collection = self._shard.collection
        row = page_at(collection.state, key)
        if row is None or not row.place:
            return None
        if row.location:
            return Subresource(row.status, {"location": row.location}, b"")
        try:
            record = collection.record(WarcLocation.unpack(row.place))
        except StoreError:
            return None
        if record.type != "response":  # a copy, whose body is elsewhere
            return None
        head, body = record.http()
        headers = parse_fields(head)
        if coding := headers.get("content-encoding", ""):
            body = decode_body(body, coding, cap_bytes=self._shard.reader.max_decoded_bytes).body
        return Subresource(row.status, headers, body)

    # what comes

    def arrived(self, url: str, response: Response) -> None:
        """A response has come: whoever waits for it is answered, before it is read and kept."""
        if response.failure is not None or not response.status:
            self._answer(url, None)
            return
        headers = dict(response.headers)
        if response.status in REDIRECTS:
            headers["location"] = redirect_location(response)
        body = decoded_body(response, self._shard.reader.max_decoded_bytes)
        found = Subresource(response.status, headers, body)
        if response.status == 200 and len(body) <= CACHED_MOST_BYTES:
            self._keep(url, found)
        self._answer(url, found)

    def ended(self, lease: Lease, response: Response, page: ReadPage | None) -> None:
        if lease.url in self._waiting and lease.kind in _ASKED:
            self.arrived(lease.url, response)

    def dropped(self, host: Host, entry: QueueEntry, reason: Reason) -> None:
        """A URL is not asked for after all: robots.txt forbids it."""
        if self._waiting:
            self._answer(host.origin + entry.path, None)

    def gave_up(self, host: Host) -> None:
        """Nothing more is asked of a host, such as one whose address is refused: whoever waits for it need not."""
        self._given_up.add(host.origin)
        for url in [each for each in self._waiting if each.startswith(f"{host.origin}/")]:
            self._answer(url, None)

    def cancel_all(self) -> None:
        """Answers everybody who waits: nothing more will come."""
        for url in list(self._waiting):
            self._answer(url, None)

    def _answer(self, url: str, found: Subresource | None) -> None:
        for done in self._waiting.pop(url, ()):
            done(found)

    def _keep(self, url: str, found: Subresource) -> None:
        self._forget(url)
        self._cache[url] = found
        self._cached_bytes += len(found.body)
        while self._cached_bytes > CACHE_BYTES:
            self._forget(next(iter(self._cache)))

    def _forget(self, url: str) -> None:
        known = self._cache.pop(url, None)
        self._cached_bytes -= len(known.body) if known is not None else 0
