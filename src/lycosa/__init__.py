"""Lycosa: a polite, fast web crawler that loses nothing, and the simulated web it is proved on.

import lycosa

async with lycosa.Crawl("https://example.org", into="my-crawl", pages=1000) as crawl:
    async for page in crawl:
        print(page.url, page.status, page.title)
"""

from lycosa.version import __version__

TYPE_CHECKING = False  # as in typing, which the command must not wait for
if TYPE_CHECKING:
    from typing import Any

    from lycosa.api.collection import Collection
    from lycosa.api.crawl import Crawl, CrawledPage

__all__ = ["Collection", "Crawl", "CrawledPage", "__version__"]


def __getattr__(name: str) -> "Any":
    """The library's face, imported when it is used: `lycosa --help` does not wait for it."""
    if name in ("Crawl", "CrawledPage"):
        from lycosa.api import crawl

        return getattr(crawl, name)
    if name == "Collection":
        from lycosa.api.collection import Collection

        return Collection
    raise AttributeError(f"module 'lycosa' has no attribute {name!r}")
