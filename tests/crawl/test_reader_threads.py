"""Pages that are read on threads: the same collection with any number of them, nothing lost, nothing twice."""

import asyncio
import gzip
import re
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from lycosa import Crawl
from lycosa.crawl.loop import Engine
from lycosa.crawl.pipeline import Pipelines
from lycosa.crawl.reader_threads import ReaderThreads
from lycosa.crawl.reading import LeaseAnswer, PageReader, decoded_answer, read_page
from lycosa.frontier.rows import RequestKind
from lycosa.inspect import open_to_read
from lycosa.processes import FreeMemory
from lycosa.records import BodyClaim, Family, Request, Response
from lycosa.settings import CrawlSettings
from lycosa.simweb import SimSettings, SimWeb
from lycosa.simweb.memory import MemoryWeb, run_virtual
from lycosa.store.page_rows import unpack_page
from lycosa.store.recorded import RecordedResponse
from lycosa.store.warc_read import WarcReader
from lycosa.store.warc_record import HttpExchange, response_exchange
from lycosa.web import FollowedLinks, Steps, url_key
from lycosa.web.document import Document, Page, payload_sha1
from lycosa.web.kernel import native
from tests.crawl.consistency import problems
from tests.crawl.memory_crawl import NOT_PAGES, front
from tests.crawl.small_site import crawl_site, links

needs_kernel = pytest.mark.skipif(native() is None, reason="only the native kernel reads on threads")
WEB = SimWeb(SimSettings(hosts=4, pages=200, seed=3))


async def crawl(into: Path, **settings: Any) -> Counter[str]:
    """Crawls all of the web; returns how often each page was fetched."""
    loop, memory = asyncio.get_running_loop(), MemoryWeb(WEB, gzip=True)
    options: dict[str, Any] = {"allow_private": ["127.0.0.0/8"], "scope": "any", "delay_s": 0, "store_batch": 20}
    parts = {"resolver": memory, "downloader": memory}
    async with Crawl(front(WEB), into=into, now=loop.time, wall=lambda: 1e9, **parts, **options, **settings) as running:
        await running.finish()
    return fetched(memory)


def fetched(memory: MemoryWeb) -> Counter[str]:
    entries = [entry for entry in memory.entries if entry.status == 200 and not entry.path.endswith(NOT_PAGES)]
    return Counter(f"{entry.host}{entry.path}" for entry in entries)


def contents(into: Path) -> tuple[dict[str, list[tuple[bytes, object]]], list[tuple[object, ...]]]:
    """All rows and all records, without the places and ids of records, the kernel's name and how it went."""
    with open_to_read(into) as collection:
        rows: dict[str, list[tuple[bytes, object]]] = {
            family.name: list(collection.state.walk(family)) for family in Family if family is not Family.PAGE
        }
        pages = [(key, unpack_page(row)) for key, row in collection.state.walk(Family.PAGE)]
    parted = (b"warc:", b"timeline")
    rows["META"] = [
        (key, re.sub(rb'"kernel":"[^"]*"', b"", row)) for key, row in rows["META"] if not key.startswith(parted)
    ]
    rows["PAGE"] = [(key, msgspec.structs.replace(row, place=b"")) for key, row in pages]
    records = [record for file in sorted((into / "warc").iterdir()) for record in WarcReader(file)]
    named = ("WARC-Type", "WARC-Target-URI", "WARC-Date", "WARC-Payload-Digest", "WARC-Refers-To-Target-URI")
    return rows, [(*(record.header(name) for name in named), record.block) for record in records if record.url]


@pytest.mark.slow
def test_collection_is_the_same_with_any_number_of_threads_and_by_kernel_or_twin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for threads in range(3):
        run_virtual(crawl(tmp_path / str(threads), threads=threads))
    monkeypatch.setenv("LYCOSA_KERNEL", "python")
    native.cache_clear()
    try:
        run_virtual(crawl(tmp_path / "twin", threads=1))
    finally:
        native.cache_clear()

    inline = contents(tmp_path / "0")

    assert len(inline[0]["PAGE"]) > 100
    assert any(row.original for _, row in inline[0]["PAGE"])
    for name in ("1", "2", "twin"):
        assert contents(tmp_path / name) == inline


@pytest.mark.slow
def test_every_page_is_read_once_and_kept_where_threads_run_by_the_real_clock(tmp_path: Path) -> None:
    pages = [asyncio.run(crawl_in_real_time(tmp_path / str(threads), threads=threads)) for threads in range(3)]

    assert len(pages[0]) > 100
    assert set(pages[0].values()) == {1}
    assert pages[1] == pages[2] == pages[0]
    assert problems(tmp_path / "2") == []


@pytest.mark.slow
def test_crawl_stopped_while_threads_read_goes_on_with_nothing_lost_or_fetched_twice(tmp_path: Path) -> None:
    def stop(crawl: Crawl) -> None:
        if crawl.stats().pages > 20:
            crawl.stop()

    whole = asyncio.run(crawl_in_real_time(tmp_path / "whole", threads=0))
    first = asyncio.run(crawl_in_real_time(tmp_path / "c", act=stop, threads=2))
    assert problems(tmp_path / "c") == []
    rest = asyncio.run(crawl_in_real_time(tmp_path / "c", threads=2))

    assert 20 < len(first) < len(whole)
    assert first + rest == whole


async def crawl_in_real_time(
    into: Path, act: Callable[[Crawl], None] = lambda _: None, **settings: Any
) -> Counter[str]:
    memory = MemoryWeb(WEB, gzip=True)
    options: dict[str, Any] = {"allow_private": ["127.0.0.0/8"], "scope": "any", "delay_s": 0, "store_batch": 20}
    parts = {"resolver": memory, "downloader": memory}
    async with Crawl(front(WEB), into=into, per_host=8, **parts, **options, **settings) as running:
        running.engine.on_commit = lambda: act(running)
        await running.finish()
    return fetched(memory)


PACKED = {"content-type": "text/html", "content-encoding": "gzip"}
LONG = b"<p>word " * 120_000  # takes the kernel longer than what comes behind it


@needs_kernel
def test_answers_are_handed_on_in_the_order_of_arrival_whatever_the_threads_take() -> None:
    async def main() -> None:
        def hand_on(answer: LeaseAnswer) -> None:
            handed_on.append(answer)
            if len(handed_on) == 3:
                ended.set()

        ended = asyncio.Event()
        threads = ReaderThreads(PageReader(CrawlSettings()), hand_on, threads=2)
        threads.arrived(answer("http://h/0", body=LONG))
        threads.arrived(answer("http://h/1", body=b"<p>short"))
        threads.arrived(answer("http://h/2", status=404))  # nothing to read, but it waits for its turn
        assert not handed_on
        async with asyncio.timeout(120):
            await ended.wait()
        threads.close()
        threads.arrived(answer("http://h/3"))

    handed_on = list[LeaseAnswer]()
    asyncio.run(main())
    assert [each.lease.url[-1] for each in handed_on] == ["0", "1", "2", "3"]
    assert [bool(each.prepared and each.prepared.page) for each in handed_on] == [True, True, False, False]


@needs_kernel
def test_long_documents_are_read_one_at_a_time_and_hold_up_nobody() -> None:
    class HeldReader(PageReader):
        def prepare(self, answer: LeaseAnswer) -> None:
            reading.append(answer)
            assert short_is_read.wait(120)
            super().prepare(answer)
            assert [each for each in reading if each.prepared is None] == []

    async def main() -> None:
        def hand_on(answer: LeaseAnswer) -> None:
            handed_on.append(answer)
            if answer.lease.url == "http://h/short":
                short_is_read.set()
            if len(handed_on) == 2:
                asyncio.get_running_loop().call_later(0.01, handle, answer)
            if len(handed_on) == 3:
                ended.set()

        def handle(answer: LeaseAnswer) -> None:
            assert reading == handed_on[1:]  # its links are taken in before another one is decoded
            threads.handled(answer)

        ended = asyncio.Event()
        threads = ReaderThreads(HeldReader(CrawlSettings()), hand_on, threads=1)
        threads.arrived(answer("http://h/long", body=LONG * 2))
        threads.arrived(answer("http://h/packed", body=gzip.compress(LONG * 2), headers=PACKED))
        threads.arrived(answer("http://h/short", body=b"<p>short"))
        assert threads
        async with asyncio.timeout(120):
            await ended.wait()
        assert not threads
        threads.close()

    reading, handed_on = list[LeaseAnswer](), list[LeaseAnswer]()
    short_is_read = threading.Event()
    asyncio.run(main())
    assert [each.lease.url for each in handed_on] == ["http://h/short", "http://h/long", "http://h/packed"]
    assert all(each.prepared and each.prepared.page and each.prepared.records for each in handed_on)


@needs_kernel
def test_long_documents_are_all_read_at_the_end_of_a_crawl_though_none_is_handled() -> None:
    async def main() -> None:
        threads = ReaderThreads(PageReader(CrawlSettings()), handed_on.append, threads=1)
        for number in range(3):
            threads.arrived(answer(f"http://h/{number}", body=LONG * 2))
        threads.hurry()
        async with asyncio.timeout(120):
            while threads:  # noqa: ASYNC110 -- nobody tells
                await asyncio.sleep(0.01)
        threads.close()

    handed_on = list[LeaseAnswer]()
    asyncio.run(main())
    assert [each.lease.url[-1] for each in handed_on] == ["0", "1", "2"]


@needs_kernel
def test_free_memory_is_given_back_after_each_long_document_and_after_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def main() -> None:
        def hand_on(one: LeaseAnswer) -> None:
            threads.handled(one)
            handled.append(one.lease.url)

        threads = ReaderThreads(PageReader(CrawlSettings()), hand_on, threads=1)
        for number, body in enumerate([LONG * 2, b"<p>short", LONG * 2]):
            threads.arrived(answer(f"http://h/{number}", body=body))
        async with asyncio.timeout(20):
            while len(handled) < 3:  # noqa: ASYNC110 -- nobody tells
                await asyncio.sleep(0.01)
        threads.close()

    handled, given_back = list[str](), list[int]()
    monkeypatch.setattr(FreeMemory, "give_back", lambda _: given_back.append(len(handled)))
    asyncio.run(main())
    assert (sorted(handled), len(given_back)) == (["http://h/0", "http://h/1", "http://h/2"], 2)


def test_packed_body_that_is_not_held_is_decoded_again_and_keeps_its_size() -> None:
    packed = Response("http://h/", body=gzip.compress(LONG), headers=PACKED)
    reader = PageReader(CrawlSettings())
    prepared = reader.digests(packed)
    prepared.hold_packed(packed, reader.max_decoded_bytes)

    assert prepared.held_body == b""
    assert prepared.size_bytes == len(LONG)
    assert prepared.body == LONG

    plain = Response("http://h/", body=LONG)
    prepared = reader.digests(plain)
    prepared.hold_packed(plain, reader.max_decoded_bytes)
    assert prepared.held_body is LONG


@pytest.mark.parametrize("headers", [{}, PACKED])
def test_document_that_is_held_as_its_record_gives_its_body_again(headers: dict[str, str]) -> None:
    sent = gzip.compress(LONG) if headers else LONG
    one, reader = answer("http://h/", body=sent, headers=headers), PageReader(CrawlSettings())
    whole, claim = one.response, BodyClaim()
    one.response = msgspec.structs.replace(whole, claim=claim)
    reader.prepare(one)
    assert one.prepared is not None
    assert one.prepared.records is not None
    one.hold_packed(reader.max_decoded_bytes)

    assert isinstance(one.response, RecordedResponse)
    assert (one.response.body, one.response.size_bytes, one.response.claim) == (sent, len(sent), claim)
    assert (one.prepared.body, one.prepared.size_bytes, one.prepared.held_body) == (LONG, len(LONG), b"")
    assert sum(map(len, one.prepared.records.members)) < len(LONG) / 2
    for name in ("url", "status", "header_block", "headers", "ended_s", "truncated"):
        assert getattr(one.response, name) == getattr(whole, name)

    one.let_go()
    assert (one.response.claim, one.response.body, one.prepared) == (None, b"", None)


def test_document_without_records_is_held_as_it_was_sent() -> None:
    one, reader = answer("http://h/", body=LONG), PageReader(CrawlSettings(archive="none"))
    reader.prepare(one)
    one.hold_packed(reader.max_decoded_bytes)
    assert one.response.body is LONG
    assert one.prepared is not None
    assert one.prepared.body is LONG


def test_long_document_is_held_as_its_record_while_its_many_links_are_taken_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def handle_in_steps(self: Engine, answer: LeaseAnswer, found: FollowedLinks) -> Steps[None]:
        held.append(answer.response)
        return (yield from before(self, answer, found))

    def page(url: str) -> str:
        return links(*(f"/{number}" for number in range(4_500))) if url.endswith("/") else "a page"

    held, before = list[Response](), Engine._handle_in_steps
    monkeypatch.setattr(Engine, "_handle_in_steps", handle_in_steps)
    _, stats = crawl_site(tmp_path / "c", page, pages=1)

    assert stats.known > 4_500
    assert [type(each) for each in held] == [RecordedResponse]
    with open_to_read(tmp_path / "c") as collection:
        row = unpack_page(dict(collection.state.walk(Family.PAGE))[url_key("http://127.0.0.1:9/")])
    assert row.size_bytes == held[0].size_bytes == len(page("/"))


def test_records_of_a_document_that_is_not_packed_are_made_before_it_is_analysed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def analyse(*some: Any, **named: Any) -> Page:
        made.append("page")
        return read_page(*some, **named)

    def record(*some: Any, **named: Any) -> HttpExchange:
        made.append("records")
        return response_exchange(*some, **named)

    made = list[str]()
    monkeypatch.setattr("lycosa.crawl.reading.read_page", analyse)
    monkeypatch.setattr("lycosa.crawl.reading.response_exchange", record)
    PageReader(CrawlSettings()).prepare(answer("http://h/", body=LONG))
    PageReader(CrawlSettings()).prepare(answer("http://h/", body=gzip.compress(LONG), headers=PACKED))
    assert made == ["records", "page", "page", "records"]


@needs_kernel
def test_vast_packed_document_is_not_held_while_its_beginning_is_analysed(monkeypatch: pytest.MonkeyPatch) -> None:
    body = b"".join(b"<a href=/%d>word</a>\n" % number for number in range(400_000))
    packed = Response("http://h/", 200, b"HTTP/1.1 200 OK\r\n\r\n", PACKED, gzip.compress(body))
    reader, read = PageReader(CrawlSettings()), list[int]()

    def analyse(response: Response, body: bytes, *rest: Any, **named: Any) -> Page:
        read.append(len(body))
        return read_page(response, body, *rest, **named)

    monkeypatch.setattr("lycosa.crawl.reading.read_page", analyse)
    one = msgspec.structs.replace(answer("http://h/"), response=packed)
    reader.prepare(one)

    whole = reader.digests(packed)
    reader.analyse(packed, whole)
    assert one.prepared is not None
    assert one.prepared.page == whole.page
    assert (one.prepared.body, one.prepared.size_bytes, one.prepared.held_body) == (body, len(body), b"")
    assert read[0] < read[1] / 2


def test_packed_body_is_decoded_once_for_pipelines(monkeypatch: pytest.MonkeyPatch) -> None:
    body = b"<title>t</title>" + b"<p>words</p>" * 40_000
    packed = Response("http://h/", 200, b"HTTP/1.1 200 OK\r\n\r\n", PACKED, gzip.compress(body))
    reader, seen, decoded = PageReader(CrawlSettings()), list[bytes](), list[Response]()
    pipelines = Pipelines([("look", lambda page: seen.append(page.body))], [], reader)

    def decode(response: Response, cap_bytes: int) -> tuple[bytes, bool]:
        decoded.append(response)
        return decoded_answer(response, cap_bytes)

    monkeypatch.setattr("lycosa.crawl.reading.decoded_answer", decode)
    one = msgspec.structs.replace(answer("http://h/"), response=packed)
    reader.prepare(one)
    assert one.prepared is not None
    pipelines.judge(packed, one.prepared)

    assert (seen, len(decoded)) == ([body], 1)


@needs_kernel
def test_event_loop_waits_for_the_threads_where_they_hold_too_many_bodies(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        threads = ReaderThreads(PageReader(CrawlSettings()), handed_on.append, threads=1)
        threads.arrived(answer("http://h/0", body=b"x" * 60))
        assert not handed_on
        threads.arrived(answer("http://h/1", body=b"x" * 60))
        assert handed_on[0].lease.url == "http://h/0"  # and maybe the second one
        assert all(each.prepared for each in handed_on)
        threads.close()

    monkeypatch.setattr("lycosa.crawl.reader_threads.HELD_MOST_BYTES", 100)
    handed_on = list[LeaseAnswer]()
    asyncio.run(main())


@needs_kernel
def test_bodies_that_wait_count_as_they_are_held_and_not_as_they_were_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        threads = ReaderThreads(PageReader(CrawlSettings()), handed_on.append, threads=1)
        for number in range(9):
            threads.arrived(answer(f"http://h/{number}", body=packed, headers=PACKED))
            assert number + 1 - len(handed_on) <= 2  # of 840 KB each
        assert threads._held_bytes <= 2 * (len(LONG) + len(packed))
        threads.arrived(answer("http://h/9", status=404))
        async with asyncio.timeout(120):
            while threads:  # noqa: ASYNC110 -- nobody tells
                await asyncio.sleep(0.01)
        assert threads._held_bytes == 0
        threads.close()

    packed = gzip.compress(LONG)
    monkeypatch.setattr("lycosa.crawl.reader_threads.HELD_MOST_BYTES", 2 * (len(LONG) + len(packed)))
    handed_on = list[LeaseAnswer]()
    asyncio.run(main())
    assert [each.lease.url for each in handed_on] == [f"http://h/{number}" for number in range(10)]
    assert [bool(each.prepared and each.prepared.page) for each in handed_on] == [True] * 9 + [False]


@needs_kernel
@pytest.mark.parametrize("body", [LONG, LONG * 2], ids=["by the kernel", "apart"])
def test_document_larger_than_the_bound_is_read(monkeypatch: pytest.MonkeyPatch, body: bytes) -> None:
    async def main() -> None:
        threads = ReaderThreads(PageReader(CrawlSettings()), handed_on.append, threads=1)
        threads.arrived(answer("http://h/", body=gzip.compress(body), headers=PACKED))
        assert not threads
        threads.close()

    monkeypatch.setattr("lycosa.crawl.reader_threads.HELD_MOST_BYTES", 100)
    handed_on = list[LeaseAnswer]()
    asyncio.run(main())
    assert [bool(each.prepared and each.prepared.page) for each in handed_on] == [True]


@needs_kernel
def test_event_loop_waits_for_long_documents_where_they_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        threads = ReaderThreads(PageReader(CrawlSettings()), handed_on.append, threads=1)
        threads.arrived(answer("http://h/0", body=LONG * 2))
        assert not handed_on
        threads.arrived(answer("http://h/1", body=LONG * 2))
        assert handed_on[0].lease.url == "http://h/0"  # and maybe the second one
        assert all(each.prepared for each in handed_on)
        threads.close()

    monkeypatch.setattr("lycosa.crawl.reader_threads.HELD_MOST_BYTES", 3 * len(LONG))
    handed_on = list[LeaseAnswer]()
    asyncio.run(main())


@needs_kernel
@pytest.mark.parametrize(
    ("body", "fields", "is_analysed"),
    [
        pytest.param(gzip.compress(LONG), {"content-encoding": "gzip"}, True, id="long to decode"),
        pytest.param(gzip.compress(b"<p>x"), {"content-encoding": "gzip"}, True, id="short to decode"),
        pytest.param(
            b"<rss><channel><item/></channel></rss>" * 9_000, {"content-type": "text/xml"}, True, id="large XML"
        ),
        pytest.param(b"<rss/>", {"content-type": "text/xml"}, False, id="small XML, left for its turn"),
        pytest.param(b"<table><b>x</table>" * 20_000, {}, True, id="large, needs a tree"),
        pytest.param(b"<table><b>x</table>", {}, True, id="needs a tree"),
    ],
)
def test_what_the_kernel_does_not_read_alone_is_read_all_the_same(
    body: bytes, fields: dict[str, str], is_analysed: bool
) -> None:
    async def main() -> LeaseAnswer:
        handed_on = asyncio.get_running_loop().create_future()
        threads = ReaderThreads(PageReader(CrawlSettings()), handed_on.set_result, threads=1)
        threads.arrived(answer("http://h/0", body=body, headers={"content-type": "text/html", **fields}))
        async with asyncio.timeout(120):
            found: LeaseAnswer = await handed_on
        threads.close()
        return found

    prepared = asyncio.run(main()).prepared
    assert prepared is not None
    assert (prepared.page is not None) == is_analysed
    assert prepared.payload_sha1 == payload_sha1(body)


def answer(url: str, status: int = 200, body: bytes = b"", headers: dict[str, str] | None = None) -> LeaseAnswer:
    host = SimpleNamespace(row=SimpleNamespace(robots=None))
    lease: Any = SimpleNamespace(url=url, kind=RequestKind.PAGE, is_head=False, depth=0, host=host, entry=None)
    return LeaseAnswer(
        lease,
        Request(url, "h", 80, ""),
        Response(url, status=status, body=body, headers=headers or {"content-type": "text/html"}),
        0.0,
    )


def test_answers_are_handed_on_where_the_system_gives_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    class Kernel:
        @staticmethod
        def Readers(*_: object) -> None:
            raise OSError("no more threads")

    async def main() -> None:
        readers = ReaderThreads(PageReader(CrawlSettings()), handed_on.append, threads=1)
        readers.arrived(answer("http://a/1"))
        readers.close()

    monkeypatch.setattr("lycosa.crawl.reader_threads.native", Kernel)
    handed_on = list[LeaseAnswer]()
    asyncio.run(main())
    assert [each.lease.url for each in handed_on] == ["http://a/1"]


@pytest.mark.parametrize("threads", [0, 1])
def test_error_in_reading_ends_the_crawl_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("a mistake of ours")

    monkeypatch.setattr(PageReader, "complete", fail)
    with pytest.raises(ZeroDivisionError, match="a mistake of ours"):
        crawl_site(tmp_path / "c", lambda _: links("a"), threads=threads)


def test_analyser_of_a_user_runs_on_the_thread_of_the_crawl(tmp_path: Path) -> None:
    ran_on = set()

    def analyse(document: Document) -> Page:
        ran_on.add(threading.current_thread())
        return Page(document.url, document.media, None, document.fingerprint, document.digest)

    async def main() -> None:
        memory = MemoryWeb(WEB)
        options: dict[str, Any] = {"allow_private": ["127.0.0.0/8"], "pages": 3, "delay_s": 0}
        parts: dict[str, Any] = {"resolver": memory, "downloader": memory, "analysers": {"html": analyse}}
        async with Crawl(front(WEB), into=tmp_path / "c", threads=2, **parts, **options) as running:
            await running.finish()

    asyncio.run(main())
    assert ran_on == {threading.main_thread()}
