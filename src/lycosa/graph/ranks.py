"""The ranks of a collection: worked out from the link index, kept in `graph/ranks`, asked for by URL.

    magic · number of pages · FileNums, sorted · ranks · URL ids (8 bytes each)

Nodes are the pages of the index. A redirect is none: a link to it is a link to the page where it leads in the end.
Links to what was never fetched do not count. Whoever works the ranks out begins from the last ones, which are near
where little has changed. The file is replaced at once; any process may write it, beside a running crawl too.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lycosa.errors import StoreError
from lycosa.graph.columns import url_ids
from lycosa.graph.index import FOLDER, LinkIndex, not_usable
from lycosa.graph.rank import F64, Graph, pagerank
from lycosa.graph.segment import Segment
from lycosa.graph.varint import I64, U64

FILE = "ranks"
_FORMAT = b"lycosa ranks "
MAGIC = _FORMAT + b"2\n\0"
_DOUBLINGS = 5  # of the steps along redirects: 32 of them, more than a crawl follows


class Ranks(NamedTuple):
    """Pages by FileNum, with URL id and rank; together the ranks are 1."""

    file_nums: U64
    ids: U64
    ranks: F64

    def of(self, urls: Sequence[str]) -> list[float]:
        """The rank of each URL, 0 for what is no page here."""
        order = np.argsort(self.ids, kind="stable")
        wanted = url_ids(urls)
        places = np.searchsorted(self.ids, wanted, sorter=order)
        found = order[np.minimum(places, max(0, len(order) - 1))] if len(order) else places
        return [
            float(self.ranks[place]) if len(order) and self.ids[place] == url else 0.0
            for place, url in zip(found.tolist(), wanted, strict=True)
        ]


class Web(NamedTuple):
    """The pages of an index as a graph: page i has FileNum `file_nums[i]` and URL id `ids[i]`."""

    file_nums: U64
    ids: U64
    graph: Graph


def pages_of(index: LinkIndex) -> U64:
    """The FileNums of all pages and redirects that are there."""
    sources = np.concatenate([segment.sources for segment in index.segments] or [np.empty(0, dtype=np.uint64)])
    present = np.concatenate([segment.present for segment in index.segments] or [np.empty(0, dtype=bool)])
    order = np.argsort(sources, kind="stable")
    sources, present = sources[order], present[order]
    is_last = np.append(sources[1:] != sources[:-1], True) if len(sources) else present
    pages: U64 = sources[is_last & present]
    return pages


def web_of(index: LinkIndex, ids_of: Callable[[U64], U64], redirects: U64) -> Web:
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
    return Web(file_nums, ids, Graph.of_pairs(whole, len(file_nums)))


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
    """Where each wanted value stands; −1 where it does not."""
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


def work_out(web: Web, last: Ranks | None) -> tuple[Ranks, int]:
    """The ranks, beginning from the last ones where there are some, and the steps it took."""
    start = None
    if last is not None and len(web.file_nums):
        start = np.full(len(web.file_nums), 1.0 / len(web.file_nums))
        places = _places(last.file_nums, web.file_nums, None)
        start[places >= 0] = last.ranks[places[places >= 0]]
    ranks, steps = pagerank(web.graph, start)
    return Ranks(web.file_nums, web.ids, ranks), steps


def save(collection: Path, ranks: Ranks) -> None:
    path = collection / FOLDER / FILE
    hidden = path.with_name(f".{FILE}.new")
    try:
        path.parent.mkdir(exist_ok=True)
        with hidden.open("wb") as file:
            file.write(MAGIC + len(ranks.ranks).to_bytes(8, "little"))
            for column in (ranks.file_nums, ranks.ranks, ranks.ids):
                file.write(column.tobytes())
        hidden.replace(path)
    except OSError as error:
        raise not_usable(error, path, doing="writing the ranks") from error


def load(collection: Path) -> Ranks | None:
    """The ranks as they were worked out last; None if they never were."""
    path = collection / FOLDER / FILE
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise not_usable(error, path, doing="reading the ranks") from error
    if data.startswith(_FORMAT) and not data.startswith(MAGIC):
        return None  # of another version, with other URL ids: they are worked out anew
    head = len(MAGIC) + 8
    count = int.from_bytes(data[len(MAGIC) : head], "little")
    if data[: len(MAGIC)] != MAGIC or len(data) != head + 24 * count:
        raise StoreError(f"{path} is damaged: delete it, and the next lycosa rank makes it anew")
    columns = np.frombuffer(data, dtype=np.uint64, offset=head).reshape(3, count)
    return Ranks(columns[0], columns[2], columns[1].view(np.float64))


class RankTable:
    """The ranks as they were when opened, read through a memory map; empty if they never were worked out."""

    def __init__(self, collection: Path) -> None:
        path, head = collection / FOLDER / FILE, len(MAGIC) + 8
        self._file_nums, self._ranks = np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.float64)
        try:
            size = path.stat().st_size
            if size <= head or (size - head) % 24:
                return
            columns = np.memmap(path, dtype=np.uint64, mode="r", offset=head).reshape(3, -1)
        except FileNotFoundError:
            return
        except OSError as error:
            raise not_usable(error, path, doing="reading the ranks") from error
        self._file_nums, self._ranks = np.asarray(columns[0]), np.asarray(columns[1]).view(np.float64)

    def __repr__(self) -> str:
        return f"<RankTable pages={len(self._ranks)}>"

    def mean_ranks(self, file_nums: Sequence[int]) -> list[float]:
        """The rank of each page in units of the mean; −1 where it is not known."""
        if not len(self._ranks) or not len(file_nums):
            return [-1.0] * len(file_nums)
        wanted = np.array(file_nums, dtype=np.uint64)
        places = np.minimum(np.searchsorted(self._file_nums, wanted), len(self._file_nums) - 1)
        found = np.where(self._file_nums[places] == wanted, self._ranks[places] * len(self._ranks), -1.0)
        return found.tolist()  # type: ignore[no-any-return]
