"""Sorted keys in runs, a list at a time: several such sources read as one, in either direction.

A run ascends and is not empty; the runs of a source follow each other, upwards or downwards. Reading goes only as far
ahead as a run of each source, and the merging itself is one native sort of sorted pieces. For `lycosa.frontier.trie`.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import chain

# As many as a block of a segment has.
RUN_KEYS = 128


def ahead(front: list[bytes], start: bytes) -> Iterator[list[bytes]]:
    """The front from `start` on in runs; found anew for every run, as the front may change in between."""
    at = bisect_left(front, start)
    while run := front[at : at + RUN_KEYS]:
        yield run
        at = bisect_right(front, run[-1])


def behind(front: list[bytes], end: bytes | None) -> Iterator[list[bytes]]:
    at = len(front) if end is None else bisect_left(front, end)
    while run := front[max(at - RUN_KEYS, 0) : at]:
        yield run
        at = bisect_left(front, run[0])


def merged(sources: list[Iterator[list[bytes]]]) -> Iterator[list[bytes]]:
    """One ascending run of runs from several: always as far as every source has been read."""
    heads = [(run, source) for source in sources if (run := next(source, None))]
    while len(heads) > 1:
        limit = min(run[-1] for run, _ in heads)
        parts, rest = [], []
        for run, source in heads:
            cut = bisect_right(run, limit)
            parts.append(run[:cut])
            if left := run[cut:] or next(source, []):
                rest.append((left, source))
        heads = rest
        if keys := sorted(chain.from_iterable(parts)):
            yield keys
    for run, source in heads:
        yield run
        yield from source


def merged_back(sources: list[Iterator[list[bytes]]]) -> Iterator[list[bytes]]:
    """As `merged` from the end: the later runs first, each ascending."""
    heads = [(run, source) for source in sources if (run := next(source, None))]
    while len(heads) > 1:
        limit = max(run[0] for run, _ in heads)
        parts, rest = [], []
        for run, source in heads:
            cut = bisect_left(run, limit)
            parts.append(run[cut:])
            if left := run[:cut] or next(source, []):
                rest.append((left, source))
        heads = rest
        if keys := sorted(chain.from_iterable(parts)):
            yield keys
    for run, source in heads:
        yield run
        yield from source
