"""The papers' own way to tell a change (Y12): structure, then text, then images; it stops at the first difference.

All it needs of a page are its parameters: two strings, two codes, the values of its images. They are weak hashes (words
that change places keep every code), so the verdict does not rest on them; `make lab NAME=change` measures what they
miss. Pure.
"""

import msgspec

from lycosa.change.kinds import Kind
from lycosa.change.structure import Strings, differs
from lycosa.web.document import TextCodes
from lycosa.web.page import Page


class Parameters(msgspec.Struct, frozen=True):
    """The change parameters of a page; `images` are the values of its images in order, where they are known."""

    structure: Strings
    codes: TextCodes
    images: tuple[int, ...] = ()


def parameters_of(page: Page, images: tuple[int, ...] = ()) -> Parameters:
    return Parameters((page.structure_first, page.structure_last), page.codes, images)


def cascade(old: Parameters, new: Parameters) -> Kind:
    """What the parameters say changed first."""
    if differs(old.structure, new.structure):
        return Kind.STRUCTURE
    if text_differs(old.codes, new.codes):
        return Kind.TEXT
    return Kind.IMAGE if old.images != new.images else Kind.NONE


def text_differs(old: TextCodes, new: TextCodes) -> int | None:
    """1 or 2, the method whose code (Y9, Y10) differs; None when both are alike."""
    if old.mean_per_symbol != new.mean_per_symbol:
        return 1
    return 2 if old.root_of_squares != new.root_of_squares else None
