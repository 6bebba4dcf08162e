"""The same document at two shards is one document (P6): several shards find the copies that one shard finds."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lycosa.crawl import Shard, Totals
from lycosa.crawl.documents import Copies, CopyClaim
from lycosa.crawl.stats import Counters
from lycosa.errors import StoreError
from lycosa.inspect import explain_url, open_to_read, stats_of
from lycosa.records import Family
from lycosa.recrawl.versions import StoredDocuments
from lycosa.settings import CrawlSettings
from lycosa.settings.sources import to_toml
from lycosa.simweb import SimSettings, SimWeb
from lycosa.store import Batch
from lycosa.store.page_rows import PageRow, pack_row, unpack_page
from lycosa.web.url import split_url, url_from_key, url_key
from proof.ground.memory_cluster import MemoryCluster, crawl
from tests.crawl.consistency import problems

WEB = SimWeb(SimSettings(hosts=8, pages=240, seed=5, mirrors=0.2))
SEED = f"{WEB.linker.origin(0)}/"
DELAY_S = 0.05


def pages_of(into: Path) -> dict[str, PageRow]:
    with open_to_read(into) as whole:
        rows = {url_from_key(key): unpack_page(packed) for key, packed in whole.state.walk(Family.PAGE)}
    return {url: row for url, row in rows.items() if row.status == 200 and row.is_page}


def groups_of(into: Path) -> set[frozenset[str]]:
    """The sets of URLs that are told to have one document."""
    pages, found = pages_of(into), dict[str, set[str]]()
    for url in pages:
        first = url
        while pages[first].original:
            first = pages[first].original
        found.setdefault(first, set()).add(url)
    return {frozenset(group) for group in found.values() if len(group) > 1}


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    into = tmp_path_factory.mktemp("copies") / "alone"
    crawl(WEB, into, SEED, workers=1, delay_s=DELAY_S)
    return into


async def _leave_alone(_: MemoryCluster) -> None:
    """Nothing happens."""


async def _kill_often(cluster: MemoryCluster) -> None:
    chance = random.Random(1)
    for _ in range(6):
        await asyncio.sleep(0.3 + chance.random())
        name = chance.choice(cluster.coordinator.names)
        if name in cluster.tasks and not cluster.coordinator.is_over:
            await cluster.kill(name)
            cluster.start(name)


async def _join_and_leave(cluster: MemoryCluster) -> None:
    await asyncio.sleep(1.5)
    for name in cluster.coordinator.join([""]):
        cluster.start(name)
    while not cluster.coordinator.is_stable:  # noqa: ASYNC110 -- no event tells
        await asyncio.sleep(0.1)
    cluster.coordinator.leave(["s1"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("act", "settings"),
    [
        (_leave_alone, {}),
        pytest.param(_leave_alone, {"assignment": "two-level"}, marks=pytest.mark.slow),
        pytest.param(_kill_often, {}, marks=pytest.mark.slow),
        pytest.param(_join_and_leave, {}, marks=pytest.mark.slow),
    ],
)
def test_shards_find_the_copies_that_one_finds(
    tmp_path: Path, alone: Path, act: Callable[[MemoryCluster], Awaitable[None]], settings: dict[str, str]
) -> None:
    into = tmp_path / "crawl"
    cluster = crawl(WEB, into, SEED, workers=3, delay_s=DELAY_S, act=act, **settings)
    (into / "lycosa.toml").write_text(to_toml(cluster.settings))
    wanted = groups_of(alone)
    assert groups_of(into) == wanted
    with open_to_read(into) as whole, open_to_read(alone) as one:
        assert stats_of(whole).duplicates == stats_of(one).duplicates == sum(len(group) - 1 for group in wanted)
        assert stats_of(whole).types == stats_of(one).types
        contents = StoredDocuments(whole)
        for row in pages_of(into).values():
            assert contents.read(row) is not None
        copies = {url: row.original for url, row in pages_of(into).items() if row.original}
        owner = cluster.coordinator.table.owner
        across = {u: first for u, first in copies.items() if owner(split_url(u).host) != owner(split_url(first).host)}
        assert len(across) > 5
        for url, first in across.items():
            assert f"the same document as {first}" in explain_url(whole, url)
    if cluster.coordinator.table.epoch == 1:
        assert [problems(into / "shards" / name) for name in cluster.coordinator.names] == [[]] * 3


class _Owner:
    """A shard that owns every host and every document."""

    def owns(self, host: str) -> bool:
        return True

    def owns_document(self, digest: bytes) -> bool:
        return True

    def send_claims(self, claims: Sequence[CopyClaim]) -> None:
        raise AssertionError("nothing leaves")


def _shard(get_many: Callable[..., list[None]], **settings: Any) -> Any:
    state = SimpleNamespace(get_many=get_many)
    return SimpleNamespace(
        collection=SimpleNamespace(state=state),
        committer=SimpleNamespace(batch=Batch()),
        settings=CrawlSettings(seeds=("http://a.test/",), **settings),
    )


def test_claims_are_kept_until_their_rows_could_be_read() -> None:
    def broken(*_: object) -> list[None]:
        raise StoreError("the disk does not answer")

    copies = Copies(_shard(broken), _Owner())
    copies.take([CopyClaim("http://a.test/", b"d" * 16, b"s" * 20)])

    with pytest.raises(StoreError):
        copies.before_commit(Batch(), is_last=False)
    assert repr(copies) == "<Copies waiting=1>"


def test_page_that_stays_with_its_shard_claims_no_payload() -> None:
    copies = Copies(_shard(lambda *_: [None], store_types=("text/html",)), _Owner())

    for essence in ("text/plain", "text/html"):
        row = PageRow(200, 1.0, essence=essence, digest=b"d" * 16, payload_sha1=b"s" * 20)
        copies.stored(f"http://a.test/{essence}", row)

    assert [claim.payload_sha1 for claim in copies._claims] == [bytes(20), b"s" * 20]


class _Rows:
    """The rows of a shard that owns every document, and what a commit would write."""

    def __init__(self) -> None:
        self.rows: dict[tuple[Family, bytes], bytes] = {}
        self.batch = Batch()
        self.counters = Counters(Totals())
        self.collection, self.committer, self.frontier = SimpleNamespace(state=self), self, self
        self.settings = CrawlSettings(seeds=("http://a.test/",))
        self.copies = Copies(cast(Shard, self), _Owner())

    def get_many(self, family: Family, keys: Sequence[bytes]) -> list[bytes | None]:
        return [self.rows.get((family, key)) for key in keys]

    def rows_of(self, keys: Sequence[bytes]) -> list[None]:
        return [None] * len(keys)

    def pending(self, keys: object) -> dict[bytes, PageRow]:
        return {}

    def store(self, url: str) -> PageRow:
        row = PageRow(200, 1.0, essence="text/html", digest=b"d" * 16, payload_sha1=b"s" * 20, file_num=1)
        self.rows[Family.PAGE, url_key(url)] = pack_row(row)
        self.counters.add(row)
        self.copies.stored(url, row)
        return self.commit(url)

    def commit(self, url: str) -> PageRow:
        """Returns the row of `url` after a commit."""
        self.copies.before_commit(self.batch, is_last=False)
        for family, key, value, _ in self.batch:
            if value is None:
                del self.rows[family, key]
            else:
                self.rows[family, key] = value
        self.batch.clear()
        return unpack_page(self.rows[Family.PAGE, url_key(url)])


def test_copy_of_a_page_that_changed_is_a_copy_no_more() -> None:
    shard, first, copy = _Rows(), "http://a.test/", "http://b.test/"
    original = shard.store(first)
    row = shard.store(copy)
    assert row.original == first
    assert shard.counters.totals.duplicates == 1

    shard.copies.verify(copy, row)
    assert shard.commit(copy).original == first

    shard.copies.gone(first, original)
    shard.commit(first)
    shard.copies.verify(copy, row)
    assert shard.commit(copy).original == ""
    assert shard.counters.totals.duplicates == 0
    assert shard.counters.totals.pages == 2
    assert shard.counters.totals.types == {"text/html": 2}


def test_second_copy_of_a_page_that_changed_is_one_of_the_first_copy() -> None:
    shard, first, copy, other = _Rows(), "http://a.test/", "http://b.test/", "http://c.test/"
    original, row, last = (shard.store(url) for url in (first, copy, other))

    shard.copies.gone(first, original)
    shard.copies.verify(copy, row)
    shard.copies.verify(other, last)

    assert shard.commit(copy).original == ""
    assert shard.commit(other).original == copy
    assert shard.counters.totals.duplicates == 1
