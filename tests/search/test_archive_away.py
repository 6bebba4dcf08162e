"""Indexing, searching and reading while the archive, or a part of it, cannot be read."""

import shutil
from pathlib import Path

import pytest

from lycosa.inspect import page_of
from lycosa.processes import start_helper
from lycosa.search.index import IndexReader, current
from lycosa.search.making import make_index, update_index
from lycosa.search.view import SearchView
from lycosa.store import ArchiveUnavailable
from lycosa.store.central import claim_store, open_central_store
from lycosa.store.released import remember_store, upload_warc
from lycosa.store.warc_file import warc_path
from tests.search.shop import Shop

A, B, C = "https://a.example/", "https://b.example/", "https://c.example/"
HIDDEN = "hidden"


def shop_with(path: Path, *pages: tuple[str, str]) -> Shop:
    shop = Shop(path)
    for url, word in pages:
        shop.page(url, f"<title>Page</title>{word}")
    shop.linker.flush()
    return shop


def put_away(shop: Shop, how: str) -> Path:
    """Makes the archive unreadable; returns what has to be put back from where it was moved."""
    if how == "warc":
        gone = shop.collection.warc_folder
    else:
        store = open_central_store(str(shop.path.parent / "store"))
        claim_store(store, "this", shop.path)
        remember_store(shop.collection.warc_folder, store.url)
        shop.collection.warc.finish_file()
        for number, length in shop.collection.finished_files().items():
            source = warc_path(shop.collection.warc_folder, number)
            shop.collection.release(number, upload_warc(source, length, store, shop.path / "packing"))
        gone = Path(store.url)
    gone.rename(gone.with_name(HIDDEN))
    return gone


def bring_back(gone: Path) -> None:
    gone.with_name(HIDDEN).rename(gone)


def urls(path: Path, query: str) -> list[str]:
    with SearchView(path) as view:
        return [result.url for result in view.search(query).results]


def named(shop: Shop, how: str) -> str:
    """What a user has to be told."""
    return str(warc_path(shop.collection.warc_folder, 1)) if how == "warc" else f"the store {shop.path.parent}/store "


@pytest.mark.parametrize("how", ["warc", "store"])
def test_rebuild_without_the_archive_stops_and_keeps_the_old_index(tmp_path: Path, how: str) -> None:
    shop = shop_with(tmp_path / "c", (A, "aardvark"), (B, "badger"))
    make_index(shop.path)
    kept, gone = current(shop.path), put_away(shop, how)
    with pytest.raises(ArchiveUnavailable) as said:
        make_index(shop.path, anew=True)
    assert named(shop, how) in str(said.value)
    assert "--rebuild --skip-missing" in str(said.value)
    assert said.value.exit_code == 4
    assert current(shop.path) == kept
    assert urls(shop.path, "aardvark") == [A], "it answers, without snippets"
    bring_back(gone)
    assert make_index(shop.path).pages == 0
    assert (make_index(shop.path, anew=True).unread, urls(shop.path, "badger")) == (0, [B])
    shop.close()


@pytest.mark.parametrize("how", ["warc", "store"])
def test_first_index_without_the_archive_is_not_made_until_it_is_back(tmp_path: Path, how: str) -> None:
    shop = shop_with(tmp_path / "c", (A, "aardvark"))
    gone = put_away(shop, how)
    for make in (update_index, make_index):
        with pytest.raises(ArchiveUnavailable):
            make(shop.path)
    bring_back(gone)
    update_index(shop.path)
    assert urls(shop.path, "aardvark") == [A]
    shop.close()


def test_pages_that_cannot_be_read_are_taken_in_when_the_archive_is_back(tmp_path: Path) -> None:
    shop = shop_with(tmp_path / "c", (A, "aardvark"))
    make_index(shop.path)
    shop.page(B, "<title>Page</title>badger")
    shop.linker.flush()
    gone, notes = put_away(shop, "store"), list[str]()
    update_index(shop.path, note=notes.append)
    assert "cannot be reached" in notes[0]
    with SearchView(shop.path) as view:
        assert view.search("page").behind == 1
    with pytest.raises(ArchiveUnavailable):
        make_index(shop.path)
    bring_back(gone)
    assert make_index(shop.path).pages == 1
    assert urls(shop.path, "badger") == [B]
    shop.close()


def test_file_lost_for_good_can_be_skipped(tmp_path: Path) -> None:
    shop = shop_with(tmp_path / "c", (A, "aardvark"))
    shutil.rmtree(shop.collection.warc_folder)
    with pytest.raises(ArchiveUnavailable, match="--skip-missing"):
        make_index(shop.path)
    made = make_index(shop.path, skips_missing=True)
    assert (made.pages, made.unread) == (1, 1)
    assert urls(shop.path, "page") == [A]
    shop.close()


def test_damaged_record_in_a_file_that_is_there_is_skipped_and_counted(tmp_path: Path) -> None:
    shop = shop_with(tmp_path / "c", (A, "aardvark"), (B, "badger"))
    file = warc_path(shop.collection.warc_folder, 1)
    content = file.read_bytes()
    file.write_bytes(content[:-30] + b"\0" * 30)
    made = make_index(shop.path)
    assert (made.documents, made.pages, made.unread) == (2, 2, 1)
    assert (urls(shop.path, "aardvark"), urls(shop.path, "badger")) == ([A], [])
    shop.close()


@pytest.mark.slow
def test_follower_waits_for_an_archive_that_is_away(tmp_path: Path) -> None:
    shop = shop_with(tmp_path / "c", (A, "aardvark"))
    make_index(shop.path)
    shop.page(B, "<title>Page</title>badger")
    shop.linker.flush()
    gone = put_away(shop, "store")
    process = start_helper("lycosa.search.follower_process", shop.path)
    assert process.stdin is not None and process.stdout is not None
    for _ in range(4):
        assert process.stdout.readline() == b"1\n", "it lives, and one is left"
    bring_back(gone)
    process.stdin.write(b"end\n")
    process.stdin.flush()
    assert process.wait(120) == 0
    assert urls(shop.path, "badger") == [B]
    process.stdin.close()
    process.stdout.close()
    shop.close()


def test_follower_that_is_told_to_end_leaves_what_it_cannot_read_for_later(tmp_path: Path) -> None:
    shop = shop_with(tmp_path / "c", (A, "aardvark"))
    make_index(shop.path)
    covered = IndexReader.open(shop.path).covered
    shop.page(B, "<title>Page</title>badger")
    shop.linker.flush()
    put_away(shop, "store")
    process = start_helper("lycosa.search.follower_process", shop.path)
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(b"end\n")
    process.stdin.flush()
    assert process.wait(120) == ArchiveUnavailable.exit_code
    assert IndexReader.open(shop.path).covered == covered
    process.stdin.close()
    process.stdout.close()
    shop.close()


@pytest.mark.parametrize("how", ["warc", "store"])
def test_get_names_what_is_away(tmp_path: Path, how: str) -> None:
    shop = shop_with(tmp_path / "c", (A, "aardvark"))
    gone = put_away(shop, how)
    with pytest.raises(ArchiveUnavailable) as said:
        page_of(shop.path, A)
    assert named(shop, how) in str(said.value)
    bring_back(gone)
    assert b"aardvark" in page_of(shop.path, A).body
    shop.close()
