"""JSON lines: one object a page, in our own form or in that of a known corpus (`--like`).

Our own form has `url`, `status`, `fetched`, `content_type`, `title`, `language`, `depth` and `bytes` (as sent), the
`text` (or `markdown`, or `html`), and where there is something to say `duplicate_of`, `links`, `metadata`, `fields`,
`preferences` (what its publisher says on its use) and `usage` (what that allows and forbids).
The names in the corpora are exactly those that their tools read; `token_count` is the number of words (runs of letters
and digits), some three quarters of the tokens of a usual tokeniser, and FineWeb's `language` and `language_score` are
what the detector says of the text, whatever the page declares. Every line is valid JSON in UTF-8: what is no character
(a lone surrogate) becomes U+FFFD, and NUL is escaped.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import msgspec

from lycosa.errors import SettingsError
from lycosa.export.format import ExportFormat
from lycosa.inspect import StoredPage
from lycosa.store import WarcLocation, warc_path
from lycosa.web import (
    DetectedLanguage,
    MediaKind,
    detect_charset,
    format_timestamp,
    identify_media,
    media_kind,
    to_utf8,
)

_TEXTS = frozenset((MediaKind.HTML, MediaKind.XHTML, MediaKind.XML, MediaKind.FEED, MediaKind.TEXT))
_WORD = re.compile(r"\w+")
_encode = msgspec.json.Encoder().encode

Record = dict[str, Any]


class JsonLines(ExportFormat):
    """One JSON object a line."""

    suffix = ".jsonl"

    def __init__(self, content: str = "text", links: str = "", metadata: str = "", like: str = "") -> None:
        if like and (content == "none" or links or metadata):
            raise SettingsError(
                f"--like {like} has the fields of its corpus: text or another content, and nothing more"
            )
        self._content, self._has_links, self._has_metadata = content, bool(links), bool(metadata)
        corpora: dict[str, Callable[[StoredPage], Record]] = {
            "dolma": self._dolma,
            "fineweb": self._fineweb,
            "c4": self._c4,
        }
        self._record = corpora[like] if like else self._own

    def add(self, page: StoredPage) -> None:
        self.out.write(json_line(self._record(page)))

    def _own(self, page: StoredPage) -> Record:
        record: Record = {
            "url": page.url,
            "status": page.status,
            "fetched": page.fetched,
            "content_type": page.content_type,
            "title": page.title,
            "language": page.row.language if self._content == "none" else page.language,  # detection reads the body
            "depth": page.depth,
            "bytes": page.sent_bytes,
        }
        if page.duplicate_of:
            record["duplicate_of"] = page.duplicate_of
        if page.is_redirect:
            record["location"] = page.row.location
        if page.row.preferences:
            record["preferences"] = page.row.preferences.splitlines()
        if use := page.row.usage(now=self.source.began_s):
            record["usage"] = use
        if fields := page.fields:
            record["fields"] = fields
        if self._has_links:
            record["links"] = page.links
        if self._has_metadata and page.has_body:
            record["metadata"] = page.metadata
        if self._content != "none":
            record[self._content] = content_of(page, self._content, self.extractor)
        return record

    def _dolma(self, page: StoredPage) -> Record:
        return {
            "id": page.url,
            "text": content_of(page, self._content, self.extractor),
            "source": "lycosa",
            "added": format_timestamp(self.source.began_s),
            "created": page.fetched,
            "metadata": {"url": page.url, "title": page.title, "language": page.language, "mime": page.content_type},
        }

    def _fineweb(self, page: StoredPage) -> Record:
        text = content_of(page, self._content, self.extractor)
        found = page.detected_language if page.has_body else DetectedLanguage()
        return {
            "text": text,
            "id": f"<urn:uuid:{uuid5(NAMESPACE_URL, f'{page.url} {page.fetched}')}>",
            "dump": self.source.collection.path.absolute().name,
            "url": page.url,
            "date": page.fetched,
            "file_path": self._file_of(page),
            "language": found.language,
            "language_score": found.score,
            "token_count": count_words(text),
        }

    def _file_of(self, page: StoredPage) -> str:
        """The file of the archive that the page is in, below the folder of the collection or of its shard."""
        return str(warc_path(Path("warc"), WarcLocation.unpack(page.row.place).file_number)) if page.has_body else ""

    def _c4(self, page: StoredPage) -> Record:
        return {"text": content_of(page, self._content, self.extractor), "timestamp": page.fetched, "url": page.url}


def content_of(page: StoredPage, content: str, extractor: str = "") -> str:
    """The text, the Markdown or the HTML of a page; empty where the archive has no body of it, as of most errors."""
    if not page.has_body and not page.row.lacks_body:
        return ""
    if content == "html":
        return markup_of(page)
    source = page.article if extractor == "article" else page
    return source.markdown if content == "markdown" else source.text


def markup_of(page: StoredPage) -> str:
    """The body of a page as text; empty for what is no text, such as a picture."""
    if media_kind(page.content_type) not in _TEXTS:
        return ""
    charset = page.row.charset or detect_charset(
        page.body, http_charset=identify_media(page.headers.get("content-type")).charset
    )
    return to_utf8(page.body, charset).decode("utf-8", "replace")


def count_words(text: str) -> int:
    return sum(1 for _ in _WORD.finditer(text))


def json_line(record: Record) -> bytes:
    """A line of JSON."""
    try:
        return _encode(record) + b"\n"
    except UnicodeEncodeError:
        return _encode(_cleaned(msgspec.to_builtins(record))) + b"\n"


def _cleaned(value: Any) -> Any:
    """The same without lone surrogates, which UTF-8 cannot say."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return {_cleaned(key): _cleaned(inner) for key, inner in value.items()}
    return [_cleaned(inner) for inner in value] if isinstance(value, list | tuple) else value


def clean_text(text: str) -> str:
    """The text with lone surrogates replaced by U+FFFD, and pairs of them by their character."""
    return text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
