"""What the web answers: same bytes for the same seed, real documents, change over time."""

import re
import zlib
from collections import Counter
from urllib.parse import urljoin, urlsplit

import pytest

from lycosa.simweb import SimSettings, SimWeb
from lycosa.simweb.layout import PagePlace
from lycosa.simweb.pages import DAY_S
from lycosa.simweb.protocol import WireRequest, to_wire
from lycosa.simweb.settings import DOCUMENT_TROUBLE
from lycosa.tables.formats import TableRefusal, Tol, Tvi, parse_tol, parse_tvi, patch_document, table_digest, tvi_of
from lycosa.web.page import analyse_page

HREF = re.compile(rb'<a href="([^"]*)"')


def articles(web: SimWeb, count: int) -> list[PagePlace]:
    """The first articles of the folders of all hosts, in turn."""
    found: list[PagePlace] = []
    index = 0
    while len(found) < count and index < 1000:
        for host in range(web.settings.hosts):
            if index < web.layout.folder_count(host):
                folder = web.layout.folder(host, index)
                found += [PagePlace(host, index, page) for page in range(1, folder.articles + 1)]
        index += 1
    return found[:count]


def fetch(web: SimWeb, place: PagePlace, time_s: float = 0.0) -> bytes:
    answer = web.answer(place.host, web.layout.path_of(place), time_s)
    assert answer.status == 200
    return answer.body


def test_same_seed_gives_same_bytes_in_any_order(web: SimWeb) -> None:
    other = SimWeb(web.settings)
    places = articles(web, 200)
    backwards = {place: fetch(other, place) for place in reversed(places)}
    assert all(fetch(web, place) == backwards[place] for place in places)


def test_other_seed_gives_other_bytes(web: SimWeb) -> None:
    assert web.answer(0, "/").body != SimWeb(SimSettings(seed=8, hosts=12, pages=3000)).answer(0, "/").body


def test_pages_look_like_the_real_webs(web: SimWeb) -> None:
    bodies = sorted((fetch(web, place) for place in articles(web, 1000)), key=len)
    links = sorted(len(HREF.findall(body)) for body in bodies)
    assert 10_000 < len(bodies[500]) < 18_000
    assert 45 < links[500] < 75
    assert len(bodies[990]) > 3 * len(bodies[500])


def test_every_link_of_a_page_leads_to_a_page_or_a_redirect(web: SimWeb) -> None:
    for place in articles(web, 60):
        base = web.url(place)
        for href in HREF.findall(fetch(web, place)):
            parts = urlsplit(urljoin(base, href.decode()))
            host = web.layout.host_number(parts.hostname or "")
            assert host is not None
            assert web.answer(host, parts.path).status in (200, 301), (base, href)


def test_links_written_are_the_links_of_the_layout(web: SimWeb) -> None:
    for place in articles(web, 300):
        written = [href.decode() for href in HREF.findall(fetch(web, place))]
        source = web.pages.source(place)
        assert Counter(written) == Counter(href for href, _ in web.pages.all_links(source))


def test_links_prefer_their_own_topic() -> None:
    web, same, total = SimWeb(SimSettings()), 0, 0
    for place in articles(web, 400):
        topic = web.layout.folder(place.host, place.folder).topic
        for href, _ in web.pages.main_links(place):
            parts = urlsplit(urljoin(web.url(place), href))
            host = web.layout.host_number(parts.hostname or "")
            target = web.layout.locate(host or 0, parts.path)
            if target is not None and target.page:
                total += 1
                same += web.layout.folder(target.host, target.folder).topic == topic
    assert 0.56 < same / total < 0.64


def test_external_links_prefer_hubs() -> None:
    web = SimWeb(SimSettings(hosts=100, pages=20_000))
    hosts: Counter[str] = Counter()
    for place in articles(web, 500):
        own = f"h{place.host}.sim"
        names = [urlsplit(href).hostname or "" for href, _ in web.pages.main_links(place) if "://" in href]
        hosts.update(name for name in names if name != own)
    assert sum(count for _, count in hosts.most_common(10)) > 0.3 * hosts.total(), hosts.most_common(12)


def test_mirrors_are_the_same_document_under_another_url(web: SimWeb) -> None:
    mirrors = [p for p in articles(web, 9999) if web.pages.source(p) != p]
    assert mirrors
    for place in mirrors[:20]:
        assert fetch(web, place) == fetch(web, web.pages.source(place))
        assert web.url(place) != web.url(web.pages.source(place))


def test_near_duplicates_share_prose_but_not_bytes(web: SimWeb) -> None:
    near = [p for p in articles(web, 9999) if web.pages.prose_source(p) != p]
    assert near
    for place in near[:10]:
        mine, other = fetch(web, place), fetch(web, web.pages.prose_source(place))
        assert mine != other
        prose = re.compile(rb"<p[^>]*>(.{60,}?)</p>")
        shared = set(prose.findall(mine)) & set(prose.findall(other))
        assert len(shared) >= 0.8 * len(prose.findall(mine)) - 1


def test_images_are_real_png(web: SimWeb) -> None:
    source = re.search(rb'src="([^"]*)"', fetch(web, PagePlace(3, 0, 0)))
    assert source
    image = web.answer(3, source[1].decode())
    assert image.content_type == "image/png"
    assert image.body.startswith(b"\x89PNG\r\n\x1a\n")
    start = image.body.index(b"IDAT") + 4
    assert len(zlib.decompress(image.body[start : image.body.index(b"IEND") - 8])) == 64 * 9


def test_sitemap_names_linked_pages_only() -> None:
    web = SimWeb(SimSettings(hosts=2, pages=8000, robots={"sitemap": 1, "missing": 0}))
    index = web.answer(0, "/sitemap.xml").body
    parts = re.findall(rb"<loc>[^<]*?(/sitemap-\d+\.xml\.gz)</loc>", index)
    assert len(parts) > 1
    urls = [
        urlsplit(url.decode()).path
        for part in parts
        for url in re.findall(rb"<loc>([^<]*)</loc>", zlib.decompress(web.answer(0, part.decode()).body, 31))
    ]
    places = [web.layout.locate(0, path) for path in urls]
    assert len(urls) == len(set(urls))
    assert all(place is not None and web.layout.is_linked(place) for place in places)


def test_feed_lists_articles(web: SimWeb) -> None:
    feed = web.answer(0, "/feed.xml")
    links = re.findall(rb"<item>.*?<link>[^<]*?\.sim:\d+([^<]*)</link>", feed.body)
    assert links
    assert all(web.answer(0, link.decode()).status == 200 for link in links)


def test_unknown_paths_and_queries_are_not_found(web: SimWeb) -> None:
    for target in ("/nothing-here.html", "/?q=1", "/about/nowhere/", "/x.png", "/x.tol", "/sitemap-9.xml.gz"):
        assert web.answer(0, target).status == 404, target


def test_tables_stand_beside_documents() -> None:
    web = SimWeb(SimSettings(hosts=2, pages=600, tables=1.0))
    for path in ("/index.tol", web.layout.path_of(PagePlace(0, 0, 1)).replace(".html", ".tol")):
        lines = web.answer(0, path).body.decode().splitlines()
        assert lines[0] == "# tol 1"
        rows = [line for line in lines if not line.startswith("# ")]
        assert {row.split("\t")[0] for row in rows} <= {"internal", "external"}
    marked = next(p for p in articles(web, 300) if web.pages.has_marked_volatile(p))
    text = web.answer(marked.host, web.layout.path_of(marked).replace(".html", ".tvi")).body.decode().split("\t")[1]
    assert text.strip() in fetch(web, marked).decode()


def test_tables_are_those_that_a_publisher_would_write() -> None:
    web = SimWeb(SimSettings(hosts=3, pages=900, tables=1.0))
    for place in [PagePlace(0, 0, 0), *articles(web, 40)]:
        path = web.layout.path_of(place)
        body, base = (
            web.answer(place.host, path).body,
            path.removesuffix(".html") if path[-1] != "/" else path + "index",
        )
        table = parse_tol(web.answer(place.host, base + ".tol").body)
        assert isinstance(table, Tol)
        assert set(table.links) == set(analyse_page(body, url=web.url(place), content_type="text/html").links)
        assert (table.document, table.of) == (table_digest(body), path.rpartition("/")[2] or "index.html")
        made = tvi_of(body, is_xml=False, of=table.of)
        answer = web.answer(place.host, base + ".tvi")
        assert (parse_tvi(answer.body) == made) if made else answer.status == 404


def test_patch_of_a_simulated_page_is_the_page_of_another_time() -> None:
    web = SimWeb(SimSettings(hosts=2, pages=600, tables=1.0))
    patched = whole = 0
    for place in [p for p in articles(web, 300) if web.pages.has_marked_volatile(p)]:
        path = web.layout.path_of(place)
        old, new = (web.answer(place.host, path, day * DAY_S) for day in (0, 9))
        table = parse_tvi(web.answer(place.host, path.replace(".html", ".tvi"), 9 * DAY_S).body)
        if new.status != 200 or not isinstance(table, Tvi):
            continue
        now = patch_document(old.body, table, is_xml=False)
        if isinstance(now, bytes):
            assert now == new.body
            patched += old.body != new.body
        else:
            assert now is TableRefusal.FRAME_CHANGED
            whole += 1
    assert patched > 10
    assert whole > 0


# change


def test_nothing_has_changed_at_the_beginning_and_much_after_a_year(web: SimWeb) -> None:
    places = articles(web, 500)
    states = [web.state(place, 365 * DAY_S) for place in places]
    assert sum(s.text > 0 for s in states) > 250
    assert sum(s.structure > 0 for s in states) > 100
    assert sum(s.image > 0 for s in states) > 100
    assert sum(s.gone for s in states) > 5


def test_change_rates_are_poisson_with_the_pages_own_rate(web: SimWeb) -> None:
    key = web.pages.key(PagePlace(0, 0, 1))
    rate = web.changes.rate(key) * 0.6  # the share of text changes
    horizon, steps = 400 / rate, 20_000
    versions = {web.changes.state(key, horizon * i / steps).text for i in range(steps)}
    assert 340 < len(versions) - 1 < 460


def test_state_never_goes_back_in_time(web: SimWeb) -> None:
    key = web.pages.key(PagePlace(0, 0, 2))
    ordinals = [web.changes.state(key, day * DAY_S).text for day in range(0, 2000, 3)]
    assert ordinals == sorted(ordinals)


def test_each_kind_of_change_changes_what_it_says(web: SimWeb) -> None:
    kinds = Counter()
    for place in articles(web, 400):
        if web.pages.source(place) != place:
            continue
        before, after = web.state(place, 0), web.state(place, 60 * DAY_S)
        if after.gone:
            assert web.answer(place.host, web.layout.path_of(place), 60 * DAY_S).status in (404, 410)
            kinds["gone"] += 1
            continue
        old, new = fetch(web, place), fetch(web, place, 60 * DAY_S)
        has_volatile = bool(web.pages.volatile(place, before))
        assert (old != new) == bool(after.text or after.structure or (after.volatile and has_volatile))
        assert (new.count(b"<b></b>") > 0) == (after.structure > 0)
        kinds["text"] += after.text > 0
        kinds["structure"] += after.structure > 0
        kinds["volatile only"] += old != new and not after.text and not after.structure
    assert min(kinds[kind] for kind in ("gone", "text", "structure", "volatile only")) > 0


def test_half_of_the_volatile_parts_carry_no_mark(web: SimWeb) -> None:
    state = web.state(PagePlace(0, 0, 1), 0)
    parts = [part for place in articles(web, 1000) if (part := web.pages.volatile(place, state))]
    marked = sum("data-vol" in part for part in parts)
    assert 0.4 < marked / len(parts) < 0.6
    assert all("class" not in part and " id=" not in part for part in parts if "data-vol" not in part)


def test_image_changes_with_its_own_events(web: SimWeb) -> None:
    place = next(p for p in articles(web, 300) if web.state(p, 90 * DAY_S).image)
    folder = web.layout.folder(place.host, place.folder)
    path = f"{folder.path}{folder.words[folder.offset]}-{place.page}.png"
    assert web.answer(place.host, path).body != web.answer(place.host, path, 90 * DAY_S).body


# HTTP


def test_matching_validators_give_304_and_others_do_not(web: SimWeb) -> None:
    answer = next(a for h in range(12) if (a := web.answer(h, "/")).etag and a.modified_s)
    head = to_wire(answer, WireRequest(), time_s=0, gzip=False).head.decode()
    date = re.search(r"Last-Modified: (.*)\r\n", head)
    assert date
    for asked, status in (
        (WireRequest(if_none_match=answer.etag), 304),
        (WireRequest(if_none_match='"other"'), 200),
        (WireRequest(if_modified_since=date[1]), 304),
        (WireRequest(if_modified_since="Sat, 01 Jan 2000 00:00:00 GMT"), 200),
        (WireRequest(if_modified_since="yesterday"), 200),
        (WireRequest(if_none_match='"other"', if_modified_since=date[1]), 200),
    ):
        assert to_wire(answer, asked, time_s=0, gzip=False).status == status, asked


@pytest.mark.parametrize(
    ("asked", "status", "part"),
    [
        ("bytes=0-9", 206, slice(0, 10)),
        ("bytes=5-", 206, slice(5, None)),
        ("bytes=-7", 206, slice(-7, None)),
        ("bytes=99999999-", 416, slice(0, 0)),
        ("bytes=5-2", 200, slice(None)),
        ("bytes=٣-", 200, slice(None)),
        (f"bytes={'9' * 5000}-", 200, slice(None)),
        ("bytes=-", 200, slice(None)),
        ("lines=1-2", 200, slice(None)),
    ],
)
def test_ranges_give_their_part(web: SimWeb, asked: str, status: int, part: slice) -> None:
    answer = web.answer(0, "/")
    message = to_wire(answer, WireRequest(range=asked), time_s=0, gzip=False)
    assert (message.status, message.body) == (status, answer.body[part])


def test_gzip_is_sent_only_to_those_who_accept_it(web: SimWeb) -> None:
    answer = web.answer(0, "/")
    packed = to_wire(answer, WireRequest(accept_encoding="gzip, br"), time_s=0, gzip=True)
    assert zlib.decompress(packed.body, 31) == answer.body
    for coding, is_packed in (("gzip;q=0", 0), ("br, gzip; q=0.0", 0), ("gzip;q=0.5", 1), ("br;q=1, gzip", 1), ("", 0)):
        body = to_wire(answer, WireRequest(accept_encoding=coding), time_s=0, gzip=True).body
        assert (body == packed.body) == bool(is_packed), coding
        assert (body == answer.body) != bool(is_packed), coding


# trouble


def test_trouble_is_off_by_default(web: SimWeb) -> None:
    assert not any(web.trouble_of(p.host, web.layout.path_of(p)) for p in articles(web, 200))


@pytest.mark.parametrize("name", sorted(DOCUMENT_TROUBLE))
def test_document_trouble_hits_its_share_and_spares_front_pages(name: str) -> None:
    web = SimWeb(SimSettings(hosts=12, pages=3000, trouble={name: 0.2}))
    hit = [web.trouble_of(p.host, web.layout.path_of(p)) == name for p in articles(web, 1000)]
    assert 0.15 < sum(hit) / len(hit) < 0.25
    assert not any(web.trouble_of(host, "/") for host in range(12))


def test_busy_hosts_say_when_to_come_back_and_then_answer() -> None:
    web = SimWeb(SimSettings(hosts=2, pages=100, trouble={"unavailable": 1.0}))
    answers = [web.answer(0, "/", elapsed_s=second / 2) for second in range(40)]
    busy = [a for a in answers if a.status == 503]
    assert len(busy) == 6
    assert all(dict(a.headers)["Retry-After"] in ("1", "2", "3") for a in busy)
    assert all(a.status == 200 for a in answers if a not in busy)


def test_traps_lead_on_without_end() -> None:
    web = SimWeb(
        SimSettings(hosts=1, pages=100, trouble={"calendar": 1, "path-loop": 1, "soft-404": 1, "session-ids": 1})
    )
    for start in ("/calendar/2026/01/", "/loop/", "/lost/1.html"):
        path, seen = start, set()
        for _ in range(50):
            answer = web.answer(0, path)
            assert answer.status == 200
            assert path not in seen
            seen.add(path)
            path = urljoin(path, HREF.findall(answer.body)[-1 if "calendar" not in path else 1].decode())
    front = web.answer(0, "/")
    assert all(b"sid=" in href for href in HREF.findall(front.body) if not href.startswith(b"http"))
    sid = re.search(rb"/[^\"]*\?sid=[0-9a-f]+", front.body)
    assert sid
    assert web.answer(0, sid[0].decode()).status == 200
