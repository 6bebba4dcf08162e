"""What a collection can be asked from outside, beside a running crawl or without one: counts, hosts, and why.

Reads the committed state only. Every URL has an answer: known or not, where it is, and for what reason.
"""

import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import msgspec

from lycosa.crawl.inbox import Inbox
from lycosa.crawl.progress import clock
from lycosa.crawl.reading import filters_of
from lycosa.crawl.stats import CrawlStats, load_counts, load_live_stats, sum_of_shards
from lycosa.errors import SettingsError
from lycosa.fetch import describe_next_try
from lycosa.frontier import (
    RETRY_LANE,
    HostRow,
    Origin,
    QueueEntry,
    Reason,
    UrlRow,
    UrlState,
    due_of,
    lane_start,
    unpack_host,
)
from lycosa.learning import domain_key, fold, unpack_domain
from lycosa.records import Family
from lycosa.settings import CrawlSettings, InvalidValue, merge, read_file, seed
from lycosa.store import (
    CollectionStore,
    JoinedCollection,
    PageRow,
    StoreSelection,
    is_written,
    left_out_counts,
    unpack_page,
)
from lycosa.web import Url, domain_of, format_date, parse_url, url_from_key, url_key

ROBOTS_PATH = "/robots.txt"
ORIGINS = {
    Origin.LINK: "linked from a page",
    Origin.SEED: "asked for by you",
    Origin.REDIRECT: "where a redirect leads",
    Origin.SITEMAP: "named by a sitemap",
    Origin.ANCESTOR: "guessed: a folder above a page",
    Origin.SERIES: "guessed: a neighbour in a series",
    Origin.LOST: "asked for again because its record was lost",
}
WHY = {
    Reason.PATTERN: "URLs like {pattern} kept saying nothing new on this host",
    Reason.PARAMETER: "it differs from a URL that is known in a parameter only, which changes nothing on this host",
    Reason.GUESS: "nothing was there, or guesses like it seldom hit on this host",
}


class HostView(msgspec.Struct, frozen=True):
    """One host for the eye. Of a host that was given up (`gave_up` says why) nothing is queued: it has failed. `time_s`
    is from its first answer to its last, `busy_s` what was spent waiting for answers; `delay_s` is the pause it gets.
    """

    host: str
    queued: int
    pages: int
    requests: int
    failed: int
    bytes: int
    mean_s: float
    address: str
    robots: str
    waits: str
    gave_up: str
    retries: int = 0
    next_retry: str = ""
    delay_s: float = 0.0
    time_s: float = 0.0
    busy_s: float = 0.0
    first_s: float = 0.0
    last_s: float = 0.0


def hosts(collection: CollectionStore, *, now_unix: float | None = None) -> Iterator[HostView]:
    """Every host of a collection, in the order of their keys: those of a registrable domain together."""
    now = time.time() if now_unix is None else now_unix
    try:
        delay_s = settings_of(collection).delay_s
    except SettingsError:  # they are for the next crawl to complain of
        delay_s = 0.0
    for key, packed in collection.state.walk(Family.HOST):
        row = unpack_host(packed)
        yield HostView(
            host=url_from_key(key + b"\0"),
            queued=0 if row.gave_up else row.queued - row.revisits,
            pages=row.pages,
            requests=row.requests,
            failed=row.failed + (row.queued - row.revisits if row.gave_up else 0),
            bytes=row.bytes,
            mean_s=row.seconds / row.requests if row.requests else 0.0,
            address=row.address,
            robots=_robots_words(row),
            waits=_waits(row, now),
            gave_up=row.gave_up,
            retries=0 if row.gave_up else row.retries,
            next_retry=_next_retry(collection, key, now) if row.retries and not row.gave_up else "",
            delay_s=max(delay_s, (row.robots and row.robots.crawl_delay_s) or 0.0),
            time_s=row.last_asked - row.first_asked,
            busy_s=row.seconds,
            first_s=row.first_asked,
            last_s=row.last_asked,
        )


def _next_retry(collection: CollectionStore, host_key: bytes, now: float) -> str:
    """The first of a host's URLs that failed and wait for another try: when, which and what failed."""
    return next((f"{_due(entry, now)}: {entry.path}" for entry in _retries(collection, host_key)), "")


def _retries(collection: CollectionStore, host_key: bytes) -> Iterator[QueueEntry]:
    start, end = lane_start(host_key, RETRY_LANE), lane_start(host_key, RETRY_LANE + 1)
    return (QueueEntry.unpack(key, row) for key, row in collection.state.walk(Family.QUEUE, start, end))


def _due(entry: QueueEntry, now: float) -> str:
    at = due_of(entry)
    when = f"at {clock(at, now_unix=now)}" if at > now else "now"
    return f"{describe_next_try(entry.tries, entry.failed)}, {when}"


def _robots_words(row: HostRow) -> str:
    if row.robots is None:
        return "not known yet"
    rules = len(row.robots.allow) + len(row.robots.disallow)
    delay = f", Crawl-delay {row.robots.crawl_delay_s:g} s" if row.robots.crawl_delay_s else ""
    return (_counted(rules, "rule") if rules else "no rules") + delay


def _waits(row: HostRow, now: float) -> str:
    if row.wait_until > now and not row.gave_up:
        return f"until {clock(row.wait_until, now_unix=now)}: {row.wait_reason}"
    return ""


def settings_of(collection: CollectionStore) -> CrawlSettings:
    """The settings in force."""
    return merge(read_file(collection.settings_path))


def asked_url(collection: CollectionStore, text: str) -> Url:
    """The URL that somebody asks about; raises SettingsError for what is none. Without a scheme it is https, as a seed
    is, unless the collection knows it, or its host, by http only."""
    if not text.strip():
        raise SettingsError("no URL was given: ask about one, such as https://example.org/")
    url = parse_url(text)
    if url is not None:
        return url
    try:
        url = parse_url(seed(text.strip()))
    except InvalidValue:
        url = None
    if url is None:
        raise SettingsError(f"{text!r} is not an http or https URL, so it is never asked for")
    plain = parse_url(f"http://{text.strip()}") or url
    keys = {each: url_key(each.href) for each in (url, plain)}
    for each, key in keys.items():
        if collection.state.get(Family.URL, key) is not None:
            return each
    return next((each for each, key in keys.items() if collection.state.get(Family.HOST, _host_key(key))), url)


def _host_key(key: bytes) -> bytes:
    """The key of the host of a URL by its key."""
    return key[: key.index(b"\0", 2)]


def why(collection: CollectionStore, text: str) -> list[str]:
    """Sentences that say where a URL is and why; raises SettingsError where nothing is asked."""
    try:
        url = asked_url(collection, text)
    except SettingsError as error:
        if not text.strip():
            raise
        return [str(error)]
    key = url_key(url.href)
    lines = [url.href]
    packed_host = collection.state.get(Family.HOST, _host_key(key))
    host = unpack_host(packed_host) if packed_host else None
    packed = collection.state.get(Family.URL, key)
    page = collection.state.get(Family.PAGE, key)
    if packed is None:
        if url.path == ROBOTS_PATH and host is not None:
            lines.append(_robots_file(collection, host))
        else:
            lines.append(_unknown(collection, url, _host_key(key)))
    else:
        lines += _known(UrlRow.unpack(packed), url, host, unpack_page(page) if page else None)
        if host is not None and host.retries and not host.gave_up:
            found = (entry for entry in _retries(collection, _host_key(key)) if entry.path == url.path)
            lines += [f"{_due(entry, time.time())}, behind the other URLs of its host" for entry in islice(found, 1)]
    if page is not None:
        lines += [
            *_page(unpack_page(page)),
            *_store_words(collection, unpack_page(page)),
            *_next_visit(collection, key),
        ]
    if host is not None:
        queued = f"given up ({host.gave_up})" if host.gave_up else f"{host.queued:,} queued"
        lines.append(f"host: {_counted(host.pages, 'page')}, {queued}, robots.txt {_robots_words(host)}")
        if waits := _waits(host, time.time()):
            lines.append(f"host waits {waits}")
        domain = domain_of(url.host)
        budget = unpack_domain(collection.state.get(Family.META, domain_key(domain)))
        if budget.is_spent:
            lines.append(
                f"the domain {domain} has had its {_counted(budget.pages, 'page')}: the hosts of others go first"
            )
    return lines


def _robots_file(collection: CollectionStore, host: HostRow) -> str:
    """What is known of a host's robots.txt: it is no page, and its host keeps it."""
    from lycosa.crawl.host_rules import ROBOTS_FOR_S  # its libraries take a moment; most commands need none

    if host.robots is not None and host.robots_until:
        asked, again = format_date(host.robots_until - ROBOTS_FOR_S), format_date(host.robots_until)
        return f"read {asked}: {_robots_words(host)}; it is asked for again when the host is needed after {again}"
    if host.robots_tries:
        return f"asked for {_counted(host.robots_tries, 'time')}, and no answer that can be used has come"
    return "not asked for yet" if settings_of(collection).robots else "not asked for: robots is switched off"


def _unknown(collection: CollectionStore, url: Url, host_key: bytes) -> str:
    if Inbox(collection.path).holds(url.href):
        return "handed over by you: it waits for the next run, or for a moment if one is under way"
    s = settings_of(collection)
    seeds = [seed for text in s.seeds if (seed := parse_url(text))]
    for url_filter in filters_of(s, seeds):
        reason = url_filter.reason(url)
        if reason is not None:
            return f"dropped: {reason} (scope {s.scope} of {', '.join(s.seeds)})"
    from lycosa.inspect.mentions import unfollowed_mention  # its libraries take a moment; most commands need none

    if found := unfollowed_mention(collection, url, host_key):
        return f"not asked for: {found}"
    depth = f", or lies deeper than {s.depth}" if s.depth is not None else ""
    return f"not known: no page that was read links to it with a link that is followed{depth}"


def _known(row: UrlRow, url: Url, host: HostRow | None, page: PageRow | None) -> list[str]:
    depth = f"depth {row.depth}, {ORIGINS[row.origin]}"
    if row.state is UrlState.QUEUED:
        if host is not None and host.gave_up:
            return [f"failed: its host was given up ({host.gave_up}); {depth}"]
        return [f"queued, {depth}"]
    words = {UrlState.DONE: "done", UrlState.FAILED: "failed", UrlState.DROPPED: "dropped"}[row.state]
    reason: str = row.reason
    if page is not None and page.failure and row.state is UrlState.FAILED:
        reason = f"status {page.failure}" if page.failure.isdigit() else page.failure.replace("-", " ")
        words += f" after {page.tries} {'try' if page.tries == 1 else 'tries'}" if page.tries else ""
    lines = [f"{words}{f': {reason}' if reason else ''}, {depth}"]
    if row.reason in WHY:
        lines.append(WHY[row.reason].format(pattern=fold(url.path)))
    return lines


def _page(row: PageRow) -> list[str]:
    answer = f"status {row.status or 'none'}"
    if row.failure and row.failure != str(row.status):
        answer = f"{row.failure.replace('-', ' ')}, {answer}"
    is_kept = row.size_bytes or row.place or not row.has_failed
    sizes = size_words(row.size_bytes, row.document_bytes) if is_kept else "body not kept" if row.status else ""
    lines = [
        f"asked {format_date(row.fetched_s)}: {', '.join(filter(None, (answer, f'{sizes} {row.essence}'.strip())))}"
    ]
    if row.title:
        lines.append(f"title: {row.title}")
    if row.location:
        lines.append(f"redirects to {row.location}")
    if row.original:
        lines.append(f"the same document as {row.original}")
    if row.truncated:
        lines.append(f"cut off: {row.truncated}")
    asked = [name for name in ("noindex", "nosnippet", "noarchive") if getattr(row, name)]
    asked += [f"unavailable_after {format_date(row.unavailable_s)}"] if row.unavailable_s else []
    if asked:
        lines.append(f"says to robots: {', '.join(asked)}")
    return lines


def _store_words(collection: CollectionStore, row: PageRow) -> list[str]:
    settings = settings_of(collection)
    return StoreSelection(settings).words(row) if settings.store else []


def _next_visit(collection: CollectionStore, key: bytes) -> list[str]:
    from lycosa.recrawl.rows import history, visit_of  # their libraries take a moment; most commands need none

    visit = visit_of(collection.state, key)
    if visit is None:
        return []
    seen = f"looked at {_counted(visit.visits, 'time')}, {visit.changes:,} with a change"
    lines = [
        f"{seen if visit.visits else 'not looked at again'}; it seems to change {visit.rate:.2g} times a day;"
        f" due {format_date(visit.due_s)}"
    ]
    if visit.trouble:
        fails = f"{_counted(visit.fails, 'visit')} in a row brought nothing, so what is stored is kept"
        lines.append(f"the last visit, {format_date(visit.checked_s)}, failed: {visit.trouble}; {fails}")
    elif visit.presence == "gone":
        last = list(history(collection.state, key))[-1:]
        lines += [f"gone since {format_date(at_s)}: {change.where}" for at_s, change in last]
    return lines


def size_words(sent_bytes: int, document_bytes: int) -> str:
    """Both sizes of a body, each with which it is; a row of an earlier version knows the first alone."""
    if not sent_bytes:
        return "0 bytes"
    sent = f"{_counted(sent_bytes, 'byte')} as sent"
    if sent_bytes == document_bytes:
        return f"{sent} and decoded"
    return f"{sent}, {document_bytes:,} decoded" if document_bytes else sent


def _counted(number: int, thing: str) -> str:
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def open_to_read(path: Path) -> CollectionStore:
    """A collection as it is now, beside whoever writes it."""
    return CollectionStore.open(path, read_only=True)


def stats_of(collection: CollectionStore) -> CrawlStats:
    """The counts of a collection, as far as they are committed; while it is crawled, with what the crawl said of itself
    a second ago."""
    if isinstance(collection, JoinedCollection):
        return sum_of_shards([stats_of(shard) for shard in collection.shards])
    moment = load_live_stats(collection.state)
    if moment is None or not is_written(collection.path):
        moment = load_counts(collection.state, CrawlStats)
    pages, size = left_out_counts(collection.state)
    return msgspec.structs.replace(moment, left_out=pages, left_out_bytes=size)
