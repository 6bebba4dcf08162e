"""The pages of the simulated web and how they change: HTML from a place and the time.

Pure: the bytes follow from seed, place and state. One call of SHAKE-128 gives all of a page's chance; its text is a
join of ready-made passages. Called by `simweb.web`.
"""

from collections.abc import Sequence
from functools import lru_cache

import msgspec

from lycosa.simweb.layout import SECTION_FOLDERS, Layout, PagePlace
from lycosa.simweb.links import NAVIGATION_CACHE, WORDS_PER_LINK, LinkLayout, is_mirror_source, link_count
from lycosa.simweb.settings import SimSettings
from lycosa.simweb.vocabulary import PASSAGES, Draws, Vocabulary, lognormal_table, poisson_table, unit

DAY_S = 86_400.0
MEDIAN_RATE_PER_DAY = 1 / 30
RATE_SIGMA = 1.8
EPOCH_EVENTS = 4.0
MOST_EVENTS = 64  # in an epoch: room for the event's number in its ordinal
GONE_MEAN_DAYS = 5.0

# kind → its events per event of the page's own rate
TEXT, STRUCTURE, IMAGE, VOLATILE, GONE = range(5)
RATE_OF_KIND = (0.6, 0.15, 0.2, 8.0, 0.05)
RATE_PURPOSE, EVENT_PURPOSE = 10, 11

_RATES = lognormal_table(MEDIAN_RATE_PER_DAY / DAY_S, RATE_SIGMA)
_COUNTS = poisson_table(EPOCH_EVENTS)


class Event(msgspec.Struct, frozen=True):
    """The last event of a kind: a number that no other event of this page and kind has, and when it was."""

    ordinal: int
    at_s: float


NEVER = Event(0, 0.0)


class PageState(msgspec.Struct, frozen=True):
    """A page at a time: the ordinal of the last event of each kind (0: none yet)."""

    text: int = 0
    structure: int = 0
    image: int = 0
    volatile: int = 0
    gone: bool = False
    changed_s: float = 0.0


UNCHANGED = PageState()


class PageChanges:
    """The change history of every page of one seed; `key` stands for the page."""

    def __init__(self, draws: Draws) -> None:
        self._draws = draws

    def rate(self, key: int) -> float:
        """Events a second of the page's own process."""
        return _RATES[self._draws.mix(key, 0, RATE_PURPOSE) & 1023]

    def state(self, key: int, time_s: float, *, has_volatile: bool = True, can_go: bool = True) -> PageState:
        """The page at a time; a page without a volatile part has no volatile events, some pages never disappear."""
        if time_s <= 0:
            return UNCHANGED
        rate = self.rate(key)
        text, structure, image, volatile, gone = (
            self._last_event(key * 8 + kind, rate * factor, time_s) if happens else NEVER
            for (kind, factor), happens in zip(enumerate(RATE_OF_KIND), (1, 1, 1, has_volatile, can_go), strict=True)
        )
        return PageState(
            text=text.ordinal,
            structure=structure.ordinal,
            image=image.ordinal,
            volatile=volatile.ordinal,
            gone=gone.ordinal > 0 and time_s < gone.at_s + self._gone_for(key, gone.ordinal),
            changed_s=max(text.at_s, structure.at_s, volatile.at_s),
        )

    def _gone_for(self, key: int, ordinal: int) -> float:
        return 2 * GONE_MEAN_DAYS * DAY_S * unit(self._draws.mix(key, ordinal, GONE))

    def _last_event(self, key: int, rate: float, time_s: float) -> Event:
        length = EPOCH_EVENTS / rate
        epoch = int(time_s / length)
        while epoch >= 0:
            x = self._draws.mix(key, epoch, EVENT_PURPOSE)
            times = sorted(unit(self._draws.mix(x, i, EVENT_PURPOSE)) for i in range(_COUNTS[x & 1023]))
            for i in range(len(times) - 1, -1, -1):
                at_s = (epoch + times[i]) * length
                if at_s <= time_s:
                    return Event(epoch * MOST_EVENTS + i + 1, at_s)
            epoch -= 1
        return NEVER


MEDIAN_BYTES = 16_500
BYTES_SIGMA = 0.6
BYTES_PER_LINK = 95  # with its mark-up
FRAME_BYTES = 1_900
FEWEST_PASSAGES = 4
MOST_PASSAGES = 2_000
PARAGRAPH = 3  # passages
ELSEWHERE = 26  # links outside the main part, on most pages
MARKED_VOLATILE, UNMARKED_VOLATILE = 0.25, 0.5  # below the first: marked; below the second: not; above: none
CANONICAL_SHARE = 0.6
PAGE, COPY = 20, 21

_BYTES = lognormal_table(MEDIAN_BYTES, BYTES_SIGMA)
_TAGLINES = (
    "Notes and news",
    "Über uns · Café zum Hafen",
    "Notas de campo — año tras año",
    "資料と記録",
    "Carnets d’été",
)


class Pages:
    """Renders every page of one web."""

    def __init__(
        self, settings: SimSettings, draws: Draws, vocabulary: Vocabulary, layout: Layout, linker: LinkLayout
    ) -> None:
        self._draws, self._layout, self._linker = draws, layout, linker
        self._passages, self._mean_passage = vocabulary.passages, vocabulary.mean_passage
        self._navigation = lru_cache(NAVIGATION_CACHE)(self._navigation_html)
        self._mirrors = settings.mirrors
        self._copies = settings.mirrors + settings.near_duplicates

    def _navigation_html(self, host: int, base: str) -> str:
        return "".join([f'<li><a href="{base}{path}">{name}</a></li>' for path, name in self._linker.navigation(host)])

    def key(self, place: PagePlace) -> int:
        """A number for the page, to draw by."""
        return self._draws.mix(place.host, place.folder << 8 | place.page, PAGE)

    def source(self, place: PagePlace) -> PagePlace:
        """The page whose document is served here: itself, or for a mirror the page it copies."""
        chance = self._copy_chance(place)
        return self._copied(place) if chance < self._mirrors else place

    def prose_source(self, place: PagePlace) -> PagePlace:
        """The page whose prose this one has: itself, or for a near-duplicate another one's."""
        return self._copied(place) if self._mirrors <= self._copy_chance(place) < self._copies else place

    def _copy_chance(self, place: PagePlace) -> float:
        folder = self._layout.folder(place.host, place.folder)
        if not 2 <= place.page <= folder.articles or folder.hidden:
            return 1.0
        return unit(self._draws.mix(self.key(place), 0, COPY))

    def _copied(self, place: PagePlace) -> PagePlace:
        """The first article of some section, or the page itself where that section has none."""
        layout = self._layout
        section = self._draws.mix(self.key(place), 1, COPY) % layout.section_total
        host = layout.host_of_section(section)
        index = (section - layout.section_start[host]) * SECTION_FOLDERS
        return PagePlace(host, index, 1) if layout.folder(host, index).articles else place

    def plan(self, place: PagePlace) -> tuple[int, int, Sequence[int]]:
        """(links, passages, chances): the size of a page and all its chance in one draw."""
        key = self.key(place)
        links = link_count(key)
        room = _BYTES[key >> 10 & 1023] - FRAME_BYTES - links * BYTES_PER_LINK
        passages = min(MOST_PASSAGES, max(FEWEST_PASSAGES, int(room / self._mean_passage)))
        return links, passages, self._draws.words(b"page %d" % key, WORDS_PER_LINK * links + passages + 16)

    def main_links(self, place: PagePlace) -> list[tuple[str, str]]:
        """The links of the page's main part, as `html` writes them."""
        links, _, chances = self.plan(place)
        return self._linker.links(place, links - ELSEWHERE, chances)

    def all_links(self, place: PagePlace) -> list[tuple[str, str]]:
        """Every followed link of the page: navigation, breadcrumbs, main part."""
        base = self._linker.base(place)
        navigation = [(base + path, name) for path, name in self._linker.navigation(place.host)]
        return navigation + self._linker.breadcrumbs(place) + self.main_links(place)

    def every_link(self, place: PagePlace) -> list[tuple[str, str, str, str]]:
        """All links as a table has them, followed or not: (href, anchor, rel, element), element empty for an `<a>`."""
        found = [(href, anchor, "", "") for href, anchor in self.all_links(place)]
        if unit(self.key(place)) < CANONICAL_SHARE:
            found.append((self._canonical(place), "", "canonical", "link"))
        found.append((f"{self._linker.base(place)}/feed.xml", "", "alternate", "link"))
        folder = self._layout.folder(place.host, place.folder)
        return [*found, (self._image(place), folder.words[0], "", "img")]

    def _canonical(self, place: PagePlace) -> str:
        folder = self._layout.folder(place.host, place.folder)
        return f"{self._linker.origin(place.host)}{folder.path}{folder.name(place.page)}"

    def _image(self, place: PagePlace) -> str:
        folder = self._layout.folder(place.host, place.folder)
        origin = self._linker.origin(place.host) if self._linker.base(place) else ""
        return f"{origin}{folder.path}{folder.words[folder.offset]}-{place.page}.png"

    def title(self, place: PagePlace) -> str:
        folder = self._layout.folder(place.host, place.folder)
        if place.page == 0:
            name = folder.path.strip("/").replace("/", " · ") or f"Host {place.host}"
        elif place.page <= folder.articles:
            name = folder.article(place.page).replace("-", " ")
        else:
            name = f"{folder.words[0]} {place.page - folder.articles}"
        return f"{name.capitalize()} – {folder.words[0]}"

    def html(self, place: PagePlace, state: PageState) -> bytes:
        links, count, chances = self.plan(place)
        key, base = self.key(place), self._linker.base(place)
        folder = self._layout.folder(place.host, place.folder)
        title = self.title(place)
        passages = self._prose(place, folder.topic, chances[-count:], state)
        anchors = [
            f'<a href="{href}">{anchor}</a>' for href, anchor in self._linker.links(place, links - ELSEWHERE, chances)
        ]
        navigation = self._navigation(place.host, base)
        crumbs = " / ".join([f'<a href="{href}">{anchor}</a>' for href, anchor in self._linker.breadcrumbs(place)])
        canonical = ""
        if unit(key) < CANONICAL_SHARE:
            canonical = f'<link rel="canonical" href="{self._canonical(place)}">\n'
        return (
            f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{title}</title>\n'
            f'<meta name="description" content="{passages[0]}">\n{canonical}'
            f'<link rel="alternate" type="application/rss+xml" href="{base}/feed.xml">\n'
            f'<meta name="viewport" content="width=device-width">\n</head>\n<body>\n'
            f'<header><nav class="top"><ul>{navigation}</ul></nav><div class="crumbs">{crumbs}</div></header>\n'
            f"<main>\n<h1>{title}</h1>\n"
            f"{_body(passages, anchors)}"
            f'<figure><img src="{self._image(place)}" alt="{folder.words[0]}" width="64" height="64"></figure>\n'
            f"{_structure(state.structure)}{self.volatile(place, state)}"
            f"</main>\n<footer><p>{_TAGLINES[place.host % len(_TAGLINES)]}</p></footer>\n</body>\n</html>\n"
        ).encode()

    def volatile(self, place: PagePlace, state: PageState) -> str:
        """The volatile part as mark-up: a marked span, an ordinary paragraph, or nothing."""
        if not self.has_volatile(place):
            return ""
        text = self.volatile_text(place, state)
        return f'<p><span data-vol="1">{text}</span></p>\n' if self.has_marked_volatile(place) else f"<p>{text}</p>\n"

    def has_volatile(self, place: PagePlace) -> bool:
        return self._volatile_chance(place) < UNMARKED_VOLATILE and not is_mirror_source(place)

    def has_marked_volatile(self, place: PagePlace) -> bool:
        return self._volatile_chance(place) < MARKED_VOLATILE and not is_mirror_source(place)

    def _volatile_chance(self, place: PagePlace) -> float:
        return (self.key(place) >> 32 & 0xFF) / 256

    def volatile_text(self, place: PagePlace, state: PageState) -> str:
        x = self._draws.mix(self.key(place), state.volatile, COPY)
        return f"Read {state.volatile * 1000 + x % 997} times, last from {x >> 40:06x}."

    def _prose(self, place: PagePlace, topic: int, chances: Sequence[int], state: PageState) -> list[str]:
        source = self.prose_source(place)
        if source != place:
            _, count, words = self.plan(source)
            topic, chances = self._layout.folder(source.host, source.folder).topic, words[-count:]
        pool = self._passages[topic]
        prose = [pool[chance & (PASSAGES - 1)] for chance in chances]
        if source != place:
            prose[len(prose) // 2] = pool[self.key(place) & (PASSAGES - 1)]
        if state.text:
            at = state.text * 7 % len(prose)
            prose[at] = (
                f"{pool[self._draws.mix(self.key(place), state.text, COPY) & (PASSAGES - 1)]} Edit {state.text}."
            )
        return prose


def _body(passages: list[str], anchors: list[str]) -> str:
    """Paragraphs of passages with the links spread between them, under a heading every four paragraphs."""
    paragraphs = -(-len(passages) // PARAGRAPH)
    per_paragraph = -(-len(anchors) // paragraphs)
    parts = []
    for i in range(paragraphs):
        if i % 4 == 0:
            parts.append(f"<h2>{passages[i * PARAGRAPH][:32]}</h2>\n")
        prose = " ".join(passages[i * PARAGRAPH : (i + 1) * PARAGRAPH])
        links = " ".join(anchors[i * per_paragraph : (i + 1) * per_paragraph])
        parts.append(f'<p class="body">{prose}</p>\n<ul><li>{links}</li></ul>\n' if links else f"<p>{prose}</p>\n")
    return "".join(parts)


def _structure(ordinal: int) -> str:
    """A row of empty elements that spells the ordinal in binary: no two structures are alike."""
    if not ordinal:
        return ""
    return "<div>" + "".join("<b></b>" if bit == "1" else "<i></i>" for bit in f"{ordinal:b}") + "</div>\n"
