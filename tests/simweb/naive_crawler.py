"""The simplest crawler that is correct, over sockets: one connection a host, no politeness, standard library only."""

import http.client
import re
from urllib.parse import urldefrag, urljoin, urlsplit

HREF = re.compile(r'<a href="([^"]*)"')


def crawl(seeds: list[str], port: int, *, scope: str) -> set[str]:
    """The URLs of all pages (200, HTML) found from `seeds` in scope `host` or `any`."""
    lines: dict[str, http.client.HTTPConnection] = {}
    robots: dict[str, list[tuple[bool, re.Pattern[str]]]] = {}

    def get(host: str, path: str) -> tuple[int, str, str]:
        line = lines.setdefault(host, http.client.HTTPConnection("127.0.0.1", port, timeout=30))
        line.request("GET", path, headers={"Host": f"{host}:{port}"})
        response = line.getresponse()
        return response.status, response.getheader("Location", ""), response.read().decode("utf-8", "replace")

    def rules(host: str) -> list[tuple[bool, re.Pattern[str]]]:
        status, _, text = get(host, "/robots.txt")
        found = re.findall(r"^(Allow|Disallow): (\S+)$", text.partition("User-agent: badbot")[0], re.MULTILINE)
        patterns = sorted(
            ((p, kind == "Allow") for kind, p in found if status == 200), key=lambda r: (-len(r[0]), not r[1])
        )
        return [(ok, re.compile(re.escape(p).replace(r"\*", ".*").replace(r"\$", "$"))) for p, ok in patterns]

    home = {urlsplit(seed).hostname for seed in seeds}
    known, queue, pages = set(seeds), list(seeds), set()
    while queue:
        url = queue.pop()
        host, path = urlsplit(url).hostname or "", urlsplit(url).path or "/"
        if host not in robots:
            robots[host] = rules(host)
        if not next((ok for ok, pattern in robots[host] if pattern.match(path)), True):
            continue
        status, location, text = get(host, path)
        if status == 200:
            pages.add(url)
        for href in [location] if status == 301 else HREF.findall(text) if status == 200 else []:
            link = urldefrag(urljoin(url, href)).url
            if link not in known and (scope == "any" or urlsplit(link).hostname in home):
                known.add(link)
                queue.append(link)
    return pages
