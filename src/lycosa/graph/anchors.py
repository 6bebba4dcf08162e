"""What others call a page: the anchor texts of the links to it, each with the number of pages that use it.

For a thousand pages at a time, from all segments, links that were taken back left out. Reads the few blocks that are
concerned where the pages are few, whole columns where they are many. Called by whoever feeds the search index.
"""

from collections.abc import Sequence

import numpy as np

from lycosa.graph import texts
from lycosa.graph.columns import KIND_BITS, url_ids
from lycosa.graph.index import LinkIndex
from lycosa.graph.segment import Segment
from lycosa.graph.varint import I64, U64

MOST_TEXTS = 24  # of one page, the most used first
FEW = 4  # pages that point somewhere: with more, a text that only one of them uses says little
_BLOCKS_KEPT = 256
# A text in one number: 32 bits within its segment, 12 for the segment; before it 19 bits for the page.
_SEGMENT_SHIFT, _PAGE_SHIFT = 32, 44
_NUMBER_MASK, _TEXT_MASK = (1 << _SEGMENT_SHIFT) - 1, (1 << _PAGE_SHIFT) - 1

Anchors = list[tuple[str, int]]


class AnchorTexts:
    """The anchor texts of an index as it was when opened."""

    def __init__(self, index: LinkIndex) -> None:
        self._segments = [_Texts(segment) for segment in index.segments]

    def __repr__(self) -> str:
        return f"<AnchorTexts segments={len(self._segments)}>"

    def of(self, urls: Sequence[str]) -> list[Anchors]:
        """For each URL the texts of the links to it with the number of pages that use each, the most used first."""
        ids = url_ids(urls)
        rows = [segment.rows(ids, place) for place, segment in enumerate(self._segments)]
        if not rows or not len(urls):
            return [[] for _ in urls]
        page, source, is_plus, text = (np.concatenate(column) for column in zip(*rows, strict=True))
        order = np.lexsort((source, page))  # stable: of one pair the newest news stand last
        page, source, is_plus, text = page[order], source[order], is_plus[order], text[order]
        differs = (page[1:] != page[:-1]) | (source[1:] != source[:-1])
        kept = np.append(differs, True) & is_plus if len(page) else is_plus
        return self._counted(len(urls), page[kept], text[kept])

    def _counted(self, size: int, page: I64, text: I64) -> list[Anchors]:
        found: list[dict[str, int]] = [{} for _ in range(size)]
        totals = np.bincount(page, minlength=size)
        pairs, counts = np.unique((page << _PAGE_SHIFT) | text, return_counts=True)
        order = np.lexsort((-counts, pairs >> _PAGE_SHIFT))
        for pair, count in zip(pairs[order].tolist(), counts[order].tolist(), strict=True):
            at, number = pair >> _PAGE_SHIFT, pair & _TEXT_MASK
            said = found[at]
            if len(said) >= MOST_TEXTS or (count == 1 and totals[at] > FEW and said):
                continue
            if words := " ".join(self._text(number).split()):
                said[words] = said.get(words, 0) + count
        return [sorted(said.items(), key=lambda item: (-item[1], item[0])) for said in found]

    def _text(self, number: int) -> str:
        return self._segments[number >> _SEGMENT_SHIFT].text(number & _NUMBER_MASK)


class _Texts:
    """One segment, with what was decoded of it."""

    def __init__(self, segment: Segment) -> None:
        self._segment = segment
        self._blocks: dict[int, list[str]] = {}

    def rows(self, ids: U64, place: int) -> tuple[I64, U64, "np.ndarray[tuple[int], np.dtype[np.bool_]]", I64]:
        """The links to these URLs: place among `ids`, source, whether it came or went, number of the text."""
        pages, sources, is_plus, codes = self._segment.links_to(ids)
        return pages, sources, is_plus, (codes >> KIND_BITS) | (place << _SEGMENT_SHIFT)

    def text(self, number: int) -> str:
        block, place = divmod(number, texts.BLOCK_TEXTS)
        if block not in self._blocks:
            if len(self._blocks) >= _BLOCKS_KEPT:
                self._blocks.clear()
            self._blocks[block] = self._segment.text_block(block)
        return self._blocks[block][place]
