"""Pages that are read by processes, where there is no kernel: the same pages and records, in order, whatever happens to
a process."""

import asyncio
import gzip
import select
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from lycosa.crawl import reader_threads
from lycosa.crawl.reader_threads import ReaderThreads
from lycosa.crawl.reading import LeaseAnswer, PageReader, PreparedPage
from lycosa.crawl.twin_readers import TwinReaders
from lycosa.frontier.rows import RequestKind
from lycosa.processes import start_helper
from lycosa.records import Request, Response
from lycosa.settings import CrawlSettings
from lycosa.store.warc_record import member_writer
from lycosa.web.document import Page
from lycosa.web.kernel import native
from tests.crawl.consistency import problems
from tests.crawl.test_reader_threads import crawl_in_real_time

HTML = {"content-type": "text/html"}
LARGE = b"<p>word <a href=x>x</a>" * 30_000  # 690 KB, nearly as much as a pipe holds
BODIES: list[tuple[bytes, dict[str, str]]] = [
    (
        b"<title>x</title><base href=/b/><a href=a#1>one</a><a href=//h/?q=1 rel=nofollow>two</a><main>words</main>",
        HTML,
    ),
    ("<a href='?q=ü'>ä</a><p>Ä".encode("latin-1"), {"content-type": "text/html; charset=iso-8859-1"}),
    (gzip.compress(b"<a href=packed>p</a>"), {**HTML, "content-encoding": "gzip"}),
    (b"<meta name=robots content=nofollow><a href=x>x</a>", {**HTML, "link": "<http://h/l>; rel=next"}),
    (b"<html xmlns='x'><title/><a href='x'/></html>", {"content-type": "application/xhtml+xml"}),
    (b"<a href=%s>x</a>" % ("\ud800".encode("utf-16-le", "surrogatepass")), HTML),
    (b"", HTML),
    (LARGE, HTML),
]


@pytest.fixture(autouse=True)
def _twin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("LYCOSA_KERNEL", "python")
    monkeypatch.setattr(reader_threads, "PROCESSES_AFTER", 1)
    for cached in (native, member_writer):
        cached.cache_clear()
    yield
    for cached in (native, member_writer):
        cached.cache_clear()


def answer(
    number: int, body: bytes = b"<p>x", headers: dict[str, str] = HTML, kind: RequestKind = RequestKind.PAGE
) -> LeaseAnswer:
    host = SimpleNamespace(row=SimpleNamespace(robots=None))
    url = f"http://h/{number}"
    lease: Any = SimpleNamespace(url=url, kind=kind, is_head=False, depth=0, host=host, entry=None)
    block = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body)
    return LeaseAnswer(lease, Request(url, "h", 80, ""), Response(url, 200, block, headers, body), 1e9)


Steps = Callable[[ReaderThreads, list[LeaseAnswer]], Any]


def read(steps: Steps, threads: int = 1) -> list[LeaseAnswer]:
    """What is handed on after processes have begun."""

    def hand_on(answer: LeaseAnswer) -> None:
        handed_on.append(answer)
        readers.handled(answer)

    async def main() -> None:
        nonlocal readers
        readers = ReaderThreads(PageReader(CrawlSettings()), hand_on, threads=threads)
        async with asyncio.timeout(60):
            while not (handed_on and handed_on[-1].prepared and handed_on[-1].prepared.page):
                readers.arrived(answer(-1))
                await asyncio.sleep(0.02)
            while readers:  # noqa: ASYNC110 -- nobody tells
                await asyncio.sleep(0.01)
            handed_on.clear()
            steps(readers, handed_on)
            while readers:  # noqa: ASYNC110 -- nobody tells
                await asyncio.sleep(0.01)
        readers.close()

    readers: Any = None
    handed_on = list[LeaseAnswer]()
    asyncio.run(main())
    return handed_on


def numbers(answers: list[LeaseAnswer]) -> list[int]:
    return [int(each.lease.url.rpartition("/")[2]) for each in answers]


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
def test_pages_links_and_records_are_those_that_the_event_loop_would_have_made(
    threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def all_arrive(readers: ReaderThreads, _: object) -> None:
        for number, (body, headers) in enumerate(BODIES):
            readers.arrived(answer(number, body, headers))

    monkeypatch.setattr("lycosa.crawl.twin_readers.ENOUGH", len(BODIES))
    monkeypatch.setattr("os.urandom", bytes)  # of which the ids of records are made
    handed_on = read(all_arrive, threads)
    assert numbers(handed_on) == list(range(len(BODIES)))
    reader = PageReader(CrawlSettings())
    for each in handed_on:
        found = each.prepared
        wanted = reader.digests(each.response)
        reader.analyse(each.response, wanted)
        assert found is not None
        assert found.page is not None
        assert msgspec.structs.replace(found.page, followed=None) == wanted.page
        assert (found.links, found.directives, found.is_cut) == (wanted.links, wanted.directives, wanted.is_cut)
        assert list(found.joined) == list(wanted.joined)
        assert (found.fingerprint, found.payload_sha1, found.digest) == (
            wanted.fingerprint,
            wanted.payload_sha1,
            wanted.digest,
        )
        assert found.records == reader._records(each, wanted)


@pytest.fixture
def read_here(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the documents that the event loop analyses."""

    def analyse(reader: PageReader, response: Response, prepared: PreparedPage, **more: Any) -> Page:
        if prepared.page is None:
            sizes.append(len(response.body))
        return as_usual(reader, response, prepared, **more)

    sizes, as_usual = list[int](), PageReader.analyse
    monkeypatch.setattr(PageReader, "analyse", analyse)
    return sizes


@pytest.mark.slow
def test_more_than_the_pipes_hold_is_read_in_order_and_what_a_busy_process_would_come_to_later_is_read_here(
    read_here: list[int],
) -> None:
    def many_arrive(readers: ReaderThreads, _: object) -> None:
        read_here.clear()
        for number in range(80):
            readers.arrived(answer(number, LARGE if number % 2 else b"<p>small"))

    handed_on = read(many_arrive)
    assert numbers(handed_on) == list(range(80))
    assert all(each.prepared is not None and each.prepared.page is not None for each in handed_on)
    assert set(read_here) == {len(b"<p>small")}  # large ones are never left to the event loop


@pytest.mark.slow
def test_process_gets_more_in_the_turn_of_the_event_loop_in_which_it_answers(
    read_here: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def many_arrive(readers: ReaderThreads, _: object) -> None:
        read_here.clear()
        readers.arrived(answer(0))
        for number in range(1, 20):
            select.select([readers._threads], [], [])  # until it has read the one before
            readers.arrived(answer(number))

    monkeypatch.setattr("lycosa.crawl.twin_readers.ENOUGH", 1)
    handed_on = read(many_arrive)
    assert numbers(handed_on) == list(range(20))
    assert all(each.prepared is not None and each.prepared.page is not None for each in handed_on)
    assert not read_here


@pytest.mark.slow
def test_document_of_a_revisit_is_not_analysed_before_it_is_known_to_be_new(monkeypatch: pytest.MonkeyPatch) -> None:
    def all_arrive(readers: ReaderThreads, _: object) -> None:
        for number in range(6):
            readers.arrived(answer(number, kind=RequestKind.REVISIT))

    monkeypatch.setattr("lycosa.crawl.twin_readers.ENOUGH", 1)
    handed_on = read(all_arrive)
    assert numbers(handed_on) == list(range(6))
    assert all(each.prepared is not None and each.prepared.page is None for each in handed_on)


@pytest.mark.slow
def test_large_documents_that_wait_for_a_process_are_bounded_as_they_are_in_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def many_arrive(readers: ReaderThreads, handed_on: list[LeaseAnswer]) -> None:
        for number in range(8):
            readers.arrived(answer(number, packed, {**HTML, "content-encoding": "gzip"}))
            waiting.append(number + 1 - len(handed_on))
        held.append(readers._held_bytes)
        readers.arrived(answer(8))

    packed, waiting, held = gzip.compress(LARGE), list[int](), list[int]()
    # decoded, and once more on its way to the process: two documents, and not a third
    monkeypatch.setattr(reader_threads, "HELD_MOST_BYTES", 5 * len(LARGE))
    handed_on = read(many_arrive)
    assert numbers(handed_on) == list(range(9))
    assert all(each.prepared and each.prepared.page for each in handed_on[:8])
    assert max(waiting) <= 2
    assert held[0] <= 5 * len(LARGE)


@pytest.mark.slow
def test_where_a_process_ends_the_event_loop_reads_and_nothing_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    def noted(module: str) -> Any:
        started.append(start_helper(module))
        return started[-1]

    def killed(readers: ReaderThreads, _: object) -> None:
        for number in range(3):
            readers.arrived(answer(number, LARGE if number else b"<p>"))
        started[0].kill()
        readers.arrived(answer(3))

    started = list[Any]()
    monkeypatch.setattr("lycosa.crawl.twin_readers.start_helper", noted)
    handed_on = read(killed)
    assert sorted(numbers(handed_on)) == [0, 1, 2, 3]
    assert [bool(each.prepared and each.prepared.page) for each in handed_on if each.response.body == LARGE] == [
        True
    ] * 2
    assert started[0].returncode is not None


@pytest.mark.slow
def test_process_that_is_stopped_holds_nothing_up_and_another_takes_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    def noted(module: str) -> Any:
        started.append(start_helper(module))
        return started[-1]

    def stopped(readers: ReaderThreads, _: object) -> None:
        started[0].send_signal(signal.SIGSTOP)
        for number in range(3):
            readers.arrived(answer(number, LARGE if number else b"<p>"))

    started = list[Any]()
    monkeypatch.setattr("lycosa.crawl.twin_readers.start_helper", noted)
    monkeypatch.setattr(reader_threads, "ANSWER_S", 0.5)
    assert sorted(numbers(read(stopped))) == [0, 1, 2]
    assert started[0].returncode is not None
    started.clear()
    assert numbers(read(lambda readers, _: readers.arrived(answer(7)))) == [7]
    assert len(started) == 1


@pytest.mark.slow
def test_process_that_is_lost_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    def noted(module: str) -> Any:
        started.append(start_helper(module))
        return started[-1]

    async def main() -> None:
        readers = ReaderThreads(PageReader(CrawlSettings()), lambda _: None, threads=1)
        async with asyncio.timeout(60):
            while len(started) < 3:
                readers.arrived(answer(len(started)))
                if started and started[-1].poll() is None and readers._threads is not None:
                    started[-1].kill()
                await asyncio.sleep(0.01)
        readers.close()

    started = list[Any]()
    monkeypatch.setattr("lycosa.crawl.twin_readers.start_helper", noted)
    asyncio.run(main())
    assert all(process.returncode is not None for process in started)


@pytest.mark.slow
def test_process_that_prints_is_understood_and_one_that_says_something_else_is_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('hello')\n")
    (tmp_path / "lycosa_prints.py").write_text(
        "from lycosa.crawl import twin_process\nread = twin_process._read\n"
        "twin_process._read = lambda message: print('hello', flush=True) or read(message)\nmain = twin_process.main\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(BrokenPipeError):
        TwinReaders(1).take(waits=True)
    (tmp_path / "sitecustomize.py").unlink()
    monkeypatch.setattr("lycosa.crawl.twin_readers.PROCESS", "lycosa_prints")
    handed_on = read(lambda readers, _: readers.arrived(answer(0, LARGE)))
    assert [bool(each.prepared and each.prepared.page) for each in handed_on] == [True]


def test_helper_runs_nothing_that_lies_in_the_current_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "msgspec.py").write_text("open('was-run', 'w').close()\n")
    monkeypatch.chdir(tmp_path)
    readers = TwinReaders(1)
    for _ in range(1_000):  # ten seconds
        readers.take(waits=False)
        if readers.has_begun:
            break
        time.sleep(0.01)
    assert readers.has_begun
    readers.close()
    assert not (tmp_path / "was-run").exists()


@pytest.mark.parametrize(("within_s", "is_started"), [(60.0, True), (-1.0, False)])
def test_process_is_asked_for_where_documents_come_fast_and_all_are_read_where_the_system_gives_none(
    monkeypatch: pytest.MonkeyPatch, within_s: float, is_started: bool
) -> None:
    def noted(_: str) -> None:
        started.append(True)
        raise OSError("no more processes")

    async def main() -> None:
        readers = ReaderThreads(PageReader(CrawlSettings()), handed_on.append, threads=1)
        for number in range(5):
            readers.arrived(answer(number))
        readers.close()

    monkeypatch.setattr("lycosa.crawl.twin_readers.start_helper", noted)
    monkeypatch.setattr(reader_threads, "PROCESSES_AFTER", 2)
    monkeypatch.setattr(reader_threads, "WITHIN_S", within_s)
    started, handed_on = list[bool](), list[LeaseAnswer]()
    asyncio.run(main())
    assert bool(started) == is_started
    assert numbers(handed_on) == list(range(5))


@pytest.mark.slow
def test_every_page_is_read_once_and_kept_where_processes_read(tmp_path: Path) -> None:
    pages = [asyncio.run(crawl_in_real_time(tmp_path / str(threads), threads=threads)) for threads in range(3)]

    assert len(pages[0]) > 100
    assert set(pages[0].values()) == {1}
    assert pages[1] == pages[2] == pages[0]
    assert problems(tmp_path / "2") == []
