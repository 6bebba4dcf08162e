"""A shell on one page: fetch it, or open it from a collection, and try selectors, texts, links and scope on it.

`PageShell` is what `lycosa shell` puts into its prompt. Pages are fetched by an ordinary crawl of one URL into a folder
that is thrown away with the shell, so the address guard, robots.txt, delays and limits hold, also between two fetches;
a collection that is looked into is never written.
"""

import shutil
import tempfile
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from lycosa.api.collection import Collection
from lycosa.api.crawl import Crawl
from lycosa.api.script import CrawledPages
from lycosa.crawl import Recrawl, filters_of
from lycosa.errors import NoPage, SettingsError
from lycosa.frontier import unpack_host
from lycosa.inspect import StoredPage, explain_url, open_to_read
from lycosa.records import Family, FieldRule
from lycosa.settings import CrawlSettings, InvalidValue, read_field
from lycosa.store import is_collection
from lycosa.web import (
    FieldExtractor,
    FieldValue,
    LinkRules,
    Links,
    analyse_page,
    base_url,
    follow_links,
    host_key_of,
    parse_url,
    url_key,
)

# What a fetch of one URL leaves alone, whatever the settings say.
ONE_PAGE: dict[str, Any] = {
    "archive": "full",
    "depth": 0,
    "eager": False,
    "images": False,
    "index": False,
    "keep_fresh": False,
    "mine": "off",
    "pipelines": (),
    "requisites": False,
    "sitemaps": False,
    "store": "",
    "tables": "off",
    "workers": 0,
    "pages": None,
    "bytes": None,
    "time_s": None,
    "webhook": (),
    "atom": "",
    "apprise": "",
}
MOST_REDIRECTS = 5


class ShellLink(NamedTuple):
    """A link of a page: where it leads, its words, and what a crawl makes of it."""

    url: str
    text: str
    verdict: str

    def __str__(self) -> str:
        return f"{self.verdict:<30} {self.url}  {self.text}".rstrip()


class PageShell:
    """The shell. `page` is the page it is about, None until one is fetched or opened; `settings` decide on scope and
    politeness; `collection` is the one it was opened on, if any."""

    def __init__(self, settings: CrawlSettings, folder: Path | None = None) -> None:
        self.settings, self.page = settings, None if folder is None else self._first_page(settings, folder)
        self.collection = Collection(folder) if folder is not None else None
        self._temporary = Path(tempfile.mkdtemp(prefix="lycosa-shell-"))
        self._fetched: Collection | None = None
        self._links: tuple[StoredPage, str, Links] | None = None

    @staticmethod
    def _first_page(settings: CrawlSettings, folder: Path) -> StoredPage | None:
        """The page of the first seed that has one."""
        collection = Collection(folder)
        for seed in settings.seeds:
            if seed in collection:
                return collection.get(seed)
        return next(iter(collection), None)

    def __repr__(self) -> str:
        return f"<PageShell {self.page!r}>"

    def close(self) -> None:
        """Throws away what was fetched."""
        for collection in (self._fetched, self.collection):
            if collection is not None:
                collection.close()
        shutil.rmtree(self._temporary, ignore_errors=True)

    # pages

    def fetch(self, url: str) -> StoredPage | None:
        """Fetches a URL as a crawl does (robots.txt, guard, delay), and makes it the page; None if there is none, and
        `why(url)` says for what reason."""
        base = self.page.url if self.page is not None else None
        target = parse_url(url, base) or (parse_url(f"https://{url}") if "://" not in url else None)
        if target is None:
            raise SettingsError(f"{url!r} is no http or https URL")
        into = self._temporary / "fetched"
        kept = self.settings.replace(**ONE_PAGE, seeds=())
        again = is_collection(into) and self._is_known(target.href)
        order = Recrawl(urls=(target.href,)) if again else None
        # The user has typed the URL, so its host may be a private address, as that of a seed.
        CrawledPages(Crawl(target.href, into=into, settings=kept, recrawl=order)).run()
        if self._fetched is not None:
            self._fetched.close()
        self._fetched = Collection(into)
        found = self._stored(target.href)
        if found is not None:
            self.page = found
        return found

    def _is_known(self, href: str) -> bool:
        with open_to_read(self._temporary / "fetched") as collection:
            return collection.state.get(Family.URL, url_key(href)) is not None

    def _stored(self, href: str) -> StoredPage | None:
        """A fetched page, or the one that redirects from it lead to."""
        assert self._fetched is not None
        try:
            found = self._fetched.get(href)
            for _ in range(MOST_REDIRECTS):
                if not found.is_redirect:
                    break
                found = self._fetched.get(found.leads_to)
        except NoPage:
            return None
        return found

    def open(self, url: str) -> StoredPage:
        """Opens a stored page of the collection, and makes it the page."""
        if self.collection is None:
            raise SettingsError("there is no collection to open a page of: lycosa shell DIR; fetch(url) fetches one")
        self.page = self.collection.get(url)
        return self.page

    @property
    def _current(self) -> StoredPage:
        if self.page is None:
            raise SettingsError("there is no page yet: fetch('https://example.org/') fetches one")
        return self.page

    # what is in it

    def css(self, selector: str) -> list[str]:
        """The texts of all elements that match a CSS selector, or an attribute of each: `css('a@href')`."""
        rule = _rule(f"found={selector}")
        found = self._extract([FieldRule("found", rule.selector, rule.attribute, is_list=True)])["found"]
        return found if isinstance(found, list) else []

    def fields(self, **selectors: str) -> dict[str, FieldValue]:
        """The fields that the settings name, or those named here: `fields(price='.price', tags='.tag*')`."""
        entries = [f"{name}={selector}" for name, selector in selectors.items()] or self.settings.fields
        if not entries:
            raise SettingsError("no field is named: fields(price='.price'), or --field price=.price")
        return self._extract([_rule(entry) for entry in entries])

    def _extract(self, rules: Sequence[FieldRule]) -> dict[str, FieldValue]:
        page = self._current
        return FieldExtractor(rules).extract(page.body, url=page.url, content_type=page.headers.get("content-type"))

    def text(self) -> str:
        """What is for reading in the page."""
        return self._current.text

    def markdown(self) -> str:
        """The same as Markdown."""
        return self._current.markdown

    def links(self, only: str = "") -> list[ShellLink]:
        """The links of the page with what a crawl makes of each; those whose URL contains `only`."""
        base, links = self._read_links()
        found = dict[str, ShellLink]()
        for href, anchor in zip(links.hrefs, links.anchors, strict=True):
            url = parse_url(href, base)
            if url is not None and only in url.href and url.href not in found:
                found[url.href] = ShellLink(url.href, anchor, self.follow(url.href))
        return list(found.values())

    def _read_links(self) -> tuple[str, Links]:
        """What the page's links are joined with, and the links as written; read once for each page."""
        page = self._current
        if self._links is None or self._links[0] is not page:
            said = page.headers.get("content-type")
            read = analyse_page(page.body, url=page.url, content_type=said)
            self._links = page, base_url(page.url, read.base_href), read.links
        return self._links[1:]

    # what a crawl would do

    def follow(self, url: str) -> str:
        """Would a crawl from this page follow a URL? `followed`, or the reason why not."""
        target = parse_url(url, self._read_links()[0] if self.page is not None else None)
        if target is None:
            return "no: not an http or https URL"
        seeds = [seed for text in self.settings.seeds if (seed := parse_url(text))]
        for url_filter in filters_of(self.settings, seeds):
            if (reason := url_filter.reason(target)) is not None:
                return f"no: {reason.replace('-', ' ')}"
        if self.page is not None and (said := self._said_by_page(target.href)):
            return f"no: {said}"
        if self.settings.robots and not self._robots_allow(target.href, target.path):
            return "no: robots.txt forbids it"
        return "followed"

    def _said_by_page(self, href: str) -> str:
        """Why the page's own links to a URL are not followed; nothing if one is, or if there is none."""
        s, (base, links) = self.settings, self._read_links()
        rules = LinkRules(agent=s.agent, images=s.images, obeys_nofollow=s.nofollow)
        if href in follow_links(links, base, rules).joined.values():
            return ""
        rels = [
            rel.lower()
            for written, rel in zip(links.hrefs, links.rels, strict=True)
            if (url := parse_url(written, base)) and url.href == href
        ]
        if not rels:
            return ""
        return "nofollow" if any("nofollow" in rel for rel in rels) else "a link that is not for readers"

    def _robots_allow(self, href: str, path: str) -> bool:
        """What the robots.txt of a host says, if it was read."""
        key = url_key(href)
        for folder in (self.collection.path if self.collection else None, self._temporary / "fetched"):
            if folder is not None and is_collection(folder):
                with open_to_read(folder) as collection:
                    packed = collection.state.get(Family.HOST, host_key_of(key))
                row = unpack_host(packed) if packed else None
                if row is not None and row.robots is not None:
                    return row.robots.allows(path)
        return True

    def why(self, url: str = "") -> str:
        """All that the collection, or what was fetched here, knows of a URL; without one, of the page."""
        folder = self.collection.path if self.collection is not None else self._temporary / "fetched"
        if not is_collection(folder):
            return "nothing was fetched yet"
        here = self.page.url if self.page is not None else None
        asked = parse_url(url or self._current.url, here)
        with open_to_read(folder) as collection:
            first, *others = explain_url(collection, asked.href if asked else url)
        return "\n".join([first, *(f"  {line}" for line in others)])

    def view(self) -> Path:
        """Writes the page to a file, shows it in a browser if there is one, and returns the file."""
        page = self._current
        path = self._temporary / ("page.html" if "html" in page.content_type else "page.txt")
        base = f'<base href="{page.url}">'.encode() if path.suffix == ".html" else b""
        path.write_bytes(base + page.body)
        webbrowser.open(path.as_uri())
        return path


def _rule(entry: str) -> FieldRule:
    try:
        return read_field(entry)
    except InvalidValue as invalid:
        raise SettingsError(f"{entry.partition('=')[2]!r}: {invalid.phrase}") from invalid
