"""Searching a collection, and making its index or bringing it up to date.

    with SearchView(path) as view:
        found = view.search('solar "heat pump" site:example.org', most=10)

A view stays open for many questions and sees what came meanwhile after `refresh`. Titles, dates and URLs come from the
state, snippets from the archive.
"""

import contextlib
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from tantivy import Query

from lycosa.errors import StoreError
from lycosa.graph import key_of, last_sequence, load_ranks
from lycosa.notebook import html_table
from lycosa.records import Family
from lycosa.recrawl import require_bodies
from lycosa.search.compile import Weights
from lycosa.search.documents import LANGUAGES, IndexMember, date_of, has_expired
from lycosa.search.facets import Facets
from lycosa.search.folding import PageSource
from lycosa.search.index import (
    DamagedIndex,
    IndexInUse,
    IndexReader,
    NoIndex,
    OtherVersion,
    is_anchor_update_due,
    is_index_written,
    size_bytes,
)
from lycosa.search.indexer import Indexer
from lycosa.search.past import agent_of, full_row_as_of, make_reader, past_time, reader_as_of
from lycosa.search.query import AllOf, Term, parse_query, pasted_url, terms
from lycosa.search.retrieval import Hit, Hits, RankLookup, retrieve
from lycosa.search.snippet import Highlighter, Snippet
from lycosa.search.suggestion import FEW_RESULTS, Suggester, suggest
from lycosa.search.texts import PageTexts
from lycosa.store import ArchiveUnavailable, CollectionStore, PageRow, page_at, pages_at
from lycosa.web import Readable, format_timestamp, parse_url, text_sketch, url_from_key, url_key

COPIES_SHOWN, MOST_COPIES_SHOWN = 5, 1_000  # of a result; the second where nothing is folded
_READ_FOR_SPELLING = 3  # pages with a word that is suggested
MOST_HOPS = 5  # redirects that lead from a URL to its page
Progress = Callable[[int, int], None]


class MadeIndex(msgspec.Struct, frozen=True):
    """An index after it was made or brought up to date, and what that took. `unread` pages were taken in by
    title and URL alone, since their records cannot be read."""

    documents: int
    size_bytes: int
    pages: int
    renamed: int
    seconds: float
    unread: int = 0


class SearchResult(msgspec.Struct, frozen=True):
    """One result. `text`, `anchors` and `rank` are the factors of its score; `highlights` places in the
    snippet; `copies` counts other URLs with the same document, of which `copy_urls` are some. Pages that were found,
    too, and are folded under it are counted by reason, each with some of their URLs: `alike` have the same main text in
    other markup, `variants` name it as their canonical page, `near` have nearly the same text. `sent_bytes` is
    the size of the body as sent, `document_bytes` with its content coding undone, 0 where that is not known. With
    `noarchive` the page asks not to be offered to others as a copy."""

    url: str
    title: str
    score: float
    snippet: str
    highlights: tuple[tuple[int, int], ...]
    date: str
    fetched: str
    language: str
    content_type: str
    sent_bytes: int
    document_bytes: int
    copies: int
    copy_urls: tuple[str, ...]
    alike: int
    alike_urls: tuple[str, ...]
    text: float
    anchors: float
    rank: float
    noarchive: bool = False
    variants: int = 0
    variant_urls: tuple[str, ...] = ()
    near: int = 0
    near_urls: tuple[str, ...] = ()


class SearchResults(msgspec.Struct, frozen=True):
    """The results of a query. `total` counts all (`is_exact`: it is no estimate), `folded` the pages that stand behind
    results so far and are not among them; with `is_loose` no page has all of the words; `behind` is the number of
    changes that the index does not know of yet. Where little was found, `suggestion` is a query that finds more, if
    there is one. `facets` are there if they were asked for."""

    query: str
    total: int
    seconds: float
    offset: int
    results: tuple[SearchResult, ...]
    is_exact: bool
    is_loose: bool
    behind: int
    suggestion: str = ""
    facets: Facets | None = None
    folded: int = 0

    def _repr_html_(self) -> str:
        rows = (
            (place, found.title, found.url, found.snippet) for place, found in enumerate(self.results, 1 + self.offset)
        )
        about = "" if self.is_exact else "about "
        return html_table(f"{self.query}: {about}{self.total:,} found", ("", "title", "URL", "text"), rows)


def make_index(
    path: Path, *, anew: bool = False, skips_missing: bool = False, progress: Progress | None = None
) -> MadeIndex:
    """Makes the index of the collection at `path`, or brings it up to date. Where an archive file is missing, or its
    store cannot be reached, it raises `ArchiveUnavailable` and the index stays as it was; with `skips_missing` the
    pages in it are indexed by title and URL. A damaged index is made anew."""
    try:
        return _make_index(path, anew=anew, skips_missing=skips_missing, progress=progress)
    except DamagedIndex:
        if anew:
            raise
        return _make_index(path, anew=True, skips_missing=skips_missing, progress=progress)


def _make_index(path: Path, *, anew: bool, skips_missing: bool, progress: Progress | None) -> MadeIndex:
    began = time.monotonic()
    with CollectionStore.open(path, read_only=True) as collection:
        require_bodies(collection)
        indexer = Indexer(collection, anew=anew, skips_missing=skips_missing, progress=progress)
        try:
            pages = indexer.catch_up()
            renamed = indexer.update_anchors_and_ranks()
        except ArchiveUnavailable as error:
            words = "--rebuild --skip-missing" if anew else "--skip-missing"
            hint = f"lycosa index {path} {words} takes in the pages in it by title and URL"
            raise ArchiveUnavailable(f"{error}; bring it back and try again, or {hint}") from error
        finally:
            indexer.close()
    documents, seconds = IndexReader.open(path).documents, time.monotonic() - began
    return MadeIndex(documents, size_bytes(path), pages, renamed, seconds, indexer.unread)


def update_index(
    path: Path, *, progress: Progress | None = None, note: Callable[[str], None] = lambda text: None
) -> None:
    """Brings an index up to date before it is asked, unless another process is at it. Where that cannot be written, or
    the archive cannot be read, an index that is there answers as it is, and where the whole collection may only be read
    the view makes one of its own; `note` is called with what could not be read."""
    if is_index_written(path):
        return
    with CollectionStore.open(path, read_only=True) as collection:
        is_there = True
        try:
            reader = IndexReader.open(path)
            if reader.covered == last_sequence(collection.state) and not is_anchor_update_due(reader):
                return
        except NoIndex as error:
            is_there = False
            require_bodies(collection)
            if isinstance(error, OtherVersion):
                note(f"the search index of {path} was made by another version of Lycosa: it is made anew")
        except StoreError:
            if may_write(path):
                raise
            return
        try:
            indexer = Indexer(collection, progress=progress)
        except StoreError as error:
            if is_there or isinstance(error, IndexInUse) or not may_write(path):
                return
            raise
        try:
            is_new = indexer.covered < 0
            indexer.catch_up()
            if is_new or is_anchor_update_due(indexer.reader):
                indexer.update_anchors_and_ranks()
            if indexer.unread:
                note(unread_words(indexer.unread))
        except StoreError as error:
            if not is_there or isinstance(error, DamagedIndex):
                raise
            note(f"{error}; the index answers as it is")
        finally:
            indexer.close()


def may_write(path: Path) -> bool:
    """May this user write into the folder of a collection, and can its disk be written?"""
    return os.access(path, os.W_OK)


def is_index_behind(path: Path) -> bool:
    """Would the next search have to update the index before it answers?"""
    with CollectionStore.open(path, read_only=True) as collection:
        try:
            reader = IndexReader.open(path)
            return reader.covered != last_sequence(collection.state) or is_anchor_update_due(reader)
        except StoreError:
            return True


def unread_words(pages: int) -> str:
    """A sentence that says how many records could not be read."""
    records = "1 record" if pages == 1 else f"{pages:,} records"
    return f"{records} cannot be read, found by title and URL only until lycosa index --rebuild can read more"


class SearchView:
    """A collection and its index, open for questions. Close it."""

    def __init__(self, path: Path, *, as_of: str = "", progress: Progress | None = None) -> None:
        self.path = path
        self._as_of_s = past_time(as_of)
        self._progress = progress
        self._temporary: TemporaryDirectory[str] | None = None  # an index for this view alone
        self._collection = CollectionStore.open(path, read_only=True)
        try:
            self._reader = self._open()
        except BaseException:
            self.close()
            raise
        self._texts = PageTexts(self._collection, skips_missing=True, for_snippets=True)
        self._mean_ranks = _rank_lookup(path)
        self._agent = agent_of(self._collection) if self._as_of_s is not None else ""

    def __repr__(self) -> str:
        return f"<SearchView {self._reader!r}>"

    def __enter__(self) -> "SearchView":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def reader(self) -> IndexReader:
        """The index, for other kinds of questions."""
        return self._reader

    def _open(self) -> IndexReader:
        """The index of now or of the past time. Where there is none and the collection may not be written, it is made
        in a temporary folder, which is deleted with this view."""
        try:
            if self._as_of_s is None:
                return IndexReader.open(self.path)
            return reader_as_of(self._collection, self._as_of_s, progress=self._progress)
        except StoreError:
            if may_write(self.path):
                raise
        self._delete_temporary()
        self._temporary = TemporaryDirectory(prefix="lycosa-index-")
        return make_reader(
            self._collection, self._as_of_s or time.time(), self._temporary.name, progress=self._progress
        )

    def _delete_temporary(self) -> None:
        if self._temporary is not None:
            self._temporary.cleanup()
            self._temporary = None

    def close(self) -> None:
        self._collection.close()
        self._delete_temporary()

    def refresh(self) -> None:
        """Sees what was committed since; the past does not change."""
        if self._as_of_s is not None:
            return
        if self._collection.state.refresh() or self._temporary is None:
            self._reader = self._open()
        self._mean_ranks = _rank_lookup(self.path)

    def search(
        self,
        query: str,
        *,
        most: int = 10,
        offset: int = 0,
        weights: Weights | None = None,
        facets: bool = False,
        fold: bool = True,
    ) -> SearchResults:
        """The pages that a query finds, from `offset` on; with `facets` counted by host, language, type and year.
        Without `fold` copies are results, too; of equal documents all URLs are named."""
        began = time.perf_counter()
        tree, weights = parse_query(query), weights or Weights()
        if self._as_of_s is not None or self._temporary is not None:
            weights = msgspec.structs.replace(weights, anchors=0.0, rank=0.0)
        hits = self._retrieve(query, tree, weights=weights, most=most, offset=offset, facets=facets, fold=fold)
        results = self._results(hits.hits, terms(tree), COPIES_SHOWN if fold else MOST_COPIES_SHOWN)
        behind = (
            0
            if self._as_of_s or self._temporary
            else max(0, last_sequence(self._collection.state) - self._reader.covered)
        )
        total = hits.total - (len(hits.hits) - len(results))
        suggestion = self._suggestion(query, tree, hits, weights) if not offset else ""
        return SearchResults(
            query,
            total,
            time.perf_counter() - began,
            offset,
            results,
            hits.is_exact,
            hits.is_loose,
            behind,
            suggestion,
            hits.facets,
            hits.folded,
        )

    def _retrieve(
        self,
        query: str,
        tree: AllOf,
        *,
        weights: Weights,
        most: int,
        offset: int = 0,
        facets: bool = False,
        fold: bool = True,
    ) -> Hits:
        return retrieve(
            self._reader,
            tree,
            self._mean_ranks,
            PageSource(self._keys, self._sketch) if fold else None,
            weights=weights,
            most=most,
            offset=offset,
            first=self._pasted(query),
            has_facets=facets,
        )

    def _suggestion(self, query: str, tree: AllOf, hits: Hits, weights: Weights) -> str:
        """A query that finds more, where this one finds little."""
        total = 0 if hits.is_loose else hits.total
        if total > FEW_RESULTS or pasted_url(query):
            return ""

        def count(other: str) -> int:
            found = self._retrieve(other, parse_query(other), weights=weights, most=1)
            return 0 if found.is_loose else found.total

        def texts(query: Query) -> list[str]:
            numbers = self._reader.matching(query, "page", _READ_FOR_SPELLING)
            pages = [(url_from_key(key), row) for key, row in zip(*self._rows(numbers), strict=True) if key and row]
            return [f"{row.title} {self._read(url, row).text}" for url, row in pages]

        return suggest(Suggester(self._reader, count, texts), query, terms(tree), total=total)

    def _keys(self, numbers: Sequence[int]) -> list[bytes | None]:
        """The url keys of pages."""
        return self._collection.state.get_many(Family.FILE, [number.to_bytes(8) for number in numbers])

    def _sketch(self, number: int) -> int:
        """A sketch of the text of a page, as the index has it of others; 0 if there is no text."""
        (key,), (row,) = self._rows([number])
        return text_sketch(self._read(url_from_key(key), row).text) if key and row else 0

    def find(self, query: str, *, most: int = 10, weights: Weights | None = None) -> list[str]:
        """The URLs alone of what a query finds, without a look into the archive."""
        hits = self._retrieve(query, parse_query(query), weights=weights or Weights(), most=most).hits
        pages = zip(*self._rows([hit.file_num for hit in hits]), strict=True)
        return [url_from_key(key) for key, row in pages if key and row and not has_expired(row, time.time())]

    def _pasted(self, query: str) -> int:
        """The page in the index for a query that is a URL; 0 if it is none, or of no page."""
        pasted = pasted_url(query)
        if not pasted or pasted.lower().startswith(("http://", "https://")):
            return self._page_of(pasted)
        return self._page_of(f"https://{pasted}") or self._page_of(f"http://{pasted}")

    def _page_of(self, text: str) -> int:
        url = parse_url(text) if text else None
        for _ in range(MOST_HOPS):
            row = page_at(self._collection.state, url_key(url.href)) if url is not None else None
            if row is None or not row.location:
                break
            url = parse_url(row.location)
        if url is None or row is None:
            return 0
        clusters = self._reader.column("copy", [row.file_num], "cluster")
        heads = [page for _, page in self._reader.rows("cluster", list(clusters.values()), "page") if page]
        return next(iter(heads), row.file_num)

    def _results(self, hits: Sequence[Hit], asked: Sequence[Term], copies_shown: int) -> tuple[SearchResult, ...]:
        words, prefixes = [term.text for term in asked], [term.text for term in asked if term.is_prefix]
        numbers = [hit.file_num for hit in hits]
        about = {number: rest for number, *rest in self._reader.rows("page", numbers, "cluster", "speaks")}
        copies = self._reader.copies_by_cluster([cluster for cluster, _ in about.values()])
        found, now = [], time.time()
        highlighters: dict[int, Highlighter] = {}
        for hit, key, row in zip(hits, *self._rows(numbers), strict=True):
            if key is None or row is None or has_expired(row, now):
                continue  # gone since the state was read, or not to be found any more
            cluster, speaks = about.get(hit.file_num, (0, len(LANGUAGES) - 1))
            if speaks not in highlighters:
                highlighters[speaks] = Highlighter(words, LANGUAGES[speaks], prefixes)
            same = sorted(copies.get(cluster, []))
            found.append(self._result(hit, url_from_key(key), row, highlighters[speaks], same, copies_shown))
        return tuple(found)

    def _rows(self, numbers: Sequence[int]) -> tuple[list[bytes | None], list[PageRow | None]]:
        """The url keys of pages, and their rows, now or then."""
        if not numbers:
            return [], []
        state, then = self._collection.state, self._as_of_s
        keys = self._keys(numbers)
        if then is not None:
            return keys, [full_row_as_of(self._collection, key, then, self._agent) if key else None for key in keys]
        return keys, pages_at(state, [key or b"" for key in keys])

    def _result(
        self, hit: Hit, url: str, row: PageRow, highlighter: Highlighter, copies: list[int], copies_shown: int
    ) -> SearchResult:
        read = self._read(url, row)
        piece = Snippet("") if row.nosnippet else highlighter.snippet(read.text)
        return SearchResult(
            url,
            " ".join((row.title or read.title).split()),
            round(hit.score, 4),
            piece.text,
            piece.highlights,
            _day(date_of(row)),
            format_timestamp(row.fetched_s),
            row.language,
            row.essence,
            row.size_bytes,
            row.document_bytes,
            len(copies),
            self._urls(copies, copies_shown),
            len(hit.alike),
            self._urls(hit.alike),
            round(hit.text, 4),
            round(hit.anchors, 4),
            round(hit.rank, 4),
            row.noarchive,
            len(hit.variants),
            self._urls(hit.variants),
            len(hit.near),
            self._urls(hit.near),
        )

    def _urls(self, numbers: Sequence[int], most: int = COPIES_SHOWN) -> tuple[str, ...]:
        """The URLs of the first of these pages."""
        keys = (key_of(self._collection.state, number) for number in numbers[:most])
        return tuple(url_from_key(key) for key in keys if key is not None)

    def _read(self, url: str, row: PageRow) -> Readable:
        return next(self._texts.of([IndexMember(row.file_num, url, row)])) or Readable()


def _rank_lookup(path: Path) -> RankLookup:
    """The ranks of a collection; without ranks, or with damaged ones, no page has one."""
    with contextlib.suppress(StoreError):
        if ranks := load_ranks(path):
            return ranks.mean_ranks
    return lambda file_nums: [-1.0] * len(file_nums)


def _day(seconds: float) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(seconds))
