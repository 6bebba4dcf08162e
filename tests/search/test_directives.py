"""What pages say to robots, in meta elements and headers, is obeyed by the index and by what a search shows."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from lycosa import Collection, Crawl
from lycosa.crawl.progress import Recrawl
from lycosa.inspect import explain_url, open_to_read
from lycosa.search import view as search_views
from lycosa.simweb.memory import run_virtual
from tests.crawl.small_site import FIRST, Sent, SmallSite, crawl_site, links

HOUR_S = 3_600
SOON = time.strftime("%d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + HOUR_S))
TEXT = "<p>A walnut tree in the garden."


def meta(content: str, name: str = "robots") -> str:
    return f'<meta name="{name}" content="{content}"><title>{content}</title>{TEXT}'


PAGES: dict[str, str | Sent] = {
    "plain": f"<title>plain</title>{TEXT}",
    "hidden": meta("nosnippet"),
    "hidden-by-header": Sent(f"<title>h</title>{TEXT} h", {"x-robots-tag": "nosnippet"}),
    "part": "<title>part</title><p>A walnut and <span data-nosnippet>a secret recipe</span> for cake.</p>",
    "part.xhtml": Sent(
        "<html xmlns='http://www.w3.org/1999/xhtml'><head><title>x</title><script src='s.js'/></head><body><p>A walnut"
        " <span data-nosnippet=''>secret</span> in XHTML.</p></body></html>",
        {"content-type": "application/xhtml+xml"},
    ),
    "kept": meta("noarchive"),
    "over": meta("unavailable_after: 2020-01-01"),
    "ends": meta(f"unavailable_after: {SOON}"),
    "ours": meta("noindex", "LYCOSA"),
    "others": meta("noindex", "otherbot"),
    "header": Sent(f"<title>z</title>{TEXT} z", {"x-robots-tag": "otherbot: nofollow, lycosa: noindex"}),
    "copy": Sent(f"<title>plain</title>{TEXT}", {"x-robots-tag": "noindex"}),
}
SITE: dict[str, str | Sent] = {FIRST: links(*PAGES), **{FIRST + name: page for name, page in PAGES.items()}}


@pytest.fixture(scope="module")
def into(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("directives") / "c"
    crawl_site(folder, SITE.get, depth=1)
    return folder


def found(into: Path, query: str = "walnut", **options: Any) -> dict[str, Any]:
    with Collection(into) as collection:
        results = collection.search(query, most=50, **options)
    assert results.total == len(results.results)
    return {result.url.removeprefix(FIRST): result for result in results.results}


def test_pages_that_ask_to_be_left_out_are_not_found(into: Path) -> None:
    results = found(into)
    assert results.keys() == PAGES.keys() - {"over", "ours", "header", "copy"}
    assert results["plain"].copies == 0


def test_page_is_not_found_any_more_once_it_is_unavailable(into: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Later:
        perf_counter, strftime, gmtime = time.perf_counter, time.strftime, time.gmtime

        @staticmethod
        def time() -> float:
            return time.time() + 2 * HOUR_S

    assert "ends" in found(into)
    monkeypatch.setattr(search_views, "time", Later)
    assert "ends" not in found(into)


def test_snippets_show_nothing_that_is_not_to_be_shown(into: Path) -> None:
    results = found(into)
    assert results["plain"].snippet == "A walnut tree in the garden."
    assert [results[name].snippet for name in ("hidden", "hidden-by-header")] == ["", ""]
    assert " ".join(results["part"].snippet.split()) == "A walnut and for cake."
    assert " ".join(results["part.xhtml"].snippet.split()) == "A walnut in XHTML."
    assert found(into, "recipe").keys() == {"part"}


def test_result_says_that_its_page_is_not_to_be_offered_as_a_copy(into: Path) -> None:
    assert [name for name, result in found(into).items() if result.noarchive] == ["kept"]
    with open_to_read(into) as collection:
        assert "says to robots: noarchive" in explain_url(collection, f"{FIRST}kept")


@pytest.mark.slow
@pytest.mark.parametrize("body", [f"<title>plain</title>{TEXT}", f"<!-- --><title>plain</title>{TEXT}"])
def test_header_that_comes_or_goes_while_the_content_stays_is_heeded(tmp_path: Path, body: str) -> None:
    crawl_site(tmp_path, {FIRST: f"<title>plain</title>{TEXT}"}.get)
    assert found(tmp_path).keys() == {""}
    for days, fields, expected in ((1, {"x-robots-tag": "noindex"}, set()), (2, {}, {""})):
        page, later_s = Sent(body, fields), time.time() + days * 24 * HOUR_S

        async def main(page: Sent = page, later_s: float = later_s) -> None:
            site, now = SmallSite({FIRST: page}.get), asyncio.get_running_loop().time
            order = Recrawl(everything=True)
            async with Crawl(into=tmp_path, downloader=site, now=now, wall=lambda: later_s, recrawl=order) as crawl:
                assert (await crawl.finish()).visits_changed == 0
            assert site.asked == [FIRST]

        run_virtual(main())
        assert found(tmp_path).keys() == expected
