"""What the kernel takes of memory to read a document: `python -m proof.ground.kernel_memory FILE [main-text]`, in MB.

It is how far the largest resident set of this process grows while the kernel reads the document with all that a crawl
wants of it, what it gives back included. The main text is wanted only where it is asked for. A small page was read
before, so that nothing counts that is made once.
"""

import sys
from pathlib import Path

from lycosa.crawl.reading import PageReader
from lycosa.settings import CrawlSettings
from lycosa.web import html_document, kernel_arguments, native
from proof.ground.commands import memory_mb

URL, SMALL = "http://127.0.0.1/", b"<title>small</title><p>A page of few words, and <a href=/>a link</a>."
PEAK_ANEW = "5"  # to the kernel of Linux: the largest resident set is that of now


def taken_mb(body: bytes, *, wants_main: bool) -> float:
    kernel, rules = native(), PageReader(CrawlSettings()).rules
    assert kernel is not None, "the kernel is not installed"

    def read(document: bytes) -> object:
        wanted = html_document(
            document, url=URL, content_type="text/html", wants_main=wants_main, wants_simhash=True, follow=rules
        )
        assert wanted is not None
        return kernel.analyse_html(document, *kernel_arguments(wanted))

    read(SMALL)
    Path("/proc/self/clear_refs").write_text(PEAK_ANEW)
    before_mb = memory_mb()
    found = read(body)
    after_mb = memory_mb(peak=True)
    del found
    return after_mb - before_mb


if __name__ == "__main__":
    print(round(taken_mb(Path(sys.argv[1]).read_bytes(), wants_main="main-text" in sys.argv[2:]), 2))
