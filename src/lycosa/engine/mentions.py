"""Pages that name a URL in an element that is not followed: why a stylesheet, say, was never asked for.

Links that are not followed are not kept, so stored pages are read again, the first some of the host. For `lycosa why`.
"""

from collections.abc import Iterator

from lycosa.engine.reading import FOLLOWED, base_of
from lycosa.engine.stored_pages import StoredPage, StoredPages
from lycosa.errors import LycosaError
from lycosa.store import Collection
from lycosa.web.links import LinkKind
from lycosa.web.page import links_of
from lycosa.web.url import Url, parse

MOST_PAGES = 300  # looked into: some tenths of a second


def mention(collection: Collection, url: Url, host_key: bytes) -> str:
    """Which page names the URL in an element that is not followed, and in which; nothing if none of them does."""
    name = url.path.rpartition("/")[2]
    for page in StoredPages(collection).all(host_key, most=MOST_PAGES):
        for element in _elements(page, url.href, name):
            return f"{page.url} names it in {element}"
    return ""


def _elements(page: StoredPage, href: str, name: str) -> Iterator[str]:
    try:
        found = links_of(page.body, url=page.url, content_type=page.fields.get("content-type"))
    except LycosaError:  # damaged, or not kept; the others may say it
        return
    if found is None:
        return
    base, links = base_of(page.url, found.base_href), found.links
    for written, kind, rel in zip(links.hrefs, links.kinds, links.rels, strict=True):
        target = parse(written, base) if name in written else None
        if target is None or target.href != href:
            continue
        if kind == LinkKind.IMG:
            yield "<img>, and images are asked for with --images only"
        elif kind not in FOLLOWED or "nofollow" in rel.lower().split():
            yield f"<{LinkKind(kind).name.lower()}{f' rel={rel}' if rel else ''}>, which is not followed"
