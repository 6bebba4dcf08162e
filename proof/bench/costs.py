"""What a page costs, piece by piece, in microseconds of CPU: analysis, links, robots.txt, sitemaps, WARC records.

The floor of the analysis is what nobody can do without: parse the page, select its anchors, read their addresses. Pages
are real documentation, links those of a documentation page. The best of several rounds counts. `profile` shows where
the time of a whole crawl goes.
"""

import random
from collections.abc import Callable
from pathlib import Path

from selectolax.lexbor import LexborHTMLParser

from lycosa import Collection
from lycosa.records import Request, Response
from lycosa.simweb import SimSettings, SimWeb
from lycosa.store import response_exchange
from lycosa.store.warc_file import WarcWriter
from lycosa.store.warc_read import WarcReader
from lycosa.web import analyse_page, read_sitemap, robots, run_steps, scope, url
from proof import Bar, Experiment, Run
from proof.ground.commands import best_us, scratch
from proof.ground.memory_crawl import crawl
from proof.ground.sites import POSTGRESQL

PAGES, QUICK_PAGES = 300, 50
RECORDS, QUICK_RECORDS = 2_000, 200
ROUNDS = 7
PAGE_BYTES = 26_000
BASE = "https://docs.example.org/library/section/page.html"
ROBOTS = b"""User-agent: *
Disallow: /admin/
Allow: /admin/public.php
Disallow: /cgi-bin/
Disallow: /search
Disallow: /*?session=
Crawl-delay: 2
"""


def measure(run: Run) -> None:
    costs: list[tuple[str, float]] = []

    def cost(name: str, work: Callable[[], object], count: int) -> float:
        costs.append((name, best_us(work, count, rounds=ROUNDS)))
        return costs[-1][1]

    count, records = (QUICK_PAGES, QUICK_RECORDS) if run.quick else (PAGES, RECORDS)
    _analysis(run, cost, count)
    _links(cost)
    _records(run, cost, records)
    _pages(run, cost)
    run.table(["what", "µs"], costs)


Cost = Callable[[str, Callable[[], object], int], float]


def _analysis(run: Run, cost: Cost, count: int) -> None:
    files = sorted(POSTGRESQL.folder().rglob("*.html"))
    bodies = [path.read_bytes() for path in random.Random(1).sample(files, min(count, len(files)))]
    run.setting("mean bytes of a page", round(sum(map(len, bodies)) / len(bodies)))

    def floor() -> None:
        for body in bodies:
            [node.attrs["href"] for node in LexborHTMLParser(body).css("a[href]")]

    def whole() -> None:
        for body in bodies:
            analyse_page(body, url="http://host.example/", content_type="text/html")

    lowest, total = (
        cost("floor of the analysis, a page", floor, len(bodies)),
        cost("analysis, a page", whole, len(bodies)),
    )
    run.figure("analysis beside its floor", total / lowest, "×")
    run.figure("analysis of a page", total, "µs")


def page_hrefs(page: int) -> list[str]:
    """67 links as on a documentation page: navigation, neighbours, anchors within the page, a few leading out."""
    navigation = [f"/chapter-{number}/index.html" for number in range(15)] * 2
    neighbours = [f"../section-{page}/topic-{number}.html" for number in range(12)]
    anchors = [f"#part-{number}" for number in range(12)] + [f"topic-{number}.html#example" for number in range(6)]
    outside = [f"https://www.example{number}.com/a/b?c={page}" for number in range(7)]
    return navigation + neighbours + anchors + outside


def _links(cost: Cost) -> None:
    pages = [page_hrefs(page) for page in range(200)]
    joined = [list(dict.fromkeys(url.join_map(BASE, hrefs).values())) for hrefs in pages]
    links = [link for page in joined for link in page]
    keys, parsed, seeds = (
        [url.url_key(link) for link in links],
        [url.split_url(link) for link in links],
        [url.split_url(BASE)],
    )
    cost("join_map, a href", lambda: [url.join_map(BASE, page) for page in pages], sum(map(len, pages)))
    cost("join_map, a page", lambda: [url.join_map(BASE, page) for page in pages], len(pages))
    cost("parse, a URL", lambda: [url.parse_url(link) for link in links], len(links))
    cost("split, a URL", lambda: [url.split_url(link) for link in links], len(links))
    cost("url_key, a URL", lambda: [url.url_key(link) for link in links], len(links))
    cost("from_key, a URL", lambda: [url.url_from_key(key) for key in keys], len(keys))
    shape = scope.ShapeFilter(scope.UrlLimits())
    filters: list[scope.UrlFilter] = [scope.Scope(scope.ScopeKind.DOMAIN, seeds), shape]
    cost("sift by domain and shape, a link", lambda: [scope.filter_urls(page, filters) for page in joined], len(links))
    rules = run_steps(robots.parse_robots_steps(ROBOTS, agent="Lycosa"))
    cost("robots allows, 5 rules", lambda: [rules.allows(link.path) for link in parsed], len(parsed))
    cost(
        "robots parse, 5 rules",
        lambda: [run_steps(robots.parse_robots_steps(ROBOTS, agent="Lycosa")) for _ in range(500)],
        500,
    )
    entry = "<url><loc>https://docs.example.org/{0}</loc><lastmod>2024-05-01T10:00:00Z</lastmod></url>"
    body = f"<urlset>{''.join(map(entry.format, range(20_000)))}</urlset>".encode()
    cost("sitemap read, a URL", lambda: read_sitemap(body, BASE), 20_000)


# WARC: request, response and metadata of a page


def made_page(size_bytes: int, number: int) -> bytes:
    """HTML that compresses about five times, as generated documentation does: much markup, few words."""
    choose = random.Random(number)
    words = ["".join(choose.choices("etaoinshrdlu", k=choose.randint(2, 9))) for _ in range(200)]
    rows, size = [], 0
    while size < size_bytes:
        name, other = choose.choice(words), choose.choice(words)
        rows.append(
            f'<tr class="alternate"><td class="first"><code><a href="{other}.html" title="class in {other}">{other}'
            f'</a></code></td>\n<th class="second" scope="row"><code><span class="member"><a href="#{name}">{name}</a>'
            f'</span>()</code></th>\n<td class="last"><div>{" ".join(choose.choices(words, k=8))}</div></td></tr>\n'
        )
        size += len(rows[-1])
    return "".join(rows).encode()[:size_bytes]


def fetched(size_bytes: int, number: int) -> tuple[Request, Response]:
    url = f"https://docs.example.org/api/java/util/page{number}.html?lang=en"
    sent = (("User-Agent", "lycosa (+https://example.org/bot)"), ("Accept", "*/*"), ("Accept-Encoding", "gzip, br"))
    body = made_page(size_bytes, number % 20)
    block = (
        b"HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nDate: Mon, 01 Jan 2024 00:00:00 GMT\r\n"
        b"Content-Type: text/html\r\nContent-Length: %d\r\nConnection: keep-alive\r\n"
        b'Last-Modified: Mon, 01 Jan 2024 00:00:00 GMT\r\nETag: "65920080-6590"\r\nAccept-Ranges: bytes\r\n\r\n'
    ) % len(body)
    request = Request(url=url, host="docs.example.org", port=443, address="192.0.2.1", headers=sent)
    return request, Response(url=url, status=200, header_block=block, body=body, address="192.0.2.1")


def build(fetches: list[tuple[Request, Response]]) -> list[list[bytes]]:
    metadata = {"fetchTimeMs": "120", "via": "https://docs.example.org/", "hopsFromSeed": "LL"}
    return [
        response_exchange(request, response, fetched_s=1.7e9, metadata=metadata).members
        for request, response in fetches
    ]


def read(path: Path) -> int:
    with WarcReader(path) as reader:
        return sum(len(record.block) for record in reader)


def _records(run: Run, cost: Cost, count: int) -> None:
    fetches = [fetched(PAGE_BYTES, number) for number in range(count)]
    built = build(fetches)
    with scratch() as folder:
        writer = WarcWriter(folder, info={"software": "lycosa"})
        writer.recover({})
        cost("WARC records built, a page", lambda: build(fetches), count)
        cost("WARC records appended, a page", lambda: [writer.append(members) for members in built], count)
        writer.close()
        cost("WARC records read, a page", lambda: read(writer.path(1)), count * ROUNDS)
    stored = sum(len(member) for members in built for member in members) / count
    run.figure(f"stored of {PAGE_BYTES:,} bytes", stored, "B")


def _pages(run: Run, cost: Cost) -> None:
    """Pages read back from a collection by their URLs, bodies and all."""
    web = SimWeb(SimSettings(hosts=2, pages=200))
    with scratch() as folder:
        done = crawl(web, folder / "crawl", f"{web.linker.origin(0)}/", mine="off")
        collection = Collection(folder / "crawl")
        read_us = cost(
            "page of a collection by its URL", lambda: [collection.get(u) for u in done.urls], len(done.urls)
        )
        collection.close()
    run.figure("pages read from a collection", 1e6 / read_us, "/s of CPU")


EXPERIMENT = Experiment(
    name="costs",
    summary="CPU of a page piece by piece: analysis beside its floor, links, robots.txt, WARC records",
    run=measure,
    bars=(Bar("a collection is read quickly", "pages read from a collection", ">=", 2_000),),
)
