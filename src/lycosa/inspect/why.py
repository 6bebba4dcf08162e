"""Why a URL is where it is: whether it is known, where it stands, and for what reason.

`explain_url` has an answer for every URL, from the committed state; for a URL that is not known, some pages of the
archive are looked into as well. Waits, rules and retries of its host are put in the words of `inspect.status`.
"""

import time
from collections.abc import Iterator
from itertools import islice

from lycosa.crawl import (
    Inbox,
    drop_reason,
    filters_of,
    interval_of,
    page_of_requisite,
)
from lycosa.errors import LycosaError, SettingsError
from lycosa.frontier import HostRow, Origin, Reason, UrlRow, UrlState, unpack_host
from lycosa.inspect.pages import StoredPage, StoredPages, asked_url
from lycosa.inspect.status import (
    due_words,
    retry_entries,
    robots_file_words,
    robots_words,
    settings_of,
    stats_of,
    use_words,
    wait_words,
)
from lycosa.learning import path_pattern, read_domain_budget
from lycosa.records import Family
from lycosa.recrawl import history, visit_of
from lycosa.settings import CrawlSettings
from lycosa.store import (
    CollectionStore,
    Forgotten,
    PageRow,
    StoreSelection,
    page_at,
)
from lycosa.web import (
    FOLLOWED_KINDS,
    DropReason,
    LinkKind,
    Purpose,
    Url,
    UrlPatterns,
    analyse_page,
    base_url,
    domain_of,
    format_date,
    host_key_of,
    host_objection,
    parse_url,
    url_key,
)
from lycosa.wording import clock, counted, duration, folder_word

MENTION_PAGES_MOST = 300  # looked into: some tenths of a second
ROBOTS_PATH = "/robots.txt"
ORIGINS = {
    Origin.LINK: "linked from a page",
    Origin.SEED: "asked for by you",
    Origin.REDIRECT: "where a redirect leads",
    Origin.SITEMAP: "named by a sitemap",
    Origin.ANCESTOR: "guessed: a folder above a page",
    Origin.SERIES: "guessed: a neighbour in a series",
    Origin.LOST: "asked for again because its record was lost",
    Origin.IMPORT: "imported from an archive",
}
WHY = {
    Reason.PATTERN: "URLs like {pattern} kept saying nothing new on this host",
    Reason.PARAMETER: "it differs from a URL that is known in a parameter only, which changes nothing on this host",
    Reason.GUESS: "nothing was there, or guesses like it seldom hit on this host",
}


def known_before(collection: CollectionStore, text: str) -> str:
    """A URL that was fetched before, as it is normalised; raises SettingsError for others."""
    url, folder = asked_url(collection, text), folder_word(collection.path)
    packed = collection.state.get(Family.URL, url_key(url.href))
    if packed is None:
        raise SettingsError(f"{url.href} is not known: lycosa add {folder} {url.href} adds it")
    state = UrlRow.unpack(packed).state
    if state is UrlState.QUEUED:
        raise SettingsError(f"{url.href} was not fetched yet: lycosa crawl --into {folder} continues the crawl")
    if state is UrlState.DROPPED:
        raise SettingsError(f"{url.href} was dropped: lycosa why {url.href} --in {folder} says for what reason")
    return url.href


def explain_url(collection: CollectionStore, text: str) -> list[str]:
    """Sentences that say where a URL is and why; raises SettingsError where nothing is asked."""
    try:
        url = asked_url(collection, text)
    except SettingsError as error:
        if not text.strip():
            raise
        return [str(error)]
    state, key = collection.state, url_key(url.href)
    packed_host, page = state.get(Family.HOST, host_key_of(key)), page_at(state, key)
    host = unpack_host(packed_host) if packed_host else None
    lines = [url.href]
    if since := _fetched_since(collection, url):
        lines.append(since)
    if packed := state.get(Family.URL, key):
        row = UrlRow.unpack(packed)
        lines += _known(row, url, host, page)
        if row.reason is Reason.PIPELINE and (said := drop_reason(state, key)):
            lines.append(f"a pipeline dropped it: {said}")
        elif row.reason is Reason.ROBOTS and host and host.robots and (rule := host.robots.disallowed_by(url.path)):
            lines.append(f"robots.txt of its host says Disallow: {rule}")
        elif row.reason is Reason.PREFERENCES:
            lines.append(_forbidden(collection, url, key, host))
        if (page is None or page.requisite) and (needed_by := page_of_requisite(state, url.href)):
            lines.append(f"a requisite: {needed_by} needs it to be shown")
        lines += _retry(collection, url, host_key_of(key), host)
    elif url.path == ROBOTS_PATH and host is not None:
        lines.append(robots_file_words(collection, host))
    else:
        lines.append(_unknown(collection, url, host_key_of(key)))
    if page is not None:
        lines += [*_page(page), *_store_words(collection, page), *_next_visit(collection, key)]
    lines += _watched(collection, url, key)
    return lines if host is None else lines + _host(collection, url, host)


def _forbidden(collection: CollectionStore, url: Url, key: bytes, host: HostRow | None) -> str:
    """Which statement of its publisher forbids a URL for the purpose of the crawl."""
    purpose = Purpose(settings_of(collection).purpose)
    said = host_objection(host.robots, url.path, purpose) if host is not None and host.robots else ""
    said = said or drop_reason(collection.state, key) or "what was said when it was asked for"
    return f"its publisher does not want it used for {purpose}: {said}; --purpose says what a crawl is for"


def _use_words(statements: str, said: dict[str, str]) -> list[str]:
    """What a publisher says on the use of a page, and what follows from that."""
    lines = [f"its publisher says: {'; '.join(statements.splitlines())}"] if statements else []
    words = [f"{purpose} {'allowed' if word == 'y' else 'forbidden'}" for purpose, word in said.items()]
    return [*lines, f"use: {', '.join(words)}"] if words else lines


def _fetched_since(collection: CollectionStore, url: Url) -> str:
    """Since when a running crawl has been fetching a URL, as of a second ago; nothing if it does not."""
    stats = stats_of(collection)
    since = next((one.since_unix for one in stats.fetching if one.url == url.href), None)
    return f"being fetched since {clock(since, now_unix=time.time())}" if since is not None else ""


def _retry(collection: CollectionStore, url: Url, host_key: bytes, host: HostRow | None) -> list[str]:
    if host is None or not host.retries or host.gave_up:
        return []
    found = (entry for entry in retry_entries(collection, host_key) if entry.path == url.path)
    return [f"{due_words(entry, time.time())}, behind the other URLs of its host" for entry in islice(found, 1)]


def _host(collection: CollectionStore, url: Url, host: HostRow) -> list[str]:
    queued = f"given up ({host.gave_up})" if host.gave_up else f"{host.queued:,} queued"
    lines = [f"host: {counted(host.pages, 'page')}, {queued}, robots.txt {robots_words(host)}"]
    if said := use_words(host):
        lines.append(f"host says on the use of its content: {said}")
    if waits := wait_words(host, time.time()):
        lines.append(f"host waits {waits}")
    domain = domain_of(url.host)
    budget = read_domain_budget(collection.state, domain)
    if budget.is_spent:
        lines.append(f"the domain {domain} has had its {counted(budget.pages, 'page')}: the hosts of others go first")
    return lines


def _unknown(collection: CollectionStore, url: Url, host_key: bytes) -> str:
    forgotten = Forgotten.of(collection.path)
    if entry := forgotten.entry_for(url):
        undo = f"lycosa forget {collection.path} {entry} --undo lets it be crawled again"
        return f"forgotten {forgotten.entries[entry]} with {entry}: it is never asked for; {undo}"
    if Inbox(collection.path).waiting(url.href):
        return "handed over by you: it waits for the next run, or for a moment if one is under way"
    s = settings_of(collection)
    seeds = [seed for text in s.seeds if (seed := parse_url(text))]
    for url_filter in filters_of(s, seeds):
        reason = url_filter.reason(url)
        if reason is not None:
            if not s.seeds:
                return "not known: no archive that was imported has it"
            return f"dropped: {reason}{_rule_words(reason, url, s)}"
    if found := unfollowed_mention(collection, url, host_key):
        return f"not asked for: {found}"
    depth = f", or lies deeper than {s.depth}" if s.depth is not None else ""
    return f"not known: no page that was read links to it with a link that is followed{depth}"


def _rule_words(reason: DropReason, url: Url, settings: CrawlSettings) -> str:
    """Which setting dropped a URL, where more than one could have."""
    match reason:
        case DropReason.OUT_OF_SCOPE:
            return f" (scope {settings.scope} of {', '.join(settings.seeds)})"
        case DropReason.EXCLUDED:
            return f" by {', '.join(pattern for pattern in settings.exclude if UrlPatterns((pattern,)).match(url))}"
        case DropReason.NOT_INCLUDED:
            return f": it matches none of {', '.join(settings.include)}"
    return ""


def _known(row: UrlRow, url: Url, host: HostRow | None, page: PageRow | None) -> list[str]:
    depth = f"depth {row.depth}, {ORIGINS[row.origin]}"
    if row.state is UrlState.QUEUED:
        if host is not None and host.gave_up:
            return [f"failed: its host was given up ({host.gave_up}); {depth}"]
        return [f"queued, {depth}"]
    words = {UrlState.DONE: "done", UrlState.FAILED: "failed", UrlState.DROPPED: "dropped"}[row.state]
    reason: str = row.reason
    if page is not None and row.state is UrlState.FAILED:
        reason = reason_of_failure(row, page) or reason
        words += f" after {page.tries} {'try' if page.tries == 1 else 'tries'}" if page.tries else ""
    lines = [f"{words}{f': {reason}' if reason else ''}, {depth}"]
    if row.reason in WHY:
        lines.append(WHY[row.reason].format(pattern=path_pattern(url.path)))
    return lines


def reason_of_failure(row: UrlRow, page: PageRow) -> str:
    """Why a URL has failed, by its page, in words. One that was there and is gone has its status only."""
    return failure_words(page.failure or (str(page.status) if row.reason is Reason.STATUS and page.status else ""))


def failure_words(failure: str) -> str:
    """The name by which a URL or a host is counted as failed, in words: `status 404`, `connect timeout`."""
    return f"status {failure}" if failure.isdigit() else failure.replace("-", " ")


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
    if row.is_external:
        lines.append("out of scope: it was checked because pages link to it (--external), and is not followed")
    if row.is_followed_only:
        lines.append("read for its links, and not kept: --keep or --keep-type leaves it out")
    if row.truncated:
        lines.append(f"cut off: {row.truncated}")
    asked = [name for name in ("noindex", "nosnippet", "noarchive") if getattr(row, name)]
    asked += [f"unavailable_after {format_date(row.unavailable_s)}"] if row.unavailable_s else []
    if asked:
        lines.append(f"says to robots: {', '.join(asked)}")
    return lines + _use_words(row.preferences, row.usage(now=time.time()) if row.is_page else {})


def _store_words(collection: CollectionStore, row: PageRow) -> list[str]:
    settings = settings_of(collection)
    return StoreSelection(settings.store_types, settings.store_relevance).words(row) if settings.store else []


def _next_visit(collection: CollectionStore, key: bytes) -> list[str]:
    visit = visit_of(collection.state, key)
    if visit is None:
        return []
    seen = f"looked at {counted(visit.visits, 'time')}, {visit.changes:,} with a change"
    lines = [
        f"{seen if visit.visits else 'not looked at again'}; it seems to change {visit.rate:.2g} times a day;"
        f" due {format_date(visit.due_s)}"
    ]
    if visit.trouble:
        fails = f"{counted(visit.fails, 'visit')} in a row brought nothing, so what is stored is kept"
        lines.append(f"the last visit, {format_date(visit.checked_s)}, failed: {visit.trouble}; {fails}")
    elif visit.presence == "gone":
        last = list(history(collection.state, key))[-1:]
        lines += [f"gone since {format_date(at_s)}: {change.where}" for at_s, change in last]
    return lines


def _watched(collection: CollectionStore, url: Url, key: bytes) -> list[str]:
    """How often the user wants the URL visited, be it that no run has taken that in yet."""
    told = [added.every_s for added in Inbox(collection.path).waiting(url.href) if added.every_s is not None]
    every_s = told[-1] if told else interval_of(collection.state, key)
    since = ", as soon as a run takes that in" if told else ""
    return [f"watched every {duration(every_s)}{since}"] if every_s else [f"watched no more{since}"] * bool(told)


def size_words(sent_bytes: int, document_bytes: int) -> str:
    """Both sizes of a body, each with which it is; a row of an earlier version knows the first alone."""
    if not sent_bytes:
        return "0 bytes"
    sent = f"{counted(sent_bytes, 'byte')} as sent"
    if sent_bytes == document_bytes:
        return f"{sent} and decoded"
    return f"{sent}, {document_bytes:,} decoded" if document_bytes else sent


def unfollowed_mention(collection: CollectionStore, url: Url, host_key: bytes) -> str:
    """Says which page names the URL in an element that is not followed, and in which; nothing if none does. Links that
    are not followed are not kept, so stored pages are read again, the first some of the host."""
    name = url.path.rpartition("/")[2]
    for page in StoredPages(collection).all(host_key, most=MENTION_PAGES_MOST):
        for element in _elements(page, url.href, name):
            return f"{page.url} names it in {element}"
    return ""


def _elements(page: StoredPage, href: str, name: str) -> Iterator[str]:
    try:
        said = page.headers.get("content-type")
        found = analyse_page(page.body, url=page.url, content_type=said)
    except LycosaError:  # damaged, or not kept; the others may say it
        return
    base, links = base_url(page.url, found.base_href), found.links
    for written, kind, rel in zip(links.hrefs, links.kinds, links.rels, strict=True):
        target = parse_url(written, base) if name in written else None
        if target is None or target.href != href:
            continue
        if kind == LinkKind.IMG:
            yield "<img>, and images are asked for with --images or --requisites only"
        elif kind not in FOLLOWED_KINDS or "nofollow" in rel.lower().split():
            yield f"<{LinkKind(kind).name.lower()}{f' rel={rel}' if rel else ''}>, which is not followed"
