"""The folder of a crawl with shards, and what is refused before anything starts. Crawls on Ray are in test_ray."""

import importlib.util
import json
import socket
import threading
import time
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from lycosa.cli.commands import app
from lycosa.cluster.membership import lost_shards
from lycosa.cluster.run import ShardedFolder
from lycosa.crawl.stats import KEY, CrawlStats, Totals
from lycosa.errors import SettingsError
from lycosa.records import Family
from lycosa.settings import CrawlSettings
from lycosa.store import Batch, CollectionStore
from tests.cluster.conftest import free_port


def test_summary_of_agents_that_were_ended_at_once_has_the_counts_that_they_kept(tmp_path: Path) -> None:
    folder = ShardedFolder(tmp_path / "c")
    folder.prepare(CrawlSettings(workers=1))
    agent = CollectionStore.create(tmp_path / "c" / "shards" / "s0")
    kept = Totals(pages=33, known=50, queued=17, bytes=900, requests=40, seconds=3.0)

    def commit_late() -> None:
        time.sleep(0.3)
        batch = Batch()
        batch.put(Family.META, KEY, msgspec.json.encode(kept))
        agent.commit(batch)
        agent.close()

    told = CrawlStats(pages=23, known=40, queued=17, bytes=500, requests=25, run_pages=13, run_bytes=400, seconds=7.0)
    ending = threading.Thread(target=commit_late)
    ending.start()
    found = folder.final_stats(told)
    ending.join()
    folder.close()
    assert (found.pages, found.known, found.queued, found.bytes, found.requests) == (33, 50, 17, 900, 40)
    assert (found.run_pages, found.run_bytes, found.seconds) == (23, 800, 7.0)


def test_summary_where_nothing_was_kept_is_as_told(tmp_path: Path) -> None:
    folder, told = ShardedFolder(tmp_path / "c"), CrawlStats(pages=1)
    assert folder.final_stats(told) == told
    folder.close()


@pytest.fixture
def sharded(tmp_path: Path) -> Path:
    """A collection of two shards, of which the second one is lost."""
    into = tmp_path / "c"
    with closing(ShardedFolder(into)) as folder:
        folder.prepare(CrawlSettings(workers=2))
    CollectionStore.create(into / "shards" / "s0").close()
    return into


def complaint(*words: str | Path) -> str:
    """What a command ends with."""
    return str(CliRunner().invoke(app, [str(word) for word in words]).exception)


def test_without_ray_one_sentence_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "ray" else found(name))
    said = complaint("crawl", "http://127.0.0.1:9/", "--into", tmp_path / "c", "--workers", "2")
    assert said == "a crawl with --workers needs an optional package: pip install 'lycosa[cluster]'"
    assert not (tmp_path / "c").exists()


def test_recrawl_of_one_shard_is_refused_and_says_what_visits_it(sharded: Path) -> None:
    shard = sharded / "shards" / "s0"
    words = f"{shard} is a shard of {sharded}: lycosa recrawl {sharded} visits its pages again"
    assert complaint("recrawl", shard, "--all") == words


def test_shard_is_not_crawled_alone(sharded: Path) -> None:
    shard = sharded / "shards" / "s0"
    with pytest.raises(SettingsError, match=f"{shard} is a shard of {sharded}: say --into {sharded}"):
        ShardedFolder(shard)


def test_collection_of_one_process_is_not_gone_on_with_by_several(tmp_path: Path) -> None:
    CollectionStore.create(tmp_path / "c").close()
    with pytest.raises(SettingsError, match="go on without --workers"):
        ShardedFolder(tmp_path / "c")


def test_lost_shard_is_named(sharded: Path) -> None:
    sentence = f"the folder of shard s1 is missing ({sharded / 'shards' / 's1'}), and with it all that it held"
    assert lost_shards(sharded) == [sentence]
    said = CliRunner().invoke(app, ["status", str(sharded), "--json"])
    assert (said.exit_code, said.stderr, json.loads(said.stdout)["pages"]) == (0, f"lycosa: {sentence}\n", 0)


def test_what_is_wrong_with_a_node_is_said_in_a_sentence(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("secret\n")
    token.chmod(0o600)
    start = ("cluster", "--token-file", token, "start", "--head")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        sentence = f"port {port} at 127.0.0.1 is in use: choose another with --port"
        assert complaint(*start, "--port", str(port)) == sentence
    assert complaint(*start, "--address", "192.0.2.77").startswith("192.0.2.77 is no address of this machine")
    nobody = f"127.0.0.1:{free_port()}"
    assert f"nobody listens at {nobody}" in complaint("cluster", "--token-file", token, "--at", nobody, "status")
    for address, why in (("foo", "is no address of a cluster"), ("127.0.0.1:99999", "has no such port")):
        for words in (("start", "--join", address), ("--at", address, "status")):
            assert complaint("cluster", "--token-file", token, *words).startswith(f"{address!r} {why}")


def test_places_without_a_cluster_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "places"
    file.write_text("192.0.2.0/24 berlin\n")
    words = ("crawl", "http://127.0.0.1:9/", "--into", tmp_path / "c", "--places", file)
    assert "lycosa cluster start --place NAME" in complaint(*words, "--workers", "2")
    assert "--places is for crawls of a cluster" in complaint(*words)
    assert not (tmp_path / "c").exists()
