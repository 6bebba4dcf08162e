"""The text of PDF documents, read in a process of its own."""

import os
import signal
from pathlib import Path

import pytest

from lycosa import Collection
from lycosa.web import PdfText, extract_readable, page_metadata, read_pdf
from lycosa.web import pdf as reading
from lycosa.web.pdf import PdfProcess, pdf_date
from tests.cli.command import lycosa
from tests.crawl.small_site import FIRST, Sent, crawl_site, links
from tests.web.pdf_writer import bomb, pdf

pytest.importorskip("pypdfium2", reason="the extra pdf is not installed")

REPORT = pdf(
    "Annual report\nThe turbines ran",
    "Second page",
    title="Report",
    author="Ada Reed",
    created="D:20240501100000+02'00'",
)


@pytest.fixture
def process() -> PdfProcess:
    return PdfProcess()


def test_text_title_author_and_date_are_read() -> None:
    assert read_pdf(REPORT) == PdfText(
        title="Report",
        author="Ada Reed",
        created="2024-05-01T08:00:00Z",
        pages=("Annual report\nThe turbines ran", "Second page"),
        page_count=2,
    )
    found = extract_readable(REPORT, url="http://a/", content_type="application/pdf")
    assert (found.title, found.text) == ("Report", "Annual report\nThe turbines ran\nSecond page")
    about = page_metadata(REPORT, url="http://a/", content_type="application/pdf")
    assert (about.title, about.author, about.published) == ("Report", "Ada Reed", "2024-05-01T08:00:00Z")


def test_one_process_reads_many_documents_and_is_replaced_after_some(
    process: PdfProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "DOCUMENTS", 2)
    ids = []
    for number in range(4):
        assert process.read(pdf(f"document {number}")).text == f"document {number}"
        assert process._process is not None
        ids.append(process._process.pid)
    assert ids[0] == ids[1] != ids[2] == ids[3]
    process.close()


def test_pages_before_one_that_takes_too_long_are_kept_and_the_next_document_is_read(
    process: PdfProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert process.read(pdf("before it")).text == "before it"  # the child is up: its start is not part of the time
    slow = pdf("first", "", streams={1: bomb(40_000_000)})
    assert len(slow) < 1_000_000
    with monkeypatch.context() as hurried:
        hurried.setattr(reading, "SECONDS", 0.7)
        found = process.read(slow)
    assert (found.pages, found.error) == (("first",), "it took more than 0.7 s")
    assert process.read(pdf("after it")).text == "after it"
    process.close()


def test_document_that_needs_too_much_memory_hurts_only_its_reader(
    process: PdfProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MEMORY_BYTES", 300 << 20)
    found = process.read(pdf("first", "", streams={1: bomb(100_000_000)}))
    assert (found.pages, found.error) == (("first",), "its reader crashed, or needed too much memory")
    assert process.read(pdf("after it")).text == "after it"
    process.close()


def test_reader_that_is_killed_is_replaced(process: PdfProcess) -> None:
    process.read(REPORT)
    assert process._process is not None
    os.kill(process._process.pid, signal.SIGKILL)
    process._process.wait()
    assert process.read(REPORT).page_count == 2
    process.close()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"%PDF-1.7",
        b"%PDF-1.7 quinces",
        REPORT[: len(REPORT) // 2],
        b"\0" * 10_000,
        REPORT.replace(b"/Kids", b"/Kids"),
    ],
)
def test_what_is_no_document_has_no_text_and_says_why(body: bytes) -> None:
    found = read_pdf(body)
    assert isinstance(found.text, str)
    assert found.text or found.error or found.page_count == 0


def test_page_tree_that_contains_itself_ends() -> None:
    assert "turbines" not in read_pdf(REPORT.replace(b"/Kids [3 0 R 5 0 R]", b"/Kids [2 0 R 2 0 R]")).text


def test_pages_and_text_are_bounded(process: PdfProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MAX_PAGES", 3)
    found = process.read(pdf(*(f"page {number}" for number in range(5))))
    assert (len(found.pages), found.page_count, found.error) == (3, 5, "it has more pages than are read")
    process.close()
    monkeypatch.setattr(reading, "MAX_CHARS", 10)
    found = process.read(pdf("a" * 50, "b"))
    assert (found.text, found.error) == ("a" * 10, "it has more text than is read")
    process.close()


@pytest.mark.parametrize(
    ("written", "iso"),
    [("D:2024", "2024"), ("20240501", "2024-05-01"), ("D:20240501100000Z", "2024-05-01T10:00:00Z"), ("May", ""),
     ("D:20241301", ""), ("D:202405011000-05'30", "2024-05-01T15:30:00Z")],
)  # fmt: skip
def test_dates_of_documents_are_iso_8601(written: str, iso: str) -> None:
    assert pdf_date(written) == iso


def test_stored_pdf_has_text_is_found_and_exported(tmp_path: Path) -> None:
    into = tmp_path / "c"
    site = {FIRST: links("report.pdf"), f"{FIRST}report.pdf": Sent(ascii_pdf(), {"content-type": "application/pdf"})}
    crawl_site(into, site.get)
    with Collection(into) as collection:
        assert collection.get(f"{FIRST}report.pdf").text == "The turbines ran"
        assert [found.url for found in collection.search("turbines").results] == [f"{FIRST}report.pdf"]
    assert lycosa("get", f"{FIRST}report.pdf", "--in", into, "--text").out == "The turbines ran\n"


def ascii_pdf() -> str:
    """A document of ASCII characters alone."""
    return pdf("The turbines ran", is_packed=False).decode("ascii")


def test_get_without_the_extra_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = {FIRST: Sent(ascii_pdf(), {"content-type": "application/pdf"})}
    crawl_site(tmp_path / "c", site.get)
    monkeypatch.setattr(reading, "can_read_pdf", lambda: False)
    monkeypatch.setattr("lycosa.cli.search.can_read_pdf", lambda: False)
    said = lycosa("get", FIRST, "--in", tmp_path / "c", "--text")
    assert said.code == 2
    assert said.complaints == [
        "lycosa: the text of a PDF document needs an optional package: pip install 'lycosa[pdf]'"
    ]
