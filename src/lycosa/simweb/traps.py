"""Pages without end: calendar, path loop, soft 404s, session ids.

Each is a pure function of the path, so a trap needs no more memory than its honest neighbours.
The truth has no trap page in it.
"""

import re

from lycosa.simweb.draws import Draws, unit
from lycosa.simweb.settings import TROUBLE_NUMBER, SimSettings

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
