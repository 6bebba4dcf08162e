"""Pages, API and metrics show the numbers of the collection, and say what cannot be."""

import re
from pathlib import Path
from urllib.parse import quote

import pytest

from lycosa.crawl import Sample
from lycosa.serve.live import chart_points
from tests.cli.command import lycosa
from tests.serve.client import Client

PAGES = ["/", "/hosts", "/urls", "/changes", "/search?q=the", "/report", "/report/page", "/graph", "/settings", "/log"]


@pytest.mark.parametrize("path", PAGES)
def test_every_page_is_shown(path: str, client: Client) -> None:
    answer = client.get(path)
    assert answer.status == 200
    assert "<!doctype html>" in answer.text.lower()


def test_same_numbers_in_status_api_metrics_and_page(client: Client, collection: Path) -> None:
    facts = lycosa("status", collection, "--json").facts
    answered = client.get("/api/v1/status").facts
    assert {name: answered[name] for name in facts} == facts
    metrics = dict(re.findall(r"^(lycosa_\w+) (\S+)$", client.get("/metrics").text, re.M))
    assert int(metrics["lycosa_pages_total"]) == facts["pages"]
    assert int(metrics["lycosa_queued_urls"]) == facts["queued"]
    assert int(metrics["lycosa_response_latency_seconds_count"]) == sum(facts["first_bytes"].values())
    assert f'data-fact="pages">{facts["pages"]:,}<' in client.get("/").text


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


def test_hosts_are_found_and_sorted(client: Client) -> None:
    everyone = client.get("/api/v1/hosts?sort=pages").facts
    pages = [host["pages"] for host in everyone["hosts"]]
    assert pages == sorted(pages, reverse=True)
    assert everyone["total"] == len(pages) > 1
    assert client.get("/api/v1/hosts?q=h0").facts["total"] == 1
    assert client.get("/api/v1/hosts?offset=1&limit=1").facts["hosts"] == everyone["hosts"][1:2]


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


def test_page_about_nothing_says_so(client: Client) -> None:
    for path in ("/host?host=https://nobody.example", "/change?url=https://nobody.example/", "/nothing"):
        assert "<h1>" in client.get(path).text


def test_seeds_of_private_addresses_are_refused(client: Client) -> None:
    assert client.post("/api/v1/seeds", {"urls": ["http://10.0.0.1/"]}).status == 400
    assert client.post("/api/v1/seeds", {"urls": ["ftp://example.org/"]}).status == 400
    assert client.post("/api/v1/seeds", {"urls": []}).status == 422


def test_points_of_a_chart_have_rates_within_a_run_only() -> None:
    samples = [
        Sample(at_unix=0.0, begins=True, pages=0),
        Sample(at_unix=2.0, pages=10, bytes=400),
        Sample(at_unix=100.0, begins=True, pages=10, bytes=400),
        Sample(at_unix=101.0, pages=15, bytes=500),
    ]
    points = chart_points([samples], most=100)
    assert [point.pages_per_s for point in points] == [None, 5.0, None, 5.0]
    assert points[1].bytes_per_s == 200


def test_points_of_shards_are_added_up() -> None:
    one = [Sample(at_unix=0.0, begins=True), Sample(at_unix=2.0, pages=10)]
    two = [Sample(at_unix=1.0, begins=True), Sample(at_unix=3.0, pages=5)]
    assert [point.pages for point in chart_points([one, two], most=100)] == [0, 0, 10, 15]
