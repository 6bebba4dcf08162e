"""Exports of a collection of several shards, with its archive on this machine or in a central store."""

import json
from pathlib import Path

import pyarrow.dataset
import pytest

from lycosa import Collection
from lycosa.simweb import SimSettings, SimWeb
from proof.ground.memory_cluster import crawl
from tests.cli.command import lycosa

WEB = SimWeb(SimSettings(hosts=6, pages=90, seed=5))
SEED = f"{WEB.linker.origin(0)}/"


@pytest.mark.slow
@pytest.mark.parametrize("has_store", [False, True], ids=["here", "central store"])
def test_all_shards_are_exported_as_one(tmp_path: Path, has_store: bool) -> None:
    into = tmp_path / "c"
    (into / "shards").mkdir(parents=True)
    store = {"store": str(tmp_path / "store"), "checkpoint_s": 600.0} if has_store else {}
    crawl(WEB, into, SEED, workers=3, delay_s=0.05, **store)
    assert has_store is not any(into.glob("shards/*/warc/*.warc.gz"))
    pages = lycosa("status", into, "--json").facts["pages"]
    said = lycosa("export", into, "jsonl")
    assert said.code == 0, said.err
    found = {page["url"]: page for page in map(json.loads, said.out.splitlines())}
    assert len(found) == len(said.out.splitlines()) == pages > 60
    with Collection(into) as collection:
        assert {page.url: page.text for page in collection} == {url: page["text"] for url, page in found.items()}
        hosts = {url.split("/")[2].partition(":")[0] for url in found}
        assert len(hosts) > 2
        each = [collection.export("csv", tmp_path / "h.csv", host=[host]).pages for host in hosts]
        assert sum(each) == pages
        unlisted = sum(bool(page.duplicate_of) or page.row.noindex for page in collection)
        assert collection.export("sitemap", tmp_path / "maps").pages == pages - unlisted
        assert collection.export("jsonl", tmp_path / "q", query="the OR a", content="none").pages <= pages
        tables = collection.export("parquet", tmp_path / "tables")
        assert (tables.pages >= pages, tables.unread) == (True, 0)
    index = pyarrow.dataset.dataset(tmp_path / "tables" / "index", partitioning="hive").to_table().to_pylist()
    rows = [row for row in index if row["subset"] == "warc"]
    assert {row["url"] for row in rows} == found.keys()
    assert {row["warc_segment"] for row in rows} == ({"0"} if has_store else {"s1", "s2"})
    assert all(has_store or (into / row["warc_filename"]).is_file() for row in rows)
