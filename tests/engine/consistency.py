"""Is a collection's state whole? Every promise of the state that can be checked by reading all of it."""

from collections import Counter
from pathlib import Path

from lycosa.engine.pages import unpack_page
from lycosa.engine.views import totals
from lycosa.frontier.rows import KEY_END, Entry, UrlRow, UrlState, unpack_host
from lycosa.records import Family
from lycosa.store import Collection, Place
from lycosa.store.warc_parse import WarcRecord
from lycosa.web.url import BUCKET_BYTES


def problems(path: Path, *, sampled: int = 500) -> list[str]:
    """Sentences about everything that does not fit together; records are read for every `sampled`-th page."""
    found: list[str] = []
    with Collection.open(path) as collection:
        state = collection.state
        urls = {key: UrlRow.unpack(row) for key, row in state.walk(Family.URL)}
        hosts = {key: unpack_host(row) for key, row in state.walk(Family.HOST)}
        queued: Counter[bytes] = Counter()
        for key, row in state.walk(Family.QUEUE):
            host, entry = key[: key.index(KEY_END, BUCKET_BYTES)], Entry.unpack(key, row)
            queued[host + KEY_END + entry.path.encode()] += 1
            if host not in hosts:
                found.append(f"queue entry of an unknown host: {key!r}")
        for key, count in queued.items():
            if count > 1:
                found.append(f"queued {count} times: {key!r}")
            if urls.get(key) is None or urls[key].state is not UrlState.QUEUED:
                found.append(f"queued but not known as queued: {key!r}")
        found += [
            f"known as queued, not in a queue: {k!r}"
            for k, r in urls.items()
            if r.state is UrlState.QUEUED and k not in queued
        ]
        by_host = Counter(key[: key.index(KEY_END, BUCKET_BYTES)] for key in queued)
        found += [
            f"{k!r} counts {h.queued} queued, has {by_host[k]}" for k, h in hosts.items() if h.queued != by_host[k]
        ]
        count = totals(collection)
        if count.known != len(urls):
            found.append(f"counts {count.known} known, has {len(urls)}")
        found += _pages(collection, urls, count.pages, sampled)
    return found


def _is_whole(record: WarcRecord) -> bool:
    return bool(record.block_digest_agrees() or record.payload_digest_agrees())


def _pages(collection: Collection, urls: dict[bytes, UrlRow], counted: int, sampled: int) -> list[str]:
    found, documents = [], 0
    for number, (key, packed) in enumerate(collection.state.walk(Family.PAGE)):
        row = unpack_page(packed)
        documents += 200 <= row.status < 300 and row.essence != "sitemap"
        if key not in urls or urls[key].state is UrlState.QUEUED:
            found.append(f"a page that is not done: {key!r}")
        if row.place and number % sampled == 0 and not _is_whole(collection.record(Place.unpack(row.place))):
            found.append(f"record of {key!r} does not agree with its digest")
    if documents != counted:
        found.append(f"counts {counted} pages, has {documents}")
    return found
