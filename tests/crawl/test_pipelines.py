"""Pipelines: parts that see each page before it is kept, add fields or drop it."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lycosa import Collection, Crawl
from lycosa.crawl import PipelinePage, Recrawl
from lycosa.errors import PartError
from lycosa.inspect import explain_url, open_to_read
from lycosa.records import Family
from lycosa.settings import CrawlSettings
from lycosa.simweb.memory import run_virtual
from lycosa.store import bucket_rows
from lycosa.web import BUCKET_BYTES, url_key
from tests.crawl.small_site import FIRST, Sent, SmallSite, crawl_site, links

SITE: dict[str, Any] = {
    FIRST: f"<title>Home</title><p class=price>1.50</p>{links('a', 'thin', 'copy')}",
    f"{FIRST}a": "<title>A</title><p class=price>20</p><main><p>A page of some words.</p></main>",
    f"{FIRST}thin": f"<title>Thin</title>{links('behind')}",
    f"{FIRST}copy": "<title>A</title><p class=price>20</p><main><p>A page of some words.</p></main>",
    f"{FIRST}behind": "<title>Behind</title><p class=price>0</p>",
}
FIELDS = {"price": ".price"}


def cents(page: PipelinePage) -> None:
    if page.fields["price"] is not None:
        page.fields["cents"] = round(100 * float(page.fields["price"]))


def drop_thin(page: PipelinePage) -> None:
    if page.title == "Thin":
        page.drop("too thin")


def named(settings: CrawlSettings) -> Callable[[PipelinePage], None]:
    assert settings.fields
    return cents


def named_drop(settings: CrawlSettings) -> Callable[[PipelinePage], None]:
    return drop_thin


def stored(into: Path) -> dict[str, dict[str, Any]]:
    with Collection(into) as collection:
        return {page.url.removeprefix(FIRST): dict(page.fields) for page in collection}


def said_of(into: Path, path: str) -> list[str]:
    with open_to_read(into) as collection:
        return explain_url(collection, FIRST + path)


@pytest.mark.parametrize("threads", [0, 2])
def test_fields_of_a_pipeline_are_kept_and_those_of_selectors_computed(tmp_path: Path, threads: int) -> None:
    _, stats = crawl_site(tmp_path / "c", SITE.get, fields=FIELDS, pipelines=[cents], threads=threads)
    assert stats.pages == 5
    assert stored(tmp_path / "c") == {
        "": {"price": "1.50", "cents": 150},
        "a": {"price": "20", "cents": 2000},
        "behind": {"price": "0", "cents": 0},
        "copy": {"price": "20", "cents": 2000},  # a copy is a page, too
        "thin": {"price": None},
    }
    with open_to_read(tmp_path / "c") as collection:
        rows = [packed for _, packed in collection.state.walk(Family.PAGE)]
    assert not any(b"price" in row for row in rows), "what can be computed is not stored"


@pytest.mark.parametrize("threads", [0, 1])
def test_dropped_page_is_counted_explained_and_not_followed(tmp_path: Path, threads: int) -> None:
    asked, stats = crawl_site(tmp_path / "c", SITE.get, pipelines=[drop_thin], threads=threads)
    assert f"{FIRST}behind" not in asked
    assert (stats.pages, stats.dropped) == (3, {"by-pipeline": 1})
    assert stats.known == stats.pages + sum(stats.dropped.values()) + stats.queued
    assert set(stored(tmp_path / "c")) == {"", "a", "copy"}
    said = said_of(tmp_path / "c", "thin")
    assert said[1].startswith("dropped: by-pipeline")
    assert said[2] == "a pipeline dropped it: too thin"
    again, stats = crawl_site(tmp_path / "c", SITE.get, pipelines=[drop_thin])
    assert again == []


def test_links_of_a_dropped_page_are_followed_if_the_pipeline_says_so(tmp_path: Path) -> None:
    def drop(page: PipelinePage) -> None:
        if page.title == "Thin":
            page.drop("too thin", follow=True)

    asked, _ = crawl_site(tmp_path / "c", SITE.get, pipelines=[drop])
    assert f"{FIRST}behind" in asked
    assert set(stored(tmp_path / "c")) == {"", "a", "copy", "behind"}


def test_links_of_a_large_page_wait_for_the_pipelines(tmp_path: Path) -> None:
    """The many links of a page are admitted before it is kept, but not those of a page that is dropped."""
    many = f"<title>Thin</title>{links(*(f'n{n}' for n in range(2_000)))}"
    for pipelines, known in (([drop_thin], 1), ([], 2_001)):
        into = tmp_path / str(known)
        _, stats = crawl_site(into, {FIRST: many}.get, pipelines=pipelines, pages=1, robots=False)
        assert stats.known == known


def test_pipelines_see_a_page_in_their_order_until_one_drops_it(tmp_path: Path) -> None:
    seen: list[str] = []
    first, last = (lambda page: seen.append(f"1 {page.title}")), (lambda page: seen.append(f"3 {page.title}"))
    crawl_site(tmp_path / "c", SITE.get, pipelines=[first, drop_thin, last])
    assert seen[:2] == ["1 Home", "3 Home"]
    assert "1 Thin" in seen
    assert "3 Thin" not in seen


def test_named_pipelines_are_kept_in_the_settings(tmp_path: Path) -> None:
    crawl_site(tmp_path / "c", SITE.get, fields=FIELDS, pipelines=["tests.crawl.test_pipelines:named"], pages=1)
    assert stored(tmp_path / "c")[""] == {"price": "1.50", "cents": 150}
    crawl_site(tmp_path / "c", SITE.get, pages=10)
    assert stored(tmp_path / "c")["a"]["cents"] == 2000


def test_other_pipelines_look_again_at_what_those_before_dropped(tmp_path: Path) -> None:
    module = "tests.crawl.test_pipelines:"
    crawl_site(tmp_path / "c", SITE.get, pipelines=[f"{module}named_drop"], fields=FIELDS)
    asked, stats = crawl_site(tmp_path / "c", SITE.get, settings=None, pipelines=[f"{module}named"])
    assert asked == [f"{FIRST}thin", f"{FIRST}behind"]
    assert (stats.pages, sum(stats.dropped.values())) == (5, 0)


@pytest.mark.parametrize(
    ("pipeline", "says"),
    [
        (lambda page: 1 / 0, "failed on http://127.0.0.1:9/: ZeroDivisionError"),
        (lambda page: page.fields.update(x=object()), "gave a field of http://127.0.0.1:9/ that cannot be kept"),
        (lambda page: page.fields.update({1: 2}), "gave a field of http://127.0.0.1:9/ that cannot be kept"),
        (lambda page: page.fields.update(x="y" * 70_000), "fields of 70,008 bytes, where 65,536 can be kept"),
    ],
)
def test_what_a_pipeline_must_not_do_ends_the_crawl_with_a_sentence(
    tmp_path: Path, pipeline: Callable[[PipelinePage], object], says: str
) -> None:
    pipeline.__qualname__ = "prices"
    with pytest.raises(PartError) as ended:
        crawl_site(tmp_path / "c", SITE.get, pipelines=[pipeline])
    assert says in str(ended.value)
    assert "the pipeline prices" in str(ended.value)
    _, stats = crawl_site(tmp_path / "c", SITE.get)
    assert stats.pages == 5, "nothing is lost: the next run asks again"


def test_pipeline_that_is_not_there_is_named_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(PartError, match="the pipeline 'no_such:part' cannot be imported"):
        crawl_site(tmp_path / "c", SITE.get, pipelines=["no_such:part"])
    assert not (tmp_path / "c").exists()


def test_what_a_pipeline_sees_of_a_page(tmp_path: Path) -> None:
    seen: list[PipelinePage] = []
    html = (
        "<html lang=en><title>T</title><meta name=author content=Ada><nav>menu</nav>"
        f"<main><p>Main words.</p>{links('a')}</main>"
    )
    crawl_site(tmp_path / "c", {FIRST: Sent(html, {"x-note": "n"})}.get, pipelines=[seen.append], pages=1)
    (page,) = seen
    assert (page.url, page.status, page.content_type, page.language) == (FIRST, 200, "text/html", "en")
    assert (page.headers["x-note"], page.body, page.metadata.author) == ("n", html.encode(), "Ada")
    assert page.links == (f"{FIRST}a",)
    assert page.text.startswith("Main words.")
    assert page.fields == {}


def test_crawled_page_has_fields_of_selectors_and_pipelines(tmp_path: Path) -> None:
    async def main() -> dict[str, dict[str, Any]]:
        now, site = asyncio.get_running_loop().time, SmallSite(SITE.get)
        options: dict[str, Any] = {"allow_private": ["127.0.0.0/8"], "mine": "off", "sitemaps": False, "tables": "off"}
        crawl = Crawl(FIRST, into=tmp_path / "c", downloader=site, now=now, fields=FIELDS, pipelines=[cents], **options)
        return {page.url: page.fields async for page in crawl}

    found = run_virtual(main())
    assert found[FIRST] == {"price": "1.50", "cents": 150}
    assert found[f"{FIRST}copy"] == {"price": "20", "cents": 2000}


def test_pages_dropped_move_with_their_host_to_another_shard(tmp_path: Path) -> None:
    crawl_site(tmp_path / "c", SITE.get, pipelines=[drop_thin])
    with open_to_read(tmp_path / "c") as collection:
        rows = list(bucket_rows(collection.state, url_key(FIRST)[:BUCKET_BYTES]))
    assert any(key.startswith(b"drop:") and value == b"too thin" for _, key, value in rows)


# recrawls


def revisit(into: Path, site: dict[str, Any], days: float = 1, **options: Any) -> None:
    wall = time.time() + days * 86_400
    crawl_site(into, site.get, recrawl=Recrawl(everything=True), wall=lambda: wall, **options)


def test_recrawl_shows_changed_pages_to_pipelines_and_leaves_others_alone(tmp_path: Path) -> None:
    crawl_site(tmp_path / "c", SITE.get, fields=FIELDS, pipelines=[cents])
    seen: list[str] = []
    changed = {**SITE, f"{FIRST}a": "<title>A</title><p class=price>30</p><main><p>Quite other words now.</p></main>"}

    def watch(page: PipelinePage) -> None:
        seen.append(page.url)
        cents(page)

    revisit(tmp_path / "c", changed, pipelines=[watch])
    assert seen == [f"{FIRST}a"]
    assert stored(tmp_path / "c")["a"] == {"price": "30", "cents": 3000}
    assert stored(tmp_path / "c")[""] == {"price": "1.50", "cents": 150}


def test_recrawl_takes_a_page_out_that_a_pipeline_now_drops_and_back_when_it_does_not(tmp_path: Path) -> None:
    crawl_site(tmp_path / "c", SITE.get)
    changed = {**SITE, f"{FIRST}a": "<title>Thin</title><p>Hardly anything.</p>"}
    revisit(tmp_path / "c", changed, pipelines=[drop_thin])
    assert "a" not in stored(tmp_path / "c")
    assert any("dropped by a pipeline: too thin" in line for line in said_of(tmp_path / "c", "a"))
    with Collection(tmp_path / "c") as collection:
        assert collection.stats().pages == len(stored(tmp_path / "c"))
    back = {**SITE, f"{FIRST}a": "<title>Full</title><p>Something again, and quite a lot of it.</p>"}
    revisit(tmp_path / "c", back, days=2, pipelines=[drop_thin])
    assert "a" in stored(tmp_path / "c")


def test_recrawl_of_a_failed_url_whose_page_is_dropped_counts_it_once(tmp_path: Path) -> None:
    crawl_site(tmp_path / "c", {**SITE, f"{FIRST}thin": 404}.get)
    revisit(tmp_path / "c", SITE, pipelines=[drop_thin])
    with Collection(tmp_path / "c") as collection:
        stats = collection.stats()
        failed = [host.failed for host in collection.hosts()]
    assert (sum(stats.failed.values()), stats.dropped) == (0, {"by-pipeline": 1})
    assert failed == [0]
    assert "thin" not in stored(tmp_path / "c")
