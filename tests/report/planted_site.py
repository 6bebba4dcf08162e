"""A site with one planted case of each finding, and what a report has to say of it: that, and nothing else.

Two hosts: the site over https, and another one that it links to. A request takes a tenth of a second of virtual time,
or what `SLOW` says.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lycosa import Crawl
from lycosa.records import Failure, Request, Resolved, Response
from lycosa.simweb.memory import run_virtual

SITE, OTHER, GONE = "https://shop.example", "https://partner.example", "https://gone.example"
HOSTS = {"shop.example": "127.0.0.1", "partner.example": "127.0.0.2"}
SLOW = {"/slow": 3.5}
USUAL_S = 0.1
TYPES = {"xml": "application/xml", "txt": "text/plain", "css": "text/css", "png": "image/png", "js": "text/javascript"}


def page(
    name: str, *parts: str, head: str = "", title: str | None = None, about: str | None = None, h1: str = ""
) -> str:
    """A page without fault, but for what is passed in."""
    title = f"<title>{name} of the shop</title>" if title is None else title
    about = f"<meta name=description content='All about {name}.'>" if about is None else about
    words = " ".join(f"{name}{number}" for number in range(40))
    body = f"{h1 or f'<h1>{name}</h1>'}<p>{words}</p>{''.join(parts)}"
    return f"<html><head>{title}{about}{head}</head><body>{body}</body></html>"


def link(path: str, words: str = "see") -> str:
    return f"<p><a href='{path}'>{words}</a></p>"


def canonical(path: str) -> str:
    return f"<link rel=canonical href='{path}'>"


def alternates(*pairs: tuple[str, str]) -> str:
    return "".join(f"<link rel=alternate hreflang='{code}' href='{path}'>" for code, path in pairs)


LONG = f"<p>{' '.join(f'long{number}' for number in range(200))}</p>"  # enough to be compared by its text
LINKED = (
    "links moved chain loop private wide slow plain plain-copy untitled blank-title double-1 double-2 long-title"
    " undescribed double-about-1 double-about-2 long-about two-titles no-heading two-headings insecure pictures"
    " c-broken c-moved c-blocked c-noindex c-loop-1 c-loop-2 c-chain c-middle c-two noindex-elsewhere noindex"
    " canonical-home copy-with-canonical styled drawn de en fr it level-1 listed-moved to-broken near-1 near-2"
    " private-listed"
).split()
PAGES: dict[str, str | int | tuple[int, str]] = {
    "/": page("home", *(link(f"/{path}", f"the {path}") for path in LINKED)),
    "/links": page(
        "links",
        link("/missing", "our offers"),
        link("/missing", "our offers"),
        link("/fails"),
        link(f"{OTHER}/", "partner"),
        link(f"{OTHER}/missing", "their offers"),
        link(f"{GONE}/", "a closed shop"),
    ),
    "/missing": 404,
    "/fails": 410,
    "/moved": (301, "/plain"),
    "/chain": (301, "/chain-2"),
    "/chain-2": (302, "/plain"),
    "/loop": (301, "/loop-2"),
    "/loop-2": (301, "/loop"),
    "/to-broken": (301, "/missing"),
    "/listed-moved": (301, "/plain"),
    "/plain": page("plain"),
    "/plain-copy": page("plain"),
    "/canonical-home": page("canonical-home", head=canonical("/canonical-home")),
    "/copy-with-canonical": page("canonical-home", head=canonical("/canonical-home")),
    "/orphan": page("orphan"),
    "/listed-broken": 404,
    "/noindex": page("noindex", head="<meta name=robots content=noindex>"),
    "/untitled": page("untitled", title=""),
    "/blank-title": page("blank", title="<title> </title>"),
    "/double-1": page("double1", title="<title>Twice</title>"),
    "/double-2": page("double2", title="<title>Twice</title>"),
    "/long-title": page("long", title=f"<title>{'word ' * 20}end</title>"),
    "/undescribed": page("undescribed", about=""),
    "/double-about-1": page("about1", about="<meta name=description content='Said twice.'>"),
    "/double-about-2": page("about2", about="<meta name=description content='Said twice.'>"),
    "/long-about": page("longabout", about=f"<meta name=description content='{'words ' * 40}'>"),
    "/two-titles": page("two", head="<title>Second</title>"),
    "/no-heading": page("headless", h1="<h2>only this</h2>"),
    "/two-headings": page("twoheads", h1="<h1>one</h1><h1>two</h1>"),
    "/wide": page("wide", "<p>" + "x" * 1_000_001 + "</p>"),
    "/slow": page("slow"),
    "/insecure": page("insecure", f"<script src='http://shop.example/old.js'></script>{link('http://shop.example/')}"),
    "/pictures": page("pictures", "<img src=/a.png><img src=/b.png alt=''>"),
    "/a.png": "picture a",
    "/b.png": "picture b",
    "/old.js": "run()",
    "/styled": page("styled", head="<link rel=stylesheet href=/site.css><link rel=stylesheet href=/gone.css>"),
    "/site.css": "@font-face { src: url(/gone.woff) } p { background: url(/a.png) }",
    "/drawn": page("drawn", "<img src=/gone.png alt=drawn>", head="<link rel=stylesheet href=/gone.css>"),
    "/gone.css": 404,
    "/gone.png": 404,
    "/gone.woff": 410,
    "/c-broken": page("cbroken", head=canonical("/missing")),
    "/c-moved": page("cmoved", head=canonical("/moved")),
    "/c-blocked": page("cblocked", head=canonical("/private")),
    "/c-noindex": page("cnoindex", head=canonical("/noindex")),
    "/c-loop-1": page("cloop1", head=canonical("/c-loop-2")),
    "/c-loop-2": page("cloop2", head=canonical("/c-loop-1")),
    "/c-chain": page("cchain", head=canonical("/c-middle")),
    "/c-middle": page("cmiddle", head=canonical("/plain-end")),
    "/plain-end": page("plainend"),
    "/c-two": page("ctwo", head=canonical("/c-two") + canonical("/plain-end")),
    "/noindex-elsewhere": page("both", head=canonical("/plain-end") + "<meta name=robots content=noindex>"),
    "/de": page(
        "de", head=alternates(("de", "/de"), ("en", "/en"), ("en-uk", "/en"), ("fr", "/fr"), ("it", "/gone-it"))
    ),
    "/en": page("en", head=alternates(("en", "/en"), ("de", "/de"))),
    "/fr": page("fr", head=alternates(("fr", "/fr"))),
    "/it": page("it", head=alternates(("de", "/de"))),
    "/gone-it": 404,
    **{f"/level-{n}": page(f"level{n}", link(f"/level-{n + 1}")) for n in range(1, 6)},
    "/level-6": page("level6"),
    "/near-1": page(
        "near", f"{LONG}<p>one more</p>", title="<title>Near 1</title>", about="<meta name=description content=N1>"
    ),
    "/near-2": page(
        "near", f"{LONG}<p>one other</p>", title="<title>Near 2</title>", about="<meta name=description content=N2>"
    ),
}  # fmt: skip
LISTED = "orphan listed-broken listed-moved noindex private-listed c-broken plain plain-end canonical-home".split()
SITEMAP = "".join(f"<url><loc>{SITE}/{path}</loc></url>" for path in LISTED)
ROBOTS = f"User-agent: *\nDisallow: /private\nSitemap: {SITE}/sitemap.xml\n"


def expected(site: str = SITE) -> dict[str, set[tuple[str, str]]]:
    """What is wrong: finding → pages, each with the other URL that it is about, where there is one."""

    def own(*paths: str) -> set[tuple[str, str]]:
        return {(f"{site}/{path}", "") for path in paths}

    def pairs(*found: tuple[str, str]) -> set[tuple[str, str]]:
        return {(f"{site}/{path}", target if "://" in target else f"{site}/{target}") for path, target in found}

    return {
        "broken-links": pairs(("links", "missing"), ("links", "fails")),
        "broken-external-links": pairs(("links", f"{OTHER}/missing"), ("links", f"{GONE}/")),
        "broken-requisites": pairs(
            ("styled", "gone.css"), ("drawn", "gone.css"), ("drawn", "gone.png"), ("site.css", "gone.woff")
        ),
        "redirect-loops": own("loop", "loop-2"),
        "redirects-to-broken": pairs(("to-broken", "missing")),
        "redirect-chains": own("chain"),
        "redirected-links": pairs(*(("", path) for path in ("moved", "chain", "loop", "to-broken", "listed-moved")))
        | pairs(("insecure", "http://shop.example/")),
        "orphans": own("orphan", "plain-end"),
        "deep-pages": own("level-6"),
        "blocked-links": pairs(("", "private"), ("", "private-listed")),
        "sitemap-blocked": own("private-listed"),
        "sitemap-broken": own("listed-broken"),
        "sitemap-redirects": pairs(("listed-moved", "plain")),
        "sitemap-noindex": own("noindex"),
        "sitemap-not-canonical": pairs(("c-broken", "missing")),
        "canonical-broken": pairs(("c-broken", "missing")),
        "canonical-redirect": pairs(("c-moved", "moved")),
        "canonical-blocked": pairs(("c-blocked", "private")),
        "canonical-noindex": pairs(("c-noindex", "noindex")),
        "canonical-loop": own("c-loop-1", "c-loop-2"),
        "canonical-chain": pairs(("c-chain", "c-middle")),
        "several-canonicals": own("c-two"),
        "noindex-canonical": pairs(("noindex-elsewhere", "plain-end")),
        "duplicate-pages": pairs(("plain", "plain"), ("plain-copy", "plain")),
        "near-duplicates": pairs(("near-1", "near-1"), ("near-2", "near-1")),
        "missing-titles": own("untitled", "blank-title"),
        "duplicate-titles": own("double-1", "double-2"),
        "long-titles": own("long-title"),
        "missing-descriptions": own("undescribed"),
        "duplicate-descriptions": own("double-about-1", "double-about-2"),
        "long-descriptions": own("long-about"),
        "several-titles": own("two-titles"),
        "missing-h1": own("no-heading"),
        "several-h1": own("two-headings"),
        "large-pages": own("wide"),
        "slow-pages": own("slow"),
        "mixed-content": pairs(("insecure", "http://shop.example/old.js")),
        "images-without-alt": own("pictures"),
        "hreflang-invalid": pairs(("de", "en")),
        "hreflang-broken": pairs(("de", "gone-it")),
        "hreflang-no-return": pairs(("de", "fr"), ("it", "de")),
        "hreflang-no-self": own("it"),
    }


class PlantedSite:
    """Resolver and downloader of the two hosts."""

    def __init__(self, pages: Mapping[str, Any] = PAGES) -> None:
        self._pages, self._loop = pages, asyncio.get_running_loop()

    async def resolve(self, name: str) -> Resolved:
        if name not in HOSTS:
            return Resolved(name, failure=Failure.NO_SUCH_HOST)
        return Resolved(name, addresses=(HOSTS[name],), ttl_s=9_999.0)

    def flush(self) -> None: ...

    def start(self, request: Request, done: Any) -> None:
        url = request.url.replace("http://", "https://")
        path = url.removeprefix(SITE)
        found: Any = self._pages.get(path, 404)
        if url.startswith(OTHER):
            found = page("partner") if url == f"{OTHER}/" else 404
        elif path in ("/robots.txt", "/sitemap.xml"):
            found = ROBOTS if path == "/robots.txt" else f"<urlset>{SITEMAP}</urlset>"
        if request.url.startswith("http://"):
            found = (301, url)
        fields = {"content-type": TYPES.get(path.rpartition(".")[2], "text/html")}
        status, body = (200, found) if isinstance(found, str) else (found if isinstance(found, int) else found[0], "")
        if isinstance(found, tuple):
            fields["location"] = found[1]
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        took_s = SLOW.get(path, USUAL_S)
        answer = Response(
            request.url,
            status=status,
            header_block=f"HTTP/1.1 {status} OK\r\n{lines}\r\n".encode(),
            headers=fields,
            body=body.encode(),
            started_s=self._loop.time(),
            ended_s=self._loop.time() + took_s,
        )
        self._loop.call_later(took_s, lambda: done(answer))

    def cancel_all(self) -> None: ...

    async def close(self) -> None: ...


def crawl_planted(into: Path, planted: Mapping[str, Any] = PAGES, **settings: Any) -> None:
    """Crawls the site to the end, with the links to the other hosts."""
    options = {
        "allow_private": ["127.0.0.0/8"],
        "mine": "off",
        "tables": "off",
        "scope": "any",
        "delay_s": 0.0,
        **settings,
    }

    async def main() -> None:
        site = PlantedSite(planted)
        now = asyncio.get_running_loop().time
        async with Crawl(f"{SITE}/", into=into, downloader=site, resolver=site, now=now, **options) as crawl:
            await crawl.finish()

    run_virtual(main())
