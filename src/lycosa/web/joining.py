"""Joins the hrefs of page after page, and remembers what it joined a moment ago: the pages of a folder link alike.

What most hrefs lead to depends on the folder of their base only, not on its last segment and query, and so the pages
of a folder share the work: a look into a dictionary in place of a parse. Which ones: those that begin with something
else than `?` once their fragment is gone, and name no scheme, or http and https with their slashes.
Invariants: `join_map` gives what `web.url.join_map` gives; memory is bounded by `generation`, twice. `base` is a
normalised URL. Called by the engine, once a page.
"""

import re
from collections.abc import Collection, Iterable
from typing import cast

from lycosa.web.url import FETCHABLE, MAX_URL_BYTES, STRIPPED, join_stems, stem_of

GENERATION = 25_000  # hrefs; both together are about 10 MB
LONGEST = 256  # characters of a href that is remembered

# A href that begins so may mean the page itself: controls and spaces are stripped, a query replaces the page's.
_ABOUT_THE_PAGE = frozenset(map(chr, range(0x21))) | {"?"}
# A path of plain names, from the base's folder, one above it or the root: nothing that a parser would change.
_PLAIN = re.compile(r"(/|(?:\.\./)*+)((?:[A-Za-z0-9_~-][A-Za-z0-9_.~-]*+/?+)++)")


class Joiner:
    """See the module."""

    def __init__(self, *, max_bytes: int = MAX_URL_BYTES, generation: int = GENERATION) -> None:
        self._max_bytes, self._generation = max_bytes, generation
        self._young: dict[str, dict[str, str]] = {}  # folder → stem → URL, empty where the stem leads nowhere
        self._old: dict[str, dict[str, str]] = {}
        self._count = 0

    def __repr__(self) -> str:
        return f"<Joiner folders={len(self._young)}+{len(self._old)} young={self._count}>"

    def join_map(self, base: str, hrefs: Iterable[str]) -> dict[str, str]:
        """href → URL; hrefs that lead nowhere are absent."""
        stems = {href: stem_of(href) for href in hrefs}
        urls = self.join_stems(base, dict.fromkeys(stems.values()))
        return {href: urls[stem] for href, stem in stems.items() if stem in urls}

    def join_stems(self, base: str, stems: Collection[str]) -> dict[str, str]:
        """The same for distinct hrefs that have no fragments any more (`web.url.stem_of`)."""
        known = self._folder(base)
        urls = dict(zip(stems, map(known.get, stems), strict=True))  # None where nothing is remembered
        if new := [stem for stem, url in urls.items() if url is None]:
            urls.update(self._join(base, new, known))
        return cast("dict[str, str]", urls) if all(urls.values()) else {stem: url for stem, url in urls.items() if url}

    def _join(self, base: str, new: list[str], known: dict[str, str]) -> dict[str, str]:
        """Joins and remembers."""
        urls = _join_plain(base, new, self._max_bytes)
        if len(urls) < len(new):
            urls.update(join_stems(base, [stem for stem in new if stem not in urls], self._max_bytes))
        before = len(known)
        for stem in new:
            if (
                0 < len(stem) <= LONGEST
                and stem[0] not in _ABOUT_THE_PAGE
                and stem[-1] not in STRIPPED
                and (":" not in stem or stem.startswith(FETCHABLE))
            ):
                known[stem] = urls.get(stem, "")
        self._count += len(known) - before
        return urls

    def _folder(self, base: str) -> dict[str, str]:
        """What is remembered of a base's folder; when enough is, what was not asked for lately is forgotten."""
        folder = _folder_of(base)
        known = self._young.get(folder)
        if known is None:
            if self._count >= self._generation:
                self._young, self._old, self._count = {}, self._young, 0
            known = self._young[folder] = self._old.pop(folder, {})
            self._count += len(known)
        if len(known) >= self._generation:  # of one vast folder no more is remembered than of all others
            self._count -= len(known)
            known.clear()
        return known


def _folder_of(base: str) -> str:
    query = base.find("?")
    return base[: base.rindex("/", 0, query if query >= 0 else len(base)) + 1]


def _join_plain(base: str, stems: Iterable[str], max_bytes: int) -> dict[str, str]:
    """Those of the stems that are empty or plain paths, joined by hand: half the time that the parser takes."""
    end = len(_folder_of(base))
    ends = [end]  # of the folder and those above it, the root last
    while (end := base.rfind("/", 0, end - 1) + 1) > len("https://"):
        ends.append(end)
    root = len(ends) - 1
    urls: dict[str, str] = {}
    for stem in stems:
        if not stem and len(base) <= max_bytes:
            urls[stem] = base  # a fragment of the page
        elif found := _PLAIN.fullmatch(stem):
            way, path = found.groups()
            url = base[: ends[root if way == "/" else min(len(way) // len("../"), root)]] + path
            if len(url) <= max_bytes:
                urls[stem] = url
    return urls
