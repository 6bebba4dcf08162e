"""The process that reads PDF documents for `web.pdf`: a program of its own, which imports nothing of Lycosa.

It limits itself before it reads a byte: memory, processor time, no files, no core. Documents come on standard input,
each with its length (8 bytes) before it; for each it answers frames of a kind (1 byte), a length (4 bytes) and a value:

    M   the title, author, subject and dates, as JSON
    P   the text of the next page, UTF-8
    E   the end, as JSON: the number of pages, and what went wrong

Pages are sent as they are read, so that whoever asked has those that came before it was killed.
"""

import json
import os
import resource
import struct
import sys
from typing import Any, BinaryIO

KEYS = ("Title", "Author", "Subject", "CreationDate", "ModDate")
MAX_VALUE_CHARS = 2_000


def main() -> None:
    """Reads documents until standard input ends. The arguments are its limits."""
    memory_bytes, seconds, pages, chars = map(int, sys.argv[1:5])
    import pypdfium2  # before the limits: a library is not read from a document

    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what the library prints is no answer
    for limit, value in (
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 16),
    ):
        resource.setrlimit(limit, (value, value))
    documents = sys.stdin.buffer
    while len(size := documents.read(8)) == 8:
        body = documents.read(int.from_bytes(size))
        used = resource.getrusage(resource.RUSAGE_SELF)
        hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
        resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime) + seconds + 2, hard))
        read(pypdfium2, body, answers, pages, chars)
        answers.flush()


def read(library: Any, body: bytes, answers: BinaryIO, most_pages: int, most_chars: int) -> None:
    """Answers for one document; whatever is wrong with it ends it, and what was read before counts."""
    count, error = 0, ""
    try:
        document = library.PdfDocument(body)
        try:
            count = len(document)
            said = document.get_metadata_dict()
            about = {key: value[:MAX_VALUE_CHARS] for key in KEYS if (value := said.get(key))}
            send(answers, b"M", json.dumps(about).encode())
            for number in range(min(count, most_pages)):
                page = document[number]
                texts = page.get_textpage()
                text = texts.get_text_range()[:most_chars]
                texts.close()
                page.close()
                most_chars -= len(text)
                send(answers, b"P", text.encode("utf-8", "replace"))
                if most_chars <= 0:
                    error = "it has more text than is read"
                    break
        finally:
            document.close()
        if count > most_pages:
            error = "it has more pages than are read"
    except Exception as wrong:  # the document's fault, whatever it is
        error = " ".join(str(wrong).split())[:200] or type(wrong).__name__
    send(answers, b"E", json.dumps({"pages": count, "error": error}).encode())


def send(answers: BinaryIO, kind: bytes, value: bytes) -> None:
    """Sends one frame."""
    answers.write(struct.pack(">cI", kind, len(value)) + value)
    answers.flush()


if __name__ == "__main__":
    main()
