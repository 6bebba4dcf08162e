"""The verdict on a visit: what differs from the stored version. It rests on the digest of normalised content.

    presence differs     →  gone, moved, back: a change of state, whatever the content
    same bytes           →  none, nothing is read
    same content digest  →  volatile: only masked parts, or what is not main content
    else                 →  structure, text or image, in this order, with the place where they differ

Between two visits a page's digest and masks have to be kept. Where the old body is lost, two structure strings and two
text codes tell what changed first; they are weak hashes (words that change places keep every code), so the verdict does
not rest on them. The values of the enums are stored in histories: never rename one. Pure.
"""

from collections import Counter
from collections.abc import Callable
from enum import StrEnum

import msgspec

from lycosa.recrawl.change import structure
from lycosa.recrawl.change.content import Content, Masks, content_digest, content_of, masked_content
from lycosa.recrawl.change.ignored import IgnoredParts
from lycosa.recrawl.change.image import image_digest
from lycosa.recrawl.change.structure import Strings, structure_differs
from lycosa.web import MediaKind, Page, TextCodes


class ChangeKind(StrEnum):
    """What differs from the version before. `NEW` opens a page's history."""

    NONE = "none"
    VOLATILE = "volatile"  # only parts that change on every visit, or what is not main content
    TEXT = "text"
    STRUCTURE = "structure"
    IMAGE = "image"
    MOVED = "moved"
    GONE = "gone"
    BACK = "back"
    NEW = "new"


class ChangeWord(StrEnum):
    """The words that users read."""

    NEW = "new"
    SAME = "same"
    CHANGED = "changed"
    REMOVED = "removed"


WORD_OF = {
    ChangeKind.NONE: ChangeWord.SAME,
    ChangeKind.VOLATILE: ChangeWord.SAME,
    ChangeKind.TEXT: ChangeWord.CHANGED,
    ChangeKind.STRUCTURE: ChangeWord.CHANGED,
    ChangeKind.IMAGE: ChangeWord.CHANGED,
    ChangeKind.MOVED: ChangeWord.CHANGED,
    ChangeKind.GONE: ChangeWord.REMOVED,
    ChangeKind.BACK: ChangeWord.NEW,
    ChangeKind.NEW: ChangeWord.NEW,
}
# These leave the stored version as it is.
UNCHANGED = frozenset({ChangeKind.NONE, ChangeKind.VOLATILE})


class Presence(StrEnum):
    """What stands at a URL. A URL that passes from one to another has changed, whatever the content."""

    PAGE = "page"
    FILE = "file"  # a document that is not read: PDF, archive
    IMAGE = "image"
    EMPTY = "empty"
    LOGIN = "login"
    MOVED = "moved"
    GONE = "gone"


class ChangedImage(msgspec.Struct, array_like=True, frozen=True):
    """An image of a page that has changed, and the time of that change in the image's own history."""

    url: str
    at_s: float


class ChangeVerdict(msgspec.Struct, frozen=True):
    """The result of a comparison.

    `where` is the first difference as it is shown; `size` counts the parts that differ (elements, pieces of text,
    images); `also` are the other kinds that changed; `pictures` are the images with other pixels.
    """

    kind: ChangeKind
    where: str = ""
    size: int = 0
    also: tuple[ChangeKind, ...] = ()
    pictures: tuple[ChangedImage, ...] = ()

    @property
    def is_change(self) -> bool:
        return self.kind not in UNCHANGED

    @property
    def word(self) -> ChangeWord:
        return WORD_OF[self.kind]


SAME = ChangeVerdict(ChangeKind.NONE)


class PageParameters(msgspec.Struct, frozen=True):
    """The structure strings and text codes of a page, and the values of its images, if they are known."""

    structure: Strings
    codes: TextCodes
    images: tuple[int, ...] = ()


def parameters_of(page: Page, images: tuple[int, ...] = ()) -> PageParameters:
    return PageParameters((page.structure_first, page.structure_last), page.codes, images)


def compare_parameters(old: PageParameters, new: PageParameters) -> ChangeKind:
    """The kind of change that the parameters show first: structure, then text, then images."""
    if structure_differs(old.structure, new.structure):
        return ChangeKind.STRUCTURE
    if text_differs(old.codes, new.codes):
        return ChangeKind.TEXT
    return ChangeKind.IMAGE if old.images != new.images else ChangeKind.NONE


def text_differs(old: TextCodes, new: TextCodes) -> int | None:
    """The number, 1 or 2, of the text code that differs; None if both are the same."""
    if old.mean_per_symbol != new.mean_per_symbol:
        return 1
    return 2 if old.root_of_squares != new.root_of_squares else None


NO_MASKS = Masks()
_QUOTE = 60  # letters of a piece of text that are shown
_READ = frozenset((MediaKind.HTML, MediaKind.XHTML, MediaKind.XML, MediaKind.FEED, MediaKind.TEXT))
# A page that asks for a password and says little else.
_LOGIN_TEXT = 1_500
_PASSWORD = (b'type="password"', b"type=password", b"type='password'")


class Version(msgspec.Struct, frozen=True):
    """A document as it was fetched, and what a comparison leaves out of it."""

    page: Page
    body: bytes
    ignored: IgnoredParts | None = None

    @property
    def is_read(self) -> bool:
        """False for a document that no analyser reads: a PDF, an image. It has bytes and no words."""
        return self.page.media.kind in _READ

    def content(self) -> Content:
        return content_of(self.page, self.body, self.ignored)


class Comparison(msgspec.Struct, frozen=True):
    """A verdict, the masks after it, and the digest under these masks of the content that is stored from now on."""

    verdict: ChangeVerdict
    masks: Masks
    digest: bytes


def presence_of(page: Page, body: bytes) -> Presence:
    """The presence that a response with status 200 shows."""
    if page.media.kind is MediaKind.IMAGE:
        return Presence.IMAGE
    if page.media.kind not in _READ:
        return Presence.EMPTY if not body else Presence.FILE
    if not body.strip() or not (page.text_utf8 or page.links.hrefs or page.title):
        return Presence.EMPTY
    if len(page.text) < _LOGIN_TEXT and any(mark in body.lower() for mark in _PASSWORD):
        return Presence.LOGIN
    return Presence.PAGE


def change_of_state(old: Presence, new: Presence, essence: str = "") -> ChangeVerdict | None:
    """The verdict on a URL whose presence has changed; None if it has not. `essence` is its media type now."""
    if old is new:
        return None
    where = f"{old} → {essence if essence and new in (Presence.FILE, Presence.IMAGE) else new}"
    if new is Presence.MOVED:
        return ChangeVerdict(ChangeKind.MOVED, where)
    if new is Presence.PAGE or (new in (Presence.FILE, Presence.IMAGE) and old is Presence.GONE):
        return ChangeVerdict(ChangeKind.BACK, where)
    return ChangeVerdict(ChangeKind.GONE, where)


def judge_page(
    new: Version, masks: Masks, digest: bytes, stored: Callable[[], Version | None], known: PageParameters | None = None
) -> Comparison:
    """Compares a new version with the stored one.

    The stored version is read only if its digest under the masks differs. If it cannot be read, its parameters in
    `known` tell what has changed.
    """
    content = new.content()
    if digest and content_digest(content, masks) == digest:
        return Comparison(ChangeVerdict(ChangeKind.VOLATILE), masks.seen(content), digest)
    old = stored()
    if old is None:
        masks = masks.watching(content)
        return Comparison(_by_parameters(known, new, digest), masks, content_digest(content, masks))
    return _compare(old, new, old.content(), content, masks)


def digest_of_content(page: Page, body: bytes, ignored: IgnoredParts | None = None) -> bytes:
    """The digest that `judge_page` and `judge_file` go by, for a document whose body will not be kept."""
    if page.media.kind is MediaKind.IMAGE:
        return image_digest(body)
    return content_digest(content_of(page, body, ignored), NO_MASKS)


def _by_parameters(old: PageParameters | None, version: Version, digest: bytes) -> ChangeVerdict:
    """The verdict by the structure strings and text codes of the version before, whose body is lost. `digest` is
    that of its content, if it is known."""
    new = parameters_of(version.page)
    kind = compare_parameters(old, new) if old is not None else ChangeKind.NONE
    if old is not None and kind is ChangeKind.STRUCTURE:
        return ChangeVerdict(kind, *_strings_place(old.structure, new.structure))
    if old is not None and kind is ChangeKind.TEXT:
        first = f"{old.codes.mean_per_symbol:.6g} → {new.codes.mean_per_symbol:.6g}"
        second = f"{old.codes.root_of_squares:.6g} → {new.codes.root_of_squares:.6g}"
        return ChangeVerdict(kind, f"text codes {first}, {second}", 1)
    why = "other content, with the same strings and codes" if digest else "the version before cannot be read"
    return ChangeVerdict(ChangeKind.TEXT, why, 1)


def _strings_place(old: structure.Strings, new: structure.Strings) -> tuple[str, int]:
    """Where the structure strings differ first, and how many tags came, went or were replaced."""
    number = structure.structure_differs(old, new) or 1
    before, after = old[number - 1], new[number - 1]
    others = [at for at, (a, b) in enumerate(zip(before, after, strict=False), start=1) if a != b]
    first = others[0] if others else min(len(before), len(after)) + 1
    where = f"structure string {number} from tag {first} on: {len(before)} tags, then {len(after)}"
    return where, abs(len(after) - len(before)) or len(others)


def judge_file(presence: Presence, new: bytes, digest: bytes, stored: Callable[[], Version | None]) -> Comparison:
    """Compares a document that no analyser reads and whose bytes differ: an image may still show the same pixels.
    `digest` is that of the stored pixels, if it is known."""
    if presence is not Presence.IMAGE:
        return Comparison(ChangeVerdict(ChangeKind.TEXT, "other bytes", 1), NO_MASKS, b"")
    shown = image_digest(new)
    if shown and not digest:
        old = stored()
        digest = image_digest(old.body) if old else b""
    if shown and shown == digest:
        return Comparison(ChangeVerdict(ChangeKind.VOLATILE), NO_MASKS, shown)
    return Comparison(
        ChangeVerdict(ChangeKind.IMAGE, "other pixels" if shown and digest else "other bytes", 1), NO_MASKS, shown
    )


def compare(old: Version, new: Version, masks: Masks = NO_MASKS) -> Comparison:
    """Compares two versions and learns volatile parts from them."""
    return _compare(old, new, old.content(), new.content(), masks)


def _compare(old: Version, new: Version, before: Content, after: Content, masks: Masks) -> Comparison:
    learned = masks.learned(before, after)
    volatile = learned.volatile()
    left, right = masked_content(before, volatile), masked_content(after, volatile)
    if left == right:
        verdict = SAME if old.body == new.body else ChangeVerdict(ChangeKind.VOLATILE)
        return Comparison(verdict, learned, content_digest(before, learned))
    kinds = [ChangeKind.STRUCTURE] if left.tags != right.tags else []
    kinds += [ChangeKind.TEXT] if (left.pieces, left.links) != (right.pieces, right.links) else []
    kinds += [ChangeKind.IMAGE] if left.images != right.images else []
    where, size = _place(kinds[0], old, new, left, right)
    verdict = ChangeVerdict(kinds[0], where, size, tuple(kinds[1:]))
    return Comparison(verdict, learned, content_digest(after, learned))


def _place(kind: ChangeKind, old: Version, new: Version, left: Content, right: Content) -> tuple[str, int]:
    """Where a change is, and how many parts differ."""
    if kind is ChangeKind.STRUCTURE:
        before, after = Counter(left.tags), Counter(right.tags)
        return _structure_place(old, new), ((before - after) + (after - before)).total() or 1
    mine, theirs = left.images, right.images
    if kind is ChangeKind.TEXT:
        mine, theirs = (left.pieces, right.pieces) if left.pieces != right.pieces else (left.links, right.links)
    return _text_place(mine, theirs), _differing(mine, theirs)


def _structure_place(old: Version, new: Version) -> str:
    if new.page.media.kind not in (MediaKind.HTML, MediaKind.XHTML):
        return ""
    found = structure.first_difference(structure.element_tree(old.body), structure.element_tree(new.body))
    return str(found) if found else ""


def _differing(left: tuple[str, ...], right: tuple[str, ...]) -> int:
    """The number of strings that came or went; if there are none, of those that changed places."""
    before, after = Counter(left), Counter(right)
    came, went = (after - before).total(), (before - after).total()
    return max(came, went) or sum(a != b for a, b in zip(left, right, strict=False))


def _text_place(left: tuple[str, ...], right: tuple[str, ...]) -> str:
    """The first string that differs: as it is now, or as it was if it is gone."""
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
