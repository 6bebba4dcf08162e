"""`lycosa.Collection` and `lycosa.Crawl` as programs use them."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

import lycosa
from lycosa import Collection, Crawl, CrawledPage
from lycosa.api import collection as library
from lycosa.api import crawl as library_crawl
from lycosa.crawl import Recrawl
from lycosa.errors import NoPage, SettingsError
from lycosa.inspect import StoredPage, explain_url, open_to_read
from lycosa.recrawl import StoredDocuments
from lycosa.simweb import SimSettings, SimWeb
from lycosa.simweb.memory import run_virtual
from tests.crawl.memory_crawl import crawl, front
from tests.crawl.small_site import FIRST, SmallSite, crawl_site, links
from tests.recrawl.recrawl_world import BEGIN_S, DAY_S, wall_clock

SITE = {
    FIRST: "<link rel=stylesheet href=style.css><title>Home</title><nav>menu bar</nav><main><p>Solar heat.</p>"
    f"<img src=roof.png>{links('a', 'b')}<a rel=nofollow href=secret>no</a></main>",
    f"{FIRST}a": "<title>A</title><nav>menu bar</nav><main><p>A page of some words.</p></main>",
    f"{FIRST}b": "<title>A</title><nav>menu bar</nav><main><p>A page of some words.</p></main>",
}


def small_crawl(into: Path, site: dict[str, str] = SITE, **settings: Any) -> Crawl:
    now = asyncio.get_running_loop().time
    options = {"allow_private": ["127.0.0.0/8"], "mine": "off", "sitemaps": False, "tables": "off", **settings}
    return Crawl(FIRST, into=into, downloader=SmallSite(site.get), now=now, **options)


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    into = tmp_path_factory.mktemp("library") / "c"
    web = SimWeb(SimSettings(hosts=3, pages=250, seed=3))
    crawl(web, into, front(web), delay_s=0.0)
    return into


def test_collection_is_opened_once_for_any_number_of_questions(crawled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Path] = []

    def counted(path: Path) -> Any:
        opened.append(path)
        return open_to_read(path)

    monkeypatch.setattr(library, "open_to_read", counted)
    with Collection(crawled) as collection:
        pages = list(collection)
        assert len(pages) == collection.stats().pages > 100
        assert len({page.url for page in pages}) == len(pages)
        for page in pages[:20]:
            assert collection.get(page.url).body == page.body
            assert collection.links(page.url).url == page.url
    assert len(opened) == 1


def test_open_collection_sees_what_a_crawl_adds(tmp_path: Path) -> None:
    crawl_site(tmp_path, SITE.get, depth=0)
    collection = Collection(tmp_path)
    assert [page.url for page in collection] == [FIRST]
    assert collection.links(f"{FIRST}a").pages_in == 1
    with pytest.raises(NoPage, match="holds no page"):
        collection.get(f"{FIRST}a")
    crawl_site(tmp_path, {**SITE, f"{FIRST}b": links("a")}.get, depth=1)
    assert collection.get(f"{FIRST}a").title == "A"
    assert collection.links(f"{FIRST}a").pages_in == 2
    assert len(list(collection)) == collection.stats().pages == 3
    collection.close()


def test_iterating_a_crawl_without_a_block_runs_it_to_its_end(tmp_path: Path) -> None:
    async def main() -> list[str]:
        return [page.url async for page in small_crawl(tmp_path)]

    assert sorted(run_virtual(main())) == sorted(SITE)
    assert Collection(tmp_path).stats().queued == 0


def test_leaving_the_iteration_of_a_crawl_closes_it(tmp_path: Path) -> None:
    async def main() -> str:
        async for page in small_crawl(tmp_path):
            return page.url
        raise AssertionError

    assert run_virtual(main()) == FIRST
    assert sum(1 for _ in Collection(tmp_path)) >= 1
    crawl_site(tmp_path, SITE.get)  # nobody holds its lock
    assert len(list(Collection(tmp_path))) == 3


def test_folder_of_a_crawl_that_is_being_left_is_said_to_be_open_in_this_process(tmp_path: Path) -> None:
    async def main() -> None:
        async for _ in small_crawl(tmp_path):
            break
        with pytest.raises(SettingsError, match=r"a crawl in this process .* closing it: await its end"):
            await small_crawl(tmp_path).__aenter__()

    run_virtual(main())


def test_crawl_without_seeds_makes_no_collection(tmp_path: Path) -> None:
    async def main(into: Path) -> None:
        async with Crawl(into=into) as crawl:
            await crawl.finish()

    with pytest.raises(SettingsError, match="nothing to start from: give a URL"):
        asyncio.run(main(tmp_path / "c"))
    assert not (tmp_path / "c").exists()


def test_page_that_a_collection_does_not_have_is_a_failed_lookup(crawled: Path) -> None:
    with Collection(crawled) as collection, pytest.raises(LookupError, match=r"holds no page http://unknown\.example/"):
        collection.get("http://unknown.example/")


def test_crawl_that_has_not_begun_says_how_to_begin(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="async with Crawl"):
        asyncio.run(Crawl(FIRST, into=tmp_path).finish())


def test_text_of_a_page_is_that_of_the_collection_and_a_duplicate_has_its_documents(tmp_path: Path) -> None:
    async def main() -> list[CrawledPage]:
        return [page async for page in small_crawl(tmp_path)]

    pages = {page.url: page for page in run_virtual(main())}
    assert pages[f"{FIRST}a"].text == pages[f"{FIRST}b"].text == "A page of some words."
    assert {pages[f"{FIRST}a"].duplicate_of, pages[f"{FIRST}b"].duplicate_of} == {"", f"{FIRST}a"}
    with lycosa.Collection(tmp_path) as collection:
        for url, page in pages.items():
            assert collection.get(url).text == page.text
            assert collection.get(url).title == page.title


def test_why_of_what_pages_name_but_nobody_follows(tmp_path: Path) -> None:
    crawl_site(tmp_path / "c", SITE.get)
    crawl_site(tmp_path / "bare", SITE.get, archive="none")
    with open_to_read(tmp_path / "c") as collection:
        said = {
            name: explain_url(collection, FIRST + name)[1] for name in ("style.css", "roof.png", "secret", "nothing")
        }
    assert said["style.css"] == f"not asked for: {FIRST} names it in <link rel=stylesheet>, which is not followed"
    assert (
        said["roof.png"]
        == f"not asked for: {FIRST} names it in <img>, and images are asked for with --images or --requisites only"
    )
    assert said["secret"] == f"not asked for: {FIRST} names it in <a rel=nofollow>, which is not followed"
    with open_to_read(tmp_path / "bare") as collection:  # keeps no bodies to look into
        assert explain_url(collection, f"{FIRST}style.css")[1] == said["nothing"]
    assert said["nothing"] == "not known: no page that was read links to it with a link that is followed"


def test_private_address_is_refused_when_it_is_added(tmp_path: Path) -> None:
    async def main() -> None:
        async with small_crawl(tmp_path, allow_private=["127.0.0.0/8"]) as running:
            assert running.add("http://127.0.0.2:9/x") == 1
            with pytest.raises(SettingsError, match=r"http://10\.1\.2\.3/ .* private use .* --allow-private"):
                running.add("http://10.1.2.3/")

    run_virtual(main())


def test_links_of_a_page_are_absolute_with_kind_and_words(tmp_path: Path) -> None:
    crawl_site(tmp_path, SITE.get)
    with lycosa.Collection(tmp_path) as collection:
        page = collection.get(FIRST)
        assert [(link.url, link.kind, link.anchor) for link in page.links] == [
            (f"{FIRST}a", "a", "a"),
            (f"{FIRST}b", "a", "b"),
        ]
        assert collection.get(f"{FIRST}a").links == ()
        stored, store = page.links, collection.store()
        from_body = StoredPage(FIRST, page.row, StoredDocuments(store), is_current=False)
        assert from_body.links == stored  # an earlier version has no row of its own


def test_versions_of_a_page_are_those_before_it_with_their_bodies(tmp_path: Path) -> None:
    said = ["<p>The first words.</p>", "<p>The second words are others.</p>", "<p>And the third.</p>"]
    for number, words in enumerate(said):
        recrawl = Recrawl(everything=True) if number else None
        with wall_clock(BEGIN_S + number * DAY_S):
            crawl_site(tmp_path, {FIRST: words}.get, recrawl=recrawl)
    with lycosa.Collection(tmp_path) as collection:
        page = collection.get(FIRST)
        assert page.is_current
        assert [version.body.decode() for version in page.versions] == said[:-1]
        assert [version.text for version in page.versions] == ["The first words.", "The second words are others."]
        assert not any(version.is_current for version in page.versions)
        assert len({page.digest, *(version.digest for version in page.versions)}) == 3
        assert page.versions[0].fetched <= page.versions[1].fetched <= page.fetched
        assert [version.body for version in page.versions[1].versions] == [said[0].encode()]


def test_what_is_no_collection_is_said_when_it_is_opened(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="there is no collection at"):
        lycosa.open(tmp_path / "nowhere")
    with pytest.raises(SettingsError, match="is not a collection"):
        lycosa.open(tmp_path)


def test_collection_counts_its_pages_and_knows_them(crawled: Path) -> None:
    with lycosa.open(crawled) as collection:
        pages = list(collection)
        assert len(collection) == len(pages)
        assert pages[0].url in collection
        assert "http://unknown.example/" not in collection
        assert "no URL at all" not in collection
        assert 7 not in collection


def test_hosts_reasons_and_changes_are_those_of_the_commands(tmp_path: Path) -> None:
    for number, words in enumerate(("before", "after <script>alert(1)</script>")):
        with wall_clock(BEGIN_S + number * DAY_S):
            crawl_site(tmp_path, {FIRST: f"<p>{words}"}.get, recrawl=Recrawl(everything=True) if number else None)
    with lycosa.open(tmp_path) as collection:
        assert [host.host for host in collection.hosts()] == [FIRST.rstrip("/")]
        assert collection.why(FIRST).says[0].startswith("done")
        assert str(collection.why(FIRST)).startswith(f"{FIRST}\n  done")
        assert collection.why(f"{FIRST}x").says[0].startswith("not known")
        changed = collection.changes()
        assert [(change.url, change.kind) for change in changed] == [(FIRST, "text")]
        assert collection.changes(since="2090-01-01") == ()
        with pytest.raises(SettingsError, match="since is 'soon': write 2h"):
            collection.changes(since="soon")
        assert "<script>" not in changed._repr_html_()
        assert FIRST in changed._repr_html_()


def test_notebook_shows_what_pages_say_escaped(tmp_path: Path) -> None:
    site = {FIRST: "<title>&lt;script>alert(1)&lt;/script></title><p>Solar &lt;b>heat&lt;/b>.</p>"}
    crawl_site(tmp_path, site.get)
    with lycosa.open(tmp_path) as collection:
        shown = [
            collection.get(FIRST)._repr_html_(),
            collection.search("solar")._repr_html_(),
            collection._repr_html_(),
            collection.why(FIRST)._repr_html_(),
        ]
        assert "&lt;script&gt;alert(1)" in shown[0]
        assert "Solar &lt;b&gt;heat" in shown[0]
        assert "1 found" in shown[1]
        assert "127.0.0.1" in shown[2]
        assert "title: &lt;script&gt;" in shown[3]
        assert not any("<script>" in html or "<b>heat" in html for html in shown)


def test_pages_that_wait_for_the_iterator_are_bounded_in_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library_crawl, "BYTES_AHEAD", 1)

    async def main() -> tuple[int, bool]:
        was_paused, count = False, 0
        async with small_crawl(tmp_path) as running:
            async for page in running:
                was_paused = was_paused or running.engine.waits_for_consumer
                assert page.body
                assert page.headers["content-type"] == "text/html"
                count += 1
            assert running._waiting_bytes == 0
        return count, was_paused

    assert run_virtual(main()) == (len(SITE), True)
