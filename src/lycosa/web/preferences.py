"""What publishers say on the use of their content, and whether that forbids a purpose.

Six notations are read: Content-Usage (aipref), Content-Signal, TDMRep, RSL, `noai` and `noimageai`, and the robots
directives. Whatever of them concerns a page becomes *statements*, lines of text that are kept with it, as of the time
when it was fetched:

    PLACE NAME VALUE        robots.txt content-usage train-ai=n
                            header tdm-reservation 1
                            page robots noai

Each notation is combined as its text says: for Content-Usage the longest path of robots.txt counts, and of several
sources any `n` decides; a reservation in the page counts before one in the header, and that before tdmrep.json. No
text speaks of the others: between notations any "no" decides, then any "yes"; else nothing is known, and nothing is
forbidden. What a notation means for a purpose is in the tables below, and nowhere else. Pure; any text gives an answer.
Called by the crawl with every page, by its checks before a request, and by whoever shows or exports pages.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from functools import cache, lru_cache

from lycosa.web.links import parse_link_header
from lycosa.web.robots import MAX_USE_CHARS, Robots, RobotsDirectives, directive_words, longest_matches

MAX_STATEMENTS = 20  # of one page


class Purpose(StrEnum):
    """What a crawl or an export is for."""

    ARCHIVE = "archive"
    SEARCH = "search"
    AI_TRAIN = "ai-train"
    AI_INPUT = "ai-input"


class StatementPlace(StrEnum):
    """Where a statement was made."""

    ROBOTS = "robots.txt"
    FILE = "tdmrep.json"
    LICENCE = "licence"
    HEADER = "header"
    PAGE = "page"


Says = Mapping[Purpose, bool]  # what is allowed (True) or forbidden (False); what is absent is not spoken of

_A, _S, _T, _I = Purpose
# aipref-vocab-07: label → purpose.
CONTENT_USAGE: Mapping[str, Purpose] = {"train-ai": _T, "search": _S}
# contentsignals.org: label → purpose, and the levels of `use`. `immediate`: nothing is stored or used again;
# `reference`: index, excerpt and link; `full`: everything. A label beside `use` says more than the level does.
CONTENT_SIGNALS: Mapping[str, Purpose] = {"search": _S, "ai-train": _T, "ai-input": _I}
CONTENT_SIGNAL_USE: Mapping[str, Says] = {
    "immediate": {_A: False, _S: False, _T: False},
    "reference": {_S: True, _T: False},
    "full": {_A: True, _S: True, _T: True, _I: True},
}
# TDMRep: a reservation is one of all text and data mining, which is any automated analysis that generates information.
TDM_RESERVATION: Mapping[str, Says] = {"1": {_T: False, _I: False}, "0": {_T: True, _I: True}}
TDM_PLACES = (StatementPlace.PAGE, StatementPlace.HEADER, StatementPlace.FILE)  # the first that speaks counts
# RSL 1.0, and the labels of its drafts: usage → purposes.
RSL_USAGES: Mapping[str, tuple[Purpose, ...]] = {
    "all": (_A, _S, _T, _I),
    "ai-all": (_T, _I),
    "ai-train": (_T,),
    "train-ai": (_T,),
    "train-genai": (_T,),
    "ai-input": (_I,),
    "ai-use": (_I,),
    "search": (_S,),
}
# No standard has `noai`; who uses it asks not to be in training data. Bing takes noarchive for "not in answers and not
# in training", Google takes nosnippet for "not in AI overviews". None of them says that no copy may be kept.
DIRECTIVES: Mapping[str, Says] = {
    "noai": {_T: False},
    "noindex": {_S: False},
    "nosnippet": {_I: False},
    "noarchive": {_T: False, _I: False},
}
IMAGE_DIRECTIVES: Mapping[str, Says] = {"noimageai": {_T: False}}  # they count for documents that are images
USE_DIRECTIVES = ("noai", "noimageai")  # the directives that are kept as statements; others have fields of their own


# from their sources to statements


def host_statements(rules: Robots, path: str) -> list[str]:
    """What a host says on the use of the document at `path`."""
    if not rules.speaks_of_use:
        return []
    usages = longest_matches(rules.usages, path) if rules.usages else ()
    lines = [_line(StatementPlace.ROBOTS, "content-usage", value) for value in usages if value]
    lines += [_line(StatementPlace.ROBOTS, "content-signal", value) for value in rules.signals]
    reservations = longest_matches(rules.reservations, path) if rules.reservations else ()
    lines += [line for value in reservations for line in _reservation(StatementPlace.FILE, *value.split(" ", 1))]
    lines += [_line(StatementPlace.ROBOTS, "license", value) for value in rules.licenses]
    terms = longest_matches(rules.terms, path) if rules.terms else ()
    return lines + [_line(StatementPlace.LICENCE, "rsl", value) for value in terms if value]


def header_statements(fields: Mapping[str, str], agent: str) -> list[str]:
    """What the header fields of a response say; names are in lower case."""
    lines = list[str]()
    for name in ("content-usage", "content-signal"):
        if value := fields.get(name):
            lines.append(_line(StatementPlace.HEADER, name, value))
    if "tdm-reservation" in fields:
        lines += _reservation(StatementPlace.HEADER, fields["tdm-reservation"], fields.get("tdm-policy", ""))
    if "link" in fields:
        links = parse_link_header(fields["link"])
        urls = (link.href for link in links if link.type == RSL_TYPE and "license" in link.rels)
        lines += [_line(StatementPlace.HEADER, "license", url) for url in urls]
    if "x-robots-tag" in fields:
        lines += _directives(StatementPlace.HEADER, [fields["x-robots-tag"]], agent)
    return lines


def page_statements(metas: Iterable[str], agent: str) -> list[str]:
    """What a page says, by its `robots` (`Page.robots`)."""
    said = {name: value for name, value in map(_meta, metas) if name}
    lines = list[str]()
    if "tdm-reservation" in said:
        lines += _reservation(StatementPlace.PAGE, said["tdm-reservation"], said.get("tdm-policy", ""))
    if RSL_META in said:
        lines.append(_line(StatementPlace.PAGE, "license", said[RSL_META]))
    return lines + _directives(StatementPlace.PAGE, metas, agent)


RSL_TYPE = "application/rsl+xml"
# How an analysed page hands on what is no directive, among its `robots`: the name, a colon and a space, the value.
RSL_META = "rsl:license"
PAGE_METAS = ("tdm-reservation", "tdm-policy", RSL_META)


def _meta(text: str) -> tuple[str, str]:
    name, mark, value = text.partition(": ")
    return (name, value.strip()) if mark and name in PAGE_METAS else ("", "")


def _reservation(place: StatementPlace, value: str, policy: str = "") -> list[str]:
    value, policy = value.strip(), policy.strip()
    if value not in TDM_RESERVATION:
        return []
    lines = [_line(place, "tdm-reservation", value)]
    return [*lines, _line(place, "tdm-policy", policy)] if policy else lines


def _directives(place: StatementPlace, values: Iterable[str], agent: str) -> list[str]:
    said = directive_words(values, agent)
    words = [word for word in USE_DIRECTIVES if word in said]
    return [_line(place, "robots", ", ".join(words))] if words else []


def _line(place: StatementPlace, name: str, value: str) -> str:
    shown = " ".join(value[:MAX_USE_CHARS].split())
    return f"{place} {name} {shown if shown.isprintable() else ascii(shown)}"


def pack_statements(lines: Iterable[str]) -> str:
    """The statements on a page in one text, each once."""
    return "\n".join(list(dict.fromkeys(lines))[:MAX_STATEMENTS])


# from statements to an answer


def usage(statements: str, directives: RobotsDirectives, *, is_image: bool = False, now: float = 0.0) -> Says:
    """What a page's statements allow and forbid, together with its directives."""
    if directives.unavailable_s and directives.unavailable_s <= now:
        directives = RobotsDirectives(True, False, directives.noarchive, directives.nosnippet)
    words = tuple(word for word in DIRECTIVES if getattr(directives, word, False))
    return _usage(statements, words, is_image)


@lru_cache(4_096)
def _usage(statements: str, words: tuple[str, ...], is_image: bool) -> Says:
    combined: dict[Purpose, bool] = {}
    said = [says for _, says in _spoken(statements, is_image)] + [DIRECTIVES[word] for word in words]
    for purpose in Purpose:
        answers = [says[purpose] for says in said if purpose in says]
        if answers:
            combined[purpose] = all(answers)
    return combined


def objection(
    statements: str, directives: RobotsDirectives, purpose: Purpose, *, is_image: bool = False, now: float = 0.0
) -> str:
    """Why a page may not be used for a purpose: the statement or the directive that forbids it; empty if it may."""
    if not statements and directives == _NO_DIRECTIVES:
        return ""
    if usage(statements, directives, is_image=is_image, now=now).get(purpose, True):
        return ""
    for line, says in _spoken(statements, is_image):
        if not says.get(purpose, True):
            return line
    forbids = (word for word, says in DIRECTIVES.items() if not says.get(purpose, True))
    words = (word for word in forbids if getattr(directives, word, False))
    return f"robots directive {next(words, 'unavailable_after')}"


def host_objection(rules: Robots, path: str, purpose: Purpose) -> str:
    """Why a host forbids a purpose for the document at `path`, as far as nothing that comes with the document can say
    otherwise; empty if it does not. A tdmrep.json alone is no reason: the document's own header counts before it."""
    lines = (line for line in host_statements(rules, path) if not line.startswith(StatementPlace.FILE))
    return objection("\n".join(lines), _NO_DIRECTIVES, purpose)


_NO_DIRECTIVES = RobotsDirectives()


def _spoken(statements: str, is_image: bool) -> Iterator[tuple[str, Says]]:
    """The statements that count, each with what it says."""
    lines = [line.split(" ", 2) for line in statements.split("\n") if line.count(" ") >= 2]
    places = [place for place, name, _ in lines if name == "tdm-reservation"]
    tdm_place = next((place for place in TDM_PLACES if place in places), None)
    for place, name, value in lines:
        if name == "tdm-reservation" and place != tdm_place:
            continue
        read = _READERS.get(name)
        if read is not None and (says := read(value, is_image)):
            yield f"{place} {name} {value}", says


def _says_usage(value: str, _: bool) -> Says:
    members = parse_dictionary(value) or {}
    known = {CONTENT_USAGE[key]: word for key, word in members.items() if key in CONTENT_USAGE}
    return {purpose: word == "y" for purpose, word in known.items() if word in ("y", "n")}


def _says_signal(value: str, _: bool) -> Says:
    labels: dict[Purpose, bool] = {}
    level: Says = {}
    for member in value.lower().split(","):
        key, _mark, word = (part.strip() for part in member.partition("="))
        if key == "use":
            level = CONTENT_SIGNAL_USE.get(word, level)
        elif key in CONTENT_SIGNALS and word in ("yes", "no"):
            purpose = CONTENT_SIGNALS[key]
            labels[purpose] = labels.get(purpose, True) and word == "yes"
    return {**level, **labels}


def _says_terms(value: str, _: bool) -> Says:
    known = (member.partition("=") for member in value.split(", "))
    return {Purpose(name): word == "y" for name, _mark, word in known if name in set(Purpose)}


def _says_directives(value: str, is_image: bool) -> Says:
    table = {**DIRECTIVES, **IMAGE_DIRECTIVES} if is_image else DIRECTIVES
    return {purpose: may for word in value.split(", ") for purpose, may in table.get(word, {}).items()}


_READERS: Mapping[str, Callable[[str, bool], Says]] = {
    "content-usage": _says_usage,
    "content-signal": _says_signal,
    "tdm-reservation": lambda value, _: TDM_RESERVATION.get(value, {}),
    "rsl": _says_terms,
    "robots": _says_directives,
}


# structured fields (RFC 9651)

_KEY = r"[a-z*][a-z0-9_\-.*]*+"
_TOKEN = r"[A-Za-z*][A-Za-z0-9!#$%&'*+\-.^_`|~:/]*+"
_BARE = (
    r"(?:-?[0-9]{1,12}\.[0-9]{1,3}|[@]?-?[0-9]{1,15}"
    r'|"(?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*+"|%"(?:[\x20\x21\x23\x24\x26-\x7e]|%[0-9a-f]{2})*+"'
    rf"|:[A-Za-z0-9+/=]*+:|\?[01]|{_TOKEN})"
)
_PARAMETERS = rf"(?:; *+{_KEY}(?:={_BARE})?+)*+"
_ITEM = rf"{_BARE}{_PARAMETERS}"
_LIST = rf"\( *+(?:{_ITEM}(?: ++{_ITEM})*+)?+ *+\)"
_BETWEEN = re.compile(r"[ \t]*+,[ \t]*+(?!\Z)")


@cache
def _member() -> re.Pattern[str]:
    """Compiled on first use: that takes some milliseconds, and few crawls meet such a field."""
    return re.compile(rf"({_KEY})(?:=(?:({_TOKEN})|{_BARE}|{_LIST}))?+{_PARAMETERS}")


def parse_dictionary(text: str) -> dict[str, str] | None:
    """The members of a structured field that is a dictionary, those that are tokens with their value, others with an
    empty one; None where it is no dictionary."""
    text, found, at = text.strip(" "), dict[str, str](), 0
    while at < len(text):
        if (member := _member().match(text, at)) is None:
            return None
        found[member[1]] = member[2] or ""
        at = member.end()
        if at < len(text):
            if (comma := _BETWEEN.match(text, at)) is None:
                return None
            at = comma.end()
    return found
