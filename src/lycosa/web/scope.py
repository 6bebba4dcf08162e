"""Which URLs a crawl wants: scope rules made from the seeds, and filters by pattern, extension and shape.

A filter gives the reason why it drops a URL, or None; the reasons are kept, so that every URL can be asked why it is
not there. Filters are pure, take constant memory and time linear in the URL's length. `filter_urls` puts a page's links
through all of them; a user's own filters (`UrlFilter`) stand in the same row as the ones here.
Patterns have one special character, `*` for any run of characters, and are matched without backtracking; robots rules
are such patterns, too.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple, Protocol

import msgspec

from lycosa.web.url import DEFAULT_PORTS, MAX_URL_BYTES, Url, domain_of, split_url


def pattern_pieces(pattern: str) -> tuple[str, ...]:
    """The literal pieces between the stars; the first and the last may be empty, those between them are not."""
    first, *rest = pattern.split("*")
    return (first, *filter(None, rest[:-1]), rest[-1]) if rest else (first,)


def matches_pattern(pieces: Sequence[str], text: str, *, to_end: bool) -> bool:
    """Whether `text` begins with what the pieces describe, or with `to_end` is that and nothing more."""
    last = len(pieces) - 1
    if not last:
        return text == pieces[0] if to_end else text.startswith(pieces[0])
    if not text.startswith(pieces[0]):
        return False
    position = len(pieces[0])
    for piece in pieces[1:last]:
        position = text.find(piece, position)
        if position < 0:
            return False
        position += len(piece)
    if to_end:
        return text.endswith(pieces[last], position)
    return text.find(pieces[last], position) >= 0


# Heritrix's bounds, which cut off calendars and circular links but hardly any real page.
MAX_PATH_SEGMENTS = 20
MAX_SEGMENT_REPEATS = 2
# Folders whose shape is remembered; the links of a page lie in few of them.
CACHED_FOLDERS = 4_096

_USUAL_PORTS = tuple(DEFAULT_PORTS.values())


class DropReason(StrEnum):
    """Why a filter dropped a URL. `FILTER` is for a user's own filters."""

    OUT_OF_SCOPE = "out-of-scope"
    NOT_INCLUDED = "not-included"
    EXCLUDED = "excluded"
    EXTENSION = "extension"
    TOO_LONG = "too-long"
    TOO_DEEP = "too-deep"
    REPEATED_SEGMENTS = "repeated-segments"
    FILTER = "filter"


class UrlFilter(Protocol):
    """Decides about one normalised URL. Must not block: it runs for every link of every page."""

    def reason(self, url: Url) -> DropReason | None:
        """Why `url` is dropped, or None if this filter keeps it."""


class FilteredUrls(NamedTuple):
    """The URLs that are left of a page's links, in their order, and those dropped, with the first filter's reason."""

    kept: list[Url]
    dropped: list[tuple[str, DropReason]]


def filter_urls(hrefs: Iterable[str], filters: Sequence[UrlFilter]) -> FilteredUrls:
    """Passes normalised URLs through all filters; the cheapest and strictest belong first."""
    sifted = FilteredUrls([], [])
    reasons = [url_filter.reason for url_filter in filters]
    for href in hrefs:
        url = split_url(href)
        for reason_of in reasons:
            reason = reason_of(url)
            if reason is not None:
                sifted.dropped.append((href, reason))
                break
        else:
            sifted.kept.append(url)
    return sifted


class ScopeKind(StrEnum):
    """How far from its seeds a crawl may go."""

    HOST = "host"
    DOMAIN = "domain"
    PREFIX = "prefix"
    ANY = "any"


class Scope:
    """Keeps the URLs within reach of at least one seed.

    `host`: the same host and port, where http and https on their usual ports count as one. `prefix`: the same, and
    within the seed's folder, which is its path up to the last slash. `domain`: every host of the same registrable
    domain, any port. `any`: everything.
    """

    def __init__(self, kind: ScopeKind, seeds: Iterable[Url]) -> None:
        self.kind = kind
        self._is_any, self._is_domain = kind is ScopeKind.ANY, kind is ScopeKind.DOMAIN
        self._domains: set[str] = set()
        self._folders: dict[tuple[str, int], tuple[str, ...]] = {}
        for seed in seeds:
            self._domains.add(domain_of(seed.host))
            folder = _folder(seed.path) if kind is ScopeKind.PREFIX else "/"
            for port in _USUAL_PORTS if seed.port in _USUAL_PORTS else (seed.port,):
                known = self._folders.get((seed.host, port), ())
                self._folders[seed.host, port] = tuple(sorted({*known, folder}))

    def __repr__(self) -> str:
        reach = self._domains if self._is_domain else self._folders
        return f"<Scope {self.kind} of {len(reach)}>"

    def has_host(self, host: str, port: int) -> bool:
        """Can URLs of this host be in reach, in some folder of it at least?"""
        if self._is_any or self._is_domain:
            return self._is_any or domain_of(host) in self._domains
        return (host, port) in self._folders

    def reason(self, url: Url) -> DropReason | None:
        if self._is_any:
            return None
        if self._is_domain:
            return None if domain_of(url.host) in self._domains else DropReason.OUT_OF_SCOPE
        folders = self._folders.get((url.host, url.port))
        return None if folders and url.path.startswith(folders) else DropReason.OUT_OF_SCOPE


class UrlLimits(msgspec.Struct, frozen=True):
    """What a URL may look like.

    `include` and `exclude` are patterns in which `*` stands for any run of characters and everything else for itself;
    a pattern describes the whole URL, or the path with its query if it begins with a slash. (Regular expressions are
    not offered: one of them over one long URL can take minutes.) If there are `include` patterns, one must match.
    `skip_extensions` are lower case without the dot. Segments count in the path alone, not in the query.
    """

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    skip_extensions: frozenset[str] = frozenset()
    max_url_bytes: int = MAX_URL_BYTES
    max_path_segments: int = MAX_PATH_SEGMENTS
    max_segment_repeats: int = MAX_SEGMENT_REPEATS


class ShapeFilter:
    """Drops what `UrlLimits` forbids."""

    def __init__(self, limits: UrlLimits) -> None:
        self.limits = limits
        self._include = UrlPatterns(limits.include)
        self._exclude = UrlPatterns(limits.exclude)
        self._repeats = lru_cache(CACHED_FOLDERS)(has_repeats)

    def __repr__(self) -> str:
        return f"<ShapeFilter {self.limits}>"

    def reason(self, url: Url) -> DropReason | None:
        limits = self.limits
        if len(url.href) > limits.max_url_bytes:
            return DropReason.TOO_LONG
        path = url.path if "?" not in url.path else url.path[: url.path.index("?")]
        if path.count("/") - path.endswith("/") > limits.max_path_segments:
            return DropReason.TOO_DEEP
        if self._repeats(path[: path.rindex("/") + 1], limits.max_segment_repeats):
            return DropReason.REPEATED_SEGMENTS
        if limits.skip_extensions and _extension(path) in limits.skip_extensions:
            return DropReason.EXTENSION
        if limits.exclude and self._exclude.match(url):
            return DropReason.EXCLUDED
        if limits.include and not self._include.match(url):
            return DropReason.NOT_INCLUDED
        return None


def has_repeats(folder: str, max_repeats: int) -> bool:
    """Whether a run of one or more segments follows upon itself more than `max_repeats` times: `/a/b/a/b/a/b/`."""
    segments = folder.split("/")[1:-1]
    if len(segments) == len(set(segments)):
        return False
    for period in range(1, len(segments) // (max_repeats + 1) + 1):
        equal_in_a_row = 0
        for before, after in zip(segments, segments[period:], strict=False):
            equal_in_a_row = equal_in_a_row + 1 if before == after else 0
            if equal_in_a_row == period * max_repeats:
                return True
    return False


class UrlPatterns:
    """Patterns of URLs: of the whole URL, or of path and query where one begins with a slash."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._of_href = [pattern_pieces(pattern) for pattern in patterns if not pattern.startswith("/")]
        self._of_path = [pattern_pieces(pattern) for pattern in patterns if pattern.startswith("/")]

    def match(self, url: Url) -> bool:
        for pieces in self._of_href:
            if matches_pattern(pieces, url.href, to_end=True):
                return True
        for pieces in self._of_path:  # noqa: SIM110 - twice as fast as any() over a generator
            if matches_pattern(pieces, url.path, to_end=True):
                return True
        return False


def _folder(path: str) -> str:
    path = path.partition("?")[0]
    return path[: path.rindex("/") + 1]


def _extension(path: str) -> str:
    """`/a/B.tar.GZ` → `gz`; empty where the last segment has none."""
    _, dot, extension = path[path.rindex("/") + 1 :].rpartition(".")
    return extension.lower() if dot else ""
