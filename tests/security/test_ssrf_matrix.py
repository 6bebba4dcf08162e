"""No special-purpose address is ever connected to, whatever way its URL comes in."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.security.closed_world import SITE
from tests.security.ways import QUIET_WAYS, WAYS

REPOSITORY = Path(__file__).parents[2]
CLOSED = "ip link set lo up && ip route add local 0.0.0.0/0 dev lo && ip -6 route add local ::/0 dev lo"

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("ssrf")]  # one world for all, made once

Report = dict[str, Any]


@pytest.fixture(scope="module")
def report(conformance: Path, tmp_path_factory: pytest.TempPathFactory) -> Report:
    """What came of every way, each tried once in a network that has only `lo`."""
    try:
        subprocess.run(["unshare", "--net", "sh", "-c", CLOSED], check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no network namespace with all addresses on lo: {getattr(error, 'stderr', '') or error}")
    folder = tmp_path_factory.mktemp("closed_world")
    command = ["unshare", "--net", sys.executable, "-m", "tests.security.ways", str(conformance), str(folder)]
    environment = {**os.environ, "PYTHONPATH": f"{REPOSITORY / 'src'}{os.pathsep}{REPOSITORY}"}
    subprocess.run(command, check=True, cwd=REPOSITORY, env=environment, timeout=600)
    found: Report = json.loads((folder / "report.json").read_text())
    return found


@pytest.mark.parametrize("name", [way.__name__ for way in WAYS])
def test_special_addresses_are_refused_however_they_come_in(report: Report, name: str) -> None:
    way = report[name]

    assert {address for _, address, _ in way["started"]} <= {SITE}
    assert set(way["heard"]) <= {f"{SITE} 80"}
    assert set(way["refused"]) == set(way["expected"])
    assert len(way["expected"]) >= 200
    assert "Traceback" not in way["said"]


@pytest.mark.parametrize("name", [way.__name__ for way in QUIET_WAYS])
def test_special_addresses_are_not_asked_by_logins_and_browsers(report: Report, name: str) -> None:
    way = report[name]
    if not way["tried"] and ("lycosa[render]" in way["said"] or "apt-get install chromium" in way["said"]):
        pytest.skip(way["said"])

    assert {address for _, address, _ in way["started"]} <= {SITE}
    assert set(way["heard"]) <= {f"{SITE} 80"}
    assert way["tried"] >= 200


def test_tables_of_parts_that_redirect_are_not_followed(report: Report) -> None:
    assert report["link_in_a_table_of_parts"]["tried"] >= 190


def test_typed_literal_opens_its_host_and_port_only(report: Report) -> None:
    way = report["typed_literal"]

    assert way["heard"] == ["10.1.2.3 80", "127.0.0.1 8081", "127.0.0.7 8080", "fc00::5 80"]
    assert set(way["refused"]) == set(way["expected"])


def test_odd_forms_of_open_addresses_are_asked(report: Report) -> None:
    way = report["odd_form_of_an_open_address"]

    asked = ("1.0.0.0", "1.0.0.1", "1.0.1.0", "1.1.0.1", "1.255.255.255", "63.255.255.255")
    assert way["heard"] == [f"{address} 80" for address in asked]
    assert way["refused"] == []


def test_matrix_hears_the_connections_of_a_crawl_without_guard(report: Report) -> None:
    way = report["everything_allowed"]

    assert way["refused"] == []
    assert len(way["heard"]) > 150  # without the ones that cannot be connected to at all: multicast, zones
