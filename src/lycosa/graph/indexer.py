"""The link indexer numbers fetched pages, writes their feed entries, and brings their links into the link index.

A page's number, its feed entry and its link row are in the batch of the page itself; its resolved links wait in memory
until that batch is committed, then until a thousand pages have gathered, and become a segment of the index. Pages that
were waiting when the process died are read again from the feed: `replay` gives the same changes from the state alone.
The crawl calls it with every fetched page and around every commit.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import compress, islice

from lycosa.errors import StoreError
from lycosa.graph.columns import LinkChanges
from lycosa.graph.feed import Feed, FeedEntry, FeedEvent, covered_by, entries_after, key_of, mark_covered
from lycosa.graph.index import LinkWriter
from lycosa.records import Family
from lycosa.store import Batch, CollectionStore, LinkRow, PageRow, State, pack_links, unpack_links, unpack_page
from lycosa.web import MAX_URL_BYTES, FollowedLinks, LinkKind, base_url, join_map, url_from_key

CONSUMER = "links"
FLUSH_PAGES, FLUSH_LINKS = 1_000, 30_000  # a segment of this size takes some 20 ms, on the crawl's event loop
SEGMENT_PAGES = 2 * FLUSH_PAGES  # at most, when more have gathered
WAITING_MOST = 20_000  # pages that wait while the disk is full; beyond it the next start reads them from the feed

Linked = dict[str, tuple[int, str]]  # URL → kind, anchor


class LinkIndexer:
    """The writing side of the link index. `index.on_change` is called with the counts that have moved."""

    def __init__(self, collection: CollectionStore) -> None:
        self._collection, self._state = collection, collection.state
        self.feed = Feed(collection.state, collection.path)
        self.index = LinkWriter.open(collection.path)
        self._fetched: list[tuple[str, bytes, PageRow, FollowedLinks | None]] = []  # since the last commit
        self._uncommitted: list[LinkChanges] = []
        self._waiting: list[LinkChanges] = []  # committed, and in no segment yet
        self._waiting_links = 0
        self._batch_sequence = self._committed_sequence = self.feed.last
        self._can_prune = True  # entries that the run before left
        self.is_behind = False  # too many waited: the next start reads them from the feed

    def __repr__(self) -> str:
        return f"<LinkIndexer {self.index!r} waiting={len(self._waiting)}>"

    # pages

    def page(self, url: str, key: bytes, row: PageRow, links: FollowedLinks) -> None:
        """Records a fetched page. `row` has its number when the commit writes it."""
        self._fetched.append((url, key, row, links))

    def gone(self, url: str, key: bytes, row: PageRow) -> None:
        """Records that nothing is at a URL: if it was a page before, it is removed, and `row` keeps its number."""
        self._fetched.append((url, key, row, None))

    # commits

    def before_commit(self, batch: Batch, *, is_last: bool) -> None:
        """Adds the numbers, feed entries and link rows of the fetched pages: all at once, since that is cheaper."""
        rows = self._rows_before({key for _, key, *_ in self._fetched})
        fetched, self._fetched = self._fetched, []
        for url, key, row, links in fetched:
            number, before = rows.get(key, (0, b""))
            row.file_num = number or (self.feed.number(batch, key) if links is not None else 0)
            if not row.file_num:
                continue
            changes = self._add_entry(batch, row.file_num, url, links, before if number else None)
            self._uncommitted.append(changes)
            packed = pack_links(links) if links else b""
            if packed:
                batch.put(Family.LINK, key, packed)
            elif before:
                batch.delete(Family.LINK, key)
            rows[key] = row.file_num, packed
        self.feed.write(batch)
        self._batch_sequence = self.feed.last
        if self._can_prune:
            self._can_prune = False
            self.feed.prune(batch)

    def _rows_before(self, keys: Iterable[bytes]) -> dict[bytes, tuple[int, bytes]]:
        """The number and the packed link row of each URL that was a page before."""
        asked = list(keys)
        pages = zip(asked, self._state.get_many(Family.PAGE, asked) if asked else (), strict=True)
        numbers = {key: number for key, packed in pages if packed and (number := unpack_page(packed).file_num)}
        links = self._state.get_many(Family.LINK, list(numbers)) if numbers else []
        return {key: (number, link or b"") for (key, number), link in zip(numbers.items(), links, strict=True)}

    def _add_entry(
        self, batch: Batch, number: int, url: str, links: FollowedLinks | None, before: bytes | None
    ) -> LinkChanges:
        """Writes the feed entry of a page and returns the changes of its links; `before` is None for a new page."""
        if before is None:
            assert links is not None
            self.feed.append(batch, FeedEvent.NEW, number)
            self._waiting_links += len(links)
            return _new_links(number, url, links)
        self.feed.append(batch, FeedEvent.REMOVED if links is None else FeedEvent.CHANGED, number, before)
        now = _linked(links, links.joined) if links is not None else {}
        return _changed(number, url, stored_links(before, url), now, is_gone=links is None)

    def on_committed(self) -> None:
        """The batch is on disk: its pages may go into the index."""
        self._committed_sequence = self._batch_sequence
        committed, self._uncommitted = self._uncommitted, []
        if self.is_behind:
            return
        self._waiting += committed
        if len(self._waiting) >= FLUSH_PAGES or self._waiting_links >= FLUSH_LINKS:
            self.flush()

    def flush(self) -> None:
        """Writes the waiting pages as a segment. A full disk does not stop the crawl: they are tried again later."""
        if not self._waiting or self.is_behind:
            return
        try:
            self.index.add(slices(self._waiting), self._committed_sequence)
        except StoreError:
            self.is_behind = len(self._waiting) > WAITING_MOST
            self._waiting = [] if self.is_behind else self._waiting
            return
        self._waiting, self._waiting_links = [], 0
        with suppress(StoreError, OSError):  # tried again with the next segment
            self._mark_covered()
            self.index.merge_if_due()

    @property
    def is_waiting(self) -> bool:
        """Are pages committed that the index does not have?"""
        return bool(self._waiting) or self.is_behind

    def _mark_covered(self) -> None:
        mark_covered(self._collection.path, CONSUMER, self.index.covered)
        self._can_prune = True

    def close(self) -> None:
        self.flush()
        self.index.close()

    # after a start

    def catch_up(self) -> int:
        """Brings what is committed and not indexed into the index, or rebuilds it where the feed no longer has the
        entries. Returns the number of pages."""
        marked = covered_by(self._collection.path, CONSUMER)
        if not marked <= self.index.covered <= self.feed.last or self._is_cut_off():
            self.index.clear()
            pages: Iterable[LinkChanges] = all_pages(self._state)
        elif self.index.covered == self.feed.last:
            return 0
        else:
            pages = replay(self._state, self.index.covered)
        count = self.index.add(slices(pages), self.feed.last)
        self._mark_covered()
        return count

    def _is_cut_off(self) -> bool:
        """Does the feed lack the entry that comes next? It does where the state was copied here without its index."""
        oldest = self._state.scan(Family.FEED, limit=1)
        next_entry = int.from_bytes(oldest[0][0]) if oldest else self.feed.next
        return self.index.covered + 1 < next_entry


def slices(pages: Iterable[LinkChanges]) -> Iterator[list[LinkChanges]]:
    """Pages, as many at a time as one segment should hold."""
    rest = iter(pages)
    while some := list(islice(rest, SEGMENT_PAGES)):
        yield some


def replay(state: State, covered: int) -> Iterator[LinkChanges]:
    """The link changes of the pages in the feed after `covered`: from before the first entry of each page to now."""
    first: dict[int, FeedEntry] = {}
    last: dict[int, FeedEvent] = {}
    for entry in entries_after(state, covered):
        first.setdefault(entry.file_num, entry)
        last[entry.file_num] = entry.event
    for file_num, entry in first.items():
        key = key_of(state, file_num)
        if key is None:
            raise StoreError(f"the state {state.path} is damaged: page {file_num} has no URL")
        url = url_from_key(key)
        before = {} if entry.event is FeedEvent.NEW else stored_links(entry.before, url)
        now = stored_links(state.get(Family.LINK, key), url)
        yield _changed(file_num, url, before, now, is_gone=last[file_num] is FeedEvent.REMOVED)


def all_pages(state: State) -> Iterator[LinkChanges]:
    """Every page that has a number, with its links, from the state alone."""
    rest = state.walk(Family.FILE)
    while some := list(islice(rest, FLUSH_PAGES)):
        keys = [key for _, key in some]
        rows = zip(state.get_many(Family.PAGE, keys), state.get_many(Family.LINK, keys), strict=True)
        for (file_num, key), (page, links) in zip(some, rows, strict=True):
            if page is not None and 0 < unpack_page(page).status < 400:
                url = url_from_key(key)
                yield _changed(int.from_bytes(file_num), url, {}, stored_links(links, url))


def _new_links(file_num: int, url: str, links: FollowedLinks) -> LinkChanges:
    """The links of a new page: the common case, without a Python loop over the links where all of them are valid."""
    if links.kernel is not None:
        return LinkChanges(file_num, url, kernel=links.kernel)
    joined = links.joined
    is_all = len(joined) == len(links.hrefs)  # and then in the same order
    urls = list(joined.values()) if is_all else [joined.get(href, "") for href in links.hrefs]
    if urls and (not all(urls) or max(map(len, urls)) > MAX_URL_BYTES):
        good = [0 < len(each) <= MAX_URL_BYTES for each in urls]
        kinds, anchors = bytes(compress(links.kinds, good)), tuple(compress(links.anchors, good))
        return LinkChanges(file_num, url, list(compress(urls, good)), kinds, anchors)
    return LinkChanges(file_num, url, urls, links.kinds, links.anchors)


def _changed(file_num: int, url: str, before: Linked, now: Linked, *, is_gone: bool = False) -> LinkChanges:
    added = {target: words for target, words in now.items() if before.get(target) != words}
    lost = [target for target, words in before.items() if now.get(target) != words]
    kinds, anchors = bytes(kind for kind, _ in added.values()), [anchor for _, anchor in added.values()]
    return LinkChanges(file_num, url, list(added), kinds, anchors, lost, is_gone)


def _linked(links: FollowedLinks | LinkRow, joined: Mapping[str, str]) -> Linked:
    """The URLs that a page points to, each once; its last anchor counts, as in the index."""
    rows = zip(links.hrefs, links.kinds, links.anchors, strict=True)
    urls = ((joined.get(href, ""), kind, anchor) for href, kind, anchor in rows)
    return {url: (kind, anchor) for url, kind, anchor in urls if 0 < len(url) <= MAX_URL_BYTES}


def stored_links(packed: bytes | None, url: str) -> Linked:
    """The URLs that a packed link row points to, with kind and anchor."""
    if not packed:
        return {}
    links = unpack_links(packed)
    return _linked(links, join_map(base_url(url, links.base_href), links.hrefs, max_bytes=MAX_URL_BYTES))


def redirect_link(target: str) -> FollowedLinks:
    """The one link of a redirect as a page."""
    return FollowedLinks((target,), bytes((LinkKind.REDIRECT,)), ("",), {target: target})
