"""The tree of known URLs: how many lie below every host and folder, and in which state.

The `url` family is the tree already: its keys are host first and sorted, so a branch is a range of them. One walk over
the range counts all branches, with nothing in memory but the folders that are open and the heaviest that were closed.
A folder that holds what its only folder holds, no more, is not shown for itself, as in any compressed trie. Reads the
committed state only. Used by `lycosa tree`.
"""

import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

import msgspec

from lycosa.errors import SettingsError
from lycosa.frontier.rows import KEY_END, UrlState, state_of
from lycosa.records import Family
from lycosa.store import Collection
from lycosa.store.state import State
from lycosa.web.domain import is_address, registrable_domain
from lycosa.web.url import BUCKET_BYTES, from_key, parse, prefix_end, url_key


class Branch(msgspec.Struct, frozen=True):
    """All known URLs that start with `prefix`. The branches it lies in come before it, `level` says how many;
    `left_out` is how many folders right below it are not shown."""

    prefix: str
    level: int
    known: int
    queued: int
    done: int
    failed: int
    dropped: int
    left_out: int


class Wanted(NamedTuple):
    """A part of the tree: what it is called, what its keys have in common, and the beginnings of all of them."""

    words: str
    start: bytes
    starts: list[bytes]


class _Folder:
    """A branch while the walk is inside it."""

    __slots__ = ("counts", "folders", "key", "largest")

    def __init__(self, key: bytes) -> None:
        self.key = key
        self.counts = [0] * (max(UrlState) + 1)
        self.folders = 0  # right below
        self.largest = 0  # URLs in the largest of them

    @property
    def known(self) -> int:
        return sum(self.counts)

    def __lt__(self, other: "_Folder") -> bool:
        """Lighter; of two that weigh the same the earlier one stays."""
        return (self.known, other.key) < (other.known, self.key)


def tree(collection: Collection, text: str = "", *, depth: int | None = None, rows: int) -> list[Branch]:
    """What lies below the beginning of a URL, a host or a domain ("": everything): a branch for all of it, then the
    `rows` heaviest in it, at most `depth` folders down. Siblings follow each other by weight."""
    parts = parts_of(collection.state, text)
    for part in parts:
        rows_of_part = chain.from_iterable(
            collection.state.walk(Family.URL, start, prefix_end(start)) for start in part.starts
        )
        root, kept = _count(rows_of_part, part.start, depth=depth, rows=rows)
        if root.known:
            return list(_in_order(root, kept, part.words))
    return [_branch(_Folder(b""), parts[0].words, level=0)]


def parts_of(state: State, text: str) -> list[Wanted]:
    """Where to look, one after the other, until there is something."""
    if not text:
        return [Wanted("", b"", [b""])]
    spellings = [text] if "://" in text else [f"https://{text}", f"http://{text}"]
    urls = [url for spelling in spellings if (url := parse(spelling))]
    if not urls:
        raise SettingsError(f"{text!r} is neither the beginning of an http or https URL nor a host or a domain")
    if not set("/?#:@").intersection(text.rstrip("/")):
        return [_domain(state, urls[0].host, url_key(urls[0].href))]
    return [Wanted(url.href, key := url_key(url.href), [key]) for url in urls]


def _domain(state: State, host: str, key: bytes) -> Wanted:
    """A host with every port and scheme, and all hosts below it."""
    site = key[: key.index(KEY_END, BUCKET_BYTES)].rsplit(b":", 2)[0]
    if is_address(host):
        return Wanted(host, site + b":", [site + b":"])
    if registrable_domain(host) is not None:
        return Wanted(host, site, [site])
    # A public suffix: the domains below it have different buckets.
    hosts = (key for key, _ in state.walk(Family.HOST))
    return Wanted(host, b"", [key + KEY_END for key in hosts if key.startswith(site[BUCKET_BYTES:], BUCKET_BYTES)])


def _count(
    pairs: Iterable[tuple[bytes, bytes]], start: bytes, *, depth: int | None, rows: int
) -> tuple[_Folder, list[_Folder]]:
    """The folder of all rows, whose keys start with `start`, and the heaviest folders in it."""
    opened = [inner := _Folder(start)]
    kept: list[_Folder] = []
    for key, row in pairs:
        if not key.startswith(inner.key) or _folder_end(key, len(inner.key)):
            while not key.startswith(opened[-1].key):
                _close(opened, kept, rows)
            while (depth is None or len(opened) <= depth) and (end := _folder_end(key, len(opened[-1].key))):
                opened.append(_Folder(key[:end]))
            inner = opened[-1]
        inner.counts[state_of(row)] += 1
    while len(opened) > 1:
        _close(opened, kept, rows)
    return opened[0], kept


def _folder_end(key: bytes, position: int) -> int:
    """Where the next folder of a key ends behind `position`; 0 if there is none. The first is the host with its slash,
    each later one ends with a slash too, and the last with the question mark of a query."""
    path = key.index(KEY_END, BUCKET_BYTES) + 1
    if position <= path:
        return path + 1
    query = key.find(b"?", path) + 1
    if query and query <= position:
        return 0
    return key.find(b"/", position, query or len(key)) + 1 or query


def _close(opened: list[_Folder], kept: list[_Folder], rows: int) -> None:
    """The walk has left the innermost folder: its counts go to the one around it."""
    closed, around = opened.pop(), opened[-1]
    known = closed.known
    around.counts = [a + b for a, b in zip(around.counts, closed.counts, strict=True)]
    around.folders += 1
    around.largest = max(around.largest, known)
    if closed.largest == known:
        return  # its only folder says it all
    heapq.heappush(kept, closed)
    if len(kept) > rows:
        heapq.heappop(kept)


def _in_order(root: _Folder, kept: list[_Folder], words: str) -> Iterator[Branch]:
    """The root, then every branch before those that lie in it. A folder outweighs what lies in it, so none of those
    that were kept lies in one that was not."""
    below = defaultdict(list)
    around = [root]
    for folder in sorted(kept, key=lambda folder: folder.key):
        while not folder.key.startswith(around[-1].key):
            around.pop()
        below[around[-1].key].append(folder)
        around.append(folder)
    waiting = [(root, 0)]
    while waiting:
        folder, level = waiting.pop()
        shown = sorted(below[folder.key])
        yield _branch(folder, from_key(folder.key) if level else words, level=level, shown=len(shown))
        waiting += [(inner, level + 1) for inner in shown]


def _branch(folder: _Folder, prefix: str, *, level: int, shown: int = 0) -> Branch:
    return Branch(
        prefix=prefix,
        level=level,
        known=folder.known,
        queued=folder.counts[UrlState.QUEUED],
        done=folder.counts[UrlState.DONE],
        failed=folder.counts[UrlState.FAILED],
        dropped=folder.counts[UrlState.DROPPED],
        left_out=folder.folders - shown,
    )
