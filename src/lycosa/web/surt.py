"""SURT keys: the form of a URL by which web archives sort and find captures, `org,example)/path?query`.

The same as pywb, OpenWayback and Common Crawl make: the labels of the host backwards without `www`, path and query in
lower case, escaped once, query arguments sorted, well-known session ids and a slash at the end taken out. Two URLs that
differ in these alone have one key. Pure; takes normalised URLs. Used by the exports.
"""

import re
from functools import lru_cache
from urllib.parse import quote_from_bytes, unquote_to_bytes

from lycosa.web.url import DEFAULT_PORTS, split_url

_WWW = re.compile(r"www\d*\.")
_SAFE = "!\"$&'()*+,-./:;<=>?@[\\]^_`{|}~"
_ASP_IN_PATH = (
    re.compile(r"(.*/)\((?:[a-z]\([0-9a-z]{24}\))+\)/([^?]+\.aspx.*)"),
    re.compile(r"(.*/)\([0-9a-z]{24}\)/([^?]+\.aspx.*)"),
)
# Session ids of servers, by a word without which a query has none of them.
_IN_QUERY = (
    ("jsessionid=", re.compile(r"(.*)jsessionid=[0-9a-z]{32}(?:&(.*))?")),
    ("phpsessid=", re.compile(r"(.*)phpsessid=[0-9a-z]{32}(?:&(.*))?")),
    ("sid=", re.compile(r"(.*)sid=[0-9a-z]{32}(?:&(.*))?")),
    ("aspsessionid", re.compile(r"(.*)aspsessionid[a-z]{8}=[a-z]{24}(?:&(.*))?")),
    ("cftoken=", re.compile(r"(.*)cfid=[^&]+&cftoken=[^&]+(?:&(.*))?")),
)


def surt_key(href: str) -> str:
    """The key of a normalised URL."""
    url = split_url(href)
    path, _, query = url.path.partition("?")
    start = _site(url.scheme, url.host, url.port) + _path(path)
    query = _query(query)
    return f"{start}?{query}" if query else start


@lru_cache(4_096)
def _site(scheme: str, host: str, port: int) -> str:
    name = host.strip("[]").replace("..", ".").strip(".")
    labels = _WWW.sub("", name, count=1) if _WWW.match(name) else name
    shown = "" if port == DEFAULT_PORTS[scheme] else f":{port}"
    return f"{','.join(reversed(labels.split('.')))}{shown})"


def _path(path: str) -> str:
    if "%" in path or "//" in path:
        path = _escaped(_without_dots(_unescaped(path)))
    path = path.lower()
    if ".aspx" in path and "(" in path:
        for pattern in _ASP_IN_PATH:
            if found := pattern.fullmatch(path):
                path = found[1] + found[2]
    return path[:-1] if len(path) > 1 and path.endswith("/") else path


def _query(query: str) -> str:
    if "%" in query:
        query = _escaped(_unescaped(query))
    query = query.lower()
    for word, pattern in _IN_QUERY:
        if word in query and (found := pattern.fullmatch(query)):
            query = found[1] + (found[2] or "")
    if "&" not in query:
        return query
    return "&".join("=".join(pair) for pair in sorted(tuple(each.split("=", 1)) for each in query.split("&")))


def _unescaped(text: str) -> bytes:
    """The text with its escapes undone, also those that undoing brings to light."""
    raw = unquote_to_bytes(text)
    while b"%" in raw and (further := unquote_to_bytes(raw)) != raw:
        raw = further
    return raw


def _escaped(raw: bytes) -> str:
    return quote_from_bytes(raw, safe=_SAFE)


def _without_dots(path: bytes) -> bytes:
    """The path without `.`, `..` and empty segments."""
    kept: list[bytes] = []
    for segment in path.split(b"/")[1:]:
        if segment == b"..":
            kept = kept[:-1] if kept else [segment]
        elif segment != b".":
            kept.append(segment)
    return b"/" + b"".join(segment + b"/" for segment in kept[:-1] if segment) + b"".join(kept[-1:])
