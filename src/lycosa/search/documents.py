"""The documents of the index: their fields and tokenisers, and what a page becomes in it.

    page   page, cluster, alike, speaks, date · title_L, heads_L, text_L, url · site, lang, type     what it says itself
    name   name, words, date · given_L (the title), calls_L · site, lang, type                       what links call it
    copy   copy, cluster                                                                             its document again
    mark   mark, covered                                                                   how far the feed is covered

`L` is the language that the page is tokenised in. As in the papers' short and full barrels, anchor texts stand in a
document of their own: when a page gets new ones it is a few words that are indexed again, not the page. Nothing is
stored: URL, title and date are in the state, the text is in the archive. Numbers are FileNums; `cluster` is the same
for pages whose documents are equal, and only one of those is a page here, the others are copies; `alike` is the same
for pages whose main text is, in whatever markup. `speaks` is L as a number.
Pure but for `searchable_pages`, which reads the state. Called by the indexer.
"""

import re
import time
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple
from urllib.parse import unquote

import msgspec
import tantivy
import xxhash
from msgspec.structs import replace

from lycosa.records import Family
from lycosa.search.language import LANGUAGES, STEMMED, shown_language, spaced
from lycosa.store import PageRow, State, unpack_page
from lycosa.web import Readable, media_kind, parse_date, split_url, split_words, url_from_key

VERSION = 2  # raised when an index of before could no longer be read

LONGEST_TOKEN = 50  # longer ones are data, not words
NUMBERS = ("page", "name", "copy", "cluster", "alike", "speaks", "words", "mark", "covered")
KEYS = ("page", "name", "copy", "cluster", "mark")
TERMS = ("site", "lang", "type")
# Field → how it is indexed; headings stand in the text too, where phrases are found.
BY_LANGUAGE = {"title": "position", "heads": "freq", "text": "position", "calls": "position", "given": "position"}
WITH_POSITIONS = frozenset({"title", "text", "calls", "given", "url"})


@cache
def schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    for name in NUMBERS:
        builder.add_unsigned_field(name, indexed=name in KEYS, fast=True)
    builder.add_integer_field("date", fast=True)
    for name in TERMS:
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("url", tokenizer_name=LANGUAGES[-1], index_option="position")
    for field, option in BY_LANGUAGE.items():
        for language in LANGUAGES:
            builder.add_text_field(f"{field}_{language}", tokenizer_name=language, index_option=option)
    return builder.build()


@cache
def analyser(language: str) -> tantivy.TextAnalyzer:
    """Words in lower case, without accents, since many are typed without, then stemmed where there is a stemmer."""
    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
    for step in (tantivy.Filter.remove_long(LONGEST_TOKEN), tantivy.Filter.lowercase(), tantivy.Filter.ascii_fold()):
        builder = builder.filter(step)
    if stemmer := STEMMED.get(language):
        builder = builder.filter(tantivy.Filter.stemmer(stemmer))
    return builder.build()


def register(index: tantivy.Index) -> None:
    """Gives an open index its tokenisers: they are not kept with it."""
    for language in LANGUAGES:
        index.register_tokenizer(language, analyser(language))


TEXT_CHARS = 1_000_000  # of a document; what stands behind is not found
HEADING_CHARS = 5_000
ANCHOR_CHARS = 600  # of anchor texts
SITE_FOLDERS = 4  # `site:` knows so many folders
_EXTENSION = re.compile(r"\.([A-Za-z0-9]{1,8})(?:\?|$)")
# The words of links that are there for turning pages, in the languages that have a stemmer.
_MEANINGLESS = frozenset(
    "next prev previous up home here more back top contents link click this page read skip first last "
    "weiter zurück hier mehr suivant précédent ici siguiente anterior aquí más".split()
)


class IndexedPage(msgspec.Struct, frozen=True):
    """A page as the index takes it."""

    file_num: int
    cluster: int
    url: str
    date_s: float
    essence: str
    language: str = ""
    title: str = ""
    headings: Sequence[str] = ()
    text: str = ""
    alike: int = 0


class AnchorSummary(msgspec.Struct, frozen=True):
    """The anchor texts of the links to a page, the most used first. `words` is the same for the same words."""

    text: str = ""

    @property
    def words(self) -> int:
        return words_id(self.text)


def summarise_anchors(anchors: Iterable[tuple[str, int]]) -> AnchorSummary:
    """The anchor texts worth knowing, from (text, pages that use it), the most used first."""
    kept, room = [], ANCHOR_CHARS
    for text, _ in anchors:
        if room <= 0:
            break
        if _MEANINGLESS.issuperset(split_words(text)):
            continue
        kept.append(text[:room])
        room -= len(text)
    return AnchorSummary(" \n ".join(kept))


def words_id(text: str) -> int:
    """A number for the set of words in a text; 0 for none."""
    found = sorted(set(split_words(text)))
    return xxhash.xxh3_64_intdigest(" ".join(found).encode()) if found else 0


def documents(page: IndexedPage, language: str, anchors: AnchorSummary) -> tuple[tantivy.Document, tantivy.Document]:
    """The document of the page itself and that of its anchor texts, in the language that it is tokenised in."""
    filters, title = _filters(page, language), spaced(page.title)
    values: dict[str, Any] = {
        "page": page.file_num,
        "cluster": page.cluster,
        "alike": page.alike,
        "speaks": LANGUAGES.index(language),
        f"title_{language}": title,
        f"heads_{language}": spaced(" \n ".join(page.headings)[:HEADING_CHARS]),
        f"text_{language}": spaced(page.text[:TEXT_CHARS]),
        "url": spaced(url_words(page.url)),
        **filters,
    }
    return tantivy.Document.from_dict(values, schema()), _anchor_document(page, language, title, anchors, filters)


def anchor_document(page: IndexedPage, language: str, anchors: AnchorSummary) -> tantivy.Document:
    """The document of the anchor texts of a page."""
    return _anchor_document(page, language, spaced(page.title), anchors, _filters(page, language))


def _anchor_document(
    page: IndexedPage, language: str, title: str, anchors: AnchorSummary, filters: dict[str, Any]
) -> tantivy.Document:
    values: dict[str, Any] = {
        "name": page.file_num,
        "words": anchors.words,
        f"given_{language}": title,
        f"calls_{language}": spaced(anchors.text),
        **filters,
    }
    return tantivy.Document.from_dict(values, schema())


def copy_document(file_num: int, cluster: int) -> tantivy.Document:
    return tantivy.Document.from_dict({"copy": file_num, "cluster": cluster}, schema())


def mark_document(covered: int) -> tantivy.Document:
    return tantivy.Document.from_dict({"mark": 1, "covered": covered}, schema())


def _filters(page: IndexedPage, language: str) -> dict[str, Any]:
    return {
        "date": int(page.date_s),
        "site": sites(page.url),
        "lang": [shown_language(page.language, language) or "unknown", f"tokens:{language}"],
        "type": types(page.url, page.essence),
    }


def url_words(url: str) -> str:
    """Host and path of a URL, escapes undone."""
    parts = split_url(url)
    return f"{parts.host} {unquote(parts.path)}"[:1_000]


def sites(url: str) -> list[str]:
    """The values of `site:` that match a URL: its host, the domains above, and its first folders."""
    parts = split_url(url)
    port = url.removeprefix(f"{parts.scheme}://{parts.host}").startswith(":")
    labels = parts.host.rstrip(".").split(".")
    is_address = parts.host.startswith("[") or labels[-1].isdigit()
    names = [parts.host] if is_address else [".".join(labels[at:]) for at in range(len(labels))]
    if port:
        names.append(f"{parts.host}:{parts.port}")
    folders = parts.path.partition("?")[0].split("/")[1:-1][:SITE_FOLDERS]
    origin = names[-1] if port else parts.host
    return [*names, *(f"{origin}/{'/'.join(folders[: at + 1])}" for at in range(len(folders)))]


def types(url: str, essence: str) -> list[str]:
    """The values of `filetype:` that match a page: kind, media type and its second half, and the URL's extension."""
    found = {media_kind(essence).value, essence, essence.rpartition("/")[2].removeprefix("x-")}
    if extension := _EXTENSION.search(split_url(url).path.partition("?")[0]):
        found.add(extension[1].lower())
    return sorted(found - {""})


ALIKE_CHARS = 200  # of text: pages with less may differ by what is no text, and are not alike


class IndexMember(NamedTuple):
    """A page that can be found."""

    number: int
    url: str
    row: PageRow

    @property
    def cluster(self) -> int:
        return int.from_bytes(self.row.digest[:8]) if self.row.digest and self.row.size_bytes else self.number


def searchable_pages(state: State, numbers: Sequence[int]) -> dict[int, IndexMember]:
    """Those of some FileNums that are pages now and may be found."""
    keys = state.get_many(Family.FILE, [number.to_bytes(8) for number in numbers])
    known = [(number, key) for number, key in zip(numbers, keys, strict=True) if key is not None]
    rows = state.get_many(Family.PAGE, [key for _, key in known]) if known else []
    found, now = {}, time.time()
    for (number, key), packed in zip(known, rows, strict=True):
        row = unpack_page(packed) if packed else None
        if row is not None and is_searchable(row, now) and row.file_num == number:
            found[number] = IndexMember(number, url_from_key(key), row)
    return found


def is_searchable(row: PageRow, now_unix: float) -> bool:
    """Is it a document that is there and does not ask to be left out, for ever or by now?"""
    return 200 <= row.status < 300 and row.is_page and not row.noindex and not has_expired(row, now_unix)


def has_expired(row: PageRow, now_unix: float) -> bool:
    """Is the time over up to which the page wants to be found?"""
    return 0 < row.unavailable_s <= now_unix


def indexed_page(number: int, cluster: int, url: str, row: PageRow, read: Readable | None = None) -> IndexedPage:
    """The page as the index takes it; from its row alone where the archive no longer has it."""
    found = IndexedPage(number, cluster, url, date_of(row), row.essence, row.language, row.title, alike=alike_of(row))
    if read is None:
        return found
    return replace(found, title=row.title or read.title, headings=read.headings, text=read.text)


def alike_of(row: PageRow) -> int:
    """The same number for pages whose main text is the same, whatever stands around it; 0 where that is short."""
    has_enough = row.codes[-1] >= ALIKE_CHARS and row.text_digest
    return int.from_bytes(row.text_digest[:8]) if has_enough else 0


def date_of(row: PageRow) -> float:
    """The date of a document: what the server says, unless that lies in the future; else when it was fetched."""
    said = _epoch(row.last_modified) if row.last_modified else None
    return said if said is not None and 0 < said <= row.fetched_s else row.fetched_s


_epoch = lru_cache(10_000)(parse_date)  # a site's files are often of one day
