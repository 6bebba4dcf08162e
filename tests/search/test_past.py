"""As of then: searching and getting pages as they were, from crawls that looked again."""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import lycosa
from lycosa.crawl.progress import Recrawl
from lycosa.errors import NoPage, SettingsError
from lycosa.records import Family
from lycosa.recrawl.change.verdict import ChangeKind
from lycosa.recrawl.versions import ChangeRow, change_key
from lycosa.search.past import _directives_as_of, end_of_date, row_as_of
from lycosa.simweb import SimSettings, SimWeb
from lycosa.store import Batch
from lycosa.store.page_rows import unpack_page
from lycosa.web.url import url_key
from tests.crawl.memory_crawl import front
from tests.recrawl.recrawl_world import BEGIN_S, DAY_S, run
from tests.search.shop import Shop, index_problems

A, B = "https://a.example/", "https://a.example/b"


@pytest.fixture
def then(tmp_path: Path) -> Iterator[tuple[Path, list[str]]]:
    """A page that said three things and is gone, and one that never changed; and the dates of the first four days."""
    shop = Shop(tmp_path)
    state, days = shop.collection.state, []
    key = url_key(A)
    for day, word in enumerate(["aardvark", "badger", "cat", ""]):
        shop.clock_s = 1_700_000_000.0 + 86_400 * day
        if word:
            shop.page(A, f"<title>{word}</title>{word} animals")
        else:
            shop.gone(A)
        row = unpack_page(state.get(Family.PAGE, key) or b"")
        change = ChangeRow(
            ChangeKind.GONE if not word else ChangeKind.TEXT if day else ChangeKind.NEW,
            status=row.status,
            essence=row.essence,
            size_bytes=row.size_bytes,
            place=row.place,
            payload_sha1=row.payload_sha1,
        )
        batch = Batch()
        batch.put(Family.CHANGE, change_key(key, shop.clock_s), change.pack())
        shop.collection.commit(batch)
        if day == 1:
            shop.page(B, "<title>dog</title>dog animals")
        days.append(f"2023-11-{14 + day}T23:30")
    shop.index()
    shop.close()
    yield tmp_path, days


def titles(path: Path, query: str, day: str) -> list[str]:
    with lycosa.Collection(path) as collection:
        return sorted(result.title for result in collection.search(query, as_of=day).results)


def test_search_finds_what_stood_there_then(then: tuple[Path, list[str]]) -> None:
    path, days = then
    found = [titles(path, "animals", day) for day in days]
    assert found == [["aardvark"], ["badger", "dog"], ["cat", "dog"], ["dog"]]
    assert titles(path, "badger", days[2]) == []
    assert titles(path, "animals", "2023-11-01") == []
    shutil.rmtree(path / "index", ignore_errors=True)
    assert titles(path, "animals", "2999-01-01") == ["dog"], "a time to come is now, and the index of now is made"
    assert len(list((path / "then").iterdir())) <= 3, "the oldest indexes go"


def test_get_gives_the_page_as_it_was(then: tuple[Path, list[str]]) -> None:
    path, days = then
    with lycosa.Collection(path) as collection:
        assert b"badger" in collection.get(A, as_of=days[1]).body
        assert b"dog" in collection.get(B).body
        for wrong in (days[3], "2023-11-01", ""):
            with pytest.raises(NoPage, match="holds no page"):
                collection.get(A, as_of=wrong)


def test_time_to_the_second_means_the_end_of_that_second(tmp_path: Path) -> None:
    shop, key = Shop(tmp_path), url_key(A)
    for number, at_s in enumerate([1_700_000_000.4567, 1_700_000_008.9996]):
        shop.clock_s = at_s
        shop.page(A, f"<title>version {number}</title>animals")
        row = unpack_page(shop.collection.state.get(Family.PAGE, key) or b"")
        batch = Batch()
        change = ChangeRow(
            ChangeKind.VOLATILE if number else ChangeKind.NEW, status=200, place=row.place, essence="text/html"
        )
        batch.put(Family.CHANGE, change_key(key, at_s), change.pack())
        shop.collection.commit(batch)
    shop.clock_s = 1_700_000_008.9996 - 60
    shop.page(B, "<title>never changed</title>animals")
    shop.close()
    with lycosa.Collection(tmp_path) as collection:
        for second, version in ((20, b"version 0"), (27, b"version 0"), (28, b"version 1")):
            assert version in collection.get(A, as_of=f"2023-11-14T22:13:{second}").body
        assert b"never changed" in collection.get(B, as_of="2023-11-14T22:13:28").body
        with pytest.raises(NoPage, match="holds no page"):
            collection.get(A, as_of="2023-11-14T22:13:19")
    assert titles(tmp_path, "animals", "2023-11-14T22:13:28") == ["never changed", "version 1"]
    assert titles(tmp_path, "animals", "2023-11-14T22:13:27") == ["version 0"]


def test_page_that_was_gone_for_a_while_is_what_stood_there_at_each_time(tmp_path: Path) -> None:
    shop, key, batch = Shop(tmp_path), url_key(A), Batch()
    shop.page(A, "<title>page</title>words of a page")
    shop.page(B, "<title>stands for a file</title>bytes of a file")
    page, file = (unpack_page(shop.collection.state.get(Family.PAGE, url_key(url)) or b"") for url in (A, B))
    kinds = [
        (ChangeKind.NEW, page),
        (ChangeKind.GONE, None),
        (ChangeKind.BACK, None),
        (ChangeKind.GONE, file),
        (ChangeKind.GONE, None),
    ]
    for day, (kind, row) in enumerate([*kinds, (ChangeKind.BACK, None), (ChangeKind.MOVED, None)]):
        change = ChangeRow(kind, status=200, place=row.place, essence="text/html") if row else ChangeRow(kind)
        batch.put(Family.CHANGE, change_key(key, 1_700_000_000.0 + DAY_S * day), change.pack())
    shop.collection.commit(batch)
    found = [row_as_of(shop.collection.state, key, 1_700_000_001.0 + DAY_S * day) for day in range(-1, 7)]
    shop.close()
    places = [row.place if row else b"" for row in found]
    assert places == [b"", page.place, b"", page.place, file.place, b"", file.place, b""]


def test_search_leaves_out_versions_that_said_noindex_then(tmp_path: Path) -> None:
    shop, key, batch = Shop(tmp_path), url_key(A), Batch()
    for day, said in enumerate(["<meta name=robots content='noindex, follow'>", "", "<meta name=Robots content=none>"]):
        shop.clock_s = 1_700_000_000.0 + DAY_S * day
        shop.page(A, f"<title>day {day}</title>{said}animals", noindex=bool(said))
        row = unpack_page(shop.collection.state.get(Family.PAGE, key) or b"")
        change = ChangeRow(ChangeKind.TEXT if day else ChangeKind.NEW, status=200, place=row.place, essence="text/html")
        batch.put(Family.CHANGE, change_key(key, shop.clock_s), change.pack())
    shop.collection.commit(batch)
    shop.close()
    assert [titles(tmp_path, "animals", f"2023-11-{14 + day}T23:30") for day in range(3)] == [[], ["day 1"], []]


def test_header_field_that_said_noindex_counts_as_it_did_for_the_crawl(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Shop(tmp_path)
    shop.page(A, "animals")
    row = unpack_page(shop.collection.state.get(Family.PAGE, url_key(A)) or b"")
    for tags, expected in (("noindex", True), ("other: noindex", False), ("noarchive\r\nX-Robots-Tag: none", True)):
        head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nX-Robots-Tag: {tags}\r\n\r\n".encode()
        monkeypatch.setattr("lycosa.search.past.document_at", lambda *_, head=head: (head, b"animals"))
        assert _directives_as_of(shop.collection, A, row, "lycosa").noindex is expected
    shop.close()


def test_dates_count_to_their_end_and_wrong_ones_are_told() -> None:
    assert end_of_date("2026-01-31") == end_of_date("2026-01") == end_of_date("2026-01-31T23:59:59.999")
    assert end_of_date("2025") == end_of_date("2025-12-31")
    assert end_of_date("2026-01-31T12:00") < end_of_date("2026-01-31")
    ends = ("2026-01-31T12", "2026-01-31T12:59", "2026-01-31 12:59:59", "20260131T125959Z", "2026-01-31T13:59:59+01:00")
    assert {end_of_date(text) for text in ends} == {end_of_date("2026-01-31T12:59:59.999999")}
    assert end_of_date("20260131") == end_of_date("2026-W05-6") == end_of_date("2026-01-31")
    assert end_of_date("2026-01-31T12:59:59.9") > end_of_date("2026-01-31T12:59:59.8")
    assert end_of_date("9999") >= end_of_date("9998-12-31T23:59:58"), "the last of years has no end"
    for wrong in ("yesterday", "", "31.1.2026"):
        with pytest.raises(SettingsError, match="no date"):
            end_of_date(wrong)


@pytest.mark.slow
def test_index_agrees_after_looking_again_at_a_web_that_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lycosa.search.past.time.time", lambda: BEGIN_S + 1_000 * DAY_S)
    web, first_day = SimWeb(SimSettings(hosts=3, pages=120, seed=7)), day_after(0)
    run(web, tmp_path, front(web))
    texts = [archived(tmp_path, first_day)]
    for days in (40, 300):
        run(web, tmp_path, days=days, recrawl=Recrawl(everything=True))
        shop = Shop(tmp_path)
        shop.index()
        shop.close()
        assert index_problems(tmp_path) == []
        texts.append(archived(tmp_path, first_day))
    assert texts[0] == texts[1] == texts[2], "the past stays as it was"
    assert len(texts[0]) > 50
    assert archived(tmp_path, day_after(45)) != texts[0]


def day_after(days: int) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(BEGIN_S + days * DAY_S))


def archived(path: Path, day: str) -> dict[str, tuple[str, str, str]]:
    """Every page that a search finds as of a day, with the beginning of its text then."""
    with lycosa.Collection(path) as collection:
        found = collection.search("site:sim", as_of=day, most=1_000).results
        return {result.url: (result.title, result.snippet, result.fetched) for result in found}
