"""Exports for a purpose: what its publisher forbids is left out and counted, and statements are columns."""

import json
from pathlib import Path

import pytest

from lycosa import Collection
from lycosa.errors import SettingsError
from tests.crawl.small_site import FIRST, Sent, crawl_site, links

PAGES: dict[str, str | Sent | int] = {
    FIRST: f"<title>Home</title>{links('noai', 'open')}",
    f"{FIRST}noai": Sent("<title>No</title>", {"content-usage": "train-ai=n"}),
    f"{FIRST}open": "<title>Open</title><meta name=robots content=nosnippet>",
}


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    into = tmp_path_factory.mktemp("purpose") / "c"
    crawl_site(into, PAGES.get, robots_txt="User-agent: *\nContent-Signal: search=yes\n")
    return into


def exported(collection: Path, out: Path, **options: str | bool) -> tuple[dict[str, dict[str, object]], int]:
    with Collection(collection) as opened:
        report = opened.export("jsonl", out, **options)  # type: ignore[arg-type]
    found = [json.loads(line) for line in out.read_text().splitlines()]
    return {record["url"].removeprefix(FIRST): record for record in found}, report.forbidden


def test_jsonl_has_what_is_said_and_what_follows(collection: Path, tmp_path: Path) -> None:
    found, forbidden = exported(collection, tmp_path / "pages.jsonl")
    assert forbidden == 0
    assert found["noai"]["preferences"] == ["robots.txt content-signal search=yes", "header content-usage train-ai=n"]
    assert found["noai"]["usage"] == {"search": "y", "ai-train": "n"}
    assert found["open"]["usage"] == {"search": "y", "ai-input": "n"}


@pytest.mark.parametrize(("purpose", "left_out"), [("ai-train", "noai"), ("ai-input", "open"), ("search", None)])
def test_export_for_a_purpose_leaves_out_what_forbids_it(
    collection: Path, tmp_path: Path, purpose: str, left_out: str | None
) -> None:
    found, forbidden = exported(collection, tmp_path / "pages.jsonl", purpose=purpose)
    assert set(found) == {"", "noai", "open"} - {left_out}
    assert forbidden == (left_out is not None)


def test_export_that_ignores_preferences_has_everything(collection: Path, tmp_path: Path) -> None:
    found, forbidden = exported(collection, tmp_path / "p.jsonl", purpose="ai-train", ignore_preferences=True)
    assert (len(found), forbidden) == (3, 0)


def test_export_is_for_what_the_crawl_was_for(tmp_path: Path) -> None:
    crawl_site(tmp_path / "c", PAGES.get)
    settings = tmp_path / "c" / "lycosa.toml"
    settings.write_text(settings.read_text().replace('purpose = "archive"', 'purpose = "ai-train"'))
    found, forbidden = exported(tmp_path / "c", tmp_path / "p.jsonl")
    assert set(found) == {"", "open"} and forbidden == 1


def test_csv_and_parquet_have_a_column(collection: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    with Collection(collection) as opened:
        opened.export("csv", tmp_path / "pages.csv")
        opened.export("parquet", tmp_path / "tables")
    assert (
        "robots.txt content-signal search=yes; header content-usage train-ai=n" in (tmp_path / "pages.csv").read_text()
    )
    rows = parquet.read_table(tmp_path / "tables" / "text").to_pylist()
    assert {row["url"]: row["preferences"] for row in rows}[FIRST] == "robots.txt content-signal search=yes"


def test_unknown_purpose_is_named(collection: Path, tmp_path: Path) -> None:
    with Collection(collection) as opened, pytest.raises(SettingsError, match="--purpose is 'ai'"):
        opened.export("jsonl", tmp_path / "p.jsonl", purpose="ai")
