"""Searching a collection.

    with SearchView(path) as view:
        found = view.search('solar "heat pump" site:example.org', most=10)

A view stays open for many questions and sees what came meanwhile after `refresh`. Titles, dates and URLs come from the
state, snippets from the archive. `QueryMatcher` answers by the same index for whoever goes through all pages.
"""

import contextlib
import math
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from tantivy import Occur, Query

from lycosa.errors import StoreError
from lycosa.graph import key_of, last_sequence, load_ranks
from lycosa.notebook import html_table
from lycosa.records import Family
from lycosa.search.compile import Compiler, Weights
from lycosa.search.documents import LANGUAGES, IndexMember, date_of, has_expired, schema
from lycosa.search.folding import PageSource
from lycosa.search.index import IndexReader
from lycosa.search.making import Progress, may_write, update_index
from lycosa.search.past import agent_of, full_row_as_of, make_reader, past_time, reader_as_of
from lycosa.search.query import AllOf, Filter, Term, parse_query, pasted_url, terms
from lycosa.search.retrieval import Facets, Hit, Hits, RankLookup, retrieve
from lycosa.search.snippet import Highlighter, Snippet
from lycosa.search.suggestion import FEW_RESULTS, Suggester, suggest
from lycosa.search.texts import PageTexts
from lycosa.store import CollectionStore, PageRow, page_at, pages_at
from lycosa.web import Readable, format_timestamp, parse_url, text_sketch, url_from_key, url_key

COPIES_SHOWN, MOST_COPIES_SHOWN = 5, 1_000  # of a result; the second where nothing is folded
_READ_FOR_SPELLING = 3  # pages with a word that is suggested
MOST_HOPS = 5  # redirects that lead from a URL to its page


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
        # Now is whatever the collection holds: the clock of the machine that crawled it may be ahead of this one.
        at_s = math.inf if self._as_of_s is None else self._as_of_s
        return make_reader(self._collection, at_s, self._temporary.name, progress=self._progress)

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


class QueryMatcher:
    """Which of some pages a query finds, all of them and in no order: for whoever goes through a whole collection, as
    exports do. The index of the collection at `path` is brought up to date first. Close it.

    A page is found by its own words or by the anchor texts of links to it, as in a search; a copy is found where the
    document is that it is a copy of. Pages are asked about by the thousand, so that nothing grows with the number of
    matches."""

    def __init__(self, path: Path, query: str) -> None:
        self._tree = parse_query(query)
        update_index(path)
        self._view = SearchView(path)
        self._reader = self._view.reader
        wanted = [str(part.value) for part in self._tree.parts if isinstance(part, Filter) and part.kind == "lang"]
        self._compiler = Compiler(self._reader, Weights(), wanted)
        self._own = self._compiler.pages(self._tree)
        self._called = self._compiler.anchors(self._tree) if terms(self._tree) else None

    def __repr__(self) -> str:
        return f"<QueryMatcher {self._view!r}>"

    def close(self) -> None:
        self._view.close()

    def found(self, rows: Sequence[PageRow]) -> list[bool]:
        """For each row whether the query finds its page."""
        clusters = [IndexMember(row.file_num, "", row).cluster for row in rows]
        matched = set(self._matching(self._own, "cluster", clusters))
        by_name = self._matching(self._called, "name", [row.file_num for row in rows])
        if by_name:  # filters and exclusions hold for them, too
            chosen = self._compiler.these(self._tree, by_name)
            matched.update(self._reader.matching(chosen, "cluster", 2 * len(by_name)))
        return [cluster in matched for cluster in clusters]

    def _matching(self, query: Query | None, key: str, numbers: Sequence[int]) -> list[int]:
        """Those of some numbers `key` that documents have which the query finds."""
        if query is None or not numbers:
            return []
        chosen = Query.const_score_query(Query.term_set_query(schema(), key, list(numbers)), 0.0)
        both = Query.boolean_query([(Occur.Must, chosen), (Occur.Must, query)])
        return self._reader.matching(both, key, 2 * len(numbers))


def _rank_lookup(path: Path) -> RankLookup:
    """The ranks of a collection; without ranks, or with damaged ones, no page has one."""
    with contextlib.suppress(StoreError):
        if ranks := load_ranks(path):
            return ranks.mean_ranks
    return lambda file_nums: [-1.0] * len(file_nums)


def _day(seconds: float) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(seconds))
