"""What the web room costs, in microseconds of CPU time: `python -m proof.bench.web`. Best of several runs."""

from collections.abc import Callable
from time import process_time

from lycosa.web import robots, scope, sitemap, url

PAGES = 200
BASE = "https://docs.example.org/library/section/page.html"
ROBOTS = b"""User-agent: *
Disallow: /admin/
Allow: /admin/public.php
Disallow: /cgi-bin/
Disallow: /search
Disallow: /*?session=
Crawl-delay: 2
"""


def page_hrefs(page: int) -> list[str]:
    """67 links as on a documentation page: navigation, neighbours, anchors within the page, a few leading out."""
    navigation = [f"/chapter-{number}/index.html" for number in range(15)] * 2
    neighbours = [f"../section-{page}/topic-{number}.html" for number in range(12)]
    anchors = [f"#part-{number}" for number in range(12)] + [f"topic-{number}.html#example" for number in range(6)]
    outside = [f"https://www.example{number}.com/a/b?c={page}" for number in range(7)]
    return navigation + neighbours + anchors + outside


def microseconds(work: Callable[[], object], count: int) -> float:
    best = float("inf")
    for _ in range(7):
        started = process_time()
        work()
        best = min(best, process_time() - started)
    return best / count * 1e6


def main() -> None:
    pages = [page_hrefs(page) for page in range(PAGES)]
    joined = [url.join_all(BASE, hrefs) for hrefs in pages]
    links = [link for page in joined for link in page]
    hrefs = sum(map(len, pages))

    def report(name: str, work: Callable[[], object], count: int) -> None:
        print(f"{name:44} {microseconds(work, count):8.2f} µs")

    print(f"{hrefs / PAGES:.0f} hrefs and {len(links) / PAGES:.0f} distinct URLs a page")
    report("join_all, a page", lambda: [url.join_all(BASE, page) for page in pages], PAGES)
    report("join_all, a href", lambda: [url.join_all(BASE, page) for page in pages], hrefs)
    report("join_all, a distinct URL", lambda: [url.join_all(BASE, page) for page in pages], len(links))
    report("join_map, a page", lambda: [url.join_map(BASE, page) for page in pages], PAGES)
    report("parse", lambda: [url.parse_url(link) for link in links], len(links))
    report("split", lambda: [url.split_url(link) for link in links], len(links))
    report("url_key", lambda: [url.url_key(link) for link in links], len(links))
    keys = [url.url_key(link) for link in links]
    report("from_key", lambda: [url.url_from_key(key) for key in keys], len(keys))

    seeds = [url.split_url(BASE)]
    parsed = [url.split_url(link) for link in links]
    shape = scope.ShapeFilter(scope.UrlLimits())
    for kind in scope.ScopeKind:
        reach = scope.Scope(kind, seeds)
        report(f"scope {kind}, a link", lambda reach=reach: [reach.reason(link) for link in parsed], len(parsed))  # type: ignore[misc]
    report("shape filter, a link", lambda: [shape.reason(link) for link in parsed], len(parsed))
    filters: list[scope.UrlFilter] = [scope.Scope(scope.ScopeKind.DOMAIN, seeds), shape]
    report(
        "sift by domain and shape, a link", lambda: [scope.filter_urls(page, filters) for page in joined], len(links)
    )

    rules = robots.parse_robots(ROBOTS, agent="Lycosa")
    report("robots allows, 5 rules", lambda: [rules.allows(link.path) for link in parsed], len(parsed))
    report("robots parse, 5 rules", lambda: [robots.parse_robots(ROBOTS, agent="Lycosa") for _ in range(500)], 500)
    entry = "<url><loc>https://docs.example.org/{0}</loc><lastmod>2024-05-01T10:00:00Z</lastmod></url>"
    body = f"<urlset>{''.join(map(entry.format, range(20_000)))}</urlset>".encode()
    report("sitemap read, a URL", lambda: sitemap.read_sitemap(body, BASE), 20_000)


if __name__ == "__main__":
    main()
