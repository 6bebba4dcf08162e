"""Numbers, feed and link index as a crawl makes them: equal to a recount, also after kills, changes and removals."""

import contextlib
import os
import random
import re
import shutil
import signal
import time
from pathlib import Path

import pytest

from lycosa.crawl.progress import folder_bytes
from lycosa.errors import StoreError
from lycosa.graph.feed import FeedEntry, FeedEvent, covered_by, entries_after, mark_covered
from lycosa.graph.index import LIST, LinkIndex, SegmentList, read_list, write_list
from lycosa.graph.indexer import CONSUMER, LinkIndexer, all_pages
from lycosa.graph.links import links_of, rank_pages
from lycosa.records import Family
from lycosa.simweb import SimSettings, SimWeb
from lycosa.simweb.truth import truth_of
from lycosa.store import Batch, CollectionStore
from lycosa.store.page_rows import PageRow, pack_row, unpack_page
from lycosa.web import FollowedLinks
from lycosa.web.url import join_map, url_key
from tests.crawl.memory_crawl import crawl, front
from tests.graph.recount import link_problems, sources_by_target
from tests.simweb.conftest import lycosa, running_simweb


@pytest.mark.slow
def test_crawl_leaves_an_index_that_equals_a_recount(tmp_path: Path) -> None:
    web = SimWeb(SimSettings(hosts=6, pages=900, seed=5))
    result = crawl(web, tmp_path / "c", front(web), delay_s=0.0)
    assert result.stats.pages > 700
    assert link_problems(tmp_path / "c") == []
    with CollectionStore.open(tmp_path / "c", read_only=True) as collection:
        assert LinkIndex.open(tmp_path / "c").covered == max(
            (news.sequence for news in entries_after(collection.state, 0)),
            default=LinkIndex.open(tmp_path / "c").covered,
        )
        pointed_to = set(sources_by_target(collection.state))
    missing = truth_of(web, [front(web)], scope="any").pages - pointed_to - {front(web)}
    assert len(missing) < 20, "pages are found by links; a few by sitemaps alone"


def test_feed_is_cut_when_all_consumers_have_passed(tmp_path: Path) -> None:
    web = SimWeb(SimSettings(hosts=3, pages=300, seed=5))
    crawl(web, tmp_path / "c", front(web), delay_s=0.0, pages=120)
    slow = 40
    mark_covered(tmp_path / "c", "slow", slow)
    crawl(web, tmp_path / "c", front(web), delay_s=0.0)
    with CollectionStore.open(tmp_path / "c", read_only=True) as collection:
        kept = [news.sequence for news in entries_after(collection.state, 0)]
    assert kept[0] == slow + 1
    assert covered_by(tmp_path / "c", CONSUMER) == kept[-1]


class Shop:
    """A collection and a linker, with pages settled by hand."""

    def __init__(self, path: Path) -> None:
        self.collection = CollectionStore.create(path)
        self.linker = LinkIndexer(self.collection)
        self.linker.catch_up()

    def settle(self, url: str, *hrefs: str, status: int = 200) -> int:
        anchors = tuple(f"to {href}" for href in hrefs)
        links = FollowedLinks(hrefs, b"\1" * len(hrefs), anchors, join_map(url, hrefs))
        row, batch = PageRow(status, 0.0), Batch()
        if status < 400:
            self.linker.page(url, url_key(url), row, links)
        else:
            self.linker.gone(url, url_key(url), row)
        self.linker.before_commit(batch, is_last=False)
        batch.put(Family.PAGE, url_key(url), pack_row(row))
        self.collection.commit(batch)
        self.linker.on_committed()
        return row.file_num

    def die(self) -> None:
        """As after a kill: what waits is not flushed."""
        self.collection.close()

    def close(self) -> None:
        self.linker.close()
        self.collection.close()


A, B, C = "https://a.example/", "https://a.example/b", "https://other.example/c"


def test_changed_page_replaces_its_links_and_keeps_its_number(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    first = shop.settle(A, "/b", C)
    shop.linker.flush()
    assert shop.settle(A, "/b", "/new") == first
    assert shop.settle(C, A) != first
    shop.close()
    index = LinkIndex.open(tmp_path)
    assert index.counts([A, B, C, "https://a.example/new"]) == [1, 1, 0, 1]
    assert link_problems(tmp_path) == []


def test_removed_page_takes_its_links_back_and_its_number_stays(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    first = shop.settle(A, "/b", C)
    shop.linker.flush()
    assert shop.settle(A, status=404) == first
    shop.linker.flush()
    assert shop.linker.index.counts([B, C]) == [0, 0]
    assert shop.settle(A, "/b") == first
    shop.close()
    assert link_problems(tmp_path) == []


@pytest.mark.parametrize("seed", range(6))
def test_after_a_kill_the_feed_brings_the_index_up_to_date(tmp_path: Path, seed: int) -> None:
    choose, urls = random.Random(seed), [f"https://h{n % 3}.example/{n}" for n in range(8)]
    for _ in range(6):
        shop = Shop(tmp_path)
        for _ in range(choose.randrange(12)):
            shop.settle(choose.choice(urls), *choose.sample(urls, 3), status=choose.choice([200, 200, 200, 301, 404]))
            if choose.random() < 0.3:
                shop.linker.flush()
        if choose.random() < 0.5:
            assert link_problems(tmp_path) == [], "a reader beside it lays the feed over the segments"
        shop.die()
    shop = Shop(tmp_path)
    assert shop.linker.index.covered == shop.linker.feed.last
    shop.close()
    assert link_problems(tmp_path) == []


def test_flush_that_fails_is_made_up_for(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.settle(A, B, C)
    shutil.rmtree(tmp_path / "graph")
    shop.linker.flush()
    assert shop.linker.index.counts([B]) == [0]
    (tmp_path / "graph").mkdir()
    shop.settle(B, C)
    shop.close()
    assert LinkIndex.open(tmp_path).counts([B, C]) == [1, 2]
    assert link_problems(tmp_path) == []


def test_batch_that_was_never_acknowledged_is_not_called_covered(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.settle(A, B)
    batch, row = Batch(), PageRow(200, 0.0)
    shop.linker.page(B, url_key(B), row, FollowedLinks((C,), b"\1", ("c",), {C: C}))
    shop.linker.before_commit(batch, is_last=False)
    batch.put(Family.PAGE, url_key(B), pack_row(row))
    shop.collection.commit(batch)  # it is there, but the engine was told that it failed
    shop.close()
    assert LinkIndex.open(tmp_path).covered == 1
    Shop(tmp_path).close()
    assert LinkIndex.open(tmp_path).counts([B, C]) == [1, 1]
    assert link_problems(tmp_path) == []


@pytest.mark.parametrize("harm", ["deleted", "behind", "ahead"])
def test_index_that_the_feed_cannot_mend_is_built_anew(tmp_path: Path, harm: str) -> None:
    shop = Shop(tmp_path)
    for _ in range(3):
        shop.settle(A, "/b", C)
        shop.settle(C, A, B)
        shop.settle(B, A)
        shop.linker.flush()
    shop.settle(B, status=410)
    shop.close()
    if harm == "deleted":
        shutil.rmtree(tmp_path / "graph")
    else:
        listed = read_list(tmp_path / "graph")
        covered = listed.covered - 1 if harm == "behind" else listed.covered + 5
        write_list(tmp_path / "graph", SegmentList(covered, listed.names[:-1]))
    Shop(tmp_path).close()
    assert link_problems(tmp_path) == []
    assert (tmp_path / "graph" / LIST).is_file()


def test_file_in_the_place_of_the_folder_is_named_by_whoever_meets_it(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.settle(A, B)
    shop.settle(B, A)
    shop.close()
    shutil.rmtree(tmp_path / "graph")
    (tmp_path / "graph").write_text("mine")
    sentence = f"{tmp_path / 'graph'} is a file, where the folder of the link index would be: move it away"
    with pytest.raises(StoreError, match=re.escape(sentence)):
        Shop(tmp_path)
    with CollectionStore.open(tmp_path, read_only=True) as collection:
        notes: list[str] = []
        assert [link.url for link in links_of(collection, B, note=notes.append).links_in] == [A]
        with pytest.raises(StoreError, match=re.escape(sentence)):
            rank_pages(collection)
    assert sentence in notes[0]
    assert "mends" not in notes[0]
    assert (tmp_path / "graph").read_text() == "mine"


@pytest.mark.parametrize("harm", ["deleted", "behind", "ahead", "another version"])
@pytest.mark.parametrize("is_crawling", [False, True])
def test_links_and_ranks_answer_from_the_state_where_the_index_is_no_use(
    tmp_path: Path, harm: str, is_crawling: bool
) -> None:
    shop = Shop(tmp_path)
    for _ in range(2):
        shop.settle(A, "/b", C)
        shop.settle(C, A, B)
        shop.linker.flush()
    shop.settle(B, A, C)
    shop.close()
    with CollectionStore.open(tmp_path, read_only=True) as collection:
        links, ranks = links_of(collection, B), rank_pages(collection)[0].ranks.tolist()
    listed = read_list(tmp_path / "graph")
    if harm == "deleted":
        shutil.rmtree(tmp_path / "graph")
    elif harm == "another version":
        file = tmp_path / "graph" / listed.names[0]
        file.write_bytes(file.read_bytes().replace(b"links 2", b"links 1", 1))
    else:
        covered = listed.covered - 1 if harm == "behind" else listed.covered + 5
        write_list(tmp_path / "graph", SegmentList(covered, listed.names[:-1]))
    notes: list[str] = []
    with contextlib.ExitStack() as opened:
        if is_crawling:
            opened.enter_context(CollectionStore.open(tmp_path))
        collection = opened.enter_context(CollectionStore.open(tmp_path, read_only=True))
        assert links_of(collection, B, note=notes.append) == links
        assert rank_pages(collection, notes.append)[0].ranks.tolist() == pytest.approx(ranks)
    assert len(notes) == (2 if is_crawling else 1), "who cannot write it builds it for himself, each time"
    assert ("the next crawl mends it" if is_crawling else "built anew") in notes[0]
    assert is_crawling or link_problems(tmp_path) == []


def test_news_tell_what_happened_with_the_links_from_before(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    number = shop.settle(A, "/b")
    before = shop.collection.state.get(Family.LINK, url_key(A))
    shop.settle(A, "/c")
    shop.settle(A, status=404)
    news = list(entries_after(shop.collection.state, 0))
    assert news[:2] == [FeedEntry(1, FeedEvent.NEW, number, b""), FeedEntry(2, FeedEvent.CHANGED, number, before)]
    assert news[2].event is FeedEvent.REMOVED
    assert list(all_pages(shop.collection.state)) == []
    row = shop.collection.state.get(Family.PAGE, url_key(A))
    assert row is not None and unpack_page(row).file_num == number
    shop.close()


@pytest.mark.slow
def test_killed_crawl_counts_links_as_a_recount_does(tmp_path: Path) -> None:
    into = tmp_path / "c"
    with running_simweb("--hosts", "20", "--pages", "4000", "--seed", "3") as (ready, _):
        seeds = [f"http://h{n}.sim:{ready.port}/" for n in range(20)]
        manners = ["--scope", "any", "--delay", "0", "--dns", f"127.0.0.1:{ready.dns_port}", "--quiet"]
        command = ["crawl", *seeds, "--into", str(into), "--allow-private", "127.0.0.0/8", *manners]
        for archived in (3_000_000, 7_000_000, 11_000_000):  # of some 30 MB: killed by what is done, not by the clock
            process = lycosa(*command)
            while process.poll() is None and folder_bytes(into / "warc") < archived:
                time.sleep(0.01)
            os.kill(process.pid, signal.SIGKILL)
            process.communicate()
            assert process.returncode == -signal.SIGKILL, "it was running when it was killed"
            assert link_problems(into) == []
        process = lycosa(*command)
        _, err = process.communicate(timeout=600)
    assert process.returncode == 0, err
    assert link_problems(into) == []
