"""A cache of recent URLs in front of the seen test: boilerplate links repeat on every page of a site.

Two generations of fixed size; when the young one is full it becomes the old one. A miss costs a look at the disk, a
hit is always true: the URLs themselves are kept, not hashes of them.
"""

from collections.abc import Iterable

GENERATION = 50_000  # URLs; both together are about 15 MB


class RecentUrls:
    """Which URLs were seen lately."""

    def __init__(self, generation: int = GENERATION) -> None:
        self._generation = generation
        self._young: set[str] = set()
        self._old: set[str] = set()

    def is_new(self, url: str) -> bool:
        """Notes the URL; True if it was not among the recent ones."""
        return bool(self.unseen((url,)))

    def unseen(self, urls: Iterable[str]) -> list[str]:
        """Notes the URLs, each given once; returns those that were not among the recent ones."""
        young, old = self._young, self._old
        new = [url for url in urls if url not in young]
        young.update(new)
        if len(young) >= self._generation:
            self._young, self._old = set(), young
        return [url for url in new if url not in old]
