"""Documents are read by processes where there is no native kernel: of its twin, in Python, one thread runs at a time.

`TwinReaders` does with processes what `lycosa_native.Readers` does with threads; `twin_process` is the other side. A
document goes there with what its records are made of, its page and its records come back. Neither side waits for the
other to read: what a pipe does not take yet is sent later. Called by `ReaderThreads`.
"""

import contextlib
import fcntl
import os
from collections import deque
from collections.abc import Sequence
from selectors import EVENT_READ, EVENT_WRITE, DefaultSelector
from typing import Any

import msgspec

from lycosa.processes import start_helper
from lycosa.store import ExchangeParts
from lycosa.web import Document, FollowedLinks, Links, Page

PROCESS = "lycosa.crawl.twin_process"
SIZE_BYTES = 4  # of a message, before it
GREETING = b"\0\0\0\1\xc0"  # an empty message: the process has begun
ANSWER_S = 20.0  # within which a process answers at least one of its documents, else it is taken for lost
PIPE_BYTES = 1 << 20  # so much the system may keep of a pipe; by itself it is two pages of a crawl
ENOUGH = 16  # documents that wait for a process: so it has work while the event loop commits, or reads one itself


class ToRead(msgspec.Struct, frozen=True, array_like=True):
    """A document for a process, with what its records are made of. `payload` is what came, where the body was packed;
    the document is without its body."""

    number: int
    payload: bytes | None
    body: bytes
    document: Document | None
    parts: ExchangeParts | None


class ReadAnswer(msgspec.Struct, frozen=True, array_like=True):
    """What became of a document: no digests where reading failed."""

    number: int
    digests: tuple[int, bytes, bytes] | None
    is_page: bool
    page: Page | None
    members: list[bytes] | None


def _columns_of(links: object) -> object:
    if isinstance(links, Links):
        return links.columns
    assert isinstance(links, FollowedLinks)
    return *links.columns, dict(links.joined), links.base_href


def _links_of(kind: type, columns: Any) -> object:
    hrefs, kinds, anchors, *rest = columns
    if kind is Links:
        return Links(tuple(hrefs), kinds, tuple(anchors), tuple(rest[0]))
    return FollowedLinks(tuple(hrefs), kinds, tuple(anchors), *rest)


_ENCODER = msgspec.msgpack.Encoder(enc_hook=_columns_of)


def packed(message: ToRead | ReadAnswer) -> bytes:
    """A message as it is sent."""
    data = _ENCODER.encode(message)
    return len(data).to_bytes(SIZE_BYTES) + data


class TwinReaders:
    """Processes that read documents. `fileno()` can be read from when `take` has something to do. OSError where the
    system gives no process, or one of them ended, does not answer or answers something else."""

    def __init__(self, count: int) -> None:
        self._selector, self._readers = DefaultSelector(), list[_TwinReader]()
        self.answered = 0  # documents, so far
        try:
            for _ in range(count):
                self._readers.append(_TwinReader(self._selector))
        except OSError:
            self.close()
            raise

    def __repr__(self) -> str:
        return f"<TwinReaders reading={[reader.reading for reader in self._readers]}>"

    @property
    def has_begun(self) -> bool:
        """Can one of them read by now?"""
        return any(reader.has_begun for reader in self._readers)

    @property
    def is_busy(self) -> bool:
        """Has each of them enough to read? Whoever would wait for them reads by himself, since they read no faster."""
        return all(reader.reading >= ENOUGH for reader in self._readers)

    def fileno(self) -> int:
        return self._selector.fileno()

    def submit(self, number: int, payload: bytes, body: bytes, html: Any, parts: ExchangeParts | None, _: bool) -> None:
        """Hands a document over, as the kernel's `Readers` take it; `html` is a `Document`."""
        document = None if html is None else msgspec.structs.replace(html, body=b"")
        message = ToRead(number, None if payload is body else payload, body, document, parts)
        min(self._readers, key=lambda reader: reader.reading).send(message)

    def take(self, waits: bool) -> list[tuple[Any, ...]]:
        """What was read since: number, digests, whether there was a page to read, that page, records. Where reading
        failed there are no digests. With `waits` it is at least one; none, else: a process has begun or goes on."""
        found = list[tuple[Any, ...]]()
        while not found:
            ready = self._selector.select(ANSWER_S if waits else 0)
            if waits and not ready:
                raise TimeoutError("the processes that read documents do not answer")
            for key, _ in ready:
                found += key.data()
            if not waits:
                break
        self.answered += len(found)
        return found

    def close(self) -> None:
        """Ends the processes."""
        for reader in self._readers:
            reader.close()
        self._selector.close()


class _TwinReader:
    """One process, and `reading`, the number of documents that it has not answered."""

    def __init__(self, selector: DefaultSelector) -> None:
        self._process, self._selector = start_helper(PROCESS), selector
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._to, self._from = self._process.stdin, self._process.stdout
        for pipe in (self._to, self._from):
            os.set_blocking(pipe.fileno(), False)
            with contextlib.suppress(AttributeError, OSError):  # another system, or more than it gives
                fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        self._unsent, self._received = deque[memoryview](), bytearray()
        self._decoder = msgspec.msgpack.Decoder(ReadAnswer, dec_hook=_links_of)
        self.reading, self.has_begun = 0, False
        selector.register(self._from, EVENT_READ, self._receive)

    def send(self, message: ToRead) -> None:
        is_sending = bool(self._unsent)
        self._unsent.append(memoryview(packed(message)))
        self.reading += 1
        if not is_sending:
            self._flush()
            if self._unsent:
                self._selector.register(self._to, EVENT_WRITE, self._send_rest)

    def _flush(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self._unsent:
                data = self._unsent[0]
                sent = os.write(self._to.fileno(), data)
                if sent == len(data):
                    self._unsent.popleft()
                else:
                    self._unsent[0] = data[sent:]

    def _send_rest(self) -> Sequence[tuple[Any, ...]]:
        self._flush()
        if not self._unsent:
            self._selector.unregister(self._to)
        return ()

    def _receive(self) -> Sequence[tuple[Any, ...]]:
        """The answers that are here as a whole."""
        received = self._received
        if not (data := os.read(self._from.fileno(), PIPE_BYTES)):
            raise BrokenPipeError("the process that reads documents has ended")
        received += data
        if not self.has_begun and len(received) >= len(GREETING):
            if not received.startswith(GREETING):
                raise BrokenPipeError("the process that reads documents says something else")
            del received[: len(GREETING)]
            self.has_begun = True
        answers, at = list[tuple[Any, ...]](), 0
        if not self.has_begun:
            return answers
        while (start := at + SIZE_BYTES) <= len(received):
            end = start + int.from_bytes(received[at:start])
            if end > len(received):
                break
            try:
                answers.append(msgspec.structs.astuple(self._decoder.decode(memoryview(received)[start:end])))
            except msgspec.DecodeError as error:
                raise BrokenPipeError("the process that reads documents answers something else") from error
            at = end
        del received[:at]
        self.reading -= len(answers)
        return answers

    def close(self) -> None:
        self._process.kill()
        for pipe in (self._to, self._from):
            with contextlib.suppress(OSError):  # what was not sent
                pipe.close()
        self._process.wait()
