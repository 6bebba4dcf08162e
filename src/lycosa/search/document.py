"""From what is known of a page to the documents of the index. Pure; called by whoever feeds the index."""

import re
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import unquote

import msgspec
import tantivy
import xxhash

from lycosa.search.language import LANGUAGES, shown_language, spaced
from lycosa.search.schema import schema
from lycosa.web.media import kind_of
from lycosa.web.url import split
from lycosa.web.words import words

TEXT_CHARS = 1_000_000  # of a document; what stands behind is not found
HEADING_CHARS = 5_000
CALLED_CHARS = 600  # of anchor texts
SITE_FOLDERS = 4  # `site:` knows so many folders
_EXTENSION = re.compile(r"\.([A-Za-z0-9]{1,8})(?:\?|$)")
# What links are called that are there for turning pages, in the languages that have a stemmer.
_MEANINGLESS = frozenset(
    "next prev previous up home here more back top contents link click this page read skip first last "
    "weiter zurück hier mehr suivant précédent ici siguiente anterior aquí más".split()
)


class Found(msgspec.Struct, frozen=True):
    """All that the index is told of a page."""

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


class Called(msgspec.Struct, frozen=True):
    """What others call a page: anchor texts, the most used first. `words` is the same for the same words."""

    text: str = ""

    @property
    def words(self) -> int:
        return words_id(self.text)


def called(anchors: Iterable[tuple[str, int]]) -> Called:
    """The anchor texts worth knowing, from (text, pages that use it), the most used first."""
    kept, room = [], CALLED_CHARS
    for text, _ in anchors:
        if room <= 0:
            break
        if _MEANINGLESS.issuperset(words(text)):
            continue
        kept.append(text[:room])
        room -= len(text)
    return Called(" \n ".join(kept))


def words_id(text: str) -> int:
    """A number for the set of words in a text; 0 for none."""
    found = sorted(set(words(text)))
    return xxhash.xxh3_64_intdigest(" ".join(found).encode()) if found else 0


def documents(found: Found, language: str, calls: Called) -> tuple[tantivy.Document, tantivy.Document]:
    """What the page itself says, and what others call it, in the language that it is tokenised in."""
    filters, title = _filters(found, language), spaced(found.title)
    values: dict[str, Any] = {
        "page": found.file_num,
        "cluster": found.cluster,
        "alike": found.alike,
        "speaks": LANGUAGES.index(language),
        f"title_{language}": title,
        f"heads_{language}": spaced(" \n ".join(found.headings)[:HEADING_CHARS]),
        f"text_{language}": spaced(found.text[:TEXT_CHARS]),
        "url": spaced(url_words(found.url)),
        **filters,
    }
    return tantivy.Document.from_dict(values, schema()), _name(found, language, title, calls, filters)


def name_document(found: Found, language: str, calls: Called) -> tantivy.Document:
    """What others call a page."""
    return _name(found, language, spaced(found.title), calls, _filters(found, language))


def _name(found: Found, language: str, title: str, calls: Called, filters: dict[str, Any]) -> tantivy.Document:
    values: dict[str, Any] = {
        "name": found.file_num,
        "words": calls.words,
        f"given_{language}": title,
        f"calls_{language}": spaced(calls.text),
        **filters,
    }
    return tantivy.Document.from_dict(values, schema())


def copy_document(file_num: int, cluster: int) -> tantivy.Document:
    return tantivy.Document.from_dict({"copy": file_num, "cluster": cluster}, schema())


def mark_document(covered: int) -> tantivy.Document:
    return tantivy.Document.from_dict({"mark": 1, "covered": covered}, schema())


def _filters(found: Found, language: str) -> dict[str, Any]:
    return {
        "date": int(found.date_s),
        "site": sites(found.url),
        "lang": [shown_language(found.language, language) or "unknown", f"tokens:{language}"],
        "type": types(found.url, found.essence),
    }


def url_words(url: str) -> str:
    """Host and path of a URL, escapes undone."""
    parts = split(url)
    return f"{parts.host} {unquote(parts.path)}"[:1_000]


def sites(url: str) -> list[str]:
    """What `site:` finds a URL under: its host, the domains above, and its first folders."""
    parts = split(url)
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
    """What `filetype:` finds a page under: kind, media type and its second half, and the URL's extension."""
    found = {kind_of(essence).value, essence, essence.rpartition("/")[2].removeprefix("x-")}
    if extension := _EXTENSION.search(split(url).path.partition("?")[0]):
        found.add(extension[1].lower())
    return sorted(found - {""})
