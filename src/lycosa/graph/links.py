"""Opens the link index of a collection and answers from it: links, anchor texts, ranks of pages and hosts.

    stored_link_index     the segments; where they are gone, damaged, of another version, or end before the feed begins,
                          the index is rebuilt from the state: in its folder if no crawl holds the collection, else in
                          memory
    current_link_index    the same with the pages that the feed has beyond it

Reads the committed state and the index beside a running crawl. The segments of several shards stand side by side:
signed pairs of all shards add up as those of one do. `note` is called with one sentence that says what had to be done.
"""

from array import array
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from lycosa.errors import LycosaError, StoreError
from lycosa.graph.columns import I64, KIND_BITS, U64, from_pages, url_id, url_ids
from lycosa.graph.feed import FILE_NUM_BYTES, covered_by, entries_after, key_of, last_sequence, mark_covered
from lycosa.graph.index import LINK_INDEX_FOLDER, LinkIndex, LinkWriter, SegmentList, standing_links
from lycosa.graph.indexer import CONSUMER, all_pages, replay, slices, stored_links
from lycosa.graph.ranks import LinkGraph, PageGraph, Ranks, compute_ranks, harmonic, load_ranks, page_graph, save_ranks
from lycosa.graph.segments import Segment
from lycosa.records import Family
from lycosa.store import CollectionStore, JoinedCollection, State, hold_lock, unpack_head, unpack_page
from lycosa.web import LinkKind, host_key_of, url_from_key, url_key

MOST_TEXTS = 24  # of one page, the most used first
FEW_PAGES = 4  # that point somewhere: with more, a text that only one of them uses says little
# A text in one number: 32 bits within its segment, 12 for the segment; before it 19 bits for the page.
_SEGMENT_SHIFT, _PAGE_SHIFT = 32, 44
_NUMBER_MASK, _TEXT_MASK = (1 << _SEGMENT_SHIFT) - 1, (1 << _PAGE_SHIFT) - 1

Anchors = list[tuple[str, int]]


class AnchorTexts:
    """The anchor texts of an index as it was when opened."""

    def __init__(self, index: LinkIndex, *, most: int = MOST_TEXTS, few_pages: int = FEW_PAGES) -> None:
        self._segments, self._most, self._few_pages = index.segments, most, few_pages

    def __repr__(self) -> str:
        return f"<AnchorTexts segments={len(self._segments)}>"

    def of(self, urls: Sequence[str]) -> list[Anchors]:
        """For each URL the texts of the links to it with the number of pages that use each, the most used first."""
        ids = url_ids(urls)
        rows = [self._rows(ids, place) for place in range(len(self._segments))]
        if not rows or not len(urls):
            return [[] for _ in urls]
        page, source, is_plus, text = (np.concatenate(column) for column in zip(*rows, strict=True))
        order = standing_links(page, source, is_plus)
        return self._counted(len(urls), page[order], text[order])

    def _rows(self, ids: U64, place: int) -> tuple[I64, U64, NDArray[np.bool_], I64]:
        """The links to these URLs in a segment: place among `ids`, source, whether it came or went, text."""
        pages, sources, is_plus, codes = self._segments[place].links_to(ids)
        return pages, sources, is_plus, (codes >> KIND_BITS) | (place << _SEGMENT_SHIFT)

    def _counted(self, size: int, page: I64, text: I64) -> list[Anchors]:
        found: list[dict[str, int]] = [{} for _ in range(size)]
        texts: dict[int, str] = {}  # by numbers: pages of a site use the same words for many others
        totals = np.bincount(page, minlength=size).tolist()
        pairs, counts = np.unique((page << _PAGE_SHIFT) | text, return_counts=True)
        order = np.lexsort((-counts, pairs >> _PAGE_SHIFT))
        for pair, count in zip(pairs[order].tolist(), counts[order].tolist(), strict=True):
            at, number = pair >> _PAGE_SHIFT, pair & _TEXT_MASK
            said = found[at]
            if len(said) >= self._most or (count == 1 and totals[at] > self._few_pages and said):
                continue
            words = texts.get(number)
            if words is None:
                words = texts[number] = " ".join(self._text(number).split())
            if words:
                said[words] = said.get(words, 0) + count
        return [sorted(said.items(), key=lambda item: (-item[1], item[0])) for said in found]

    def _text(self, number: int) -> str:
        return self._segments[number >> _SEGMENT_SHIFT].text(number & _NUMBER_MASK)


Note = Callable[[str], None]


def current_link_index(collection: CollectionStore, note: Note | None = None) -> LinkIndex:
    """The index with the pages that the feed has beyond it. The state was opened first, so no page is missing."""
    if isinstance(collection, JoinedCollection):
        return _combined([current_link_index(shard, note) for shard in collection.shards])
    index = stored_link_index(collection, note)
    index.overlay(list(replay(collection.state, index.covered)))
    return index


def stored_link_index(collection: CollectionStore, note: Note | None = None) -> LinkIndex:
    """The index as far as it is on disk, with no pages missing before that."""
    if isinstance(collection, JoinedCollection):
        return _combined([stored_link_index(shard, note) for shard in collection.shards])
    marked = covered_by(collection.path, CONSUMER)  # read first: a crawl marks after it has written
    try:
        index = LinkIndex.open(collection.path)
        if _is_consistent(collection, index.covered, marked):
            return index
        why = "is not there" if not index.segments else "is behind what it once was"
    except StoreError as error:
        why = f"cannot be used ({error})"
    return _rebuilt(collection, why, note or (lambda text: None))


def _is_consistent(collection: CollectionStore, covered: int, marked: int) -> bool:
    """Does the index have all that it once marked as covered, and the feed all entries after that?"""
    if covered < marked:
        return False
    if covered > last_sequence(collection.state):
        collection.state.refresh()  # a crawl has written meanwhile
        if covered > last_sequence(collection.state):
            return False
    following = next(entries_after(collection.state, covered), None)
    return covered >= last_sequence(collection.state) if following is None else following.sequence == covered + 1


def _rebuilt(collection: CollectionStore, why: str, note: Note) -> LinkIndex:
    try:
        with hold_lock(collection.path):
            collection.state.refresh()
            rebuild_link_index(collection)
        index = LinkIndex.open(collection.path)
        note(f"the link index {collection.path / LINK_INDEX_FOLDER} {why}: it was built anew from the state")
    except (LycosaError, OSError):  # a crawl holds the collection, or nothing may be written there
        last = last_sequence(collection.state)
        parts = [Segment.of(from_pages(some)) for some in slices(all_pages(collection.state))]
        index = LinkIndex(collection.path / LINK_INDEX_FOLDER, SegmentList(last), parts)
        mends = "" if (collection.path / LINK_INDEX_FOLDER).is_file() else "; the next crawl mends it"
        note(f"the link index {collection.path / LINK_INDEX_FOLDER} {why}: links are read from the state{mends}")
    return index


def rebuild_link_index(collection: CollectionStore) -> None:
    """Makes the link index anew from the state; whoever calls it holds the writer's lock."""
    last = last_sequence(collection.state)
    writer = LinkWriter.open(collection.path)
    writer.clear()
    writer.add(slices(all_pages(collection.state)), last)
    mark_covered(collection.path, CONSUMER, last)
    writer.close()


def _combined(indexes: list[LinkIndex]) -> LinkIndex:
    first, *others = indexes
    first.segments += [segment for other in others for segment in other.segments]
    return first


KINDS = {kind.value: kind.name.lower() for kind in LinkKind}


class LinkView(msgspec.Struct, frozen=True):
    """One link as it is shown: the page at its other end, the element it is written in, its anchor text."""

    url: str
    kind: str
    anchor: str


class UrlLinks(msgspec.Struct, frozen=True):
    """The links around a URL; `pages_in` and `pages_out` count all, the lists may be shorter."""

    url: str
    pages_in: int
    pages_out: int
    links_in: tuple[LinkView, ...]
    links_out: tuple[LinkView, ...]


class Ranked(msgspec.Struct, frozen=True):
    """A page or a host with its place and rank."""

    place: int
    url: str
    rank: float


def links_of(
    collection: CollectionStore,
    url: str,
    *,
    most: int | None = None,
    note: Note | None = None,
    index: LinkIndex | None = None,
) -> UrlLinks:
    """The links to and from a normalised URL, with their anchor texts; at most `most` of each. `index` is the current
    one, where the caller has it open."""
    state = collection.state
    incoming = (index or current_link_index(collection, note)).inlinks(url)
    shown_in = tuple(
        LinkView(_url_of(state, link.source), KINDS[link.kind], link.anchor) for link in islice(incoming, most)
    )
    outgoing = [view for view in outgoing_links(state.get(Family.LINK, url_key(url)), url) if view.url != url]
    return UrlLinks(url, len(incoming), len(outgoing), shown_in, tuple(outgoing[:most]))


def outgoing_links(packed: bytes | None, url: str) -> tuple[LinkView, ...]:
    """The links in the packed link row of a page, each URL once, in the order of the page."""
    return tuple(LinkView(target, KINDS[kind], anchor) for target, (kind, anchor) in stored_links(packed, url).items())


def referring_pages(state: State, index: LinkIndex, urls: Sequence[str], *, most: int) -> list[tuple[str, ...]]:
    """For each normalised URL the first pages that point to it, in the order of their numbers, at most so many."""
    page, source = index.links_to(urls)
    starts = np.searchsorted(page, np.arange(len(urls)))
    kept = np.arange(len(page)) - starts[page] < most
    numbers = np.unique(source[kept])
    keys = (
        state.get_many(Family.FILE, [number.to_bytes(FILE_NUM_BYTES) for number in numbers.tolist()])
        if len(numbers)
        else []
    )
    names = [url_from_key(key) if key else "" for key in keys]
    found: list[list[str]] = [[] for _ in urls]
    for at, place in zip(page[kept].tolist(), np.searchsorted(numbers, source[kept]).tolist(), strict=True):
        found[at].append(names[place])
    return [tuple(filter(None, pages)) for pages in found]


def _url_of(state: State, file_num: int) -> str:
    key = key_of(state, file_num)
    return url_from_key(key) if key else f"page {file_num}"


# ranks


def rank_pages(
    collection: CollectionStore, note: Note | None = None, *, index: LinkIndex | None = None
) -> tuple[Ranks, int]:
    """Computes the ranks of all pages, starting from the last ones, and saves them; returns them and the number of
    steps. Where they cannot be saved `note` is called, or without one StoreError is raised. `index` is the current
    one, where the caller has it."""
    graph = _page_graph(collection, index or current_link_index(collection, note))
    ranks, steps = compute_ranks(graph, load_ranks(collection.path))
    try:
        save_ranks(collection.path, ranks)
    except StoreError as error:
        if note is None:
            raise
        note(f"the ranks are not saved: {error}")
    return ranks, steps


def _page_graph(collection: CollectionStore, index: LinkIndex) -> PageGraph:
    """The graph of all pages."""
    state = collection.state
    packed = (row for _, row in state.walk(Family.PAGE) if 300 <= unpack_head(row).status < 400)
    redirects = np.fromiter((unpack_page(row).file_num for row in packed), dtype=np.uint64)
    return page_graph(index, lambda file_nums: _ids_of(state, file_nums), redirects)


def _ids_of(state: State, file_nums: U64) -> U64:
    """The URL ids of pages: one walk over all numbers, which come in the same order."""
    numbers, ids = bytearray(), array("Q")
    for number, key in state.walk(Family.FILE):
        numbers += number
        ids.append(url_id(url_from_key(key)))
    places = np.searchsorted(np.frombuffer(numbers, dtype=">u8").astype(np.uint64), file_nums)
    return np.frombuffer(ids, dtype=np.uint64)[places]


def ranked_pages(collection: CollectionStore, ranks: Ranks, *, most: int | None = None) -> Iterator[Ranked]:
    """Pages, the highest rank first; equal ones in the order of their numbers."""
    order = np.argsort(-ranks.ranks, kind="stable")[:most]
    for place, at in enumerate(order.tolist(), 1):
        yield Ranked(place, _url_of(collection.state, int(ranks.file_nums[at])), float(ranks.ranks[at]))


def rank_hosts(collection: CollectionStore, note: Note | None = None) -> list[Ranked]:
    """Every host that has pages, by harmonic centrality over the links between hosts, the highest first."""
    names, sources, targets = _ends_by_host(collection, note)
    scores = harmonic(LinkGraph.of(sources, targets, len(names)))
    order = np.argsort(-scores, kind="stable").tolist()
    return [Ranked(place, names[at], float(scores[at])) for place, at in enumerate(order, 1)]


class HostLinks(NamedTuple):
    """The links between different hosts in columns: the places of both hosts in `names`, and how many pages of the one
    link to pages of the other."""

    names: list[str]
    sources: I64
    targets: I64
    links: I64

    def around(self, name: str) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
        """The hosts that link to one, and those that it links to, with the number of links, the most first."""
        at = self.names.index(name) if name in self.names else -1
        return self._named(self.targets == at, self.sources), self._named(self.sources == at, self.targets)

    def _named(self, chosen: "NDArray[np.bool_]", others: I64) -> list[tuple[str, int]]:
        found = zip(others[chosen].tolist(), self.links[chosen].tolist(), strict=True)
        return [(self.names[at], links) for at, links in sorted(found, key=lambda pair: (-pair[1], pair[0]))]


def host_links(collection: CollectionStore, note: Note | None = None) -> HostLinks:
    """The links between the hosts of a collection."""
    names, sources, targets = _ends_by_host(collection, note)
    different = sources != targets
    pairs, links = np.unique(targets[different] * len(names) + sources[different], return_counts=True)
    ends = np.divmod(pairs, max(1, len(names)))
    return HostLinks(names, ends[1], ends[0], links)


def _ends_by_host(collection: CollectionStore, note: Note | None) -> tuple[list[str], I64, I64]:
    """The names of the hosts, and for each link the places of its two hosts among them."""
    pages = _page_graph(collection, current_link_index(collection, note))
    names, host_of = _hosts(collection.state, pages)
    targets = np.repeat(np.arange(pages.graph.size), np.diff(pages.graph.starts))
    return names, host_of[pages.graph.sources], host_of[targets]


def _hosts(state: State, pages: PageGraph) -> tuple[list[str], I64]:
    """The names of the hosts, and for each page the place of its host among them."""
    places: dict[bytes, int] = {}
    host_of_number = {
        int.from_bytes(number): places.setdefault(host_key_of(key), len(places))
        for number, key in state.walk(Family.FILE)
    }
    hosts = np.fromiter((host_of_number[number] for number in pages.file_nums.tolist()), dtype=np.int64)
    return [url_from_key(key + b"\0") for key in places], hosts


class IncomingLinks(msgspec.Struct, frozen=True):
    """Links to some URLs in columns, sorted by them: the place of the URL, the FileNum of the page that has the link,
    the kind of the element, and the number of its text, which `words` reads."""

    place: I64
    source: U64
    kind: I64
    text: I64
    index: LinkIndex

    def words(self, text: int) -> str:
        """The words that a link stands on, on one line."""
        return " ".join(self.index.segments[text >> _SEGMENT_SHIFT].text(text & _NUMBER_MASK).split())


def incoming_links(index: LinkIndex, urls: Sequence[str]) -> IncomingLinks:
    """All links to some normalised URLs; ask for some thousand at once, since each question opens much of the index."""
    ids = url_ids(urls)
    rows = [segment.links_to(ids) for segment in index.segments] if len(urls) else []
    if not rows:
        none = np.empty(0, dtype=np.int64)
        return IncomingLinks(none, none.astype(np.uint64), none, none, index)
    place, source, is_plus = (np.concatenate([row[column] for row in rows]) for column in range(3))
    codes = np.concatenate([row[3] for row in rows])
    text = np.concatenate([(row[3] >> KIND_BITS) | (number << _SEGMENT_SHIFT) for number, row in enumerate(rows)])
    order = standing_links(place, source, is_plus)
    kinds = (codes[order] & ((1 << KIND_BITS) - 1)) + 1
    return IncomingLinks(place[order], source[order], kinds, text[order], index)
