"""From committed pages to the search index: reads the feed, reads the archive, keeps one document a cluster.

    catch_up   what the feed tells since the index was last committed, in batches; each batch is one commit
    build      every page of the state, for an index that is not there or that the feed can no longer mend
    settle     ranks, and the names of pages whose incoming anchor texts have changed: at the end, or when the number
               of links has doubled

Every step can be killed: the index holds the sequence it covers, and pages are taken in by what the state says of them
now, so that doing it twice is the same as once. Reads the collection only, beside a running crawl or without one.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice, pairwise

from tantivy import Occur, Query

from lycosa.engine.contents import Contents
from lycosa.engine.findable import Member, found_of, is_searchable
from lycosa.engine.link_views import rank_pages
from lycosa.engine.pages import unpack_page
from lycosa.engine.read_ahead import ReadAhead
from lycosa.errors import StoreError
from lycosa.graph.anchors import AnchorTexts
from lycosa.graph.feed import FOLDER as FEED_FOLDER
from lycosa.graph.feed import consumers, cover, last_told, news_after
from lycosa.graph.index import LinkIndex
from lycosa.records import Family
from lycosa.search.document import Called, called, copy_document, documents, name_document
from lycosa.search.index import Reader, Writer
from lycosa.search.language import LANGUAGES, HostLanguages
from lycosa.search.schema import schema
from lycosa.store import Collection
from lycosa.web.readable import Readable, readable
from lycosa.web.url import from_key, split

CONSUMER = "search"
BATCH_PAGES = 4_000  # a commit: a few seconds of work
BUILD_PAGES = 10_000  # the same while an index is made, which answers nobody yet
NAMES_AT_ONCE = 2_000
TOLD_PAGES = 100  # between two words of progress
MANY_PAGES = 2_000  # from here on they are read by processes on all cores

Progress = Callable[[int, int], None]  # pages done, pages in all


class Indexer:
    """The writer of a collection's search index. Close it."""

    def __init__(self, collection: Collection, *, anew: bool = False, progress: Progress | None = None) -> None:
        self._collection, self._state = collection, collection.state
        self._contents = Contents(collection)
        self._progress = progress or (lambda done, pages: None)
        self.writer = Writer(collection.path, anew=anew)
        try:
            self._reader = self.writer.reader()
            self.covered = -1 if self.writer.is_new else _usable(collection, self._reader)
            if self.covered < 0 and not self.writer.is_new:
                self.writer.close()
                self.writer = Writer(collection.path, anew=True)
                self._reader = self.writer.reader()
        except BaseException:
            self.writer.close()
            raise
        self.links_settled = 0
        self._ahead: ReadAhead | None = None
        self._languages = HostLanguages(self._spoken)
        self._taken = self._expected = 0  # for the progress

    def __repr__(self) -> str:
        return f"<Indexer {self.writer!r} covered={self.covered}>"

    @property
    def behind(self) -> int:
        """Entries of the feed that are not covered, as far as the open state knows."""
        return last_told(self._state) - max(0, self.covered)

    @property
    def documents(self) -> int:
        return self._reader.documents

    def catch_up(self, *, goes_on: Callable[[], bool] = lambda: True) -> int:
        """Takes in all that the feed tells, or builds; returns how many pages. `goes_on` is asked between commits."""
        if self.covered < 0:
            return self.build()
        pages, all_news = 0, self.behind
        news = news_after(self._state, self.covered)
        while some := list(islice(news, BATCH_PAGES)):
            self._taken, self._expected = pages, all_news
            self._take_in(list(dict.fromkeys(each.file_num for each in some)))
            pages += len(some)
            self._commit(some[-1].sequence)
            if not goes_on():
                break
        return pages

    def build(self) -> int:
        """Every page, from the state as it is open."""
        covered, pages = last_told(self._state), 0
        cover(self._collection.path, CONSUMER, covered)  # what comes meanwhile stays in the feed
        numbers = (int.from_bytes(number) for number, _ in self._state.walk(Family.FILE))
        self._ahead = ReadAhead(self._collection.warc_folders) if covered >= MANY_PAGES else None
        try:
            while some := list(islice(numbers, BUILD_PAGES)):
                self._taken, self._expected = pages, covered
                self._take_in(some)
                pages += len(some)
                self.writer.commit(0, is_whole=False)
                self._reader.refresh()
        finally:
            if self._ahead is not None:
                self._ahead.close()
                self._ahead = None
        self._commit(covered)
        return pages

    def _commit(self, covered: int) -> None:
        self.writer.commit(covered)
        self.covered = covered
        self._reader.refresh()
        cover(self._collection.path, CONSUMER, covered)

    def close(self) -> None:
        self.writer.close()

    # pages

    def _take_in(self, numbers: list[int]) -> None:
        """Brings the index in line with what the state says of these pages now."""
        now = self._searchable(numbers)
        old_pages = self._reader.column("page", numbers, "cluster")
        old_copies = self._reader.column("copy", numbers, "cluster")
        self.writer.delete("page", old_pages)
        self.writer.delete("name", old_pages)
        self.writer.delete("copy", old_copies)
        members: dict[int, list[Member]] = {}
        for member in now.values():
            members.setdefault(member.cluster, []).append(member)
        clusters = {*old_pages.values(), *old_copies.values(), *members}
        pages, copies = self._others(sorted(clusters), frozenset(numbers))
        heads: list[Member] = []
        for cluster in clusters:
            heads += self._head(cluster, pages.get(cluster), members.get(cluster, []), copies.get(cluster, []))
        self._add(heads)

    def _head(self, cluster: int, page: int | None, members: list[Member], copies: list[int]) -> Iterator[Member]:
        """Says which page stands for a cluster, if it is not the one that does already; the others become copies.
        `page` and `copies` are in the index, `members` are taken in: a document's first URL before all others."""
        members = sorted(members, key=lambda member: (bool(member.row.original), member.number))
        first = members[0] if members else None
        if page is not None and first is not None and not first.row.original and self._is_later(page):
            self.writer.delete("page", [page])
            self.writer.delete("name", [page])
            self.writer.add(copy_document(page, cluster))
            page = None
        if page is None and first is None:
            first = next((found[number] for number in sorted(copies) if (found := self._searchable([number]))), None)
            if first is not None:
                self.writer.delete("copy", [first.number])
        if page is None and first is not None:
            yield first
            members = [member for member in members if member is not first]
        for member in members:
            self.writer.add(copy_document(member.number, cluster))

    def _is_later(self, number: int) -> bool:
        """Was the document of this page known under another URL before?"""
        member = self._searchable([number]).get(number)
        return member is not None and bool(member.row.original)

    def _searchable(self, numbers: Sequence[int]) -> dict[int, Member]:
        """Those that are pages now and may be found."""
        keys = self._state.get_many(Family.FILE, [number.to_bytes(8) for number in numbers])
        known = [(number, key) for number, key in zip(numbers, keys, strict=True) if key is not None]
        rows = self._state.get_many(Family.PAGE, [key for _, key in known]) if known else []
        found = {}
        for (number, key), packed in zip(known, rows, strict=True):
            row = unpack_page(packed) if packed else None
            if row is not None and is_searchable(row) and row.file_num == number:
                found[number] = Member(number, from_key(key), row)
        return found

    def _others(self, clusters: Sequence[int], inside: frozenset[int]) -> tuple[dict[int, int], dict[int, list[int]]]:
        """Of each cluster the page, and the copies, that are in the index and not among those being taken in."""
        pages: dict[int, int] = {}
        copies: dict[int, list[int]] = {}
        for cluster, page, copy in self._reader.rows("cluster", clusters, "page", "copy"):
            if page and page not in inside:
                pages[cluster] = page
            elif copy and copy not in inside:
                copies.setdefault(cluster, []).append(copy)
        return pages, copies

    def _add(self, members: Sequence[Member]) -> None:
        anchors = AnchorTexts(LinkIndex.open(self._collection.path)).of([member.url for member in members])
        for done, (member, said, read) in enumerate(zip(members, anchors, self._read(members), strict=True)):
            if done % TOLD_PAGES == 0:
                self._progress(self._taken + done, self._expected)
            found = found_of(member.number, member.cluster, member.url, member.row, read)
            language = self._languages.language_of(
                split(member.url).host, found.language, f"{found.title} {found.text}"
            )
            for document in documents(found, language, called(said)):
                self.writer.add(document)

    def _spoken(self, host: str) -> dict[str, int]:
        """How many pages of a host are in the index, by language."""
        site = Query.term_query(schema(), "site", host, "basic")
        counts = {}
        for language in LANGUAGES[:-1]:
            tokens = Query.term_query(schema(), "lang", f"tokens:{language}", "basic")
            query = Query.boolean_query([(Occur.Must, site), (Occur.Must, tokens)])
            counts[language] = self._reader.search(query, 1)[1]
        return {language: count for language, count in counts.items() if count}

    def _read(self, members: Sequence[Member]) -> Iterator[Readable | None]:
        """What is for reading in each; None where the archive no longer has it."""
        plain = ((member.url, member.row.place) for member in members if member.row.place and not member.row.original)
        ahead = self._ahead.map(plain) if self._ahead is not None else None
        for member in members:
            is_plain = member.row.place and not member.row.original
            read = next(ahead) if ahead is not None and is_plain else None
            if read is None and (content := self._contents.read(member.row)) is not None:
                read = readable(content[1], url=member.url, content_type=content[0].get("content-type"))
            yield read

    # names and ranks

    def links_have_doubled(self) -> bool:
        """Since names were settled last."""
        return LinkIndex.open(self._collection.path).links >= 2 * max(1, self.links_settled)

    def settle(self) -> int:
        """Ranks, and names of pages that are called otherwise than before; returns how many those are."""
        self._mend()
        index = LinkIndex.open(self._collection.path)
        self.links_settled = index.links
        rank_pages(self._collection)
        anchors, renamed = AnchorTexts(index), 0
        numbers = (int.from_bytes(number) for number, _ in self._state.walk(Family.FILE))
        while some := list(islice(numbers, NAMES_AT_ONCE)):
            renamed += self._rename(some, anchors)
        if renamed:
            self._commit(self.covered)
        return renamed

    def _mend(self) -> None:
        """Takes in again the pages that are there twice, or are no more: where deletions were lost there are such."""
        pages, wrong = iter(sorted(self._reader.pages())), []
        while some := list(islice(pages, NAMES_AT_ONCE)):
            there = self._searchable(some)
            twice = [page for page, next_page in pairwise(some) if page == next_page]
            wrong += [*twice, *(page for page in some if page not in there)]
        for start in range(0, len(wrong), NAMES_AT_ONCE):
            self._take_in(list(dict.fromkeys(wrong[start : start + NAMES_AT_ONCE])))
        if wrong:
            self._commit(self.covered)

    def _rename(self, numbers: Sequence[int], anchors: AnchorTexts) -> int:
        pages = {number: rest for number, *rest in self._reader.rows("page", numbers, "cluster", "speaks")}
        words = self._reader.column("name", list(pages), "words")
        copies: dict[int, list[int]] = {}
        for cluster, copy in self._reader.rows("cluster", [cluster for cluster, _ in pages.values()], "copy"):
            if copy:
                copies.setdefault(cluster, []).append(copy)
        members = self._searchable([*pages, *(copy for some in copies.values() for copy in some)])
        said = dict(zip(members, anchors.of([member.url for member in members.values()]), strict=True))
        renamed = []
        for number, (cluster, speaks) in pages.items():
            if number in members:
                calls = _called([said[each] for each in (number, *copies.get(cluster, ())) if each in said])
                if number not in words or calls.words != words[number]:
                    member = members[number]
                    found = found_of(number, cluster, member.url, member.row)
                    renamed.append((number, name_document(found, LANGUAGES[speaks], calls)))
        self.writer.delete("name", [number for number, _ in renamed])
        for _, document in renamed:
            self.writer.add(document)
        return len(renamed)


def _called(lists: Sequence[list[tuple[str, int]]]) -> Called:
    if len(lists) == 1:
        return called(lists[0])
    counts: dict[str, int] = {}
    for text, count in (each for some in lists for each in some):
        counts[text] = counts.get(text, 0) + count
    return called(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _usable(collection: Collection, reader: Reader) -> int:
    """What the index covers; −1 if it has to be built, since the feed no longer tells what came after."""
    try:
        covered = reader.covered
    except StoreError:
        return -1
    told, last = consumers(collection.path / FEED_FOLDER).get(CONSUMER, 0), last_told(collection.state)
    if covered == last:
        return covered
    following = next(news_after(collection.state, covered), None)
    has_hole = following is None or following.sequence != covered + 1
    return covered if told <= covered < last and not has_hole else -1
