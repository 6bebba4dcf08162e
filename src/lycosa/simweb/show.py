"""A page of the simulated web for the eye: one summary, without running a server."""

import re

import msgspec

from lycosa.simweb.layout import Place
from lycosa.simweb.web import SimWeb

_TITLE = re.compile(rb"<title>(.*?)</title>")
_HREF = re.compile(rb'<a href="([^"]*)"')
LINKS_SHOWN = 4


class Summary(msgspec.Struct, frozen=True):
    """What a page answers, shortened."""

    url: str
    status: int
    content_type: str
    body: bytes

    def __str__(self) -> str:
        title = _TITLE.search(self.body)
        links = [href.decode() for href in _HREF.findall(self.body)]
        lines = [f"{self.status} {self.url}", f"    {self.content_type}, {len(self.body):,} bytes"]
        if title:
            lines.append(f"    {title[1].decode()}")
        if links:
            lines.append(f"    {len(links)} links: {'  '.join(links[-LINKS_SHOWN:])}  …")
        return "\n".join(lines)


def summary(web: SimWeb, url: str) -> Summary:
    """What the web answers for a URL at time 0."""
    answer = web.answer(*web.address_of(url))
    return Summary(url, answer.status, answer.content_type, answer.body)


def few_pages(web: SimWeb) -> list[str]:
    """A front page, an article, a member of a series and a robots.txt, where they exist."""
    urls = [f"{web.linker.origin(0)}/", f"{web.linker.origin(0)}/robots.txt"]
    for host in range(min(3, web.settings.hosts)):
        folder = web.layout.folder(host, 0)
        if folder.articles:
            urls.append(web.url(Place(host, 0, 1)))
        if folder.series:
            urls.append(web.url(Place(host, 0, folder.articles + 1)))
    return urls
