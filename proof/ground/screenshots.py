"""Pictures of every page of the live page: python -m proof.ground.screenshots FOLDER

A simulated web is crawled, changes, is visited again, and is crawled further while the pictures are taken: of every
page, at 1280 and 400 pixels, light and dark. A page with pictures changes them and its elements between two visits.
Look at them after a change of the templates; some are in docs/pictures.
"""

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, urlsplit

from lycosa.api import Collection
from lycosa.crawl import is_crawled
from proof.ground.browser import Browser, browser
from proof.ground.commands import lycosa, run_command, scratch
from proof.ground.gallery import LAST, gallery
from proof.ground.servers import live_page, simulated_web

WIDTHS = (1280, 400)
WEB = ("--hosts", "40", "--pages", "20000", "--rtt", "80", "--rtt-spread", "0.8", "--time-scale", "200000")
TROUBLE = ("--trouble", "not-found=0.03", "--trouble", "error=0.02", "--trouble", "unavailable=0.2")
PAGES, BEFORE_PICTURES_S = 400, 20.0
HEIGHT, MOST_BELOW, SETTLE_S, LONGEST_S = 900, 1_500, 0.6, 120.0
WAITS = "!!document.querySelector('meta[http-equiv=refresh]')"


def collected(web_options: list[str], front: str, into: Path) -> None:
    """A collection with changes, an index and links."""
    words: list[str | Path] = ["--into", into, "--scope", "any", "--delay", "0.05", "--quiet", *web_options]
    run_command(lycosa("crawl", front, "--pages", str(PAGES), *words), may=3)
    run_command(lycosa("recrawl", into, "--all", "--quiet"), may=3)
    run_command(lycosa("index", into))


def pages_of(into: Path) -> dict[str, str]:
    """Every page by a name for its picture."""
    with Collection(into) as collection:
        changed = collection.changes(kinds=("text",), most=1)
        host = max(collection.hosts(), key=lambda each: each.pages).host
        copies = next(iter(collection.duplicates()), None)
    url = quote(changed[0].url if changed else f"{host}/")
    found = {name: f"/{name}" for name in ("hosts", "urls", "changes", "report", "graph", "settings", "log")}
    found |= {"overview": "/", "search": "/search?q=the", "host": f"/host?host={quote(host)}", "empty": "/hosts?q=none"}
    found |= {"linked-hosts": f"/graph?host={quote(host)}"}
    found |= {"url": f"/url?url={url}", "change": f"/change?url={url}", "neighbours": f"/graph?url={url}"}
    found |= {"copies": f"/copies?url={quote(copies.url)}"} if copies else {}
    return found


def take(page: Browser, link: str, pages: dict[str, str], folder: Path) -> None:
    """All pictures, and a line for each page that is wider than its window. What lies below the window is on a picture
    of its own."""
    at = urlsplit(link)
    page.open(link)
    for is_dark in (False, True):
        for width in WIDTHS:
            for name, path in pages.items():
                page.resize(width, HEIGHT, is_dark=is_dark)
                page.open(f"{at.scheme}://{at.netloc}{path}", settle_s=SETTLE_S)
                page.wait(lambda: not page.evaluate(WAITS), LONGEST_S)  # for what the page makes beside it
                page.settle(SETTLE_S)
                picture = f"{name}-{width}-{'dark' if is_dark else 'light'}"
                page.screenshot(folder / f"{picture}.png")
                if (wide := page.evaluate("document.documentElement.scrollWidth")) > width:
                    print(f"{name} is {wide} wide at {width}")
                if (below := page.evaluate("document.documentElement.scrollHeight") - HEIGHT) > 0:
                    page.resize(width, HEIGHT + min(below, MOST_BELOW), is_dark=is_dark)
                    page.settle(SETTLE_S)
                    page.screenshot(folder / f"{picture}-whole.png")
    for problem in page.problems:
        print(problem)
    page.problems.clear()


@contextlib.contextmanager
def running(*words: str | Path, into: Path) -> Iterator[None]:
    """A crawl that runs meanwhile."""
    crawl = subprocess.Popen(lycosa("crawl", *words, "--into", into, "--quiet"), stderr=subprocess.DEVNULL)
    try:
        while crawl.poll() is None and not is_crawled(into):  # shards take their time to start
            time.sleep(0.2)
        time.sleep(BEFORE_PICTURES_S)  # so that charts have something to show
        yield
    finally:
        crawl.terminate()
        crawl.wait(timeout=60)


def changed_gallery(into: Path) -> str:
    """A collection of a page whose pictures and elements have changed; returns the URL of the page."""
    with gallery() as site:
        words = ("--into", into, "--images", "--delay", "0", "--quiet")
        run_command(lycosa("crawl", site.url, *words), may=3)
        for site.version in range(2, LAST + 1):
            run_command(lycosa("recrawl", into, "--all", "--quiet"), may=3)
        return site.url


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    with scratch() as work, simulated_web(work / "web.jsonl", *WEB, *TROUBLE) as web, browser() as page:
        into = work / "my-crawl"
        collected(web.options(), web.front_page(), into)
        with running("--pages", "20000", "--delay", "1", into=into), live_page(into) as served:
            take(page, served.link, pages_of(into), folder)
        with live_page(into) as served:
            take(page, served.link, {"at-rest": "/"}, folder)
        changed = changed_gallery(work / "gallery")
        with live_page(work / "gallery") as served:
            take(page, served.link, {"pictures": f"/change?url={quote(changed)}"}, folder)
        shards = work / "my-shards"
        words = (web.front_page(), "--scope", "any", "--delay", "0.2", "--workers", "2")
        with running(*words, *web.options(), into=shards), live_page(shards) as served:
            take(page, served.link, {"shards-overview": "/", "shards": "/shards"}, folder)


if __name__ == "__main__":
    main()
