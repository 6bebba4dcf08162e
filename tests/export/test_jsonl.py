"""`lycosa export DIR jsonl`: what a line holds, and the forms of known corpora."""

import json
from pathlib import Path
from typing import Any

import pytest

from lycosa.export.jsonl import json_line
from tests.cli.command import lycosa
from tests.crawl.small_site import FIRST
from tests.export.conftest import FORMULA


def exported(collection: Path, *words: str) -> list[dict[str, Any]]:
    said = lycosa("export", collection, "jsonl", *words)
    assert said.code == 0, said.err
    return [json.loads(line) for line in said.out.splitlines()]


def test_jsonl_holds_every_page_that_status_counts(small: Path) -> None:
    pages = exported(small)
    assert len(pages) == lycosa("status", small, "--json").facts["pages"] == 6
    home = next(page for page in pages if page["url"] == FIRST)
    assert home["title"] == "Home"
    assert home["language"] == "en"
    assert "Solar heat." in home["text"]
    assert home["status"] == 200
    assert "links" not in home
    assert {page["title"] for page in pages} >= {FORMULA, "Ä & \U0001f577", "Other"}


def test_jsonl_content_is_what_was_asked_for(small: Path) -> None:
    assert "<title>Home" in exported(small, "--content", "html", "--path", "/$", "--host", "127.0.0.1")[0]["html"]
    assert "text" not in exported(small, "--content", "none")[0]
    assert exported(small, "--links", "--path", "/$", "--host", "127.0.0.1")[0]["links"][0] == {
        "url": f"{FIRST}a",
        "kind": "a",
        "anchor": "a",
    }


def test_jsonl_metadata_is_what_a_page_says_of_itself(small: Path) -> None:
    pages = exported(small, "--metadata", "--content", "none", "--host", "127.0.0.2")
    assert pages[0]["metadata"]["title"] == "Other"


def test_jsonl_like_a_corpus_takes_nothing_more(small: Path) -> None:
    said = lycosa("export", small, "jsonl", "--like", "c4", "--links")
    assert said.code == 2
    assert "fields of its corpus" in said.err


@pytest.mark.parametrize(
    ("corpus", "names"),
    [
        ("dolma", ["id", "text", "source", "added", "created", "metadata"]),
        (
            "fineweb",
            ["text", "id", "dump", "url", "date", "file_path", "language", "language_score", "token_count"],
        ),
        ("c4", ["text", "timestamp", "url"]),
    ],
)
def test_jsonl_like_a_corpus_has_its_fields_in_order(small: Path, corpus: str, names: list[str]) -> None:
    pages = exported(small, "--like", corpus)
    assert {tuple(page) for page in pages} == {tuple(names)}
    assert any("Solar heat." in page["text"] for page in pages)


def test_json_line_is_valid_whatever_the_string() -> None:
    for text in ("\0", "\ud800", "\ud83d\ude00", "\u2028", '"\\\n', "\udcff" * 3):
        line = json_line({"title": text, "links": [{"url": text}]})
        assert line.count(b"\n") == 1
        found = json.loads(line.decode())
        assert found["title"].encode() == found["links"][0]["url"].encode()


def test_json_line_takes_every_hostile_string(conformance: Path) -> None:
    for text in json.loads((conformance / "hostile-strings" / "blns.json").read_text()):
        assert json.loads(json_line({"t": text}))["t"] == text
