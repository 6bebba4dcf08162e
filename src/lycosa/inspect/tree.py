"""The tree of known URLs: counted by folder, walked, and searched by prefix.

The `url` family is the tree already: its keys are host first and sorted, so a domain, a host or a folder is one range,
and RocksDB stores what neighbours share once; nothing is kept in memory (docs/decisions/0009). `url_tree` counts all
branches in one walk, with only the open folders and the heaviest closed ones in memory; a folder that holds no more
than its only folder is not shown for itself, as in any compressed trie. `KnownUrls` is a sorted set of URLs. Reads the
committed state only. Used by `lycosa tree`, `lycosa.Collection` and the live page.
"""

import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import chain, groupby
from typing import NamedTuple

import msgspec

from lycosa.errors import SettingsError
from lycosa.frontier import KEY_END, UrlState, state_of, unpack_host
from lycosa.learning import ancestors
from lycosa.records import Family
from lycosa.store import CollectionStore, State
from lycosa.web import BUCKET_BYTES, is_ip_host, key_prefix_end, parse_url, registrable_domain, url_from_key, url_key


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


class Subtree(NamedTuple):
    """A part of the tree: its name, the common prefix of its keys, and the prefixes of its ranges."""

    words: str
    start: bytes
    starts: list[bytes]


class _Folder:
    """A folder while the walk is inside it."""

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
        """Orders by the number of URLs; of two equal folders the earlier one is kept."""
        return (self.known, other.key) < (other.known, self.key)


def url_tree(collection: CollectionStore, text: str = "", *, depth: int | None = None, rows: int) -> list[Branch]:
    """The tree below the beginning of a URL, a host or a domain ("": everything): a branch for all of it, then the
    `rows` heaviest in it, at most `depth` folders down. Siblings follow each other by weight."""
    parts = parts_of(collection.state, text)
    for part in parts:
        rows_of_part = chain.from_iterable(
            collection.state.walk(Family.URL, start, key_prefix_end(start)) for start in part.starts
        )
        root, kept = _count(_states(collection.state, rows_of_part), part.start, depth=depth, rows=rows)
        if root.known:
            return list(_in_order(root, kept, part.words))
    return [_branch(_Folder(b""), parts[0].words, level=0)]


def parts_of(state: State, text: str) -> list[Subtree]:
    """The parts that a text may mean, to be tried one after the other until one is not empty."""
    if not text:
        return [Subtree("", b"", [b""])]
    spellings = [text] if "://" in text else [f"https://{text}", f"http://{text}"]
    urls = [url for spelling in spellings if (url := parse_url(spelling))]
    if not urls:
        raise SettingsError(f"{text!r} is neither the beginning of an http or https URL nor a host or a domain")
    if not set("/?#:@").intersection(text.rstrip("/")):
        return [_domain(state, urls[0].host, url_key(urls[0].href))]
    return [Subtree(url.href, key := url_key(url.href), [key]) for url in urls]


def key_prefixes(state: State, text: str) -> list[bytes]:
    """The prefixes of all keys that a text may mean: a host with every port and scheme and all hosts below it, or with
    a port or a path the beginning of a URL."""
    return [start for part in parts_of(state, text) for start in part.starts]


def _domain(state: State, host: str, key: bytes) -> Subtree:
    """A host with every port and scheme, and all hosts below it."""
    site = key[: key.index(KEY_END, BUCKET_BYTES)].rsplit(b":", 2)[0]
    if is_ip_host(host):
        return Subtree(host, site + b":", [site + b":"])
    if registrable_domain(host) is not None:
        return Subtree(host, site, [site])
    # A public suffix: the domains below it have different buckets.
    hosts = (key for key, _ in state.walk(Family.HOST))
    return Subtree(host, b"", [key + KEY_END for key in hosts if key.startswith(site[BUCKET_BYTES:], BUCKET_BYTES)])


def _states(state: State, pairs: Iterable[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, int]]:
    """The states of URLs in the order of their keys. What waits at a host that was given up has failed."""
    start, has_failed = b"", False
    for key, row in pairs:
        found = state_of(row)
        if found == UrlState.QUEUED:
            if not start or not key.startswith(start):
                start = key[: key.index(KEY_END, BUCKET_BYTES) + 1]
                packed = state.get(Family.HOST, start[:-1])
                has_failed = packed is not None and bool(unpack_host(packed).gave_up)
            found = UrlState.FAILED if has_failed else found
        yield key, found


def _count(
    states: Iterable[tuple[bytes, int]], start: bytes, *, depth: int | None, rows: int
) -> tuple[_Folder, list[_Folder]]:
    """The folder of all URLs, whose keys start with `start`, and the heaviest folders in it."""
    opened = [inner := _Folder(start)]
    kept: list[_Folder] = []
    for key, state in states:
        if not key.startswith(inner.key) or _folder_end(key, len(inner.key)):
            while not key.startswith(opened[-1].key):
                _close(opened, kept, rows)
            while (depth is None or len(opened) <= depth) and (end := _folder_end(key, len(opened[-1].key))):
                opened.append(_Folder(key[:end]))
            inner = opened[-1]
        inner.counts[state] += 1
    while len(opened) > 1:
        _close(opened, kept, rows)
    return opened[0], kept


def _folder_end(key: bytes, position: int) -> int:
    """The end of the next folder of a key after `position`; 0 if there is none. The first is the host with its slash,
    each later one ends with a slash too, and the last with the question mark of a query."""
    path = key.index(KEY_END, BUCKET_BYTES) + 1
    if position <= path:
        return path + 1
    query = key.find(b"?", path) + 1
    if query and query <= position:
        return 0
    return key.find(b"/", position, query or len(key)) + 1 or query


def _close(opened: list[_Folder], kept: list[_Folder], rows: int) -> None:
    """Closes the innermost folder, which the walk has left: its counts go to the one around it."""
    closed, around = opened.pop(), opened[-1]
    known = closed.known
    around.counts = [a + b for a, b in zip(around.counts, closed.counts, strict=True)]
    around.folders += 1
    around.largest = max(around.largest, known)
    if closed.largest == known:
        return  # its only folder shows the same
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
        yield _branch(folder, url_from_key(folder.key) if level else words, level=level, shown=len(shown))
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


_STATES = {"": frozenset(UrlState)} | {state.name.lower(): frozenset((state,)) for state in UrlState}
LAST_KEY = b"\xff" * (BUCKET_BYTES + 1)  # behind every key: a host's name is ASCII
_READ_FIRST, _READ = 2, 2_000  # keys read at a time: most questions are about one


class KnownUrls:
    """The known URLs of some ranges of keys that are in one of the `wanted` states, as a sorted set. The state stays
    open for as long as this is used."""

    def __init__(self, state: State, starts: list[bytes], wanted: frozenset[UrlState]) -> None:
        self._state, self._starts, self._wanted = state, starts, wanted

    def __repr__(self) -> str:
        return f"<KnownUrls of {self._state!r}>"

    def __len__(self) -> int:
        return self._count(b"", LAST_KEY)

    def __contains__(self, url: str) -> bool:
        found = parse_url(url)
        key = url_key(found.href) if found else b""
        row = self._state.get(Family.URL, key) if key.startswith(tuple(self._starts)) else None
        return row is not None and bool(list(self._chosen([(key, row)])))

    def __iter__(self) -> Iterator[str]:
        return map(url_from_key, self._keys())

    def __reversed__(self) -> Iterator[str]:
        """Bottom-up: what lies in a folder comes before the folder."""
        return map(url_from_key, self._keys_back())

    def count(self, prefix: str) -> int:
        """The size of a subtree: how many URLs start with `prefix`, itself a URL with at least its first slash."""
        key = _key(prefix)
        return self._count(key, _end(key))

    def below(self, prefix: str, *, bottom_up: bool = False) -> Iterator[str]:
        """The URLs that start with `prefix`, in order; or backwards, each folder after what lies in it."""
        key = _key(prefix)
        return map(url_from_key, (self._keys_back if bottom_up else self._keys)(key, _end(key)))

    def folders(self, prefix: str) -> Iterator[tuple[str, int]]:
        """The entries right below `prefix`: folders, each with the number of its URLs, and single URLs with 1."""
        start = _key(prefix)
        cut = len(start)
        for branch, keys in groupby(self._keys(start, _end(start)), lambda key: key[: key.find(b"/", cut) + 1] or key):
            yield url_from_key(branch), sum(1 for _ in keys)

    def ancestors(self, url: str) -> Iterator[tuple[str, int]]:
        """The folders above a URL, the nearest first, each with the number of known URLs below it."""
        href = url_from_key(_key(url))
        path = href[href.index("/", len("https://")) :]
        for folder in ancestors(path):
            yield (above := href.removesuffix(path) + folder), self.count(above)

    def first(self, prefix: str) -> str | None:
        """The leftmost leaf of a subtree."""
        return next(self.below(prefix), None)

    def last(self, prefix: str) -> str | None:
        """The rightmost leaf of a subtree."""
        return next(self.below(prefix, bottom_up=True), None)

    def after(self, url: str) -> str | None:
        """The next known URL behind this one, which need not be known itself."""
        return _url(next(self._keys(_key(url) + b"\0", LAST_KEY), None))

    def before(self, url: str) -> str | None:
        """The known URL in front of this one."""
        return _url(next(self._keys_back(b"", _key(url)), None))

    def _ranges(self, start: bytes, end: bytes) -> list[tuple[bytes, bytes]]:
        """The parts of a range that belong to this set."""
        cut = ((max(start, own), min(end, _end(own))) for own in self._starts)
        return [(low, high) for low, high in cut if low < high]

    def _keys(self, start: bytes = b"", end: bytes = LAST_KEY) -> Iterator[bytes]:
        for low, high in self._ranges(start, end):
            at, read = low, _READ_FIRST
            while pairs := self._state.scan(Family.URL, at, high, limit=read):
                yield from self._chosen(pairs)
                at, read = pairs[-1][0] + b"\0", _READ

    def _keys_back(self, start: bytes = b"", end: bytes = LAST_KEY) -> Iterator[bytes]:
        for low, high in reversed(self._ranges(start, end)):
            at, read = high, _READ_FIRST
            while pairs := self._state.scan_back(Family.URL, low, at, limit=read):
                yield from self._chosen(pairs)
                at, read = pairs[-1][0], _READ

    def _chosen(self, pairs: list[tuple[bytes, bytes]]) -> Iterator[bytes]:
        """The keys of those in a wanted state."""
        if len(self._wanted) == len(UrlState):
            return (key for key, _ in pairs)
        return (key for key, state in _states(self._state, pairs) if state in self._wanted)

    def _count(self, start: bytes, end: bytes) -> int:
        if len(self._wanted) < len(UrlState):
            return sum(1 for _ in self._keys(start, end))
        return sum(self._state.count(Family.URL, low, high) for low, high in self._ranges(start, end))


def known_urls(state: State, text: str = "", *, in_state: str = "") -> KnownUrls:
    """The URLs below the beginning of a URL, a host or a domain ("": all); with `in_state` only those that are so."""
    wanted = _STATES.get(in_state)
    if wanted is None:
        raise SettingsError(f"no URL is {in_state!r}: {', '.join(filter(None, _STATES))}")
    for part in parts_of(state, text):
        known = KnownUrls(state, part.starts, wanted)
        if next(iter(known), None) is not None:
            break
    return known


def _key(url: str) -> bytes:
    found = parse_url(url)
    if found is None:
        raise SettingsError(f"{url!r} is no http or https URL")
    return url_key(found.href)


def _end(start: bytes) -> bytes:
    return key_prefix_end(start) or LAST_KEY


def _url(key: bytes | None) -> str | None:
    return None if key is None else url_from_key(key)
