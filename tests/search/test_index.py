"""The search index follows the state: pages that come, change and go, copies, kills, damage."""

import asyncio
import os
import random
import shutil
import signal
import time
from pathlib import Path

import pytest
from tantivy import Query

from lycosa.api.collection import Collection as Library
from lycosa.errors import StoreError
from lycosa.graph import feed
from lycosa.graph.feed import covered_by, mark_covered
from lycosa.processes import start_helper
from lycosa.search.documents import IndexedPage, anchor_document, page_document, schema, summarise_anchors
from lycosa.search.follower import IndexFollower
from lycosa.search.index import IndexInUse, IndexReader, IndexWriter, NoIndex, current, is_index_written
from lycosa.search.indexer import CONSUMER, Indexer
from lycosa.search.making import is_index_behind, make_index, update_index
from lycosa.search.view import SearchView
from lycosa.simweb import SimSettings, SimWeb
from lycosa.store import CollectionStore, is_collection
from lycosa.store.joined import SHARDED_FILE, SHARDS_FOLDER
from tests.crawl.memory_crawl import crawl, front
from tests.search.shop import Shop, index_problems
from tests.simweb.conftest import lycosa, running_simweb

A, B, C = "https://a.example/", "https://a.example/b", "https://other.example/c"


def found(path: Path, word: str, field: str = "text_xx") -> list[int]:
    reader = IndexReader.open(path)
    hits = reader.searcher.search(Query.term_query(schema(), field, word), 100).hits
    return sorted(reader.numbers("page", [at for _, at in hits]))


def called(path: Path, word: str) -> list[int]:
    reader = IndexReader.open(path)
    hits = reader.searcher.search(Query.term_query(schema(), "calls_xx", word), 100).hits
    return sorted(reader.numbers("name", [at for _, at in hits]))


def test_index_of_a_crawl_has_every_page_once(tmp_path: Path) -> None:
    web = SimWeb(SimSettings(hosts=3, pages=150, seed=5))
    crawl(web, tmp_path / "c", front(web), delay_s=0.0)
    Shop(tmp_path / "c").index()
    assert index_problems(tmp_path / "c") == []


def test_index_made_in_many_lots_has_every_document_once(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    first = shop.page(A, "aardvark")
    copies = [shop.page(f"https://{n}.example/", "aardvark") for n in range(20)]
    before = sum(copy < first for copy in copies)
    assert before
    shop.index(anew=True, build_pages=before)  # a copy's lot comes just before that of the first URL
    assert found(tmp_path, "aardvark") == [first]
    assert index_problems(tmp_path) == []
    shop.close()


def test_files_of_an_index_may_be_read_by_whoever_may_read_its_folder(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.page(A, "aardvark")
    shop.index()
    shop.close()

    folder = current(tmp_path)
    modes = {file.name: file.stat().st_mode & 0o044 for file in folder.iterdir() if not file.name.endswith(".lock")}
    assert set(modes.values()) == {folder.stat().st_mode & 0o044}, modes


def test_changed_page_is_found_by_its_new_words_only(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    number = shop.page(A, "<title>t</title>aardvark")
    shop.index()
    assert found(tmp_path, "aardvark") == [number]
    shop.page(A, "<title>t</title>badger")
    shop.index()
    assert (found(tmp_path, "aardvark"), found(tmp_path, "badger")) == ([], [number])
    shop.gone(A)
    shop.index()
    assert found(tmp_path, "badger") == []
    assert index_problems(tmp_path) == []
    shop.close()


def test_document_whose_deletion_was_lost_is_taken_out_when_all_is_settled(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    stays, goes = shop.page(A, "<title>t</title>aardvark"), shop.page(B, "<title>t</title>badger")
    shop.index()
    shop.page(A, "<title>t</title>cougar")
    shop.gone(B)
    shop.index()
    writer = IndexWriter(tmp_path)
    for number, url, text in ((stays, A, "aardvark"), (goes, B, "badger")):
        page = IndexedPage(number, number, url, 1.0, "text/html", "", "t", text_utf8=text.encode())
        writer.add(page_document(page, "xx"))
        writer.add(anchor_document(page, "xx", *summarise_anchors([("name", 1)])))
    writer.commit(IndexReader.open(tmp_path).covered)
    writer.close()
    assert (found(tmp_path, "aardvark"), found(tmp_path, "badger")) == ([stays], [goes])
    shop.index()
    assert (found(tmp_path, "aardvark"), found(tmp_path, "badger"), found(tmp_path, "cougar")) == ([], [], [stays])
    assert index_problems(tmp_path) == []
    shop.close()


def test_page_that_changes_and_goes_before_the_index_looks_is_taken_as_it_is(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.page(A, "aardvark")
    shop.page(A, "badger")
    second = shop.page(B, "cat")
    shop.gone(A)
    shop.index()
    assert (found(tmp_path, "aardvark"), found(tmp_path, "badger"), found(tmp_path, "cat")) == ([], [], [second])
    assert index_problems(tmp_path) == []
    shop.close()


def test_page_that_asks_to_be_left_out_is_not_found(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.page(A, "aardvark", noindex=True)
    shop.index()
    assert found(tmp_path, "aardvark") == []
    shop.close()


@pytest.mark.parametrize("how", ["gone", "changed"])
def test_copy_takes_the_place_of_a_page_that_is_no_more(tmp_path: Path, how: str) -> None:
    shop = Shop(tmp_path)
    first, second, third = (shop.page(url, "aardvark") for url in (A, B, C))
    shop.index()
    assert found(tmp_path, "aardvark") == [first]
    if how == "gone":
        shop.gone(A)
    else:
        shop.page(A, "badger")
    shop.index()
    assert found(tmp_path, "aardvark") == [min(second, third)], "read from the archive, which still has it"
    assert index_problems(tmp_path) == []
    shop.index(anew=True)
    assert len(found(tmp_path, "aardvark")) == 1
    assert index_problems(tmp_path) == []
    shop.close()


def test_page_is_found_by_what_others_call_it_and_its_copies(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    first = shop.page(A, "aardvark")
    shop.page(B, "aardvark")
    shop.index()
    assert called(tmp_path, "earthpig") == []
    shop.page(C, f'<a href="{A}">Earthpig</a> <a href="{B}">Antbear</a>')
    shop.index()
    assert called(tmp_path, "earthpig") == called(tmp_path, "antbear") == [first]
    shop.page(C, "nothing any more")
    shop.index()
    assert called(tmp_path, "earthpig") == []
    assert index_problems(tmp_path) == []
    shop.close()


@pytest.mark.parametrize("seed", range(2))
def test_after_any_changes_and_kills_index_and_state_agree(tmp_path: Path, seed: int) -> None:
    choose = random.Random(seed)
    urls = [f"https://h{n % 3}.example/{n}" for n in range(9)]
    bodies = [f"<title>{n}</title>word{n} <a href='{choose.choice(urls)}'>name{n}</a>" for n in range(5)]
    shop = Shop(tmp_path)
    for _ in range(7):
        for _ in range(choose.randrange(1, 10)):
            if choose.random() < 0.25:
                shop.gone(choose.choice(urls))
            else:
                shop.page(choose.choice(urls), choose.choice(bodies))
        if choose.random() < 0.3:  # as after a kill between the index's commit and the note in the feed
            behind = covered_by(tmp_path, CONSUMER)
            shop.index(settle=False)
            if behind:
                mark_covered(tmp_path, CONSUMER, behind)
        shop.index(settle=choose.random() < 0.5)
        assert index_problems(tmp_path) == []
    shop.index(anew=True)
    assert index_problems(tmp_path) == []
    shop.close()


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 2])
def test_what_is_taken_in_bit_by_bit_agrees_at_every_commit(tmp_path: Path, seed: int) -> None:
    choose, shop = random.Random(seed), Shop(tmp_path)
    urls = [f"https://h{n % 3}.example/{n}" for n in range(8)]
    shop.page(urls[0], "<title>first</title>word")
    shop.index()
    with CollectionStore.open(tmp_path, read_only=True) as collection:
        indexer = Indexer(collection, follows=True)
        for _ in range(40):
            if choose.random() < 0.3:
                shop.gone(choose.choice(urls))
            else:
                shop.page(choose.choice(urls), f"<title>{choose.randrange(3)}</title>word")
            if choose.random() < 0.7:
                collection.state.refresh()
                indexer.index_feed()
            if choose.random() < 0.15:
                collection.state.refresh()
                indexer.catch_up()
                assert index_problems(tmp_path) == []
        collection.state.refresh()
        indexer.catch_up()
        indexer.update_anchors_and_ranks()
        indexer.close()
    assert index_problems(tmp_path) == []
    shop.close()


def test_names_and_ranks_of_a_crawl_that_was_followed_from_its_beginning_are_settled(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    with CollectionStore.open(tmp_path, read_only=True) as collection:
        indexer = Indexer(collection, follows=True)
        indexer.index_feed()
        shop.page("https://a.example/1", "<title>one</title><a href='/2'>machine for warmth</a>")
        shop.page("https://a.example/2", "<title>two</title>words")
        shop.linker.flush()
        collection.state.refresh()
        indexer.catch_up()
        assert indexer.update_anchors_and_ranks() == 1
        indexer.close()
    shop.close()
    with SearchView(tmp_path) as view:
        (found,) = view.search("anchor:warmth").results
    assert (found.url, found.rank > 1) == ("https://a.example/2", True)


def test_search_settles_names_that_a_follower_left(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    with CollectionStore.open(tmp_path, read_only=True) as collection:
        indexer = Indexer(collection, follows=True)
        indexer.index_feed()
        for n in range(30):
            shop.page(f"https://a.example/{n}", f"<title>{n}</title><a href='/{n + 1}'>machine {n}</a>")
        collection.state.refresh()
        indexer.catch_up()
        indexer.close()  # as by Ctrl-C: all pages are in, and no name
    with Library(tmp_path) as asked:
        assert asked.search("anchor:machine", update=False).total == 0
        assert is_index_behind(tmp_path)
        (found,) = asked.search("anchor:machine title:9").results
        assert (found.url, found.rank > 1) == ("https://a.example/9", True)
        assert not is_index_behind(tmp_path)
        before = (current(tmp_path) / "meta.json").stat().st_mtime_ns
        shop.page("https://a.example/0", "<title>0</title><a href='/9'>engine</a>")
        assert asked.search("anchor:engine").total == 0, "one page in thirty is not worth it"
        shop.page("https://a.example/1", "<title>1</title><a href='/9'>engine</a>")
        assert asked.search("anchor:engine").total == 1
        settled = (current(tmp_path) / "meta.json").stat().st_mtime_ns
        asked.search("anchor:engine")
        assert before < settled == (current(tmp_path) / "meta.json").stat().st_mtime_ns, "once is enough"
    shop.close()


def test_index_whose_names_cannot_be_settled_answers_as_it_is(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.page(A, "aardvark")
    shop.index(settle=False)
    hidden = tmp_path / "graph" / ".ranks.new"
    hidden.unlink(missing_ok=True)
    hidden.mkdir()
    shop.page(B, "aardvark badger")
    notes: list[str] = []
    update_index(tmp_path, note=notes.append)
    assert len(notes) == 1 and notes[0].endswith("the index answers as it is")
    with SearchView(tmp_path) as view:
        assert view.search("aardvark").total == 2
    shop.close()


@pytest.mark.slow
def test_follower_settles_names_while_little_comes(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.page("https://a.example/1", "<title>one</title><a href='/2'>machine for warmth</a>")
    shop.page("https://a.example/2", "<title>two</title>words")
    process = start_helper("lycosa.search.follower_process", tmp_path)
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob("index/*/settled")):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    with SearchView(tmp_path) as view:
        assert [hit.url for hit in view.search("anchor:warmth").results] == ["https://a.example/2"]
    process.kill()
    process.communicate()
    shop.close()


def test_index_of_several_shards_knows_what_any_of_them_has(tmp_path: Path) -> None:
    (tmp_path / SHARDED_FILE).write_text("{}")
    shards = [Shop(tmp_path / SHARDS_FOLDER / str(n), warc_first=100 * n) for n in (1, 2)]
    shards[0].page("https://a.example/", "<title>one</title>sun <a href='https://b.other/'>warmth</a>")
    shards[1].page("https://b.other/", "<title>two</title>wind")
    for shop in shards:
        shop.linker.flush()
    make_index(tmp_path)
    with SearchView(tmp_path) as view:
        assert [hit.url for hit in view.search("anchor:warmth").results] == ["https://b.other/"]
    shards[1].page("https://c.other/", "<title>three</title>rain")
    with SearchView(tmp_path) as view:
        assert view.search("wind").behind == 1
    update_index(tmp_path)
    with SearchView(tmp_path) as view:
        assert [hit.url for hit in view.search("rain").results] == ["https://c.other/"]
        assert view.search("rain").results[0].snippet == "rain"
    for shop in shards:
        shop.close()


def test_index_left_behind_by_the_feed_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "MOST_BEHIND", 3)
    shop = Shop(tmp_path)
    shop.page(A, "aardvark")
    shop.index()
    for number in range(6):
        shop.page(B, f"badger {number}")
        shop.linker.flush()
    shop.page(C, "cat")
    assert next(feed.entries_after(shop.collection.state, 0)).sequence > 2, "the feed did not wait"
    shop.index()
    assert index_problems(tmp_path) == []
    shop.close()


@pytest.mark.parametrize("harm", ["deleted", "cut", "version", "ahead"])
def test_index_that_is_no_use_is_made_anew(tmp_path: Path, harm: str) -> None:
    shop = Shop(tmp_path)
    shop.page(A, "aardvark")
    shop.index()
    if harm == "deleted":
        shutil.rmtree(tmp_path / "index")
    elif harm == "version":
        (tmp_path / "index" / "current").write_text('{"version":0,"name":"old"}')
    elif harm == "ahead":
        mark_covered(tmp_path, CONSUMER, 100)
    else:
        for file in current(tmp_path).glob("*.idx"):
            file.write_bytes(file.read_bytes()[:10])
    if harm in ("deleted", "version"):
        with pytest.raises(NoIndex, match="lycosa index"):
            IndexReader.open(tmp_path)
    if harm == "cut":
        with pytest.raises(StoreError, match=r"lycosa index \S+ makes it anew"):
            found(tmp_path, "aardvark")
    shop.page(B, "badger")
    shop.index(anew=harm == "cut")
    assert index_problems(tmp_path) == []
    assert len(list((tmp_path / "index").iterdir())) == 3, "current, lock and one folder"
    shop.close()


def test_file_in_the_place_of_the_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "index").write_text("mine")
    for use in (IndexWriter, IndexReader.open):
        with pytest.raises(StoreError, match="is a file"):
            use(tmp_path)
    assert (tmp_path / "index").read_text() == "mine"


def test_second_writer_is_turned_away_and_readers_are_not(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.page(A, "aardvark")
    shop.index()
    writer = IndexWriter(tmp_path)
    assert is_index_written(tmp_path)
    with pytest.raises(IndexInUse):
        IndexWriter(tmp_path)
    assert found(tmp_path, "aardvark")
    writer.close()
    assert not is_index_written(tmp_path)
    shop.close()


@pytest.mark.slow
@pytest.mark.parametrize("is_in_use", [False, True])
def test_follower_killed_or_kept_out_at_the_end_is_started_again(tmp_path: Path, is_in_use: bool) -> None:
    shop = Shop(tmp_path)
    number = shop.page(A, "aardvark")
    shop.close()
    other = IndexWriter(tmp_path, anew=True) if is_in_use else None
    assert asyncio.run(follow(tmp_path, kills=not is_in_use)) is not is_in_use
    if other is not None:
        other.close()
        assert asyncio.run(follow(tmp_path))
    assert found(tmp_path, "aardvark") == [number]


async def follow(path: Path, *, kills: bool = False) -> bool:
    """Follows a crawl that is over at once; was everything taken in?"""
    following = IndexFollower(path)
    following.start()
    if kills and following._process is not None:
        following._process.kill()
    await following.finish()
    return following.is_complete


def test_follower_leaves_when_its_crawl_is_gone(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.page(A, "aardvark")
    process = start_helper("lycosa.search.follower_process", tmp_path)
    assert process.stdin is not None and process.stdout is not None
    process.stdout.readline()
    process.stdin.close()
    assert process.wait(120) == 0
    assert index_problems(tmp_path) == []
    process.stdout.close()
    shop.close()


@pytest.mark.slow
def test_killed_crawls_and_followers_leave_an_index_that_agrees(tmp_path: Path) -> None:
    into, kills, choose = tmp_path / "c", 0, random.Random(4)
    with running_simweb("--hosts", "10", "--pages", "2500", "--seed", "3") as (ready, _):
        seeds = [f"http://h{n}.sim:{ready.port}/" for n in range(10)]
        manners = ["--scope", "any", "--delay", "0", "--dns", f"127.0.0.1:{ready.dns_port}", "--quiet", "--index"]
        command = ["crawl", *seeds, "--into", str(into), "--allow-private", "127.0.0.0/8", *manners]
        while kills < 3:
            process, before = lycosa(*command), _archived(into)
            more = choose.randrange(50_000, 300_000)
            while _archived(into) < before + more and process.poll() is None:
                time.sleep(0.002)
            assert process.poll() is None, "the crawl ended before it was killed"
            if followers := _children(process.pid):
                os.kill(followers[0], signal.SIGKILL)
                time.sleep(0.05 * choose.random())
            os.kill(process.pid, signal.SIGKILL)
            process.communicate()
            kills += 1
        process = lycosa(*command)
        _, err = process.communicate(timeout=600)
    assert process.returncode == 0, err
    assert is_collection(into)
    assert index_problems(into) == []


def _archived(into: Path) -> int:
    """How many bytes the archive has."""
    return sum(file.stat().st_size for file in into.glob("warc/*.warc.gz"))


def _children(pid: int) -> list[int]:
    try:
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
