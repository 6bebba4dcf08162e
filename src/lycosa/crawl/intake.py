"""The intake takes in what comes to a shard from outside: URLs that a user adds, URLs and hosts of other shards.

The `Inbox` of a collection holds URLs that the user adds, as files that appear whole and are taken whole, a URL a line,
behind a tab the seconds between visits if it is to be watched (0: no longer). They are kept in the state:

    meta   "every:" url key   → milliseconds (8 bytes); 0 until whoever plans visits has heard of it

`lycosa add` writes there whether a crawl runs or not; `Intake` looks every second and at the start of a crawl. A file
is removed only after its URLs are in the frontier's batch; the seen test makes taking one twice harmless. The loop
makes the `Intake` and calls it.

Who owns what among the shards of a crawl, how it travels and who is alive is decided behind the port (`OtherShards`).
`move_hosts` takes hosts out of a shard and into it between two commits, with nothing in flight at the hosts that leave;
each known URL stays counted once over all shards, and a host that came waits one full delay.
"""

import asyncio
import contextlib
import os
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from ipaddress import ip_network
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from lycosa.crawl.committer import CommitParticipant
from lycosa.crawl.requeue import requeue_failed, write_via
from lycosa.crawl.seams import Shard, UrlSource
from lycosa.errors import SettingsError, StoreError
from lycosa.files import replace_file
from lycosa.frontier import ForwardedUrl, HostRow, Origin, RequestKind, unpack_host
from lycosa.mapping import AddressGuard, is_literal_host, literal_address
from lycosa.records import Family
from lycosa.settings import CrawlSettings
from lycosa.store import Batch, Forgotten, State, activate_arrived_hosts, bucket_hosts, delete_bucket
from lycosa.web import Url, parse_url, split_url, url_key

if TYPE_CHECKING:
    from lycosa.learning import TrapGuard

INBOX_FOLDER = "inbox"
MAX_FILES = 100  # taken at a time
URLS_PER_SLICE = 500  # taken in before the loop gets a turn
EVERY = b"every:"


class AddedUrl(NamedTuple):
    """A URL that the user adds, and how often it is to be visited; None where nothing is said of that."""

    url: Url
    every_s: float | None = None

    @property
    def line(self) -> str:
        """The URL as it is put into an inbox."""
        return self.url.href if self.every_s is None else f"{self.url.href}\t{self.every_s:g}"

    @classmethod
    def read(cls, line: str) -> "AddedUrl | None":
        """The URL in a line of an inbox; None for what is none."""
        href, tab, every = line.rstrip("\n").partition("\t")
        url = parse_url(href)
        return None if url is None else cls(url, float(every) if tab else None)


class Inbox(CommitParticipant):
    """The inbox of the collection at `path`."""

    def __init__(self, path: Path) -> None:
        self._folder = path / INBOX_FOLDER
        self._taken: list[Path] = []

    def put(self, urls: Iterable[str]) -> None:
        """Leaves URLs for the crawl."""
        try:
            self._folder.mkdir(exist_ok=True)
            name = f"{time.time_ns():020}-{uuid.uuid4().hex}.urls"  # what was left later is taken later
            replace_file(self._folder / name, "".join(f"{url}\n" for url in urls).encode())
        except OSError as error:
            raise StoreError(f"cannot write to {self._folder}: {error.strerror}") from error

    def waiting(self, href: str) -> list[AddedUrl]:
        """What waits here of this URL, as it is normalised, in the order in which it will be taken."""
        found: list[AddedUrl] = []
        for path in sorted(self._folder.glob("*.urls")):
            with contextlib.suppress(FileNotFoundError), path.open() as lines:  # it may be taken meanwhile
                found += (added for line in lines if (added := AddedUrl.read(line)) and added.url.href == href)
        return found

    def on_committed(self) -> None:
        """What was taken is in the frontier for good: its files can go."""
        for path in self._taken:
            path.unlink(missing_ok=True)
        self._taken = []

    def take(self) -> Iterator[list[AddedUrl]]:
        """The URLs left here since the last look, slice by slice. A file goes with the commit that holds its
        last slice; if the iteration stops before that, it comes again, from its beginning."""
        if not self._folder.is_dir():
            return
        names = sorted(entry.name for entry in os.scandir(self._folder) if entry.name.endswith(".urls"))[:MAX_FILES]
        for path in [path for name in names if (path := self._folder / name) not in self._taken]:
            with path.open() as lines:
                while some := list(islice(lines, URLS_PER_SLICE)):
                    yield [added for line in some if (added := AddedUrl.read(line))]
            self._taken.append(path)


def set_intervals(batch: Batch, added: Iterable[AddedUrl]) -> bool:
    """Writes down how often URLs are to be visited; False if nothing is said of that."""
    is_any = False
    for one in added:
        if one.every_s is not None:
            batch.put(Family.META, EVERY + url_key(one.url.href), int(one.every_s * 1000).to_bytes(8))
            is_any = True
    return is_any


def interval_of(state: State, key: bytes) -> float:
    """How often the user wants the URL with this key visited, in seconds; 0 if nothing was said of it."""
    packed = state.get(Family.META, EVERY + key)
    return int.from_bytes(packed) / 1000 if packed else 0.0


def literal_hosts(seeds: Iterable[str]) -> tuple[str, ...]:
    """HOST:PORT of those seeds that are addresses or `localhost`."""
    urls = [url for seed in seeds if (url := parse_url(seed))]
    return tuple(f"{url.host}:{url.port}" for url in urls if is_literal_host(url.host))


def refuse_private(urls: Iterable[Url], settings: CrawlSettings, into: Path) -> None:
    """Raises SettingsError for a URL whose host is an address that the guard of this crawl would never let through."""
    guard = AddressGuard(ip_network(network) for network in settings.allow_private)
    for url in urls:
        address = literal_address(url.host)
        reason = guard.refusal(address) if address and f"{url.host}:{url.port}" not in settings.typed_hosts else None
        if reason:
            raise SettingsError(
                f"{url.href} is a special address, {reason}, which this crawl may not ask: give it as a seed, lycosa"
                f" crawl {url.href} --into {into}, or open its network with --allow-private"
            )


def refuse_forgotten(urls: Iterable[Url], into: Path) -> None:
    """Raises SettingsError for a URL that was forgotten: it is never asked for."""
    forgotten = Forgotten.of(into)
    for url in urls:
        if entry := forgotten.entry_for(url):
            raise SettingsError(
                f"{url.href} was forgotten, with {entry}: lycosa forget {into} {entry} --undo lets it be crawled again"
            )


class Intake:
    """Takes URLs in while a crawl runs; `commit` and `wake` are the loop's. `sources` hear of intervals."""

    def __init__(
        self,
        shard: Shard,
        inbox: Inbox,
        sources: Sequence[UrlSource],
        *,
        commit: Callable[[], None],
        wake: Callable[[], None],
    ) -> None:
        self._shard, self._inbox, self._sources = shard, inbox, sources
        self._commit, self._wake = commit, wake

    def add(self, urls: Sequence[Url]) -> int:
        """Takes in URLs that the user asks for, whatever the scope; their hosts become part of it."""
        if not urls:
            return 0
        shard = self._shard
        if shard.committer.has_failed:  # the batch is half written: they are taken in after it
            self._inbox.put(url.href for url in urls)
            return 0
        shard.link_filter.widen(urls)
        new = len(shard.frontier.admit(urls, depth=0, now=shard.now(), origin=Origin.SEED))
        new += requeue_failed(shard, urls)
        self._wake()
        return new

    async def add_all(self, urls: Sequence[Url]) -> None:
        """As `add`, of lists that may be long: they are taken in slice by slice, each with a commit of its own."""
        for start in range(0, len(urls), URLS_PER_SLICE):
            self.add(urls[start : start + URLS_PER_SLICE])
            if len(urls) >= URLS_PER_SLICE:
                self._commit()
                await asyncio.sleep(0)

    async def take_in_inbox(self) -> bool:
        """Takes in what was left in the inbox since the last look; returns whether there was anything."""
        committer, has_taken = self._shard.committer, False
        for added in self._inbox.take():
            has_taken = True
            await self.add_all([one.url for one in added])
            if not committer.has_failed and set_intervals(committer.batch, added):
                for source in self._sources:
                    source.intervals_set()
            if committer.has_failed:  # what is left of the file is taken in when the disk is well
                break
        return has_taken


def accept_urls(shard: Shard, traps: "TrapGuard", crossings: Sequence[ForwardedUrl]) -> None:
    """Takes in URLs that other shards found, as if they had been found here."""
    frontier, now = shard.frontier, shard.now()
    is_ranked = frontier.policy.ranking is not None
    groups: dict[tuple[int, int, int, int, str], list[ForwardedUrl]] = defaultdict(list)
    for one in crossings:
        if not one.is_evidence_only:
            groups[one.depth, one.kind, one.hops, one.origin, one.source].append(one)
    for (depth, kind, hops, origin, source), some in groups.items():
        urls = [split_url(one.href) for one in some]
        if depth == 0 and kind == RequestKind.PAGE and origin in (Origin.SEED, Origin.REDIRECT):
            shard.link_filter.widen(urls)  # asked for by the user, or where that leads
            if origin == Origin.SEED:
                requeue_failed(shard, urls)
        new = frontier.admit(
            urls,
            depth=depth,
            kind=RequestKind(kind),
            hops=hops,
            now=now,
            origin=Origin(origin),
            credits=[one.credit for one in some] if is_ranked else None,
            source=source,
            now_unix=shard.now_unix(),
        )
        if kind == RequestKind.REQUISITE:
            write_via(shard.committer.batch, new, source)
        elif source and new:
            traps.count_links(source, new)
    vouches = {one.href: one.credit for one in crossings if one.is_evidence_only}
    frontier.add_evidence(vouches, now)


def move_hosts(
    shard: Shard,
    traps: "TrapGuard",
    *,
    leaving_buckets: Collection[bytes],
    arriving_hosts: Sequence[tuple[bytes, bytes]],
) -> Batch:
    """Takes buckets out and hosts in, in memory; returns the batch that does it on disk. What is remembered of rows may
    be wrong then, and is forgotten."""
    batch, leaving = Batch(), list[tuple[bytes, HostRow]]()
    for bucket in leaving_buckets:
        leaving += [(key, unpack_host(packed)) for key, packed in bucket_hosts(shard.collection.state, bucket)]
        delete_bucket(batch, bucket)
    activate_arrived_hosts(batch, arriving_hosts)
    traps.forget()
    shard.linker.feed.forget()
    arriving = [unpack_host(packed) for _, packed in arriving_hosts]
    shard.frontier.move_hosts(leaving, arriving, now=shard.now(), now_unix=shard.now_unix())
    return batch
