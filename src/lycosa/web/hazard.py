"""Documents that would make the HTML parser's work grow with the square of their size, found before it begins.

The parsing rules themselves have such corners, browsers share them: 100,000 nested elements (12 s), 100,000 attributes
on one tag (17 s), 3,000 unclosed `<b id=n>` across paragraphs (53 KB become 2 GB of tree), or a few before many. A
parse cannot be stopped, so what looks like one of these is only analysed in its first bytes. The look is an estimate
over the bytes, no parse: an ordinary page costs it one count, a large one a few array operations. It knows the common
forms, not every disguise.
Called by whoever parses HTML, before.
"""

import re
from collections.abc import Iterator
from typing import TypeAlias

import numpy as np

# Up to here nothing can go far wrong (at worst some 0.3 s and 200 MB, of formatting tags), and four pages in five are
# smaller.
SMALL_TAGS = 1_500
SMALL_BYTES = 64 * 1024
# Of a document that is not safe, this much is parsed: at worst some 0.3 s and 130 MB, nearly always 1 ms.
UNSAFE_PARSED_BYTES = 8 * 1024

# Elements open at once. Real pages stay below 100; browsers cut at 512. 5,000 cost the parser 30 ms.
_MAX_OPEN = 5_000
# Unclosed formatting elements: each later paragraph opens them all again, but no more than three that are the same.
_MAX_FORMATTING = 400
_MAX_SAME = 3
# Elements that might be opened again, in all: these cost the parser half a second and 200 MB.
_MAX_REOPENED = 500_000
# Below this number of unclosed tags of any kind neither can be reached.
_SURELY_SAFE = _MAX_FORMATTING
_UNKNOWN = 1 << 40
_LONG_TAG_BYTES = 4 * 1024
_MAX_ATTRIBUTES = 1_000
# Of any stretch of `_LONG_TAG_BYTES` one whole block is part; a multiple of 1,024, see `_by_blocks`.
_BLOCK_BYTES = _LONG_TAG_BYTES // 2

_Octets: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.uint8]]"
_Flags: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.bool_]]"

_TAG = re.compile(rb"<(/?[a-z][^\t\n\f\r />]*)")
_QUOTED = re.compile(rb"\"[^\"]*+\"|'[^']*+'")
_SEPARATOR = re.compile(rb"[\t\n\f\r /]+")
_FORMATTING_NAMES = b"b big code em font i nobr s small strike strong tt u".split()
_FORMATTING = frozenset(_FORMATTING_NAMES)
_FORMATTING_TAG = (  # compiled when the first page needs it
    rb"(?i)<(/?)(" + b"|".join(_FORMATTING_NAMES) + rb")(?=[\t\n\f\r />])"
    rb"((?:[^>=]++|=[\t\n\f\r ]*+(?:\"[^\"]*+\"|'[^']*+')?+)*+)"
)
# Elements that hold nothing, or that their next of kind closes: however many, they do not nest.
_FLAT_NAMES = (
    b"area base br col embed hr img input link meta param source track wbr "
    b"a p li dt dd td th tr tbody thead tfoot option"
).split()
# In drawings these hold nothing and end themselves; there may be thousands.
_DRAWN = rb"(?i)<(?:path|polygon|polyline|circle|ellipse|rect|line|use|stop)\b[^<>]*/>"
_FLAT = frozenset(_FLAT_NAMES) | frozenset(b"/" + name for name in _FLAT_NAMES)


def _steps() -> "np.ndarray[tuple[int, int], np.dtype[np.int8]]":
    """What the two bytes after a `<` do to the number of open elements: a letter opens one, a slash closes one.

    Line breaks and images, of which a page may have thousands, are known by two letters and do nothing.
    """
    steps = np.zeros((256, 256), dtype=np.int8)
    for letter in b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz":
        steps[letter] = 1
    steps[ord("/")] = -1
    for first, second in (b"br", b"wb", b"hr", b"im"):
        steps[first, second] = steps[first - 32, second - 32] = 0
    return steps


def _name_lengths() -> "np.ndarray[tuple[int, int], np.dtype[np.int8]]":
    """The lengths of the names of formatting tags by their first two bytes; 0 for other tags."""
    lengths = np.zeros((256, 256), dtype=np.int8)
    for name in _FORMATTING_NAMES:
        for first in (name[0], name[0] - 32):
            for second in (name[1], name[1] - 32) if len(name) > 1 else b"\t\n\f\r />":
                lengths[first, second] = len(name) + 1
    return lengths


_STEPS = _steps()
_NAME_LENGTHS = _name_lengths()
_MAY_END = np.zeros(256, dtype=bool)
_MAY_END[list(b"\t\n\f\r /")] = True


def cut_if_unsafe(body: bytes) -> bytes:
    """`body` itself, or its beginning where the whole was built to choke a parser."""
    return body if is_safe_to_parse(body) else body[:UNSAFE_PARSED_BYTES]


def is_safe_to_parse(body: bytes) -> bool:
    """Whether the parser's work on `body` (UTF-8) can be expected to be in proportion to its size."""
    codes = np.frombuffer(body, dtype=np.uint8)
    is_open = codes == ord("<")
    tags = int(np.count_nonzero(is_open))
    if not tags or (tags <= SMALL_TAGS and len(body) <= SMALL_BYTES):
        return True
    if np.count_nonzero(codes == ord(">")) * 4 < tags:  # tags that never end become attributes of each other
        return False
    most_open = _most_open(codes, is_open)
    if most_open * tags <= _MAX_REOPENED and most_open <= _SURELY_SAFE:
        return True
    if most_open > _SURELY_SAFE and not _is_safe_by_tags(body, codes, is_open):
        return False
    if _most_formatting(codes, is_open, enough=_MAX_REOPENED // tags) * tags <= _MAX_REOPENED:
        return True
    return max(_open_formatting(body), default=0) * tags <= _MAX_REOPENED


def _most_formatting(codes: _Octets, is_open: _Flags, *, enough: int) -> int:
    """How many distinct formatting elements are open at once: at most as many as tags look so and have attributes.

    If those are more than `enough`, end tags count as well, whatever their names.
    """
    opens = is_open[:-3].nonzero()[0]
    first, second = codes[1:].take(opens), codes[2:].take(opens)
    lengths = _NAME_LENGTHS.take(first * np.uint16(256) + second)
    starts = lengths.nonzero()[0]
    ends = codes[np.minimum(opens[starts] + lengths[starts], len(codes) - 1)]
    with_attributes = int(np.count_nonzero(_MAY_END[ends]))
    if with_attributes <= enough:
        return with_attributes
    steps = (lengths > 0).astype(np.int32)
    steps -= (first == ord("/")) & (_NAME_LENGTHS.take(second * np.uint16(256) + codes[3:].take(opens)) > 0)
    walk = steps.cumsum()
    return int((walk - np.minimum.accumulate(np.minimum(walk, 0))).max(initial=0))


def _most_open(codes: _Octets, is_open: _Flags) -> int:
    """How many elements are open at once, at most, by counts of tags in blocks; more than any limit if a tag is long.

    Every `<` but that of a closing tag counts as an open element, and those of a block as all before its closing tags.
    A stretch of `_LONG_TAG_BYTES` without a `<` has a whole block in it.
    """
    whole_blocks, rest = divmod(len(codes), _BLOCK_BYTES)
    blocks = whole_blocks + bool(rest)
    opens = _by_blocks(is_open, blocks)
    closes = _by_blocks((codes[1:] == ord("/")) & is_open[:-1], blocks)
    most_open = (opens - 2 * closes).cumsum() + closes  # all of a block's opening tags, and none of its closing ones
    return int(most_open.max()) if opens[:whole_blocks].all() else _UNKNOWN


def _by_blocks(flags: _Flags, blocks: int) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """How many flags are set in each block: eight bytes added at a time, which 128 times cannot overflow."""
    whole = np.zeros(blocks * _BLOCK_BYTES, dtype=bool)
    whole[: len(flags)] = flags
    lanes = whole.view(np.uint64).reshape(-1, 128).sum(axis=1)
    counts: np.ndarray[tuple[int], np.dtype[np.int64]] = lanes.view(np.uint8).reshape(blocks, -1).sum(1, np.int64)
    return counts


def _is_safe_by_tags(body: bytes, codes: _Octets, is_open: _Flags) -> bool:
    """The same question, answered tag by tag."""
    opens = is_open[:-1].nonzero()[0]
    steps = _STEPS[codes[opens + 1], codes[np.minimum(opens + 2, len(codes) - 1)]]
    if int(steps.cumsum(dtype=np.int32).max(initial=0)) > _SURELY_SAFE and not _nests_reasonably(body):
        return False
    is_long = np.diff(opens, append=len(codes)) > _LONG_TAG_BYTES
    return not any(_is_crowded(body, int(at)) for at in opens[is_long])


def _nests_reasonably(body: bytes) -> bool:
    """Counts the open elements, tag by tag. A closing tag counts only for an open tag of its name."""
    still_open: dict[bytes, int] = {}
    depth = formatting = most_formatting = 0
    for tag in _TAG.findall(_without_drawn(body).lower()):
        if tag in _FLAT:
            continue
        is_end = tag[0] == ord("/")
        name = tag[1:] if is_end else tag
        if is_end and not still_open.get(name):
            continue
        step = -1 if is_end else 1
        still_open[name] = still_open.get(name, 0) + step
        depth += step
        if depth > _MAX_OPEN:
            return False
        if name in _FORMATTING:
            formatting += step
            most_formatting = max(formatting, most_formatting)
    return most_formatting <= _MAX_FORMATTING or all(count <= _MAX_FORMATTING for count in _open_formatting(body))


def _without_drawn(body: bytes) -> bytes:
    """The document without the elements of its drawings that end themselves."""
    *parts, rest = body.split(b"</svg>")
    if not parts:
        return body
    halves = [part.partition(b"<svg") for part in parts]
    kept = [before + start + re.sub(_DRAWN, b"", inside) for before, start, inside in halves]
    return b"</svg>".join((*kept, rest))


def _open_formatting(body: bytes) -> Iterator[int]:
    """After each formatting tag, how many elements the parser would open again: at most three that are the same.

    The same are those of one name with the same attributes: the first of four is forgotten. An end tag closes the last
    of its name.
    """
    still_open: dict[bytes, dict[int, bytes]] = {name: {} for name in _FORMATTING}  # by name: place → attributes
    places: dict[tuple[bytes, bytes], list[int]] = {}
    count = 0
    for place, (slash, written, attributes) in enumerate(re.findall(_FORMATTING_TAG, body)):
        name = written.lower()
        of_name = still_open[name]
        if slash:
            if of_name:
                places[name, of_name.popitem()[1]].pop()
                count -= 1
        else:
            same = places.setdefault((name, attributes), [])
            if len(same) == _MAX_SAME:
                del of_name[same.pop(0)]
                count -= 1
            same.append(place)
            of_name[place] = attributes
            count += 1
        yield count


def _is_crowded(body: bytes, at: int) -> bool:
    """Whether the tag at `at` has more attributes than any real one."""
    if body.find(b">", at, at + _LONG_TAG_BYTES) >= 0:
        return False
    end = body.find(b"<", at + 1)
    tag = _QUOTED.sub(b"", body[at : end if end >= 0 else len(body)]).partition(b">")[0]
    return len(_SEPARATOR.findall(tag)) > _MAX_ATTRIBUTES
