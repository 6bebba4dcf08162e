"""A process of its own that reads documents of others for this one: `ReaderProcess`, for `pdf` and `article`.

A library for a large format has bugs, or takes as long as a document likes: so a document never comes near this
process. The child has limits on memory and time, is killed when it takes too long, and is replaced when it dies or has
read enough. It reads a length (8 bytes) and a document from its standard input, again and again, and answers frames of
a kind (1 byte), a length (4 bytes) and a value; the frame `E` is the last of an answer. What came before a failure
counts.
"""

import atexit
import os
import select
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import NamedTuple, TypeVar

_CHUNK = 1 << 20
_FRAME = struct.Struct(">cI")


class ReaderLimits(NamedTuple):
    """For one document: seconds, and bytes of a frame; how many documents a child reads; what its program is told."""

    seconds: float
    frame_bytes: int
    documents: int
    arguments: tuple[int, ...]


class ReaderProcess:
    """A child that reads documents, one after the other. `program` is a file beside this one."""

    program: str

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._read = 0

    def __repr__(self) -> str:
        state = self._process.pid if self._process else "not started"
        return f"<{type(self).__name__} {state} documents={self._read}>"

    def limits(self) -> ReaderLimits:
        raise NotImplementedError

    def exchange(self, body: bytes, take: Callable[[bytes, bytes], None]) -> str:
        """Hands a document over, and the frames of the answer on. Returns what went wrong, or nothing; the child does
        not outlive a document that it cannot read in time."""
        limits = self.limits()
        ends_s = time.monotonic() + limits.seconds
        try:
            process = self._started(limits)
            self._send(process, len(body).to_bytes(8), ends_s)
            self._send(process, body, ends_s)
            kind = b""
            while kind != b"E":
                kind, size = _FRAME.unpack(self._receive(process, _FRAME.size, ends_s))
                if size > limits.frame_bytes:
                    raise ValueError("a frame that is too long")
                take(kind, self._receive(process, size, ends_s))
        except TimeoutError:
            error = f"it took more than {limits.seconds:g} s"
        except OSError as wrong:  # no process can be started, or it has gone
            error = f"its reader failed: {wrong.strerror or wrong}"
        except (EOFError, ValueError):
            error = "its reader crashed, or needed too much memory"
        else:
            return ""
        self.close()
        return error

    def _started(self, limits: ReaderLimits) -> subprocess.Popen[bytes]:
        if self._process is not None and (self._read >= limits.documents or self._process.poll() is not None):
            self.close()
        if self._process is None:
            # -P: the folder of the program is not for imports. Ctrl-C is for the parent: it is in a session of its own.
            path = Path(__file__).with_name(self.program)
            self._process = subprocess.Popen(
                [sys.executable, "-P", str(path), *map(str, limits.arguments)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                start_new_session=True,
            )
            self._read = 0
            assert self._process.stdin is not None
            os.set_blocking(self._process.stdin.fileno(), False)
        self._read += 1
        return self._process

    def _send(self, process: subprocess.Popen[bytes], data: bytes, ends_s: float) -> None:
        assert process.stdin is not None
        descriptor, at = process.stdin.fileno(), 0
        while at < len(data):
            _wait(descriptor, select.POLLOUT, ends_s)
            at += os.write(descriptor, memoryview(data)[at : at + _CHUNK])

    def _receive(self, process: subprocess.Popen[bytes], size: int, ends_s: float) -> bytes:
        assert process.stdout is not None
        descriptor, received = process.stdout.fileno(), bytearray()
        while len(received) < size:
            _wait(descriptor, select.POLLIN, ends_s)
            data = os.read(descriptor, min(_CHUNK, size - len(received)))
            if not data:
                raise EOFError
            received += data
        return bytes(received)

    def close(self) -> None:
        """Ends the child."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()
            process.wait()


Reader = TypeVar("Reader", bound=ReaderProcess)
_borrowing = Lock()
_readers: dict[tuple[type, int], ReaderProcess] = {}  # by process: a fork must not use the pipes of its parent


@contextmanager
def borrowed(kind: type[Reader]) -> Iterator[Reader]:
    """The reader of a kind that this process has, for one document at a time. Its child ends with this process."""
    with _borrowing:
        reader = _readers.get((kind, os.getpid()))
        if not isinstance(reader, kind):
            reader = _readers[kind, os.getpid()] = kind()
            atexit.register(reader.close)
        yield reader


def _wait(descriptor: int, event: int, ends_s: float) -> None:
    """Waits until a pipe can be written or read; raises TimeoutError."""
    poll = select.poll()
    poll.register(descriptor, event)
    if not poll.poll(max(0.0, ends_s - time.monotonic()) * 1000):
        raise TimeoutError
