"""What becomes of a search index when its pages are in: ranks, and what others call each page.

Names change with every link that is found, so they are settled at the end, when the number of links has doubled, or
when one page in twenty has come or changed since; only those that are other words than before are indexed again. On the
way pages are taken in again that are there twice or are no more. Called by the indexer.

    index/NAME/settled    up to which entry of the feed names and ranks are settled
"""

import contextlib
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from typing import TYPE_CHECKING

from lycosa.graph import Anchors, AnchorTexts, current_link_index, rank_pages
from lycosa.records import Family
from lycosa.search.documents import AnchorSummary, anchor_document, indexed_page, summarise_anchors
from lycosa.search.index import IndexReader, reported
from lycosa.search.language import LANGUAGES
from lycosa.store import CollectionStore

if TYPE_CHECKING:
    from lycosa.search.indexer import Indexer

NAMES_AT_ONCE = 2_000
SETTLED_SHARE = 20  # names are settled when more than one page in so many has come
_SETTLED = "settled"


def is_anchor_update_due(reader: IndexReader) -> bool:
    """Has much come since names and ranks were settled last, or were they never?"""
    settled = -1
    with contextlib.suppress(OSError, ValueError):  # not there, or not what was written
        settled = int((reader.folder / _SETTLED).read_text())
    since = reader.covered - settled
    return since > 0 and since * SETTLED_SHARE > reader.documents


def _note_updated(reader: IndexReader) -> None:
    hidden = reader.folder / f".{_SETTLED}.new"
    with reported(reader.path):
        hidden.write_text(f"{reader.covered}\n")
        hidden.replace(reader.folder / _SETTLED)


class AnchorUpdate:
    """One time that it is done."""

    def __init__(self, indexer: "Indexer", collection: CollectionStore) -> None:
        self._indexer, self._reader, self._writer = indexer, indexer.reader, indexer.writer
        self._collection = collection

    def __repr__(self) -> str:
        return f"<Settling {self._indexer!r}>"

    def settle(self) -> tuple[int, int]:
        """How many links there are, and how many pages are called otherwise than before."""
        index = current_link_index(self._collection)
        if self._indexer.is_built:  # all is new, but for what copies are called
            numbers = iter(self._with_copies())
        else:
            rank_pages(self._collection)
            self._mend()
            numbers = (int.from_bytes(number) for number, _ in self._collection.state.walk(Family.FILE))
        renamed = self._rename_all(numbers, AnchorTexts(index))
        _note_updated(self._reader)
        return index.links, renamed

    def _with_copies(self) -> list[int]:
        """The pages that stand for others, too."""
        clusters = sorted(set(self._reader.all("copy", "cluster")))
        return [page for _, page in self._reader.rows("cluster", clusters, "page") if page]

    def _mend(self) -> None:
        """Takes in again the pages that are there twice, or are no more: where deletions were lost there are such."""
        pages, wrong = iter(sorted(self._reader.all("page", "page"))), []
        while some := list(islice(pages, NAMES_AT_ONCE)):
            there = self._indexer.searchable(some)
            twice = [page for page, next_page in pairwise(some) if page == next_page]
            wrong += [*twice, *(page for page in some if page not in there)]
        for start in range(0, len(wrong), NAMES_AT_ONCE):
            self._indexer.take_in(list(dict.fromkeys(wrong[start : start + NAMES_AT_ONCE])))
        if wrong:
            self._indexer.commit_again()

    def _rename_all(self, numbers: Iterator[int], anchors: AnchorTexts) -> int:
        renamed = 0
        while some := list(islice(numbers, NAMES_AT_ONCE)):
            renamed += self._rename(some, anchors)
        if renamed:
            self._indexer.commit_again()
        return renamed

    def _rename(self, numbers: Sequence[int], anchors: AnchorTexts) -> int:
        pages = {number: rest for number, *rest in self._reader.rows("page", numbers, "cluster", "speaks")}
        words = self._reader.column("name", list(pages), "words")
        copies: dict[int, list[int]] = {}
        for cluster, copy in self._reader.rows("cluster", [cluster for cluster, _ in pages.values()], "copy"):
            if copy:
                copies.setdefault(cluster, []).append(copy)
        members = self._indexer.searchable([*pages, *(copy for some in copies.values() for copy in some)])
        said = dict(zip(members, anchors.of([member.url for member in members.values()]), strict=True))
        renamed = []
        for number, (cluster, speaks) in pages.items():
            if number in members:
                calls = _summary_of([said[each] for each in (number, *copies.get(cluster, ())) if each in said])
                if number not in words or calls.words != words[number]:
                    member = members[number]
                    found = indexed_page(number, cluster, member.url, member.row)
                    renamed.append((number, anchor_document(found, LANGUAGES[speaks], calls)))
        self._writer.delete("name", [number for number, _ in renamed])
        for _, document in renamed:
            self._writer.add(document)
        return len(renamed)


def _summary_of(lists: Sequence[Anchors]) -> AnchorSummary:
    if len(lists) == 1:
        return summarise_anchors(lists[0])
    counts: dict[str, int] = {}
    for text, count in (each for some in lists for each in some):
        counts[text] = counts.get(text, 0) + count
    return summarise_anchors(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
