"""The links of a page: what it points to, how the href is written, and the words of its anchor.

The skeleton guarantees that every page somebody is meant to find can be found from the host's root: an index lists its
articles, its linked series members, its child folders (or, for a hidden child, that child's articles) and its
sub-sections. Around it stand navigation, neighbours and, up to a log-normal count, links drawn over host and web:
with 0.6 on its own topic, outwards with preference for hubs.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache

from lycosa.simweb.layout import FOLDER_PAGES, SECTION_BRANCHES, SECTION_FOLDERS, Layout, PageFolder, PagePlace
from lycosa.simweb.vocabulary import TOPIC_COUNT, lognormal_table

DEFAULT_PORTS = {"http": 80, "https": 443}
MEDIAN_LINKS = 62
LINKS_SIGMA = 0.5
MOST_LINKS = 600
OWN_TOPIC = 0.55  # of drawn links; with the neighbours 0.6 of all
EXTERNAL = 0.25
TO_FRONT_PAGE = 0.2  # of external links
REDIRECTED = 0.02  # of drawn links: written in a form that the server redirects
NEIGHBOURS = 4
NAVIGATION = 24  # links that every page of a host carries
WORDS_PER_LINK = 3
NAVIGATION_CACHE = 512  # hosts
NEAR_CACHE = 16_384  # (host, topic); links go to hubs, so most are found here
MOST_STEPS = 64  # hosts looked at for a topic

EXTERNAL_32, OWN_TOPIC_32 = int(EXTERNAL * 2**32), int(OWN_TOPIC * 2**32)
FRONT_PAGE_32, REDIRECTED_16 = int(TO_FRONT_PAGE * 2**32), int(REDIRECTED * 2**16)
_COUNTS = [min(MOST_LINKS, round(n)) for n in lognormal_table(MEDIAN_LINKS, LINKS_SIGMA)]


def link_count(chance: int) -> int:
    """How many links a page has, from ten bits of chance."""
    return _COUNTS[chance & 1023]


class LinkLayout:
    """Draws the links of pages from the layout. Pure but for bounded caches."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        port = layout.settings.port
        self._suffix = "" if port == DEFAULT_PORTS[layout.settings.scheme] else f":{port}"
        self._prefix = f"{layout.settings.scheme}://"
        self._near = lru_cache(NEAR_CACHE)(self._host_with_topic)
        self.navigation = lru_cache(NAVIGATION_CACHE)(self._navigation)

    def origin(self, host: int) -> str:
        """Scheme, host and port, without a slash at the end."""
        return f"{self._prefix}{self.layout.host_name(host)}{self._suffix}"

    def links(self, place: PagePlace, count: int, chances: Sequence[int]) -> list[tuple[str, str]]:
        """(href, anchor) of the main part: what must be there, then drawn links up to `count`, three chances each."""
        folder = self.layout.folder(place.host, place.folder)
        base = self.base(place)
        found = list(self._skeleton(folder)) if place.page == 0 else self._neighbours(folder, place.page, base)
        return found + self._drawn(folder, chances, max(4, count - len(found)), base)

    def base(self, place: PagePlace) -> str:
        """What stands before a path of the page's own host: nothing, or the origin on pages that are copied."""
        return self.origin(place.host) if is_mirror_source(place) else ""

    def breadcrumbs(self, place: PagePlace) -> list[tuple[str, str]]:
        """Relative links upwards; they lead somewhere from wherever a copy of the page stands."""
        folder = self.layout.folder(place.host, place.folder)
        here = "../" if place.page and folder.name(place.page)[-1] == "/" else "./"
        crumbs = [("/", "Home")]
        if place.page and not folder.hidden:
            crumbs.append((here, "Folder"))
        if place.folder:
            crumbs.append(("../../" if here == "../" else "../", "Up"))
        return crumbs

    def _navigation(self, host: int) -> list[tuple[str, str]]:
        """The same on every page of a host, as on most real sites: front page, sections, the front page's articles."""
        layout = self.layout
        sections = range(1, min(layout.section_count(host), SECTION_BRANCHES + 1))
        paths = [layout.folder(host, section * SECTION_FOLDERS).path for section in sections]
        front = layout.folder(host, 0)
        names = [front.article(page) for page in range(1, front.articles + 1)]
        found = [("/", "Home"), *((path, path.strip("/").title()) for path in paths)]
        return [*found, *((f"/{name}.html", name.replace("-", " ")) for name in names[: NAVIGATION - len(found)])]

    def _skeleton(self, folder: PageFolder) -> Iterator[tuple[str, str]]:
        """What a folder's index must list so that nothing linked is out of reach."""
        layout, host = self.layout, folder.host
        yield from self._contents(folder)
        for child in folder.children:
            other = layout.folder(host, child)
            if other.hidden:
                yield from self._contents(other)
            else:
                yield other.path, other.path.rsplit("/", 2)[-2].title()
        if folder.index % SECTION_FOLDERS == 0:
            first = folder.index // SECTION_FOLDERS * SECTION_BRANCHES + 1
            for section in range(first, min(first + SECTION_BRANCHES, layout.section_count(host))):
                path = layout.folder(host, section * SECTION_FOLDERS).path
                yield path, path.strip("/").title()

    def _contents(self, folder: PageFolder) -> Iterator[tuple[str, str]]:
        for page in range(1, folder.articles + 1):
            name = folder.article(page)
            yield f"{folder.path}{name}.html", name.replace("-", " ")
        for number in range(1, folder.series + 1):
            if self.layout.is_linked_member(folder, number):
                yield folder.path + folder.style.format(number), f"{folder.words[0]} {number}"

    def _neighbours(self, folder: PageFolder, page: int, base: str) -> list[tuple[str, str]]:
        """A few articles of the same folder, written as bare file names where that is possible."""
        if not folder.articles:
            return []
        if base or folder.name(page)[-1] == "/":
            base += folder.path
        names = {folder.article((page * 5 + step * 7) % folder.articles + 1): 0 for step in range(NEIGHBOURS)}
        return [(f"{base}{name}.html", name.replace("-", " ")) for name in names]

    def _drawn(self, folder: PageFolder, chances: Sequence[int], count: int, base: str) -> list[tuple[str, str]]:
        """The drawn links: three words of chance each. This loop is the dearest part of a page."""
        layout, host, get_folder = self.layout, folder.host, self.layout.folder
        own_section, own_count = folder.index // SECTION_FOLDERS, layout.section_count(host)
        own_shift = (folder.topic - layout.first_topic[host]) % TOPIC_COUNT
        sizes, hosts = layout.sizes, len(layout.sizes)
        found = []
        words = iter(chances[: count * WORDS_PER_LINK])
        for where, what, which in zip(words, words, words, strict=True):
            is_on_topic = what < OWN_TOPIC_32
            if hosts > 1 and (where < EXTERNAL_32 or (own_count == 1 and not is_on_topic)):
                target = int(hosts ** (where % EXTERNAL_32 / EXTERNAL_32)) - 1  # log-uniform: low numbers are hubs
                if which < FRONT_PAGE_32 and not is_on_topic:
                    found.append((f"{self.origin(target)}/", f"h{target} home"))
                    continue
                target, section = self._outside(target, which, folder.topic, is_on_topic=is_on_topic)
                prefix = base if target == host else self.origin(target)
            else:
                target, prefix, section = host, base, which % own_count
                if is_on_topic:
                    section += (own_shift - section) % TOPIC_COUNT
                    if section >= own_count:
                        section = own_section
                elif (own_shift - section) % TOPIC_COUNT == 0:
                    section = (section + 1) % own_count
            index = section * SECTION_FOLDERS + ((what >> 8) * (which >> 8) >> 45)  # of two draws: more to the first
            if index * FOLDER_PAGES >= sizes[target]:
                index = section * SECTION_FOLDERS
            other = get_folder(target, index)
            if other.articles:
                first, second = other.article_words(1 + (what ^ which) % other.articles)
                dot = "" if (what ^ where) & 0xFFFF < REDIRECTED_16 else ".html"
                found.append((f"{prefix}{other.path}{first}-{second}{dot}", f"{first} {second}"))
            else:
                found.append((f"{prefix}{'/' if other.hidden else other.path}", other.words[0]))
        return found

    def _outside(self, host: int, chance: int, topic: int, *, is_on_topic: bool) -> tuple[int, int]:
        """(host, section) of a link outwards: a section on or off the topic, near the hub `host`."""
        layout = self.layout
        if is_on_topic:
            host = self._near(host, topic)
            first, count = (topic - layout.first_topic[host]) % TOPIC_COUNT, layout.section_count(host)
            if first >= count:  # nobody near is on the topic
                return host, chance % count
            return host, first + TOPIC_COUNT * (chance % -((first - count) // TOPIC_COUNT))
        section = chance % layout.section_count(host)
        if layout.topic_of(host, section) == topic:
            section += 1
            if section >= layout.section_count(host):
                host, section = (host + 1) % len(layout.sizes), 0
        return host, section

    def _host_with_topic(self, host: int, topic: int) -> int:
        """The first host from `host` on that has a section on the topic; itself if none is near."""
        layout, hosts = self.layout, len(self.layout.sizes)
        for other in range(host, host + min(hosts, MOST_STEPS)):
            number = other % hosts
            if (topic - layout.first_topic[number]) % TOPIC_COUNT < layout.section_count(number):
                return number
        return host


def is_mirror_source(place: PagePlace) -> bool:
    """The first article of a section's first folder may be copied elsewhere, so its links are absolute."""
    return place.page == 1 and place.folder % SECTION_FOLDERS == 0
