"""The words for change: what a visit found (`Kind`), what users are told (`Word`), what a URL is then (`Presence`).

Records only. Their values are stored in the history: never rename one.
"""

from enum import StrEnum

import msgspec


class Kind(StrEnum):
    """What is different from the version before. `NEW` opens a page's history."""

    NONE = "none"
    VOLATILE = "volatile"  # only parts that change on every visit, or what is not main content
    TEXT = "text"
    STRUCTURE = "structure"
    IMAGE = "image"
    MOVED = "moved"
    GONE = "gone"
    BACK = "back"
    NEW = "new"


class Word(StrEnum):
    """The words for users."""

    NEW = "new"
    SAME = "same"
    CHANGED = "changed"
    REMOVED = "removed"


WORD_OF = {
    Kind.NONE: Word.SAME,
    Kind.VOLATILE: Word.SAME,
    Kind.TEXT: Word.CHANGED,
    Kind.STRUCTURE: Word.CHANGED,
    Kind.IMAGE: Word.CHANGED,
    Kind.MOVED: Word.CHANGED,
    Kind.GONE: Word.REMOVED,
    Kind.BACK: Word.NEW,
    Kind.NEW: Word.NEW,
}
# These leave the stored version as it is.
UNCHANGED = frozenset({Kind.NONE, Kind.VOLATILE})


class Presence(StrEnum):
    """What stands at a URL. To pass from one to another is a change of state, whatever the content."""

    PAGE = "page"
    FILE = "file"  # a document that is not read: PDF, archive
    IMAGE = "image"
    EMPTY = "empty"
    LOGIN = "login"
    MOVED = "moved"
    GONE = "gone"


class Picture(msgspec.Struct, array_like=True, frozen=True):
    """A picture of a page that has changed, and when that was found: the time of the row in the picture's history."""

    url: str
    at_s: float


class Verdict(msgspec.Struct, frozen=True):
    """What a comparison found. `also` are the other kinds that changed with it; `size` counts the parts that differ
    (elements, pieces of text, images); `where` is a place for the eye; `pictures` are those with other pixels."""

    kind: Kind
    where: str = ""
    size: int = 0
    also: tuple[Kind, ...] = ()
    pictures: tuple[Picture, ...] = ()

    @property
    def is_change(self) -> bool:
        return self.kind not in UNCHANGED

    @property
    def word(self) -> Word:
        return WORD_OF[self.kind]


SAME = Verdict(Kind.NONE)
