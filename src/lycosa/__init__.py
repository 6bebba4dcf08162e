"""Lycosa: a polite, fast web crawler that loses nothing, and the simulated web it is proved on.

import lycosa

for page in lycosa.crawl("https://example.org", into="my-crawl", pages=1000):
    print(page.url, page.status, page.title)

with lycosa.open("my-crawl") as collection:
    print(collection.get("https://example.org").text)

`lycosa.Crawl` does the same in an event loop: `async with lycosa.Crawl(…) as crawl: async for page in crawl: …`.
"""

import sys

from lycosa.version import __version__

TYPE_CHECKING = False  # as in typing, which the command must not wait for
if TYPE_CHECKING:
    from typing import Any

    from lycosa.api import Collection, Crawl, CrawledPage
    from lycosa.api import crawl_pages as crawl
    from lycosa.api import open_collection as open

_NAMES = {"Collection": "Collection", "Crawl": "Crawl", "CrawledPage": "CrawledPage", "open": "open_collection"}
__all__ = ["Collection", "Crawl", "CrawledPage", "__version__"]
if TYPE_CHECKING:  # `import *` leaves the built-in `open` alone
    __all__ += ["crawl", "open"]


def __getattr__(name: str) -> "Any":
    if name == "crawl":
        from importlib import import_module  # lazy: only this needs it

        return import_module("lycosa.crawl")
    if name not in _NAMES:
        raise AttributeError(f"module 'lycosa' has no attribute {name!r}")
    from lycosa import api  # lazy: `lycosa --help` does not wait for what a crawl or a collection needs

    return getattr(api, _NAMES[name])


class _CrawlRoom(type(sys)):  # type: ignore[misc]
    """The package `lycosa.crawl`, which can be called: the room of the loop has the name of what a user calls."""

    def __call__(self, *urls: "Any", **named: "Any") -> "Any":
        """Crawls: `for page in lycosa.crawl("https://example.org", into="my-crawl", pages=100): …`."""
        from lycosa.api import crawl_pages  # lazy: as above

        return crawl_pages(*urls, **named)


class _Package(type(sys)):  # type: ignore[misc]
    """This package: the import system sets `crawl` when the room is imported, by whomever."""

    def __setattr__(self, name: str, value: "Any") -> None:
        if name == "crawl":
            value.__class__ = _CrawlRoom
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
