"""Patterns in which `*` stands for any run of characters, matched in time linear in pattern and text.

There is no other special character and no backtracking: each literal piece is looked for once, to the right of the
one before, which finds a match whenever there is one. Robots rules and URL filters are such patterns.
"""

from collections.abc import Sequence


def pieces_of(pattern: str) -> tuple[str, ...]:
    """The literal pieces between the stars; the first and the last may be empty, those between them are not."""
    first, *rest = pattern.split("*")
    return (first, *filter(None, rest[:-1]), rest[-1]) if rest else (first,)


def matches(pieces: Sequence[str], text: str, *, to_end: bool) -> bool:
    """Whether `text` begins with what the pieces describe, or with `to_end` is that and nothing more."""
    last = len(pieces) - 1
    if not last:
        return text == pieces[0] if to_end else text.startswith(pieces[0])
    if not text.startswith(pieces[0]):
        return False
    position = len(pieces[0])
    for piece in pieces[1:last]:
        position = text.find(piece, position)
        if position < 0:
            return False
        position += len(piece)
    if to_end:
        return text.endswith(pieces[last], position)
    return text.find(pieces[last], position) >= 0
