"""What a recrawl leaves behind: counts that agree with the rows, dates of records, new pages, failures tried again."""

import itertools
import json
import os
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from lycosa.cli.commands import app
from lycosa.crawl.progress import Recrawl
from lycosa.crawl.seams import wall_clock
from lycosa.frontier.rows import Reason, UrlRow, UrlState
from lycosa.inspect import open_to_read, stats_of
from lycosa.records import Family
from lycosa.simweb import SimSettings, SimWeb
from lycosa.simweb.web import Answer
from lycosa.store import Batch, CollectionStore
from lycosa.store.page_rows import PageRow, pack_row, unpack_page
from lycosa.web.page import analyse_page
from lycosa.web.url import url_from_key, url_key
from tests.crawl.consistency import problems
from tests.crawl.memory_crawl import front
from tests.recrawl.recrawl_world import BEGIN_S, DAY_S, run

WEB = SimWeb(SimSettings(seed=1, hosts=2, pages=40, mirrors=0.3, tables=0.0))
ALL = Recrawl(everything=True)


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    into = tmp_path_factory.mktemp("books") / "c"
    run(WEB, into, front(WEB))
    return into


@pytest.fixture
def into(crawled: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(crawled, tmp_path / "copy"))


def counted(into: Path) -> dict[str, Counter[str] | int]:
    with open_to_read(into) as collection:
        stats = stats_of(collection)
    return {"types": stats.types, "languages": stats.languages, "duplicates": stats.duplicates, "pages": stats.pages}


def recounted(into: Path) -> dict[str, Counter[str] | int]:
    with open_to_read(into) as collection:
        state = collection.state
        urls = {key: UrlRow.unpack(row) for key, row in state.walk(Family.URL)}
        rows = [(key, unpack_page(row)) for key, row in state.walk(Family.PAGE)]
    pages = [row for key, row in rows if row.is_page and urls[key].state is UrlState.DONE]
    own = [row for row in pages if not row.original]
    return {
        "types": Counter(row.essence or "unknown" for row in own),
        "languages": Counter(row.language.partition("-")[0].lower() for row in own if row.language),
        "duplicates": sum(bool(row.original) for row in pages),
        "pages": len(pages),
    }


def test_counts_by_type_agree_with_the_pages_after_recrawls(into: Path) -> None:
    for days in (20, 40):
        run(WEB, into, days=days, recrawl=ALL)
        assert counted(into) == recounted(into)
    assert problems(into) == []


def test_revisit_records_name_the_date_of_the_record_they_refer_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def moving(*arguments: Any) -> Callable[[], float]:  # no clock stands still
        ticks, now_unix = itertools.count(), wall_clock(*arguments)
        return lambda: now_unix() + next(ticks) * 1e-5

    monkeypatch.setattr("lycosa.crawl.assembly.wall_clock", moving)
    run(WEB, tmp_path / "c", front(WEB))
    run(WEB, tmp_path / "c", days=10, recrawl=ALL)
    with CollectionStore.open(tmp_path / "c", read_only=True) as collection:
        records = [record for _, record in collection.records()]
    dated = {(record.url, record.header("WARC-Date")) for record in records if record.type in ("response", "revisit")}
    referred = [
        (record.header("WARC-Refers-To-Target-URI"), record.header("WARC-Refers-To-Date"))
        for record in records
        if record.type == "revisit"
    ]
    assert len(referred) > 20
    assert [each for each in referred if each not in dated] == []


def say(*words: str | Path) -> str:
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    return result.stdout


def listed(into: Path, *words: str) -> list[tuple[str, str]]:
    found = [json.loads(line) for line in say("changes", into, "--json", "-n", "1000", *words).splitlines()]
    return [(change["url"], change["kind"]) for change in found]


def saying(odd: dict[str, Answer]) -> Callable[..., Answer]:
    """The web with other answers for some URLs."""

    def answer(original: Callable[..., Answer], host: int, target: str, *rest: object) -> Answer:
        return odd.get(f"{WEB.linker.origin(host)}{target}") or original(host, target, *rest)

    return answer


def some_pages(into: Path, many: int) -> list[str]:
    """URLs of articles."""
    with open_to_read(into) as collection:
        rows = [(url_from_key(key), unpack_page(row)) for key, row in collection.state.walk(Family.PAGE)]
    found = [url for url, row in rows if row.is_page and row.status == 200 and not row.original and row.depth == 2]
    return found[:many]


def test_changes_lists_a_page_that_a_recrawl_finds_first(into: Path) -> None:
    new = f"{front(WEB)}brand-new.html"
    with_link = {
        front(WEB): Answer(200, b"<main><a href=/brand-new.html>new</a></main>"),
        new: Answer(200, b"<p>Hello"),
    }
    run(WEB, into, days=0, clock_days=2, recrawl=ALL, answer=saying(with_link))
    assert (new, "new") in listed(into)
    assert listed(into, "--kind", "new") == [(new, "new")]
    run(WEB, into, days=0, clock_days=4, recrawl=ALL, answer=saying({**with_link, new: Answer(200, b"<p>Hello again")}))
    assert [kind for url, kind in listed(into) if url == new] == ["text", "new"]
    assert problems(into) == []


def test_changes_lists_a_page_that_comes_while_a_collection_is_kept_fresh(tmp_path: Path) -> None:
    into, new, asked = tmp_path / "c", f"{front(WEB)}brand-new.html", list[str]()

    def answer(original: Callable[..., Answer], host: int, target: str, *rest: object) -> Answer:
        asked.append(target)
        if target == "/brand-new.html":
            return Answer(200, b"<p>Hello")
        if target == "/" and asked.count("/") > 2:
            return Answer(200, b"<main><a href=/brand-new.html>new</a></main>")
        return Answer(200, b"<main><p>Hi <a href=/a.html>a</a></main>") if target != "/robots.txt" else Answer(404)

    options = {
        "keep_fresh": True,
        "visits_per_day": 480,
        "time_s": DAY_S / 4,
        "store_interval_s": 60,
        "sitemaps": False,
    }
    run(WEB, into, front(WEB), answer=answer, time_scale=1.0, **options)
    assert listed(into, "--kind", "new") == [(new, "new")]
    assert problems(into) == []


@pytest.mark.parametrize("limits", [{}, {"pages": 12}], ids=["whole", "unfinished"])
def test_recrawl_of_all_tries_failed_urls_again(crawled: Path, tmp_path: Path, limits: dict[str, int]) -> None:
    mended, broken, moved, nowhere = urls = some_pages(crawled, 4)
    into, lost = tmp_path / "c", {nowhere: Answer(302, headers=(("Location", "mailto:a@b.example"),))}
    run(WEB, into, *urls, front(WEB), answer=saying({**dict.fromkeys(urls, Answer(404)), **lost}), **limits)
    now = {broken: Answer(410), moved: Answer(302, headers=(("Location", "/"),)), **lost}
    result = run(WEB, into, days=0, clock_days=2, recrawl=ALL, answer=saying(now), **limits)
    asked = Counter(f"http://{entry.host}:8800{entry.path}" for entry in result.entries)
    assert [asked[url] for url in urls] == [1, 1, 1, 1]
    assert (result.stats.failed["410"], result.stats.failed["bad-redirect"]) == (1, 1)
    assert (mended, "new") in listed(into)
    assert counted(into) == recounted(into)
    assert problems(into) == []


def test_failed_urls_of_a_silent_host_are_queued_once_over_many_runs(into: Path) -> None:
    urls = some_pages(into, 3)
    run(WEB, into, days=0, clock_days=1, recrawl=ALL)

    def silent(original: Callable[..., Answer], host: int, target: str, *rest: object) -> Answer:
        return Answer(200, b"", trouble="hang")

    with CollectionStore.open(into) as collection:  # as if they had never been pages
        batch = Batch()
        for url in urls:
            batch.put(Family.PAGE, url_key(url), pack_row(PageRow(404, BEGIN_S, 1, failure="404")))
            batch.put(Family.URL, url_key(url), UrlRow(UrlState.FAILED, 1, Reason.STATUS).pack())
        collection.state.write(batch)
    queued = list[int]()
    for days in (2, 3, 4):
        run(WEB, into, days=0, clock_days=days, recrawl=ALL, answer=silent, store_interval_s=30)
        with open_to_read(into) as collection:
            queued.append(len(list(collection.state.walk(Family.QUEUE))))
    assert queued == queued[:1] * 3


def test_page_whose_record_was_lost_with_the_end_of_a_file_is_no_new_page(into: Path) -> None:
    (archive,) = (into / "warc").iterdir()
    os.truncate(archive, archive.stat().st_size // 2)
    assert run(WEB, into, days=0, clock_days=2, recrawl=ALL).stats.run_lost > 5
    assert listed(into) == []
    assert problems(into) == []


def test_copy_whose_original_has_changed_is_a_copy_no_more(into: Path) -> None:
    copies = counted(into)["duplicates"]
    with open_to_read(into) as collection:
        rows = [unpack_page(row) for _, row in collection.state.walk(Family.PAGE)]
    original = next(row.original for row in rows if row.original)
    changed = saying({original: Answer(200, b"<p>Something else altogether")})
    for days in (2, 4):
        run(WEB, into, days=0, clock_days=days, recrawl=ALL, answer=changed)
    assert counted(into)["duplicates"] == copies - 1
    assert counted(into) == recounted(into)
    assert problems(into) == []


def codes_by_hand(body: bytes) -> tuple[list[str], float, float]:
    """The structure strings (Y7) and both text codes (Y9, Y10) of a document, by the analyser."""
    page = analyse_page(body, url=front(WEB), content_type="text/html")
    strings = [page.structure_first, page.structure_last]
    return strings, page.codes.mean_per_symbol, page.codes.root_of_squares


def test_sizes_and_change_parameters_of_versions_are_shown_and_named(tmp_path: Path) -> None:
    into, url = tmp_path / "c", front(WEB)
    bodies = [b"<p>Hello world" + b"!" * 300, b"<p>Hello <b>new</b> world" + b"!" * 400]
    run(WEB, into, url, depth=0, gzip=True, answer=saying({url: Answer(200, bodies[0])}))
    run(WEB, into, days=0, clock_days=2, recrawl=ALL, depth=0, gzip=True, answer=saying({url: Answer(200, bodies[1])}))
    found = json.loads(say("changes", into, url, "--json"))["versions"]
    assert [version["document_bytes"] for version in found] == [len(body) for body in bodies]
    assert all(0 < version["sent_bytes"] < version["document_bytes"] for version in found)
    told = [(version["codes"]["text_code_1"], version["codes"]["text_code_2"]) for version in found]
    assert told == [codes_by_hand(body)[1:] for body in bodies]
    assert found[0]["codes"]["structure"] != found[1]["codes"]["structure"]
    sizes = [f"{version['sent_bytes']} bytes as sent, {version['document_bytes']} decoded" for version in found]
    shown = say("changes", into, url)
    assert all(size in shown for size in sizes)
    assert f"text codes {told[1][0]:.6g} {told[1][1]:.6g}" in shown
    last = json.loads(say("why", url, "--in", into, "--json"))
    assert (last["sent_bytes"], last["document_bytes"]) == (found[1]["sent_bytes"], len(bodies[1]))
    assert (last["structure"], last["codes"]) == (codes_by_hand(bodies[1])[0], found[1]["codes"])
    assert sizes[1] in say("why", url, "--in", into)
    assert sizes[1] in say("get", url, "--in", into, "--headers")
