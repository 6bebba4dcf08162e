"""What the link graph of a collection can be asked from outside: who points where, and ranks of pages and hosts.

Reads the committed state and the index beside a running crawl; pages that no segment has yet come from the feed.
"""

from array import array
from collections.abc import Iterator
from itertools import islice

import msgspec
import numpy as np

from lycosa.engine.link_index import Note, whole_index
from lycosa.engine.linker import linked
from lycosa.engine.pages import unpack_links, unpack_page
from lycosa.errors import StoreError
from lycosa.graph.columns import url_id
from lycosa.graph.feed import key_of
from lycosa.graph.index import LinkIndex
from lycosa.graph.rank import Graph, harmonic
from lycosa.graph.ranks import Ranks, Web, load, save, web_of, work_out
from lycosa.graph.varint import U64
from lycosa.records import Family
from lycosa.store import Collection, State
from lycosa.web.links import LinkKind
from lycosa.web.url import BUCKET_BYTES, from_key, url_key

KINDS = {kind.value: kind.name.lower() for kind in LinkKind}


class LinkView(msgspec.Struct, frozen=True):
    """One link for the eye: the page at its other end, the element it is written in, its words."""

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
    collection: Collection,
    text: str,
    *,
    most: int | None = None,
    note: Note | None = None,
    index: LinkIndex | None = None,
) -> UrlLinks:
    """Who points to a URL, with what words, and where it points; at most `most` of each. `index` is the whole one, by
    whoever has it open."""
    from lycosa.engine.views import asked_url  # its libraries are not for the search index, which works out ranks here

    url = asked_url(collection, text)
    state = collection.state
    incoming = (index or whole_index(collection, note)).inlinks(url.href)
    shown_in = tuple(
        LinkView(_url_of(state, link.source), KINDS[link.kind], link.anchor) for link in islice(incoming, most)
    )
    row = state.get(Family.LINK, url_key(url.href))
    outgoing = linked(unpack_links(row), url.href) if row else {}
    outgoing.pop(url.href, None)
    views = (LinkView(target, KINDS[kind], anchor) for target, (kind, anchor) in outgoing.items())
    return UrlLinks(url.href, len(incoming), len(outgoing), shown_in, tuple(islice(views, most)))


def _url_of(state: State, file_num: int) -> str:
    key = key_of(state, file_num)
    return from_key(key) if key else f"page {file_num}"


# ranks


def rank_pages(collection: Collection, note: Note | None = None) -> tuple[Ranks, int]:
    """Works the ranks of all pages out, from the last ones on, and keeps them; says how many steps it took. Where
    they cannot be kept `note` is told, or without one it raises StoreError."""
    web = _web(collection, note)
    ranks, steps = work_out(web, load(collection.path))
    try:
        save(collection.path, ranks)
    except StoreError as error:
        if note is None:
            raise
        note(f"the ranks are not kept: {error}")
    return ranks, steps


def _web(collection: Collection, note: Note | None) -> Web:
    """The graph of all pages."""
    state = collection.state
    rows = (unpack_page(packed) for _, packed in state.walk(Family.PAGE))
    redirects = np.fromiter((row.file_num for row in rows if 300 <= row.status < 400), dtype=np.uint64)
    return web_of(whole_index(collection, note), lambda file_nums: _ids_of(state, file_nums), redirects)


def _ids_of(state: State, file_nums: U64) -> U64:
    """The URL ids of pages: one walk over all numbers, which come in the same order."""
    numbers, ids = bytearray(), array("Q")
    for number, key in state.walk(Family.FILE):
        numbers += number
        ids.append(url_id(from_key(key)))
    places = np.searchsorted(np.frombuffer(numbers, dtype=">u8").astype(np.uint64), file_nums)
    return np.frombuffer(ids, dtype=np.uint64)[places]


def ranked_pages(collection: Collection, ranks: Ranks, *, most: int | None = None) -> Iterator[Ranked]:
    """Pages, the highest rank first; equal ones in the order of their numbers."""
    order = np.argsort(-ranks.ranks, kind="stable")[:most]
    for place, at in enumerate(order.tolist(), 1):
        yield Ranked(place, _url_of(collection.state, int(ranks.file_nums[at])), float(ranks.ranks[at]))


def rank_hosts(collection: Collection, note: Note | None = None) -> list[Ranked]:
    """Every host that has pages, by harmonic centrality over the links between hosts, the highest first."""
    web = _web(collection, note)
    names, host_of = _hosts(collection.state, web)
    targets = np.repeat(np.arange(web.graph.size), np.diff(web.graph.starts))
    graph = Graph.of(host_of[web.graph.sources], host_of[targets], len(names))
    scores = harmonic(graph)
    order = np.argsort(-scores, kind="stable").tolist()
    return [Ranked(place, names[at], float(scores[at])) for place, at in enumerate(order, 1)]


def _hosts(state: State, web: Web) -> tuple[list[str], "np.ndarray[tuple[int], np.dtype[np.int64]]"]:
    """The names of the hosts, and for each page the place of its host among them."""
    places: dict[bytes, int] = {}
    host_of_number = {
        int.from_bytes(number): places.setdefault(key[: key.index(b"\0", BUCKET_BYTES)], len(places))
        for number, key in state.walk(Family.FILE)
    }
    hosts = np.fromiter((host_of_number[number] for number in web.file_nums.tolist()), dtype=np.int64)
    return [from_key(key + b"\0") for key in places], hosts
