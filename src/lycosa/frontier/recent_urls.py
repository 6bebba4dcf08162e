"""A cache of recent URLs in front of the seen test: boilerplate links repeat on every page of a site.

Whoever names many URLs asks it first (the links of a page, links out of scope, what goes to other shards, guesses), and
the state is read for the others only.
"""

from collections.abc import Callable
from typing import Any

from lycosa.web import native

RECENT_URLS = 50_000  # in a generation; both together are about 15 MB, or 2 MB of hashes


class RecentUrls:
    """Two generations of URLs, of fixed size; when the young one is full it becomes the old one. A miss costs a look at
    the disk, a hit is always true: the URLs themselves are kept. The native kernel keeps 64-bit hashes of them with a
    random seed.
    """

    def __init__(self, generation: int = RECENT_URLS) -> None:
        kernel = native()
        #: Note URLs, a list or `FollowedLinks.urls`; return those that were not among the recent ones, each once.
        self.unseen: Callable[[Any], list[str]] = (
            _RecentStrings(generation).unseen if kernel is None else kernel.RecentUrls(generation).unseen
        )

    def is_new(self, url: str) -> bool:
        """Note a URL; return whether it was not among the recent ones."""
        return bool(self.unseen([url]))


class _RecentStrings:
    """The twin of the kernel's class."""

    def __init__(self, generation: int) -> None:
        self._generation = generation
        self._young: set[str] = set()
        self._old: set[str] = set()

    def unseen(self, urls: list[str]) -> list[str]:
        new = [url for url in dict.fromkeys(urls) if url not in self._young]
        found = [url for url in new if url not in self._old]
        self._young.update(new)
        if len(self._young) >= self._generation:
            self._young, self._old = set(), self._young
        return found
