"""`patch = "read"`: the archive holds tables, and every reader gets the documents that the host would have sent."""

import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from warcio.archiveiterator import ArchiveIterator

from lycosa.inspect import open_to_read, page_history, page_of
from lycosa.records import Family
from lycosa.recrawl.change.verdict import ChangeKind
from lycosa.recrawl.versions import document_at, history, stored_at, unpack_change
from lycosa.search import SearchView, make_index
from lycosa.simweb import SimWeb
from lycosa.simweb.web import Answer
from lycosa.store import CollectionStore, RevisitProfile, WarcLocation
from lycosa.store.page_rows import PageRow, unpack_page
from lycosa.tables.formats import Tvi, table_digest, tvi_of, write_tvi
from lycosa.web import volatile
from lycosa.web.url import url_from_key, url_key
from tests.crawl.consistency import problems
from tests.crawl.memory_crawl import front
from tests.recrawl.recrawl_victim import WITH_TABLES
from tests.recrawl.recrawl_world import BEGIN_S, DAY_S, run
from tests.recrawl.test_table_revisits import ALL, stored

DAYS = (4, 8, 12)
WEB = SimWeb(WITH_TABLES)


def kept_fresh(web: SimWeb, into: Path, **settings: Any) -> None:
    run(web, into, front(web), **settings)
    for days in DAYS:
        run(web, into, days=days, recrawl=ALL, **settings)


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A collection kept fresh by table, patched on reading. Tests only look at it."""
    into = tmp_path_factory.mktemp("fresh") / "c"
    kept_fresh(WEB, into, patch="read")
    return into


def profiles(into: Path) -> Counter[str]:
    """What kinds of revisit the archive has, as another reader finds them; it checks the digests."""
    found: Counter[str] = Counter()
    for file in sorted((into / "warc").glob("*.warc.gz")):
        with file.open("rb") as stream:
            for record in ArchiveIterator(stream, check_digests="raise"):
                record.content_stream().read()
                if record.rec_type == "revisit":
                    found[record.rec_headers["WARC-Profile"]] += 1
    return found


def bytes_by_table(into: Path) -> int:
    """How long the records of versions are that came by table, without the tables themselves."""
    with CollectionStore.open(into) as collection:
        rows = [unpack_change(packed) for _, packed in collection.state.walk(Family.CHANGE)]
        return sum(WarcLocation.unpack(row.place).length for row in rows if row.kind is ChangeKind.VOLATILE)


def seen_then(into: Path, url: str) -> list[tuple[float, bytes | None]]:
    """Every version of a page, by the history."""
    with CollectionStore.open(into) as collection:
        rows = list(history(collection.state, url_key(url)))
        found = [(at_s, document_at(collection, change.place)) for at_s, change in rows if change.place]
    return [(at_s, document[1] if document else None) for at_s, document in found]


def test_every_version_read_back_is_the_one_that_the_host_had(fresh: Path) -> None:
    versions = 0
    for url, (row, document, changes) in stored(fresh).items():
        host, path = WEB.address_of(url)
        if not row.volatile or row.original:
            continue
        assert document == WEB.answer(host, path, DAYS[-1] * DAY_S).body, url
        for at_s, body in seen_then(fresh, url):
            assert body == WEB.answer(host, path, round((at_s - BEGIN_S) / DAY_S) * DAY_S).body, url
            versions += 1
        assert changes[:1] == [] or changes[0].kind is ChangeKind.NEW
    assert versions > 20
    assert profiles(fresh)[RevisitProfile.PATCHED] > 10
    assert problems(fresh) == []


@pytest.mark.slow
def test_both_modes_leave_the_same_pages_and_reading_takes_less_room(fresh: Path, tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    kept_fresh(WEB, whole, patch="store")

    def told(into: Path) -> dict[str, tuple[object, ...]]:
        return {
            url: (body, row.size_bytes, row.payload_sha1, row.text_digest, [change.kind for change in changes])
            for url, (row, body, changes) in stored(into).items()
        }

    assert told(fresh) == told(whole)
    assert profiles(whole)[RevisitProfile.PATCHED] == 0
    assert 0 < bytes_by_table(fresh) < 0.4 * bytes_by_table(whole)


def volatile_page(into: Path, versions: int) -> str:
    """A page of which so many versions came by table."""
    for url, (row, _, changes) in stored(into).items():
        kinds = [change.kind for change in changes]
        if not row.original and kinds.count(ChangeKind.VOLATILE) >= versions:
            return url
    raise AssertionError("no page has so many")


def test_versions_that_were_sent_and_that_tables_made_are_shown_by_the_size_of_the_document(tmp_path: Path) -> None:
    into = tmp_path / "c"
    run(WEB, into, front(WEB), gzip=True)
    run(WEB, into, days=DAYS[0], recrawl=ALL, gzip=True)
    url = volatile_page(into, 1)
    host, path = WEB.address_of(url)
    with open_to_read(into) as collection:
        sent = next(history(collection.state, url_key(url)))[1].size_bytes
        found = page_history(collection, url).versions
    sizes = [len(WEB.answer(host, path, days * DAY_S).body) for days in (0, DAYS[0])]
    assert sent < sizes[0], "it came compressed"
    assert [version.document_bytes for version in found] == sizes
    for file in (into / "warc").iterdir():
        file.rename(tmp_path / file.name)
    with open_to_read(into) as collection:
        assert [version.archived for version in page_history(collection, url).versions] == [False, False]


def test_reader_of_a_past_time_gets_the_version_of_that_time(fresh: Path) -> None:
    url = volatile_page(fresh, 2)
    host, path = WEB.address_of(url)
    for days in (0, *DAYS):
        then = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(BEGIN_S + days * DAY_S + 3_600))
        assert page_of(fresh, url, as_of=then).body == WEB.answer(host, path, days * DAY_S).body
    assert page_of(fresh, url).body == WEB.answer(host, path, DAYS[-1] * DAY_S).body
    with open_to_read(fresh) as collection:
        found = page_history(collection, url)
    assert found.diff is not None  # both versions could be made


def test_whole_document_fetched_later_is_what_tables_are_patched_into_from_then_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lycosa.recrawl.table_revisits.TABLE_VISITS_MOST", 1)
    into = tmp_path / "c"
    kept_fresh(WEB, into, patch="read")  # by table, whole, by table
    bases = set()
    with CollectionStore.open(into) as collection:
        for key, packed in collection.state.walk(Family.PAGE):
            row: PageRow = unpack_page(packed)
            found = stored_at(collection, row.place) if row.volatile and not row.original else None
            if found is not None and found.whole.place.pack() != row.place:
                host, path = WEB.address_of(url_from_key(key))
                assert found.body == WEB.answer(host, path, DAYS[-1] * DAY_S).body
                bases.add(found.whole.date[:10])
    second = time.strftime("%Y-%m-%d", time.gmtime(BEGIN_S + DAYS[1] * DAY_S))
    assert second in bases


FRAME = "<p data-volume=9>x</p><table><tr>{}</tr></table>"
PAGES = (  # the first part comes to hold a table of its own: what was the second cell is the third now
    FRAME.format("<td class=v>a</td><td>b</td>"),
    FRAME.format("<td class=v><table><tr><td>x</td></tr></table></td><td>b</td>"),
    FRAME.format("<td class=v><table><tr><td>y</td></tr></table></td><td>c</td>"),
)
IDS = (("td:1",), ("td:1",), ("td:1", "td:3"))


def table_of(version: int) -> bytes:
    body = PAGES[version].encode()
    parts = volatile.parts_by_id(body, IDS[version], is_xml=False)
    assert parts is not None
    contents = tuple((part.id, body[part.start : part.end]) for part in parts)
    made = write_tvi(Tvi(contents, table_digest(body), table_digest(volatile.cut_parts(body, parts))))
    assert isinstance(made, bytes)
    return made


def test_document_that_its_last_whole_version_does_not_give_is_stored_whole(tmp_path: Path) -> None:
    into, at = tmp_path / "c", [0]

    def answer(original: Any, host: int, target: str, *rest: float) -> Answer:
        if target == "/":
            return Answer(200, PAGES[at[0]].encode())
        return Answer(200, table_of(at[0]), "text/plain") if target == "/index.tvi" else Answer(404, b"")

    run(WEB, into, front(WEB), answer=answer)
    kinds = []
    for at[0] in (1, 2):
        run(WEB, into, clock_days=at[0], recrawl=ALL, answer=answer, patch="read")
        row, body, changes = stored(into)[front(WEB)]
        assert body == PAGES[at[0]].encode()
        assert changes[-1].kind is ChangeKind.VOLATILE
        with CollectionStore.open(into) as collection:
            found = stored_at(collection, row.place)
            assert found is not None
            kinds.append("whole" if found.whole.place.pack() == row.place else "table")
    assert kinds == ["table", "whole"]


@pytest.mark.slow
def test_index_and_snippets_have_what_the_tables_say(
    fresh: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    into = tmp_path / "c"
    shutil.copytree(fresh, into)
    monkeypatch.setattr("lycosa.search.texts.MANY_DOCUMENTS", 1)  # read by processes, which have no state
    make_index(into, anew=True)
    url = volatile_page(into, 2)
    host, path = WEB.address_of(url)
    now = WEB.answer(host, path, DAYS[-1] * DAY_S).body
    part = next(iter(tvi_of(now, is_xml=False).parts))[1].decode()  # type: ignore[union-attr]
    words = " ".join(part.split())
    with SearchView(into) as view:
        found = view.search(f'"{words}"', most=100)
    assert url in {result.url for result in found.results}


def recrawl(into: Path, commit: int, moment: str) -> int:
    words = (str(into), "4", str(commit), moment, "read")
    return subprocess.run(
        [sys.executable, "-m", "tests.recrawl.recrawl_victim", *words], check=False, timeout=300
    ).returncode


@pytest.mark.slow
def test_killed_between_the_writes_no_document_is_lost_or_wrong(tmp_path: Path) -> None:
    into = tmp_path / "c"
    run(WEB, into, front(WEB))
    first = {url: body for url, (_, body, _) in stored(into).items()}
    for commit, moment in ((2, "between"), (3, "before"), (3, "after")):
        assert recrawl(into, commit, moment) == -signal.SIGKILL
        check = tmp_path / f"{commit}{moment}"
        shutil.copytree(into, check)
        for url, (_, body, _) in stored(check).items():
            host, path = WEB.address_of(url)
            assert body in (first.get(url), WEB.answer(host, path, 4 * DAY_S).body), url
    assert recrawl(into, 0, "") == 0
    for url, (row, body, _) in stored(into).items():
        if row.volatile and not row.original:
            host, path = WEB.address_of(url)
            assert body == WEB.answer(host, path, 4 * DAY_S).body, url
    assert profiles(into)[RevisitProfile.PATCHED] > 3
    assert problems(into) == []
