"""The query language: from what a user types to a tree, or to a sentence that says what is wrong with it.

    solar "heat pump" -wind (roof OR garden)     all of them, a phrase, not this, one of these
    vacu*  "heat pu*"  pg_stat*                  words that begin so, the last one of a phrase, too
    title:solar  heading:  text:  url:  anchor:  where a word stands; `anchor` is what links to the page say
    site:example.org/docs  lang:de  filetype:pdf  after:2026-01  before:2026-02-15       which pages
    https://example.org/a/page.html?n=1          a URL alone: its page, and pages that name it;
    example.org/a/page.html                      the same without its scheme, where a port or a path follows the host

Words stand for all their forms (stemming), without accents and case. A word with punctuation inside, such as
`java.util.List`, is a phrase. `after` means from that day on, `before` the days before it. Pure; raises QueryError.
"""

import difflib
import re
from datetime import UTC, datetime
from typing import NamedTuple

from lycosa.errors import SettingsError
from lycosa.search.documents import SITE_FOLDERS
from lycosa.web import parse_date

MOST_WORDS = 100
MOST_CHARS = 10_000
MOST_DEPTH = 20
SHORTEST_PREFIX = 2  # letters before a *
FIELDS = ("title", "heading", "text", "url", "anchor")
FILTERS = ("site", "lang", "filetype", "after", "before")
_SHOWN_CHARS = 40
_QUOTES = str.maketrans("“”„«»", '"' * 5)
_TOKEN = re.compile(r'\s*(?:(?P<open>\()|(?P<close>\))|(?P<quote>")|(?P<word>[^\s()"]+))')
_FIELD = re.compile(r"([A-Za-z]{2,})(?::(?!:|//))")
_PASTED = re.compile(r"(?i)https?://\S+")
# A name with a dot, or an address, and a port or a path: no field has a dot in its name.
_BARE_HOST = r"(?:localhost|\[[0-9a-f:.]+\]|(?:\w[\w-]*\.)+\w[\w-]*)"
_PASTED_BARE = re.compile(rf'(?i){_BARE_HOST}(?::\d{{1,5}}(?:/[^\s"]*)?|/[^\s"]*)')


class QueryError(SettingsError):
    """A query that cannot be understood; says why, and what would be."""


class Term(NamedTuple):
    """A word, or with `is_phrase` words in a row; in one field, or with none in any. `is_prefix`: its last word stands
    for all that begin so."""

    text: str
    field: str = ""
    is_phrase: bool = False
    is_prefix: bool = False


class Filter(NamedTuple):
    """A filter of pages: `kind` is one of FILTERS; `value` a text, or a time in seconds since 1970."""

    kind: str
    value: str | float


class AllOf(NamedTuple):
    parts: "tuple[QueryNode, ...]"


class AnyOf(NamedTuple):
    parts: "tuple[QueryNode, ...]"


class Excluded(NamedTuple):
    part: "QueryNode"


QueryNode = Term | Filter | AllOf | AnyOf | Excluded


def parse_query(text: str) -> AllOf:
    """The tree of a query."""
    text = text.encode("utf-8", "replace").decode()  # half a character, from a terminal in another encoding
    if not text.strip():
        raise QueryError('the query is empty: say what to look for, such as solar or "heat pump"')
    words = len(text.split())
    if words > MOST_WORDS:
        raise QueryError(f"the query has {words:,} words, {MOST_WORDS} is the most: leave out what says little")
    if len(text) > MOST_CHARS:
        raise QueryError(f"the query has {len(text):,} characters, {MOST_CHARS:,} is the most")
    if url := pasted_url(text):
        return AllOf((Term(url),))
    found = _Parser(text.translate(_QUOTES)).whole()
    if not positive(found):
        raise QueryError("the query only says what not to look for: add a word, or site:, lang: or filetype:")
    if not any(character.isalnum() for character in text):
        raise QueryError(f'{_short(text)} has no letter or digit: say what to look for, such as solar or "heat pump"')
    return found


def pasted_url(text: str) -> str:
    """The URL that a query is, whatever marks it has inside, with a scheme or without; nothing if it is another
    query."""
    text = text.strip()
    return text if _PASTED.fullmatch(text) or _PASTED_BARE.fullmatch(text) else ""


def positive(node: QueryNode) -> bool:
    """Does a part of the query say what to look for, not only what to leave out?"""
    if isinstance(node, AllOf | AnyOf):
        return any(positive(part) for part in node.parts)
    return not isinstance(node, Excluded)


def terms(node: QueryNode) -> list[Term]:
    """The words that are looked for, those that are excluded left out."""
    if isinstance(node, Term):
        return [node]
    if isinstance(node, AllOf | AnyOf):
        return [term for part in node.parts for term in terms(part)]
    return []


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text.replace("\0", " ")
        self._at = 0
        self._depth = self._signs = 0

    def whole(self) -> AllOf:
        node = self._either()
        if self._peek("close"):
            raise QueryError("a bracket ) is closed that was not opened: put it in quotes to look for it")
        parts = node.parts if isinstance(node, AllOf) else (node,) if node is not None else ()
        if not parts:
            raise QueryError("the query has no words: say what to look for")
        return AllOf(parts)

    def _match(self) -> re.Match[str] | None:
        return _TOKEN.match(self._text, self._at)

    def _peek(self, kind: str) -> bool:
        found = self._match()
        return found is not None and found.lastgroup == kind

    def _take(self) -> None:
        found = self._match()
        assert found is not None
        self._at = found.end()

    def _is_word(self, *words: str) -> bool:
        found = self._match()
        return found is not None and found["word"] in words

    def _either(self) -> QueryNode | None:
        sides = [self._all()]
        while self._is_word("OR", "|"):
            self._take()
            sides.append(self._all())
        kept = [side for side in sides if side is not None]
        if len(kept) < 2:
            return kept[0] if kept else None
        return AnyOf(tuple(kept))

    def _all(self) -> QueryNode | None:
        parts: list[QueryNode] = []
        while (found := self._match()) is not None and found.lastgroup != "close" and not self._is_word("OR", "|"):
            if self._is_word("AND", "&"):
                self._take()
                continue
            part = self._part()
            if part is not None:
                parts.append(part)
        if not parts:
            return None
        return parts[0] if len(parts) == 1 else AllOf(tuple(parts))

    def _part(self) -> QueryNode | None:
        if self._is_word("NOT"):
            self._take()
            return self._signed("-")
        found = self._match()
        assert found is not None
        word = found["word"]
        if (
            word is not None
            and word[0] in "-+"
            and (len(word) > 1 or self._text[found.end() : found.end() + 1] in '("')
        ):
            self._at = found.start("word") + 1
            return self._signed(word[0])
        return self._primary("")

    def _signed(self, sign: str) -> QueryNode | None:
        """Parses what follows a sign, which may be another one, or nothing."""
        if self._match() is None or self._peek("close"):
            return None
        self._signs += 1
        if self._signs > MOST_DEPTH:
            raise QueryError(f"the query has - + NOT before each other more than {MOST_DEPTH} times: write it flatter")
        part = self._part()
        self._signs -= 1
        return Excluded(part) if part is not None and sign == "-" else part

    def _primary(self, field: str) -> QueryNode | None:
        found = self._match()
        assert found is not None
        if found.lastgroup == "open":
            return self._group(field)
        if found.lastgroup == "quote":
            return self._quoted(field)
        word = found["word"]
        named = None if field else _FIELD.match(word)
        if named is not None:
            return self._named(named[1], found.start("word") + named.end())
        self._at = found.end()
        return _term(word, field)

    def _group(self, field: str) -> QueryNode | None:
        self._take()
        self._depth += 1
        if self._depth > MOST_DEPTH:
            raise QueryError(f"the query has brackets in brackets more than {MOST_DEPTH} times: write it flatter")
        node = self._either()
        if not self._peek("close"):
            raise QueryError("a bracket ( is not closed: add a ) or put it in quotes to look for it")
        self._take()
        self._depth -= 1
        return within(node, field) if field and node is not None else node

    def _quoted(self, field: str) -> QueryNode | None:
        self._take()
        end = self._text.find('"', self._at)
        if end < 0:
            rest = self._text[self._at :].strip()
            if not rest:
                raise QueryError('a quotation mark has nothing behind it: leave it out, or write "heat pump"')
            raise QueryError(f'a quotation mark is not closed: write "{_short(rest)}" or leave the mark out')
        text, self._at = self._text[self._at : end], end + 1
        return _term(text.strip(), field, is_phrase=True) if text.strip() else None

    def _named(self, name: str, at: int) -> QueryNode | None:
        field = name.lower()
        if field not in FIELDS and field not in FILTERS:
            near = difflib.get_close_matches(field, [*FIELDS, *FILTERS], 1)
            hint = (
                f"did you mean {near[0]}:?"
                if near
                else f"there are {', '.join(f'{each}:' for each in FIELDS + FILTERS)}"
            )
            raise QueryError(
                f'there is no field {_short(name)}:; {hint} Or put it in quotes: "{_short(self._rest(at, name))}"'
            )
        self._at = at
        following = self._match()
        is_bare = self._text[at : at + 1].isspace() or following is None or following.lastgroup == "close"
        if is_bare:
            raise QueryError(f"{field}: needs a value right behind it, such as {_EXAMPLES[field]}")
        if field in FIELDS:
            return self._primary(field)
        return _filter(field, self._value())

    def _rest(self, at: int, name: str) -> str:
        return f"{name}:{self._text[at:].split()[0] if self._text[at:].split() else ''}".replace('"', "")

    def _value(self) -> str:
        if self._peek("quote"):
            node = self._quoted("")
            return node.text if isinstance(node, Term) else ""
        found = self._match()
        assert found is not None
        self._take()
        return found["word"] or ""


_EXAMPLES = {
    "title": "title:solar",
    "heading": "heading:solar",
    "text": "text:solar",
    "url": "url:manual",
    "anchor": 'anchor:"heat pump"',
    "site": "site:example.org",
    "lang": "lang:en",
    "filetype": "filetype:pdf",
    "after": "after:2026-01",
    "before": "before:2026-01-31",
}


def _term(text: str, field: str, *, is_phrase: bool = False) -> Term:
    """A word or phrase; a star at its end stands for the rest of a word."""
    start = text.rstrip("*")
    last = re.search(r"[^\W_]+$", start)
    if start == text or last is None:
        return Term(text, field, is_phrase)
    if len(last[0]) < SHORTEST_PREFIX and last[0].isascii():
        raise QueryError(f"{_short(text)} would find nearly everything: write two letters or more before the *")
    return Term(start, field, is_phrase, is_prefix=True)


def within(node: QueryNode, field: str) -> QueryNode:
    """The same query, with this field for all words that have none."""
    if isinstance(node, Term):
        return node if node.field else node._replace(field=field)
    if isinstance(node, AllOf):
        return AllOf(tuple(within(part, field) for part in node.parts))
    if isinstance(node, AnyOf):
        return AnyOf(tuple(within(part, field) for part in node.parts))
    return Excluded(within(node.part, field)) if isinstance(node, Excluded) else node


def _filter(kind: str, text: str) -> Filter:
    if kind in ("after", "before"):
        return Filter(kind, _time(kind, text))
    value = _site(text) if kind == "site" else text.lower().lstrip(".")
    if kind == "lang":
        value = value.replace("_", "-").partition("-")[0]
        if not (value.isalpha() and 2 <= len(value) <= 3):
            raise QueryError(f"lang:{_short(text)} is no language: two letters, such as {_EXAMPLES[kind]}")
    if not value:
        raise QueryError(f"{kind}: needs a value right behind it, such as {_EXAMPLES[kind]}")
    return Filter(kind, value)


def _site(text: str) -> str:
    host, slash, path = re.sub(r"^[a-z]+://", "", text, flags=re.I).removeprefix("*.").partition("/")
    path = path.rstrip("/*")
    if path.count("/") >= SITE_FOLDERS:
        raise QueryError(f"site:{_short(text)} names more than {SITE_FOLDERS} folders: shorten it, and add url:words")
    return host.lower().strip(".") + (f"/{path}" if slash and path else "")


def _time(kind: str, text: str) -> float:
    found = parse_date(text) if re.match(r"\d{4}", text) else None
    if found is None:
        raise QueryError(f"{kind}:{_short(text)} is no date: write it as {_EXAMPLES[kind]}")
    return datetime.fromtimestamp(found, UTC).timestamp()


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"
