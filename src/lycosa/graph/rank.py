"""Ranks by links: PageRank of pages, harmonic centrality of hosts. Pure arrays, no SciPy.

PageRank: a page gives its rank to the pages it points to in equal parts, a page without links to all; damping 0.85,
until a step moves less than 1e-8 in all. Harmonic centrality of a host: the sum of 1/distance over all hosts from which
links lead to it. Pages and hosts are numbers from 0; a link given twice counts once, one to itself not at all.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lycosa.graph.varint import I64

F64 = NDArray[np.float64]
I32 = NDArray[np.int32]

DAMPING = 0.85
TOLERANCE = 1e-8  # L1 of a step: the ranks are then within 6e-8 of their limit, all together
STEPS_MOST = 1_000
CHUNK_LINKS = 1 << 18  # gathered at a time: fits the processor's cache
HOSTS_EXACT = 16_384  # among more, the distances from so many of them stand for all
_LANES = 64  # hosts whose distances are found together, one bit each


class Graph(NamedTuple):
    """Links by target: those of target i come from `sources[starts[i]:starts[i + 1]]`."""

    starts: I64
    sources: I32

    @property
    def size(self) -> int:
        return len(self.starts) - 1

    @classmethod
    def of(cls, sources: NDArray[np.integer], targets: NDArray[np.integer], size: int) -> "Graph":
        pairs = targets.astype(np.int64) * size + sources
        return cls.of_pairs(pairs, size)

    @classmethod
    def of_pairs(cls, pairs: I64, size: int) -> "Graph":
        """From links written as target × size + source; `pairs` is sorted in place."""
        pairs.sort()
        keep = np.ones(len(pairs), dtype=bool)
        np.not_equal(pairs[1:], pairs[:-1], out=keep[1:])
        targets = np.empty(len(pairs), dtype=np.int32)
        sources = np.empty(len(pairs), dtype=np.int32)
        for at in range(0, len(pairs), CHUNK_LINKS):
            chunk = slice(at, at + CHUNK_LINKS)
            targets[chunk], sources[chunk] = np.divmod(pairs[chunk], max(1, size))
        keep &= targets != sources
        if not keep.all():
            targets, sources = targets[keep], sources[keep]
        starts = np.zeros(size + 1, dtype=np.int64)
        np.cumsum(np.bincount(targets, minlength=size), out=starts[1:])
        return cls(starts, sources)


def pagerank(graph: Graph, start: F64 | None = None, *, tolerance: float = TOLERANCE) -> tuple[F64, int]:
    """The rank of each page, all together 1, and the steps it took. `start` is a vector to begin from."""
    size = graph.size
    if not size:
        return np.empty(0), 0
    degrees = np.bincount(graph.sources, minlength=size)
    dangling = degrees == 0
    share = DAMPING / np.maximum(degrees, 1)
    rank = np.full(size, 1.0 / size) if start is None else start / start.sum()
    steps = 0
    moved = np.inf
    while moved >= tolerance and steps < STEPS_MOST:
        base = (1.0 - DAMPING + DAMPING * rank[dangling].sum()) / size
        new = _gathered(graph, rank * share)
        new += base
        moved = np.abs(new - rank).sum()
        rank = new
        steps += 1
    return rank / rank.sum(), steps


def _gathered(graph: Graph, gives: F64) -> F64:
    """What each page gets: a running sum over the links, chunk by chunk, read off where targets end."""
    total = np.zeros(graph.size)
    starts, sources = graph.starts, graph.sources
    first = 0
    while first < graph.size:
        last = int(np.searchsorted(starts, starts[first] + CHUNK_LINKS, side="right")) - 1
        last = min(max(last, first + 1), graph.size)
        begin, end = int(starts[first]), int(starts[last])
        if end > begin:
            edges = starts[first:last] - begin
            filled = np.flatnonzero(starts[first + 1 : last + 1] > starts[first:last])
            total[first + filled] = np.add.reduceat(gives[sources[begin:end]], edges[filled])
        first = last
    return total


def harmonic(graph: Graph, *, seed: int = 1) -> F64:
    """The harmonic centrality of each host; with more than `HOSTS_EXACT` of them estimated from a random sample."""
    size = graph.size
    origins = np.arange(size)
    if size > HOSTS_EXACT:
        origins = np.random.default_rng(seed).choice(size, HOSTS_EXACT, replace=False)
    total = np.zeros(size)
    filled = np.flatnonzero(np.diff(graph.starts))
    edges = graph.starts[:-1][filled]
    for at in range(0, len(origins), _LANES):
        _spread(graph, origins[at : at + _LANES], filled, edges, total)
    return total * (size / max(1, len(origins)))


def _spread(graph: Graph, origins: I64, filled: I64, edges: I64, total: F64) -> None:
    """Adds 1/distance from each origin to each host it reaches: all origins at once, one bit each."""
    reached = np.zeros(graph.size, dtype=np.uint64)
    reached[origins] = np.uint64(1) << np.arange(len(origins), dtype=np.uint64)
    front, distance = reached.copy(), 0
    while len(filled) and front.any():
        distance += 1
        arriving = np.zeros_like(reached)
        arriving[filled] = np.bitwise_or.reduceat(front[graph.sources], edges)
        front = arriving & ~reached
        reached |= front
        total += np.bitwise_count(front) / distance
