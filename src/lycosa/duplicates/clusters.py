"""The clusters of a collection: pages with the same document or nearly the same main text, one of them representative.

Everything is read from the rows of pages, in the order of their keys: digest, SimHash, canonical URL, redirects. So
shards are one collection, and what was changed or forgotten is taken into account. Pages with one digest are exact
copies. For near-copies each page is looked up among those before it (`SimHashIndex`, in a temporary folder): it joins
the cluster of one that is near it, and joins two clusters to one, if it is not far from their first pages. That keeps
chains of small changes from becoming one cluster. Nothing is compared with everything; what is kept is some 50 bytes a
page.

The representative is the page that most of a cluster name as canonical; then one that redirects lead to; then, by
content, one that is whole, may be indexed, and has the document that most have; then the one with the fewest links from
a seed and the shortest URL. A search forms `NearGroups` of its results by the same rule.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import numpy as np
import xxhash

from lycosa.duplicates.index import Hashes, Numbers, SimHashIndex, distances, near_among, unpacked
from lycosa.records import Family
from lycosa.store import SELF_CANONICAL, PageRow, State, pages_at, unpack_page
from lycosa.web import simhash_distance, split_url, url_from_key

AT_ONCE = 512  # pages that are looked up, and rows that are read, at a time
MOST_NEIGHBOURS = 8  # where the index has so many near a page, it is not added: others are found by those
MOST_FROM_FIRST = 8  # sure bits in which a page of a cluster may differ from its first page
PROGRESS_EVERY = 8_192
MOST_GROUPED = 4_096  # texts that others are compared with in `NearGroups`
GROUPED_AT_ONCE = 256
_NO_HASH = bytes(16)

Progress = Callable[[int], None]


class Relation(StrEnum):
    """What a page of a cluster is to its representative."""

    REPRESENTATIVE = "representative"
    EXACT = "exact"
    NEAR = "near"


class DuplicatePage(msgspec.Struct, frozen=True):
    """A page of a cluster. `cluster` counts the clusters from 1, the largest first, `pages` are those of this one;
    `distance` is the number of sure bits of the SimHash in which it differs from its representative."""

    cluster: int
    pages: int
    relation: Relation
    url: str
    representative: str
    distance: int = 0
    title: str = ""
    language: str = ""
    canonical: str = ""


def duplicate_pages(
    state: State, *, host: str = "", relation: Relation | None = None, progress: Progress | None = None
) -> Iterator[DuplicatePage]:
    """The pages of all clusters, the largest cluster first and in each the representative. With `host`, clusters with a
    page of this host; with `relation`, those that have exact copies, or near-copies."""
    texts = _Texts()
    texts.read(state, progress or (lambda pages: None))
    number = 0
    for members in texts.clusters():
        pages = list(_cluster(state, texts, members, number + 1))
        if host and not any(split_url(page.url).host == host for page in pages):
            continue
        if relation and not any(page.relation is relation for page in pages):
            continue
        if pages:
            number += 1
            yield from pages


def is_comparable(row: PageRow) -> bool:
    """Whether a row is that of a document that can be a copy: it is kept, and has a body."""
    return row.is_stored_page and bool(row.size_bytes and row.digest)


class _Texts:
    """What is kept of every page, in columns, and the clusters as they grow. A page's number is its place."""

    def __init__(self) -> None:
        self._file_nums, self._digests, self._hashes, self._redirected = (bytearray() for _ in range(4))
        self._parent = np.empty(0, np.int64)  # an earlier page of the same cluster, or for the first one itself

    def read(self, state: State, progress: Progress) -> None:
        """Reads the rows of a collection, and finds its clusters."""
        with TemporaryDirectory(prefix="lycosa-duplicates-") as folder:
            near = _NearPages(SimHashIndex(Path(folder)), self)
            for count, (_, packed) in enumerate(state.walk(Family.PAGE), 1):
                row = unpack_page(packed)
                if row.location:
                    self._redirected += _url_hash(row.location)
                elif is_comparable(row):
                    self._file_nums += row.file_num.to_bytes(8, "little")
                    self._digests += row.digest
                    self._hashes += row.simhash or _NO_HASH
                    if row.simhash:
                        near.add(len(self._file_nums) // 8 - 1, row.simhash)
                if count % PROGRESS_EVERY == 0:
                    progress(count)
            near.look_up()
        self._join_exact()
        self._redirects = np.sort(np.frombuffer(self._redirected, "<u8"))

    def _join_exact(self) -> None:
        digests = np.frombuffer(self._digests, "<u8").reshape(-1, 2)
        order = np.lexsort((digests[:, 1], digests[:, 0]))
        is_same = (digests[order[1:]] == digests[order[:-1]]).all(axis=1)
        for one, other in zip(order[:-1][is_same].tolist(), order[1:][is_same].tolist(), strict=True):
            self.join(one, other)

    def firsts(self, pages: Numbers) -> Numbers:
        """The first page of the cluster of each of these pages."""
        known = len(self._parent)
        pages_read = len(self._file_nums) // 8
        if known < pages_read:
            grown = np.arange(max(pages_read, 2 * known))
            grown[:known] = self._parent
            self._parent = grown
        found = self._parent[pages]
        while len(found) and (found != (above := self._parent[found])).any():
            found = above
        self._parent[pages] = found
        return found

    def join(self, one: int, other: int) -> None:
        """Makes the clusters of two pages one."""
        first, second = np.sort(self.firsts(np.array((one, other)))).tolist()
        self._parent[second] = first

    def hashes(self, pages: Numbers) -> Hashes:
        """The SimHashes of pages that have one."""
        return unpacked(np.frombuffer(self._hashes, "V16")[pages].tobytes())

    def clusters(self) -> list[Numbers]:
        """The file numbers of each cluster's pages, the largest cluster first."""
        count = len(self._file_nums) // 8
        firsts = self.firsts(np.arange(count))
        order = np.argsort(firsts, kind="stable")
        places = np.append(np.flatnonzero(np.diff(firsts[order], prepend=-1)), count).tolist()
        found = [order[start:end] for start, end in pairwise(places) if end - start > 1]
        file_nums = np.frombuffer(self._file_nums, "<u8")
        return [file_nums[pages] for pages in sorted(found, key=len, reverse=True)]

    def is_redirected_to(self, url: str) -> bool:
        wanted = np.frombuffer(_url_hash(url), "<u8")[0]
        at = int(np.searchsorted(self._redirects, wanted))
        return at < len(self._redirects) and bool(self._redirects[at] == wanted)


class _NearPages:
    """Looks up SimHashes a few hundred at a time, and joins the clusters of pages that are near each other."""

    def __init__(self, index: SimHashIndex, texts: _Texts) -> None:
        self._index, self._texts = index, texts
        self._pages, self._packed = list[int](), bytearray()
        self._entries = bytearray()  # the pages of the index's entries

    def add(self, page: int, simhash: bytes) -> None:
        self._pages.append(page)
        self._packed += simhash
        if len(self._pages) == AT_ONCE:
            self.look_up()

    def look_up(self) -> None:
        """Looks up those that wait, and adds them to the index where it has few or none near them."""
        if not self._pages:
            return
        pages, hashes = np.array(self._pages), unpacked(self._packed)
        self._pages, self._packed = [], bytearray()
        known, own = self._index.near(hashes), near_among(hashes, hashes)
        is_before = own.entry < own.asked
        self._join(pages[known.asked], np.frombuffer(self._entries, "<i8")[known.entry])
        self._join(pages[own.asked[is_before]], pages[own.entry[is_before]])
        is_new = np.bincount(known.asked, minlength=len(pages)) < MOST_NEIGHBOURS
        is_new[known.asked[known.distance == 0]] = False
        self._index.add(hashes[is_new])
        self._entries += pages[is_new].astype("<i8").tobytes()

    def _join(self, pages: Numbers, others: Numbers) -> None:
        """Joins the clusters of pages and those of others, one for one, unless their first pages are far apart."""
        texts = self._texts
        pairs = np.unique(np.stack((texts.firsts(pages), texts.firsts(others), pages), axis=1), axis=0)
        for own, other, page in pairs[pairs[:, 0] != pairs[:, 1]].tolist():
            first, second = texts.firsts(np.array((own, other))).tolist()
            if first == second:
                continue
            hashes = texts.hashes(np.array((page, first, second)))
            if distances(hashes[:2], hashes[2:]).max() <= MOST_FROM_FIRST:
                texts.join(first, second)


class _Member(msgspec.Struct):
    """A page of a cluster while its representative is chosen."""

    url: str
    row: PageRow
    canonical: str


def _cluster(state: State, texts: _Texts, file_nums: Numbers, number: int) -> Iterator[DuplicatePage]:
    """The pages of one cluster, the representative first."""
    members = list(_members(state, file_nums))
    if len(members) < 2:  # they have changed since
        return
    best = _representative(members, texts)
    members.sort(key=lambda member: (member is not best, member.row.digest != best.row.digest, member.url))
    for member in members:
        row = member.row
        is_same = row.digest == best.row.digest
        yield DuplicatePage(
            number,
            len(members),
            Relation.REPRESENTATIVE if member is best else Relation.EXACT if is_same else Relation.NEAR,
            member.url,
            best.url,
            simhash_distance(row.simhash, best.row.simhash) if row.simhash and best.row.simhash else 0,
            row.title,
            row.language,
            member.canonical,
        )


def _members(state: State, file_nums: Numbers) -> Iterator[_Member]:
    for start in range(0, len(file_nums), AT_ONCE):
        numbers = [number.to_bytes(8) for number in file_nums[start : start + AT_ONCE].tolist()]
        keys = [key for key in state.get_many(Family.FILE, numbers) if key]
        for key, row in zip(keys, pages_at(state, keys), strict=True):
            if row is not None and is_comparable(row):
                url = url_from_key(key)
                yield _Member(url, row, url if row.canonical == SELF_CANONICAL else row.canonical)


def _representative(members: Sequence[_Member], texts: _Texts) -> _Member:
    named = Counter(member.canonical for member in members if member.canonical)
    documents = Counter(member.row.digest for member in members)

    def merit(member: _Member) -> tuple[object, ...]:
        row = member.row
        return (
            -named[member.url],
            not texts.is_redirected_to(member.url),
            bool(row.truncated),
            row.noindex,
            -documents[row.digest],
            row.depth,
            len(member.url),
            member.url,
        )

    return min(members, key=merit)


def _url_hash(url: str) -> bytes:
    return xxhash.xxh3_64_intdigest(url.encode("utf-8", "surrogatepass")).to_bytes(8, "little")


class NearGroups:
    """Groups of near texts among those that come one after the other, in memory: how a search folds its results.

    The rule is that of the clusters: a text joins the group of one that it is near, unless it is far from the first
    text of that group. Each is compared with the first `MOST_GROUPED`, so that the time grows with their number alone.
    A group has the name of its first text.
    """

    def __init__(self) -> None:
        self._hashes = np.empty((0, 2), np.uint64)  # of the first texts
        self._names: list[int] = []
        self._firsts: dict[int, int] = {}  # of each of them: where the first text of its group stands

    def __repr__(self) -> str:
        return f"<NearGroups groups={len(set(self._firsts.values()))}>"

    def join(self, names: Sequence[int], hashes: Hashes) -> dict[int, int]:
        """Takes in the next texts; gives those that join a group of before, each with the name of the group."""
        joined: dict[int, int] = {}
        for start in range(0, len(names), GROUPED_AT_ONCE):
            joined |= self._join(names[start : start + GROUPED_AT_ONCE], hashes[start : start + GROUPED_AT_ONCE])
        return joined

    def _join(self, names: Sequence[int], hashes: Hashes) -> dict[int, int]:
        before, room = len(self._names), max(0, MOST_GROUPED - len(self._names))
        self._hashes = np.concatenate((self._hashes, hashes[:room]))
        self._names += names[:room]
        pairs = near_among(hashes, self._hashes)
        groups: dict[int, int] = {}
        for place, other in zip(pairs.asked.tolist(), pairs.entry.tolist(), strict=True):
            if place not in groups and other < before + place:
                first = self._firsts.get(other, other)
                if distances(hashes[place : place + 1], self._hashes[first])[0] <= MOST_FROM_FIRST:
                    groups[place] = self._firsts[before + place] = first
        return {names[place]: self._names[first] for place, first in groups.items()}
