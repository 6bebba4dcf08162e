"""The simulated web itself: what each URL answers at a time, traps and trouble included.

Pure: `SimWeb.answer(host, target, time)` is a function of the settings. HTTP around it is `simweb.protocol`;
it is served by `simweb.server`, or without sockets by `simweb.memory`.
"""

import math
import re
import zlib
from functools import cached_property
from urllib.parse import urlsplit

import msgspec

from lycosa.errors import SettingsError
from lycosa.simweb.documents import EPOCH_S, SLOW_ROBOTS_S, Documents, RobotsFiles, http_date
from lycosa.simweb.layout import Layout, PagePlace
from lycosa.simweb.links import DEFAULT_PORTS, LinkLayout, is_mirror_source
from lycosa.simweb.pages import PageChanges, Pages, PageState
from lycosa.simweb.settings import DOCUMENT_TROUBLE, TROUBLE_NUMBER, SimSettings
from lycosa.simweb.vocabulary import Draws, Vocabulary, unit

HOST_TROUBLE_PURPOSE, SESSION_PURPOSE, SOFT_PURPOSE = 50, 51, 52
_CALENDAR = re.compile(r"/calendar/([0-9]{4})/([0-9]{2})/(?:([0-9]{2})/)?\Z")
_LOOP = re.compile(r"/loop/(?:[ab]/)*\Z")
_SESSION = re.compile(r"(?:\?|&)sid=[0-9a-f]{16}\Z")
_OWN_HREF = re.compile(rb'href="((?!https?:|#)[^"]*)"')
_MONTHS_BY_NUMBER = 12


class Traps:
    """The traps of one web: which hosts have which, and what is in them."""

    def __init__(self, settings: SimSettings, draws: Draws) -> None:
        self._settings, self._draws = settings, draws

    def host_has(self, host: int, name: str) -> bool:
        """Has this host the trouble `name`?"""
        share = self._settings.trouble_share(name)
        return share > 0 and unit(self._draws.mix(host, TROUBLE_NUMBER[name], HOST_TROUBLE_PURPOSE)) < share

    def footer(self, host: int, path: str) -> str:
        """Links that an honest page of this host carries into its traps."""
        links = []
        if self.host_has(host, "calendar"):
            links.append('<a href="/calendar/2026/01/">Calendar</a>')
        if self.host_has(host, "path-loop"):
            links.append('<a href="/loop/">Related</a>')
        if self.host_has(host, "soft-404"):
            links.append(f'<a href="{self._missing(host, path)}">More</a>')
        return " ".join(links)

    def page(self, host: int, path: str) -> bytes | None:
        """The trap page at a path, if this host has a trap there."""
        calendar = _CALENDAR.match(path)
        if calendar and self.host_has(host, "calendar"):
            return _calendar_page(int(calendar[1]), int(calendar[2]), calendar[3])
        if _LOOP.match(path) and self.host_has(host, "path-loop"):
            return _html("Related", '<p>See <a href="a/">one</a> or <a href="b/">the other</a>.</p>')
        return None

    def soft_404(self, host: int, path: str) -> bytes | None:
        """A friendly page for anything that does not exist."""
        if not self.host_has(host, "soft-404"):
            return None
        return _html("Sorry", f'<p>We looked everywhere. Try <a href="{self._missing(host, path)}">this</a>.</p>')

    def add_sessions(self, host: int, target: str, page: bytes) -> bytes:
        """Give every own link of the page a session id that follows from the id the page was asked with."""
        if not self.host_has(host, "session-ids"):
            return page
        sid = b"%016x" % self._draws.text_hash(f"{host}{target}", SESSION_PURPOSE)
        return _OWN_HREF.sub(rb'href="\1?sid=' + sid + b'"', page)

    def _missing(self, host: int, path: str) -> str:
        return f"/lost/{self._draws.text_hash(f'{host}{path}', SOFT_PURPOSE):x}.html"


def without_session(target: str) -> str:
    """The target without its session id."""
    return _SESSION.sub("", target)


def _calendar_page(year: int, month: int, day: str | None) -> bytes:
    months = year * _MONTHS_BY_NUMBER + month - 1
    later, earlier = divmod(months + 1, _MONTHS_BY_NUMBER), divmod(max(0, months - 1), _MONTHS_BY_NUMBER)
    links = [f'<a href="/calendar/{y:04d}/{m + 1:02d}/">{y}-{m + 1:02d}</a>' for y, m in (earlier, later) if y < 10_000]
    if day is None:
        links += [f'<a href="{number:02d}/">{number}</a>' for number in range(1, 29)]
    return _html(f"Events {year}-{month:02d}", f"<p>Nothing on this day.</p><p>{' '.join(links)}</p>")


def _html(title: str, body: str) -> bytes:
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title></head>\n'
        f"<body><h1>{title}</h1>{body}</body></html>\n"
    ).encode()


# Trouble that puts links into honest pages.
LINK_TRAPS = ("calendar", "path-loop", "session-ids", "soft-404")
TROUBLE_PURPOSE, VALIDATOR_PURPOSE, TABLE_PURPOSE, GONE_PURPOSE = 60, 61, 62, 63
BUSY_S, BUSY_EVERY_S = 3.0, 20.0  # a host with `unavailable` or `too-many` is busy this long, this often
HAS_ETAG, HAS_LAST_MODIFIED = 0.8, 0.8  # shares of hosts
BOMB_BYTES = 100_000_000
HUGE_BYTES = 30_000_000
DEEP_ELEMENTS = 20_000
HTML = "text/html; charset=utf-8"


class Answer(msgspec.Struct, frozen=True):
    """A response before it meets the request's conditions and the wire. `tail` follows the body, shared by many."""

    status: int
    body: bytes = b""
    content_type: str = HTML
    etag: str = ""
    modified_s: int = 0
    headers: tuple[tuple[str, str], ...] = ()
    trouble: str = ""
    delay_s: float = 0.0
    tail: bytes = b""


NOT_FOUND = Answer(404, b"<!DOCTYPE html><title>Not found</title><h1>Not found</h1>\n")


class SimWeb:
    """One simulated web. Memory: a few numbers a host, the passages, bounded caches."""

    def __init__(self, settings: SimSettings) -> None:
        self.settings = settings
        self.draws = Draws(settings.seed)
        self.vocabulary = Vocabulary.of(settings.seed)
        self.layout = Layout(settings, self.draws, self.vocabulary)
        self.linker = LinkLayout(self.layout)
        self.pages = Pages(settings, self.draws, self.vocabulary, self.layout, self.linker)
        self.changes = PageChanges(self.draws)
        self.robots = RobotsFiles(self.layout, self.linker)
        self.documents = Documents(self.draws, self.layout, self.linker, self.pages, self.changes)
        self.traps = Traps(settings, self.draws)
        self._troubles = [(name, settings.trouble[name]) for name in DOCUMENT_TROUBLE if settings.trouble_share(name)]
        self._host_troubles = {name for name in settings.trouble if name not in DOCUMENT_TROUBLE}

    def __repr__(self) -> str:
        s = self.settings
        return f"<SimWeb seed={s.seed} hosts={s.hosts} pages={s.pages} addresses={s.address_count}>"

    def url(self, place: PagePlace) -> str:
        return self.linker.origin(place.host) + self.layout.path_of(place)

    def address_of(self, url: str) -> tuple[int, str]:
        """(host, target) of a URL that somebody gives; refused with a sentence where it is not on this web."""
        s = self.settings
        try:
            parts = urlsplit(url)
            host, port = self.layout.host_number(parts.hostname or ""), parts.port
        except ValueError as error:
            raise SettingsError(f"{url!r} is not a URL") from error
        if host is None:
            raise SettingsError(f"{url!r} is not a page of this web: its hosts are h0.sim to h{s.hosts - 1}.sim")
        if parts.scheme != s.scheme or (port or DEFAULT_PORTS[s.scheme]) != s.port:
            raise SettingsError(f"{url!r} is not a page of this web: its URLs begin with {self.linker.origin(host)}/")
        return host, (parts.path or "/") + (f"?{parts.query}" if parts.query else "")

    def state(self, place: PagePlace, time_s: float) -> PageState:
        return self.documents.state(place, time_s)

    def answer(self, host: int, target: str, time_s: float = 0.0, elapsed_s: float = 0.0) -> Answer:
        """What `host` says to a GET of `target`; `elapsed_s` is real time since the start, for passing trouble."""
        if target == "/robots.txt":
            return self._robots(host)
        if self._host_troubles:
            busy = self._busy(host, elapsed_s)
            if busy is not None:
                return busy
        asked = target
        if self._host_troubles and self.traps.host_has(host, "session-ids"):
            target = without_session(target)
        target = target.removesuffix("?")  # an empty query is no query
        path = target.partition("?")[0]
        place = self.layout.locate(host, path)
        if place is None:
            return self._other(host, path, time_s)
        if "?" in target:
            return NOT_FOUND
        return self._page(place, path, asked, time_s)

    # pages

    def _page(self, place: PagePlace, path: str, asked: str, time_s: float) -> Answer:
        state = self.state(place, time_s)
        if state.gone:
            return self.not_there(place)
        trouble = self.trouble_of(place.host, path) if self._troubles else ""
        if trouble in ("not-found", "error"):
            return Answer({"not-found": 404, "error": 500}[trouble], NOT_FOUND.body)
        if trouble == "redirect-loop":
            return self._redirect(path)
        source = self.pages.source(place)
        if source != place:
            state = self.state(source, time_s)
        body = self.pages.html(source, state)
        if self._host_troubles and source == place and not is_mirror_source(place):  # copies stay copies
            footer = self.traps.footer(place.host, path)
            body = body.replace(b"<footer>", b"<footer>" + footer.encode(), 1) if footer else body
            body = self.traps.add_sessions(place.host, asked, body)
        etag, modified_s = self._validators(place, source, state)
        told = self._table_links(place) if self.settings.tables and self.tells_of_tables(place.host) else ()
        answer = Answer(200, body, etag=etag, modified_s=modified_s, headers=told, trouble=trouble)
        return self._spoiled(answer) if trouble else answer

    def _table_links(self, place: PagePlace) -> tuple[tuple[str, str], ...]:
        name = self.layout.path_of(place).rpartition("/")[2]
        table = f"{name.removesuffix('.html')}.tol" if name else "index.tol"
        return (("Link", f'<{table}>; rel="table-of-links"'),)

    def not_there(self, place: PagePlace) -> Answer:
        """The answer for a page that is gone: 410 on one host in four, else 404."""
        is_explicit = self.draws.mix(place.host, 0, GONE_PURPOSE) % 4 == 0
        return Answer(410, b"<!DOCTYPE html><title>Gone</title>\n") if is_explicit else NOT_FOUND

    def _validators(self, place: PagePlace, source: PagePlace, state: PageState) -> tuple[str, int]:
        has_etag, has_modified = self._validator_kinds(place.host)
        tag = f'"{self.pages.key(source):x}-{state.text:x}-{state.structure:x}-{state.volatile:x}"'
        return tag if has_etag else "", self.documents.modified_s(source, state) if has_modified else 0

    def _validator_kinds(self, host: int) -> tuple[bool, bool]:
        """(has entity tags, has Last-Modified)."""
        x = self.draws.mix(host, 0, VALIDATOR_PURPOSE)
        return (x & 0xFF) < HAS_ETAG * 256, (x >> 8 & 0xFF) < HAS_LAST_MODIFIED * 256

    def trouble_of(self, host: int, path: str) -> str:
        """The trouble of one document; front pages have none, so that every host has a way in."""
        if path == "/" or not self._troubles:
            return ""
        chance = unit(self.draws.text_hash(f"{host}{path}", TROUBLE_PURPOSE))
        for name, share in self._troubles:
            if chance < share:
                return name
            chance -= share
        return ""

    def _spoiled(self, answer: Answer) -> Answer:
        """Troubles that are in the bytes, not on the wire."""
        trouble, body = answer.trouble, answer.body
        if trouble == "wrong-charset":
            body = body.decode().replace("Home", "Übersicht").encode("latin-1", "replace")
        elif trouble == "huge":
            return msgspec.structs.replace(answer, tail=self._filler)
        elif trouble == "deep":
            body = body.replace(
                b"</main>", b"<div>" * DEEP_ELEMENTS + b"deep" + b"</div>" * DEEP_ELEMENTS + b"</main>", 1
            )
        elif trouble == "bomb":
            return msgspec.structs.replace(answer, body=self._bomb, headers=(("Content-Encoding", "gzip"),))
        return msgspec.structs.replace(answer, body=body)

    def prepare(self) -> None:
        """Makes now what would keep the first who asks for it waiting."""
        if self.settings.trouble_share("bomb"):
            _ = self._bomb
        if self.settings.trouble_share("huge"):
            _ = self._filler

    @cached_property
    def _filler(self) -> bytes:
        line = self.vocabulary.passages[0][0].encode() + b"\n"
        return b"<p>" + line * (HUGE_BYTES // len(line)) + b"</p>\n"

    @cached_property
    def _bomb(self) -> bytes:
        packer = zlib.compressobj(9, zlib.DEFLATED, 31)
        block = b"<p>" + b" " * 999_997
        return b"".join(packer.compress(block) for _ in range(BOMB_BYTES // len(block))) + packer.flush()

    # everything else

    def _robots(self, host: int) -> Answer:
        robots = self.robots.of(host)
        delay_s = SLOW_ROBOTS_S if robots.slow else 0.0
        if robots.status != 200:
            return Answer(robots.status, NOT_FOUND.body, delay_s=delay_s)
        return Answer(200, robots.text().encode(), "text/plain; charset=utf-8", delay_s=delay_s)

    def _busy(self, host: int, elapsed_s: float) -> Answer | None:
        phase = (elapsed_s + 7 * host) % BUSY_EVERY_S
        if phase >= BUSY_S:
            return None
        for name, status in (("unavailable", 503), ("too-many", 429)):
            if name in self._host_troubles and self.traps.host_has(host, name):
                wait = ("Retry-After", str(math.ceil(BUSY_S - phase)))
                return Answer(status, b"<!DOCTYPE html><title>Busy</title>\n", headers=(wait,))
        return None

    def _other(self, host: int, path: str, time_s: float) -> Answer:
        ending = path.rpartition("/")[2].rpartition(".")[2]
        found: Answer | None = None
        if ending in ("xml", "gz"):
            found = self._xml(host, path, time_s)
        elif ending == "png":
            place = self.documents.image_place(host, path)
            if place:
                found = Answer(200, self.documents.image(place, self.state(place, time_s)), "image/png")
        elif ending in ("tol", "tvi"):
            found = self._table(host, path, ending, time_s)
        elif self._is_short_form(host, path):
            return self._redirect(path + ("/" if self.layout.locate(host, path + "/") else ".html"))
        if found is not None:
            return self._tagged(host, found)
        trap = self.traps.page(host, path) or self.traps.soft_404(host, path)
        return Answer(200, trap) if trap else NOT_FOUND

    def _tagged(self, host: int, answer: Answer) -> Answer:
        """With an entity tag, on hosts that have them."""
        has_etag, _ = self._validator_kinds(host)
        return msgspec.structs.replace(answer, etag=f'"{zlib.crc32(answer.body):08x}"') if has_etag else answer

    def _is_short_form(self, host: int, path: str) -> bool:
        return any(self.layout.locate(host, path + end) for end in (".html", "/")) and not path.endswith("/")

    def _redirect(self, path: str) -> Answer:
        return Answer(301, b"<!DOCTYPE html><title>Moved</title>\n", headers=(("Location", path),))

    def _xml(self, host: int, path: str, time_s: float) -> Answer | None:
        if path == "/feed.xml":
            return Answer(200, self.documents.feed(host, time_s), "application/rss+xml; charset=utf-8")
        if not self.robots.of(host).sitemap:
            return None
        body = self.documents.sitemap(host, path[1:], time_s)
        kind = "application/gzip" if path.endswith(".gz") else "application/xml"
        return None if body is None else Answer(200, body, kind)

    def _table(self, host: int, path: str, ending: str, time_s: float) -> Answer | None:
        place = self.documents.table_place(host, path)
        if place is None or not self.has_tables(host) or self.state(place, time_s).gone:
            return None
        source = self.pages.source(place)
        state = self.state(source, time_s)
        name = self.layout.path_of(place).rpartition("/")[2] or "index.html"
        if ending == "tvi":
            body = self.documents.table_of_volatile(source, state, name)
        else:
            body = self.documents.table_of_links(source, host, state, name)
            if self.traps.host_has(host, "lying-table"):
                body = b"\n".join([*body.split(b"\n")[:-2], b"internal\t/not-there.html", b""])
        return None if body is None else Answer(200, body, "text/plain; charset=utf-8")

    def has_tables(self, host: int) -> bool:
        """Not where traps put links into pages that no table has."""
        is_plain = not any(self.traps.host_has(host, name) for name in LINK_TRAPS)
        return is_plain and unit(self.draws.mix(host, 0, TABLE_PURPOSE)) < self.settings.tables

    def tells_of_tables(self, host: int) -> bool:
        """Half of the hosts that have tables say so in a Link header."""
        return self.has_tables(host) and unit(self.draws.mix(host, 1, TABLE_PURPOSE)) < 0.5


__all__ = ["EPOCH_S", "NOT_FOUND", "Answer", "SimWeb", "http_date"]
