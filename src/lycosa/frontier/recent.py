"""A cache of recent URLs in front of the seen test: boilerplate links repeat on every page of a site.

Two generations of fixed size; when the young one is full it becomes the old one. A miss costs a look at the disk, a
hit is always true: the URLs themselves are kept, not hashes of them.
"""

GENERATION = 50_000  # URLs; both together are about 15 MB


class Recent:
    """Which URLs were seen lately."""

    def __init__(self, generation: int = GENERATION) -> None:
        self._generation = generation
        self._young: set[str] = set()
        self._old: set[str] = set()

    def is_new(self, url: str) -> bool:
        """Notes the URL; True if it was not among the recent ones."""
        if url in self._young:
            return False
        self._young.add(url)
        if len(self._young) >= self._generation:
            self._young, self._old = set(), self._young
        return url not in self._old
