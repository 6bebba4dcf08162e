"""What pages need to be shown is fetched with them, and is no page."""

import json
from gzip import decompress
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from lycosa import Collection
from lycosa.errors import PartError
from lycosa.export import ExportJob, export_pages
from lycosa.inspect import explain_url, open_to_read, stats_of
from lycosa.store import CollectionStore, page_at
from lycosa.web import url_key
from tests.crawl.consistency import problems
from tests.crawl.small_site import FIRST, Sent, crawl_site, links

OTHER = "http://127.0.0.2:9/"
CSS, PNG, JS = ({"content-type": essence} for essence in ("text/css", "image/png", "text/javascript"))
SITE: dict[str, Any] = {
    FIRST: f"<link rel=stylesheet href=s.css><img src={OTHER}i.png>{links('a', OTHER + 'page')}",
    f"{FIRST}a": "<script src=x.js></script><img src=gone.png><p>A</p>",
    f"{FIRST}s.css": Sent("@import 't.css'; p { b: url(f.woff) }", CSS),
    f"{FIRST}t.css": Sent("@import 'u.css';", CSS),
    f"{FIRST}u.css": Sent(f"p {{ b: url({OTHER}bg.png) }}", CSS),
    f"{FIRST}f.woff": Sent("font", {"content-type": "font/woff"}),
    f"{FIRST}x.js": Sent("x()", JS),
    f"{OTHER}i.png": Sent("image", PNG),
    f"{OTHER}bg.png": Sent("image 2", PNG),
    f"{OTHER}page": "<p>Out of scope</p>",
}
NEEDED = {f"{FIRST}{name}" for name in ("s.css", "t.css", "u.css", "f.woff", "x.js", "gone.png")}
NEEDED |= {f"{OTHER}i.png", f"{OTHER}bg.png"}


def said_of(into: Path, url: str) -> list[str]:
    with open_to_read(into) as collection:
        return explain_url(collection, url)


def test_requisites_come_from_other_hosts_and_are_no_pages(tmp_path: Path) -> None:
    asked, stats = crawl_site(tmp_path / "c", SITE.get, requisites=True)
    assert set(asked) == {FIRST, f"{FIRST}a"} | NEEDED
    assert (stats.pages, stats.requisites, stats.requisites_queued) == (2, 7, 0)
    assert dict(stats.failed) == {"404": 1}
    assert dict(stats.types) == {"text/html": 2}
    assert problems(tmp_path / "c", sampled=1) == []
    with Collection(tmp_path / "c") as collection:
        assert {page.url for page in collection} == {FIRST, f"{FIRST}a"}


def test_without_the_setting_nothing_of_it_is_asked_for(tmp_path: Path) -> None:
    asked, stats = crawl_site(tmp_path / "c", SITE.get)
    assert asked == [FIRST, f"{FIRST}a"]
    assert stats.requisites == 0


def test_requisites_of_a_page_go_before_the_next_page_of_its_host(tmp_path: Path) -> None:
    asked, _ = crawl_site(tmp_path / "c", SITE.get, requisites=True)
    assert asked.index(f"{FIRST}f.woff") < asked.index(f"{FIRST}a")


def test_why_and_the_archive_name_the_page_that_needs_it(tmp_path: Path) -> None:
    crawl_site(tmp_path / "c", SITE.get, requisites=True)
    assert f"a requisite: {FIRST} needs it to be shown" in said_of(tmp_path / "c", f"{OTHER}bg.png")
    assert f"a requisite: {FIRST}a needs it to be shown" in said_of(tmp_path / "c", f"{FIRST}gone.png")
    assert not any("requisite" in line for line in said_of(tmp_path / "c", f"{FIRST}a"))
    with CollectionStore.open(tmp_path / "c", read_only=True) as collection:
        archive = b"".join(path.read_bytes() for path in sorted(collection.warc_folder.iterdir()))
    assert f"requisite-of: {FIRST}a\r\n".encode() in decompress(archive)


def test_limits_of_pages_and_depth_do_not_stop_what_the_last_page_needs(tmp_path: Path) -> None:
    asked, stats = crawl_site(tmp_path / "c", SITE.get, requisites=True, pages=1)
    assert f"{FIRST}a" not in asked
    assert (stats.pages, stats.requisites, stats.queued) == (1, 6, 1)
    assert problems(tmp_path / "c") == []
    asked, stats = crawl_site(tmp_path / "c", SITE.get, requisites=True, pages=2)
    assert set(asked) == {f"{FIRST}a", f"{FIRST}x.js", f"{FIRST}gone.png"}
    asked, stats = crawl_site(tmp_path / "d", SITE.get, requisites=True, depth=0)
    assert (stats.pages, stats.requisites) == (1, 6)


def test_a_limit_of_pages_of_a_host_leaves_room_for_requisites(tmp_path: Path) -> None:
    _, stats = crawl_site(tmp_path / "c", SITE.get, requisites=True, pages_per_host=1)
    assert (stats.pages, stats.requisites) == (1, 6)


def test_robots_and_exclude_hold_for_requisites(tmp_path: Path) -> None:
    robots = "User-agent: *\nDisallow: /x.js"
    asked, stats = crawl_site(
        tmp_path / "c", SITE.get, requisites=True, exclude=["*.woff", "*/u.css"], robots_txt=robots
    )
    assert set(asked) == {FIRST, f"{FIRST}a", f"{FIRST}s.css", f"{FIRST}t.css", f"{FIRST}gone.png", f"{OTHER}i.png"}
    assert (stats.ignored["excluded"], stats.dropped["robots"]) == (2, 1)
    assert problems(tmp_path / "c") == []


def test_requisites_stop_two_steps_from_the_page(tmp_path: Path) -> None:
    site = {
        FIRST: f"<iframe src={OTHER}frame></iframe>",
        f"{OTHER}frame": f"<link rel=stylesheet href=s.css>{links('next')}",
        f"{OTHER}s.css": Sent("p { b: url(third.png) }", CSS),
    }
    asked, stats = crawl_site(tmp_path / "c", site.get, requisites=True)
    assert asked == [FIRST, f"{OTHER}frame", f"{OTHER}s.css"]
    assert (stats.pages, stats.requisites) == (1, 2)
    with CollectionStore.open(tmp_path / "c", read_only=True) as collection:
        row = page_at(collection.state, url_key(f"{OTHER}s.css"))
    assert row is not None and row.requisite == 2


def test_document_in_scope_is_a_page_however_it_became_known(tmp_path: Path) -> None:
    site = {
        FIRST: f"<img src=b><img src={OTHER}c>",
        f"{FIRST}b": links("d"),
        f"{FIRST}d": "<p>D</p>",
        f"{OTHER}c": links("e"),
    }
    asked, stats = crawl_site(tmp_path / "c", site.get, requisites=True)
    assert asked == [FIRST, f"{FIRST}b", f"{OTHER}c", f"{FIRST}d"]
    assert (stats.pages, stats.requisites) == (3, 1)
    assert problems(tmp_path / "c") == []


def test_redirect_of_a_requisite_is_followed_out_of_scope(tmp_path: Path) -> None:
    site = {
        FIRST: "<link rel=stylesheet href=s.css><img src=lost.png>",
        f"{FIRST}s.css": Sent("", {"location": f"{OTHER}moved.css"}, 302),
        f"{OTHER}moved.css": Sent("p { b: url(x.png) }", CSS),
        f"{OTHER}x.png": Sent("image", PNG),
        f"{FIRST}lost.png": 302,  # without a target
    }
    asked, stats = crawl_site(tmp_path / "c", site.get, requisites=True)
    assert set(asked) == set(site)
    assert (stats.pages, stats.requisites, stats.redirects) == (1, 2, 1)
    assert dict(stats.failed) == {"bad-redirect": 1}
    assert problems(tmp_path / "c") == []


def test_run_that_continues_without_the_setting_ends_with_what_is_queued(tmp_path: Path) -> None:
    crawl_site(tmp_path / "c", SITE.get, requisites=True, time_s=2.5)
    with open_to_read(tmp_path / "c") as collection:
        assert stats_of(collection).requisites_queued
    _, stats = crawl_site(tmp_path / "c", SITE.get, requisites=False, time_s=None)
    assert stats.requisites_queued == stats.queued == 0
    assert problems(tmp_path / "c") == []


def test_an_archive_without_bodies_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PartError, match="--requisites"):
        crawl_site(tmp_path / "c", SITE.get, requisites=True, archive="none")


def test_pages_of_a_wacz_file_are_pages_alone(tmp_path: Path) -> None:
    crawl_site(tmp_path / "c", SITE.get, requisites=True)
    export_pages(tmp_path / "c", ExportJob("wacz", out=str(tmp_path / "c.wacz")))
    with ZipFile(tmp_path / "c.wacz") as file:
        lines = file.read("pages/pages.jsonl").decode().splitlines()[1:]
    assert {json.loads(line)["url"] for line in lines} == {FIRST, f"{FIRST}a"}
