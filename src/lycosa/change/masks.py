"""Parts of a page that change on every visit: learned from what was seen, then left out of the comparison.

A piece of text or an address is a *skeleton* of words with *slots* for values in it: numbers, dates, tokens and the
like; "Read 812 times" is the skeleton "Read _ times" with the slot "812". A slot whose value was another one on two
visits, and on half of all visits since at least, is volatile. So words are never masked, whatever their mark-up, and
neither is a value that changed once: a new price is news, a counter is not. A slot is known by its skeleton, or where
several pieces have the same one, by that and its neighbour's. Pure. Called by `verdict`.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count

import msgspec
import xxhash

from lycosa.change.content import Content, digest_of

MOST_PARTS = 64  # a page; more is a list of values, and its changes are news
LEARNED_AFTER = 2  # changes seen
LEAST_SHARE = 0.5  # of the visits since a value was first seen to change
FORGET_AFTER = 6  # visits after which a slot that hardly changes is no longer watched

_UNITS = "milliseconds?|ms|seconds?|secs?|minutes?|mins?|hours?|hrs?|days?|weeks?|months?|years?"
_DATES = (
    "jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|"
    "nov(?:ember)?|dec(?:ember)?|mon(?:day)?|tue(?:s(?:day)?)?|wed(?:nesday)?|thu(?:rs(?:day)?)?|fri(?:day)?|"
    "sat(?:urday)?|sun(?:day)?|am|pm|utc|gmt|ago|yesterday|today|tomorrow|just|now"
)
# A value is anything with a digit in it, hexadecimal, a long token, or a word of dates. A slot is a run of values.
_VALUE = rf"\b(?:\w*\d\w*|[0-9a-f]{{6,}}|\w{{24,}}|{_UNITS}|{_DATES})\b"
_SLOT = re.compile(rf"{_VALUE}(?:[\s.,:/+%-]{{0,3}}{_VALUE})*", re.ASCII | re.IGNORECASE)
# Without a digit there is hardly a value, and to look for one takes its time.
_PLAIN = re.compile(r"\D*\Z", re.ASCII).match
_GAP = "\0"
_MASKED = "\3"


class Part(msgspec.Struct, array_like=True, frozen=True):
    """One slot that was seen to change: its skeleton's key, its number there, a hash of its latest value, how often it
    changed, on how many visits since it was first seen to, and whether it is left out. Where the version before cannot
    be read, slots are watched before they change: they count no visits until they do."""

    key: int
    slot: int
    value: int
    changed: int = 1
    seen: int = 1
    is_volatile: bool = False

    def judged(self) -> "Part":
        """Learned when it changed on most visits; unlearned only when it hardly ever did."""
        if self.is_volatile:
            is_volatile = self.seen < FORGET_AFTER or self.changed >= LEAST_SHARE / 2 * self.seen
        else:
            is_volatile = self.changed >= LEARNED_AFTER and self.changed >= LEAST_SHARE * self.seen
        return msgspec.structs.replace(self, is_volatile=is_volatile)


class Masks(msgspec.Struct, array_like=True, frozen=True):
    """What is known of a page's volatile parts."""

    parts: tuple[Part, ...] = ()

    def volatile(self) -> dict[int, set[int]]:
        """The slots to leave out, by their skeleton's key."""
        found: dict[int, set[int]] = {}
        for part in self.parts:
            if part.is_volatile:
                found.setdefault(part.key, set()).add(part.slot)
        return found

    def unchanged(self) -> "Masks":
        """After a visit on which nothing had changed."""
        if not self.parts:
            return self
        return Masks(tuple(msgspec.structs.replace(part, seen=part.seen + bool(part.changed)) for part in self.parts))

    def seen(self, new: Content) -> "Masks":
        """After a visit that found `new`. What is left out stays the same: the stored digest was made with it."""
        if not self.parts:
            return self
        return Masks(tuple(_counted(self.parts, dict(_slots(new.words)))))

    def learned(self, old: Content, new: Content) -> "Masks":
        """After a visit that found `new` where `old` was stored: what is left out may be more or less than before."""
        before, after = dict(_slots(old.words)), dict(_slots(new.words))
        known = {(part.key, part.slot) for part in self.parts}
        parts = [part.judged() for part in _counted(self.parts, after)]
        parts = [part for part in parts if part.is_volatile or part.seen < FORGET_AFTER]
        for key, values in after.items():
            others = before.get(key)
            if others is None or others == values or len(others) != len(values):
                continue
            parts += [
                Part(key, slot, _hash(value))
                for slot, (value, other) in enumerate(zip(values, others, strict=True))
                if value != other and (key, slot) not in known
            ]
        return Masks(tuple(parts[:MOST_PARTS]))

    def watching(self, new: Content) -> "Masks":
        """The same where what was there before cannot be read: all slots of `new` are watched from now on."""
        after = dict(_slots(new.words))
        parts = [part.judged() for part in _counted(self.parts, after)]
        parts = [part for part in parts if part.changed and (part.is_volatile or part.seen < FORGET_AFTER)]
        known = {(part.key, part.slot) for part in parts}
        parts += [
            Part(key, slot, _hash(value), changed=0, seen=0)
            for key, values in after.items()
            for slot, value in enumerate(values)
            if (key, slot) not in known
        ]
        return Masks(tuple(parts[:MOST_PARTS]))


def _counted(parts: Sequence[Part], after: dict[int, list[str]]) -> Iterator[Part]:
    """The parts with one visit more; of one whose text was edited nothing can be told."""
    for part in parts:
        values = after.get(part.key)
        if values is None or part.slot >= len(values):
            yield part
            continue
        value = _hash(values[part.slot])
        changed = part.changed + (value != part.value)
        yield msgspec.structs.replace(part, value=value, changed=changed, seen=part.seen + bool(changed))


def masked(strings: Sequence[str], volatile: dict[int, set[int]]) -> tuple[str, ...]:
    """The strings with the volatile slots left out."""
    if not volatile:
        return tuple(strings)
    found = list(strings)
    for place, key in _keys(strings):
        if slots := volatile.get(key):
            found[place] = _without(strings[place], slots)
    return tuple(found)


def _without(text: str, slots: set[int]) -> str:
    numbers = count()
    return _SLOT.sub(lambda match: _MASKED if next(numbers) in slots else match[0], text)


def masked_content(content: Content, volatile: dict[int, set[int]]) -> Content:
    """The content without its volatile slots."""
    if not volatile:
        return content
    words = masked(content.words, volatile)
    texts, links = len(content.pieces), len(content.links)
    return Content(words[:texts], words[texts : texts + links], words[texts + links :], content.tags)


def content_digest(content: Content, masks: Masks) -> bytes:
    """128 bits of the normalised main content without its volatile parts: equal digests are the same page."""
    left = masked_content(content, masks.volatile())
    return digest_of([left.pieces, left.links, left.images], left.tags)


def _keys(strings: Sequence[str]) -> Iterator[tuple[int, int]]:
    """(place, key) of every string that has a slot; the first of equal keys only."""
    skeletons = {
        place: skeleton
        for place, text in enumerate(strings)
        if (not _PLAIN(text) or "now" in text or "day" in text) and _GAP in (skeleton := _SLOT.sub(_GAP, text))
    }
    counts = Counter(skeletons.values())
    seen = set()
    for place, skeleton in skeletons.items():
        is_alone = counts[skeleton] == 1 and len(skeleton) > skeleton.count(_GAP)
        key = _hash(skeleton if is_alone else f"{_SLOT.sub(_GAP, strings[place - 1]) if place else ''}\1{skeleton}")
        if key not in seen:
            seen.add(key)
            yield place, key


def _slots(strings: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    for place, key in _keys(strings):
        yield key, _SLOT.findall(strings[place])


def _hash(text: str) -> int:
    return int(xxhash.xxh3_64_intdigest(text.encode("utf-8", "surrogatepass")))
