"""Is a collection's state whole? Every promise of the state that can be checked by reading all of it."""

from collections import Counter
from pathlib import Path

from lycosa.crawl.stats import CrawlStats
from lycosa.frontier.rows import KEY_END, QueueEntry, RequestKind, UrlRow, UrlState, unpack_host
from lycosa.inspect import stats_of
from lycosa.records import Family
from lycosa.store import CollectionStore, WarcLocation
from lycosa.store.page_rows import unpack_page
from lycosa.store.warc_read import WarcRecord
from lycosa.web.url import BUCKET_BYTES
from tests.graph.recount import link_problems
from tests.store.warc_digests import block_digest_agrees, payload_digest_agrees


def problems(path: Path, *, sampled: int = 500) -> list[str]:
    """Sentences about everything that does not fit together; records are read for every `sampled`-th page."""
    found: list[str] = []
    with CollectionStore.open(path) as collection:
        state = collection.state
        urls = {key: UrlRow.unpack(row) for key, row in state.walk(Family.URL)}
        hosts = {key: unpack_host(row) for key, row in state.walk(Family.HOST)}
        queued: Counter[bytes] = Counter()
        revisits: Counter[bytes] = Counter()
        requisites: Counter[bytes] = Counter()
        for key, row in state.walk(Family.QUEUE):
            host, entry = key[: key.index(KEY_END, BUCKET_BYTES)], QueueEntry.unpack(key, row)
            if entry.kind is RequestKind.REVISIT:  # its URL is settled, and stays so while it waits
                revisits[host] += 1
                continue
            requisites[host] += entry.kind is RequestKind.REQUISITE
            queued[host + KEY_END + entry.path.encode()] += 1
            if host not in hosts:
                found.append(f"queue entry of an unknown host: {key!r}")
        for key, times in queued.items():
            if times > 1:
                found.append(f"queued {times} times: {key!r}")
            if urls.get(key) is None or urls[key].state is not UrlState.QUEUED:
                found.append(f"queued but not known as queued: {key!r}")
        found += [
            f"known as queued, not in a queue: {k!r}"
            for k, r in urls.items()
            if r.state is UrlState.QUEUED and k not in queued
        ]
        by_host = Counter(key[: key.index(KEY_END, BUCKET_BYTES)] for key in queued)
        found += [
            f"{k!r} counts {h.queued} queued and {h.revisits} revisits, has {by_host[k]} and {revisits[k]}"
            for k, h in hosts.items()
            if (h.queued - h.revisits, h.revisits) != (by_host[k], revisits[k])
        ]
        found += [
            f"{k!r} counts {h.requisites} requisites queued, has {requisites[k]}"
            for k, h in hosts.items()
            if h.requisites != requisites[k]
        ]
        count = stats_of(collection)
        waiting = sum(requisites[k] for k, h in hosts.items() if not h.gave_up)
        if count.requisites_queued != waiting:
            found.append(f"counts {count.requisites_queued} requisites queued, has {waiting}")
        given_up = sum(by_host[k] for k, h in hosts.items() if h.gave_up)
        found += _counts(count, Counter(row.state for row in urls.values()), given_up)
        found += _pages(collection, urls, count.pages, sampled)
    return found + link_problems(path)


def uncounted(count: CrawlStats) -> int:
    """Known URLs that are counted nowhere, or (below zero) in two places."""
    done = count.pages + count.redirects + count.sitemaps + count.requisites + count.external
    return count.known - done - count.failed.total() - count.dropped.total() - count.queued


def _counts(count: CrawlStats, states: "Counter[UrlState]", given_up: int) -> list[str]:
    done = count.pages + count.redirects + count.sitemaps + count.requisites + count.external
    pairs = [
        ("known", count.known, states.total()),
        ("queued", count.queued, states[UrlState.QUEUED] - given_up),
        ("done", done, states[UrlState.DONE]),
        ("failed", count.failed.total(), states[UrlState.FAILED] + given_up),
        ("dropped", count.dropped.total(), states[UrlState.DROPPED]),
        ("counted nowhere or twice", uncounted(count), 0),
    ]
    return [f"counts {counted} {name}, has {there}" for name, counted, there in pairs if counted != there]


def _is_whole(record: WarcRecord) -> bool:
    return record.type == "revisit" or bool(block_digest_agrees(record) or payload_digest_agrees(record))


def _pages(collection: CollectionStore, urls: dict[bytes, UrlRow], counted: int, sampled: int) -> list[str]:
    found, documents = [], 0
    for number, (key, packed) in enumerate(collection.state.walk(Family.PAGE)):
        row = unpack_page(packed)
        state = urls[key].state if key in urls else UrlState.QUEUED
        documents += row.is_page and state is UrlState.DONE
        if state is UrlState.QUEUED:
            found.append(f"a page that is not done: {key!r}")
        if row.place and number % sampled == 0 and not _is_whole(collection.record(WarcLocation.unpack(row.place))):
            found.append(f"record of {key!r} does not agree with its digest")
    if documents != counted:
        found.append(f"counts {counted} pages, has {documents}")
    return found
