"""Where a document must end for a parser's work to stay in proportion to its size; the rest is not analysed.

The parsing rules themselves have corners where work grows with the square of the size, browsers share them: 100,000
nested elements (12 s), 100,000 attributes on one tag (17 s), 3,000 unclosed `<b id=n>` across paragraphs (53 KB become
2 GB of tree). A parse cannot be stopped, so tags are counted before, in the bytes, whatever they stand in: by name,
since a full account would be a parser. The native kernel, whose own work is linear, ends a document at the same byte
(native/src/hazard.rs), so that a page is the same with both. Called by whoever parses HTML, before.
"""

import re
from collections import Counter, defaultdict

from lycosa.web.kernel import native

MAX_BYTES = 16 << 20
MAX_TAGS = 400_000
MAX_ATTRIBUTES = 500
# Elements open at once. Real pages stay below 100; browsers cut at 512. 5,000 cost the parser 30 ms.
MAX_OPEN = 5_000
# Unclosed formatting elements, which each later paragraph opens again, added up over all tags: these cost the parser
# half a second and 200 MB.
MAX_REOPENED = 500_000
# No more than three that are the same are opened again.
_SAME = 3
_FORMATTING_NAMES = b"b big code em font i nobr s small strike strong tt u".split()
_MOST_PLAIN = _SAME * len(_FORMATTING_NAMES)  # that can be open without attributes
# So few bytes cannot hold enough attributes to matter; so much of a tag tells it from others of its name.
_SMALL_BYTES = 64 * 1024
_TOLD_APART_BYTES = 4 * 1024
# Elements that hold nothing, or that their next of kind closes: however many, they do not nest.
_FLAT = frozenset(
    b"area base br col embed hr img input link meta param source track wbr "
    b"a p li dt dd td th tr tbody thead tfoot option".split()
)
# In drawings these hold nothing and end themselves; there may be thousands.
_DRAWN = frozenset(b"path polygon polyline circle ellipse rect line use stop".split())
_MAX_DRAWN = 50_000
_TAGS_TOGETHER = 1_000
_SHORT_TAG_BYTES = 256

_TAG = re.compile(rb"<(/?)([A-Za-z][^\t\n\f\r />]*+)")
_TAG_NAME = re.compile(rb"<(/?[A-Za-z][^\t\n\f\r />]*+)")
_FORMATTING_WITH_ATTRIBUTES = re.compile(  # with the look at the first letter it takes half as long
    rb"<(?=[bcefinstuBCEFINSTU])((?i:" + b"|".join(_FORMATTING_NAMES) + rb"))[\t\n\f\r /]"
)
_ATTRIBUTE = (
    rb"(?:[\t\n\f\r /]*+[^\t\n\f\r />][^\t\n\f\r />=]*+[\t\n\f\r ]*+"
    rb"(?:(?!=)|=[\t\n\f\r ]*+(?:\"[^\"]*+\"|'[^']*+'|(?![\"'])[^\t\n\f\r >]*+)))"
)
_ATTRIBUTES = re.compile(_ATTRIBUTE + rb"*+")
_REST_OF_TAG = re.compile(_ATTRIBUTE + rb"*+[\t\n\f\r /]*+>")
_CROWDED_TAG = re.compile(rb"<[A-Za-z][^\t\n\f\r />]*+" + _ATTRIBUTE + rb"{%d}" % (MAX_ATTRIBUTES + 1))


def cut_if_unsafe(body: bytes) -> bytes:
    """`body` (UTF-8) itself, or as much of its beginning as can be parsed safely."""
    kernel = native()
    length = safe_length(body) if kernel is None else kernel.safe_length(body)
    return body if length == len(body) else body[:length]


def safe_length(body: bytes) -> int:
    """How many of the body's bytes can be parsed safely."""
    length = min(len(body), MAX_BYTES)
    tags = body.count(b"<", 0, length)
    if tags > MAX_TAGS:
        length = len(b"<".join(body[:length].split(b"<", MAX_TAGS + 1)[:-1]))
        tags = MAX_TAGS
    if length > _SMALL_BYTES and (crowded := _CROWDED_TAG.search(body, 0, length)):
        length = crowded.start()
    if _reopens_few(body, length, tags) and (tags <= MAX_OPEN or _most_open(body, length) <= MAX_OPEN):
        return length
    return _end_of_sane_nesting(body, length)


def _reopens_few(body: bytes, length: int, tags: int) -> bool:
    """Are there so few formatting tags with attributes, or are these short and of so few kinds, that those to be opened
    again cannot be too many?"""
    most = MAX_REOPENED // max(1, tags) - _MOST_PLAIN
    if tags <= most or len(_FORMATTING_WITH_ATTRIBUTES.findall(body, 0, length)) <= most:
        return True
    kinds = set[tuple[bytes, bytes]]()
    for tag in _FORMATTING_WITH_ATTRIBUTES.finditer(body, 0, length):
        rest = _REST_OF_TAG.match(body, tag.end(1), min(tag.end() + _SHORT_TAG_BYTES, length))
        if rest is None:
            return False
        kinds.add((tag[1], rest[0]))
        if _SAME * len(kinds) > most:
            return False
    return True


def _most_open(body: bytes, length: int) -> int:
    """At least as many as are open at once: of some tags together it takes all those that close for the first and all
    those that open for the last. That tells enough of nearly every page, in less time than a full account."""
    still_open: Counter[bytes] = Counter()
    most = 0
    found = _TAG_NAME.findall(body, 0, length)
    for start in range(0, len(found), _TAGS_TOGETHER):
        some = Counter(found[start : start + _TAGS_TOGETHER])
        opened = {name: count for name, count in some.items() if name[:1] != b"/" and name.lower() not in _FLAT}
        most = max(most, still_open.total() + sum(opened.values()))
        still_open -= Counter({name[1:]: count for name, count in some.items() if name[:1] == b"/"})  # none below zero
        still_open.update(opened)
    return most


def _end_of_sane_nesting(body: bytes, length: int) -> int:
    """Where more elements are open, or to be opened again, than any real page has; a closing tag counts only for an
    open tag of its name."""
    still_open: defaultdict[bytes, int] = defaultdict(int)
    formatting: dict[bytes, list[tuple[bytes, int]]] = {name: [] for name in _FORMATTING_NAMES}  # attributes, depth
    same: defaultdict[tuple[bytes, bytes], int] = defaultdict(int)
    depth = drawn = opened_again = reopened = 0
    for tag in _TAG.finditer(body, 0, length):
        slash, name = tag.groups()
        name = name.lower()
        if name in _FLAT:
            pass
        elif slash:
            if still_open[name]:
                still_open[name] -= 1
                depth -= 1
                # One that was opened at another depth may still be opened again.
                if name in formatting and formatting[name] and formatting[name][-1][1] == depth:
                    kind = (name, formatting[name].pop()[0])
                    same[kind] -= 1
                    opened_again -= same[kind] < _SAME
        elif (
            name in _DRAWN and drawn < _MAX_DRAWN and still_open[b"svg"] and _is_closed_at_once(body, tag.end(), length)
        ):
            drawn += 1
        else:
            if name in formatting:
                kind = (name, _attributes(body, tag.end(), length))
                formatting[name].append((kind[1], depth))
                opened_again += same[kind] < _SAME
                same[kind] += 1
            still_open[name] += 1
            depth += 1
        reopened += opened_again
        if depth > MAX_OPEN or reopened > MAX_REOPENED:
            return tag.start()
    return length


def _is_closed_at_once(body: bytes, start: int, length: int) -> bool:
    return body[start : min(start + _TOLD_APART_BYTES, length)].partition(b">")[0].endswith(b"/")


def _attributes(body: bytes, start: int, length: int) -> bytes:
    found = _ATTRIBUTES.match(body, start, min(start + _TOLD_APART_BYTES, length))
    return found[0] if found else b""
