"""One truth: the page, the API, `lycosa status` with and without --json, and the metrics have the same numbers."""

import html
import re
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from lycosa.api.crawl import Crawl
from lycosa.serve.pages import span_text
from lycosa.serve.server import make_app
from lycosa.serve.source import CollectionSource
from lycosa.wording import counted, duration, rate, size
from tests.cli.command import lycosa
from tests.crawl.memory_crawl import crawl, front
from tests.serve.client import Client
from tests.serve.conftest import TOKEN, WEB

METRICS = {  # without labels, by the fact that they are
    "pages_total": "pages",
    "duplicates_total": "duplicates",
    "requests_total": "requests",
    "received_bytes_total": "bytes",
    "redirects_total": "redirects",
    "visits_total": "visits",
    "changed_visits_total": "visits_changed",
    "crawl_seconds_total": "seconds",
    "known_urls": "known",
    "queued_urls": "queued",
    "retrying_urls": "retrying",
    "hosts": "hosts",
    "in_flight_requests": "in_flight",
    "resident_memory_bytes": "memory_bytes",
    "busy_cores": "cores",
    "paused": "is_paused",
    "running": "is_crawled",
    "response_latency_seconds_sum": "first_bytes_s",
    "page_time_seconds_sum": "requests_s",
}
COUNTERS = {
    "responses_total": "statuses",
    "failed_urls_total": "failed_by",
    "dropped_urls_total": "dropped_by",
    "documents_total": "types",
}
FORMS: Mapping[str, Callable[[float], str]] = {
    "": "{:,}".format,
    "rate": rate,
    "size": size,
    "size_s": lambda value: f"{size(value)}/s",
    "span": span_text,
}


class Told(NamedTuple):
    """What everybody says at one moment."""

    status: dict[str, Any]
    metrics: str
    page: str
    command: dict[str, Any]
    summary: str


def told(into: Path) -> Told:
    source = CollectionSource(into)
    live = Client(make_app(source, token=TOKEN, replay_at=""), TOKEN)
    asked = [live.get(path) for path in ("/api/v1/status", "/metrics", "/")]
    command, summary = lycosa("status", into, "--json").facts, lycosa("status", into).out
    source.close()
    return Told(asked[0].facts, asked[1].text, asked[2].text, command, summary)


@pytest.fixture(scope="module", params=["running", "stopped"])
def everyone(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Told:
    into, seen = tmp_path_factory.mktemp("numbers") / "c", list[Told]()

    def look(_: Crawl) -> None:
        with ThreadPoolExecutor(1) as elsewhere:  # here the crawl's loop runs
            seen.append(elsewhere.submit(told, into).result())

    crawl(WEB, into, front(WEB), pages=30, act=look, after=10)
    found = seen[0] if request.param == "running" else told(into)
    assert found.status["state"] == request.param
    return found


def test_command_says_what_the_api_says(everyone: Told) -> None:
    assert everyone.command["pages"] > 5
    assert {name: everyone.status[name] for name in everyone.command} == everyone.command


def test_metrics_say_what_the_api_says(everyone: Told) -> None:
    plain = dict(re.findall(r"^lycosa_(\w+) (\S+)$", everyone.metrics, re.M))
    left = set(plain) - {"viewers", "response_latency_seconds_count", "page_time_seconds_count"}
    assert left == set(METRICS)
    for metric, fact in METRICS.items():
        assert float(plain[metric]) == pytest.approx(float(everyone.status[fact]), abs=1e-6), metric
    for metric, fact in COUNTERS.items():
        counts = re.findall(rf'^lycosa_{metric}{{\w+="(.*)"}} (\d+)$', everyone.metrics, re.M)
        assert {name: int(many) for name, many in counts} == everyone.status[fact], metric
    states = dict(re.findall(r'^lycosa_hosts_by_state{state="(\w+)"} (\d+)$', everyone.metrics, re.M))
    assert states == {state: str(everyone.status[f"hosts_{state}"]) for state in ("active", "waiting", "parked")}
    assert int(plain["response_latency_seconds_count"]) == sum(everyone.status["first_bytes"].values())


def test_page_shows_what_the_api_says(everyone: Told) -> None:
    shown = re.findall(r'data-fact="(\w+)"(?: data-form="(\w+)")?>([^<]*)<', everyone.page)
    numbers = [(fact, form, text) for fact, form, text in shown if fact not in ("state", "sentence")]
    assert {fact for fact, _, _ in numbers} > {"pages", "pages_per_s", "bytes", "queued", "known", "failed", "hosts"}
    for fact, form, text in numbers:
        assert text == FORMS[form](everyone.status[fact]), fact
    for words in ("state", "sentence"):
        assert everyone.status[words] in [html.unescape(text) for fact, _, text in shown if fact == words]


def test_summary_says_what_the_api_says(everyone: Told) -> None:
    facts, said = everyone.status, everyone.summary
    assert said.startswith(f"{counted(facts['pages'], 'page')} kept in ")
    assert f"received {size(facts['bytes'])} in {duration(facts['seconds'])} " in said
    if facts["state"] == "running":
        assert f"{rate(facts['pages_per_s'])} pages/s, {facts['queued']:,} queued, {facts['in_flight']:,} in" in said
    else:
        assert f"{facts['queued']:,} still queued" in said
    for fact, words in (("failed", "failed"), ("dropped", "skipped")):
        assert (f"  {facts[fact]:,} {words}\n" in said) == bool(facts[fact])
    for fact in ("duplicates", "redirects"):
        assert (counted(facts[fact], fact.removesuffix("s")) in said) == bool(facts[fact])
