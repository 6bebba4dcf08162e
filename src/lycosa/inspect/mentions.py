"""Pages that name a URL in an element that is not followed: why a stylesheet, say, was never asked for.

Links that are not followed are not kept, so stored pages are read again, the first some of the host. For `lycosa why`.
"""

from collections.abc import Iterator

from lycosa.crawl.reading import FOLLOWED
from lycosa.errors import LycosaError
from lycosa.inspect.pages import StoredPage, StoredPages
from lycosa.store import CollectionStore
from lycosa.web import LinkKind, Url, analyse_page, base_url, parse_url

MENTION_PAGES_MOST = 300  # looked into: some tenths of a second


def unfollowed_mention(collection: CollectionStore, url: Url, host_key: bytes) -> str:
    """Which page names the URL in an element that is not followed, and in which; nothing if none of them does."""
    name = url.path.rpartition("/")[2]
    for page in StoredPages(collection).all(host_key, most=MENTION_PAGES_MOST):
        for element in _elements(page, url.href, name):
            return f"{page.url} names it in {element}"
    return ""


def _elements(page: StoredPage, href: str, name: str) -> Iterator[str]:
    try:
        said = page.fields.get("content-type")
        found = analyse_page(page.body, url=page.url, content_type=said, links_only=True)
    except LycosaError:  # damaged, or not kept; the others may say it
        return
    base, links = base_url(page.url, found.base_href), found.links
    for written, kind, rel in zip(links.hrefs, links.kinds, links.rels, strict=True):
        target = parse_url(written, base) if name in written else None
        if target is None or target.href != href:
            continue
        if kind == LinkKind.IMG:
            yield "<img>, and images are asked for with --images only"
        elif kind not in FOLLOWED or "nofollow" in rel.lower().split():
            yield f"<{LinkKind(kind).name.lower()}{f' rel={rel}' if rel else ''}>, which is not followed"
