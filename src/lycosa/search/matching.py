"""Which of some pages a query finds, all of them and in no order: for whoever goes through a whole collection.

A page is found by its own words or by the anchor texts of links to it, as in a search; a copy is found where the
document is that it is a copy of. Pages are asked about by the thousand, so that nothing grows with the number of
matches. Called by exports.
"""

from collections.abc import Sequence
from pathlib import Path

from tantivy import Occur, Query

from lycosa.search.compile import Compiler, Weights
from lycosa.search.documents import IndexMember, schema
from lycosa.search.making import update_index
from lycosa.search.query import Filter, parse_query, terms
from lycosa.search.view import SearchView
from lycosa.store import PageRow


class QueryMatcher:
    """A query over the index of the collection at `path`, which is brought up to date first. Close it."""

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
