"""The documents of the index: their fields, their languages and tokenisers, and what a page becomes in it.

    page   page, cluster, alike, canonical, sketch, bits, unsure, titled, speaks, kind, date · title_L, heads_L, text_L,
           url, parts · host, site, lang, type                                                       what it says itself
    name   name, words, date · given_L (the title), calls_L · site, lang, type                       what links call it
    copy   copy, cluster                                                                             its document again
    mark   mark, covered                                                                   how far the feed is covered

`L` is the language that the page is tokenised in. As in the papers' short and full barrels, anchor texts stand in a
document of their own, where there are some: when a page gets new ones it is a few words that are indexed again, not the
page. Nothing is stored: URL, title and date are in the state, the text is in the archive. Numbers are FileNums;
`cluster` is the same for pages whose documents are equal, and only one of those is a page here, the others are copies;
`alike` is the same for pages whose main text is, in whatever markup; `canonical` and `sketch` are there where a page
names a canonical URL, `bits` and `unsure` are its SimHash, `titled` is the same for pages with the same title
(`folding`). `speaks` is L as a number, `kind` the kind of the document, `parts` the words in identifiers such as
getElementById.

    language_of("de-AT", "Die Wärmepumpe …")  →  "de"         OTHER for all that has no stemmer here
    spaced("太陽光 power")                     →  "太陽 陽光 power"       accents written apart are put together

The language that a page declares is believed unless the frequent small words of its text plainly belong to another. A
page with too little text is taken to be in the language of its host: scores compare best within one language. Scripts
that are written without spaces are tokenised in pairs of characters.

Pure but for `searchable_pages`, which reads the state. Called by the indexer.
"""

import re
import time
import unicodedata
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any, NamedTuple
from urllib.parse import unquote

import msgspec
import tantivy
import xxhash

from lycosa.records import Family
from lycosa.search.identifiers import parts_in
from lycosa.store import PageRow, State, pages_at
from lycosa.web import (
    MediaKind,
    Readable,
    media_kind,
    native,
    parse_date,
    split_url,
    split_words,
    text_sketch,
    url_from_key,
    url_key,
)

VERSION = 5  # raised when an index of before could no longer be read

LONGEST_TOKEN = 50  # longer ones are data, not words
NUMBERS = (
    "page", "name", "copy", "cluster", "alike", "canonical", "sketch", "bits", "unsure", "titled", "speaks", "kind",
    "words", "mark", "covered",
)  # fmt: skip
KEYS = ("page", "name", "copy", "cluster", "mark")
TERMS = ("host", "site", "lang", "type")
COUNTED_TERMS = frozenset({"host", "lang"})  # by which results are counted
KINDS = tuple(MediaKind)
# Field → how it is indexed; headings stand in the text too, where phrases are found.
BY_LANGUAGE = {"title": "position", "heads": "freq", "text": "position", "calls": "position", "given": "position"}
WITH_POSITIONS = frozenset({"title", "text", "calls", "given", "url"})

TEXT_CHARS = 1_000_000  # of a document; what stands behind is not found
HEADING_CHARS = 5_000
ANCHOR_CHARS = 600  # of anchor texts
SITE_FOLDERS = 4  # `site:` knows so many folders
ALIKE_CHARS = 200  # of text: pages with less may differ by what is no text, and are not alike
_EXTENSION = re.compile(r"\.([A-Za-z0-9]{1,8})$")
# The words of links that are there for turning pages, in the languages that have a stemmer.
_MEANINGLESS = frozenset(
    "next prev previous up home here more back top contents link click this page read skip first last "
    "weiter zurück hier mehr suivant précédent ici siguiente anterior aquí más".split()
)
_ENCODER = msgspec.json.Encoder()
_epoch = lru_cache(10_000)(parse_date)  # a site's files are often of one day

OTHER = "xx"
# Language → the stemmer's name. Every one of them costs four bytes a document: keep the list short.
STEMMED = {
    "en": "english",
    "de": "german",
    "fr": "french",
    "es": "spanish",
    "it": "italian",
    "pt": "portuguese",
    "nl": "dutch",
    "ru": "russian",
}
LANGUAGES = (*STEMMED, OTHER)
_PLACES = {language: place for place, language in enumerate(STEMMED)}
TOKENS = "tokens:"  # before the language that a page is tokenised in, among the terms of `lang`
PARTS_LANGUAGE = "en"  # that identifiers are written in, wherever they stand

_HOSTS = 10_000
SAMPLE_CHARS = 1_000  # of a text, for its language
_ENOUGH = 5  # different small words: with fewer a text says nothing of its language
_PLAINLY = 2.5  # times as many as a page's own language has: then the text is believed, not the page
_SMALL_WORDS = {
    "en": "the and of to in is that for with as are this be by it from or an which you not have has can will",
    "de": "der die das und ist von nicht mit den des ein eine sich auf auch werden wird im zu als oder wenn dem einer",
    "fr": "le les des est une dans pour que qui sur par pas avec sont cette vous du au aux ce il ou et un",
    "es": "el los las del una por con que para es en como más este esta pero sus al lo se un son y o",
    "it": "il gli della di che per una con non sono nel alla dei delle anche più questo come si è ed un",
    "pt": "os das dos uma com não para que em mais como ao pela são por seu sua ou um do da na no é",
    "nl": "de het een van en dat niet zijn voor met op aan ook door wordt bij worden deze naar als te dit om",
    "ru": "и в не на что с по как это для из от или при его также если они был быть",
}
_LISTED = Counter(word for words in _SMALL_WORDS.values() for word in words.split())
# Words of more than one of them tell nothing.
_TELLING = {word: language for language, words in _SMALL_WORDS.items() for word in words.split() if _LISTED[word] == 1}
_TELLING_WORDS = frozenset(_TELLING)
# Chinese, Japanese and Thai write no spaces; one of their characters alone is a word, too.
UNSPACED = "\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002ffff"
_UNSPACED_RUN = re.compile(f"[{UNSPACED}]+")
# In UTF-8 all of these, and all characters that join with the one before them, begin with one of these bytes, and
# little else does: a look at bytes is quicker.
_LEADS = b"\xcc\xcd\xd9\xe0\xe1\xe3\xe4\xe5\xe6\xe7\xe8\xe9\xef\xf0"
_NO_LEADS = bytes(code for code in range(256) if code not in _LEADS)


def language_of(declared: str, text: bytes, usual: str = OTHER) -> str:
    """The language to tokenise a text in; where neither the page nor its text says, the `usual` one."""
    own = declared.lower().replace("_", "-").partition("-")[0]
    telling = _telling_words()
    counts = telling.counts(text, SAMPLE_CHARS) if telling is not None else _telling_counts(text)
    own_words = counts[_PLACES[own]] if own in _PLACES else 0
    if sum(counts) - own_words >= _ENOUGH:  # else no other language has enough
        most = max(counts)
        enough = max(_ENOUGH, _PLAINLY * max(1, own_words)) if own else _ENOUGH
        if most >= enough:
            return LANGUAGES[counts.index(most)]
    if own:
        return own if own in STEMMED else OTHER
    return usual


@cache
def _telling_words() -> Any:
    kernel = native()
    return kernel and kernel.TellingWords([(word, _PLACES[language]) for word, language in _TELLING.items()])


def _telling_counts(text: bytes) -> list[int]:
    """How many different telling words of each language are among the first characters of a text."""
    words = _TELLING_WORDS.intersection(text.decode("utf-8", "replace")[:SAMPLE_CHARS].lower().split())
    found = [_TELLING[word] for word in words]
    return [found.count(language) for language in STEMMED]


class HostLanguages:
    """The usual language of each host, for pages with too little text. Remembers a bounded number of hosts; `counted`
    gives the known pages of a new host by language."""

    def __init__(self, counted: Callable[[str], Mapping[str, int]]) -> None:
        self._counted = counted
        self._hosts: OrderedDict[str, Counter[str]] = OrderedDict()

    def __repr__(self) -> str:
        return f"<HostLanguages hosts={len(self._hosts)}>"

    def language_of(self, host: str, declared: str, text: bytes) -> str:
        """The language of a page of this host, which is counted for the next ones."""
        counts = self._hosts.get(host)
        if counts is None:
            counts = self._hosts[host] = Counter(self._counted(host))
            if len(self._hosts) > _HOSTS:
                self._hosts.popitem(last=False)
        found = language_of(declared, text, "")
        if not found:
            found = max(counts, key=counts.__getitem__) if counts else OTHER
        if found != OTHER:
            counts[found] += 1
        return found


def shown_language(declared: str, tokenised: str) -> str:
    """The language that a page is found under by `lang:`, one of two or three letters; empty if nobody knows."""
    own = declared.lower().replace("_", "-").partition("-")[0]
    if tokenised != OTHER:
        return tokenised
    return own if own.isalpha() and 2 <= len(own) <= 3 else ""


def spaced(text: str) -> str:
    """The text with runs of unspaced characters as overlapping pairs, where one alone stays, and with letters and their
    accents as one character each."""
    if text.isascii() or not _has_leads(text.encode("utf-8", "replace")):
        return text
    return _UNSPACED_RUN.sub(_pairs, unicodedata.normalize("NFC", text))


def _spaced_utf8(text: bytes) -> bytes:
    return spaced(text.decode("utf-8", "replace")).encode() if _has_leads(text) else text


def _has_leads(text: bytes) -> bool:
    return not text.isascii() and bool(text.translate(None, _NO_LEADS))


def _pairs(run: re.Match[str]) -> str:
    characters = run[0]
    if len(characters) == 1:
        return f" {characters} "
    return " " + " ".join([first + second for first, second in pairwise(characters)]) + " "


@cache
def schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    for name in NUMBERS:
        builder.add_unsigned_field(name, indexed=name in KEYS, fast=True)
    builder.add_integer_field("date", fast=True)
    for name in TERMS:
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic", fast=name in COUNTED_TERMS)
    builder.add_text_field("url", tokenizer_name=LANGUAGES[-1], index_option="position")
    builder.add_text_field("parts", tokenizer_name=PARTS_LANGUAGE, index_option="basic")
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
    """Gives an open index its tokenisers: they are not kept with it. Documents come with the `terms` of their texts
    where there is a kernel, and are no more than split then."""
    for language in LANGUAGES:
        index.register_tokenizer(language, analyser(language) if native() is None else _splitter())


@cache
def _splitter() -> tantivy.TextAnalyzer:
    return tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build()


@cache
def _term_map(language: str) -> Any:
    kernel = native()
    return kernel and kernel.TermMap(analyser(language).analyze)


def terms(text: str, language: str) -> str:
    """A text as its tokeniser will find it: its terms, or itself where there is no kernel, which remembers them."""
    known, text = _term_map(language), spaced(text)
    return text if known is None else known.terms(text)


def _with_texts(values: dict[str, Any], page: "IndexedPage", language: str) -> str:
    """The document of a page with its texts, as their terms where there is a kernel."""
    title, headings = spaced(page.title), spaced(" \n ".join(page.headings)[:HEADING_CHARS])
    words, text_utf8 = spaced(url_words(page.url)), page.text_utf8
    if len(text_utf8) > TEXT_CHARS:
        text_utf8 = text_utf8.decode("utf-8", "replace")[:TEXT_CHARS].encode()
    text_utf8 = _spaced_utf8(text_utf8)
    known = _term_map(language)
    if known is None:
        text = text_utf8.decode("utf-8", "replace")
        texts = {f"title_{language}": title, f"heads_{language}": headings, f"text_{language}": text, "url": words}
        parts = parts_in(title, page.url, text)
        return _as_json(values | texts | ({"parts": parts} if parts else {}))
    maps = [None if each == language else _term_map(each) for each in (OTHER, PARTS_LANGUAGE)]
    written, parts = known.document(_as_json(values), language, (title, headings, text_utf8), page.url, words, *maps)
    return f'{written[:-1]},"parts":"{terms(parts, PARTS_LANGUAGE)}"}}' if parts else written


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
    text_utf8: bytes = b""
    alike: int = 0
    canonical: str = ""
    simhash: bytes = b""

    @property
    def beginning(self) -> bytes:
        """The title and the beginning of the text, which tell the language."""
        return self.title.encode("utf-8", "replace") + b" " + self.text_utf8[: 4 * SAMPLE_CHARS]


def summarise_anchors(anchors: Iterable[tuple[str, int]]) -> tuple[str, int]:
    """The anchor texts worth knowing, from (text, pages that use it), the most used first; and a number for the set of
    their words, 0 for none."""
    kept, words, room = list[str](), set[str](), ANCHOR_CHARS
    for text, _ in anchors:
        if room <= 0:
            break
        said = split_words(text[:room])
        if _MEANINGLESS.issuperset(said):
            continue
        kept.append(text[:room])
        words.update(said)
        room -= len(text)
    return " \n ".join(kept), xxhash.xxh3_64_intdigest(" ".join(sorted(words)).encode()) if words else 0


def page_document(page: IndexedPage, language: str) -> str:
    """The document of a page itself, in the language that it is tokenised in, as JSON, which tantivy takes sooner than
    objects."""
    values: dict[str, Any] = {
        "page": page.file_num,
        "cluster": page.cluster,
        "alike": page.alike,
        "speaks": LANGUAGES.index(language),
        "kind": KINDS.index(media_kind(page.essence)),
        "host": split_url(page.url).host,
        **_filters(page, language),
    }
    if page.simhash:
        values |= {"bits": int.from_bytes(page.simhash[:8]), "unsure": int.from_bytes(page.simhash[8:])}
        values["titled"] = xxhash.xxh3_64_intdigest(" ".join(page.title.casefold().split()).encode("utf-8", "replace"))
    if page.canonical:
        values |= {
            "canonical": address_hash(url_key(page.canonical)),
            "sketch": text_sketch(page.text_utf8.decode("utf-8", "replace")),
        }
    return _with_texts(values, page, language)


def _as_json(values: dict[str, Any]) -> str:
    return _ENCODER.encode(values).decode()


def address_hash(key: bytes) -> int:
    """A number for the URL with this key, by which the pages that name it as canonical find it; never 0."""
    return xxhash.xxh3_64_intdigest(key) or 1


def anchor_document(page: IndexedPage, language: str, anchors: str, words: int) -> str:
    """The document of the anchor texts of a page, with the number of their words."""
    values: dict[str, Any] = {
        "name": page.file_num,
        "words": words,
        f"given_{language}": terms(page.title, language),
        f"calls_{language}": terms(anchors, language),
        **_filters(page, language),
    }
    return _as_json(values)


def copy_document(file_num: int, cluster: int) -> str:
    return _as_json({"copy": file_num, "cluster": cluster})


def mark_document(covered: int) -> str:
    return _as_json({"mark": 1, "covered": covered})


def _filters(page: IndexedPage, language: str) -> dict[str, Any]:
    return {
        "date": int(page.date_s),
        "site": sites(page.url),
        "lang": [shown_language(page.language, language) or "unknown", f"{TOKENS}{language}"],
        "type": types(page.url, page.essence),
    }


def url_words(url: str) -> str:
    """Host and path of a URL, escapes undone."""
    parts = split_url(url)
    return f"{parts.host} {unquote(parts.path)}"[:1_000]


def sites(url: str) -> list[str]:
    """The values of `site:` that match a URL: its host, the domains above, and its first folders."""
    return _sites_of_folder(url.partition("?")[0].rpartition("/")[0])


@lru_cache(1_000)
def _sites_of_folder(folder: str) -> list[str]:
    parts = split_url(f"{folder}/")
    port = folder.removeprefix(f"{parts.scheme}://{parts.host}").startswith(":")
    labels = parts.host.rstrip(".").split(".")
    is_address = parts.host.startswith("[") or labels[-1].isdigit()
    names = [parts.host] if is_address else [".".join(labels[at:]) for at in range(len(labels))]
    if port:
        names.append(f"{parts.host}:{parts.port}")
    folders = parts.path.split("/")[1:-1][:SITE_FOLDERS]
    origin = names[-1] if port else parts.host
    return [*names, *(f"{origin}/{'/'.join(folders[: at + 1])}" for at in range(len(folders)))]


def types(url: str, essence: str) -> list[str]:
    """The values of `filetype:` that match a page: kind, media type and its second half, and the URL's extension."""
    extension = _EXTENSION.search(url.partition("?")[0].rpartition("/")[2])
    return _types(essence, extension[1].lower() if extension else "")


@lru_cache(1_000)
def _types(essence: str, extension: str) -> list[str]:
    found = {media_kind(essence).value, essence, essence.rpartition("/")[2].removeprefix("x-"), extension}
    return sorted(found - {""})


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
    rows = pages_at(state, [key for _, key in known]) if known else []
    found, now = {}, time.time()
    for (number, key), row in zip(known, rows, strict=True):
        if row is not None and is_searchable(row, now) and row.file_num == number:
            found[number] = IndexMember(number, url_from_key(key), row)
    return found


def is_searchable(row: PageRow, now_unix: float) -> bool:
    """Is it a document that is there and does not ask to be left out, for ever or by now?"""
    return row.is_stored_page and not row.noindex and not has_expired(row, now_unix)


def has_expired(row: PageRow, now_unix: float) -> bool:
    """Is the time over up to which the page wants to be found?"""
    return 0 < row.unavailable_s <= now_unix


def indexed_page(number: int, cluster: int, url: str, row: PageRow, read: Readable | None = None) -> IndexedPage:
    """The page as the index takes it; from its row alone where the archive no longer has it."""
    found = read or Readable()
    return IndexedPage(
        number, cluster, url, date_of(row), row.essence, row.language, row.title or found.title, found.headings,
        found.text_utf8, alike_of(row), found.canonical, row.simhash,
    )  # fmt: skip


def alike_of(row: PageRow) -> int:
    """The same number for pages whose main text is the same, whatever stands around it; 0 where that is short."""
    has_enough = row.codes[-1] >= ALIKE_CHARS and row.text_digest
    return int.from_bytes(row.text_digest[:8]) if has_enough else 0


def date_of(row: PageRow) -> float:
    """The date of a document: what the server says, unless that lies in the future; else when it was fetched."""
    said = _epoch(row.last_modified) if row.last_modified else None
    return said if said is not None and 0 < said <= row.fetched_s else row.fetched_s
