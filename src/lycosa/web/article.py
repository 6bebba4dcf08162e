"""The article in a page, found by trafilatura (the extra `article`) in a process of its own: `extract_article`.

It is the choice for news and blogs, where it finds a little more of what is no part of the article; it takes a hundred
times as long as `readable`, and longer for some pages. The text that `readable` finds stands in where there is no
article, where that takes more than `SECONDS`, and where it has so few of the words that a part of the page was taken
for all of it (`LEAST_SHARE`). Called for `--extractor article`; never by a crawl or the search index.
"""

import importlib.util
import json
import re

import msgspec

from lycosa.errors import MissingExtra
from lycosa.web.charset import to_utf8
from lycosa.web.document import Readable
from lycosa.web.media import SNIFF_BYTES, identify_media
from lycosa.web.page import charset_of, has_main_text
from lycosa.web.readable import extract_readable
from lycosa.web.reader_process import ReaderLimits, ReaderProcess, borrowed

MEMORY_BYTES = 2 << 30  # of address space
SECONDS = 10.0  # for one page; most take 40 ms
DOCUMENTS = 500  # that one child reads: what a library leaks is given back
MAX_BYTES = 5_000_000  # of a page
LEAST_SHARE = 0.55  # of the words that `readable` finds; chosen on one half of the real pages (docs/text.md)
_WORD = re.compile(r"\w+")


class ArticleProcess(ReaderProcess):
    """A child that finds articles."""

    program = "article_child.py"

    def limits(self) -> ReaderLimits:
        return ReaderLimits(SECONDS, 8 * MAX_BYTES, DOCUMENTS, (MEMORY_BYTES, int(SECONDS)))


def require_article() -> None:
    """Raises MissingExtra where the extra is not installed."""
    if importlib.util.find_spec("trafilatura") is None:
        raise MissingExtra.of("article", what="the extractor article")


def extract_article(body: bytes, *, url: str, content_type: str | None = None) -> Readable:
    """The title, text and Markdown of the article in a page; of other documents, as `extract_readable` has it."""
    require_article()
    whole = extract_readable(body, url=url, content_type=content_type, wants_markdown=True)
    media = identify_media(content_type, body[:SNIFF_BYTES])
    if not has_main_text(media) or len(body) > MAX_BYTES:
        return whole
    found: dict[str, str] = {}
    html = to_utf8(body, charset_of(body, media)).decode("utf-8", "replace")
    asked = json.dumps({"url": url, "html": html}).encode()
    with borrowed(ArticleProcess) as reader:
        reader.exchange(asked, lambda kind, value: found.update(json.loads(value)))
    if not found.get("text") or _word_count(found["text"]) < LEAST_SHARE * _word_count(whole.text):
        return whole
    text_utf8 = found["text"].encode("utf-8", "replace")
    return msgspec.structs.replace(whole, text_utf8=text_utf8, markdown=found["markdown"])


def _word_count(text: str) -> int:
    return sum(1 for _ in _WORD.finditer(text))
