"""Anchor documents: what links call each page, indexed again where the words have changed.

Anchor texts change with every link that is found, so they are updated at the end of a crawl, when the number of links
has doubled, or when one page in twenty has come or changed since; only pages whose words differ are indexed again.
Called by the indexer.

    index/NAME/settled    up to which entry of the feed anchors and ranks are updated
"""

import contextlib
from collections.abc import Iterator, Sequence
from itertools import islice

from lycosa.graph import Anchors, AnchorTexts
from lycosa.search.documents import AnchorSummary, anchor_document, indexed_page, searchable_pages, summarise_anchors
from lycosa.search.index import IndexReader, IndexWriter, reported
from lycosa.search.language import LANGUAGES
from lycosa.store import State

PAGES_AT_ONCE = 2_000
UPDATE_SHARE = 20  # anchors are updated when more than one page in so many has come
_UPDATED_FILE = "settled"


def is_anchor_update_due(reader: IndexReader) -> bool:
    """Has much come since anchors and ranks were updated last, or were they never?"""
    updated = -1
    with contextlib.suppress(OSError, ValueError):  # not there, or not what was written
        updated = int((reader.folder / _UPDATED_FILE).read_text())
    since = reader.covered - updated
    return since > 0 and since * UPDATE_SHARE > reader.documents


def note_updated(reader: IndexReader) -> None:
    """Remembers that anchors and ranks are those of what the index covers."""
    hidden = reader.folder / f".{_UPDATED_FILE}.new"
    with reported(reader.path):
        hidden.write_text(f"{reader.covered}\n")
        hidden.replace(reader.folder / _UPDATED_FILE)


class AnchorUpdater:
    """Brings the anchor documents of an index in line with the anchor texts of the link index."""

    def __init__(self, state: State, reader: IndexReader, writer: IndexWriter, anchors: AnchorTexts) -> None:
        self._state, self._reader, self._writer, self._anchors = state, reader, writer, anchors

    def __repr__(self) -> str:
        return f"<AnchorUpdater {self._reader!r}>"

    def pages_with_copies(self) -> list[int]:
        """The pages that represent others as well."""
        clusters = sorted(set(self._reader.all("copy", "cluster")))
        return [page for _, page in self._reader.rows("cluster", clusters, "page") if page]

    def update(self, numbers: Iterator[int]) -> int:
        """Indexes changed anchor texts again, without a commit; returns of how many pages."""
        updated = 0
        while some := list(islice(numbers, PAGES_AT_ONCE)):
            updated += self._update(some)
        return updated

    def _update(self, numbers: Sequence[int]) -> int:
        pages = {number: rest for number, *rest in self._reader.rows("page", numbers, "cluster", "speaks")}
        words = self._reader.column("name", list(pages), "words")
        copies = self._reader.copies_by_cluster([cluster for cluster, _ in pages.values()])
        members = searchable_pages(self._state, [*pages, *(copy for some in copies.values() for copy in some)])
        texts = dict(zip(members, self._anchors.of([member.url for member in members.values()]), strict=True))
        changed = []
        for number, (cluster, speaks) in pages.items():
            if number in members:
                anchors = _summary_of([texts[each] for each in (number, *copies.get(cluster, ())) if each in texts])
                if number not in words or anchors.words != words[number]:
                    member = members[number]
                    page = indexed_page(number, cluster, member.url, member.row)
                    changed.append((number, anchor_document(page, LANGUAGES[speaks], anchors)))
        self._writer.delete("name", [number for number, _ in changed])
        for _, document in changed:
            self._writer.add(document)
        return len(changed)


def _summary_of(lists: Sequence[Anchors]) -> AnchorSummary:
    if len(lists) == 1:
        return summarise_anchors(lists[0])
    counts: dict[str, int] = {}
    for text, count in (each for some in lists for each in some):
        counts[text] = counts.get(text, 0) + count
    return summarise_anchors(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
