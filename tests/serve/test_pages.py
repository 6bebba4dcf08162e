"""Pages, API and metrics show the numbers of the collection, and say what cannot be."""

import json
import re
import shutil
import threading
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest

from lycosa.api import Collection
from lycosa.crawl import Sample, sum_of_timelines
from lycosa.inspect import NAME_COLUMNS
from lycosa.search import update_index
from lycosa.serve.live import chart_points
from lycosa.serve.pages import HOST_COLUMNS, changed_words, folder_name, marked_parts
from lycosa.serve.server import make_app
from lycosa.serve.source import CollectionSource
from lycosa.serve.views import limit_list
from lycosa.settings import SETTINGS, CrawlSettings, save_settings
from lycosa.store import CollectionStore
from tests.crawl.memory_crawl import crawl, front
from tests.crawl.small_site import FIRST, Sent, crawl_site, links
from tests.serve.client import Client
from tests.serve.conftest import TOKEN, WEB

PAGES = [
    "/",
    "/hosts",
    "/urls",
    "/changes",
    "/search?q=the",
    "/report",
    "/report/page",
    "/graph",
    "/settings",
    "/log",
    "/shards",
]


@pytest.mark.parametrize("path", PAGES)
def test_every_page_is_shown(path: str, client: Client) -> None:
    answer = client.get(path)
    assert answer.status == 200
    assert "<!doctype html>" in answer.text.lower()


def test_metrics_are_what_prometheus_reads(client: Client) -> None:
    lines = client.get("/metrics").text.splitlines()
    assert all(re.fullmatch(r'# (HELP|TYPE) \w+ .+|\w+(\{\w+="[^"]*"(,\w+="[^"]*")*\})? \S+', line) for line in lines)
    counts = [int(line.rsplit(" ", 1)[1]) for line in lines if line.startswith("lycosa_page_time_seconds_bucket")]
    assert counts == sorted(counts)
    names = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(names) == len(set(names))


def test_host_and_url_have_pages_of_their_own(client: Client, front_page: str) -> None:
    host = front_page.rstrip("/")
    assert "Folders by weight" in client.get(f"/host?host={quote(host)}").text
    assert "Stored copy" in client.get(f"/url?url={quote(front_page)}").text
    assert client.get(f"/change?url={quote(front_page)}").status == 200
    assert client.get(f"/graph?url={quote(front_page)}").status == 200
    assert client.get(f"/api/v1/url?url={quote(front_page)}").facts["view"]["status"] == 200
    around = client.get(f"/api/v1/neighbours?host={quote(host)}").facts
    assert around["url"] == host
    assert {each["direction"] for each in around["neighbours"]} == {"in", "out"}
    assert "The hosts around" in client.get(f"/graph?host={quote(host)}").text


def test_hosts_are_found_and_sorted(client: Client) -> None:
    everyone = client.get("/api/v1/hosts?sort=pages").facts
    pages = [host["pages"] for host in everyone["hosts"]]
    assert pages == sorted(pages, reverse=True)
    assert everyone["total"] == len(pages) > 1
    assert client.get("/api/v1/hosts?q=h0").facts["total"] == 1
    assert client.get("/api/v1/hosts?offset=1&limit=1").facts["hosts"] == everyone["hosts"][1:2]
    by_address = [host["address"] for host in client.get("/api/v1/hosts?sort=address").facts["hosts"]]
    assert by_address == sorted(by_address)


@pytest.mark.parametrize("column", HOST_COLUMNS)
def test_hosts_are_sorted_by_every_column_that_is_shown(column: str, client: Client) -> None:
    there, back = (client.get(f"/api/v1/hosts?sort={column}{up}").facts["hosts"] for up in ("", "&up=1"))
    assert {host["host"] for host in there} == {host["host"] for host in back}
    if column not in NAME_COLUMNS:
        values = [-1 if host[column] is None else host[column] for host in there]
        assert values == sorted(values, reverse=True)


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/host?host=https://nobody.example",
        "/api/v1/change?url=https://nobody.example/",
        "/api/v1/changes?since=sometime",
        "/api/v1/urls?state=lost",
        "/api/v1/url?url=",
        "/api/v1/hosts?sort=beauty",
        "/api/v1/timeline?points=0",
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(path: str, client: Client) -> None:
    answer = client.get(path)
    assert answer.status in (400, 404, 422)
    assert answer.facts["detail"]


def test_problem_is_json_for_the_api_and_a_page_for_people(client: Client) -> None:
    assert client.get("/api/v1/nothing").facts["detail"] == "/api/v1/nothing is not a page of this server."
    refused = client.get("/host")
    assert refused.status == 422
    assert "host: Field required" in refused.text


def test_page_about_nothing_says_so(client: Client) -> None:
    for path in ("/host?host=https://nobody.example", "/change?url=https://nobody.example/", "/nothing"):
        assert "<h1>" in client.get(path).text


def test_copies_of_a_page_are_found(client: Client, collection: Path) -> None:
    with Collection(collection) as opened:
        known = list(opened.duplicates())
    cluster = client.get(f"/api/v1/copies?url={quote(known[0].url)}").facts
    assert [page["url"] for page in cluster] == [page.url for page in known if page.cluster == known[0].cluster]
    assert "the same document" in client.get(f"/copies?url={quote(known[-1].url)}").text
    assert client.get("/api/v1/copies?url=https://nobody.example/").facts == []


def test_search_has_facets_that_narrow_it(client: Client) -> None:
    facets = client.get("/api/v1/search?q=the&facets=1").facts["facets"]
    assert len(facets["hosts"]) > 1
    assert quote(f"site:{facets['hosts'][0]['value']}", safe="") in client.get("/search?q=the").text


def test_wrong_query_stays_in_the_box_of_the_search(client: Client) -> None:
    found = client.get("/search?q=%22roof")
    assert found.status == 400 and "a quotation mark is not closed" in found.text
    assert 'name="q" value="&#34;roof"' in found.text


def test_settings_that_can_be_changed_come_first(client: Client) -> None:
    text = client.get("/settings").text
    can, cannot = text.split("<details>")
    assert 'data-set="delay_s"' in can
    assert "data-set" not in cannot
    order = [each.group for each in SETTINGS.values() if f"<h2>{each.group}</h2>" in can]
    assert can.index(f"<h2>{order[0]}</h2>") < can.index(f"<h2>{order[-1]}</h2>")


def test_limits_are_shown_in_words_with_units(tmp_path: Path) -> None:
    save_settings(tmp_path, CrawlSettings(pages=5_000, depth=0, time_s="2m", bytes="2MB", host_pages=["a.example=5"]))
    shown = ["pages 5,000", "depth 0", "time 2m 00s", "bytes 2.0 MB", "host pages a.example=5"]
    assert limit_list(CollectionSource(tmp_path)) == shown


def test_host_is_paused_and_released_by_settings(collection: Path, tmp_path: Path, front_page: str) -> None:
    source = CollectionSource(shutil.copytree(collection, tmp_path / "c"))
    steered = Client(make_app(source, token=TOKEN, replay_at=""), TOKEN)
    for action, groups in (("pause", ("h0.sim=1/86400",)), ("slow", ("h0.sim=1/10",)), ("release", ())):
        answer = steered.post("/api/v1/hosts/steer", {"host": front_page.rstrip("/"), "action": action})
        assert answer.status == 200, answer.text
        assert source.settings().groups == groups
        shown = steered.get(f"/api/v1/host?host={quote(front_page.rstrip('/'))}").facts["host"]
        assert shown["delay_s"] == {"pause": 86_400.0, "slow": 10.0, "release": source.settings().delay_s}[action]
        assert shown["next_s"] == shown["last_s"] + shown["delay_s"]
    source.close()


def test_limit_of_a_host_is_raised_shown_and_undone(collection: Path, tmp_path: Path, front_page: str) -> None:
    source, host = CollectionSource(shutil.copytree(collection, tmp_path / "c")), front_page.rstrip("/")
    steered = Client(make_app(source, token=TOKEN, replay_at=""), TOKEN)
    for pages in (70, 700):
        answer = steered.post("/api/v1/hosts/steer", {"host": host, "action": "limit", "pages": pages})
        assert source.settings().host_pages == (f"h0.sim={pages}",)
    assert "of at most 700" in steered.get(f"/host?host={quote(host)}").text
    steered.post("/api/v1/steer", {"action": "set", "settings": answer.facts["undo"]})
    assert source.settings().host_pages == ("h0.sim=70",)
    source.close()


def test_rules_of_a_host_are_shown_as_they_are_understood(client: Client) -> None:
    hosts = [each["host"] for each in client.get("/api/v1/hosts").facts["hosts"] if "rule" in each["robots"]]
    asked = [f"host?host={quote(host)}" for host in hosts]
    found = {each: client.get(f"/api/v1/{each}").facts["robots"] for each in asked}
    ruled, robots = next((each, robots) for each, robots in found.items() if robots["rules"])
    assert robots["says"].startswith("read 20")
    assert len(robots["disallow"]) + len(robots["allow"]) == robots["rules"]
    shown = client.get(f"/{ruled}").text
    for rule in robots["disallow"]:
        assert f"Disallow: <code>{rule}</code>" in shown


def test_host_has_a_timeline_of_what_it_gave(client: Client, front_page: str) -> None:
    page = client.get(f"/api/v1/host?host={quote(front_page.rstrip('/'))}").facts
    moments = page["timeline"]["moments"]
    span_s = moments[1]["at_unix"] - moments[0]["at_unix"]
    assert round(sum(each["pages_per_s"] for each in moments) * span_s) == page["host"]["pages"]
    assert any(each["mean_s"] for each in moments)
    assert moments[-1]["at_unix"] == pytest.approx(page["host"]["last_s"], abs=1)
    assert "data-moments=" in client.get(f"/host?host={quote(front_page.rstrip('/'))}").text


def test_shards_have_a_page_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b"):
        crawl(WEB, tmp_path / "shards" / name, front(WEB), pages=3)
    (tmp_path / "cluster.json").write_text("{}")
    (tmp_path / "lycosa.toml").write_text("")
    source = CollectionSource(tmp_path)
    sharded = Client(make_app(source, token=TOKEN, replay_at=""), TOKEN)
    shards = sharded.get("/api/v1/shards").facts["shards"]
    assert [(each["name"], each["pages"]) for each in shards] == [("a", 3), ("b", 3)]
    assert {host["shard"] for host in sharded.get("/api/v1/hosts").facts["hosts"]} == {"a", "b"}
    assert ">shard</a>" in sharded.get("/hosts").text
    assert 'href="/shards"' in sharded.get("/").text
    assert "the coordinator says here" in sharded.get("/shards").text
    report = {
        "name": "a",
        "machine": "north",
        "heard_unix": 1.0,
        "addresses": 4_321,
        "awaited": 0,
        "move": "hands over",
    }
    status = {"epoch": 7, "move": "hosts move", "shards": [report, {**report, "name": "c", "machine": "south"}]}
    (tmp_path / "coordinator.json").write_text(json.dumps(status))
    monkeypatch.setattr("lycosa.serve.source.is_crawled", lambda _: True)
    page = sharded.get("/api/v1/shards").facts
    assert [each["report"] and each["report"]["move"] for each in page["shards"]] == ["hands over", None]
    assert [each["machine"] for each in page["elsewhere"]] == ["south"]
    assert "4,321" in sharded.get("/shards").text
    source.close()


def test_folders_are_named_within_each_other() -> None:
    assert folder_name("https://a.example/docs/guide/") == "guide/"
    assert folder_name("https://a.example:8080/a%20b/") == "a%20b/"


def test_words_of_a_query_are_marked_where_they_were_found(client: Client) -> None:
    assert marked_parts("a solar roof", [(2, 7)]) == [(False, "a "), (True, "solar"), (False, " roof")]
    assert marked_parts("roof", []) == [(False, "roof")]
    assert "<mark>the</mark>" in client.get("/search?q=the").text


def test_search_waits_for_an_index_that_is_being_made(
    collection: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, may_end = CollectionSource(shutil.copytree(collection, tmp_path / "c")), threading.Event()
    searcher = Client(make_app(source, token=TOKEN, replay_at=""), TOKEN)

    def update(path: Path) -> None:
        may_end.wait()
        update_index(path)

    monkeypatch.setattr("lycosa.serve.source.update_index", update)
    monkeypatch.setattr("lycosa.serve.source.PATIENCE_S", 0.01)
    assert searcher.get("/api/v1/search?q=the").facts is None
    waiting = searcher.get("/search?q=the").text
    assert "The index is being made" in waiting
    assert 'http-equiv="refresh"' in waiting
    may_end.set()
    monkeypatch.setattr("lycosa.serve.source.PATIENCE_S", 60.0)
    assert searcher.get("/api/v1/search?q=the").facts["total"] > 0
    past = searcher.get("/api/v1/search?q=the&as_of=2100-01-01").facts
    assert past["total"] == searcher.get("/api/v1/search?q=the").facts["total"]
    source.close()


def test_crawl_that_is_making_its_collection_is_beginning(tmp_path: Path) -> None:
    source = CollectionSource(tmp_path / "c")
    early = Client(make_app(source, token=TOKEN, replay_at=""), TOKEN)
    assert early.get("/api/v1/status").facts["state"] == "beginning"
    with CollectionStore.create(tmp_path / "c") as made:
        assert early.get("/api/v1/status").facts["state"] == "beginning", "it has no settings yet"
        assert "fills itself" in early.get("/").text
        made.save_settings("")
        assert early.get("/api/v1/status").facts["state"] == "running"
        assert early.get("/").status == 200
    source.close()


def test_crawl_at_rest_says_how_it_continues(collection: Path, tmp_path: Path) -> None:
    into = shutil.copytree(collection, tmp_path / "a collection")
    source = CollectionSource(into)
    status = Client(make_app(source, token=TOKEN, replay_at=""), TOKEN).get("/api/v1/status").facts
    assert status["state"] == "stopped"
    assert f"lycosa crawl --into '{into}' continues" in status["sentence"]
    source.close()


def test_stored_copy_is_at_the_address_by_which_the_viewer_asks(client: Client, front_page: str) -> None:
    url = f"{front_page}a;b?q={{x|y}}&z=1"
    asked = f"/copy?{urlencode({'url': url, 'at': '20260101000000', 'kind': 'frame'})}"
    for host in ("127.0.0.1:8480", "localhost:8480", "192.0.2.7", "[::1]:8480"):
        answer = client.get(asked, host=host)
        name = host.removesuffix(":8480")
        assert (answer.status, answer.headers["location"]) == (
            303,
            f"http://{name}:1/secret/frame/20260101000000/{url}",
        )
        frames = f"http://{name}:1/secret/"
        assert (frames in answer.headers["content-security-policy"]) == ("[" not in host)
    latest = client.get(f"/copy?{urlencode({'url': front_page, 'at': '../../x'})}").headers["location"]
    assert latest == f"http://127.0.0.1:1/secret/view/latest/{front_page}"
    assert client.get("/copy?url=javascript:alert(1)").status == 400
    assert client.get("/copy?url=http://a.example/&kind=..").status == 422


def test_changed_words_stand_in_their_own_column() -> None:
    assert changed_words("a [-b-]{+c+} d") == [("", "a "), ("gone", "b"), ("new", "c"), ("", " d")]
    assert changed_words("[not a mark] {+never closed") == [("", "[not a mark] {+never closed")]


def test_seeds_of_private_addresses_are_refused(client: Client) -> None:
    assert client.post("/api/v1/seeds", {"urls": ["http://10.0.0.1/"]}).status == 400
    assert client.post("/api/v1/seeds", {"urls": ["ftp://example.org/"]}).status == 400
    assert client.post("/api/v1/seeds", {"urls": []}).status == 422


def test_added_seeds_are_logged_with_their_origin(collection: Path, tmp_path: Path) -> None:
    source = CollectionSource(shutil.copytree(collection, tmp_path / "c"))
    steered = Client(make_app(source, token=TOKEN, replay_at=""), TOKEN)
    assert steered.post("/api/v1/seeds", {"urls": ["example.org/a"]}).facts["says"] == "1 URL added"
    added = [event for event in steered.get("/api/v1/log").facts if event["event"] == "added"]
    assert [(event["urls"], event["origin"]) for event in added] == [
        (["https://example.org/a"], "live page, 127.0.0.1")
    ]
    assert "<b>urls</b> https://example.org/a</span>" in steered.get("/log").text
    source.close()


def test_points_of_a_chart_have_rates_within_a_run_only() -> None:
    samples = [
        Sample(at_unix=0.0, begins=True, pages=0),
        Sample(at_unix=2.0, pages=10, bytes=400),
        Sample(at_unix=100.0, begins=True, pages=10, bytes=400),
        Sample(at_unix=101.0, pages=15, bytes=500),
    ]
    points = chart_points(samples, most=100)
    assert [point.pages_per_s for point in points] == [None, 5.0, None, 5.0]
    assert points[1].bytes_per_s == 200
    assert [point.begins for point in points] == [True, False, True, False]


def test_points_of_shards_are_added_up() -> None:
    one = [Sample(at_unix=0.0, begins=True), Sample(at_unix=2.0, pages=10)]
    two = [Sample(at_unix=1.0, begins=True), Sample(at_unix=3.0, pages=5)]
    assert [point.pages for point in chart_points(sum_of_timelines([one, two]), most=100)] == [0, 0, 10, 15]


def test_search_folds_near_copies_and_links_to_all_of_them(tmp_path: Path) -> None:
    text = "The sun shines on roofs, and what it does to houses is told at length. " * 12
    pages = {
        FIRST: links("one", "two"),
        f"{FIRST}one": f"<title>Sun</title><main>{text}</main>",
        f"{FIRST}two": f"<title>Sun</title><main>{text} Since Monday.</main>",
    }
    crawl_site(tmp_path, lambda url: Sent(pages[url], {}) if url in pages else None)
    source = CollectionSource(tmp_path)
    searcher = Client(make_app(source, token=TOKEN, replay_at=""), TOKEN)
    found = searcher.get("/api/v1/search?q=sun").facts
    every = searcher.get("/api/v1/search?q=sun&fold=false").facts

    assert found["folded"] == 1
    assert (every["total"], every["folded"]) == (found["total"] + found["folded"], 0)
    assert "show 1 copy as well" in searcher.get("/search?q=sun").text
    assert "fold copies" in searcher.get("/search?q=sun&fold=false").text
    source.close()
