"""What a Python program imports: `Crawl` and `Collection`; and how a crawl is put together from parts and features.

`assemble_engine` makes the engine of a crawl with everything that its settings ask for; a cluster's agents use it, too.
This is the only room that knows who stands behind the seams of `crawl`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lycosa.api.assembly import assemble_engine, freeze_garbage_collector, return_large_blocks, usual_parts
    from lycosa.api.collection import Collection
    from lycosa.api.crawl import Crawl, CrawledPage

# Name → module. Each is imported when it is first used: who reads a collection does not wait for what a crawl needs.
_MODULES = {
    "Collection": "collection",
    "Crawl": "crawl",
    "CrawledPage": "crawl",
    "assemble_engine": "assembly",
    "freeze_garbage_collector": "assembly",
    "return_large_blocks": "assembly",
    "usual_parts": "assembly",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'lycosa.api' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"lycosa.api.{_MODULES[name]}"), name)
    return value


__all__ = [
    "Collection",
    "Crawl",
    "CrawledPage",
    "assemble_engine",
    "freeze_garbage_collector",
    "return_large_blocks",
    "usual_parts",
]
