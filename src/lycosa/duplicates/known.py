"""The texts that a crawl knows: of which of them is the text of a page nearly a copy?

The first page with a text stands for all that are near it, and only it is kept, in the index on disk. Asked by the trap
guard for many pages at once. It serves nothing but the thrift of a crawl: where its disk fails, nothing is known any
more, and the crawl goes on.
"""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from lycosa.duplicates.index import SimHashIndex, near_among, unpacked
from lycosa.errors import StoreError


class KnownTexts:
    """The known texts, whose index is in a folder."""

    def __init__(self, folder: Path) -> None:
        self._index: SimHashIndex | None = SimHashIndex(folder)

    def __repr__(self) -> str:
        return f"<KnownTexts {self._index!r}>"

    def originals(self, hashes: Sequence[bytes]) -> list[int]:
        """For each SimHash the bits of the known one that it is nearest to; 0 where its text is new, which is known
        from now on."""
        found = [0] * len(hashes)
        if self._index is None:
            return found
        try:
            return self._find(self._index, hashes, found)
        except (OSError, StoreError):
            self._index = None
            return found

    @staticmethod
    def _find(index: SimHashIndex, hashes: Sequence[bytes], found: list[int]) -> list[int]:
        asked = unpacked(b"".join(hashes))
        pairs = index.near(asked)
        order = np.lexsort((pairs.entry, pairs.distance, pairs.asked))[::-1]  # the nearest is last, and so it stays
        known = index.entries(pairs.entry[order])[:, 0]
        for place, original in zip(pairs.asked[order].tolist(), known.tolist(), strict=True):
            found[place] = original
        fresh = np.flatnonzero(np.array(found, np.uint64) == 0)
        firsts = dict.fromkeys(range(len(fresh)))
        own = near_among(asked[fresh], asked[fresh])
        for place, first in zip(own.asked.tolist(), own.entry.tolist(), strict=True):
            if first < place and first in firsts and place in firsts:
                del firsts[place]
                found[fresh[place]] = int(asked[fresh[first], 0])
        index.add(asked[fresh[list(firsts)]])
        return found

    def flush(self) -> None:
        """Writes to disk what is known."""
        if self._index is not None:
            with suppress(StoreError):
                self._index.flush()
