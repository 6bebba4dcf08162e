"""What a crawl is for, and publishers who forbid it: before a request, after it, and what is kept of what they say."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from warcio.archiveiterator import ArchiveIterator

from lycosa import Collection
from lycosa.inspect import explain_url, hosts, open_to_read, url_view
from lycosa.store import PageRow, unpack_page
from tests.crawl.small_site import FIRST, Sent, crawl_site, links

NO_TRAIN = "User-agent: *\nContent-Usage: /closed/ train-ai=n\nContent-Signal: search=yes\n"
SITE: dict[str, Any] = {
    FIRST: f"<title>Home</title>{links('a', 'noai', 'header', 'closed/', 'late')}",
    f"{FIRST}a": "<title>A</title><p>A page of some words.</p>",
    f"{FIRST}noai": f"<title>No AI</title><meta name=robots content=noai>{links('behind')}",
    f"{FIRST}header": Sent("<title>Header</title>", {"tdm-reservation": "1"}),
    f"{FIRST}closed/": "<title>Closed</title>",
    f"{FIRST}behind": "<title>Behind</title>",
    f"{FIRST}late": "<title>Late</title><meta name=robots content=noindex>",
}


def rows(into: Path) -> dict[str, PageRow]:
    with Collection(into) as collection:
        return {page.url.removeprefix(FIRST): page.row for page in collection}


def said_of(into: Path, path: str) -> str:
    with open_to_read(into) as collection:
        return "\n".join(explain_url(collection, FIRST + path))


def test_crawl_for_an_archive_keeps_all_pages_and_what_is_said_of_their_use(tmp_path: Path) -> None:
    asked, stats = crawl_site(tmp_path / "c", SITE.get, robots_txt=NO_TRAIN)

    assert stats.pages == len(SITE) and not stats.dropped
    assert not any("well-known" in url for url in asked)
    found = rows(tmp_path / "c")
    assert found["a"].preferences == "robots.txt content-signal search=yes"
    assert found["closed/"].usage(now=0) == {"search": "y", "ai-train": "n"}
    assert found["header"].preferences.splitlines()[1:] == ["header tdm-reservation 1"]
    assert "page robots noai" in found["noai"].preferences
    assert "its publisher says: robots.txt content-signal search=yes; page robots noai" in said_of(
        tmp_path / "c", "noai"
    )
    assert "use: search allowed, ai-train forbidden" in said_of(tmp_path / "c", "noai")
    with open_to_read(tmp_path / "c") as collection:
        (host,) = hosts(collection)
        view = url_view(collection, f"{FIRST}noai")
    assert (view.preferences[1], view.usage["ai-train"]) == ("page robots noai", "n")
    assert host.preferences == "robots.txt content-signal search=yes; and of 1 path something else"


def test_metadata_record_has_what_came_before_the_body(tmp_path: Path) -> None:
    crawl_site(tmp_path / "c", SITE.get, robots_txt=NO_TRAIN)

    said = {}
    for path in (tmp_path / "c" / "warc").glob("*.warc.gz"):
        with path.open("rb") as file:
            for record in ArchiveIterator(file):
                if record.rec_type == "metadata":
                    said[record.rec_headers["WARC-Target-URI"]] = record.content_stream().read().decode()
    assert "preferences: robots.txt content-signal search=yes; header tdm-reservation 1" in said[f"{FIRST}header"]


@pytest.mark.parametrize("threads", [0, 1])
def test_statement_with_any_characters_is_kept(tmp_path: Path, threads: int) -> None:
    site = {FIRST: Sent("<p>x", {"content-usage": "train-ai=\xfc\x01", "tdm-reservation": "1", "tdm-policy": "\u263a"})}
    robots = "License: http://ex\xe4mple.org/\u263a\nUser-agent: *\nContent-Usage: / \xe4=n\n"

    _, stats = crawl_site(tmp_path / "c", site.get, robots_txt=robots, threads=threads)

    assert stats.pages == 1
    assert rows(tmp_path / "c")[""].usage(now=0) == {"ai-train": "n", "ai-input": "n"}
    assert "http://ex\xe4mple.org/\u263a" in said_of(tmp_path / "c", "")


def test_crawl_for_training_asks_for_no_page_that_robots_txt_forbids(tmp_path: Path) -> None:
    asked, stats = crawl_site(tmp_path / "c", SITE.get, robots_txt=NO_TRAIN, purpose="ai-train")

    assert f"{FIRST}closed/" not in asked
    assert f"{FIRST}behind" in asked  # the links of a page that is not kept are followed
    assert stats.dropped == {"preferences": 3}
    assert set(rows(tmp_path / "c")) == {"", "a", "behind", "late"}
    assert "its publisher does not want it used for ai-train: robots.txt content-usage train-ai=n" in said_of(
        tmp_path / "c", "closed/"
    )
    assert "header tdm-reservation 1" in said_of(tmp_path / "c", "header")


@pytest.mark.parametrize("threads", [0, 1])
def test_crawl_for_search_leaves_out_noindex(tmp_path: Path, threads: int) -> None:
    _, stats = crawl_site(tmp_path / "c", SITE.get, purpose="search", threads=threads)

    assert stats.dropped == {"preferences": 1}
    assert "robots directive noindex" in said_of(tmp_path / "c", "late")


def test_use_immediate_means_that_nothing_is_stored(tmp_path: Path) -> None:
    site = {FIRST: Sent("<p>x", {"content-signal": "use=immediate"})}
    asked, stats = crawl_site(tmp_path / "a", SITE.get, robots_txt="User-agent: *\nContent-Signal: use=immediate\n")
    assert asked == [] and stats.dropped == {"preferences": 1}
    asked, stats = crawl_site(tmp_path / "b", site.get)
    assert asked == [FIRST] and stats.dropped == {"preferences": 1} and stats.pages == 0


def test_another_purpose_asks_again_for_what_was_dropped(tmp_path: Path) -> None:
    crawl_site(tmp_path / "c", SITE.get, robots_txt=NO_TRAIN, purpose="ai-train")
    _, stats = crawl_site(tmp_path / "c", SITE.get, robots_txt=NO_TRAIN, purpose="archive")
    assert stats.pages == len(SITE) and not sum(stats.dropped.values())


TERMS = "<license><prohibits type='usage'>ai-train</prohibits></license>"
RSL = f"<rsl xmlns='https://rslstandard.org/rsl'><content url='/noai'>{TERMS}</content></rsl>"


def test_files_on_use_are_read_once_a_host_and_before_its_pages(tmp_path: Path) -> None:
    tdm = '[{"location": "/a", "tdm-reservation": 1, "tdm-policy": "https://e.org/p"}]'
    site = {**SITE, f"{FIRST}.well-known/tdmrep.json": tdm, f"{FIRST}l.xml": RSL}
    robots = "License: /l.xml\nLicense: https://elsewhere.example/l.xml\n"

    asked, stats = crawl_site(tmp_path / "c", site.get, robots_txt=robots, purpose="ai-train")

    assert asked[:3] == [f"{FIRST}.well-known/tdmrep.json", f"{FIRST}l.xml", FIRST]
    assert len(asked) == len(set(asked))
    assert f"{FIRST}noai" not in asked  # by its licence
    assert stats.dropped == {"preferences": 3}  # and by tdmrep.json and a header, which are judged with the answer
    assert "tdmrep.json tdm-reservation 1" in said_of(tmp_path / "c", "a")
    assert "licence rsl" in said_of(tmp_path / "c", "noai")


def test_files_on_use_that_cannot_be_had_say_nothing(tmp_path: Path) -> None:
    site = {FIRST: "<p>x", f"{FIRST}.well-known/tdmrep.json": 503}
    asked, stats = crawl_site(tmp_path / "c", site.get, robots_txt="License: /none.xml\n", purpose="ai-input")
    assert asked == [f"{FIRST}.well-known/tdmrep.json", f"{FIRST}none.xml", FIRST]
    assert stats.pages == 1


def test_files_on_use_are_left_alone_where_robots_txt_says_so(tmp_path: Path) -> None:
    robots = "User-agent: *\nDisallow: /.well-known/\n"
    asked, _ = crawl_site(tmp_path / "c", {FIRST: "<p>x"}.get, robots_txt=robots, purpose="ai-train")
    assert asked == [FIRST]


def test_row_of_a_version_before_has_no_preferences() -> None:
    assert unpack_page(msgspec.msgpack.encode([200, 1.0])).preferences == ""
