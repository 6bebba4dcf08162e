"""The text of PDF documents, read by pypdfium2 (the extra `pdf`) in a process of its own: `read_pdf(body)`.

PDF is a large format and its readers have had bugs, so a document never comes near this process: the child
(`web.pdf_child`) has limits on memory and time, is killed when it takes too long, and is replaced when it dies. The
pages that it read before are kept. One child serves all documents of a process, one after the other; it ends with it.
Nothing raises on any bytes; without the extra a document has no text. Called by `readable` and `metadata`, when
somebody asks for the text of a document; never by a crawl.
"""

import atexit
import importlib.util
import json
import os
import re
import select
import struct
import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

import msgspec

from lycosa.web.date import iso_date

MEMORY_BYTES = 1 << 30  # of address space; a large document takes 100 MB
SECONDS = 15.0  # for one document; a page takes a millisecond
MAX_PAGES = 2_000
MAX_CHARS = 5_000_000
DOCUMENTS = 200  # that one child reads: what a library leaks is given back
_CHUNK = 1 << 20
_FRAME = struct.Struct(">cI")

_PDF_DATE = re.compile(r"(?:D:)?(\d{4})(\d\d)?(\d\d)?(?:(\d\d)(\d\d)(\d\d)?)?(Z|[+-]\d\d)?'?(\d\d)?")
_HYPHEN = re.compile("[\x02\ufffe]\r?\n?")  # one that the end of a line made
_SPACE = re.compile(r"[^\S\n]+")
_BLANK = re.compile(r"\s*\n\s*")


class PdfText(msgspec.Struct, frozen=True):
    """A document as far as it could be read: its title, author, subject and dates (ISO 8601), the text of each page, of
    how many there are, and what kept the rest from being read."""

    title: str = ""
    author: str = ""
    subject: str = ""
    created: str = ""
    modified: str = ""
    pages: tuple[str, ...] = ()
    page_count: int = 0
    error: str = ""

    @property
    def text(self) -> str:
        return "\n".join(filter(None, self.pages))


@cache
def can_read_pdf() -> bool:
    """Whether the extra is installed."""
    return importlib.util.find_spec("pypdfium2") is not None


def read_pdf(body: bytes) -> PdfText:
    """What a PDF document says."""
    if not can_read_pdf():
        return PdfText(error="its reader is not installed")
    with _lock:
        return _reader().read(body)


class PdfProcess:
    """A child that reads documents. `start` makes another one where it has ended, or has read enough."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._read = 0

    def __repr__(self) -> str:
        return f"<PdfProcess {self._process.pid if self._process else 'not started'} documents={self._read}>"

    def read(self, body: bytes) -> PdfText:
        """Reads one document; the child does not outlive one that it cannot read in time."""
        found: dict[str, Any] = {"pages": []}
        ends_s = time.monotonic() + SECONDS
        try:
            process = self._started()
            self._send(process, len(body).to_bytes(8), ends_s)
            self._send(process, body, ends_s)
            while self._take_frame(process, found, ends_s):
                pass
        except TimeoutError:
            found["error"] = f"it took more than {SECONDS:g} s"
        except OSError as error:  # no process can be started, or it has gone
            found["error"] = f"its reader failed: {error.strerror or error}"
        except (EOFError, ValueError):
            found["error"] = "its reader crashed, or needed too much memory"
        else:
            return _text_of(found)
        self.close()
        return _text_of(found)

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is not None and (self._read >= DOCUMENTS or self._process.poll() is not None):
            self.close()
        if self._process is None:
            limits = (MEMORY_BYTES, int(SECONDS), MAX_PAGES, MAX_CHARS)
            # -P: the folder of the program is not for imports. Ctrl-C is for the parent: it is in a session of its own.
            command = [sys.executable, "-P", str(Path(__file__).with_name("pdf_child.py")), *map(str, limits)]
            self._process = subprocess.Popen(
                command,
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

    def _take_frame(self, process: subprocess.Popen[bytes], found: dict[str, Any], ends_s: float) -> bool:
        """Takes the next frame of an answer; False after the last."""
        kind, size = _FRAME.unpack(self._receive(process, _FRAME.size, ends_s))
        if size > 4 * MAX_CHARS + _CHUNK:
            raise ValueError("a frame that is too long")
        value = self._receive(process, size, ends_s)
        if kind == b"P":
            found["pages"].append(_clean(value.decode("utf-8", "replace")))
        elif kind == b"M":
            found["about"] = json.loads(value)
        else:
            found |= {"count": (end := json.loads(value))["pages"], "error": end["error"]}
        return bool(kind != b"E")

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


def _wait(descriptor: int, event: int, ends_s: float) -> None:
    """Waits until a pipe can be written or read; raises TimeoutError."""
    poll = select.poll()
    poll.register(descriptor, event)
    if not poll.poll(max(0.0, ends_s - time.monotonic()) * 1000):
        raise TimeoutError


_lock = Lock()
_readers: dict[int, PdfProcess] = {}  # by process: a fork must not use the pipes of its parent


def _reader() -> PdfProcess:
    if (reader := _readers.get(os.getpid())) is None:
        reader = _readers[os.getpid()] = PdfProcess()
        atexit.register(reader.close)
    return reader


def _text_of(found: dict[str, Any]) -> PdfText:
    about = found.get("about") or {}
    words = {name: " ".join(str(about.get(name, "")).split()) for name in ("Title", "Author", "Subject")}
    return PdfText(
        title=words["Title"],
        author=words["Author"],
        subject=words["Subject"],
        created=pdf_date(about.get("CreationDate", "")),
        modified=pdf_date(about.get("ModDate", "")),
        pages=tuple(found["pages"]),
        page_count=found.get("count", len(found["pages"])),
        error=found.get("error", ""),
    )


def _clean(text: str) -> str:
    """The text of a page, a line for each line, words that a line end cut in two made whole."""
    lines = _HYPHEN.sub("", text).replace("\r", "\n").replace("\0", "")
    return _BLANK.sub("\n", _SPACE.sub(" ", lines)).strip()


def pdf_date(written: str) -> str:
    """A date of a PDF document, `D:20240501100000+02'00'`, by ISO 8601; empty for what is none."""
    found = _PDF_DATE.match(written.strip())
    if found is None:
        return ""
    year, month, day, hour, minute, second, zone, zone_minute = found.groups()
    text = "-".join(filter(None, (year, month, day)))
    if hour:
        offset = "Z" if zone in (None, "Z") else f"{zone}:{zone_minute or '00'}"
        text += f"T{hour}:{minute}:{second or '00'}{offset}"
    return iso_date(text)
