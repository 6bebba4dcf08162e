"""Documents are read beside the event loop, where there is a second core for it.

The page kernel reads on threads of its own, which run no Python: two threads that take turns at running Python cost
more than a second core gives. So where there is no kernel its twin reads in processes (`TwinReaders`), which begin when
there is enough to read, and the event loop reads what they would come to later. What was read is handed on in the order
of arrival. What the kernel cannot do alone is left to the event loop, in its turn: other kinds of documents than HTML,
and those that need a tree.

Long documents, and large ones that the kernel cannot read, are read on one thread of Python, one after the other, and
each is handed on when it is read: no other host waits for them, and only one of them at a time is decoded, analysed and
taken in. The loop calls `ReaderThreads` with every answer, and when one is handled.
"""

import asyncio
import os
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Any

import msgspec

from lycosa.crawl.reading import LARGE_BYTES, LeaseAnswer, PageReader, PreparedPage, decoded_body, record_metadata
from lycosa.crawl.twin_readers import ANSWER_S, TwinReaders
from lycosa.frontier import RequestKind
from lycosa.processes import FreeMemory
from lycosa.store import Fetched, HttpExchange, member_writer, response_parts
from lycosa.web import Document, Page, html_document, kernel_arguments, native, page_from_kernel

HELD_MOST_BYTES = 64 << 20  # bodies that wait for the threads, each as often as it is in memory
# So many documents in so short a time: a short crawl is over before a process has begun, a slow one needs none.
PROCESSES_AFTER, WITHIN_S = 100, 10.0
STARTS_MOST = 5  # in place of processes that were lost; more is no accident
LONG_BYTES = 1 << 20  # what the event loop decodes by itself, and the kernel's threads read in their turn


class _Waiting(msgspec.Struct, eq=False):
    """An answer that is to be handed on in its turn; `body` and `document` are what the kernel is reading, `held_bytes`
    what its bodies take meanwhile."""

    answer: LeaseAnswer
    is_read: bool
    body: bytes = b""
    document: Document | None = None
    held_bytes: int = 0

    @property
    def is_large(self) -> bool:
        return len(self.body) > LARGE_BYTES

    @property
    def is_long(self) -> bool:
        return len(self.body) >= LONG_BYTES


class ReaderThreads:
    """Has documents read on threads, and hands all answers on, on the event loop: in the order in which they came, but
    for those that are read apart. Without threads only large documents are read here, since they are taken in step by
    step.

    The request of an answer counts as in flight until it is handed on; where the bodies here become too many, the event
    loop waits. What cannot be read is left as it is: the event loop fails with it in its turn. `is_virtual`: the event
    loop waits for each answer, since no time may pass meanwhile.
    """

    def __init__(
        self, reader: PageReader, hand_on: Callable[[LeaseAnswer], None], *, threads: int, is_virtual: bool = False
    ) -> None:
        self._reader, self._hand_on, self._is_virtual = reader, hand_on, is_virtual
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[_Waiting] = deque()  # the oldest first
        self._with_kernel: dict[int, _Waiting] = {}
        self._number = self._held_bytes = 0
        self._thread = ThreadPoolExecutor(1, "long documents")  # starts with the first of them
        self._apart: deque[LeaseAnswer] = deque()  # what it will read, the oldest first
        self._reading: Future[None] | None = None
        self._long: LeaseAnswer | None = None  # what it reads, or has read and is not handled yet
        self._is_hurried = False
        self._threads = _kernel_threads(threads)
        if self._threads is not None:
            self._loop.add_reader(self._threads.fileno(), self._take)
        self._processes = threads if native() is None and not is_virtual else 0
        self._starts_left = STARTS_MOST if self._processes else 0
        self._documents, self._counted_since_s = 0, 0.0
        self._starting: TwinReaders | None = None
        self._watch: asyncio.TimerHandle | None = None  # for answers of processes
        self._answered = 0  # when it was set
        self._free_memory = FreeMemory()

    def __repr__(self) -> str:
        return f"<ReaderThreads waiting={len(self._waiting)} apart={len(self._apart)}>"

    def __bool__(self) -> bool:
        """Is anything under way?"""
        return bool(self._waiting or self._apart or self._reading)

    def arrived(self, answer: LeaseAnswer) -> None:
        """Takes an answer; it is handed on at once where nothing has to be read beside the event loop before it."""
        if self._threads is None or not (self._waiting or answer.is_document):
            self._reader.prepare(answer)
            self._hand_on(answer)
            if self._starts_left and self._starting is None and answer.is_document:
                self._count_document()
            return
        waiting = _Waiting(answer, is_read=not answer.is_document)
        if isinstance(self._threads, TwinReaders) and self._threads.is_busy:
            self._take()  # many answers come in one turn of the event loop: a process may have read on meanwhile
        if not (waiting.is_read or self._submit(waiting)):
            if waiting.is_large and not self._is_virtual:
                self._put_apart(answer)
                return
            self._reader.prepare(answer)
            if isinstance(self._threads, TwinReaders):
                self._read_here(answer)
            waiting.is_read = True
            waiting.body = answer.prepared.held_body if answer.prepared is not None else b""
        self._waiting.append(waiting)
        waiting.held_bytes = self._bytes_of(waiting)
        self._held_bytes += waiting.held_bytes
        while self._with_kernel and (self._is_virtual or self._held_bytes > HELD_MOST_BYTES):
            self._take(waits=True)
        self._hand_on_read()

    def _bytes_of(self, waiting: _Waiting) -> int:
        """What its bodies take: as sent, and decoded where that is another one; for a process both are packed."""
        sent = waiting.answer.response.body
        size = len(sent) + (len(waiting.body) if waiting.body is not sent else 0)
        return size if waiting.is_read or not isinstance(self._threads, TwinReaders) else 2 * size

    def _submit(self, waiting: _Waiting) -> bool:
        """Hands a document to the kernel's threads or the twin's processes. False: it is none for them, it is long, or
        it would only wait there."""
        answer, reader = waiting.answer, self._reader
        lease, request, response = answer.lease, answer.request, answer.response
        try:
            waiting.body = body = decoded_body(response, min(reader.max_decoded_bytes, LONG_BYTES))
            if waiting.is_long:
                return False
            twin = self._threads if isinstance(self._threads, TwinReaders) else None
            if twin is not None and twin.is_busy and not waiting.is_large:
                return False
            headers, is_known = response.headers, lease.kind is RequestKind.REVISIT
            document = html_document(
                body,
                url=response.url,
                content_type=headers.get("content-type"),
                content_language=headers.get("content-language"),
                wants_main=reader.wants_main,
                wants_simhash=reader.wants_simhash,
                follow=reader.rules,
                finds_charset=twin is None,
            )
            if document is None:
                return False
            html: Any = document if twin is not None else kernel_arguments(document)
            if is_known and not waiting.is_large:
                html = None
            parts = None
            is_kept = reader.is_kept(response.url, document.media.essence)
            if reader.has_archive and is_kept and not is_known and request is not None:
                metadata = record_metadata(lease, response, reader.rules.agent)
                parts = response_parts(Fetched(request, response, answer.fetched_s, metadata, b""))
            self._number += 1
            assert self._threads is not None
            self._threads.submit(self._number, response.body, body, html, parts, waiting.is_large)
        except Exception:  # it comes again, where it ends the crawl
            return False
        waiting.document = document
        self._with_kernel[self._number] = waiting
        self._watch_answers()
        return True

    def _watch_answers(self) -> None:
        """A process that was stopped must not hold up the crawl: what it does not answer is read without it."""
        if self._watch is None and isinstance(self._threads, TwinReaders) and self._with_kernel:
            self._answered = self._threads.answered
            self._watch = self._loop.call_later(ANSWER_S, self._check_answers)

    def _check_answers(self) -> None:
        self._watch = None
        if isinstance(self._threads, TwinReaders) and self._threads.answered == self._answered and self._with_kernel:
            self._hand_on_without()
        self._watch_answers()

    def _read_here(self, answer: LeaseAnswer) -> None:
        """Reads a document while the processes read others: in its turn it would be read when they have nothing to do.
        That of a revisit is looked at first, since it is mostly known."""
        if answer.prepared is not None and answer.lease.kind is not RequestKind.REVISIT:
            with suppress(Exception):  # it comes again, where it ends the crawl
                self._reader.analyse(answer.response, answer.prepared)

    def _count_document(self) -> None:
        """Starts the processes of the twin where there is enough for them to read."""
        now_s = self._loop.time()
        if now_s - self._counted_since_s > WITHIN_S:
            self._documents, self._counted_since_s = 0, now_s
        self._documents += 1
        if self._documents < PROCESSES_AFTER:
            return
        self._documents, self._starts_left = 0, self._starts_left - 1
        with suppress(OSError):  # no process left: documents are read as they were so far
            self._starting = TwinReaders(self._processes)
            self._loop.add_reader(self._starting.fileno(), self._take_started)

    def _take_started(self) -> None:
        """From now on the processes read, unless they have ended already."""
        assert self._starting is not None
        started, self._starting = self._starting, None
        self._loop.remove_reader(started.fileno())
        try:
            started.take(waits=False)
        except OSError:
            started.close()
            return
        if not started.has_begun:
            self._starting = started
            self._loop.add_reader(started.fileno(), self._take_started)
            return
        self._threads = started
        self._loop.add_reader(started.fileno(), self._take)

    def _put_apart(self, answer: LeaseAnswer) -> None:
        self._held_bytes += len(answer.response.body)
        self._apart.append(answer)
        self._read_next()
        while self._reading is not None and self._held_bytes > HELD_MOST_BYTES:
            wait([self._reading])
            self._take_apart()

    def _read_next(self) -> None:
        """Has the next long document read, once the one before it is handled; at once where too many wait."""

        def done(_: object) -> None:
            with suppress(RuntimeError):  # the event loop has ended
                self._loop.call_soon_threadsafe(self._take_apart)

        may_begin = self._long is None or self._is_hurried or self._held_bytes > HELD_MOST_BYTES
        if not (self._apart and self._reading is None and may_begin):
            return
        self._long = self._apart.popleft()
        self._reading = self._thread.submit(self._reader.prepare, self._long)
        self._reading.add_done_callback(done)

    def _take_apart(self) -> None:
        """Hands on what was read apart."""
        if self._reading is not None and self._reading.done() and (answer := self._long) is not None:
            self._reading = None
            self._held_bytes -= len(answer.response.body)
            self._hand_on(answer)
            self._read_next()

    def has_apart(self, answer: LeaseAnswer) -> bool:
        """Was this answer read apart, and is not handled yet?"""
        return answer is self._long

    def handled(self, answer: LeaseAnswer) -> None:
        """What came of an answer is written, and nothing of it is held any more."""
        if answer is self._long:
            self._long = None
            self._free_memory.give_back()
            self._read_next()

    def hurry(self) -> None:
        """The crawl ends: what is to be read apart does not wait until the one before it is handled."""
        self._is_hurried = True
        self._read_next()

    def _take(self, *, waits: bool = False) -> None:
        """Takes what the kernel has read."""
        assert self._threads is not None
        try:
            taken = self._threads.take(waits)
        except OSError:  # a process has ended
            self._hand_on_without()
            return
        self._hand_on_taken(taken)

    def _hand_on_without(self) -> None:
        """What the threads or processes have not read is left to the event loop, which reads all until others begin."""
        self._end_threads()
        self._hand_on_taken([(number, None, True, None, None) for number in self._with_kernel])

    def _hand_on_taken(self, taken: Iterable[tuple[Any, ...]]) -> None:
        for number, digests, is_read, found, members in taken:
            waiting = self._with_kernel.pop(number)
            if is_read and found is None and waiting.is_large and not self._is_virtual:
                self._waiting.remove(waiting)
                self._held_bytes -= waiting.held_bytes
                self._put_apart(waiting.answer)
            else:
                with suppress(Exception):
                    self._complete(waiting, PreparedPage(waiting.body, *digests), is_read, found, members)
                waiting.is_read = True
        self._hand_on_read()

    def _complete(
        self, waiting: _Waiting, prepared: PreparedPage, is_read: bool, found: Any, members: list[bytes] | None
    ) -> None:
        answer = waiting.answer
        if is_read and waiting.document is not None:
            page = found  # by the twin
            if not isinstance(page, Page):
                page = page_from_kernel(waiting.document, found, prepared.fingerprint, prepared.digest)
            self._reader.complete(answer.response, prepared, page)
        if members is not None:
            prepared.records = HttpExchange(members, prepared.payload_sha1, answer.fetched_s)
        answer.prepared = prepared

    def _hand_on_read(self) -> None:
        while self._waiting and self._waiting[0].is_read:
            waiting = self._waiting.popleft()
            self._held_bytes -= waiting.held_bytes
            self._hand_on(waiting.answer)

    def close(self) -> None:
        """Ends the threads. What is not handed on is left, and its URL is still queued; what comes now goes on as it
        is."""
        self._waiting.clear()
        self._with_kernel.clear()
        self._apart.clear()
        self._reading = None
        self._thread.shutdown(wait=False, cancel_futures=True)
        self._starts_left = 0
        self._end_threads()

    def _end_threads(self) -> None:
        for threads in (self._starting, self._threads):
            if threads is not None:
                self._loop.remove_reader(threads.fileno())
                threads.close()
        if self._watch is not None:
            self._watch.cancel()
        self._starting = self._threads = self._watch = None


def _kernel_threads(threads: int) -> Any:
    """The kernel's threads; None where none are wanted, or there is no kernel, or the system gives none."""
    kernel = native()
    if kernel is None or threads == 0:
        return None
    try:
        return kernel.Readers(threads, member_writer())
    except OSError:
        return None


def usual_threads(*, is_alone: bool) -> int:
    """How many threads read pages beside the event loop, unless the settings say so: one where it has a core of its
    own."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return int(is_alone and cpus > 1)
