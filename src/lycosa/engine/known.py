"""The known URLs of a collection in memory, as a compressed trie: some ten bytes each, in order, counted by prefix.

A snapshot for programs that ask more than a few questions: one walk over the committed state fills it, after that no
disk is read. Order is that of the state, host by host and in each by path, so a folder's URLs are neighbours. What may
be asked for is what `lycosa tree` takes: the beginning of a URL, a host or a domain. Used by `lycosa.Collection`.
"""

from collections.abc import Iterator
from itertools import chain, groupby

from lycosa.engine.tree import parts_of
from lycosa.errors import SettingsError
from lycosa.frontier.rows import UrlState, state_of
from lycosa.frontier.trie import TrieStats, UrlTrie, prefix_end
from lycosa.records import Family
from lycosa.store import Collection
from lycosa.web.url import from_key, parse, url_key

_STATES = {"": frozenset(UrlState)} | {state.name.lower(): frozenset((state,)) for state in UrlState}


class KnownUrls:
    """A sorted set of URLs. Nothing changes it but its own `add` and `discard`, which no crawl hears of."""

    def __init__(self, trie: UrlTrie) -> None:
        self._trie = trie

    def __repr__(self) -> str:
        return f"<KnownUrls {len(self):,}>"

    def __len__(self) -> int:
        return len(self._trie)

    def __contains__(self, url: str) -> bool:
        found = parse(url)
        return found is not None and url_key(found.href) in self._trie

    def __iter__(self) -> Iterator[str]:
        return map(from_key, self._trie)

    def __reversed__(self) -> Iterator[str]:
        return map(from_key, reversed(self._trie))

    def add(self, url: str) -> bool:
        """True if it is new."""
        return self._trie.add(_key(url))

    def discard(self, url: str) -> bool:
        """True if it was here."""
        return self._trie.discard(_key(url))

    def count(self, prefix: str) -> int:
        """How many URLs start with `prefix`, itself a URL with at least its first slash; no walk, however many."""
        return self._trie.count(_key(prefix))

    def below(self, prefix: str) -> Iterator[str]:
        """The URLs that start with `prefix`, in order."""
        return map(from_key, self._trie.subtree(_key(prefix)))

    def folders(self, prefix: str) -> Iterator[tuple[str, int]]:
        """What lies right below `prefix`: folders, each with the number of its URLs, and single URLs with 1."""
        return ((from_key(key), count) for key, count in self._trie.branches(_key(prefix)))

    def first(self, prefix: str) -> str | None:
        """The leftmost leaf of a subtree."""
        return _url(self._trie.leftmost(_key(prefix)))

    def last(self, prefix: str) -> str | None:
        return _url(self._trie.rightmost(_key(prefix)))

    def after(self, url: str) -> str | None:
        """The next known URL behind this one, which need not be known itself."""
        return _url(self._trie.at_or_after(_key(url) + b"\0"))

    def before(self, url: str) -> str | None:
        return _url(self._trie.before(_key(url)))

    def stats(self) -> TrieStats:
        return self._trie.stats()


def known_urls(collection: Collection, text: str = "", *, state: str = "") -> KnownUrls:
    """The URLs below the beginning of a URL, a host or a domain ("": all); with `state` only those that are in it."""
    wanted = _STATES.get(state)
    if wanted is None:
        raise SettingsError(f"no URL is {state!r}: {', '.join(filter(None, _STATES))}")
    for part in parts_of(collection.state, text):
        walks = (collection.state.walk(Family.URL, start, prefix_end(start)) for start in part.starts)
        keys = (key for key, row in chain.from_iterable(walks) if state_of(row) in wanted)
        # Two shards can hold a key while one hands it to the other.
        trie = UrlTrie.from_sorted(key for key, _ in groupby(keys))
        if len(trie):
            return KnownUrls(trie)
    return KnownUrls(UrlTrie())


def _key(url: str) -> bytes:
    found = parse(url)
    if found is None:
        raise SettingsError(f"{url!r} is no http or https URL")
    return url_key(found.href)


def _url(key: bytes | None) -> str | None:
    return None if key is None else from_key(key)
