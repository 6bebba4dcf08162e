"""Crawl frontiers filter before they transport (M2): only what is wanted travels, nothing is lost, all is counted."""

from collections import Counter
from pathlib import Path

import pytest

from lycosa.cli.options import resolve_settings
from lycosa.cluster.checkpoints import fetch_copies, unpack_archive
from lycosa.errors import SettingsError
from lycosa.inspect import explain_url, open_to_read, stats_of
from lycosa.records import Family
from lycosa.recrawl.versions import StoredDocuments
from lycosa.settings.sources import to_toml
from lycosa.simweb import SimSettings, SimWeb
from lycosa.simweb.log import AuditRules, audit
from lycosa.store import CollectionStore
from lycosa.store.central import open_central_store
from lycosa.store.packed import PackedWarc
from lycosa.store.page_rows import PageRow, unpack_page
from lycosa.store.released import open_packed
from lycosa.web.url import url_from_key
from proof.ground.memory_cluster import MemoryCluster, crawl
from tests.cli.command import lycosa
from tests.crawl.consistency import problems

WEB = SimWeb(SimSettings(hosts=6, pages=90, seed=5, mirrors=0.4))
SEED = f"{WEB.linker.origin(0)}/"
TOPIC = " ".join(word for topic in WEB.layout.vocabulary.topics[::2] for word in topic[:6])
DELAY_S, LEAST = 0.05, 0.1


def crawled(into: Path, **settings: object) -> MemoryCluster:
    (into / "shards").mkdir(parents=True)
    manners = {"delay_s": DELAY_S, "store": str(into / "store"), "checkpoint_s": 600.0}
    cluster = crawl(WEB, into, SEED, workers=3, images=True, **manners, **settings)
    (into / "lycosa.toml").write_text(to_toml(cluster.settings))
    assert not list(into.glob("shards/*/warc/*.warc.gz"))
    assert audit(WEB.settings, cluster.entries(), AuditRules(delay_s=DELAY_S)).is_clean
    return cluster


def pages_of(into: Path) -> dict[str, PageRow]:
    with open_to_read(into) as whole:
        rows = {url_from_key(key): unpack_page(packed) for key, packed in whole.state.walk(Family.PAGE)}
    return {url: row for url, row in rows.items() if row.status == 200 and row.is_page}


def packed_files(into: Path) -> list[PackedWarc]:
    store = open_central_store(str(into / "store"))
    return [found for name in store.names("warc") if (found := open_packed(store, f"warc/{name}")) is not None]


def brought(into: Path, kind: str) -> set[str | None]:
    """The URLs that the store has records of this kind of."""
    return {record.url for packed in packed_files(into) for record in packed.records() if record.type == kind}


def body_of(collection: CollectionStore, row: PageRow) -> bytes | None:
    found = StoredDocuments(collection).read(row)
    return found[1] if found else None


def counts(pages: dict[str, PageRow], reasons: dict[str, str]) -> tuple[dict[str, int], dict[str, int]]:
    size = Counter[str]()
    for url, reason in reasons.items():
        size[reason] += pages[url].size_bytes
    return dict(Counter(reasons.values())), dict(size)


@pytest.mark.slow
def test_only_what_is_wanted_travels_and_everything_is_done_readable_and_counted(tmp_path: Path) -> None:
    cluster = crawled(tmp_path, store_types=["text/*"], topic=TOPIC, store_relevance=LEAST)
    pages = pages_of(tmp_path)
    images = {url: "media-type" for url, row in pages.items() if not row.essence.startswith("text/")}
    texts = {url: row for url, row in pages.items() if url not in images}
    irrelevant = {url: "relevance" for url, row in texts.items() if row.relevance is not None and row.relevance < LEAST}
    copies = {url: "copy" for url, row in texts.items() if row.original and url not in irrelevant}
    elsewhere = {url for url in copies if pages[url].is_elsewhere}
    wanted = set(texts) - set(irrelevant) - set(copies)
    assert min(len(images), len(irrelevant), len(elsewhere), len(wanted)) > 1

    assert brought(tmp_path, "response") & set(pages) == wanted
    assert brought(tmp_path, "revisit") == set(copies)
    assert not brought(tmp_path, "request") & {*images, *irrelevant}

    reported = cluster.coordinator.stats()
    with open_to_read(tmp_path) as whole:
        for stats in (reported, stats_of(whole)):
            assert (stats.left_out, stats.left_out_bytes) == counts(pages, images | irrelevant | copies)
        bodies = {url: body_of(whole, row) for url, row in pages.items()}
        assert all(bodies.values())
        assert "is none of --store-type text/*" in "\n".join(explain_url(whole, min(images)))
        assert "less relevant than --store-relevance 0.1" in "\n".join(explain_url(whole, min(irrelevant)))
        records = {record.url for _, record in whole.records() if record.type == "response"}
        assert {url for url, row in pages.items() if row.is_elsewhere or not row.original} <= records
    assert [problems(tmp_path / "shards" / name) for name in cluster.coordinator.names] == [[], [], []]
    said = lycosa("status", tmp_path).out
    assert "not moved to the store: " in said
    assert f"{len(images):,} pages of other media types" in said

    (tmp_path / "shards").rename(tmp_path / "machines that are away")
    (tmp_path / "shards").mkdir()
    assert len(fetch_copies(tmp_path)) == 3
    with open_to_read(tmp_path) as whole:
        for url, row in pages.items():
            assert body_of(whole, row) == (bodies[url] if url in wanted or url in copies else None)
    said = lycosa("get", min(images), "--in", tmp_path)
    assert (said.code, len(said.complaints)) == (4, 1)
    assert "was left out of the central store" in said.complaints[0]
    told = list[str]()
    assert unpack_archive(str(tmp_path / "store"), tmp_path / "out", tell=told.append) == len(packed_files(tmp_path))
    assert told == [f"{len(images) + len(irrelevant)} pages were left out of the store: their shards have them"]


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"store_types": ["text/*"]}, "name one with --store"),
        ({"store_relevance": "0.3", "topic": "heat"}, "name one with --store"),
        ({"store_relevance": "0.3", "store": "store"}, "name it with --topic"),
        ({"store_relevance": "1.5", "store": "store", "topic": "heat"}, "a number from 0 to 1"),
    ],
)
def test_filter_that_cannot_work_is_refused_in_a_sentence(tmp_path: Path, typed: dict[str, object], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        resolve_settings({"seeds": [SEED], "workers": "2", **typed}, into=tmp_path / "c", environ={})
