"""`lycosa augment`: tables beside the files of a site, written only where something changed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lycosa.tables.formats import Tol, Tvi, parse_tol, parse_tvi
from lycosa.tables.publisher import (
    CHUNK_BYTES,
    FILE_BYTES,
    NAME_TAKEN,
    NOT_OURS,
    AugmentOptions,
    DocumentWithoutTable,
    SiteDocument,
    _chunks,
    augment_site,
)
from lycosa.web.page import analyse_page

PAGE = '<a href="a.html">A</a> <span data-vol="n">{}</span> <i class="v">{}</i>'


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "sub").mkdir()
    (tmp_path / "index.html").write_text(PAGE.format(1, 1))
    (tmp_path / "sub" / "plain.htm").write_text("<link rel=next href=2.htm><meta name=robots content=nofollow>")
    (tmp_path / "sub" / "feed.xml").write_text("<rss><channel><item><link>http://x/</link></item></channel></rss>")
    (tmp_path / "style.css").write_text("p {}")
    return tmp_path


def snapshot(root: Path) -> dict[Path, tuple[int, bytes]]:
    return {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in root.rglob("*") if path.is_file()}


def links_in(path: Path) -> Tol:
    found = parse_tol(path.read_bytes())
    assert isinstance(found, Tol)
    return found


def test_tables_have_the_links_that_the_analyser_finds(site: Path) -> None:
    done = augment_site(site, AugmentOptions())
    assert (done.documents, done.written) == (3, 3)
    for name, kind in (("index.html", "text/html"), ("sub/plain.htm", "text/html"), ("sub/feed.xml", "text/xml")):
        path = site / name
        page = analyse_page(path.read_bytes(), url="http://site.example/", content_type=kind)
        assert links_in(path.with_suffix(".tol")).links == page.links
    assert links_in(site / "sub" / "plain.tol").robots == "nofollow"
    assert not (site / "style.tol").exists()


def test_second_run_touches_nothing(site: Path) -> None:
    for wanted in (AugmentOptions(), AugmentOptions("https://x.example", ".v")):
        augment_site(site, wanted)
        before = snapshot(site)
        done = augment_site(site, wanted)
        assert (done.written, done.unchanged, done.removed) == (0, 3, 0)
        assert snapshot(site) == before


def test_only_tables_of_changed_documents_are_written(site: Path) -> None:
    augment_site(site, AugmentOptions())
    before = snapshot(site)
    (site / "index.html").write_text(PAGE.format(2, 1))
    assert augment_site(site, AugmentOptions()).written == 1
    changed = {path.name for path, state in snapshot(site).items() if before.get(path) != state}
    assert changed == {"index.html", "index.tol", "index.tvi"}
    found = parse_tvi((site / "index.tvi").read_bytes())
    assert isinstance(found, Tvi)
    assert found.parts == (("n", b"2"),)


def test_selected_parts_come_beside_the_marked_ones_and_their_loss_is_noticed(site: Path) -> None:
    augment_site(site, AugmentOptions(selector=".v"))
    found = parse_tvi((site / "index.tvi").read_bytes())
    assert isinstance(found, Tvi)
    assert [name for name, _ in found.parts] == ["n", "i:1"]
    assert links_in(site / "index.tol").volatile == 2
    assert augment_site(site, AugmentOptions(selector=".v"), check=True).written == 0
    (site / "index.html").write_text("nothing volatile")
    assert augment_site(site, AugmentOptions(selector=".v")).removed == 1
    assert not (site / "index.tvi").exists()


def test_check_names_what_is_stale_and_writes_nothing(site: Path) -> None:
    augment_site(site, AugmentOptions())
    (site / "index.html").write_text(PAGE.format(2, 1))
    (site / "sub" / "feed.tol").unlink()
    (site / "sub" / "plain.htm").unlink()
    before = snapshot(site)
    done = augment_site(site, AugmentOptions(), check=True)
    assert sorted(done.stale) == [
        "index.tol: stale",
        "index.tvi: stale",
        "sub/feed.tol: missing",
        "sub/plain.tol: its document is gone",
    ]
    assert snapshot(site) == before


def test_table_of_a_document_that_is_gone_is_removed_and_no_other_file(site: Path) -> None:
    (site / "notes.tol").write_text("not a table")
    augment_site(site, AugmentOptions())
    (site / "index.html").unlink()
    assert augment_site(site, AugmentOptions()).removed == 2
    assert (site / "notes.tol").exists()
    assert not (site / "index.tol").exists()


def test_documents_of_one_name_share_no_table(site: Path) -> None:
    (site / "index.xml").write_text("<r/>")
    done = augment_site(site, AugmentOptions())
    assert done.refused == {NAME_TAKEN: 1}
    assert links_in(site / "index.tol").of == "index.html"


@pytest.mark.parametrize("own", [b"", b"my own notes\n", b"# tour of the site\n", b"# tvi 1\n"])
def test_file_that_is_no_table_is_left_alone_and_named(site: Path, own: bytes) -> None:
    (site / "sub" / "plain.tol").write_bytes(own)
    for check in (True, False, False):
        done = augment_site(site, AugmentOptions(), check=check)
        assert done.refused == {NOT_OURS: 1}
        assert done.without == [DocumentWithoutTable("sub/plain.tol", NOT_OURS)]
        assert "sub/plain.tol: stale" not in done.stale
    assert (done.written, done.unchanged) == (0, 2)
    assert (site / "sub" / "plain.tol").read_bytes() == own


def test_volatile_table_that_is_none_is_left_alone_and_the_links_are_written(site: Path) -> None:
    (site / "index.tvi").write_text("# television\n")
    (site / "sub" / "plain.tvi").write_text("not in the way: the page has no volatile part")
    assert augment_site(site, AugmentOptions()).without == [DocumentWithoutTable("index.tvi", NOT_OURS)]
    assert (site / "index.tvi").read_text() == "# television\n"
    found = links_in(site / "index.tol")
    assert (found.of, found.volatile) == ("index.html", 0)  # nobody is sent to it
    assert augment_site(site, AugmentOptions()).written == 0


def test_pipes_are_no_documents_and_no_tables(site: Path) -> None:
    os.mkfifo(site / "pipe.html")
    os.mkfifo(site / "index.tol")
    os.mkfifo(site / "other.tol")
    done = augment_site(site, AugmentOptions())
    assert (done.documents, done.written) == (3, 2)
    assert done.without == [DocumentWithoutTable("index.tol", NOT_OURS)]


def test_document_that_cannot_be_read_is_named_whatever_its_name(site: Path) -> None:
    (site / os.fsdecode(b"caf\xe9.html")).symlink_to("nowhere")
    (found,) = augment_site(site, AugmentOptions()).without
    assert (found.file, "cannot be read" in found.reason) == ("caf\N{REPLACEMENT CHARACTER}.html", True)


def test_many_documents_are_done_by_several_processes(tmp_path: Path) -> None:
    many = 5 * CHUNK_BYTES // FILE_BYTES
    for number in range(many):
        (tmp_path / f"{number}.html").write_text(f"<a href={number + 1}.html>next</a>")
    assert augment_site(tmp_path, AugmentOptions()).written == many
    assert links_in(tmp_path / "77.tol").links.hrefs == ("78.html",)


@pytest.mark.slow
def test_command_says_what_it_did_and_how_the_check_went(site: Path) -> None:
    def command(*words: str) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-m", "lycosa", "augment", str(site), *words]
        return subprocess.run(line, capture_output=True, text=True, timeout=120, check=False)

    assert command("--check").returncode == 1
    assert json.loads(command("--json").stdout)["written"] == 3
    assert command("--check").returncode == 0
    assert "up to date" in command().stdout
    wrong = command("--volatile", "p[[")
    assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1)


def test_largest_documents_go_first_and_every_document_once() -> None:
    sizes = [int(1.5**number) for number in range(40)] + [10] * 400
    files = [SiteDocument(Path(f"{number}.html"), size, {}, frozenset()) for number, size in enumerate(sizes)]
    chunks = _chunks(files)
    assert sorted(file.path for chunk in chunks for file in chunk) == sorted(file.path for file in files)
    assert [file.size for chunk in chunks for file in chunk] == sorted(sizes, reverse=True)
    for chunk in chunks:
        assert sum(file.size + FILE_BYTES for file in chunk[:-1]) < CHUNK_BYTES


def test_unfinished_table_of_a_run_that_was_killed_goes_and_no_other_hidden_file(site: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    left = [site / f".index.tol.{gone.pid}", site / "sub" / f".plain.tvi.{gone.pid}"]
    left[0].write_text("")
    left[1].write_text("# tvi 1\n# of: pl")
    kept = [site / f".index.tol.{os.getppid()}", site / f".notes.tol.{gone.pid}", site / ".notes.tol.txt"]
    for path in kept:
        path.write_text("# my own\n")
    augment_site(site, AugmentOptions(), check=True)
    assert all(path.exists() for path in left)
    augment_site(site, AugmentOptions())
    assert [path.exists() for path in (*left, *kept)] == [False, False, True, True, True]


def test_table_that_cannot_be_written_leaves_nothing_behind(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device", str(target))

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space"):
        augment_site(site, AugmentOptions())
    assert list(site.rglob(".*")) == []
