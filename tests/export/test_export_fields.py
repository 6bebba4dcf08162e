"""Fields by CSS selectors on the command line: in exports, and tried on one page."""

import json
from pathlib import Path

import pytest

from lycosa import open as lycosa_open
from lycosa.errors import SettingsError
from tests.cli.command import lycosa
from tests.crawl.small_site import FIRST


def test_fields_asked_for_at_export_are_in_every_line(small: Path, tmp_path: Path) -> None:
    (tmp_path / "f.toml").write_text("head = 'title'\nlinks = 'main a@href*'", encoding="utf-8")
    said = lycosa("export", small, "jsonl", "--field", "head=p", "--fields", tmp_path / "f.toml", "--content", "none")
    assert said.code == 0, said.err
    fields = {page["url"]: page["fields"] for page in map(json.loads, said.out.splitlines())}
    assert fields[FIRST]["head"] == "Solar heat."  # what is typed counts before what the file has
    assert fields[FIRST]["links"][:2] == [f"{FIRST}a", f"{FIRST}b"]
    assert fields[f"{FIRST}docs/y.txt"] == {"head": None, "links": []}


def test_fields_asked_for_in_python_are_those_of_the_command(small: Path, tmp_path: Path) -> None:
    with lycosa_open(small) as collection:
        collection.export("jsonl", tmp_path / "x.jsonl", content="none", fields={"head": "p", "links": "main a@href*"})
        with pytest.raises(SettingsError, match="CSS selector cannot be read"):
            collection.export("jsonl", tmp_path / "y.jsonl", fields={"price": ".price::text"})
    pages = map(json.loads, (tmp_path / "x.jsonl").read_text().splitlines())
    fields = {page["url"]: page["fields"] for page in pages}
    assert fields[FIRST]["head"] == "Solar heat."
    assert fields[FIRST]["links"][0] == f"{FIRST}a"


def test_get_shows_fields_and_metadata_of_a_page(small: Path) -> None:
    assert lycosa("get", FIRST, "--in", small, "--field", "text=main p").facts == {"text": "Solar heat."}
    said = lycosa("get", FIRST, "--in", small, "--metadata").facts
    assert said["metadata"]["title"] == "Home"
    assert said["fields"] == {}


def test_bad_selector_is_refused_before_anything_is_done(small: Path, tmp_path: Path) -> None:
    for words in (
        ("crawl", "example.org", "--into", tmp_path / "c"),
        ("export", small, "jsonl", "--out", tmp_path / "x.jsonl"),
        ("get", FIRST, "--in", small),
    ):
        said = lycosa(*words, "--field", "price=.price::text")
        assert said.code == 2
        assert said.complaints == [
            "lycosa: --field holds 'price=.price::text', the CSS selector cannot be read from '::text' on: "
            ".name is its text, .name@href an attribute"
        ]
    assert not list(tmp_path.iterdir())
