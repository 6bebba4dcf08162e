"""The indexer brings committed pages into the search index: one document for each cluster of equal pages.

    index_feed    brings in what the feed has since the last entry; it commits every few thousand pages
    commit        makes that count; `catch_up` does both
    build         brings in every page of the state, where there is no index or the feed can no longer complete it
    update_anchors_and_ranks    at the end, or when much is new: only anchor texts that have changed are indexed again

Every step can be killed: the index holds the sequence it covers, and pages are indexed by what the state says of them
now, so that doing it twice is the same as once. Where the archive cannot be read (`ArchiveUnavailable`) the index stays
as it was committed last, and the next indexer tries the same pages again: close this one. Reads the collection only,
beside a running crawl or without one.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice, pairwise

from tantivy import Occur, Query

from lycosa.errors import StoreError
from lycosa.graph import (
    Anchors,
    AnchorTexts,
    covered_by,
    current_link_index,
    entries_after,
    last_sequence,
    mark_covered,
    rank_pages,
    stored_link_index,
)
from lycosa.records import Family
from lycosa.search.documents import (
    LANGUAGES,
    TOKENS,
    HostLanguages,
    IndexMember,
    anchor_document,
    copy_document,
    indexed_page,
    page_document,
    schema,
    searchable_pages,
    summarise_anchors,
)
from lycosa.search.index import AnchorUpdater, IndexReader, IndexWriter, note_updated
from lycosa.search.text_log import TextLogReader
from lycosa.search.texts import PageTexts
from lycosa.store import CollectionStore, JoinedCollection
from lycosa.web import Readable, split_url


class UncommittedPages:
    """The pages and copies that changed since the last commit, which a reader does not see yet: by FileNum, each with
    its cluster. Every number that was touched is a page, a copy, or gone. Bounded by the distance of two commits."""

    def __init__(self) -> None:
        self.pages: dict[int, int] = {}
        self.copies: dict[int, int] = {}
        self._touched: set[int] = set()
        self._clusters: dict[int, set[int]] = {}

    def __repr__(self) -> str:
        return f"<Uncommitted pages={len(self.pages)} copies={len(self.copies)} touched={len(self._touched)}>"

    def __contains__(self, number: int) -> bool:
        return number in self._touched

    def __len__(self) -> int:
        return len(self._touched)

    def add_page(self, number: int, cluster: int) -> None:
        self._add(self.pages, number, cluster)

    def add_copy(self, number: int, cluster: int) -> None:
        self._add(self.copies, number, cluster)

    def _add(self, kind: dict[int, int], number: int, cluster: int) -> None:
        self.remove([number])
        kind[number] = cluster
        self._clusters.setdefault(cluster, set()).add(number)

    def remove(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            self._touched.add(number)
            for held in (self.pages, self.copies):
                if number in held:
                    self._clusters[held.pop(number)].discard(number)

    def of(self, cluster: int) -> list[int]:
        """The pages and copies of a cluster."""
        return sorted(self._clusters.get(cluster, ()))

    def overlay(self, committed: Mapping[int, int], numbers: Sequence[int], newer: Mapping[int, int]) -> dict[int, int]:
        """Number → cluster as it is now: what is committed, unless it was touched, and `newer`."""
        now = {number: cluster for number, cluster in committed.items() if number not in self._touched}
        return now | {number: newer[number] for number in numbers if number in newer}

    def clear(self) -> None:
        """Forgets all of it, since it is committed."""
        self.pages.clear()
        self.copies.clear()
        self._touched.clear()
        self._clusters.clear()


CONSUMER = "search"
BATCH_PAGES = 1_000  # looked up at once
COMMIT_PAGES = 10_000  # some seconds of work; every commit is one more segment, with terms that others have, too
BUILD_COMMIT_PAGES = 50_000  # the same while an index is built, which answers nobody yet
ADDED_CHARS = 1 << 20  # of documents that are given to tantivy at once: its thread then is not woken for each of them
PROGRESS_PAGES = 100  # between two reports of progress
BUILD_PAGES = 2_000  # while an index is built: looked up and read at once
YOUNG_PAGES = 10_000  # a crawl with no more has hardly begun: its anchors and ranks come when they are updated first
REPAIR_PAGES = 2_000

Progress = Callable[[int, int], None]  # pages done, pages in all


class Indexer:
    """The writer of a collection's search index. Close it. `follows`: a crawl is under way and anchors will be updated
    later, so anchor texts are not looked up when a page is indexed. `skips_missing`: pages whose archive file is
    missing are indexed all the same, by title and URL."""

    def __init__(
        self,
        collection: CollectionStore,
        *,
        anew: bool = False,
        follows: bool = False,
        skips_missing: bool = False,
        progress: Progress | None = None,
        build_pages: int = BUILD_PAGES,
    ) -> None:
        self._build_pages = build_pages
        self._collection, self._state = collection, collection.state
        self._log = TextLogReader(collection.path) if follows else None
        self._texts = PageTexts(collection, skips_missing=skips_missing, log=self._log)
        self._progress = progress or (lambda done, pages: None)
        self.writer = IndexWriter(collection.path, anew=anew)
        try:
            self.reader = self.writer.reader()
            self.covered = -1 if self.writer.is_new else _usable(collection, self.reader)
            if self.covered < 0 and not self.writer.is_new:
                self.writer.close()
                self.writer = IndexWriter(collection.path, anew=True)
                self.reader = self.writer.reader()
        except BaseException:
            self.writer.close()
            raise
        self.is_alone = not follows  # no crawl goes on beside it
        self._indexed_sequence = self.covered  # the feed is indexed up to here, and committed up to `covered`
        self._since = UncommittedPages()
        self._replaced: list[int] = []  # pages that are copies now; deleted once those that wait are added
        self._links_indexed = 0  # links there were when anchors were updated last
        self._follows = follows
        self._anchors: AnchorTexts | None = None  # while an index is built
        self.is_built = False  # just now: anchors and ranks are as new as the pages
        self._languages = HostLanguages(self._languages_of)
        self._taken = self._expected = 0  # for the progress

    def __repr__(self) -> str:
        return f"<Indexer {self.writer!r} covered={self.covered}>"

    @property
    def behind(self) -> int:
        """Entries of the feed that are not in the index, as far as the open state knows."""
        return last_sequence(self._state) - max(0, self.covered)

    @property
    def unread(self) -> int:
        """The number of pages that were indexed by title and URL alone, since their records cannot be read."""
        return self._texts.unread

    def catch_up(self) -> int:
        """Indexes all of the feed, or builds, and commits; returns how many pages."""
        pages = self.index_feed()
        self.commit()
        return pages

    def index_feed(self, *, goes_on: Callable[[], bool] = lambda: True) -> int:
        """Indexes what the feed has, or builds; returns how many pages. `goes_on` is asked between batches."""
        if self.covered < 0:
            return self.build()
        pages, self._expected = 0, last_sequence(self._state) - self._indexed_sequence
        if not self._expected:
            return 0
        entries = entries_after(self._state, self._indexed_sequence)
        with self._texts.expected(self._expected if self.is_alone else 0):
            while some := list(islice(entries, BATCH_PAGES)):
                self._taken, self.is_built = pages, False
                if self._log is not None:
                    self._log.read(self._indexed_sequence, some[-1].sequence)
                self.index_pages(list(dict.fromkeys(each.file_num for each in some)))
                pages += len(some)
                self._indexed_sequence = some[-1].sequence
                if len(self._since) >= COMMIT_PAGES:
                    self.commit()
                if not goes_on():
                    break
        return pages

    def commit(self) -> None:
        """Commits what was indexed."""
        if self._indexed_sequence > max(0, self.covered):
            self._commit(self._indexed_sequence)

    def build(self) -> int:
        """Indexes every page of the open state; ranks are computed meanwhile, while the text workers are starting."""
        covered, before = last_sequence(self._state), covered_by(self._collection.path, CONSUMER)
        is_young = self._follows and covered <= YOUNG_PAGES
        mark_covered(self._collection.path, CONSUMER, covered)  # what comes meanwhile stays in the feed
        if self._log is not None:
            self._log.read(0, covered)
        try:
            with self._texts.expected(covered):
                if not is_young:
                    index = current_link_index(self._collection)
                    rank_pages(self._collection, index=index)
                    self._anchors = AnchorTexts(index)
                pages = self._build(covered)
        except BaseException:
            mark_covered(self._collection.path, CONSUMER, before)  # the old index, if there is one, goes on from there
            raise
        self._anchors = None
        self._commit(covered)
        self.is_built = not is_young
        return pages

    def _build(self, expected: int) -> int:
        """Reads the texts of one lot while the next lot is looked up."""
        numbers = (int.from_bytes(number) for number, _ in self._state.walk(Family.FILE))
        pages, waiting = 0, None
        self._expected = expected
        while some := list(islice(numbers, self._build_pages)):
            lot = self._prepared(some)
            if waiting is not None:
                self._add(*waiting)
            waiting, self._taken, pages = lot, pages, pages + len(some)
            if len(self._since) >= BUILD_COMMIT_PAGES:
                self._add(*waiting)
                waiting = None
                self.writer.commit(0, is_whole=False)
                self._refresh()
        if waiting is not None:
            self._add(*waiting)
        return pages

    def _commit(self, covered: int) -> None:
        self.writer.commit(covered)
        self.covered = self._indexed_sequence = covered
        self._refresh()
        mark_covered(self._collection.path, CONSUMER, covered)

    def _refresh(self) -> None:
        self.reader.refresh()
        self._since.clear()

    def close(self) -> None:
        if self._log is not None:
            self._log.close()
        self.writer.close()

    # pages

    def index_pages(self, numbers: list[int]) -> None:
        """Brings the index in line with what the state has of these pages now."""
        self._add(*self._prepared(numbers))

    def _prepared(self, numbers: list[int]) -> tuple[list[IndexMember], Iterator[Readable | None]]:
        """Removes what is old and chooses the pages that have to be added: returns those, with their texts."""
        now, since = searchable_pages(self._state, numbers), self._since
        old_pages = since.overlay(self.reader.column("page", numbers, "cluster"), numbers, since.pages)
        old_copies = since.overlay(self.reader.column("copy", numbers, "cluster"), numbers, since.copies)
        self.writer.delete("page", old_pages)
        self.writer.delete("name", old_pages)
        self.writer.delete("copy", old_copies)
        since.remove(numbers)
        members: dict[int, list[IndexMember]] = {}
        for member in now.values():
            members.setdefault(member.cluster, []).append(member)
        clusters = {*old_pages.values(), *old_copies.values(), *members}
        pages, copies = self._others(sorted(clusters))
        heads: list[IndexMember] = []
        for cluster in clusters:
            heads += self._head(cluster, pages.get(cluster), members.get(cluster, []), copies.get(cluster, []))
        for head in heads:
            since.add_page(head.number, head.cluster)
        return heads, self._texts.of(heads)

    def _head(
        self, cluster: int, page: int | None, members: list[IndexMember], copies: list[int]
    ) -> Iterator[IndexMember]:
        """Yields the page that represents a cluster, if it is not the one that does already; the others become copies.
        `page` and `copies` are in the index, `members` are new: a document's first URL comes before all others."""
        members = sorted(members, key=lambda member: (bool(member.row.original), member.number))
        first = members[0] if members else None
        if page is not None and first is not None and not first.row.original and self._is_later(page):
            self._replaced.append(page)
            self._add_copy(page, cluster)
            page = None
        if page is None and first is None:
            alive = (searchable_pages(self._state, [number]).get(number) for number in sorted(copies))
            first = next(filter(None, alive), None)
            if first is not None:
                self.writer.delete("copy", [first.number])
        if page is None and first is not None:
            yield first
            members = [member for member in members if member is not first]
        for member in members:
            self._add_copy(member.number, cluster)

    def _add_copy(self, number: int, cluster: int) -> None:
        self.writer.add(copy_document(number, cluster))
        self._since.add_copy(number, cluster)

    def _is_later(self, number: int) -> bool:
        """Was the document of this page known under another URL before?"""
        member = searchable_pages(self._state, [number]).get(number)
        return member is not None and bool(member.row.original)

    def _others(self, clusters: Sequence[int]) -> tuple[dict[int, int], dict[int, list[int]]]:
        """The page of each cluster, and its copies, that are in the index, committed or not."""
        pages: dict[int, int] = {}
        copies: dict[int, list[int]] = {}
        for cluster, page, copy in self.reader.rows("cluster", clusters, "page", "copy"):
            if page and page not in self._since:
                pages[cluster] = page
            elif copy and copy not in self._since:
                copies.setdefault(cluster, []).append(copy)
        for cluster in clusters:
            for number in self._since.of(cluster):
                if number in self._since.pages:
                    pages[cluster] = number
                else:
                    copies.setdefault(cluster, []).append(number)
        return pages, copies

    def _add(self, members: Sequence[IndexMember], reading: Iterator[Readable | None]) -> None:
        urls = [member.url for member in members]
        waiting, waiting_chars = list[str](), 0
        for done, (member, anchors, text) in enumerate(zip(members, self._anchors_of(urls), reading, strict=True)):
            if done % PROGRESS_PAGES == 0:
                self._progress(self._taken + done, self._expected)
            page = indexed_page(member.number, member.cluster, member.url, member.row, text)
            language = self._languages.language_of(split_url(member.url).host, page.language, page.beginning)
            waiting.append(page_document(page, language))
            named, words = summarise_anchors(anchors) if anchors else ("", 0)
            if named:
                waiting.append(anchor_document(page, language, named, words))
            waiting_chars += len(waiting[-1])
            if waiting_chars >= ADDED_CHARS:
                self.writer.add_all(waiting)
                waiting, waiting_chars = [], 0
        self.writer.add_all(waiting)
        replaced, self._replaced = self._replaced, []
        self.writer.delete("page", replaced)
        self.writer.delete("name", replaced)

    def _anchors_of(self, urls: Sequence[str]) -> list[Anchors]:
        """The anchor texts of the links to these pages."""
        if self._anchors is None and (self._follows or not urls):
            return [[] for _ in urls]
        return (self._anchors or AnchorTexts(stored_link_index(self._collection))).of(urls)

    def _languages_of(self, host: str) -> dict[str, int]:
        """How many pages of a host are in the index, by language."""
        site = Query.term_query(schema(), "site", host, "basic")
        counts = {}
        for language in LANGUAGES[:-1]:
            tokens = Query.term_query(schema(), "lang", f"{TOKENS}{language}", "basic")
            query = Query.boolean_query([(Occur.Must, site), (Occur.Must, tokens)])
            counts[language] = self.reader.search(query, 1)[1]
        return {language: count for language, count in counts.items() if count}

    # anchors and ranks

    def links_have_doubled(self) -> bool:
        """Are there twice as many links as when anchors were updated last?"""
        return stored_link_index(self._collection).links >= 2 * max(1, self._links_indexed)

    def update_anchors_and_ranks(self) -> int:
        """Computes ranks, and indexes changed anchor texts again; returns how many pages have other ones."""
        self.commit()
        index = current_link_index(self._collection)
        updater = AnchorUpdater(self._state, self.reader, self.writer, AnchorTexts(index))
        if self.is_built:  # all is new, but for the anchors of copies
            updated, _ = updater.update(updater.pages_with_copies())
        else:
            rank_pages(self._collection, index=index)
            updated = self._update_all(updater)
        if updated:
            self._commit(self.covered)
        note_updated(self.reader)
        self._links_indexed, self.is_built = index.links, False
        return updated

    def _update_all(self, updater: AnchorUpdater) -> int:
        """Updates the anchors of all pages. Those that are there twice, or are no more, are indexed again: there are
        such where deletions were lost."""
        pages = sorted(self.reader.all("page", "page"))
        updated, gone = updater.update(page for page, _ in groupby(pages))
        wrong = [*gone, *(page for page, next_page in pairwise(pages) if page == next_page)]
        if not wrong:
            return updated
        for start in range(0, len(wrong), REPAIR_PAGES):
            self.index_pages(list(dict.fromkeys(wrong[start : start + REPAIR_PAGES])))
        self._commit(self.covered)
        return updated + updater.update(sorted(self.reader.all("page", "page")))[0]


def _usable(collection: CollectionStore, reader: IndexReader) -> int:
    """The sequence that the index covers; −1 if it has to be rebuilt, since the feed lacks the entries after that."""
    try:
        covered = reader.covered
    except StoreError:
        return -1
    marked, last = covered_by(collection.path, CONSUMER), last_sequence(collection.state)
    if covered == last:
        return covered
    if isinstance(collection, JoinedCollection):
        return -1  # every shard has a feed of its own
    following = next(entries_after(collection.state, covered), None)
    has_hole = following is None or following.sequence != covered + 1
    return covered if marked <= covered < last and not has_hole else -1
