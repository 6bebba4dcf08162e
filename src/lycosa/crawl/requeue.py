"""URLs that are queued again: links left out before, lost records, failures.

What is out of scope, too deep or excluded is not kept as a URL: only the links of every page are, as written. So when
depth, scope or a filter is another than in the run before, a crawl begins with the stored links of all pages, and URLs
that were over a host's limit of pages or depth are queued again if that has changed. The settings that links were
judged by are kept in the state, as the settings file may be changed by hand; of the seeds, which may be a million, a
hash. Called by the loop before anything is fetched, and when URLs are added.
"""

from collections.abc import Callable, Iterable
from itertools import islice

import msgspec
import xxhash

from lycosa.crawl.reading import joined_links
from lycosa.crawl.seams import Shard
from lycosa.frontier import Origin, Reason, RequestKind, UrlRow, UrlState, pack_requisite_hops
from lycosa.records import Family
from lycosa.settings import SETTINGS, CrawlSettings
from lycosa.store import Batch, PageRow, State, WarcLocation, page_at, pages_at, unpack_links, unpack_page
from lycosa.web import DropReason, Url, filter_urls, split_url, url_from_key, url_key

JUDGED_BY_KEY = b"judged-by"
JUDGED_BY_NOTHING = b"{}"  # its value where pages came in whose links nobody has judged
JUDGING_SETTINGS = tuple(name for name, about in SETTINGS.items() if about.judges_links)
KEEPING_SETTINGS = frozenset({"keep", "keep_types"})
# Settings by which URLs were dropped that are known, and for what reason.
DROPPED_BY = {
    "pages_per_host": Reason.PAGES_PER_HOST,
    "host_pages": Reason.PAGES_PER_HOST,
    "host_depth": Reason.DEPTH,
    "pipelines": Reason.PIPELINE,
    "purpose": Reason.PREFERENCES,
    "keep_types": Reason.MEDIA_TYPE,
}
PAGES_AT_ONCE = 2_000
_VIA_KEY = b"via:"  # + URL key, in META → the page that first needed a requisite; it moves with its host


def requeue_failed(shard: Shard, urls: Iterable[Url]) -> int:
    """Queues those of the URLs that have failed, since the user who asks for them may know better, and those that were
    only checked. Returns how many."""
    again, own = 0, {url_key(url.href): url for url in urls if shard.frontier.owns(url.host)}
    rows = shard.frontier.rows_of(list(own)) if own else []
    for (key, url), row in zip(own.items(), rows, strict=True):
        if row is None or row.state not in (UrlState.FAILED, UrlState.DONE):
            continue
        page = page_at(shard.collection.state, key) or PageRow(0, 0.0)
        if page.is_external:
            requeue_as_page(shard, url.href, page, Origin.SEED)
            again += 1
            continue
        if row.state is UrlState.DONE:
            continue
        name = page.failure or (str(page.status) if page.status >= 400 else "")
        if not name or page.file_num:  # a page that is gone is revisited when its time comes
            continue
        shard.counters.failed(name, -1)
        shard.committer.batch.delete(Family.PAGE, key)
        shard.frontier.requeue(
            url.href, row.depth, kind=RequestKind.PAGE, failed=1, links=0, origin=Origin.SEED, now=shard.now()
        )
        again += 1
    return again


def requeue_lost(shard: Shard) -> None:
    """Queues the URLs whose record is no longer whole, after a power loss or a fault of the disk, and uncounts them.
    What was cut off the archive is told, too: records that no commit names, since it was not made or its log is
    damaged; and why the state's own log was cut off, if it was."""
    recovery = shard.collection.recovery
    if found := shard.collection.state.repaired:
        shard.events.write("state-log-cut", found=found)
    if recovery.cut_bytes:
        shard.events.write("archive-cut", bytes=sum(recovery.cut_bytes.values()))
    if not recovery.has_losses:
        return
    state, lost = shard.collection.state, 0
    for key, packed in state.walk(Family.PAGE):
        row = unpack_page(packed)
        if not row.place or not recovery.is_lost(WarcLocation.unpack(row.place)):
            continue
        url = state.get(Family.URL, key)
        if url is None or UrlRow.unpack(url).state is not UrlState.DONE:  # a redirect that led nowhere has failed
            continue
        lost += 1
        shard.counters.remove(row)
        if row.requisite and not row.location:
            hops = pack_requisite_hops(row.requisite, 0)
            now, now_unix = shard.now(), shard.now_unix()
            shard.frontier.requeue(
                url_from_key(key), row.depth, kind=RequestKind.REQUISITE, hops=hops, now=now, now_unix=now_unix
            )
            continue
        kind = RequestKind.SITEMAP if row.is_sitemap else RequestKind.PAGE
        pages, links = int(row.is_page), row.links if row.is_page else None
        shard.frontier.requeue(url_from_key(key), row.depth, kind=kind, pages=pages, links=links, now=shard.now())
    shard.counters.lost(lost)
    if lost:
        shard.events.write("records-lost", pages=lost)
        shard.collection.acknowledge_losses(shard.committer.batch)


def readmit_links(shard: Shard, commit: Callable[[], None]) -> None:
    """Queues what the settings of now let in and those of before did not."""
    state, judged_by = shard.collection.state, _judged_by(shard.settings)
    packed = state.get(Family.META, JUDGED_BY_KEY)
    before = msgspec.json.decode(packed, type=dict[str, object]) if packed else judged_by
    # those of earlier versions had none
    before = {"pipelines": [], "purpose": "archive", "keep": [], "keep_types": [], "external": False, **before}
    queued = 0
    changed = {name for name in JUDGING_SETTINGS if before.get(name) != judged_by[name]}
    if changed - DROPPED_BY.keys() - KEEPING_SETTINGS:
        queued += _readmit_stored_links(shard, commit)
    if changed & DROPPED_BY.keys():
        queued += _requeue_over_limit(shard, commit, {DROPPED_BY[name] for name in changed & DROPPED_BY.keys()})
    if changed & KEEPING_SETTINGS or changed - DROPPED_BY.keys():
        queued += _requeue_other_rows(shard, commit)
    shard.committer.batch.put(Family.META, JUDGED_BY_KEY, msgspec.json.encode(judged_by))
    if queued:
        shard.events.write("looked-again", queued=queued)


def _judged_by(settings: CrawlSettings) -> dict[str, object]:
    values = {name: getattr(settings, name) for name in JUDGING_SETTINGS}
    values["seeds"] = xxhash.xxh3_64_hexdigest("\n".join(settings.seeds).encode("utf-8", "surrogatepass"))
    return msgspec.json.decode(msgspec.json.encode(values), type=dict[str, object])


def _readmit_stored_links(shard: Shard, commit: Callable[[], None]) -> int:
    """The links of all pages that may lead deeper."""
    state, limit, queued = shard.collection.state, shard.settings.depth, 0
    rest = state.walk(Family.LINK)
    while some := list(islice(rest, PAGES_AT_ONCE)):
        rows = pages_at(state, [key for key, _ in some])
        for (key, links), row in zip(some, rows, strict=True):
            if row is None or (limit is not None and row.depth >= limit):
                continue
            url = url_from_key(key)
            joined = joined_links(unpack_links(links), url).joined
            kept = shard.link_filter.wanted(joined.values(), counts=False)
            source = split_url(url).host
            queued += len(shard.frontier.admit(kept, depth=row.depth + 1, now=shard.now(), source=source))
            if shard.settings.external:
                _, dropped = filter_urls(set(joined.values()), shard.link_filter.filters)
                outside = [split_url(href) for href, reason in dropped if reason is DropReason.OUT_OF_SCOPE]
                kind = RequestKind.EXTERNAL
                queued += len(shard.frontier.admit(outside, depth=row.depth + 1, kind=kind, now=shard.now()))
        commit()
    return queued


def _requeue_other_rows(shard: Shard, commit: Callable[[], None]) -> int:
    """Pages that were only followed and are to be kept now, and URLs that were only checked and are in scope now."""
    queued = 0
    rest = shard.collection.state.walk(Family.PAGE)
    while some := list(islice(rest, PAGES_AT_ONCE)):
        for key, packed in some:
            row = unpack_page(packed)
            if not (row.is_followed_only or row.is_external):
                continue
            url = url_from_key(key)
            if shard.reader.is_kept(url, row.essence) if row.is_followed_only else shard.link_filter.sift([url]):
                requeue_as_page(shard, url, row)
                queued += 1
        commit()
    return queued


def requeue_as_page(shard: Shard, url: str, row: PageRow, origin: Origin = Origin.LINK) -> None:
    """Queues a URL of which less is kept than is wanted now."""
    shard.counters.remove(row)
    shard.committer.batch.delete(Family.PAGE, url_key(url))
    failed, pages = int(row.has_failed), int(row.is_page)
    links = row.links if row.is_page else None
    shard.frontier.requeue(
        url, row.depth, kind=RequestKind.PAGE, pages=pages, failed=failed, links=links, origin=origin, now=shard.now()
    )


def _requeue_over_limit(shard: Shard, commit: Callable[[], None], reasons: set[Reason]) -> int:
    """URLs that were dropped because of a limit of their host or by a pipeline; if they still are to be, they are
    dropped again."""
    queued = 0
    rest = shard.collection.state.walk(Family.URL)
    while some := list(islice(rest, PAGES_AT_ONCE)):
        for key, packed in some:
            row = UrlRow.unpack(packed)
            if row.state is UrlState.DROPPED and row.reason in reasons:
                reason, origin = row.reason, row.origin
                shard.frontier.requeue(
                    url_from_key(key), row.depth, kind=RequestKind.PAGE, origin=origin, dropped=reason, now=shard.now()
                )
                queued += 1
        commit()
    return queued


def write_via(batch: Batch, urls: Iterable[Url], page: str) -> None:
    """Remembers which page needs URLs that became known by it."""
    for url in urls:
        batch.put(Family.META, _VIA_KEY + url_key(url.href), page.encode())


def page_of_requisite(state: State, url: str) -> str:
    """The page by which a requisite became known; empty if that is not known."""
    return (state.get(Family.META, _VIA_KEY + url_key(url)) or b"").decode("utf-8", "replace")
