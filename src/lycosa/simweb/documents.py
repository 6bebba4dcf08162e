"""What a host serves beside its pages: robots.txt, sitemaps, pictures and other files.

Pure: everything follows from the seed. Called by `simweb.web`; `simweb.truth_of` reads the same rules.
"""

import hashlib
import re
import struct
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import formatdate
from functools import lru_cache

import msgspec
from isal import igzip

from lycosa.simweb.layout import Layout, PagePlace
from lycosa.simweb.links import LinkLayout
from lycosa.simweb.pages import UNCHANGED, PageChanges, Pages, PageState
from lycosa.simweb.settings import ROBOTS_NUMBER
from lycosa.simweb.vocabulary import FOLDERS, Draws, unit

CRAWL_DELAY_S = 2.0
SLOW_ROBOTS_S = 5.0
ROBOTS_PURPOSE = 30
RULES_CACHE = 1024  # hosts
UNWELCOME = "badbot"  # the one agent that every host with rules shuts out


class HostRobots(msgspec.Struct, frozen=True):
    """One host's robots.txt: how it answers, and what it says."""

    status: int = 200
    slow: bool = False
    rules: tuple[tuple[bool, str], ...] = ()
    crawl_delay_s: float = 0.0
    sitemap: str = ""

    def text(self) -> str:
        lines = ["# a simulated host", "User-agent: *"]
        lines += [f"{'Allow' if allow else 'Disallow'}: {pattern}" for allow, pattern in self.rules] or ["Disallow:"]
        if self.crawl_delay_s:
            lines.append(f"Crawl-delay: {self.crawl_delay_s:g}")
        if self.rules:
            lines += ["", f"User-agent: {UNWELCOME}", "Disallow: /"]
        if self.sitemap:
            lines += ["", f"Sitemap: {self.sitemap}"]
        return "\n".join(lines) + "\n"

    def allows(self, path: str, agent: str = "") -> bool:
        """May `agent` ask for `path`? The longest pattern that matches decides, Allow on a tie."""
        if self.status >= 500:
            return path == "/robots.txt"
        if path == "/robots.txt":
            return True
        if self.rules and UNWELCOME in agent.lower():
            return False
        matching = [(len(pattern), allow) for allow, pattern in self.rules if _matcher(pattern).match(path)]
        return max(matching)[1] if matching else True


@lru_cache(4096)
def _matcher(pattern: str) -> "re.Pattern[str]":
    end = r"\Z" if pattern.endswith("$") else ""
    return re.compile(".*".join(map(re.escape, pattern.removesuffix("$").split("*"))) + end, re.DOTALL)


class RobotsFiles:
    """The robots.txt of every host of one web."""

    def __init__(self, layout: Layout, linker: LinkLayout) -> None:
        self._layout, self._linker = layout, linker
        self._shares = layout.settings.robots_shares
        self.of = lru_cache(RULES_CACHE)(self._of)

    def _of(self, host: int) -> HostRobots:
        has = {name: self._has(host, ROBOTS_NUMBER[name], share) for name, share in self._shares.items()}
        if has.get("error"):
            return HostRobots(status=500)
        sitemap = f"{self._linker.origin(host)}/sitemap.xml" if has.get("sitemap") else ""
        if has.get("missing"):
            return HostRobots(status=404)
        return HostRobots(
            slow=bool(has.get("slow")),
            rules=self._rules(host) if has.get("rules") else (),
            crawl_delay_s=CRAWL_DELAY_S if has.get("delay") else 0.0,
            sitemap=sitemap,
        )

    def _has(self, host: int, number: int, share: float) -> bool:
        return unit(self._layout.draws.mix(host, number, ROBOTS_PURPOSE)) < share

    def _rules(self, host: int) -> tuple[tuple[bool, str], ...]:
        """Folders that are closed, an article in one of them that is open, and a folder name closed everywhere."""
        layout = self._layout
        x = layout.draws.mix(host, 99, ROBOTS_PURPOSE)
        rules = [(False, "/*.pdf$"), (False, "/search?")]
        folders = layout.folder_count(host)
        if folders > 1:
            closed = layout.folder(host, 1 + x % (folders - 1))
            rules.append((False, closed.path))
            if closed.articles:
                rules.append((True, closed.path + closed.name(1 + (x >> 20) % closed.articles)))
            rules.append((False, f"/*/{FOLDERS[(x >> 32) % len(FOLDERS)]}/"))
        return tuple(rules)


EPOCH_S = datetime(2026, 1, 1, tzinfo=UTC).timestamp()  # the wall clock of the simulated web at time 0
OLDEST_DAYS = 1000  # pages were made up to this long before time 0
FOLDERS_PER_SITEMAP = 31  # at most 992 pages
HONEST_LASTMOD = 0.67
FEED_ITEMS = 20
IMAGE_SIDE = 64
LASTMOD_PURPOSE = 40
_SITEMAP = re.compile(r"sitemap-(0|[1-9][0-9]{0,8})\.xml\.gz\Z")
_IMAGE = re.compile(r"([a-z]+)-(0|[1-9][0-9]{0,2})\.png\Z")


@lru_cache(4096)
def http_date(second: int) -> str:
    return formatdate(second, usegmt=True)


class Documents:
    """The documents beside the pages of one web."""

    def __init__(self, draws: Draws, layout: Layout, linker: LinkLayout, pages: Pages, changes: PageChanges) -> None:
        self._draws, self._layout, self._linker = draws, layout, linker
        self._pages, self._changes = pages, changes

    def state(self, place: PagePlace, time_s: float) -> PageState:
        """The page at a time. Front pages never disappear, so that every host has a way in."""
        if time_s <= 0:
            return UNCHANGED
        return self._changes.state(
            self._pages.key(place),
            time_s,
            has_volatile=self._pages.has_volatile(place),
            can_go=bool(place.folder or place.page),
        )

    def modified_s(self, place: PagePlace, state: PageState) -> int:
        """When the page last changed, as wall-clock seconds."""
        if state.changed_s:
            return int(EPOCH_S + state.changed_s)
        return int(EPOCH_S) - 86_400 * (self._pages.key(place) % OLDEST_DAYS)

    def _served_s(self, place: PagePlace, time_s: float) -> int:
        """When the document served at `place` last changed: for a mirror, its source's."""
        source = self._pages.source(place)
        return self.modified_s(source, self.state(source, time_s))

    # sitemaps and feeds

    def sitemap(self, host: int, name: str, time_s: float) -> bytes | None:
        """`sitemap.xml`, or its part `sitemap-3.xml.gz` on hosts that need several."""
        files = -(-self._layout.folder_count(host) // FOLDERS_PER_SITEMAP)
        if name == "sitemap.xml":
            return self._urlset(host, 0, time_s) if files == 1 else self._index(host, files)
        part = _SITEMAP.match(name)
        if files == 1 or part is None or int(part[1]) >= files:
            return None
        return igzip.compress(self._urlset(host, int(part[1]), time_s), compresslevel=1, mtime=0)

    def _index(self, host: int, files: int) -> bytes:
        origin = self._linker.origin(host)
        entries = "".join(f"<sitemap><loc>{origin}/sitemap-{i}.xml.gz</loc></sitemap>\n" for i in range(files))
        return (
            '<?xml version="1.0" encoding="UTF-8"?>\n'
            f'<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{entries}</sitemapindex>\n'
        ).encode()

    def _urlset(self, host: int, number: int, time_s: float) -> bytes:
        is_honest = unit(self._draws.mix(host, 0, LASTMOD_PURPOSE)) < HONEST_LASTMOD
        origin, entries = self._linker.origin(host), []
        for place in self.linked_pages(host, number):
            modified = self._served_s(place, time_s)
            stamp = datetime.fromtimestamp(modified if is_honest else EPOCH_S + time_s, UTC)
            lastmod = stamp.strftime("%Y-%m-%dT%H:%M:%SZ")
            entries.append(f"<url><loc>{origin}{self._layout.path_of(place)}</loc><lastmod>{lastmod}</lastmod></url>\n")
        return (
            '<?xml version="1.0" encoding="UTF-8"?>\n'
            f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{"".join(entries)}</urlset>\n'
        ).encode()

    def linked_pages(self, host: int, number: int) -> Iterator[PagePlace]:
        """The pages in sitemap file `number`: those that somebody links to."""
        first = number * FOLDERS_PER_SITEMAP
        for index in range(first, min(first + FOLDERS_PER_SITEMAP, self._layout.folder_count(host))):
            folder = self._layout.folder(host, index)
            for page in range(1 + folder.articles + folder.series):
                place = PagePlace(host, index, page)
                if self._layout.is_linked(place):
                    yield place

    def feed(self, host: int, time_s: float) -> bytes:
        """RSS with the first articles of the host."""
        folder, origin = self._layout.folder(host, 0), self._linker.origin(host)
        items = []
        for page in range(1, min(folder.articles, FEED_ITEMS) + 1):
            place = PagePlace(host, 0, page)
            date = http_date(self._served_s(place, time_s))
            link = origin + self._layout.path_of(place)
            title = self._pages.title(place)
            items.append(f"<item><title>{title}</title><link>{link}</link><pubDate>{date}</pubDate></item>\n")
        return (
            f'<?xml version="1.0" encoding="UTF-8"?>\n<rss version="2.0"><channel><title>h{host}</title>'
            f"<link>{origin}/</link><description>What is new</description>\n{''.join(items)}</channel></rss>\n"
        ).encode()

    # images

    def image_place(self, host: int, path: str) -> PagePlace | None:
        """The page that an image path belongs to."""
        head, _, name = path.rpartition("/")
        place = self._layout.locate(host, head + "/")
        image = _IMAGE.match(name)
        if place is None or place.page or image is None:
            return None
        folder, number = self._layout.folder(host, place.folder), int(image[2])
        is_there = number <= folder.articles + folder.series and image[1] == folder.words[folder.offset]
        return PagePlace(host, place.folder, number) if is_there else None

    def image(self, place: PagePlace, state: PageState) -> bytes:
        """A real PNG, 64 × 64 in two tones, another one after every change of kind image."""
        bits = self._draws.words(b"image %d %d" % (self._pages.key(place), state.image), IMAGE_SIDE // 8)
        blocks = [struct.pack(">2I", word, word ^ 0xFFFF0000) for word in bits]
        rows = b"".join(b"\0" + blocks[row // 8] for row in range(IMAGE_SIDE))
        header = struct.pack(">IIBBBBB", IMAGE_SIDE, IMAGE_SIDE, 1, 0, 0, 0, 0)
        chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows, 1)), (b"IEND", b""))
        return b"\x89PNG\r\n\x1a\n" + b"".join(
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
            for kind, data in chunks
        )

    # tables

    def table_place(self, host: int, path: str) -> PagePlace | None:
        """The page that a `.tol` or `.tvi` path stands beside: same name, other extension, `index` for a folder."""
        stem = path.rpartition(".")[0]
        place = self._layout.locate(host, stem.removesuffix("index")) if stem.endswith("/index") else None
        return place or self._layout.locate(host, stem + ".html")

    def table_of_links(self, place: PagePlace, host: int, state: PageState, name: str) -> bytes:
        """The links of the document that `host` serves as `name`, as docs/formats.md has it."""
        own = f"{self._linker.origin(host)}/"
        rows: dict[tuple[str, str], str] = {}
        for href, anchor, rel, element in self._pages.every_link(place):
            is_external = "://" in href and not href.startswith(own)
            row = f"{'external' if is_external else 'internal'}\t{href}\t{anchor}\t{rel}\t{element}"
            rows.setdefault((href, element), row.rstrip("\t"))
        digest = hashlib.sha256(self._pages.html(place, state)).hexdigest()
        head = f"# tol 1\n# of: {name}\n# document: sha-256={digest}\n"
        head += "# parts: 1\n" if self._pages.has_marked_volatile(place) else ""
        return (head + "".join(f"{row}\n" for row in rows.values())).encode()

    def table_of_volatile(self, place: PagePlace, state: PageState, name: str) -> bytes | None:
        """The marked volatile part, as docs/formats.md has it; None where there is none."""
        if not self._pages.has_marked_volatile(place):
            return None
        document, text = self._pages.html(place, state), self._pages.volatile_text(place, state)
        frame = document.replace(f'<span data-vol="1">{text}</span>'.encode(), b'<span data-vol="1"></span>')
        digests = [hashlib.sha256(body).hexdigest() for body in (document, frame)]
        head = f"# tvi 1\n# of: {name}\n# document: sha-256={digests[0]}\n# frame: sha-256={digests[1]}\n"
        return f"{head}1\t{text}\n".encode()
