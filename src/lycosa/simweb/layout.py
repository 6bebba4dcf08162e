"""Where everything stands: hosts, their sizes and addresses, folders, and the name of every page.

The whole web is numbered. A host has pages 0 … n−1; 32 pages make a folder, 8 folders a section, and a host's sections
take the sixteen topics in turn, from a first one that evens out the pages of all topics; so a page on a given topic can
be drawn without looking for one. Names follow from numbers and numbers from names (`path_of`, `locate` are inverse),
so nothing is stored but three numbers a host.

In a folder: page 0 is its index, 1 … a are articles, the rest is a numbered series. Some leaf folders are *hidden*:
nobody links to their index, the parent folder lists their articles instead. Of a series only some members are linked.
"""

import re
from bisect import bisect_right
from functools import lru_cache

import msgspec
import numpy as np

from lycosa.errors import SettingsError
from lycosa.simweb.settings import SimSettings
from lycosa.simweb.vocabulary import FOLDERS, TOPIC_COUNT, TOPIC_WORDS, Draws, Vocabulary, unit

FOLDER_PAGES = 32
SECTION_FOLDERS = 8
SECTION_PAGES = FOLDER_PAGES * SECTION_FOLDERS
SECTION_BRANCHES = 8  # sub-sections that a section's index links to
MOST_SECTIONS = TOPIC_COUNT * TOPIC_WORDS * TOPIC_WORDS  # of a host: a section is named by two words of its topic
SHARES = 10  # no host has more than one of so many shares, where there are hosts enough
WEIGHED_HOSTS = 1024  # the largest hosts, whose first topic is chosen by weight; the others are too small to matter
HIDDEN_SHARE = 0.4  # of leaf folders
SERIES_SHARE = 0.5  # of full folders
SERIES_LENGTHS = (8, 24)  # mean 16
LINKED_MEMBERS = 0.35
FOLDER_CACHE = 16_384  # folders with their names worked out; about 7 MB

# Purposes: one number a kind of draw, so that draws for different things are independent.
HOST, SECTION, FOLDER, SERIES = 1, 2, 3, 4

SERIES_STYLES = ("page{}.html", "photo-{:02d}.html", "part_{:03d}.html", "vol{}/", "2025-06-{:02d}.html")
_NUMBERED = re.compile(r"[a-z0-9_-]*?([0-9]{1,4})(?:\.html|/)\Z")
_HOST_NAME = re.compile(r"h(0|[1-9][0-9]{0,7})(?:\.s[0-9]+)?\.sim\.?\Z")
_LITERAL = re.compile(r"localhost\.?\Z|\[|[0-9.]+\Z")
_FOLDER_NUMBER = {name: i for i, name in enumerate(FOLDERS)}


class PagePlace(msgspec.Struct, frozen=True):
    """A page by numbers: host, folder of the host, page of the folder."""

    host: int
    folder: int
    page: int


class PageFolder:
    """One folder with everything that follows from its number."""

    __slots__ = (
        "articles",
        "children",
        "hidden",
        "host",
        "index",
        "offset",
        "path",
        "series",
        "style",
        "topic",
        "words",
    )

    def __init__(self, layout: "Layout", host: int, index: int) -> None:
        self.host, self.index = host, index
        section, local = divmod(index, SECTION_FOLDERS)
        x = layout.draws.mix(host, index, FOLDER)
        count = min(FOLDER_PAGES, layout.sizes[host] - index * FOLDER_PAGES)
        folders_here = min(SECTION_FOLDERS, layout.folder_count(host) - section * SECTION_FOLDERS)
        self.children = [section * SECTION_FOLDERS + c for c in (2 * local + 1, 2 * local + 2) if c < folders_here]
        self.topic = layout.topic_of(host, section)
        self.words = layout.vocabulary.topics[self.topic]
        self.offset = x & (TOPIC_WORDS - 1)
        self.hidden = local > 0 and not self.children and (x >> 48 & 0xFF) < HIDDEN_SHARE * 256
        self.series, self.style = 0, SERIES_STYLES[(x >> 20) % len(SERIES_STYLES)]
        if count == FOLDER_PAGES and ((x >> 40) & 0xFF) < SERIES_SHARE * 256:
            low, high = SERIES_LENGTHS
            self.series = low + (x >> 32) % (high - low + 1)
        self.articles = count - 1 - self.series
        self.path = layout.folder_path(host, section, local)

    def article_words(self, page: int) -> tuple[str, str]:
        """The two words that name article `page`."""
        first = (self.offset + page) & (TOPIC_WORDS - 1)
        return self.words[first], self.words[(first * 7 + self.offset) & (TOPIC_WORDS - 1)]

    def article(self, page: int) -> str:
        """The file name of article `page`, without its extension."""
        return "-".join(self.article_words(page))

    def name(self, page: int) -> str:
        """What comes after the folder's path: nothing for the index, a file name, or a numbered folder."""
        if page == 0:
            return ""
        if page <= self.articles:
            return self.article(page) + ".html"
        return self.style.format(page - self.articles)

    def find(self, name: str) -> int | None:
        """The page of a name: the inverse of `name`."""
        if not name:
            return 0
        numbered = _NUMBERED.match(name)
        if numbered and self.series:
            page = self.articles + int(numbered[1])
        else:
            first = self.words_index(name.partition("-")[0])
            page = (first - self.offset) & (TOPIC_WORDS - 1) if first is not None else 0
        return page if 1 <= page <= self.articles + self.series and self.name(page) == name else None

    def words_index(self, word: str) -> int | None:
        place = Vocabulary.places().get(word)
        return place[1] if place and place[0] == self.topic else None


class Layout:
    """The numbering of one web. Memory: three integers a host and a bounded cache of folders."""

    def __init__(self, settings: SimSettings, draws: Draws, vocabulary: Vocabulary) -> None:
        self.settings, self.draws, self.vocabulary = settings, draws, vocabulary
        self.sizes: list[int] = _host_sizes(settings, draws).tolist()
        sections = [-(-size // SECTION_PAGES) for size in self.sizes]
        if max(sections) > MOST_SECTIONS:
            raise SettingsError(
                f"--pages is {settings.pages}: the largest host would have {max(self.sizes)} of them, "
                f"a host has at most {MOST_SECTIONS * SECTION_PAGES}; ask for more hosts with --hosts"
            )
        self.section_start: list[int] = [0, *np.cumsum(sections).tolist()]
        self.section_total = self.section_start[-1]
        self.first_topic = _first_topics(self.sizes)
        self.folder = lru_cache(FOLDER_CACHE)(self._folder)

    def _folder(self, host: int, index: int) -> PageFolder:
        return PageFolder(self, host, index)

    # hosts

    def host_name(self, host: int) -> str:
        sites = self.settings.sites
        return f"h{host}.s{host % sites}.sim" if sites else f"h{host}.sim"

    def host_number(self, name: str) -> int | None:
        """The host of a name; an address or `localhost` means host 0, an unknown name is None."""
        match = _HOST_NAME.match(name)
        if match:
            number = int(match[1])
            return number if number < len(self.sizes) and self.host_name(number) == name.rstrip(".") else None
        return 0 if _LITERAL.match(name) else None

    def address_of(self, host: int, *, turn: int = 0) -> str:
        """The host's address; `turn` counts the changes of a host whose answers change."""
        n = (host + turn) % self.settings.address_count + 1
        return f"127.{1 + (n >> 16)}.{n >> 8 & 255}.{n & 255}"

    # numbers

    def folder_count(self, host: int) -> int:
        return -(-self.sizes[host] // FOLDER_PAGES)

    def section_count(self, host: int) -> int:
        return self.section_start[host + 1] - self.section_start[host]

    def topic_of(self, host: int, section: int) -> int:
        return (self.first_topic[host] + section) % TOPIC_COUNT

    def host_of_section(self, number: int) -> int:
        """The host of a section counted over the whole web."""
        return bisect_right(self.section_start, number) - 1

    def is_linked(self, place: PagePlace) -> bool:
        """Does any page link here? Not to hidden folders, not to most members of a series."""
        folder = self.folder(place.host, place.folder)
        if place.page == 0:
            return not folder.hidden
        if place.page <= folder.articles:
            return True
        return self.is_linked_member(folder, place.page - folder.articles)

    def is_linked_member(self, folder: PageFolder, number: int) -> bool:
        x = self.draws.mix(folder.host, folder.index, SERIES)
        always = 1 + x % folder.series
        return number == always or unit(self.draws.mix(x, number, SERIES)) < LINKED_MEMBERS - 1 / folder.series

    # names

    def folder_path(self, host: int, section: int, local: int) -> str:
        """`/`, `/section/`, `/section/folder/sub/`; the first section's folders hang under the root itself."""
        x = self.draws.mix(host, section, SECTION)
        names = []
        while local:
            names.append(FOLDERS[(x + local) % len(FOLDERS)])
            local = (local - 1) // 2
        if section:
            names.append(self._section_name(host, section))
        return "/" + "".join(f"{name}/" for name in reversed(names))

    def _section_name(self, host: int, section: int) -> str:
        words = self.vocabulary.topics[self.topic_of(host, section)]
        high, low = divmod(section // TOPIC_COUNT, TOPIC_WORDS)
        first = words[(low + self.draws.mix(host, 0, HOST)) % TOPIC_WORDS]
        return f"{first}-{words[high]}" if high else first

    def path_of(self, place: PagePlace) -> str:
        folder = self.folder(place.host, place.folder)
        return folder.path + folder.name(place.page)

    def locate(self, host: int, path: str) -> PagePlace | None:
        """The page at a path, or None: the inverse of `path_of`."""
        head, _, name = path.rpartition("/")
        segments = head.split("/")[1:]
        if not name and segments and segments[-1][-1:].isdigit():
            name = segments.pop() + "/"
        index = self._find_folder(host, segments)
        if index is None:
            return None
        page = self.folder(host, index).find(name)
        return None if page is None else PagePlace(host, index, page)

    def _find_folder(self, host: int, segments: list[str]) -> int | None:
        section = 0
        if segments and segments[0] not in _FOLDER_NUMBER:
            found = self._find_section(host, segments[0])
            if found is None:
                return None
            section, segments = found, segments[1:]
        x, local = self.draws.mix(host, section, SECTION), 0
        for segment in segments:
            number = _FOLDER_NUMBER.get(segment)
            if number is None:
                return None
            child = (number - x) % len(FOLDERS)
            if not 1 <= child < SECTION_FOLDERS or (child - 1) // 2 != local:
                return None
            local = child
        index = section * SECTION_FOLDERS + local
        return index if index < self.folder_count(host) else None

    def _find_section(self, host: int, name: str) -> int | None:
        first, _, second = name.partition("-")
        places = Vocabulary.places()
        low_place, high_place = places.get(first), places.get(second) if second else None
        if low_place is None or (second and high_place is None):
            return None
        topic, index = low_place
        low = (index - self.draws.mix(host, 0, HOST)) % TOPIC_WORDS
        high = high_place[1] if high_place else 0
        section = (high * TOPIC_WORDS + low) * TOPIC_COUNT + (topic - self.first_topic[host]) % TOPIC_COUNT
        is_there = 0 < section < self.section_count(host)
        return section if is_there and self._section_name(host, section) == name else None


def _host_sizes(settings: SimSettings, draws: Draws) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """Pages a host: equal, or falling as a power of the host's rank with no host over a tenth of all pages.

    With ten hosts or fewer a tenth is too little; then no host has over 1.2 times its equal share.
    """
    count, pages = settings.hosts, settings.pages
    if settings.sizes == "uniform":
        sizes = np.full(count, pages // count, dtype=np.int64)
        sizes[: pages % count] += 1
        return sizes
    cap = max(pages // SHARES, -(-pages // count)) if count > SHARES else -(-pages * 6 // (count * 5))
    weights = 1.0 / (np.arange(count) + 3.0) ** 0.9
    for _ in range(64):  # what is cut from the largest is spread over the others in proportion
        weights /= weights.sum()
        if weights.max() <= cap / pages:
            break
        weights = np.minimum(weights, cap / pages * 0.999)
    sizes = np.minimum(cap, 1 + np.floor(weights * (pages - count)).astype(np.int64))
    while (left := pages - int(sizes.sum())) > 0:  # and the last few evenly
        has_room = np.flatnonzero(sizes < cap)[:left]
        sizes[has_room] += np.minimum(cap - sizes[has_room], left // len(has_room))
    order = np.array(draws.words(b"host order", count), dtype=np.uint32)
    shuffled: np.ndarray[tuple[int], np.dtype[np.int64]] = sizes[np.argsort(order, kind="stable")]
    return shuffled


def _first_topics(sizes: list[int]) -> bytes:
    """The topic of each host's first section: the large hosts where it weighs least, the others in turn by size."""
    pages = np.array(sizes, dtype=np.int64)
    by_size = np.argsort(-pages, kind="stable")
    first = np.empty(len(sizes), dtype=np.uint8)
    first[by_size] = np.arange(len(sizes)) % TOPIC_COUNT
    turns = (np.arange(TOPIC_COUNT)[None, :] - np.arange(TOPIC_COUNT)[:, None]) % TOPIC_COUNT
    load = np.zeros(TOPIC_COUNT, dtype=np.int64)
    for host in by_size[:WEIGHED_HOSTS]:
        rest = sizes[host] % (TOPIC_COUNT * SECTION_PAGES)  # full rounds are the same for every topic
        own = np.clip(rest - SECTION_PAGES * np.arange(TOPIC_COUNT), 0, SECTION_PAGES)
        first[host] = turn = int(np.argmin(own[turns] @ load))
        load += own[turns[turn]]
    return first.tobytes()
