"""Where exports go: whole or not at all, resumed after a kill, compressed, to folders, pipes and URLs, increments."""

import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import fsspec
import pytest
import zstandard

from lycosa import Collection
from lycosa.errors import SettingsError, StoreError
from lycosa.export import ExportJob, ExportProgress, run
from lycosa.export.place import read_last
from lycosa.export.run import export_pages
from lycosa.simweb import SimSettings, SimWeb
from lycosa.store import WarcLocation
from tests.cli.command import ended, lycosa, started
from tests.crawl.memory_crawl import crawl, front
from tests.crawl.small_site import FIRST, crawl_site
from tests.export.conftest import PAGES, make_collection


@pytest.fixture(scope="module")
def larger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    into = tmp_path_factory.mktemp("larger") / "c"
    web = SimWeb(SimSettings(hosts=3, pages=300, seed=3))
    crawl(web, into, front(web), delay_s=0.0)
    return into


def killed(collection: Path, job: ExportJob, *, after: int) -> None:
    """Runs an export in a process that dies, as by kill -9, once it has told of this many pages."""

    def die(progress: ExportProgress) -> None:
        if progress.pages >= after:
            os._exit(9)

    child = os.fork()
    if not child:
        run.CHECKPOINT_S = 0.0
        try:
            export_pages(collection, job, tell=die)
        finally:
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("words", [{}, {"selection": run.PageSelection(versions=True)}], ids=["newest", "versions"])
@pytest.mark.parametrize("name", ["pages.jsonl", "pages.jsonl.gz", "pages.jsonl.zst"])
def test_killed_export_leaves_the_old_one_and_goes_on(larger: Path, tmp_path: Path, name: str, words: dict) -> None:  # type: ignore[type-arg]
    out, whole = tmp_path / name, tmp_path / "whole.jsonl"
    out.write_text("the old one")
    job = ExportJob("jsonl", str(out), **words)
    export_pages(larger, job._replace(out=str(whole)))
    killed(larger, job, after=64)
    killed(larger, job, after=192)
    assert out.read_text() == "the old one"
    report = export_pages(larger, job)
    assert 128 <= report.resumed < report.pages
    read: dict[str, Callable[[bytes], bytes]] = {
        ".gz": gzip.decompress,
        ".zst": lambda data: zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True).read(),
    }
    assert read.get(out.suffix, bytes)(out.read_bytes()) == whole.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([name, "whole.jsonl"])


def test_killed_export_with_other_filters_or_restart_begins_anew(larger: Path, tmp_path: Path) -> None:
    job = ExportJob("jsonl", str(tmp_path / "p"))
    killed(larger, job, after=128)
    assert export_pages(larger, job._replace(options={"links": "yes"})).resumed == 0
    killed(larger, job, after=128)
    assert export_pages(larger, job._replace(restart=True)).resumed == 0


def test_killed_folder_goes_on(larger: Path, tmp_path: Path) -> None:
    job = ExportJob("markdown", str(tmp_path / "md"))
    export_pages(larger, job._replace(out=str(tmp_path / "whole")))
    killed(larger, job, after=128)
    assert not (tmp_path / "md").exists()
    assert export_pages(larger, job).resumed >= 64
    assert files_in(tmp_path / "md") == files_in(tmp_path / "whole")


def test_export_replaces_its_own_folder_only(small: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("years of work")
    said = lycosa("export", small, "markdown", "--out", mine)
    assert said.code == 2
    assert "is not empty and no earlier export" in said.err
    assert [path.name for path in tmp_path.iterdir()] == ["mine"], "nothing is left beside it"
    assert files_in(mine) == {"thesis.txt": b"years of work"}
    assert lycosa("export", small, "markdown", "--out", tmp_path / "md").code == 0
    assert lycosa("export", small, "markdown", "--path", "/docs/", "--out", tmp_path / "md").code == 0
    assert len([name for name in files_in(tmp_path / "md") if name.endswith(".md")]) == 2


def test_folder_of_a_kill_between_two_renames_is_put_back(small: Path, tmp_path: Path) -> None:
    export_pages(small, ExportJob("markdown", str(tmp_path / "md")))
    before = files_in(tmp_path / "md")
    (tmp_path / "md").rename(tmp_path / ".md.old")
    with pytest.raises(SettingsError):
        export_pages(small, ExportJob("markdown", str(tmp_path / "md"), options={"like": "c4"}))
    killed_job = ExportJob("sitemap", str(tmp_path / "md"))
    export_pages(small, killed_job)
    assert "sitemap.xml" in "".join(files_in(tmp_path / "md"))
    assert before
    assert not (tmp_path / ".md.old").exists()


@pytest.mark.slow
def test_full_disk_is_one_sentence_and_the_old_file_stays(larger: Path, tmp_path: Path) -> None:
    out = tmp_path / "pages.jsonl"
    out.write_text("the old one")
    said = ended(
        started("export", larger, "jsonl", "--content", "html", "--out", out, before=("prlimit", "--fsize=50000"))
    )
    assert said.code == 4
    assert said.err.count("\n") == 1
    assert "largest file size" in said.err
    assert out.read_text() == "the old one"
    assert [path.name for path in tmp_path.iterdir()] == ["pages.jsonl"]


@pytest.mark.slow
def test_output_that_nobody_reads_any_more_ends_quietly(larger: Path) -> None:
    process = started("export", larger, "jsonl", "--content", "html")
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    process.stdout = None
    assert ended(process)[::2] == (0, "")


def test_device_is_written_as_it_is(small: Path) -> None:
    assert lycosa("export", small, "jsonl", "--out", "/dev/null").code == 0


@pytest.mark.parametrize(
    ("out", "sentence"),
    [
        ("nowhere/pages.jsonl", "there is no folder"),
        ("", "which is no name"),
        (".", "which is no name"),
        ("x" * 300, "which is no name"),
        ("nonsense://x/y", "is no place for an export"),
    ],
)
def test_place_that_cannot_be_is_one_sentence(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: str, sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    said = lycosa("export", small, "jsonl", "--out", out)
    assert said.code == 2
    assert sentence in said.err
    assert said.err.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("format", "name", "written"),
    [
        ("jsonl", "pages.jsonl.xz", "jsonl is written as .gz or .zst"),
        ("warc", "part.warc", "warc is written as .gz"),
        ("wet", "texts.wet.zst", "wet is written as .gz"),
        ("wacz", "site.wacz.gz", "wacz is written as .wacz"),
        ("markdown", "notes.zip", "markdown is written as a folder"),
    ],
)
def test_name_that_says_how_the_export_is_not_packed_is_refused(
    small: Path, tmp_path: Path, format: str, name: str, written: str
) -> None:
    said = lycosa("export", small, format, "--out", tmp_path / name)
    assert said.code == 2
    assert written in said.err
    assert not list(tmp_path.iterdir())


def test_folder_as_the_place_of_a_file_is_one_sentence(small: Path, tmp_path: Path) -> None:
    said = lycosa("export", small, "jsonl", "--out", tmp_path)
    assert said.code == 2
    assert "is a folder: name a file in it" in said.err


def test_format_that_is_no_text_wants_a_place(small: Path) -> None:
    said = lycosa("export", small, "markdown")
    assert said.code == 2
    assert "name its place with --out" in said.err


def test_two_exports_to_one_place_do_not_mix(small: Path, tmp_path: Path) -> None:
    out = tmp_path / "p.jsonl"

    def second(_: ExportProgress) -> None:
        with pytest.raises(SettingsError, match="another export is being written"):
            export_pages(small, ExportJob("jsonl", str(out)))
        told.append(True)

    told: list[bool] = []
    run.TOLD_PAGES, before = 1, run.TOLD_PAGES
    try:
        export_pages(small, ExportJob("jsonl", str(out)), tell=second)
    finally:
        run.TOLD_PAGES = before
    assert told
    assert out.exists()


def test_url_gets_the_export_whole(small: Path) -> None:
    files = fsspec.filesystem("memory")
    with Collection(small) as collection:
        report = collection.export("jsonl", "memory://bucket/pages.jsonl.gz", content="none")
    assert report.out == "memory://bucket/pages.jsonl.gz"
    assert files.ls("/bucket", detail=False) == ["/bucket/pages.jsonl.gz"]
    lines = gzip.decompress(files.cat_file("/bucket/pages.jsonl.gz")).splitlines()
    assert len(lines) == report.pages == 6
    with Collection(small) as collection:
        collection.export("markdown", "memory://bucket/notes")
        collection.export("markdown", "memory://bucket/notes", path=["/docs/"])
    found = [name for name in files.find("/bucket/notes") if name.endswith(".md")]
    assert len(found) == 2
    files.rm("/bucket", recursive=True)


def test_export_to_a_url_that_fails_leaves_the_old_one(larger: Path) -> None:
    files = fsspec.filesystem("memory")
    files.pipe_file("/bucket/pages.jsonl", b"the old one")

    def fail(_: ExportProgress) -> None:
        raise StoreError("stop")

    with pytest.raises(StoreError, match="stop"):
        export_pages(larger, ExportJob("jsonl", "memory://bucket/pages.jsonl"), tell=fail)
    assert files.find("/bucket") == ["/bucket/pages.jsonl"]
    assert files.cat_file("/bucket/pages.jsonl") == b"the old one"
    files.rm("/bucket", recursive=True)


def test_file_url_is_a_path(small: Path, tmp_path: Path) -> None:
    report = export_pages(small, ExportJob("jsonl", f"file://{tmp_path}/p.jsonl"))
    assert report.out == str(tmp_path / "p.jsonl")


@pytest.mark.parametrize("place", ["{}/pages.jsonl", "memory://last/pages.jsonl"])
def test_since_last_exports_what_is_new_beside_the_first(
    tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    into, out = tmp_path / "c", place.format(tmp_path)
    began = time.time()
    make_collection(into, {FIRST: PAGES[FIRST]})
    monkeypatch.setattr(time, "time", lambda: began + 1_000)
    with Collection(into) as collection:
        first = collection.export("jsonl", out, since_last=True)
        assert (first.pages, first.out) == (1, out)
        nothing = collection.export("jsonl", out, since_last=True)
        assert (nothing.pages, nothing.out) == (0, "")
        monkeypatch.setattr(time, "time", lambda: began + 2_000)
        crawl_site(into, PAGES.get, f"{FIRST}docs/x", scope="any")
        monkeypatch.setattr(time, "time", lambda: began + 3_000)
        new = collection.export("jsonl", out, since_last=True)
        assert new.pages == 1
        assert new.out.startswith(out.removesuffix(".jsonl") + "-")
        assert collection.export("jsonl", out, since_last=True).out == ""
        with pytest.raises(SettingsError, match="was of another collection, format or selection"):
            collection.export("jsonl", out, since_last=True, path=["/docs/"])
        with pytest.raises(SettingsError, match="name one with --out"):
            collection.export("jsonl", "-", since_last=True)
    with fsspec.open(new.out) as file:
        assert [json.loads(line)["url"] for line in file] == [f"{FIRST}docs/x"]


def test_damaged_record_is_left_out_and_counted(tmp_path: Path) -> None:
    into = make_collection(tmp_path / "c")
    with Collection(into) as collection:
        place = WarcLocation.unpack(collection.get(f"{FIRST}docs/x").row.place)
    [warc] = (into / "warc").glob("*.warc.gz")
    data = bytearray(warc.read_bytes())
    data[place.offset + 100 : place.offset + 120] = bytes(20)
    warc.write_bytes(data)
    said = lycosa("export", into, "jsonl")
    assert said.code == 0
    assert len(said.out.splitlines()) == 5
    assert "1 page was left out" in said.err


def test_missing_archive_file_ends_the_export_unless_skipped(tmp_path: Path) -> None:
    into = make_collection(tmp_path / "c")
    shutil.rmtree(into / "warc")
    (into / "warc").mkdir()
    said = lycosa("export", into, "jsonl")
    assert said.code == 4
    assert "--skip-missing" in said.err
    assert lycosa("export", into, "jsonl", "--skip-missing").code == 0


@pytest.mark.slow
def test_export_of_lines_needs_neither_arrow_nor_fsspec(small: Path) -> None:
    code = "import sys; sys.modules.update(pyarrow=None, fsspec=None, duckdb=None)\nfrom lycosa.cli import main; main()"
    for words in (["--help"], [str(small), "jsonl"]):
        done = subprocess.run([sys.executable, "-c", code, "export", *words], capture_output=True, check=False)
        assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_interrupted_export_goes_on(larger: Path, tmp_path: Path) -> None:
    process = started("export", larger, "jsonl", "--content", "html", "--out", tmp_path / "p.jsonl")
    partial = tmp_path / ".p.jsonl.partial"
    while process.poll() is None and not partial.exists():
        time.sleep(0.001)
    process.send_signal(signal.SIGINT)
    said = ended(process)
    assert "Traceback" not in said.err
    report = export_pages(larger, ExportJob("jsonl", str(tmp_path / "p.jsonl"), options={"content": "html"}))
    assert report.pages == lycosa("status", larger, "--json").facts["pages"]
    if said.code:  # it was not over already
        assert said.code == 130
        assert len((tmp_path / "p.jsonl").read_bytes().splitlines()) == report.pages


def test_collection_without_bodies_says_so_and_gives_what_it_has(tmp_path: Path) -> None:
    crawl_site(tmp_path / "c", PAGES.get, FIRST, archive="none")
    said = lycosa("export", tmp_path / "c", "jsonl")
    assert said.code == 2
    assert "keeps no bodies" in said.err
    assert lycosa("export", tmp_path / "c", "csv").code == 0


def test_export_writes_nothing_into_the_collection(tmp_path: Path) -> None:
    into = make_collection(tmp_path / "c")
    before = files_in(into)
    assert lycosa("export", into, "jsonl", "--query", "solar").code == 0
    assert files_in(into).keys() >= before.keys()
    assert lycosa("export", into, "csv", "--since-last", "--out", tmp_path / "p.csv").code == 0
    assert {name: data for name, data in files_in(into).items() if name in before} == before


def test_folder_behind_a_url_that_is_no_export_is_not_deleted(small: Path) -> None:
    files = fsspec.filesystem("memory")
    files.pipe_file("/data/photos/one.jpg", b"not ours")
    with pytest.raises(SettingsError, match="is not empty and no earlier export"):
        export_pages(small, ExportJob("markdown", "memory://data/photos"))
    assert files.cat_file("/data/photos/one.jpg") == b"not ours"
    files.rm("/data", recursive=True)


def test_what_a_crawl_commits_while_it_ends_beside_an_export_is_in_the_next(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, began = tmp_path / "pages.jsonl", time.time()
    monkeypatch.setattr(run, "is_written", lambda path: not out.exists())
    export_pages(small, ExportJob("jsonl", str(out), since_last=True))
    last = read_last(str(out))
    assert last is not None
    assert last.covered_s <= began - run.COMMIT_LAG_S + 60
