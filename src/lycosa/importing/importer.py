"""Takes captures of archives into a collection, on the way that answers take in a crawl, at the times they were made.

The first capture of a URL is a page, a redirect or a failure as in a crawl; a later one is a visit: what has changed
becomes a version, what has not is counted. `Frontier.claim` gives leases for which nobody is asked; records, rows,
links and history are written by the handlers of the crawl in its commits. How far the import came is in the same
commits, so that one that was killed goes on. No link is followed; the next crawl into the collection looks at the links
of all pages, and queues those that are in its scope. Called by `lycosa import`.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import msgspec

from lycosa.crawl import JUDGED_BY_KEY, JUDGED_BY_NOTHING, Admission, LeaseAnswer, Parts, ReadPage, loop_parts
from lycosa.errors import SettingsError, StoreError
from lycosa.fetch import Downloader, DownloaderStats
from lycosa.frontier import Lease, Origin, QueueEntry, RequestKind, UrlState
from lycosa.importing.captures import ArchivedCapture, NotImported, capture_of
from lycosa.importing.plan import NO_REQUEST, ImportPlan, PlannedCapture, sources_of
from lycosa.mapping import AddressGuard
from lycosa.records import Family, Request, Resolved, Response
from lycosa.recrawl import Revisits, history, visit_of
from lycosa.settings import CrawlSettings, merge, settings_of_folder, to_toml
from lycosa.store import (
    CollectionStore,
    Forgotten,
    PageRow,
    WarcLocation,
    is_collection,
    is_sharded,
    page_at,
    response_exchange,
)
from lycosa.version import __version__
from lycosa.web import Url, named_analysers, parse_url, url_key

_TOLD_EVERY = 16  # captures
COMMIT_BYTES = 32 << 20  # of bodies; they are in memory until then
ROBOTS_PATH = "/robots.txt"
_POSITION_KEY = b"import"
_PAYLOAD = b"import:"  # + SHA-1 of a payload -> key of the first URL that had it
_NAMES_TOLD = 20
_FUTURE_S = 86_400.0
_WARC_DATE_S = 1e-6  # the finest WARC-Date; the time in a row is finer
_KNOWN = "there already, or older than what is there"


class ImportProgress(NamedTuple):
    """How far an import is: bytes and records of the first reading, then captures of the second."""

    read_bytes: int
    records: int
    done: int = 0
    total: int = 0


class ImportResult(msgspec.Struct, kw_only=True):
    """What an import did. `left_out` counts captures by the reason why they were left out; `problems` name what is
    damaged or odd, by file and byte."""

    records: dict[str, int]
    captures: int
    imported: int
    left_out: dict[str, int]
    problems: list[str]
    seconds: float


Progress = Callable[[ImportProgress], None]


def import_archives(paths: Sequence[Path], into: Path, *, progress: Progress = lambda _: None) -> ImportResult:
    """Imports WARC and WACZ files into the collection at `into`, which is made if it is not there."""
    if is_sharded(into):
        raise SettingsError(f"{into} has several shards: import into a folder of its own")
    sources = sources_of(paths)
    began, plan = time.monotonic(), ImportPlan(sources)
    try:
        plan.make(lambda size, records: progress(ImportProgress(size, records)))
        if not plan.total:
            why = f": {plan.problems[0]}" if plan.problems else ""
            raise StoreError(f"there is nothing to import in {', '.join(map(str, paths[:3]))}{why}")
        found = asyncio.run(_import(plan, into, progress))
    finally:
        plan.close()
    found.seconds = time.monotonic() - began
    return found


async def _import(plan: ImportPlan, into: Path, progress: Progress) -> ImportResult:
    kept = settings_of_folder(into) if is_collection(into) else None
    settings = (merge(kept) if kept else CrawlSettings()).replace(mine="off", archive="full")
    names = list(dict.fromkeys(source.path.name for source in plan.sources))
    info = {
        "software": f"lycosa/{__version__}",
        "format": "WARC File Format 1.1",
        "description": f"imported from {', '.join(names[:_NAMES_TOLD])}",
    }
    is_restart = is_collection(into)
    with CollectionStore.create(into, warc_info=info, warc_bytes=settings.warc_bytes) as collection:
        if kept is None:
            collection.save_settings(to_toml(CrawlSettings()))
        importer = _Importer(collection, settings, plan, is_restart=is_restart)
        try:
            importer.run(progress)
        finally:
            importer.close()
    left_out = importer.left_out
    if plan.undated:
        left_out["without a date"] += plan.undated
    return ImportResult(
        records=dict(plan.records),
        captures=plan.total + plan.undated,
        imported=importer.imported,
        left_out=dict(left_out),
        problems=plan.problems,
        seconds=0.0,
    )


class _Importer:
    """One import into an open collection. `imported` counts captures; the clock shows the time of the one at hand."""

    def __init__(
        self, collection: CollectionStore, settings: CrawlSettings, plan: ImportPlan, *, is_restart: bool
    ) -> None:
        self._state, self._plan, self._collection = collection.state, plan, collection
        self.imported, self.left_out = 0, Counter[str]()
        self._clock_s = 0.0
        no_network = _NoNetwork()
        given = Parts(
            resolver=no_network,
            downloader=no_network,
            guard=AddressGuard(),
            analysers=named_analysers(settings),
            answered_at=lambda: self._clock_s,
        )
        parts = loop_parts(collection, settings, given, is_restart=is_restart)
        self._shard, self._pages = parts.shard, parts.pages
        self._committer, self._batch = parts.shard.committer, parts.shard.committer.batch
        self._pages.admission = _NoAdmission(parts.shard, parts.traps)
        self._revisits = Revisits(parts.shard, parts.pages, parts.host_rules)
        self._touched: set[bytes] = set()  # URLs that the open commit writes
        self._payloads: dict[bytes, bytes] = {}  # and the payloads that it names
        self._held_bytes = 0
        self._forgotten = Forgotten.of(collection.path)

    def __repr__(self) -> str:
        return f"<Importer {self._collection.path} imported={self.imported}>"

    def run(self, progress: Progress) -> None:
        """Takes in all captures of the plan, but for those that an earlier import took in."""
        shard, plan = self._shard, self._plan
        shard.linker.catch_up()
        shard.events.write("import", sources=[source.name for source in plan.sources][:_NAMES_TOLD])
        read_bytes, records, digest = plan.read_bytes, plan.records.total(), plan.digest
        before = self._done_before(digest)
        for done, place in enumerate(islice(plan.captures(), before, None), before + 1):
            try:
                self._take_in(self._capture(place))
            except NotImported as left:
                self.left_out[left.why] += 1
                if left.is_odd:
                    plan.tell(f"{plan.sources[place.source].name}, byte {place.offset}: {left.why}")
            is_full = self._committer.waiting >= shard.settings.store_batch or self._held_bytes >= COMMIT_BYTES
            if is_full or done == plan.total:
                self._batch.put(Family.META, _POSITION_KEY, msgspec.msgpack.encode((digest, done)))
                self._commit()
            if done % _TOLD_EVERY == 0:
                progress(ImportProgress(read_bytes, records, done, plan.total))
        self._batch.put(Family.META, JUDGED_BY_KEY, JUDGED_BY_NOTHING)
        self._commit(is_last=True)
        progress(ImportProgress(read_bytes, records, plan.total, plan.total))

    def close(self) -> None:
        self._shard.background.close()
        self._shard.linker.close()
        self._shard.events.close()

    def _done_before(self, digest: bytes) -> int:
        """How many captures of the same plan were taken in before."""
        row = self._state.get(Family.META, _POSITION_KEY)
        before, done = msgspec.msgpack.decode(row, type=tuple[bytes, int]) if row else (b"", 0)
        if before != digest:
            return 0
        self.left_out[_KNOWN] += done
        return done

    def _commit(self, *, is_last: bool = False) -> None:
        while not self._committer.commit(self._shard.now(), is_last=is_last):
            time.sleep(0.1)  # the disk refuses; this raises when it has for long
        self._shard.events.flush()
        self._touched.clear()
        self._payloads.clear()
        self._held_bytes = 0

    # captures

    def _take_in(self, capture: ArchivedCapture) -> None:
        if self._forgotten.has(capture.url):
            raise NotImported("forgotten in this collection")
        if not self._touched.isdisjoint(self._asks_for(capture)):
            self._commit()
        if capture.is_revisit:
            capture = self._resolved(capture)
        if capture.url.path == ROBOTS_PATH:
            self._keep_robots(capture)
        else:
            self._handle(self._answer(capture))

    def _capture(self, place: PlannedCapture) -> ArchivedCapture:
        if place.date > time.time() + _FUTURE_S:
            raise NotImported("dated in the future", is_odd=True)
        try:
            record = self._plan.read(place.source, place.offset)
            asked = self._plan.read(place.source, place.request) if place.request != NO_REQUEST else None
        except StoreError as error:  # it has changed since it was planned
            raise NotImported("cannot be read any more", is_odd=True) from error
        return capture_of(record, asked, fetched_s=place.date)

    def _asks_for(self, capture: ArchivedCapture) -> list[bytes]:
        """The keys of the URLs whose rows a capture is judged by; they have to be committed before."""
        keys = [url_key(capture.url.href)]
        if capture.is_revisit:
            original = parse_url(capture.original)
            keys += [url_key(original.href)] if original else []
            keys += [key] if (key := self._first_with(capture.payload_sha1)) else []
        return keys

    def _first_with(self, payload_sha1: bytes | None) -> bytes | None:
        """The key of a URL that had this payload."""
        if payload_sha1 is None:
            return None
        return self._payloads.get(payload_sha1) or self._state.get(Family.META, _PAYLOAD + payload_sha1)

    def _resolved(self, capture: ArchivedCapture) -> ArchivedCapture:
        """A revisit with the body that it refers to. One that was not modified needs none, if its page is there."""
        own, *others = self._asks_for(capture)
        response, sha1 = capture.response, capture.payload_sha1
        if response.status == 304 and page_at(self._state, own) is not None:
            return capture
        for key in [*others, own]:
            if place := self._place_of(key, sha1):
                record = self._collection.record(WarcLocation.unpack(place))
                if record.type != "response":
                    continue
                original = capture_of(record, None, fetched_s=capture.fetched_s).response
                has_head = response.header_block and response.status != 304
                said = response if has_head else original
                body = msgspec.structs.replace(said, url=capture.url.href, body=original.body, address=response.address)
                return capture._replace(response=body)
        raise NotImported("revisits of what is not in the archives")

    def _place_of(self, key: bytes, payload_sha1: bytes | None) -> bytes:
        """Where the version of a page with this payload is, its latest where the payload is not known."""
        row = page_at(self._state, key)
        if row is None:
            return b""
        if payload_sha1 in (None, row.payload_sha1):
            return row.place
        places = (change.place for _, change in history(self._state, key) if change.payload_sha1 == payload_sha1)
        return next((place for place in places if place), b"")

    def _answer(self, capture: ArchivedCapture) -> LeaseAnswer:
        """A capture as the answer to a request that was made at its time: for a new page, or as a visit."""
        key, shard = url_key(capture.url.href), self._shard
        [known], row = shard.frontier.rows_of([key]), page_at(self._state, key)
        kind, depth = RequestKind.PAGE, 0
        if known is None:
            if capture.response.status == 304:
                raise NotImported("revisits of what is not in the archives")
        elif row is None or known.state not in (UrlState.DONE, UrlState.FAILED):
            raise NotImported("waiting in the queue of the collection, or dropped by its crawl")
        elif capture.fetched_s <= self._checked_s(key, row) + _WARC_DATE_S:
            raise NotImported(_KNOWN)
        else:
            kind, depth = RequestKind.REVISIT, row.depth
        lease = shard.frontier.claim(capture.url, kind, depth=depth, origin=Origin.IMPORT, now=shard.now())
        self._touched.add(key)
        self._held_bytes += len(capture.response.body)
        return LeaseAnswer(lease, capture.request, capture.response, capture.fetched_s)

    def _checked_s(self, key: bytes, row: PageRow) -> float:
        visit = visit_of(self._state, key)
        return max(row.fetched_s, visit.checked_s if visit else 0.0)

    def _handle(self, answer: LeaseAnswer) -> None:
        lease, response, self._clock_s = answer.lease, answer.response, answer.fetched_s
        self._shard.reader.prepare(answer)
        self._shard.counters.request(response)
        lease.host.record_request(len(response.body), 0.0, answer.fetched_s)
        handler = self._revisits if lease.kind is RequestKind.REVISIT else self._pages
        read: ReadPage | None = handler.handle(answer)
        if read is not None:
            self._pages.admit(read)
        if answer.prepared is not None and response.body:
            self._note_payload(answer.prepared.payload_sha1, url_key(lease.url))
        self.imported += 1

    def _note_payload(self, payload_sha1: bytes, key: bytes) -> None:
        if self._first_with(payload_sha1) is None:
            self._payloads[payload_sha1] = key
            self._batch.put(Family.META, _PAYLOAD + payload_sha1, key)

    def _keep_robots(self, capture: ArchivedCapture) -> None:
        """The rules of the past are kept in the archive, but they are no page, and the host is asked for its own."""
        key = url_key(capture.url.href)
        made = response_exchange(
            capture.request, capture.response, fetched_s=capture.fetched_s, metadata={"depth": "0"}
        )
        if self._first_with(made.payload_sha1) == key:
            raise NotImported(_KNOWN)
        self._committer.archive(made.members)
        self._note_payload(made.payload_sha1, key)
        self.imported += 1


class _NoAdmission(Admission):
    """Follows no link and no redirect."""

    def follow(self, read: ReadPage) -> list[Url]:
        return []

    def follow_redirect(self, lease: Lease, entry: QueueEntry, target: Url, kind: RequestKind) -> None:
        return


class _NoNetwork(Downloader):
    """Stands where a crawl has its resolver and its downloader; an import sends no requests."""

    async def resolve(self, name: str) -> Resolved:
        raise AssertionError(name)

    def flush(self) -> None:
        return

    def start(self, request: Request, done: Callable[[Response], None]) -> None:
        raise AssertionError(request.url)

    def cancel_all(self) -> None:
        return

    def stats(self) -> DownloaderStats:
        return DownloaderStats(0, 0, 0, 0, 0, 0, 0, 0)

    async def close(self) -> None:
        return
