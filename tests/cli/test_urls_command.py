"""`lycosa urls`: its forms of output, what it says where there is nothing, and a reader that goes away."""

import csv
import json
from pathlib import Path

import pytest

from tests.cli.command import Said, lycosa
from tests.inspect.test_urls import fill


@pytest.fixture
def collection(tmp_path: Path) -> Path:
    fill(tmp_path / "c").close()
    return tmp_path / "c"


def test_table_has_a_line_for_each_url_with_its_reason(collection: Path) -> None:
    head, *lines = lycosa("urls", collection).out.splitlines()

    assert head.split() == ["state", "status", "type", "depth", "tries", "links", "url"]
    assert len(lines) == 4
    failed = next(line for line in lines if line.startswith("failed"))
    assert failed.endswith("https://gone.example/  (its host was given up (no such host))")


def test_json_has_an_object_a_line(collection: Path) -> None:
    rows = [json.loads(line) for line in lycosa("urls", collection, "--json", "--state", "queued").out.splitlines()]

    assert [row["url"] for row in rows] == ["https://slow.example/again"]
    assert rows[0]["tries"] == 2
    assert rows[0]["reason"] == "connect timeout"
    assert rows[0]["status"] is None


def test_csv_has_no_formula(collection: Path) -> None:
    rows = list(csv.DictReader(lycosa("urls", collection, "--csv").out.splitlines()))

    page = next(row for row in rows if row["state"] == "done")
    assert page["type"] == "'=cmd|'/c calc'!a1"
    assert page["fetched"] == "2023-11-14T22:13:20Z"
    assert len(rows) == 4


def test_plain_has_the_urls_alone_and_n_bounds_them(collection: Path) -> None:
    whole = lycosa("urls", collection, "--plain").out.splitlines()

    assert len(whole) == 4
    assert lycosa("urls", collection, "--plain", "-n", "3").out.splitlines() == whole[:3]
    assert lycosa("urls", collection, "slow.example", "--plain").out.splitlines() == [
        url for url in whole if "slow" in url
    ]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--state", "lost"], "lycosa: --state is 'lost': choose from queued, done, failed, dropped"),
        (["--json", "--csv"], "lycosa: --json, --csv and --plain exclude each other"),
        (["--plain", "--referrers", "2"], "lycosa: --plain prints the URLs alone: leave out --referrers"),
        (["--status", "ok"], "lycosa: status is 'ok': give a number, a range such as 400-499, or a list with commas"),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence(collection: Path, words: list[str], sentence: str) -> None:
    assert lycosa("urls", collection, *words) == Said(2, "", f"{sentence}\n")


def test_nothing_that_fits_is_said_on_standard_error(collection: Path) -> None:
    assert lycosa("urls", collection, "nowhere.example") == Said(0, "", f"{collection} knows no such URL\n")


def test_folder_without_a_collection_is_named(tmp_path: Path) -> None:
    said = lycosa("urls", tmp_path)

    assert said.code == 2
    assert said.err.startswith(f"lycosa: {tmp_path} is not a collection: ")
