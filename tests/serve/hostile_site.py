"""A site whose titles, URLs, anchors, fields, bodies and robots.txt are hostile strings, and a collection of it."""

import json
from functools import partial
from html import escape
from pathlib import Path
from urllib.parse import quote

from lycosa.crawl.progress import Recrawl
from tests.crawl.small_site import FIRST, Sent, crawl_site

TAKEN = "document.title='taken over'"
INJECTIONS = (
    f"<script>{TAKEN}</script>",
    f'"><img src=x onerror="{TAKEN}">',
    f"'><svg onload={TAKEN}>",
    f"javascript:{TAKEN}",
    f"</title></textarea></style></script><script>{TAKEN}</script>",
    "{{ 7 * 7 }}{% for x in y %}${7*7}",
    f"`-->]]><iframe srcdoc='<script>top.{TAKEN}</script>'>",
    "W" * 3_000,
    "\u202e\u2066reversed " + "\u0e49" * 300,
)
WORD = "tarantula"  # on every page, to be searched for


def hostile_strings(conformance: Path) -> list[str]:
    """The injections, then what others have collected."""
    return [*INJECTIONS, *json.loads((conformance / "hostile-strings" / "blns.json").read_text())]


def address(number: int, text: str) -> str:
    return f"{FIRST}{number}/{quote(text[:900], safe='<>{}|^`(),;')}?q={quote(text[:900])}"


def crawl_hostile(into: Path, strings: list[str]) -> None:
    """Crawls the site and looks at it again, when all its texts have changed."""
    # The injections have a page each, of the others every sixth: its neighbours are its title, texts and fields.
    first = [*range(len(INJECTIONS)), *range(len(INJECTIONS), len(strings), 6)]
    links = [address(at, strings[at]) for at in first] + [f"{FIRST}moved-{at}" for at in first[::9]]
    refs = "".join(f"<a href='{escape(url)}'>{escape(strings[at % len(strings)])}</a> " for at, url in enumerate(links))

    def answer(url: str, version: int) -> Sent | None:
        place = url.removeprefix(FIRST).partition("/")[0].removeprefix("moved-")
        if not place.isdecimal():
            return Sent(f"<title>{INJECTIONS[0]}</title>{refs}", {}) if url == FIRST else None
        title, text, other, line = (strings[(int(place) + version + step) % len(strings)] for step in range(4))
        line = " ".join(line.split())
        fields = {"x-said": line, "etag": f'"{line}"'}
        if "moved-" in url:
            return Sent("", {"location": quote(line, safe=":/<>'()"), **fields}, 302)
        if int(place) % 9 == 1:
            fields["content-type"] = f"text/html;charset={line}"
        elif int(place) % 9 == 2:
            fields["content-type"] = line or "text/html"
        body = f"<title>{title}</title><h1>{text}</h1><p>{WORD} {escape(text)}<p>{escape(other)}<p>{other}"
        return Sent(body, fields)

    robots = "".join(f"User-agent: {' '.join(text.split())}\nDisallow: /{text.split()}\n" for text in INJECTIONS)
    for version, again in ((0, None), (1, Recrawl(everything=True))):
        site = partial(answer, version=version)
        crawl_site(into, site, robots_txt=robots, recrawl=again, delay_s=0.0, index=True)
