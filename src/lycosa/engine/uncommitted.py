"""What was put into the search index since its last commit: a reader of it does not see that yet.

Pages and copies by FileNum, each with its cluster, and which FileNums the reader's word no longer holds for. Kept by
the indexer between two commits, and so bounded by their distance.
"""

from collections.abc import Iterable, Mapping, Sequence


class Uncommitted:
    """Every number that was touched is in it; it is a page, a copy, or gone."""

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

    def page(self, number: int, cluster: int) -> None:
        self.gone([number])
        self.pages[number] = cluster
        self._clusters.setdefault(cluster, set()).add(number)

    def copy(self, number: int, cluster: int) -> None:
        self.gone([number])
        self.copies[number] = cluster
        self._clusters.setdefault(cluster, set()).add(number)

    def gone(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            self._touched.add(number)
            for held in (self.pages, self.copies):
                if number in held:
                    self._clusters[held.pop(number)].discard(number)

    def of(self, cluster: int) -> list[int]:
        """The pages and copies of a cluster."""
        return sorted(self._clusters.get(cluster, ()))

    def over(self, committed: Mapping[int, int], numbers: Sequence[int], newer: Mapping[int, int]) -> dict[int, int]:
        """Number → cluster as it is now: what is committed, unless it was touched, and `newer`."""
        now = {number: cluster for number, cluster in committed.items() if number not in self._touched}
        return now | {number: newer[number] for number in numbers if number in newer}

    def clear(self) -> None:
        """All of it is committed."""
        self.pages.clear()
        self.copies.clear()
        self._touched.clear()
        self._clusters.clear()
