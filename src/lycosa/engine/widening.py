"""Links that were left out under other settings, looked at again when those have changed.

What is out of scope, too deep or excluded is not kept as a URL: only the links of every page are, as written. So when
depth, scope or a filter is another than in the run before, a crawl begins with the stored links of all pages, and URLs
that were over a host's limit of pages or depth are queued again if that has changed. The settings that links were
judged by are kept in the state, as the settings file may be changed by hand; of the seeds, which may be a million, a
hash.
Called by the engine, once a run, before anything is asked for.
"""

from collections.abc import Callable
from itertools import islice

import msgspec
import xxhash

from lycosa.engine.pages import unpack_links, unpack_page
from lycosa.engine.shard import Shard
from lycosa.frontier.rows import Kind, Reason, UrlRow, UrlState
from lycosa.records import Family
from lycosa.settings import CrawlSettings
from lycosa.web.scope import sift
from lycosa.web.url import from_key, split

JUDGED_BY = b"judged-by"
NAMES = (
    "seeds",
    "scope",
    "include",
    "exclude",
    "skip_extensions",
    "depth",
    "max_url_bytes",
    "max_path_segments",
    "max_segment_repeats",
    "pages_per_host",
    "host_depth",
)
DROPPED_BY = {"pages_per_host": Reason.PAGES_PER_HOST, "host_depth": Reason.DEPTH}  # limits whose URLs are known
PAGES_AT_ONCE = 2_000


def look_again(shard: Shard, commit: Callable[[], None]) -> int:
    """Queues what the settings of now let in and those of before did not; returns the number of URLs."""
    state, judged_by = shard.collection.state, _judged_by(shard.settings)
    packed = state.get(Family.META, JUDGED_BY)
    before = msgspec.json.decode(packed, type=dict[str, object]) if packed else judged_by
    queued = 0
    changed = {name for name in NAMES if before.get(name) != judged_by[name]}
    if changed - DROPPED_BY.keys():
        queued += _links(shard, commit)
    if changed & DROPPED_BY.keys():
        queued += _over_a_limit(shard, commit, {DROPPED_BY[name] for name in changed & DROPPED_BY.keys()})
    shard.committer.batch.put(Family.META, JUDGED_BY, msgspec.json.encode(judged_by))
    return queued


def _judged_by(settings: CrawlSettings) -> dict[str, object]:
    values = {name: getattr(settings, name) for name in NAMES}
    values["seeds"] = xxhash.xxh3_64_hexdigest("\n".join(settings.seeds).encode("utf-8", "surrogatepass"))
    return msgspec.json.decode(msgspec.json.encode(values), type=dict[str, object])


def _links(shard: Shard, commit: Callable[[], None]) -> int:
    """The links of all pages that may lead deeper."""
    state, limit, queued = shard.collection.state, shard.settings.depth, 0
    rest = state.walk(Family.LINK)
    while some := list(islice(rest, PAGES_AT_ONCE)):
        rows = state.get_many(Family.PAGE, [key for key, _ in some])
        for (key, links), packed in zip(some, rows, strict=True):
            row = unpack_page(packed) if packed else None
            if row is None or (limit is not None and row.depth >= limit):
                continue
            url = from_key(key)
            joined = shard.sifter.joined(unpack_links(links), url)
            kept, _ = sift(shard.sifter.unseen(joined.values()), shard.sifter.filters)
            source = split(url).host
            queued += len(shard.frontier.admit(kept, depth=row.depth + 1, now=shard.now(), source=source))
        commit()
    return queued


def _over_a_limit(shard: Shard, commit: Callable[[], None], reasons: set[Reason]) -> int:
    """URLs that were dropped because of a limit of their host; if they still are over it, they are dropped again."""
    queued = 0
    rest = shard.collection.state.walk(Family.URL)
    while some := list(islice(rest, PAGES_AT_ONCE)):
        for key, packed in some:
            row = UrlRow.unpack(packed)
            if row.state is UrlState.DROPPED and row.reason in reasons:
                shard.frontier.dropped[row.reason] -= 1
                shard.frontier.requeue(from_key(key), row.depth, kind=Kind.PAGE, origin=row.origin, now=shard.now())
                queued += 1
        commit()
    return queued
