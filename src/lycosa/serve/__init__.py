"""The live page: a collection in a browser and over an API, running, finished, watched or in shards.

It runs in a process of its own beside the crawl and reads what the crawl commits, as `lycosa status` does, so that a
viewer costs the crawl nothing but the disk. What a viewer changes goes through `crawl.steering`. The web framework
(FastAPI, an extra) is imported here only.
"""

from lycosa.serve.server import ServeOptions, serve_collection

__all__ = ["ServeOptions", "serve_collection"]
