"""The queries of links on pages that are not in UTF-8: escaped in the encoding of the page, as browsers do.

By the URL standard what a query has beyond ASCII goes to the server in the encoding of the document that the link
stands in, and what that encoding lacks as a numeric reference; path and host are UTF-8 everywhere. So such a query is
escaped here, where the encoding is known, and whoever joins the link finds ASCII. Everything else stays as written.
Invariant: never raises, linear. Called by `html`, once a page.
"""

import re
import string

from lycosa.web.encodings import encode
from lycosa.web.links import Collector, Links

# Pages in these send their queries in UTF-8, as the parser of URLs does by itself.
_AS_UTF8 = frozenset(("UTF-8", "UTF-16LE", "UTF-16BE", "replacement"))
_BEYOND_ASCII = re.compile(r"[^\0-\x7f]+")
# Of other schemes the query is UTF-8, too.
_SCHEMES = frozenset(("http", "https", "ftp", "file"))
_IN_SCHEMES = frozenset(string.ascii_letters + string.digits + "+-.")
# What encodings of many bytes have below 0x80 and a query escapes.
_ESCAPED = frozenset((*range(0x21), *b"\"#'<>", *range(0x7F, 0x100)))
_WRITTEN = [f"%{byte:02X}" if byte in _ESCAPED else chr(byte) for byte in range(256)]


def in_encoding(links: Links, encoding: str) -> Links:
    """The links of a page in `encoding`, their queries escaped."""
    if encoding in _AS_UTF8 or "".join(links.hrefs).isascii():
        return links
    collector = Collector()  # two that were written differently may now be the same
    for link in links:
        collector.add(escaped(link.href, encoding), link.kind, anchor=link.anchor, rel=link.rel)
    return collector.links()


def escaped(href: str, encoding: str) -> str:
    """A href with its query in `encoding`, in ASCII."""
    stem, mark, fragment = href.partition("#")
    path, question, query = stem.partition("?")
    if query.isascii() or encoding in _AS_UTF8 or _has_other_scheme(path):
        return href
    query = _BEYOND_ASCII.sub(lambda run: "".join([_WRITTEN[byte] for byte in encode(run[0], encoding)]), query)
    return path + question + query + mark + fragment


def _has_other_scheme(path: str) -> bool:
    scheme, colon, _ = path.partition(":")
    is_scheme = colon and scheme[:1].isalpha() and _IN_SCHEMES.issuperset(scheme)
    return bool(is_scheme) and scheme.lower() not in _SCHEMES
