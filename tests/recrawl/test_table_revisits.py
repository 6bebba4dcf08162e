"""Looking again by table: only the table is fetched, and what is stored is what the host would have sent."""

from pathlib import Path
from typing import Any

import pytest
from warcio.archiveiterator import ArchiveIterator

from lycosa.crawl.progress import Recrawl
from lycosa.frontier.rows import unpack_host
from lycosa.records import Family
from lycosa.recrawl.change.verdict import ChangeKind
from lycosa.recrawl.versions import ChangeRow, document_at, history
from lycosa.simweb import SimSettings, SimWeb
from lycosa.simweb.log import AuditRules, audit
from lycosa.simweb.web import Answer
from lycosa.store import CollectionStore
from lycosa.store.page_rows import PageRow, unpack_page
from lycosa.tables.formats import tvi_of, write_tvi
from lycosa.tables.links import TableSupport
from lycosa.tables.publisher import AugmentOptions, tables_of
from lycosa.web.url import url_from_key, url_key
from tests.crawl.consistency import problems
from tests.crawl.memory_crawl import Result, front
from tests.recrawl.recrawl_world import BEGIN_S, DAY_S, run

ALL = Recrawl(everything=True)
DAYS = 4


def web_with(tables: float) -> SimWeb:
    return SimWeb(SimSettings(seed=5, hosts=1, pages=90, tables=tables))


def looked_again(web: SimWeb, into: Path, **options: Any) -> Result:
    run(web, into, front(web))
    return run(web, into, days=DAYS, recrawl=ALL, **options)


def tables_asked(result: Result) -> list[str]:
    return [f"{entry.host}{entry.path}" for entry in result.entries if entry.path.endswith(".tvi")]


def stored(into: Path) -> dict[str, tuple[PageRow, bytes, list[ChangeRow]]]:
    """Of every page: its row, the document that a reader of the archive gets, and its history."""
    found = {}
    with CollectionStore.open(into) as collection:
        for key, packed in collection.state.walk(Family.PAGE):
            row = unpack_page(packed)
            document = document_at(collection, row.place) if row.is_page and row.status == 200 else None
            if document is not None:
                found[url_from_key(key)] = row, document[1], [change for _, change in history(collection.state, key)]
    return found


def hosts(into: Path) -> list[int]:
    with CollectionStore.open(into) as collection:
        return [unpack_host(row).volatile for _, row in collection.state.walk(Family.HOST)]


def patched_records(into: Path) -> list[str]:
    """The URLs of patched versions, as another reader of the archive finds them; digests are checked."""
    found, responses = [], set()
    for file in sorted((into / "warc").glob("*.warc.gz")):
        with file.open("rb") as stream:
            for record in ArchiveIterator(stream, check_digests="raise"):
                body = record.content_stream().read()
                if record.rec_type == "metadata" and b"patched-by: " in body:
                    found.append(record.rec_headers["WARC-Target-URI"])
                if record.rec_type == "response":
                    responses.add(record.rec_headers["WARC-Target-URI"])
    assert set(found) <= responses
    return found


@pytest.mark.slow
def test_pages_with_volatile_parts_are_brought_up_to_date_by_their_tables(tmp_path: Path) -> None:
    web = web_with(1.0)
    result = looked_again(web, tmp_path / "c")
    patched = 0
    for url, (row, document, changes) in stored(tmp_path / "c").items():
        if not row.volatile:
            continue
        host, path = web.address_of(url)
        truth = web.answer(host, path, DAYS * DAY_S)
        assert document == truth.body, url
        asked = [entry.path for entry in result.entries if f"http://{entry.host}:8800{entry.path}" == url]
        if changes and changes[-1].kind is ChangeKind.VOLATILE:
            assert asked == []
            assert changes[0].kind is ChangeKind.NEW
            assert changes[-1].place == row.place
            patched += 1
    assert patched > 3
    assert result.stats.tables["patched"] >= patched
    assert set(hosts(tmp_path / "c")) == {TableSupport.HAS}
    assert problems(tmp_path / "c") == []
    assert len(patched_records(tmp_path / "c")) >= patched
    assert audit(web.settings, result.entries, AuditRules(delay_s=0.05)).is_clean


def test_frame_that_changed_as_well_is_fetched_whole(tmp_path: Path) -> None:
    web = web_with(1.0)
    run(web, tmp_path / "c", front(web))
    result = run(web, tmp_path / "c", days=60, recrawl=ALL)
    assert result.stats.tables["more than the volatile parts has changed"] > 0
    for url, (row, document, _) in stored(tmp_path / "c").items():
        host, path = web.address_of(url)
        truth = web.answer(host, path, 60 * DAY_S)
        if row.volatile and truth.status == 200:
            assert document == truth.body, url


@pytest.mark.slow
def test_history_keeps_every_version_over_several_visits(tmp_path: Path) -> None:
    web = web_with(1.0)
    run(web, tmp_path / "c", front(web))
    for days in (4, 8, 12):
        run(web, tmp_path / "c", days=days, recrawl=ALL)
    several = 0
    with CollectionStore.open(tmp_path / "c") as collection:
        for url in stored_urls(collection):
            kinds = [change.kind for _, change in history(collection.state, url_key(url))]
            assert kinds.count(ChangeKind.NEW) <= 1
            several += kinds.count(ChangeKind.VOLATILE) > 1
            for time_s, change in history(collection.state, url_key(url)):
                document = document_at(collection, change.place) if change.kind is ChangeKind.VOLATILE else None
                if document is not None:
                    host, path = web.address_of(url)
                    day = round((time_s - BEGIN_S) / DAY_S)
                    assert document[1] == web.answer(host, path, day * DAY_S).body
    assert several > 0


def stored_urls(collection: CollectionStore) -> list[str]:
    return [url_from_key(key) for key, packed in collection.state.walk(Family.PAGE) if unpack_page(packed).volatile]


def test_host_without_tables_is_asked_for_one_at_most(tmp_path: Path) -> None:
    result = looked_again(web_with(0.0), tmp_path / "c")
    asked = tables_asked(result)
    assert len(asked) == 1
    assert tables_asked(run(web_with(0.0), tmp_path / "c", days=2 * DAYS, recrawl=ALL)) == []


def test_table_that_has_not_changed_is_not_sent_again(tmp_path: Path) -> None:
    web = web_with(1.0)
    looked_again(web, tmp_path / "c")
    before = stored(tmp_path / "c")
    result = run(web, tmp_path / "c", days=DAYS, clock_days=DAYS + 1, recrawl=ALL)
    asked = [entry for entry in result.entries if entry.path.endswith(".tvi")]
    assert asked
    has_etag, _ = web._validator_kinds(0)
    assert has_etag
    assert 304 in {entry.status for entry in asked}  # the others were fetched whole last time
    assert {url: found[1:] for url, found in stored(tmp_path / "c").items()} == {
        url: found[1:] for url, found in before.items()
    }


def test_table_left_behind_does_not_hide_for_ever_that_its_document_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lycosa.recrawl.table_revisits.SAME_TABLES_MOST", 2)
    web = SimWeb(SimSettings(seed=5, hosts=1, pages=20, tables=1.0))
    run(web, tmp_path / "c", front(web))
    volatile = {url for url, (row, *_) in stored(tmp_path / "c").items() if row.volatile}
    assert volatile

    def left_behind(original: Any, host: int, target: str, *rest: float) -> Answer:
        is_gone = f"{web.linker.origin(host)}{target}" in volatile
        return Answer(410, b"") if is_gone else original(host, target, *rest)

    for visit in (1, 2, 3):
        run(web, tmp_path / "c", clock_days=visit, recrawl=ALL, answer=left_behind)
        assert volatile & stored(tmp_path / "c").keys() == (volatile if visit < 3 else set())
    assert problems(tmp_path / "c") == []


def test_whole_visit_begins_the_count_of_visits_by_table_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lycosa.recrawl.table_revisits.TABLE_VISITS_MOST", 1)
    web = SimWeb(SimSettings(seed=5, hosts=1, pages=20, tables=1.0))
    run(web, tmp_path / "c", front(web))
    results = [run(web, tmp_path / "c", clock_days=days, recrawl=ALL) for days in (1, 2, 3)]
    assert [bool(tables_asked(result)) for result in results] == [True, False, True]


def test_tables_off_asks_for_documents_only(tmp_path: Path) -> None:
    assert tables_asked(looked_again(web_with(1.0), tmp_path / "c", tables="off")) == []


@pytest.mark.parametrize(
    ("lie", "known"),
    [
        (lambda body: body.replace(b"Read ", b"Seen "), TableSupport.LIES),
        (lambda body: body.replace(b"# tvi 1", b"# tvi 7"), TableSupport.HAS_NONE),
        (lambda body: b"\xff" + body, TableSupport.HAS_NONE),
        (lambda body: body[:-9], TableSupport.HAS_NONE),
    ],
)
def test_table_that_is_wrong_changes_nothing(tmp_path: Path, lie: Any, known: TableSupport) -> None:
    web = web_with(1.0)

    def answer(original: Any, host: int, target: str, *rest: float) -> Answer:
        found = original(host, target, *rest)
        if not target.endswith(".tvi") or found.status != 200:
            return found  # type: ignore[no-any-return]
        return Answer(200, lie(found.body), "text/plain")

    looked_again(web, tmp_path / "c", answer=answer)
    assert known in hosts(tmp_path / "c")
    for url, (row, document, _) in stored(tmp_path / "c").items():
        host, path = web.address_of(url)
        if row.volatile and not row.original:
            assert b"Seen " not in document
            frame = web.answer(host, path, 0).body
            assert document in (frame, web.answer(host, path, DAYS * DAY_S).body)


XML = "<r><Vol1>{}</Vol1><p>the words that stay</p></r>"


@pytest.mark.parametrize("has_table", [True, False])
def test_marked_part_of_an_xml_document_that_changed_is_volatile(tmp_path: Path, has_table: bool) -> None:
    web, into = SimWeb(SimSettings(seed=5, hosts=1, pages=20, tables=1.0)), tmp_path / "c"
    at = [0]

    def answer(original: Any, host: int, target: str, *rest: float) -> Answer:
        body = XML.format(f"number {at[0]}, and news").encode()
        if target == "/":
            return Answer(200, b'<a href="/data.xml">x</a>')
        if target == "/data.tvi" and has_table:
            made = tvi_of(body, is_xml=True, of="data.xml")
            assert made is not None
            content = write_tvi(made)
            assert isinstance(content, bytes)
            return Answer(200, content, "text/plain")
        return Answer(200, body, "application/xml") if target == "/data.xml" else Answer(404, b"")

    run(web, into, front(web), answer=answer)
    for at[0] in (1, 2):
        run(web, into, clock_days=at[0], recrawl=ALL, answer=answer)
    row, body, changes = stored(into)[f"{front(web)}data.xml"]
    assert row.volatile
    assert {change.kind for change in changes} <= {ChangeKind.NEW, ChangeKind.VOLATILE}
    if has_table:
        assert [change.kind for change in changes] == [ChangeKind.NEW, ChangeKind.VOLATILE, ChangeKind.VOLATILE]
        assert b"number 2" in body


WORDS = ("alpha", "beta", "gamma", "delta", "epsilon")
SELECTED = '<a href="/">home</a><p>the words that stay</p><i class=v>{}</i>'


@pytest.mark.slow
def test_table_that_keeps_changing_is_trusted_longer_than_one_that_stands_still(tmp_path: Path) -> None:
    web, into = SimWeb(SimSettings(seed=5, hosts=1, pages=20, tables=1.0)), tmp_path / "c"
    at, asked = [0], list[str]()

    def answer(original: Any, host: int, target: str, *rest: float) -> Answer:
        moving, still = XML.format(f"number {at[0]}").encode(), XML.format("nothing new").encode()
        bodies = {"/moving": moving, "/still": still}
        name, _, ending = target.rpartition(".")
        asked.extend([target] if name in bodies else [])
        if target == "/":
            return Answer(200, b'<a href="/moving.xml">x</a><a href="/still.xml">y</a>')
        if name not in bodies or ending not in ("xml", "tvi"):
            return Answer(404, b"")
        made = tvi_of(bodies[name], is_xml=True, of=f"{name[1:]}.xml")
        content = write_tvi(made) if made else b""
        assert isinstance(content, bytes)
        return Answer(200, bodies[name], "application/xml") if ending == "xml" else Answer(200, content, "text/plain")

    run(web, into, front(web), answer=answer)
    asked.clear()
    for at[0] in range(1, 10):
        run(web, into, clock_days=at[0], recrawl=ALL, answer=answer)
    assert (asked.count("/moving.tvi"), asked.count("/moving.xml")) == (9, 0)
    assert (asked.count("/still.tvi"), asked.count("/still.xml")) == (8, 1)
    assert [path for path in asked if "still" in path].index("/still.xml") == 7


@pytest.mark.parametrize("is_lost", [False, True])
def test_page_whose_parts_are_selected_keeps_its_table_until_that_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_lost: bool
) -> None:
    monkeypatch.setattr("lycosa.recrawl.table_revisits.TABLE_VISITS_MOST", 1)
    web, into = SimWeb(SimSettings(seed=5, hosts=1, pages=20, tables=1.0, rtt_ms=50)), tmp_path / "c"
    at = [0]

    def answer(original: Any, host: int, target: str, *rest: float) -> Answer:
        body = SELECTED.format(WORDS[at[0]]).encode()
        made = tables_of(body, AugmentOptions(selector=".v"), name="index.html", content_type="text/html")
        if target == "/":
            return Answer(200, body)
        tables = {"/index.tol": made.tol, "/index.tvi": None if is_lost else made.tvi}
        found = tables.get(target)
        return Answer(200, found, "text/plain") if found is not None else Answer(404, b"")

    options = {"answer": answer, "delay_s": 0, "per_host": 2, "per_ip": 2, "tables": "always", "time_scale": 1.0}
    run(web, into, front(web), **options)
    assert stored(into)[front(web)][0].volatile  # its table of links has said so
    asked = []
    for at[0] in (1, 2, 3, 4):
        result = run(web, into, clock_days=at[0], recrawl=ALL, **options)
        asked.append(len(tables_asked(result)))
        assert stored(into)[front(web)][1] == SELECTED.format(WORDS[at[0]]).encode()
    assert asked == ([1, 0, 0, 0] if is_lost else [1, 0, 1, 0])
