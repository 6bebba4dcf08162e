"""PageRank of pages and harmonic centrality of hosts, and the file that keeps the ranks of a collection.

    graph/ranks    magic · number of pages · FileNums, sorted · ranks · URL ids (8 bytes each)

PageRank: a page gives its rank to the pages it points to in equal parts, a page without links to all; damping 0.85,
until a step moves less than 1e-8 in all. Harmonic centrality of a host: the sum of 1/distance over all hosts from which
links lead to it. Nodes are the pages of the index. A redirect is none: a link to it is a link to the page where it
leads in the end. Links to what was never fetched do not count. A computation begins from the last ranks, which are near
where little has changed. The file is replaced at once; any process may write it, also beside a running crawl.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lycosa.errors import StoreError
from lycosa.files import replacing
from lycosa.graph.columns import I64, U64
from lycosa.graph.index import LINK_INDEX_FOLDER, LinkIndex, not_usable
from lycosa.graph.segments import Segment

F64 = NDArray[np.float64]
I32 = NDArray[np.int32]

DAMPING = 0.85
TOLERANCE = 1e-8  # L1 of a step: the ranks are then within 6e-8 of their limit, all together
STEPS_MOST = 1_000
CHUNK_LINKS = 1 << 18  # gathered at a time: fits the processor's cache
HOSTS_EXACT = 16_384  # among more, the distances from so many of them stand for all
_LANES = 64  # hosts whose distances are found together, one bit each


class LinkGraph(NamedTuple):
    """Links by target: those of target i come from `sources[starts[i]:starts[i + 1]]`."""

    starts: I64
    sources: I32

    @property
    def size(self) -> int:
        return len(self.starts) - 1

    @classmethod
    def of(cls, sources: NDArray[np.integer], targets: NDArray[np.integer], size: int) -> "LinkGraph":
        pairs = targets.astype(np.int64) * size + sources
        return cls.of_pairs(pairs, size)

    @classmethod
    def of_pairs(cls, pairs: I64, size: int) -> "LinkGraph":
        """A graph from links written as target × size + source; `pairs` is sorted in place."""
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


def pagerank(graph: LinkGraph, start: F64 | None = None, *, chunk_links: int = CHUNK_LINKS) -> tuple[F64, int]:
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
    while moved >= TOLERANCE and steps < STEPS_MOST:
        base = (1.0 - DAMPING + DAMPING * rank[dangling].sum()) / size
        new = _gathered(graph, rank * share, chunk_links)
        new += base
        moved = np.abs(new - rank).sum()
        rank = new
        steps += 1
    return rank / rank.sum(), steps


def _gathered(graph: LinkGraph, gives: F64, chunk_links: int) -> F64:
    """The rank that each page receives, summed over its links chunk by chunk."""
    total = np.zeros(graph.size)
    starts, sources = graph.starts, graph.sources
    first = 0
    while first < graph.size:
        last = int(np.searchsorted(starts, starts[first] + chunk_links, side="right")) - 1
        last = min(max(last, first + 1), graph.size)
        begin, end = int(starts[first]), int(starts[last])
        if end > begin:
            edges = starts[first:last] - begin
            filled = np.flatnonzero(starts[first + 1 : last + 1] > starts[first:last])
            total[first + filled] = np.add.reduceat(gives[sources[begin:end]], edges[filled])
        first = last
    return total


def harmonic(graph: LinkGraph, *, exact: int = HOSTS_EXACT) -> F64:
    """The harmonic centrality of each host; with more than `exact` of them estimated from a random sample."""
    size = graph.size
    origins = np.arange(size)
    if size > exact:
        origins = np.random.default_rng(1).choice(size, exact, replace=False)
    total = np.zeros(size)
    filled = np.flatnonzero(np.diff(graph.starts))
    edges = graph.starts[:-1][filled]
    for at in range(0, len(origins), _LANES):
        _spread(graph, origins[at : at + _LANES], filled, edges, total)
    return total * (size / max(1, len(origins)))


def _spread(graph: LinkGraph, origins: I64, filled: I64, edges: I64, total: F64) -> None:
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


FILE = "ranks"
_FORMAT = b"lycosa ranks "
MAGIC = _FORMAT + b"2\n\0"
_NO_RANKS = np.empty((3, 0), dtype=np.uint64)
_DOUBLINGS = 5  # of the steps along redirects: 32 of them, more than a crawl follows


class Ranks(NamedTuple):
    """Pages by FileNum, with URL id and rank; together the ranks are 1."""

    file_nums: U64
    ids: U64
    ranks: F64

    def mean_ranks(self, file_nums: Sequence[int]) -> list[float]:
        """The rank of each page in units of the mean; −1 where it is not known."""
        if not len(self.ranks) or not file_nums:
            return [-1.0] * len(file_nums)
        places = _places(self.file_nums, np.array(file_nums, dtype=np.uint64), None)
        return np.where(places >= 0, self.ranks[places] * len(self.ranks), -1.0).tolist()  # type: ignore[no-any-return]


class PageGraph(NamedTuple):
    """The pages of an index as a graph: page i has FileNum `file_nums[i]` and URL id `ids[i]`."""

    file_nums: U64
    ids: U64
    graph: LinkGraph


def pages_of(index: LinkIndex) -> U64:
    """The FileNums of all pages and redirects that are there."""
    sources = np.concatenate([segment.sources for segment in index.segments] or [np.empty(0, dtype=np.uint64)])
    present = np.concatenate([segment.present for segment in index.segments] or [np.empty(0, dtype=bool)])
    order = np.argsort(sources, kind="stable")
    sources, present = sources[order], present[order]
    is_last = np.append(sources[1:] != sources[:-1], True) if len(sources) else present
    pages: U64 = sources[is_last & present]
    return pages


def page_graph(index: LinkIndex, ids_of: Callable[[U64], U64], redirects: U64) -> PageGraph:
    """The graph of a whole index; `ids_of` gives the URL ids of FileNums, `redirects` are those of redirects."""
    file_nums = pages_of(index)
    ids = ids_of(file_nums)
    order = np.argsort(ids, kind="stable")
    added: list[I64] = []
    taken: list[I64] = []
    for segment in index.segments:
        pairs, minus = _pairs(
            segment, _places(ids, segment.targets, order), _places(file_nums, segment.sources, None), len(ids)
        )
        added.append(pairs if not minus.any() else pairs[~minus])
        taken.append(pairs[minus])
    whole = np.concatenate(added) if added else np.empty(0, dtype=np.int64)
    if any(map(len, taken)):
        whole = _without(whole, np.concatenate(taken))
    is_page = ~np.isin(file_nums, redirects)
    if not is_page.all():
        whole, file_nums, ids = _led_on(whole, is_page), file_nums[is_page], ids[is_page]
    return PageGraph(file_nums, ids, LinkGraph.of_pairs(whole, len(file_nums)))


def _led_on(pairs: I64, is_page: NDArray[np.bool_]) -> I64:
    """The links among pages alone, numbered without the redirects: one that leads nowhere, or in a circle, is left out
    with the links to it."""
    targets, sources = np.divmod(pairs, len(is_page))
    leads = np.arange(len(is_page))
    from_page = is_page[sources]
    leads[sources[~from_page]] = targets[~from_page]
    for _ in range(_DOUBLINGS):
        leads = leads[leads]
    targets = leads[targets]
    keep = from_page & is_page[targets]
    places = np.cumsum(is_page) - 1
    led: I64 = places[targets[keep]] * np.count_nonzero(is_page) + places[sources[keep]]
    return led


def _pairs(segment: Segment, page_of_target: I64, page_of_source: I64, size: int) -> tuple[I64, NDArray[np.bool_]]:
    """The links of a segment between pages that are there, as target × pages + source, and which are taken back."""
    target, source, minus = segment.pairs()
    pairs = page_of_target[target]
    del target  # a large index is twenty million links: every column is 160 MB
    source = page_of_source[source]
    is_within = (pairs >= 0) & (source >= 0)
    pairs *= size
    pairs += source
    return pairs[is_within], minus[is_within]


def _places(values: U64, wanted: U64, order: I64 | None) -> I64:
    """The place of each wanted value; −1 where it is not there."""
    if not len(values):
        return np.full(len(wanted), -1, dtype=np.int64)
    at = np.minimum(np.searchsorted(values, wanted, sorter=order), len(values) - 1)
    places = at if order is None else order[at]
    return np.where(values[places] == wanted, places, -1)


def _without(pairs: I64, taken: I64) -> I64:
    """The pairs that are left when each taken one has undone one of its like."""
    values, counts = np.unique(np.concatenate([pairs, taken]), return_counts=True)
    lost, times = np.unique(taken, return_counts=True)
    counts[np.searchsorted(values, lost)] -= 2 * times
    return values[counts > 0]


def compute_ranks(pages: PageGraph, last: Ranks | None) -> tuple[Ranks, int]:
    """The ranks, beginning from the last ones where there are some, and the steps it took."""
    start = None
    if last is not None and len(pages.file_nums):
        start = np.full(len(pages.file_nums), 1.0 / len(pages.file_nums))
        places = _places(last.file_nums, pages.file_nums, None)
        start[places >= 0] = last.ranks[places[places >= 0]]
    ranks, steps = pagerank(pages.graph, start)
    return Ranks(pages.file_nums, pages.ids, ranks), steps


def save_ranks(collection: Path, ranks: Ranks) -> None:
    path = collection / LINK_INDEX_FOLDER / FILE
    try:
        path.parent.mkdir(exist_ok=True)
        with replacing(path) as file:
            file.write(MAGIC + len(ranks.ranks).to_bytes(8, "little"))
            for column in (ranks.file_nums, ranks.ranks, ranks.ids):
                file.write(column.tobytes())
    except OSError as error:
        raise not_usable(error, path, doing="writing the ranks") from error


def load_ranks(collection: Path) -> Ranks | None:
    """The ranks as they were computed last, read through a memory map; None if they never were."""
    path, head = collection / LINK_INDEX_FOLDER / FILE, len(MAGIC) + 8
    try:
        with path.open("rb") as file:
            start = file.read(head)
        if start.startswith(_FORMAT) and not start.startswith(MAGIC):
            return None  # of another version, with other URL ids: they are computed anew
        count = int.from_bytes(start[len(MAGIC) :], "little")
        if start[: len(MAGIC)] != MAGIC or path.stat().st_size != head + 24 * count:
            raise StoreError(f"{path} is damaged: delete it, and the next lycosa rank makes it anew")
        columns = np.memmap(path, dtype=np.uint64, mode="r", offset=head).reshape(3, count) if count else _NO_RANKS
    except FileNotFoundError:
        return None
    except OSError as error:
        raise not_usable(error, path, doing="reading the ranks") from error
    file_nums, ranks, ids = map(np.asarray, columns)
    return Ranks(file_nums, ids, ranks.view(np.float64))
