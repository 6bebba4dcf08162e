"""Pages watched without being stored (`archive = none`), and bodies that are fetched again when they are missing."""

import json
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

import lycosa
from lycosa.cli.commands import app
from lycosa.crawl.progress import Recrawl
from lycosa.errors import SettingsError
from lycosa.records import Family
from lycosa.recrawl.versions import ChangeRow, document_at, history
from lycosa.simweb import SimSettings, SimWeb
from lycosa.simweb.web import Answer
from lycosa.store import CollectionStore, WarcLocation
from lycosa.store.page_rows import PageRow, unpack_page
from lycosa.web.url import url_from_key, url_key
from tests.crawl.consistency import problems
from tests.crawl.memory_crawl import front
from tests.recrawl.recrawl_world import run

WEB = SimWeb(SimSettings(seed=1, hosts=1, pages=30, mirrors=0.2, tables=1.0))
ALL = Recrawl(everything=True)
NONE = {"archive": "none"}


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The same web watched for 40 days, with an archive and without one."""
    kept, watched = (tmp_path_factory.mktemp("watched") / name for name in ("kept", "none"))
    for into, options in ((kept, {"tables": "off"}), (watched, NONE)):
        run(WEB, into, front(WEB), **options)
        for days in (20, 40):
            run(WEB, into, days=days, recrawl=ALL, **options)
    return kept, watched


def rows(into: Path) -> dict[str, PageRow]:
    with CollectionStore.open(into) as collection:
        return {url_from_key(key): unpack_page(row) for key, row in collection.state.walk(Family.PAGE)}


def lines(into: Path, url: str) -> list[ChangeRow]:
    with CollectionStore.open(into) as collection:
        return [row for _, row in history(collection.state, url_key(url))]


def tell(*words: str | Path) -> str:
    """What a command says, on whichever stream, or what it complains of."""
    result = CliRunner().invoke(app, [str(word) for word in words])
    return result.output + str(result.exception or "")


def listed(into: Path) -> list[dict[str, object]]:
    result = CliRunner().invoke(app, ["changes", str(into), "--json", "-n", "1000"])
    return [json.loads(line) for line in result.stdout.splitlines()]


def saying(odd: dict[str, Answer]) -> Callable[..., Answer]:
    def answer(original: Callable[..., Answer], host: int, target: str, *rest: object) -> Answer:
        return odd.get(f"{WEB.linker.origin(host)}{target}") or original(host, target, *rest)

    return answer


def test_watching_without_an_archive_finds_the_changes_that_an_archive_finds(both: tuple[Path, Path]) -> None:
    _, watched = both
    assert list((watched / "warc").iterdir()) == []
    told = [{(change["url"], change["word"]) for change in listed(into)} for into in both]
    assert told[0] <= told[1]
    assert len(told[0]) > 5
    later = {url for url, _ in told[1] - told[0]}  # values that change on every visit are learned some visits later
    assert len(later) < len(told[0]) / 2
    assert all(WEB.pages.has_volatile(WEB.layout.locate(*WEB.address_of(url))) for url in later)  # type: ignore[arg-type]
    assert {row.place for row in rows(watched).values()} == {b""}
    assert problems(watched) == []


def test_change_without_an_archive_is_told_by_the_papers_codes(tmp_path: Path) -> None:
    into, url = tmp_path / "c", front(WEB)
    bodies = [b"<p>Hello world", b"<p>Hello there", b"<p>Hello <b>there</b>", b"<p>Hello <b>ether</b>"]
    for number, body in enumerate(bodies):
        order = ALL if number else None
        answer = saying({url: Answer(200, body)})
        run(WEB, into, *([] if number else [url]), clock_days=number * 2, recrawl=order, depth=0, answer=answer, **NONE)
    found = lines(into, url)
    assert [line.kind for line in found] == ["new", "text", "structure", "text"]
    assert re.fullmatch(r"text codes [\d.]+ → [\d.]+, [\d.]+ → [\d.]+", found[1].where)
    assert found[2].where == "structure string 1 from tag 5 on: 4 tags, then 5"
    assert found[3].where == "other content, with the same strings and codes"
    shown = tell("changes", into, url)
    assert shown.count("text codes") == 5
    assert f"lycosa recrawl {into} --all --archive full" in shown


def test_values_that_change_on_every_visit_are_learned_without_an_archive(tmp_path: Path) -> None:
    into, url = tmp_path / "c", front(WEB)
    for number in range(6):
        answer = saying({url: Answer(200, b"<p>Read %d times" % (812 + number))})
        run(
            WEB,
            into,
            *([] if number else [url]),
            clock_days=number * 2,
            recrawl=ALL if number else None,
            depth=0,
            answer=answer,
            **NONE,
        )
    assert [line.kind for line in lines(into, url)] == ["new", "text", "text", "text"]


@pytest.mark.parametrize(
    "words",
    [
        ["get", "URL", "--in", "DIR"],
        ["get", "URL", "--in", "DIR", "--as-of", "2026-01-05"],
        ["search", "DIR", "anything"],
        ["search", "DIR", "anything", "--as-of", "2026-01-05"],
        ["index", "DIR"],
        ["changes", "DIR", "URL", "--old", "1"],
    ],
    ids=" ".join,
)
def test_what_needs_a_body_says_that_there_is_none_and_how_to_get_it(both: tuple[Path, Path], words: list[str]) -> None:
    _, watched = both
    url = next(str(change["url"]) for change in listed(watched) if change["kind"] == "text")
    told = tell(*(word.replace("DIR", str(watched)).replace("URL", url) for word in words))
    assert f"{watched} keeps no bodies of pages (archive = none); lycosa recrawl {watched} --all --archive full" in told


def test_index_and_no_archive_are_refused_together(tmp_path: Path) -> None:
    told = tell("crawl", "http://127.0.0.1/", "--into", tmp_path / "c", "--archive", "none", "--index")
    assert "a search index needs bodies" in told


def test_recrawl_with_an_archive_fetches_the_bodies_that_were_not_kept(both: tuple[Path, Path], tmp_path: Path) -> None:
    _, watched = both
    into = Path(shutil.copytree(watched, tmp_path / "c"))
    result = run(WEB, into, days=40, clock_days=50, recrawl=ALL, archive="full", tables="off")
    pages = {url: row for url, row in rows(into).items() if row.is_page and row.status == 200}
    with CollectionStore.open(into) as collection:
        bodies = {url: document_at(collection, row.place) for url, row in pages.items()}
    assert all(bodies.values())
    assert (result.stats.run_changed, result.stats.run_lost) == (0, 0)
    again = run(WEB, into, days=40, clock_days=60, recrawl=ALL, archive="full", tables="off")
    assert again.stats.run_not_modified > len(pages) / 2
    assert problems(into, sampled=1) == []


def test_records_damaged_in_the_middle_of_the_archive_are_fetched_again(tmp_path: Path) -> None:
    into = tmp_path / "c"
    run(WEB, into, front(WEB), tables="off")
    url, row = next(
        (url, row)
        for url, row in rows(into).items()
        if row.essence == "text/html" and row.depth == 1 and row.etag and not row.original
    )
    place = WarcLocation.unpack(row.place)
    (archive,) = (into / "warc").iterdir()
    with archive.open("r+b") as file:
        file.seek(place.offset + place.length // 2)
        file.write(bytes(place.length // 4))
    assert "damaged" in tell("get", url, "--in", into)
    result = run(WEB, into, days=0, clock_days=2, recrawl=ALL, tables="off")
    host, target = WEB.address_of(url)
    assert tell("get", url, "--in", into).encode() == WEB.answer(host, target).body
    assert (result.stats.run_lost, result.stats.run_changed) == (1, 0)
    assert result.fetched() == {url: 1}  # all others were not modified
    assert problems(into) == []


def test_pictures_are_compared_by_their_pixels_without_an_archive(tmp_path: Path) -> None:
    pytest.importorskip("PIL")
    from tests.recrawl.test_images import ROOT, Site, drawn

    site = Site(tmp_path / "c")
    site.run(images=True, **NONE)
    site.files["/one.png"] = drawn("red", compress_level=0)
    site.files["/both.png"] = drawn("yellow")
    result = site.run(2, ALL, images=True, **NONE)
    assert result.stats.run_changed == 3  # the picture, and both pages that show it
    assert [line.kind for line in lines(site.into, f"{ROOT}/one.png")] == []
    assert [line.kind for line in lines(site.into, f"{ROOT}/both.png")] == ["new", "image"]
    assert [line.kind for line in lines(site.into, f"{ROOT}/b")] == ["new", "image"]
    assert list((site.into / "warc").iterdir()) == []


def test_library_tells_of_pages_whose_bodies_were_not_kept(both: tuple[Path, Path]) -> None:
    kept, watched = (lycosa.Collection(path) for path in both)
    with kept, watched:
        assert [page.url for page in watched] == [page.url for page in kept]
        page = next(iter(watched))
        with pytest.raises(SettingsError, match="keeps no bodies"):
            _ = page.body


@pytest.mark.slow
def test_recrawl_without_an_archive_loses_nothing_by_a_kill(tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    run(WEB, whole, front(WEB), **NONE)
    shutil.copytree(whole, killed)
    run(WEB, whole, days=250, recrawl=ALL, **NONE)
    code = """
import os, signal, sys
from pathlib import Path
from lycosa.records import Family
from lycosa.store import CollectionStore
from tests.recrawl.test_no_archive import ALL, NONE, WEB, run
write = CollectionStore.commit
def counted(self, batch, **named):
    if len(batch) > 1 and any(True for _ in self.state.walk(Family.CHANGE)):
        os.kill(os.getpid(), signal.SIGKILL)
    write(self, batch, **named)
CollectionStore.commit = counted
run(WEB, Path(sys.argv[1]), days=250, recrawl=ALL, store_batch=5, **NONE)
"""
    ended = subprocess.run([sys.executable, "-c", code, str(killed)], check=False, timeout=300)
    assert ended.returncode == -signal.SIGKILL
    assert 0 < len(listed(killed)) < len(listed(whole))
    run(WEB, killed, days=250, recrawl=ALL, **NONE)
    told = [{(change["url"], change["kind"], change["where"]) for change in listed(into)} for into in (whole, killed)]
    assert told[0] == told[1]
    assert problems(killed) == []
