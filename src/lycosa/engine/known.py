"""The known URLs of a collection as a compressed trie: a sorted set that is counted, walked and searched by prefix.

The trie is the `url` family itself: its keys are host first and sorted, so a domain, a host or a folder is one range,
and RocksDB stores what neighbours share once. Nothing is kept in memory (docs/decisions/0009). A reader beside a
running crawl sees what was committed when it was opened or refreshed last. Used by `lycosa.Collection`.
"""

from collections.abc import Iterator
from itertools import groupby

from lycosa.engine.tree import parts_of
from lycosa.errors import SettingsError
from lycosa.frontier.rows import UrlState, state_of
from lycosa.frontier.series import ancestors
from lycosa.records import Family
from lycosa.store.state import State
from lycosa.web.url import BUCKET_BYTES, from_key, parse, prefix_end, url_key

_STATES = {"": frozenset(UrlState)} | {state.name.lower(): frozenset((state,)) for state in UrlState}
_LAST = b"\xff" * (BUCKET_BYTES + 1)  # behind every key: a host's name is ASCII
_READ_FIRST, _READ = 2, 2_000  # keys read at a time: most questions are about one


class KnownUrls:
    """The URLs of some ranges of the state, of those that are in one of the `wanted` states. The state stays open for
    as long as this is asked."""

    def __init__(self, state: State, starts: list[bytes], wanted: frozenset[UrlState]) -> None:
        self._state, self._starts, self._wanted = state, starts, wanted

    def __repr__(self) -> str:
        return f"<KnownUrls of {self._state!r}>"

    def __len__(self) -> int:
        return self._count(b"", _LAST)

    def __contains__(self, url: str) -> bool:
        found = parse(url)
        key = url_key(found.href) if found else b""
        row = self._state.get(Family.URL, key) if key.startswith(tuple(self._starts)) else None
        return row is not None and state_of(row) in self._wanted

    def __iter__(self) -> Iterator[str]:
        return map(from_key, self._keys())

    def __reversed__(self) -> Iterator[str]:
        """Bottom-up: what lies in a folder comes before the folder."""
        return map(from_key, self._keys_back())

    def count(self, prefix: str) -> int:
        """The size of a subtree: how many URLs start with `prefix`, itself a URL with at least its first slash."""
        key = _key(prefix)
        return self._count(key, _end(key))

    def below(self, prefix: str, *, bottom_up: bool = False) -> Iterator[str]:
        """The URLs that start with `prefix`, in order; or backwards, each folder after what lies in it."""
        key = _key(prefix)
        return map(from_key, (self._keys_back if bottom_up else self._keys)(key, _end(key)))

    def folders(self, prefix: str) -> Iterator[tuple[str, int]]:
        """What lies right below `prefix`: folders, each with the number of its URLs, and single URLs with 1."""
        start = _key(prefix)
        cut = len(start)
        for branch, keys in groupby(self._keys(start, _end(start)), lambda key: key[: key.find(b"/", cut) + 1] or key):
            yield from_key(branch), sum(1 for _ in keys)

    def ancestors(self, url: str) -> Iterator[tuple[str, int]]:
        """The folders above a URL, the nearest first, each with the number of known URLs below it."""
        href = from_key(_key(url))
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
        return _url(next(self._keys(_key(url) + b"\0", _LAST), None))

    def before(self, url: str) -> str | None:
        """The known URL in front of this one."""
        return _url(next(self._keys_back(b"", _key(url)), None))

    def _ranges(self, start: bytes, end: bytes) -> list[tuple[bytes, bytes]]:
        """The parts of a range that belong to this set."""
        cut = ((max(start, own), min(end, _end(own))) for own in self._starts)
        return [(low, high) for low, high in cut if low < high]

    def _keys(self, start: bytes = b"", end: bytes = _LAST) -> Iterator[bytes]:
        for low, high in self._ranges(start, end):
            at, read = low, _READ_FIRST
            while pairs := self._state.scan(Family.URL, at, high, limit=read):
                yield from (key for key, row in pairs if state_of(row) in self._wanted)
                at, read = pairs[-1][0] + b"\0", _READ

    def _keys_back(self, start: bytes = b"", end: bytes = _LAST) -> Iterator[bytes]:
        for low, high in reversed(self._ranges(start, end)):
            at, read = high, _READ_FIRST
            while pairs := self._state.scan_back(Family.URL, low, at, limit=read):
                yield from (key for key, row in pairs if state_of(row) in self._wanted)
                at, read = pairs[-1][0], _READ

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
    found = parse(url)
    if found is None:
        raise SettingsError(f"{url!r} is no http or https URL")
    return url_key(found.href)


def _end(start: bytes) -> bytes:
    return prefix_end(start) or _LAST


def _url(key: bytes | None) -> str | None:
    return None if key is None else from_key(key)
