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

    from lycosa.api import Collection, Crawl, CrawledPage

__all__ = ["Collection", "Crawl", "CrawledPage", "__version__"]


def __getattr__(name: str) -> "Any":
    if name not in __all__:
        raise AttributeError(f"module 'lycosa' has no attribute {name!r}")
    from lycosa import api  # lazy: `lycosa --help` does not wait for what a crawl or a collection needs

    return getattr(api, name)
