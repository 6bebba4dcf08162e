"""Pages that are forgotten: nothing of them is left, nothing else is lost, and they do not come back."""

import gzip
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from warcio.archiveiterator import ArchiveIterator

import lycosa
from lycosa.crawl import Inbox, Recrawl
from lycosa.errors import NoPage, SettingsError
from lycosa.inspect import open_to_read, stats_of
from lycosa.notify import Notice, NoticeOutbox
from lycosa.records import Family
from lycosa.removal import ArchiveRemoval, forget, plan_removal, undo_forget
from lycosa.settings import to_toml
from lycosa.simweb import SimSettings, SimWeb
from lycosa.store import Batch, CollectionStore, Forgotten, State, read_entry
from lycosa.store.warc_edit import blank_member
from proof.ground.memory_cluster import crawl as cluster_crawl
from tests.crawl.consistency import problems
from tests.crawl.small_site import FIRST, crawl_site, links
from tests.recrawl.recrawl_world import BEGIN_S, DAY_S, wall_clock
from tests.removal.killing import Killed, kill_at

OTHER = "http://127.0.0.2:9/"
SECRET = f"{FIRST}private/diary"
WORD = "xylophonist"
COPIED = "<title>Twin</title><p>The very same words on two pages, and on a third.</p>"
SITE = {
    FIRST: "<title>Home</title><p>Welcome.</p>" + links("a", "b", "c", "private/diary", "plain", OTHER),
    f"{FIRST}a": COPIED,
    f"{FIRST}b": COPIED,
    f"{FIRST}c": COPIED,
    f"{FIRST}plain": "<title>Plain</title><p>Nothing much.</p>" + links("/private/diary"),
    SECRET: f"<title>Dear {WORD}</title><p>The {WORD} was here.</p>" + links(f"{WORD}.html"),
    OTHER: f"<title>Elsewhere</title><p>The {WORD} lives here.</p>" + links("x", FIRST),
    f"{OTHER}x": "<title>X</title><p>Far away.</p>",
}


def crawled(into: Path, site: dict[str, str] | None = None, **settings: Any) -> Path:
    crawl_site(into, (site or SITE).get, scope="any", **settings)
    return into


def with_versions(into: Path) -> Path:
    """A collection whose secret page has changed twice."""
    for number in range(3):
        text = f"<title>Dear {WORD}</title><p>Day {number} of the {WORD}.</p>" + "<p>More.</p>" * number
        with wall_clock(BEGIN_S + number * DAY_S):
            recrawl = Recrawl(everything=True) if number else None
            crawl_site(into, {**SITE, SECRET: text}.get, scope="any", recrawl=recrawl)
    return into


def bodies(path: Path) -> dict[str, bytes]:
    with lycosa.open(path) as collection:
        return {page.url: page.body for page in collection}


def traces(path: Path, word: str) -> list[str]:
    """Where a word is left: in files as they are, in records of the archive, in rows of the state."""
    wanted, found = word.encode(), list[str]()
    for file in sorted(path.rglob("*")):
        if file.is_file():
            data = file.read_bytes()
            content = gzip.decompress(data) if file.name.endswith(".gz") else data
            found += [str(file)] * (wanted in content or wanted in data)
    for state in sorted(path.rglob("state")):
        with State.open_reader(state) as rows:
            for family in Family:
                found += [f"{family} {key!r}" for key, value in rows.walk(family) if wanted in key + value]
    return found


def consistent(path: Path) -> None:
    """The counts are those of the rows, and every page can be read."""
    assert problems(path) == []
    with lycosa.open(path) as collection:
        pages, stats = list(collection), collection.stats()
        assert len(pages) == stats.pages
        assert sum(bool(page.duplicate_of) for page in pages) == stats.duplicates
        assert len(collection.known()) == stats.known
        assert sum(host.pages for host in collection.hosts()) == stats.pages
        assert sum(1 for _ in collection.hosts()) == stats.hosts
        assert all(page.body for page in pages)
        for page in pages:
            assert not page.duplicate_of or page.duplicate_of in collection


@pytest.mark.slow
def test_nothing_of_a_forgotten_page_is_left_in_the_folder(tmp_path: Path) -> None:
    path = with_versions(tmp_path / "c")
    with lycosa.open(path) as collection:
        assert collection.search(WORD).total == 2
        assert collection.search(WORD, as_of="2030-01-01").total
    before = bodies(path)
    assert traces(path, "Dear")
    done = forget(path, [SECRET, OTHER.rstrip("/")])
    assert (done.urls, done.pages, done.versions) == (2, 2, 3)
    assert traces(path, WORD.capitalize()) == []
    left = [trace for trace in traces(path, WORD) if f"{WORD}.html" not in trace]
    assert [trace for trace in left if not trace.startswith(("url", "queue"))] == []
    after = bodies(path)
    assert after == {url: body for url, body in before.items() if url not in (SECRET, OTHER)}
    consistent(path)
    with lycosa.open(path) as collection:
        assert collection.search(WORD).total == 0
        assert collection.search("welcome").total == 1
        assert collection.links(f"{FIRST}plain").pages_in == 1
        with pytest.raises(NoPage):
            collection.get(SECRET)


@pytest.mark.slow
@pytest.mark.parametrize("archive", [ArchiveRemoval.REWRITE, ArchiveRemoval.BLANK])
def test_copies_of_a_forgotten_page_keep_their_content(tmp_path: Path, archive: ArchiveRemoval) -> None:
    path = crawled(tmp_path / "c")
    with lycosa.open(path) as collection:
        original = next(page.duplicate_of for page in collection if page.duplicate_of)
    done = forget(path, [original], archive=archive)
    assert done.copies == 2
    consistent(path)
    with lycosa.open(path) as collection:
        copies = [page for page in collection if page.title == "Twin"]
        assert [page.body for page in copies] == [COPIED.encode()] * 2
        assert [bool(page.duplicate_of) for page in copies] == [False, True]
    assert not any(original in trace for trace in archived_targets(path))


def archived_targets(path: Path) -> Iterator[str]:
    for file in sorted(path.rglob("*.warc.gz")):
        with file.open("rb") as stream:
            for record in ArchiveIterator(stream, check_digests="raise"):
                for name in ("WARC-Target-URI", "WARC-Refers-To-Target-URI"):
                    yield record.rec_headers.get_header(name) or ""
                record.content_stream().read()


def test_blanked_records_leave_all_others_where_they_are(tmp_path: Path) -> None:
    path = crawled(tmp_path / "c")
    (file,) = path.glob("warc/*.gz")
    size, places = file.stat().st_size, places_of(path)
    forget(path, [SECRET], archive=ArchiveRemoval.BLANK)
    assert file.stat().st_size == size
    assert places_of(path) == {url: place for url, place in places.items() if url != SECRET}
    assert SECRET not in archived_targets(path)
    assert f"Dear {WORD}".encode() not in gzip.decompress(file.read_bytes())
    consistent(path)


def places_of(path: Path) -> dict[str, bytes]:
    with lycosa.open(path) as collection:
        return {page.url: page.row.place for page in collection}


@pytest.mark.parametrize("length", [180, 181, 500, 70_000, 200_000])
def test_blank_member_is_a_record_of_any_length(length: int) -> None:
    member = blank_member(length)
    assert len(member) == length
    assert gzip.decompress(member).startswith(b"WARC/1.1\r\nWARC-Type: metadata\r\n")


@pytest.mark.slow
def test_forgotten_pages_do_not_come_back(tmp_path: Path) -> None:
    path = crawled(tmp_path / "c")
    forget(path, [SECRET, "127.0.0.2"])
    asked, _ = crawl_site(path, {**SITE, f"{FIRST}new": links("private/diary", OTHER)}.get, f"{FIRST}new", scope="any")
    assert asked == [f"{FIRST}new"]
    with wall_clock(BEGIN_S + 900 * DAY_S):
        asked, _ = crawl_site(path, SITE.get, recrawl=Recrawl(everything=True), scope="any")
    assert SECRET not in asked
    assert OTHER not in asked
    with lycosa.open(path) as collection:
        assert collection.why(SECRET).says[0].startswith("forgotten ")
        assert collection.why(f"{OTHER}never-seen").says[0].startswith("forgotten ")
    with pytest.raises(SettingsError, match="was forgotten, with 127"):
        crawl_site(path, SITE.get, OTHER)
    consistent(path)
    assert undo_forget(path, ["127.0.0.2"]) == ["127.0.0.2"]
    asked, _ = crawl_site(path, SITE.get, OTHER, scope="any")
    assert asked == [OTHER, f"{OTHER}x"]
    consistent(path)


@pytest.mark.slow
def test_queued_urls_are_forgotten_with_their_counts(tmp_path: Path) -> None:
    path = crawled(tmp_path / "c", pages=1)
    with lycosa.open(path) as collection:
        queued = collection.stats().queued
        known = list(collection.known())
    assert SECRET in known
    forget(path, [SECRET, OTHER])
    with lycosa.open(path) as collection:
        assert collection.stats().queued == queued - 2
        assert len(collection.known()) == collection.stats().known == len(known) - 2
    asked, stats = crawl_site(path, SITE.get, scope="any", pages=100)
    assert SECRET not in asked
    assert stats.queued == 0
    consistent(path)


def test_archive_can_be_left_as_it_is_and_rewritten_later(tmp_path: Path) -> None:
    path = crawled(tmp_path / "c")
    forget(path, [SECRET], archive=ArchiveRemoval.KEEP)
    assert SECRET not in bodies(path)
    assert SECRET in archived_targets(path)
    done = forget(path, [])
    assert done.records == 3
    assert SECRET not in archived_targets(path)


def test_plan_counts_and_changes_nothing(tmp_path: Path) -> None:
    path = crawled(tmp_path / "c")
    plan = plan_removal(path, [SECRET, "127.0.0.2:9"])
    assert (plan.urls, plan.pages) == (3, 3)
    assert not Forgotten.of(path)
    assert SECRET in bodies(path)


def test_what_is_being_crawled_is_not_touched(tmp_path: Path) -> None:
    path = crawled(tmp_path / "c")
    with CollectionStore.open(path), pytest.raises(SettingsError):
        forget(path, [SECRET])
    assert not Forgotten.of(path)


@pytest.mark.parametrize("text", ["", "http://", "no host at all", "ftp://example.org/", "a b/c d@:"])
def test_what_is_neither_url_nor_host_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(SettingsError, match="neither a URL nor the name of a host"):
        plan_removal(tmp_path, [text])


def test_entries_are_read_as_people_write_them() -> None:
    assert read_entry("Example.ORG") == "example.org"
    assert read_entry("example.org:8080") == "example.org:8080"
    assert read_entry("example.org/a b") == "https://example.org/a%20b"
    assert read_entry("[::1]:80") == "[::1]:80"
    assert read_entry("https://example.org") == "https://example.org/"


@pytest.mark.slow
def test_pages_of_a_collection_of_several_shards_are_forgotten(tmp_path: Path) -> None:
    path, web = tmp_path / "c", SimWeb(SimSettings(hosts=8, pages=240, seed=5, mirrors=0.2))
    cluster = cluster_crawl(web, path, f"{web.linker.origin(0)}/", workers=3, delay_s=0.05)
    (path / "lycosa.toml").write_text(to_toml(cluster.settings))
    before = bodies(path)
    with lycosa.open(path) as collection:
        first = next(page.duplicate_of for page in collection if page.duplicate_of)
    host = web.linker.origin(3).removeprefix("http://")
    done = forget(path, [first, host])
    assert done.copies
    kept = {url: body for url, body in before.items() if url != first and not url.startswith(f"http://{host}/")}
    assert len(kept) < len(before) - 5
    assert bodies(path) == kept
    for name in cluster.coordinator.names:
        assert problems(path / "shards" / name) == []
    with lycosa.open(path) as collection:
        assert collection.why(first).says[0].startswith("forgotten ")
    assert not any(target == first or target.startswith(f"http://{host}/") for target in archived_targets(path))


@pytest.mark.slow
@pytest.mark.parametrize("archive", [ArchiveRemoval.REWRITE, ArchiveRemoval.BLANK])
def test_removal_killed_at_any_write_leaves_a_whole_collection_and_ends_right_when_run_again(
    tmp_path: Path, archive: ArchiveRemoval, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = with_versions(tmp_path / "whole")
    before = bodies(whole)
    original = next(url for url, body in before.items() if body == COPIED.encode())
    gone = (SECRET, original)
    monkeypatch.setattr("lycosa.store.warc_edit.STEP_RECORDS", 12)
    for step in range(0, 200, 2):
        path = tmp_path / f"c{step}"
        shutil.copytree(whole, path)
        with monkeypatch.context() as patched:
            kill_at(step, patched)
            try:
                forget(path, gone, archive=archive)
                is_over = True
            except Killed:
                is_over = False
        CollectionStore.open(path).close()  # as the next crawl does
        kept = {url: body for url, body in before.items() if url not in gone}
        assert {url: body for url, body in bodies(path).items() if url in kept} == kept
        forget(path, gone, archive=archive)
        assert bodies(path) == kept
        consistent(path)
        assert not {*gone} & {*archived_targets(path)}
        if is_over:
            break
        shutil.rmtree(path)
    else:
        pytest.fail("the removal never ended")


def test_changes_of_a_forgotten_page_are_told_to_nobody(tmp_path: Path) -> None:
    path = crawled(tmp_path / "c")
    with CollectionStore.open(path) as collection:
        outbox, batch = NoticeOutbox(collection.state, ["webhook:a"]), Batch()
        for number, url in enumerate((SECRET, f"{FIRST}plain", f"{OTHER}x")):
            outbox.append(batch, Notice(str(number), url, 1.0, "changed", "content", added=(WORD,)))
        collection.commit(batch, sync=True)
    forget(path, [SECRET])
    with CollectionStore.open(path) as collection:
        outbox = NoticeOutbox(collection.state, ["webhook:a"])
        assert [notice.url for _, notice in outbox.pending("webhook:a", 9)] == [f"{FIRST}plain", f"{OTHER}x"]
    forget(path, [f"{FIRST}plain", "127.0.0.2"])
    with CollectionStore.open(path) as collection:
        assert NoticeOutbox(collection.state, ["webhook:a"]).waiting("webhook:a") == 0
    assert [trace for trace in traces(path, WORD) if "notice" in trace] == []


@pytest.mark.parametrize("entry", ["127.0.0.2", f"{OTHER}i.png"])
def test_crawl_with_a_limit_of_pages_ends_after_queued_requisites_were_forgotten(tmp_path: Path, entry: str) -> None:
    site = {FIRST: f"<img src={OTHER}i.png>" + links("a", "b"), f"{FIRST}a": "<p>A</p>", f"{FIRST}b": "<p>B</p>"}
    path = tmp_path / "c"
    crawl_site(path, lambda url: site.get(url, 503), requisites=True, pages=1, time_s=5)
    with open_to_read(path) as collection:
        assert stats_of(collection).requisites_queued == 1
    forget(path, [entry])
    with open_to_read(path) as collection:
        assert stats_of(collection).requisites_queued == 0
    assert traces(path, "via:") == []
    _, stats = crawl_site(path, site.get, requisites=True, pages=2, time_s=500)
    assert stats.pages == 2
    assert stats.seconds < 400  # it ended by its limit of pages, not by that of time


def test_url_to_be_watched_that_waits_in_the_inbox_is_forgotten(tmp_path: Path) -> None:
    path = crawled(tmp_path / "c")
    Inbox(path).put([f"{FIRST}{WORD}\t60", f"{FIRST}plain\t60"])
    forget(path, [f"{FIRST}{WORD}"])
    [left] = (path / "inbox").glob("*.urls")
    assert left.read_text().split() == [f"{FIRST}plain", "60"]
