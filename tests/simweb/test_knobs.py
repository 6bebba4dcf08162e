"""Every knob has the effect it promises, where a crawler would see it, and moves nothing else."""

import re
import zlib
from statistics import median

import msgspec
import pytest

from lycosa.simweb import Answer, SimSettings, SimWeb
from lycosa.simweb.layout import PagePlace
from lycosa.simweb.links import is_mirror_source
from lycosa.simweb.network import Network, has_dns_trouble
from lycosa.simweb.pages import DAY_S
from lycosa.simweb.settings import DNS, HOST_TROUBLE, ROBOTS
from tests.simweb.conftest import first_article
from tests.simweb.test_web import HREF, articles


def article_in(trouble: str) -> Answer:
    """An article that has the trouble."""
    web = SimWeb(SimSettings(hosts=1, pages=40, trouble={trouble: 1.0}))
    return web.answer(0, first_article(hosts=1, pages=40))


# trouble in the bytes


def test_wrong_charset_is_no_utf_8() -> None:
    answer = article_in("wrong-charset")
    assert answer.content_type == "text/html; charset=utf-8"
    with pytest.raises(UnicodeDecodeError):
        answer.body.decode()
    assert "Übersicht" in answer.body.decode("latin-1")


def test_bomb_is_small_and_grows_to_a_hundred_megabytes() -> None:
    answer = article_in("bomb")
    assert dict(answer.headers)["Content-Encoding"] == "gzip"
    assert len(answer.body) < 200_000
    assert len(zlib.decompress(answer.body, 31)) == 100_000_000


def test_deep_page_nests_twenty_thousand_elements() -> None:
    assert b"<div>" * 20_000 + b"deep" + b"</div>" * 20_000 in article_in("deep").body


def test_huge_page_has_thirty_megabytes_that_all_share() -> None:
    web = SimWeb(SimSettings(hosts=1, pages=40, trouble={"huge": 1.0}))
    one, other = (web.answer(0, web.layout.path_of(PagePlace(0, 0, page))) for page in (1, 2))
    assert 29_000_000 < len(one.tail) <= 30_000_100
    assert one.tail is other.tail
    assert one.body != other.body


@pytest.mark.parametrize(("knob", "status"), [("unavailable", 503), ("too-many", 429)])
def test_busy_host_answers_with_its_own_status(knob: str, status: int) -> None:
    web = SimWeb(SimSettings(hosts=1, pages=40, trouble={knob: 1.0}))
    assert web.answer(0, "/", elapsed_s=0.5).status == status
    assert web.answer(0, "/", elapsed_s=5.0).status == 200


# robots.txt


def test_robots_text_says_what_the_knobs_ask_for() -> None:
    shares = {"rules": 1.0, "delay": 1.0, "sitemap": 1.0, "missing": 0.0}
    web = SimWeb(SimSettings(hosts=3, pages=3000, robots=shares))
    text = web.answer(1, "/robots.txt").body.decode()
    assert "\nCrawl-delay: 2\n" in text
    assert f"\nSitemap: {web.linker.origin(1)}/sitemap.xml\n" in text
    assert "\nUser-agent: badbot\nDisallow: /\n" in text
    assert text.count("Disallow: /") > 3
    robots = web.robots.of(1)
    assert not robots.allows("/", "BadBot/1.0")
    assert robots.allows("/", "goodbot")
    plain = SimWeb(SimSettings(hosts=3, pages=3000, robots=dict.fromkeys(shares, 0.0)))
    assert plain.answer(1, "/robots.txt").body == b"# a simulated host\nUser-agent: *\nDisallow:\n"


@pytest.mark.parametrize(("knob", "status"), [("missing", 404), ("error", 500)])
def test_robots_that_is_not_there_answers_so(knob: str, status: int) -> None:
    web = SimWeb(SimSettings(hosts=1, pages=40, robots={knob: 1.0, "slow": 0.0}))
    assert web.answer(0, "/robots.txt").status == status


def test_slow_robots_comes_after_five_seconds() -> None:
    web = SimWeb(SimSettings(hosts=1, pages=40, robots={"slow": 1.0, "missing": 0.0}))
    answer = web.answer(0, "/robots.txt")
    assert (answer.status, answer.delay_s) == (200, 5.0)


# which hosts


@pytest.mark.parametrize("name", HOST_TROUBLE)
def test_host_trouble_hits_the_same_hosts_whatever_else_is_turned(name: str) -> None:
    alone = SimWeb(SimSettings(hosts=200, pages=400, trouble={name: 0.3}))
    among = SimWeb(SimSettings(hosts=200, pages=400, trouble={name: 0.3} | dict.fromkeys(HOST_TROUBLE, 0.3)))
    hit = [alone.traps.host_has(host, name) for host in range(200)]
    assert 35 < sum(hit) < 85
    assert hit == [among.traps.host_has(host, name) for host in range(200)]


@pytest.mark.parametrize("name", DNS)
def test_dns_trouble_hits_the_same_hosts_whatever_else_is_turned(name: str) -> None:
    alone = SimWeb(SimSettings(hosts=200, pages=400, dns={name: 0.3}))
    among = SimWeb(SimSettings(hosts=200, pages=400, dns=dict.fromkeys(DNS, 0.3)))
    hit = [has_dns_trouble(alone, host, name) for host in range(200)]
    assert 35 < sum(hit) < 85
    assert hit == [has_dns_trouble(among, host, name) for host in range(200)]


def test_robots_rules_stay_on_their_hosts_when_another_knob_is_turned() -> None:
    base = {"missing": 0.0, "rules": 0.5}
    alone = SimWeb(SimSettings(hosts=100, pages=20_000, robots=base)).robots
    among = SimWeb(SimSettings(hosts=100, pages=20_000, robots=base | {"delay": 0.5, "slow": 0.5})).robots
    assert [alone.of(host).rules for host in range(100)] == [among.of(host).rules for host in range(100)]
    assert set(ROBOTS) >= base.keys()


# the network


@pytest.mark.parametrize("kind", ["rtt", "bandwidth"])
def test_spread_makes_hosts_differ_around_the_median(kind: str) -> None:
    level = {"rtt_ms": 100.0} if kind == "rtt" else {"bandwidth_bytes_s": 0.1}

    def values(spread: float) -> list[float]:
        settings = SimSettings(hosts=500, pages=500, **level, **{f"{kind}_spread": spread})  # type: ignore[arg-type]
        network = Network(settings, SimWeb(SimSettings()).draws)
        lines = [network.line(host) for host in range(500)]
        return [line.rtt_s if kind == "rtt" else line.bandwidth_bytes_s for line in lines]

    assert set(values(0.0)) == {0.1}
    spread = values(0.8)
    assert 0.08 < median(spread) < 0.125
    assert max(spread) > 4 * median(spread)
    assert min(spread) < median(spread) / 4


# the shape of pages


def test_canonical_stands_on_some_pages_and_names_the_page() -> None:
    web = SimWeb(SimSettings())
    found = 0
    for place in articles(web, 300):
        if web.pages.source(place) != place:
            continue
        canonical = re.search(
            rb'rel="canonical" href="([^"]*)"', web.answer(place.host, web.layout.path_of(place)).body
        )
        if canonical:
            found += 1
            assert canonical[1].decode() == web.url(place)
    assert 120 < found < 230


def test_a_small_share_of_links_is_redirected() -> None:
    web = SimWeb(SimSettings())
    hrefs = [href for place in articles(web, 300) for href, _ in web.pages.main_links(place)]
    short = sum(not href.endswith((".html", "/")) for href in hrefs)
    assert 0.01 < short / len(hrefs) < 0.03


def test_a_third_of_a_series_is_linked() -> None:
    web = SimWeb(SimSettings())
    folders = [web.layout.folder(h, i) for h in range(50) for i in range(web.layout.folder_count(h))]
    linked = sum(web.layout.is_linked_member(f, n) for f in folders for n in range(1, f.series + 1))
    assert 0.32 < linked / sum(f.series for f in folders) < 0.38


# change, told honestly and not


def test_gone_pages_answer_410_on_some_hosts_and_404_on_others_and_front_pages_stay() -> None:
    web = SimWeb(SimSettings(hosts=60, pages=6000))
    seen = {
        web.answer(place.host, web.layout.path_of(place), 300 * DAY_S).status
        for place in articles(web, 3000)
        if web.state(place, 300 * DAY_S).gone
    }
    assert seen == {404, 410}
    assert not any(
        web.state(PagePlace(host, 0, 0), day * DAY_S).gone for host in range(60) for day in range(0, 3000, 50)
    )


def test_lastmod_is_honest_on_most_hosts_and_now_on_the_others() -> None:
    web = SimWeb(SimSettings(hosts=60, pages=3000, robots={"sitemap": 1.0, "missing": 0.0}))
    now = b"2026-04-11T00:00:00Z"
    liars = 0
    for host in range(60):
        stamps = re.findall(rb"<lastmod>([^<]*)</lastmod>", web.answer(host, "/sitemap.xml", 100 * DAY_S).body)
        assert stamps
        liars += set(stamps) == {now}
    assert 10 < liars < 30


def test_validators_change_exactly_when_the_bytes_do() -> None:
    web = SimWeb(SimSettings(hosts=60, pages=3000))
    changed = same = 0
    for place in articles(web, 800):
        path = web.layout.path_of(place)
        old, new = web.answer(place.host, path, 20 * DAY_S), web.answer(place.host, path, 23 * DAY_S)
        if old.status != 200 or new.status != 200:
            continue
        is_changed = old.body != new.body
        changed, same = changed + is_changed, same + (not is_changed)
        if old.etag:
            assert (old.etag != new.etag) == is_changed
        if old.modified_s:
            assert (old.modified_s != new.modified_s) == is_changed
    assert min(changed, same) > 50


def test_images_and_feeds_have_entity_tags_on_hosts_that_have_them() -> None:
    web = SimWeb(SimSettings(hosts=30, pages=3000))
    for host in range(30):
        has_tags = bool(web.answer(host, "/").etag)
        feed, later = web.answer(host, "/feed.xml"), web.answer(host, "/feed.xml", 300 * DAY_S)
        assert bool(feed.etag) == has_tags
        assert not has_tags or (feed.etag != later.etag) == (feed.body != later.body)


# copies


def test_mirrors_are_the_same_bytes_also_where_there_are_traps() -> None:
    traps = dict.fromkeys(("calendar", "path-loop", "soft-404", "session-ids"), 0.5)
    web = SimWeb(SimSettings(hosts=12, pages=6000, trouble=traps))
    mirrors = [place for place in articles(web, 9999) if web.pages.source(place) != place]
    assert len(mirrors) > 20
    for place in mirrors[:60]:
        source = web.pages.source(place)
        assert is_mirror_source(source)
        copies = [web.answer(p.host, web.layout.path_of(p)).body for p in (place, source)]
        assert copies[0] == copies[1]


def test_table_of_links_calls_own_host_internal_on_copied_pages_too() -> None:
    web = SimWeb(SimSettings(hosts=6, pages=3000, tables=1.0))
    place = next(p for p in articles(web, 999) if is_mirror_source(p))
    path = web.layout.path_of(place)
    table = web.answer(place.host, path.replace(".html", ".tol")).body.decode().splitlines()
    table = [line for line in table if not line.startswith("# ") and not line.endswith(("\tlink", "\timg"))]
    own = f"{web.linker.origin(place.host)}/"
    kinds = {href: kind for kind, href, *_ in (line.split("\t") for line in table)}
    assert set(kinds) == {href.decode() for href in HREF.findall(web.answer(place.host, path).body)}
    assert any(href.startswith(own) for href in kinds)
    for href, kind in kinds.items():
        assert kind == ("external" if "://" in href and not href.startswith(own) else "internal")


# odd requests


@pytest.mark.parametrize(
    "target",
    ["/sitemap-²", "/sitemap-٣.xml.gz", f"/sitemap-{'9' * 5000}.xml.gz", "/x-².png", f"/x-{'1' * 5000}.png"],
)
def test_odd_digits_in_a_path_are_not_found(target: str) -> None:
    web = SimWeb(SimSettings(hosts=1, pages=9000, robots={"sitemap": 1.0, "missing": 0.0}))
    word = web.layout.folder(0, 0).words[web.layout.folder(0, 0).offset]
    assert web.answer(0, target.replace("/x", f"/{word}")).status == 404


def test_empty_query_is_no_query_and_names_may_end_in_a_dot(web: SimWeb) -> None:
    assert web.answer(0, "/?").body == web.answer(0, "/").body
    assert web.layout.host_number("h3.sim.") == 3
    assert web.layout.host_number("h٣.sim") is None
    assert web.layout.host_number("h\xb2") is None
    assert web.layout.host_number("127.0.0.1") == 0


def test_settings_survive_the_log() -> None:
    settings = SimSettings(trouble={"hang": 0.1}, robots={"slow": 0.2}, dns={"slow": 0.3}, rtt_ms=5.0)
    assert msgspec.json.decode(msgspec.json.encode(settings), type=SimSettings) == settings
