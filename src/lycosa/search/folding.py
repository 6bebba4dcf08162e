"""Folding: which of the pages that a query finds stand behind another one, as results of their own add nothing.

    alike       its main text is that of a better result, in whatever markup
    canonical   it names the result as its canonical URL, or the same URL as the result does, and speaks of the same
    near        its text is nearly that of a better result, as `lycosa duplicates` clusters pages, and so is its title:
                pages made from one template, each about something else, are results of their own

The canonical page stands for the others where the query finds it, and takes the place of the best of them. A page is
believed only where its text resembles that of the page it is folded under: sites that name their home page on every
page are common. Pages that name a canonical URL have a sketch of their text in the index; those that name none are read
for it, at most `MOST_READ` in a search.

Pages come in blocks, in the order of their scores (`retrieval`). Another reason to fold a page is one more mark in
`FoldMarks` and one more rule in `Folding._fold`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from lycosa.duplicates import NearGroups
from lycosa.search.documents import address_hash

MOST_READ = 20  # pages whose text is read to fold others, in a search
MOST_COMPARED = 20  # results of one canonical URL that a page is compared with
_RELATED_BITS = 20  # of 64 that sketches of related texts differ in at the most; others differ in 32, give or take 4


class FoldMarks(NamedTuple):
    """What the index says of a page that may fold it: numbers, 0 where it has none."""

    alike: int = 0
    canonical: int = 0
    sketch: int = 0
    bits: int = 0
    unsure: int = 0
    titled: int = 0


class PageSource(NamedTuple):
    """The collection behind an index: the url keys of pages, and a sketch of the text of one."""

    keys: Callable[[Sequence[int]], Sequence[bytes | None]]
    sketch: Callable[[int], int]


class Folding:
    """The results of a search so far, and what is folded under them: `alike`, `variants` and `near` by the number of
    the result."""

    def __init__(self, source: PageSource) -> None:
        self._source = source
        self.alike: dict[int, list[int]] = {}
        self.variants: dict[int, list[int]] = {}
        self.near: dict[int, list[int]] = {}
        self._marks: dict[int, FoldMarks] = {}  # of the results
        self._by_text: dict[int, int] = {}
        self._groups: dict[int, NearGroups] = {}  # by titles that several pages have
        self._lone: dict[int, list[tuple[int, int, int]]] = {}  # number and SimHash of the pages with other titles
        self._heads: dict[int, int] = {}  # of the pages that are folded
        self._by_address: dict[int, list[int]] = {}
        self._addresses: dict[int, int] = {}  # the canonical URL of a page, or its own; empty until a page names one
        self._read: dict[int, int] = {}  # sketches that are not in the index

    def __repr__(self) -> str:
        return f"<Folding results={len(self._marks)} folded={self.folded}>"

    @property
    def folded(self) -> int:
        return sum(len(some) for each in (self.alike, self.variants, self.near) for some in each.values())

    def heads(self, ordered: Sequence[int], marks: Mapping[int, FoldMarks]) -> list[int]:
        """Folds the pages of a block, which come by their scores; returns those that are results."""
        canonical = self._canonical_pages(ordered, marks)
        named = ((canonical.get(marks[number].canonical, number), number) for number in ordered)
        pages = list(dict.fromkeys(each for both in named for each in both))
        near = self._near(pages, marks)
        return [number for number in pages if not self._fold(number, marks[number], near.get(number))]

    def _near(self, numbers: Sequence[int], marks: Mapping[int, FoldMarks]) -> dict[int, int]:
        """The first page with nearly the text of each of these that has one, among those with the same title."""
        titled: dict[int, list[tuple[int, int, int]]] = {}
        for number in numbers:
            if marks[number].unsure:
                page = (number, marks[number].bits, marks[number].unsure)
                titled.setdefault(marks[number].titled, []).append(page)
        near: dict[int, int] = {}
        for title, new in titled.items():
            pages = self._lone.pop(title, []) + new
            if len(pages) == 1 and title not in self._groups:
                self._lone[title] = pages
                continue
            hashes = np.array([rest for _, *rest in pages], np.uint64)
            near |= self._groups.setdefault(title, NearGroups()).join([number for number, *_ in pages], hashes)
        return near

    def _canonical_pages(self, numbers: Sequence[int], marks: Mapping[int, FoldMarks]) -> dict[int, int]:
        """The pages of a block by their URLs, without those that name another; nothing until a page names one."""
        if not self._addresses:
            if not any(marks[number].canonical for number in numbers):
                return {}
            self._look_up(list(self._marks), self._marks)
            for number in self._marks:
                self._by_address.setdefault(self._addresses[number], []).append(number)
        return self._look_up(numbers, marks)

    def _look_up(self, numbers: Sequence[int], marks: Mapping[int, FoldMarks]) -> dict[int, int]:
        found = dict[int, int]()
        for number, key in zip(numbers, self._source.keys(numbers), strict=True):
            own = address_hash(key) if key else 0
            self._addresses[number] = marks[number].canonical or own
            if self._addresses[number] == own:
                found[own] = number
        return found

    def _fold(self, number: int, marks: FoldMarks, near: int | None) -> bool:
        """Folds a page under a result, or remembers it as one. `near` is the first page with nearly its text."""
        if marks.alike and marks.alike in self._by_text:
            return self._fold_under(self.alike, self._by_text[marks.alike], number)
        same = self._by_address.setdefault(address, []) if (address := self._addresses.get(number, 0)) else []
        for head in same[:MOST_COMPARED]:
            if _are_related(self._sketch(number, marks), self._sketch(head, self._marks[head])):
                return self._fold_under(self.variants, head, number)
        if near is not None:
            return self._fold_under(self.near, self._heads.get(near, near), number)
        same.append(number)
        self._marks[number] = marks
        if marks.alike:
            self._by_text[marks.alike] = number
        return False

    def _fold_under(self, reason: dict[int, list[int]], head: int, number: int) -> bool:
        reason.setdefault(head, []).append(number)
        self._heads[number] = head
        return True

    def _sketch(self, number: int, marks: FoldMarks) -> int:
        """The sketch of a page, read where the index has none; 0 where enough pages were read."""
        if marks.sketch:
            return marks.sketch
        if number not in self._read and len(self._read) < MOST_READ:
            self._read[number] = self._source.sketch(number)
        return self._read.get(number, 0)


def _are_related(one: int, other: int) -> bool:
    return one != 0 != other and (one ^ other).bit_count() <= _RELATED_BITS
