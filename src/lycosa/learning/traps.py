"""Traps: which families of a host's URLs go on, which are slowed, which are given up; and which parameters say nothing.

A pattern is what the paths of one family have in common, with numbers and ids folded:

    /thread/4711?sid=9f3a…  →  /thread/#?sid=*        /loop/a/b/a/b/a/  →  /loop/+/

A number is `#`; a hash, UUID or random-looking id is `*`; from the first folder that comes back in a path on, all
folders are one `+`, so that a path loop stays one family however deep it gets. Parameters are sorted.

No trap is known by name. A page is *dull* when it says nothing new: its text was on this host before; or its family has
had a copy of the same document before (the first copy of each counts neither way: a mirror ends, a trap does not); or
its family gets ever deeper (each page a link further from the start than the last) and its text differs from an earlier
one in numbers only, or is next to nothing in the same frame. A near-copy of a known text is judged as a copy is: that
is known a little later, and until then a page that seems good is held (`settle`). A family has credit: a page with
something to say earns three, a dull one costs one (two, where nothing was earned and the host repeats itself). Without
credit it waits, twice as long after every dull page; after `MOST_WAITS` in a row it is dropped. A good page ends that.

A site of pages that say next to nothing is no trap if it ends. So a page that has a title of its own, or a text that
differs in numbers, counts neither way where it leads to nothing new: there are only as many such pages as others link
to. Nor does it in a family of files that one number tells apart, `/p#.html`, up to `FILES_ALLOWED`:
each may lead to the next one alone.

`QueryParameters` finds session ids and tracking marks: where `/a?sid=1` and `/a?sid=2` have the same text, and so it is
on several paths and hardly ever otherwise, `sid` is *idle* on this host, and of all URLs that differ in it alone one is
enough. A parameter stands in the query or, as `;jsessionid=…`, at the end of the path. URLs are asked for as written;
`plain` is for the seen test only.

Pure: `now` is an argument (wall clock: waits outlive a restart); memory a host is bounded. `claim` and `plain` come
before a request, `note` after it.
"""

import re
from collections import Counter, OrderedDict
from enum import IntEnum
from functools import lru_cache

import msgspec
import xxhash

from lycosa.web import native

CACHED = 1_024  # a URL is folded when its turn comes, and again when its page is there
MOST_CHARS = 160  # of a pattern; what is longer ends in a hash of the rest
ID_LEAST = 8  # shorter words of letters and digits are names with a number in them: `h264`, `s01e02`
ID_GROUP = 2.6  # letters or digits in a row, on average: below it a word is no human's. `dQw4w9WgXcQ` has 1.3
NUMBERS_IN_A_ROW = 4  # segments that are nothing but a number; further ones are a loop

# A UUID, an escape, or a word. Fixed lengths and one plain run: linear.
_UUID = r"[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}(?![0-9A-Za-z])"
WORD = re.compile(rf"{_UUID}|%[0-9A-Fa-f]{{2}}|[0-9A-Za-z]+")
_DIGIT = re.compile("[0-9]")
_DIGITS = re.compile("[0-9]+")
_GROUP = re.compile("[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_HEX = re.compile("[0-9a-f]+|[0-9A-F]+")


def path_pattern(path: str) -> str:
    """Return the pattern of a path with its query, as `Url.path` has them."""
    path, mark, query = path.partition("?")
    pattern = _fold_path(path)
    if mark:
        pattern += "?" + "&".join(sorted(map(_fold_parameter, query.split("&"))))
    if len(pattern) > MOST_CHARS:
        rest = xxhash.xxh3_64_hexdigest(pattern.encode("utf-8", "surrogatepass"))
        pattern = f"{pattern[: MOST_CHARS - 17]}~{rest}"
    return pattern


def is_id(word: str) -> bool:
    """Return whether a word was made by a machine: hexadecimal, a UUID, base 36 or base 62."""
    if len(word) < ID_LEAST or word.isdigit() or not _DIGIT.search(word):
        return False
    return bool(_HEX.fullmatch(word)) or "-" in word or len(word) < ID_GROUP * len(_GROUP.findall(word))


def _fold_path(path: str) -> str:
    folder, slash, name = path.rpartition("/")
    return _fold_folder(folder) + slash + _fold_words(name)


@lru_cache(CACHED)
def _fold_folder(path: str) -> str:
    # Cached: of most paths the folder was folded a moment ago.
    folders = path.split("/")
    words = [folder for folder in folders if folder and not folder.isdigit()]
    again = {word for word, times in Counter(words).items() if times > 1} if len(set(words)) < len(words) else ()
    numbers, folded = 0, []
    for folder in folders:
        if folder in again:
            folded.append("+")
            break
        numbers = numbers + 1 if folder.isdigit() else 0
        if numbers <= NUMBERS_IN_A_ROW:
            folded.append(_fold_words(folder))
    return "/".join(folded)


def _fold_words(text: str) -> str:
    return WORD.sub(_folded, text) if _DIGIT.search(text) else text


def _folded(match: re.Match[str]) -> str:
    word = match[0]
    if word[0] == "%":
        return word
    return "*" if is_id(word) else _DIGITS.sub("#", word)


def _fold_parameter(parameter: str) -> str:
    """Fold a parameter: a value with a digit in it is a number or an id, whatever it looks like."""
    name, equals, value = parameter.partition("=")
    if _DIGIT.search(value):
        value = "#" if value.isdigit() else "*"
    return f"{_fold_words(name)}{equals}{value}"


_NUMBERED_FILE = re.compile(r"/[^#*+?~]*#[^#*+?~/]*\.[A-Za-z]{2,5}")

FIRST_WAIT_S, MOST_WAITS = 60.0, 4  # 60, 120, 240, 480 seconds, then dropped
DROPPED = float("inf")  # seconds
START, MOST_CREDIT = 3, 64
MOST_FAMILIES, MOST_TEXTS, MOST_REFRAINS = 128, 192, 64
STORED_FAMILIES, STORED_REFRAINS, STORED_TEXTS = 32, 32, 32  # about 1.4 KB
TINY_CHARS = 100
FILES_ALLOWED = 1_000  # pages of a family of numbered files; an endless one costs no more than this
DEEPER_SHARE = 0.25  # links further from the start for every page of the family
DEEPER_LEAST = 3  # links; a family of a few levels is no chain
NOTORIOUS = 4  # times that a text was seen; before, it is forgiven for the new URLs beside it


class Judgement(IntEnum):
    """What a page adds to its family's credit."""

    GOOD = 3
    NEUTRAL = 0
    DULL = -1
    NOTORIOUS = -2


class PageSignature(msgspec.Struct, frozen=True):
    """What budgets know a page by; made by `sign_page`. `shape` is 0 unless the page is tiny. `is_copy`: its document
    is known under another URL; `is_first_copy`: and its family has had no copy of it before. `title` is 0 where there
    is none; `is_leaf`: the page led to no new URL."""

    depth: int
    text: int
    bare: int
    shape: int
    is_tiny: bool
    is_copy: bool = False
    is_first_copy: bool = False
    fresh: int = 0
    title: int = 0
    is_leaf: bool = False


def sign_page(
    *,
    text: bytes,
    images: str,
    structure: str,
    digest: bytes,
    depth: int,
    fresh: int = 0,
    title: str = "",
    is_leaf: bool = False,
) -> PageSignature:
    """The signature of a fetched page, by which budgets know it again.

    `text` is the page's in UTF-8, `images` the references of its images in one string: a picture is content too. Where
    there is neither (a PDF, an archive), the `digest` of the document speaks for it.

    `fresh`: how many URLs became known by this page that are neither of its own pattern nor of one that is slowed
    (`PatternBudgets.counts`).
    """
    frame = images.encode("utf-8", "surrogatepass")
    is_tiny = 0 < len(text) < 4 * TINY_CHARS and len(text.decode("utf-8", "replace")) < TINY_CHARS and not frame
    whole, bare = _hash_page(text, frame) if text or frame else (_hash(digest),) * 2
    shape = _hash_text(structure) if is_tiny else 0
    named = _hash_text(title) if title else 0
    return PageSignature(depth, whole, bare, shape, is_tiny, fresh=fresh, title=named, is_leaf=is_leaf)


def _hash_page(text: bytes, frame: bytes) -> tuple[int, int]:
    """The hashes of a text and its frame, with the digits of the text and without them."""
    if (kernel := native()) is not None:
        hashes: tuple[int, int] = kernel.hash_page(text, frame)
        return hashes
    return _hash(text + frame), _hash(text.translate(None, b"0123456789") + frame)


class UrlFamily(msgspec.Struct, array_like=True):
    """One pattern of a host. `waits` counts the dull pages since the credit ran out."""

    first_depth: int
    pages: int = 0
    dull: int = 0
    credit: int = START
    waits: int = 0
    until: float = 0.0

    @property
    def is_slowed(self) -> bool:
        return self.credit <= 0

    @property
    def is_dropped(self) -> bool:
        return self.waits > MOST_WAITS

    def is_ever_deeper(self, depth: int) -> bool:
        grown = depth - self.first_depth
        return grown >= DEEPER_LEAST and grown >= self.pages * DEEPER_SHARE


class BudgetRow(msgspec.Struct, array_like=True, omit_defaults=True):
    """A host's budgets as they are stored."""

    families: list[tuple[int, UrlFamily]] = []
    refrains: list[tuple[int, int]] = []
    texts: list[int] = []


class PatternBudgets:
    """The budgets of one host."""

    def __init__(self, row: BudgetRow | None = None) -> None:
        row = row or BudgetRow()
        # By the hash of the pattern, the latest last; those that something speaks against, and the others.
        self._dull = OrderedDict(row.families)
        self._harmless: OrderedDict[int, UrlFamily] = OrderedDict()
        self._texts = OrderedDict.fromkeys(row.texts)  # hashes of texts and frames seen once
        self._refrains = OrderedDict(row.refrains)  # of those seen again, with how often

    def __repr__(self) -> str:
        slowed = sum(family.is_slowed for family in self._dull.values())
        return f"<PatternBudgets families={len(self._dull) + len(self._harmless)} slowed={slowed}>"

    def claim(self, path: str, now: float) -> float:
        """Return for how many seconds a URL has to wait: 0 if it may be fetched now, infinity if its family is given
        up. A slowed family gets one request at the end of every wait, and a claim of 0 takes it."""
        family = self._dull.get(family_key(path))
        if family is None or not family.is_slowed:
            return 0.0
        if family.is_dropped:
            return DROPPED
        if now < family.until:
            return family.until - now
        family.until = now + FIRST_WAIT_S * 2**family.waits
        return 0.0

    def counts(self, path: str, pattern: str) -> bool:
        """Return whether a new URL speaks for the page of `pattern` that it was found on; see `sign_page`."""
        family = self._dull.get(family_key(path))
        return path_pattern(path) != pattern and (family is None or not family.is_slowed)

    def note(self, path: str, page: PageSignature, now: float, *, holds_good: bool = False) -> Judgement:
        """Judge a page that was fetched, and change its family's credit. A guess has hit only if its page is good. With
        `holds_good`, a page that is good changes nothing before `judge_held`."""
        key = family_key(path)
        family = self._family(key, page.depth)
        family.pages += 1
        judgement = self._judge(path, family, page)
        if not (holds_good and judgement is Judgement.GOOD):
            self._apply(key, family, judgement, now)
        return judgement

    def judge_held(self, path: str, page: PageSignature, judgement: Judgement, now: float) -> None:
        """Have the family of a page that was held earn or pay what it is worth."""
        key = family_key(path)
        family = self._dull.get(key) or self._harmless.get(key)
        if family is not None:  # it was not forgotten
            if judgement < 0 and self._has_own_title(page) and self._may_end(path, family, page):
                judgement = Judgement.NEUTRAL
            self._apply(key, family, judgement, now)

    def _apply(self, key: int, family: UrlFamily, judgement: Judgement, now: float) -> None:
        family.credit = max(0, min(MOST_CREDIT, family.credit + judgement))
        if judgement > 0:
            family.waits = 0
        elif judgement < 0:
            self._remember(key, family)
            if family.is_slowed:
                family.until = now + FIRST_WAIT_S * 2**family.waits
                family.waits = min(family.waits + 1, MOST_WAITS + 1)  # more than one may be in flight

    def _remember(self, key: int, family: UrlFamily) -> None:
        """Count a page that speaks against a family, which is stored from now on."""
        family.dull += 1
        if family.dull == 1:
            self._dull[key] = self._harmless.pop(key)

    def is_known_text(self, page: PageSignature) -> bool:
        """Return whether this text was on the host before; only then does `fresh` matter."""
        return page.text in self._texts or page.text in self._refrains

    def _family(self, key: int, depth: int) -> UrlFamily:
        for families in (self._harmless, self._dull):
            if key in families:
                families.move_to_end(key)
                return families[key]
        if len(self._harmless) + len(self._dull) >= MOST_FAMILIES:
            (self._harmless or self._dull).popitem(last=False)
        family = self._harmless[key] = UrlFamily(depth)
        return family

    def _judge(self, path: str, family: UrlFamily, page: PageSignature) -> Judgement:
        seen = self._count(page.text)
        if page.is_first_copy:
            return Judgement.NEUTRAL
        if seen and self._has_own_title(page) and self._may_end(path, family, page):
            return Judgement.NEUTRAL
        if seen >= NOTORIOUS:  # a family that has earned something may have its empty pages
            return Judgement.NOTORIOUS if family.credit <= START else Judgement.DULL
        if page.is_copy or seen:
            return Judgement.NEUTRAL if page.fresh else Judgement.DULL
        has_same_words = bool(self._count(page.bare ^ 1))
        has_same_frame = page.is_tiny and bool(self._count(page.shape ^ 2))
        if (has_same_words or has_same_frame) and family.is_ever_deeper(page.depth):
            return Judgement.NEUTRAL if self._may_end(path, family, page) else Judgement.DULL
        return Judgement.NEUTRAL if has_same_words else Judgement.GOOD

    def _has_own_title(self, page: PageSignature) -> bool:
        """Return whether the title of a page whose text says nothing was not seen before, on such pages."""
        return page.title != 0 and not self._count(page.title ^ 3)

    def _may_end(self, path: str, family: UrlFamily, page: PageSignature) -> bool:
        """Return whether a page that differs from others by little may be one of a family that ends."""
        if page.is_leaf:
            return True
        if family.pages > FILES_ALLOWED or not _NUMBERED_FILE.fullmatch(path_pattern(path)):
            return False
        self._remember(family_key(path), family)  # how many there were is to outlive this process
        return True

    def _count(self, text: int) -> int:
        """Count a text; return how often it was seen before. Those not seen for longest are forgotten, those seen once
        sooner."""
        if text in self._refrains:
            self._refrains[text] += 1
            self._refrains.move_to_end(text)
            return self._refrains[text] - 1
        if text in self._texts:
            del self._texts[text]
            self._refrains[text] = 2
            if len(self._refrains) > MOST_REFRAINS:
                self._refrains.popitem(last=False)
            return 1
        self._texts[text] = None
        if len(self._texts) > MOST_TEXTS:
            self._texts.popitem(last=False)
        return 0

    # keeping

    def pack(self) -> BudgetRow:
        """Return the part worth keeping: families that something speaks against, texts seen again, the latest ones."""
        dull = list(self._dull.items())[-STORED_FAMILIES:]
        return BudgetRow(dull, list(self._refrains.items())[-STORED_REFRAINS:], list(self._texts)[-STORED_TEXTS:])


@lru_cache(CACHED)
def family_key(path: str) -> int:
    """Return what the family of a path is known by."""
    return _hash_text(path_pattern(path))


def _hash(text: bytes) -> int:
    return xxhash.xxh3_64_intdigest(text)


MOST_NAMES = 8
MOST_NAME_CHARS = 32
MOST_SAMPLES = 128  # those with the smallest hashes: the same paths whenever they come by
MOST_PARAMETERS = 4  # of one URL that are looked at
SAME_LEAST = 4  # paths that must agree
SAME_SHARE = 16  # of agreeing for every one that does not


class ParameterEvidence(msgspec.Struct, array_like=True):
    """Paths on which a parameter made no difference, and on which it did."""

    same: int = 0
    other: int = 0

    @property
    def is_idle(self) -> bool:
        return self.same >= SAME_LEAST and self.same >= SAME_SHARE * self.other


class ParameterSample(msgspec.Struct, array_like=True):
    """A path without one parameter: the value it was fetched with, and the text."""

    value: int
    text: int
    is_counted: bool = False


class ParameterRow(msgspec.Struct, array_like=True, omit_defaults=True):
    """What is stored with the host: the names; samples come again."""

    names: dict[str, ParameterEvidence] = {}


class QueryParameters:
    """The query parameters of one host, and which of them make no difference."""

    def __init__(self, row: ParameterRow | None = None) -> None:
        self._names = dict(row.names) if row else {}
        self._samples: dict[int, ParameterSample] = {}

    def __repr__(self) -> str:
        return f"<Parameters idle={self.idle}>"

    @property
    def idle(self) -> list[str]:
        return [name for name, evidence in self._names.items() if evidence.is_idle] if self._names else []

    def plain(self, path: str) -> str:
        """Return the path without its idle parameters: equal for URLs that lead to the same document."""
        if not self._names or "=" not in path:
            return path
        base, parameters = _split(path)
        kept = [(name, text) for name, text in parameters if name not in self._names or not self._names[name].is_idle]
        return path if len(kept) == len(parameters) else _joined(base, kept)

    def was_fetched(self, plain: str) -> bool:
        """Return whether a URL with this plain form was fetched before its parameter was found idle, as far as samples
        go."""
        return any(_hash_text(f"{name}\n{plain}") in self._samples for name in self.idle)

    def note(self, path: str, text: int) -> None:
        """Compare a page that was fetched with earlier ones; `text` is a hash of its text."""
        if "=" not in path and not self._names:
            return
        base, parameters = _split(path)
        present = {name for name, _ in parameters}
        for i, (name, written) in enumerate(parameters[:MOST_PARAMETERS]):
            if name and self._is_watched(name):
                self._compare(name, _joined(base, parameters[:i] + parameters[i + 1 :]), written, text)
        for name in self._names.keys() - present:
            self._compare(name, path, "", text)

    def _is_watched(self, name: str) -> bool:
        if name not in self._names and len(self._names) < MOST_NAMES and len(name) <= MOST_NAME_CHARS:
            self._names[name] = ParameterEvidence()
        return name in self._names

    def _compare(self, name: str, rest: str, written: str, text: int) -> None:
        key, value = _hash_text(f"{name}\n{rest}"), _hash_text(written)
        sample, evidence = self._samples.get(key), self._names[name]
        if sample is None:
            self._samples[key] = ParameterSample(value, text)
            if len(self._samples) > MOST_SAMPLES:
                del self._samples[max(self._samples)]
        elif sample.value != value and not sample.is_counted:
            sample.is_counted = True
            if sample.text == text:
                evidence.same += 1
            else:
                evidence.other += 1

    def pack(self) -> ParameterRow:
        return ParameterRow(self._names)


def _split(path: str) -> tuple[str, list[tuple[str, str]]]:
    """Return the path and its parameters as (name, as written): `/a;s=1?b=2` → `/a`, [(;s, ;s=1), (b, b=2)]."""
    path, _, query = path.partition("?")
    found = [(part.partition("=")[0], part) for part in query.split("&")] if query else []
    base, mark, matrix = path.rpartition(";")
    if mark and "=" in matrix and "/" not in matrix:
        return base, [(f";{matrix.partition('=')[0]}", f";{matrix}"), *found]
    return path, found


def _joined(base: str, parameters: list[tuple[str, str]]) -> str:
    matrix = "".join(text for _, text in parameters if text[:1] == ";")
    query = "&".join(text for _, text in parameters if text[:1] != ";")
    return f"{base}{matrix}?{query}" if query else base + matrix


def _hash_text(text: str) -> int:
    return _hash(text.encode("utf-8", "surrogatepass"))
