"""What a Python program imports: `Crawl` and `Collection`; and how a crawl is put together from parts and features.

`assemble_engine` makes the engine of a crawl with everything that its settings ask for; a cluster's agents use it, too.
This is the only room that knows who stands behind the seams of `crawl`.
"""

from typing import TYPE_CHECKING

from lycosa.doors import open_lazily

if TYPE_CHECKING:
    from lycosa.api.assembly import assemble_engine, parts_from_settings
    from lycosa.api.collection import ChangeList, Collection, open_collection
    from lycosa.api.crawl import Crawl, CrawledPage
    from lycosa.api.script import CrawledPages, crawl_pages
    from lycosa.api.shell import PageShell

# Name → module. Each is imported when it is first used: who reads a collection does not wait for what a crawl needs.
__getattr__ = open_lazily(
    __name__,
    {
        "assembly": "assemble_engine parts_from_settings",
        "collection": "ChangeList Collection open_collection",
        "crawl": "Crawl CrawledPage",
        "script": "CrawledPages crawl_pages",
        "shell": "PageShell",
    },
)


__all__ = [
    "ChangeList",
    "Collection",
    "Crawl",
    "CrawledPage",
    "CrawledPages",
    "PageShell",
    "assemble_engine",
    "crawl_pages",
    "open_collection",
    "parts_from_settings",
]
