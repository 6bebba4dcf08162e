"""Exports of a collection that was looked at again: versions, what has changed since, and lastmod in sitemaps."""

import json
import re
from pathlib import Path

import pytest

from lycosa import Collection
from lycosa.crawl.progress import Recrawl
from lycosa.inspect import ChangeFilter, list_changes, open_to_read
from lycosa.recrawl import history
from lycosa.simweb import SimSettings, SimWeb
from lycosa.web import format_timestamp, url_key
from tests.cli.command import lycosa
from tests.recrawl.recrawl_world import BEGIN_S, DAY_S, run

WEB = SimWeb(SimSettings(hosts=2, pages=40, seed=4))


@pytest.fixture(scope="module")
def again(tmp_path_factory: pytest.TempPathFactory) -> Path:
    into = tmp_path_factory.mktemp("again") / "c"
    run(WEB, into, f"{WEB.linker.origin(0)}/")
    run(WEB, into, days=30, recrawl=Recrawl(everything=True))
    return into


def test_versions_are_exported_with_what_they_said_then(again: Path, tmp_path: Path) -> None:
    with Collection(again) as collection:
        expected = [(page.url, old.fetched, old.text) for page in collection for old in (*page.versions, page)]
        report = collection.export("jsonl", tmp_path / "v", versions=True)
        newest = collection.export("jsonl", tmp_path / "n")
        md = collection.export("markdown", tmp_path / "md", versions=True)
    found = [json.loads(line) for line in (tmp_path / "v").read_text().splitlines()]
    assert [(page["url"], page["fetched"], page["text"]) for page in found] == expected
    assert report.pages == md.pages == len(list((tmp_path / "md").rglob("*.md"))) > newest.pages


def test_changed_since_takes_what_a_recrawl_found_changed(again: Path) -> None:
    since = format_timestamp(BEGIN_S + DAY_S)
    with open_to_read(again) as collection:
        views = list_changes(collection, ChangeFilter(since_s=BEGIN_S + DAY_S), most=10_000)
    said = lycosa("export", again, "jsonl", "--content", "none", "--changed-since", since)
    found = {json.loads(line)["url"] for line in said.out.splitlines()}
    with Collection(again) as collection:
        there = {page.url for page in collection}
    assert found == {view.url for view in views} & there
    assert 0 < len(found) < len(there)


def test_lastmod_is_the_last_change(again: Path, tmp_path: Path) -> None:
    assert lycosa("export", again, "sitemap", "--out", tmp_path / "m").code == 0
    text = "".join(path.read_text() for path in (tmp_path / "m").rglob("*.xml"))
    entries = dict(re.findall(r"<loc>([^<]*)</loc><lastmod>([^<]*)</lastmod>", text))
    with open_to_read(again) as collection:
        for url, lastmod in entries.items():
            times = [at_s for at_s, _ in history(collection.state, url_key(url))]
            assert not times or lastmod == format_timestamp(max(times))
    assert any(lastmod > format_timestamp(BEGIN_S + DAY_S) for lastmod in entries.values())
