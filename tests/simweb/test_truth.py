"""The truth is what a correct crawler finds, no more and no less."""

from itertools import pairwise
from urllib.parse import urljoin

import pytest

from lycosa.simweb import SimSettings, SimWeb
from lycosa.simweb.layout import PagePlace
from lycosa.simweb.pages import DAY_S
from lycosa.simweb.truth import TruthLimits, truth_of
from tests.simweb.conftest import running_simweb
from tests.simweb.naive_crawler import crawl

SHAPE = ("--hosts", "6", "--pages", "1200", "--seed", "5")


@pytest.mark.slow
@pytest.mark.parametrize("scope", ["host", "any"])
def test_naive_crawler_over_sockets_reaches_exactly_the_truth(scope: str) -> None:
    with running_simweb(*SHAPE) as (ready, _):
        web = SimWeb(SimSettings(hosts=6, pages=1200, seed=5, port=ready.port))
        seeds = [f"http://h1.sim:{ready.port}/"]
        found = crawl(seeds, ready.port, scope=scope)
    expected = truth_of(web, seeds, scope=scope, sitemaps=False).pages
    assert found == expected
    assert len(found) > (100 if scope == "host" else 600)


def test_everything_linked_is_reachable_without_robots() -> None:
    web = SimWeb(SimSettings(hosts=6, pages=3000))
    found = truth_of(web, [f"{web.linker.origin(h)}/" for h in range(6)], robots=False, sitemaps=False).pages
    linked = set()
    for host in range(6):
        for index in range(web.layout.folder_count(host)):
            folder = web.layout.folder(host, index)
            places = [PagePlace(host, index, page) for page in range(1 + folder.articles + folder.series)]
            linked |= {web.url(place) for place in places if web.layout.is_linked(place)}
    assert found == linked


@pytest.mark.slow
def test_mining_adds_hidden_folders_then_whole_series() -> None:
    web = SimWeb(SimSettings(hosts=6, pages=3000))
    seeds = [f"{web.linker.origin(h)}/" for h in range(6)]
    sizes = {level: len(truth_of(web, seeds, robots=False, mine=level).pages) for level in ("off", "ancestors", "all")}
    assert sizes["off"] < sizes["ancestors"] < sizes["all"] == 3000


def test_robots_and_prefix_narrow_the_truth() -> None:
    web = SimWeb(SimSettings(hosts=4, pages=4000, robots={"rules": 1, "missing": 0}))
    seeds = [f"{web.linker.origin(0)}/"]
    everything, allowed = truth_of(web, seeds, robots=False).pages, truth_of(web, seeds).pages
    assert allowed < everything
    folder = web.layout.folder(0, 1).path
    prefix = truth_of(web, [web.linker.origin(0) + folder], scope="prefix", robots=False).pages
    assert prefix
    assert all(url.startswith(web.linker.origin(0) + folder) for url in prefix)


def test_hosts_that_forbid_everything_or_have_no_name_are_out() -> None:
    for knob in ({"robots": {"error": 1.0}}, {"dns": {"servfail": 1.0}}):
        web = SimWeb(SimSettings(hosts=2, pages=100, **knob))  # type: ignore[arg-type]
        assert not truth_of(web, ["http://h0.sim:8800/"], scope="any").pages


def test_trouble_and_disappearance_leave_the_truth() -> None:
    web = SimWeb(SimSettings(hosts=4, pages=2000, trouble={"hang": 0.1, "wrong-charset": 0.1}))
    found = truth_of(web, ["http://h0.sim:8800/"], scope="any")
    assert found.troubled
    assert set(found.troubled.values()) == {"hang"}
    assert not found.pages & found.troubled.keys()
    later = truth_of(web, ["http://h0.sim:8800/"], scope="any", time_s=300 * DAY_S)
    assert found.pages - later.pages


def test_redirects_are_told_apart_from_pages(web: SimWeb) -> None:
    found = truth_of(web, ["http://h0.sim:8800/"], scope="any")
    assert found.redirects
    for url in found.redirects:
        path = url.partition(".sim:8800")[2]
        host = int(url.partition("://h")[2].partition(".")[0])
        assert web.answer(host, path).status == 301


def test_depth_counts_links_from_the_seed() -> None:
    web = SimWeb(SimSettings(hosts=3, pages=3000, robots={"sitemap": 0.0}))
    seeds = [f"{web.linker.origin(0)}/"]
    by_depth = [
        truth_of(web, seeds, robots=False, limits=TruthLimits(max_depth=depth)).pages for depth in (0, 1, 2, 3, None)
    ]
    assert by_depth[0] == set(seeds)
    linked = {urljoin(seeds[0], href) for href, _ in web.pages.all_links(PagePlace(0, 0, 0))}
    own = {url for url in linked if url.startswith(seeds[0])}
    pages = {url if url.endswith((".html", "/")) else f"{url}.html" for url in own}  # the others are redirected
    assert by_depth[1] == set(seeds) | pages
    assert all(fewer < more for fewer, more in pairwise(by_depth[:3]))
    assert by_depth[3] <= by_depth[4]


def test_sitemap_pages_are_one_link_away() -> None:
    web = SimWeb(SimSettings(hosts=1, pages=3000, robots={"sitemap": 1.0, "missing": 0.0}))
    near = truth_of(web, ["http://h0.sim:8800/"], robots=False, limits=TruthLimits(max_depth=1)).pages
    everything = truth_of(web, ["http://h0.sim:8800/"], robots=False).pages
    assert near == everything
    assert truth_of(web, ["http://h0.sim:8800/"], limits=TruthLimits(max_depth=0)).pages == {"http://h0.sim:8800/"}


@pytest.mark.parametrize(
    ("path", "is_allowed"),
    [
        ("/a/a/x", True),
        ("/a/a/a/x", False),
        ("/a/b/a/b/x", True),
        ("/a/b/a/b/a/b/x", False),
        ("/a/b/a/c/a/d/x", True),
        ("/" + "/".join(f"{n}" for n in range(20)), True),
        ("/" + "/".join(f"{n}" for n in range(20)) + "/", True),
        ("/" + "/".join(f"{n}" for n in range(21)), False),
        ("/x?" + "/a" * 30, True),
        ("/" + "x" * 2029, True),
        ("/" + "x" * 2030, False),
    ],
)
def test_limits_are_those_of_a_crawler(path: str, is_allowed: bool) -> None:
    url = "http://h0.sim:8800" + path
    assert TruthLimits().allow(url, path) == is_allowed


def test_seed_with_a_query_is_no_page_but_a_session_id_is_none() -> None:
    web = SimWeb(SimSettings(hosts=1, pages=40, trouble={"session-ids": 1.0}))
    assert not truth_of(web, ["http://h0.sim:8800/?q=1"]).pages
    session = "http://h0.sim:8800/?sid=0123456789abcdef"
    assert truth_of(web, [session]).pages == truth_of(web, ["http://h0.sim:8800/"]).pages
    assert web.answer(0, "/?sid=0123456789abcdef").status == 200
