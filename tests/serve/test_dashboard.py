"""The dashboard for Grafana: what it asks for exists in the metrics, and its model is one that Grafana can load."""

import json
import re
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from lycosa.crawl import CrawlStats
from lycosa.serve.metrics import prometheus_text

DASHBOARD = Path(__file__).parents[2] / "deploy" / "grafana-dashboard.json"
METRIC = re.compile(r"lycosa_\w+")
COLUMNS = 24  # of Grafana's grid
UNITS = {"short", "decbytes", "Bps", "reqps", "s"}  # decimal, as on the live page


@pytest.fixture(scope="module")
def model() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(DASHBOARD.read_text())
    return found


def test_dashboard_asks_for_metrics_and_labels_that_exist() -> None:
    one = Counter(some=1)
    stats = CrawlStats(statuses=one, failed=one, dropped=one, types=one)
    text = prometheus_text(stats, is_crawled=True, viewers=1)
    there = set(re.findall(r"^(?:# TYPE )?(lycosa_\w+)", text, re.M))
    labels = {"instance", *re.findall(r'[{,](\w+)="', text)}
    dashboard = DASHBOARD.read_text()
    asked = set(METRIC.findall(dashboard))
    assert len(asked) > 15
    assert asked <= there
    grouped = {label.strip() for some in re.findall(r"by \(([^)]*)\)", dashboard) for label in some.split(",")}
    assert len(grouped) > 3
    assert grouped <= labels


def test_counters_are_asked_for_as_rates_and_gauges_as_they_are(model: dict[str, Any]) -> None:
    for panel in model["panels"]:
        for target in panel["targets"]:
            for rated, metric in re.findall(r"(rate\()?(lycosa_\w+)", target["expr"]):
                counts = metric.endswith(("_total", "_bucket"))
                assert bool(rated) == (counts and panel["type"] == "timeseries" and "topk" not in target["expr"]), (
                    metric
                )


def test_panels_have_a_place_an_identifier_and_a_unit_of_their_own(model: dict[str, Any]) -> None:
    panels = model["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert {panel["type"] for panel in panels} == {"stat", "timeseries"}
    assert {panel["fieldConfig"]["defaults"]["unit"] for panel in panels} <= UNITS
    for panel in panels:
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])
        place = panel["gridPos"]
        assert place["x"] >= 0 and place["x"] + place["w"] <= COLUMNS
    for one, other in combinations([panel["gridPos"] for panel in panels], 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        assert beside or one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]


def test_variables_that_are_used_are_defined(model: dict[str, Any]) -> None:
    defined = {variable["name"] for variable in model["templating"]["list"]}
    used = set(re.findall(r"\$\{?(\w+)", DASHBOARD.read_text())) - {"__rate_interval"}
    assert used == defined
    assert all(panel["datasource"] == {"type": "prometheus", "uid": "${source}"} for panel in model["panels"])


def test_expressions_are_closed(model: dict[str, Any]) -> None:
    for panel in model["panels"]:
        for target in panel["targets"]:
            assert all(target["expr"].count(pair[0]) == target["expr"].count(pair[1]) for pair in ("()", "{}", "[]"))
