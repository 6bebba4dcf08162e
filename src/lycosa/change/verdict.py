"""The verdict on a visit: what is different from the stored version, resting on the digest of normalised content.

    presence another     →  gone, moved, back: a change of state, whatever the content
    same bytes           →  none, nothing is read
    same content digest  →  volatile: only masked parts or what is not main content
    else                 →  structure, text or image, in the order of Y12, with the place where they differ

What has to be kept of a page between two visits is a digest and its masks. Pure.
"""

from collections import Counter
from collections.abc import Callable

import msgspec

from lycosa.change import structure
from lycosa.change.cascade import Parameters, cascade, parameters_of
from lycosa.change.content import Content, content_of
from lycosa.change.image import image_digest
from lycosa.change.kinds import SAME, Kind, Presence, Verdict
from lycosa.change.masks import Masks, content_digest, masked_content
from lycosa.web.media import Kind as MediaKind
from lycosa.web.page import Page

NO_MASKS = Masks()
_QUOTE = 60  # letters of a piece of text that are shown
_READ = frozenset((MediaKind.HTML, MediaKind.XHTML, MediaKind.XML, MediaKind.FEED, MediaKind.TEXT))
# A page that asks for a password and says little else.
_LOGIN_TEXT = 1_500
_PASSWORD = (b'type="password"', b"type=password", b"type='password'")


class Version(msgspec.Struct, frozen=True):
    """A document as it was fetched."""

    page: Page
    body: bytes

    @property
    def is_read(self) -> bool:
        """False for a document that no analyser reads: a PDF, an image. It has bytes and no words."""
        return self.page.media.kind in _READ

    def content(self) -> Content:
        return content_of(self.page, self.body)


class Compared(msgspec.Struct, frozen=True):
    """A verdict, the masks after it, and the digest of the content that is stored from now on, under these masks."""

    verdict: Verdict
    masks: Masks
    digest: bytes


def presence_of(page: Page, body: bytes) -> Presence:
    """What an answer of 200 is."""
    if page.media.kind is MediaKind.IMAGE:
        return Presence.IMAGE
    if page.media.kind not in _READ:
        return Presence.EMPTY if not body else Presence.FILE
    if not body.strip() or not (page.text_utf8 or page.links.hrefs or page.title):
        return Presence.EMPTY
    if len(page.text) < _LOGIN_TEXT and any(mark in body.lower() for mark in _PASSWORD):
        return Presence.LOGIN
    return Presence.PAGE


def change_of_state(old: Presence, new: Presence, essence: str = "") -> Verdict | None:
    """The verdict when a URL is no longer what it was; None when it is. `essence` is its media type now."""
    if old is new:
        return None
    where = f"{old} → {essence if essence and new in (Presence.FILE, Presence.IMAGE) else new}"
    if new is Presence.MOVED:
        return Verdict(Kind.MOVED, where)
    if new is Presence.PAGE or (new in (Presence.FILE, Presence.IMAGE) and old is Presence.GONE):
        return Verdict(Kind.BACK, where)
    return Verdict(Kind.GONE, where)


def judge(
    new: Version, masks: Masks, digest: bytes, stored: Callable[[], Version | None], known: Parameters | None = None
) -> Compared:
    """What is different in `new`. The stored version is asked for only where its digest, under the masks, does not
    already say that nothing is; where it cannot be had, its parameters in `known` tell what is different."""
    content = new.content()
    if digest and content_digest(content, masks) == digest:
        return Compared(Verdict(Kind.VOLATILE), masks.seen(content), digest)
    old = stored()
    if old is None:
        masks = masks.watching(content)
        return Compared(_by_parameters(known, new, digest), masks, content_digest(content, masks))
    return _compare(old, new, old.content(), content, masks)


def digest_of_content(page: Page, body: bytes) -> bytes:
    """The digest that `judge` goes by, for a document whose body will not be kept: that of its content, or of an
    image's pixels."""
    if page.media.kind is MediaKind.IMAGE:
        return image_digest(body)
    return content_digest(content_of(page, body), NO_MASKS)


def _by_parameters(old: Parameters | None, version: Version, digest: bytes) -> Verdict:
    """What is different, by the strings and codes of the version before (Y7, Y9, Y10) in place of its body; `digest` is
    that of its content, if it is known."""
    new = parameters_of(version.page)
    kind = cascade(old, new) if old is not None else Kind.NONE
    if old is not None and kind is Kind.STRUCTURE:
        return Verdict(kind, *_strings_place(old.structure, new.structure))
    if old is not None and kind is Kind.TEXT:
        first = f"{old.codes.mean_per_symbol:.6g} → {new.codes.mean_per_symbol:.6g}"
        second = f"{old.codes.root_of_squares:.6g} → {new.codes.root_of_squares:.6g}"
        return Verdict(kind, f"text codes {first}, {second}", 1)
    why = "other content, with the same strings and codes" if digest else "the version before cannot be read"
    return Verdict(Kind.TEXT, why, 1)


def _strings_place(old: structure.Strings, new: structure.Strings) -> tuple[str, int]:
    """Where the structure strings differ first, and how many tags came or went, or are others."""
    number = structure.differs(old, new) or 1
    before, after = old[number - 1], new[number - 1]
    others = [at for at, (a, b) in enumerate(zip(before, after, strict=False), start=1) if a != b]
    first = others[0] if others else min(len(before), len(after)) + 1
    where = f"structure string {number} from tag {first} on: {len(before)} tags, then {len(after)}"
    return where, abs(len(after) - len(before)) or len(others)


def judge_file(presence: Presence, new: bytes, digest: bytes, stored: Callable[[], Version | None]) -> Compared:
    """What is different in a document that is not read, its bytes being others: an image may still show the same.
    `digest` is that of the stored pixels, where it is known."""
    if presence is not Presence.IMAGE:
        return Compared(Verdict(Kind.TEXT, "other bytes", 1), NO_MASKS, b"")
    shown = image_digest(new)
    if shown and not digest:
        old = stored()
        digest = image_digest(old.body) if old else b""
    if shown and shown == digest:
        return Compared(Verdict(Kind.VOLATILE), NO_MASKS, shown)
    return Compared(Verdict(Kind.IMAGE, "other pixels" if shown and digest else "other bytes", 1), NO_MASKS, shown)


def compare(old: Version, new: Version, masks: Masks = NO_MASKS) -> Compared:
    """What is different in `new`; learns volatile parts from it."""
    return _compare(old, new, old.content(), new.content(), masks)


def _compare(old: Version, new: Version, before: Content, after: Content, masks: Masks) -> Compared:
    learned = masks.learned(before, after)
    volatile = learned.volatile()
    left, right = masked_content(before, volatile), masked_content(after, volatile)
    if left == right:
        verdict = SAME if old.body == new.body else Verdict(Kind.VOLATILE)
        return Compared(verdict, learned, content_digest(before, learned))
    kinds = [Kind.STRUCTURE] if left.tags != right.tags else []
    kinds += [Kind.TEXT] if (left.pieces, left.links) != (right.pieces, right.links) else []
    kinds += [Kind.IMAGE] if left.images != right.images else []
    where, size = _place(kinds[0], old, new, left, right)
    verdict = Verdict(kinds[0], where, size, tuple(kinds[1:]))
    return Compared(verdict, learned, content_digest(after, learned))


def _place(kind: Kind, old: Version, new: Version, left: Content, right: Content) -> tuple[str, int]:
    """Where a change is, and how large."""
    if kind is Kind.STRUCTURE:
        before, after = Counter(left.tags), Counter(right.tags)
        return _structure_place(old, new), ((before - after) + (after - before)).total() or 1
    mine, theirs = left.images, right.images
    if kind is Kind.TEXT:
        mine, theirs = (left.pieces, right.pieces) if left.pieces != right.pieces else (left.links, right.links)
    return _text_place(mine, theirs), _differing(mine, theirs)


def _structure_place(old: Version, new: Version) -> str:
    if new.page.media.kind not in (MediaKind.HTML, MediaKind.XHTML):
        return ""
    found = structure.locate(structure.tree_of(old.body), structure.tree_of(new.body))
    return str(found) if found else ""


def _differing(left: tuple[str, ...], right: tuple[str, ...]) -> int:
    """Strings that came; where none did, those that went, or changed places."""
    before, after = Counter(left), Counter(right)
    came, went = (after - before).total(), (before - after).total()
    return max(came, went) or sum(a != b for a, b in zip(left, right, strict=False))


def _text_place(left: tuple[str, ...], right: tuple[str, ...]) -> str:
    """The first string that is another one, as it is now, or as it was if it is gone."""
    for number, (a, b) in enumerate(zip(left, right, strict=False)):
        if a != b:
            shown = left[number] if len(right) < len(left) else right[number]
            break
    else:
        number = min(len(left), len(right))
        shown = (right if len(right) > len(left) else left)[number]
    at = next((i for i, (a, b) in enumerate(zip(*_pair(left, right, number), strict=False)) if a != b), 0)
    start = max(0, at - _QUOTE // 3)
    end = start + _QUOTE
    return f"{number + 1}: {'…' if start else ''}{shown[start:end]}{'…' if len(shown) > end else ''}"


def _pair(left: tuple[str, ...], right: tuple[str, ...], number: int) -> tuple[str, str]:
    return (left[number] if number < len(left) else ""), (right[number] if number < len(right) else "")
