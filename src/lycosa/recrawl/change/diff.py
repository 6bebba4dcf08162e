"""The difference of two versions as users see it: lines of text that came and went, and where the structure differs.

Equal beginnings and ends are cut off first and the rest is compared only up to `MOST` pieces, so time is bounded
whatever the documents. Words that differ within a line are marked as in `[-old-] {+new+}`. Pure.
"""

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

import msgspec

from lycosa.recrawl.change.structure import changed_levels, element_tree, first_difference, level_table, outline
from lycosa.recrawl.change.verdict import Version
from lycosa.web import MediaKind as MediaKind

MOST = 1_000  # pieces compared, of each version
MOST_ELEMENTS = 300  # likewise; most of them have the same name as many others, which takes longer
MOST_WORDS = 400  # of a line; longer ones are shown whole, old and new
CONTEXT = 1  # pieces shown around a change
_WORD = re.compile(r"\s+|[^\s]+")


class StructureDiff(msgspec.Struct, frozen=True):
    """`where` is the first place that differs; `levels` are (level, elements before, after) of those that differ;
    `lines` are the elements around what differs, indented by their level and marked as those of a `Diff`."""

    where: str = ""
    levels: tuple[tuple[int, int, int], ...] = ()
    lines: tuple[str, ...] = ()


class Diff(msgspec.Struct, frozen=True):
    """`lines` begin with "+", "-", "~" (words differ), " " (context) or "@" (something is left out)."""

    lines: tuple[str, ...]
    structure: StructureDiff


def diff_versions(old: Version, new: Version) -> Diff:
    """The difference between two versions of a page: words, links, images and elements."""
    if not (old.is_read and new.is_read):
        sizes = f"{len(old.body):,} bytes became {len(new.body):,}"
        return Diff((f"@ other bytes: {sizes}",) if old.body != new.body else (), StructureDiff())
    before, after = old.content(), new.content()
    lines = list(lines_of(before.pieces, after.pieces))
    for name, mine, theirs in (("link", before.links, after.links), ("image", before.images, after.images)):
        lines += [
            line[:2] + f"{name} {line[2:]}" for line in lines_of(mine, theirs, context=0) if not line.startswith("@")
        ]
    return Diff(tuple(lines), _structure(old, new))


def _structure(old: Version, new: Version) -> StructureDiff:
    if {old.page.media.kind, new.page.media.kind} - {MediaKind.HTML, MediaKind.XHTML}:
        return StructureDiff()
    before, after = element_tree(old.body), element_tree(new.body)
    found = first_difference(before, after)
    if found is None:
        return StructureDiff()
    mine, theirs = level_table(before), level_table(after)
    levels = tuple(
        (level, *(counts[level - 1] if level <= len(counts) else 0 for counts in (mine, theirs)))
        for level in changed_levels(before, after)
    )
    lines = tuple(lines_of(outline(before), outline(after), most=MOST_ELEMENTS))
    return StructureDiff(str(found), levels, lines)  # type: ignore[arg-type]


def lines_of(old: Sequence[str], new: Sequence[str], *, context: int = CONTEXT, most: int = MOST) -> Iterator[str]:
    """The pieces that differ, with `context` pieces around them; `most` of them are compared one by one."""
    start, end = _common(old, new)
    left, right = old[start : len(old) - end], new[start : len(new) - end]
    if not left and not right:
        return
    yield from (f"  {piece}" for piece in old[max(0, start - context) : start])
    if max(len(left), len(right)) > most:
        yield f"@ {len(left):,} pieces became {len(right):,}: too many to compare one by one"
    else:
        yield from _blocks(left, right, context)
    yield from (f"  {piece}" for piece in new[len(new) - end : len(new) - end + context])


def _common(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """The number of pieces that are the same at the beginning and at the end."""
    shorter = min(len(old), len(new))
    start = next((i for i in range(shorter) if old[i] != new[i]), shorter)
    end = next((i for i in range(shorter - start) if old[-1 - i] != new[-1 - i]), shorter - start)
    return start, end


def _blocks(left: Sequence[str], right: Sequence[str], context: int) -> Iterator[str]:
    for what, a, b, c, d in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if what == "equal":
            if b - a > 2 * context:
                yield from (f"  {piece}" for piece in left[a : a + context])
                yield f"@ {b - a - 2 * context} unchanged"
                yield from (f"  {piece}" for piece in left[b - context : b] if context)
            else:
                yield from (f"  {piece}" for piece in left[a:b])
        elif what == "replace" and b - a == d - c:
            for mine, theirs in zip(left[a:b], right[c:d], strict=True):
                yield from _words(mine, theirs)
        else:
            yield from (f"- {piece}" for piece in left[a:b])
            yield from (f"+ {piece}" for piece in right[c:d])


def _words(old: str, new: str) -> Iterator[str]:
    mine, theirs = _WORD.findall(old), _WORD.findall(new)
    matcher = SequenceMatcher(None, mine, theirs, autojunk=False)
    if max(len(mine), len(theirs)) > 2 * MOST_WORDS or matcher.quick_ratio() < 0.3:
        yield f"- {old}"
        yield f"+ {new}"
        return
    parts = []
    for what, a, b, c, d in matcher.get_opcodes():
        gone, come = "".join(mine[a:b]), "".join(theirs[c:d])
        parts.append(gone if what == "equal" else (f"[-{gone}-]" if gone else "") + (f"{{+{come}+}}" if come else ""))
    yield f"~ {''.join(parts)}"
