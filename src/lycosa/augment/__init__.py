"""For publishers: tables of links and of volatile information beside the documents of a site.

`site` writes them beside the files of a static site, `wsgi` and `asgi` serve them for a dynamic one. The formats are
those of `web.tol` and `web.tvi`, specified in docs/formats.md.
"""
