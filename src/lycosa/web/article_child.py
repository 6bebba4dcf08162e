"""The process that finds articles for `web.article`: a program of its own, which imports nothing of Lycosa.

It limits itself before it reads a page: memory, processor time, no files, no core. The frames are those of
`web.reader_process`: a page is JSON with `url` and `html`, the answer one frame `E`, JSON with `text` and `markdown`.
"""

import json
import os
import resource
import struct
import sys
from typing import Any


def main() -> None:
    """Reads pages until standard input ends. The arguments are its limits."""
    memory_bytes, seconds = map(int, sys.argv[1:3])
    import trafilatura  # before the limits: a library is not read from a page

    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what the library prints is no answer
    find(trafilatura, {"url": "http://a.example/", "html": "<p>reads the files of the library</p>"})
    for limit, value in ((resource.RLIMIT_AS, memory_bytes), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_CORE, 0)):
        resource.setrlimit(limit, (value, value))
    pages = sys.stdin.buffer
    while len(size := pages.read(8)) == 8:
        page = json.loads(pages.read(int.from_bytes(size)))
        used = resource.getrusage(resource.RUSAGE_SELF)
        hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
        resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime) + seconds + 2, hard))
        answer = json.dumps(find(trafilatura, page)).encode()
        answers.write(struct.pack(">cI", b"E", len(answer)) + answer)
        answers.flush()


def find(library: Any, page: dict[str, str]) -> dict[str, str]:
    """The text of the article and its Markdown, empty where there is none."""
    try:
        tree = library.load_html(page["html"])
        wanted = {"url": page["url"], "include_comments": False, "include_tables": True}
        text = library.extract(tree, output_format="txt", **wanted) if tree is not None else None
        if not text:
            return {"text": "", "markdown": ""}
        tree = library.load_html(page["html"])  # the library changes what it reads
        markdown = library.extract(
            tree, output_format="markdown", include_links=True, include_formatting=True, **wanted
        )
    except Exception:  # the page's fault, whatever it is
        return {"text": "", "markdown": ""}
    return {"text": text, "markdown": markdown or text}


if __name__ == "__main__":
    main()
