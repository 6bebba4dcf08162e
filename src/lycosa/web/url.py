"""URLs by the WHATWG standard: parsed, joined, normalised; their registrable domains; the keys they are stored under.

A *normalised* URL is http or https, as the standard serialises it (dot segments and default port gone, host in lower
case and punycode, everything outside ASCII escaped), without fragment and credentials, escapes in upper case. It asks
the server for the same thing as the URL it was made from: www, slashes and queries stay. Normalising twice changes
nothing. Parsing and joining raise on no string; what takes a normalised URL or a key takes nothing else.

Links go through `follow_links`, which says which of them are followed, and `join_map`; text that a person or a header
gave goes through `parse_url`. The parser is ada; the native kernel joins what is plain by itself, with the same result.
Registrable domains follow the public suffix list as browsers use it, its private section too, so that a.github.io and
b.github.io are two domains.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from hashlib import blake2b
from typing import Any, cast

import msgspec
from ada_url._ada_wrapper import ffi, lib
from publicsuffixlist import PublicSuffixList

from lycosa.web.kernel import native
from lycosa.web.links import KernelColumns, LinkKind, Links

# Hosts remembered with their domain: a few MB, and far more hosts than one shard works on at a time.
CACHED_HOSTS = 16_384
# The key of a page is asked for by whoever keeps something of it.
CACHED_KEYS = 1_024


def registrable_domain(host: str) -> str | None:
    """The part of `host` that somebody registered; None for an address, a public suffix or a single label."""
    return None if is_ip_host(host) else _suffix_list().privatesuffix(host)


@lru_cache(CACHED_HOSTS)
def domain_of(host: str) -> str:
    """The registrable domain, or the host itself where it has none; without a final dot."""
    return registrable_domain(host) or host.removesuffix(".")


def is_ip_host(host: str) -> bool:
    """Whether `host` is an IP literal. The URL standard reads every name whose last label is a number as IPv4."""
    return host.startswith("[") or host[host.rfind(".") + 1 :].isdecimal()


@cache
def _suffix_list() -> PublicSuffixList:
    """The public suffix list, read on first use: it takes some 40 ms that a command without domains need not
    wait for."""
    return PublicSuffixList()


# Longest URL kept, in bytes. Servers commonly refuse more than 8 KB, and what is longer than 2 KB is mostly a trap.
MAX_URL_BYTES = 2_048
# Longer text is not parsed at all: inline data is no link, and nothing this long normalises to a URL worth keeping.
MAX_INPUT_BYTES = 16_384
# A href that means the same on all pages of a folder: no query alone, no white space before it, no scheme that needs no
# host.
_IS_OF_FOLDER = re.compile(r"(?:https?://)?[^\0- ?:][^:]{0,199}\Z")
# 65,536 buckets: enough to spread over any cluster, and two bytes of a key.
BUCKET_BYTES = 2

DEFAULT_PORTS = {"http": 80, "https": 443}

_LOWER_ESCAPE = re.compile(r"%(?:[a-f][0-9A-Fa-f]|[0-9A-F][a-f])")
# Where the path of a normalised URL can begin at the earliest: after "http://" and one character.
_HOST_END = 8
_KEY_END = b"\0"  # never in a URL: ada escapes it
FETCHABLE = ("http://", "https://")
# The parser strips these from both ends of its input: a fragment may be cut off beforehand only behind something else.
STRIPPED_CHARACTERS = frozenset(map(chr, range(0x21)))

FOLLOWED_KINDS = frozenset({LinkKind.A, LinkKind.AREA, LinkKind.IFRAME, LinkKind.FRAME, LinkKind.REFRESH})
FOLLOWED_RELS = frozenset({"canonical", "alternate", "next", "prev"})  # of <link>; the others are for rendering


class Url(msgspec.Struct, frozen=True, gc=False):
    """A normalised URL in its parts. `host` is as in the URL (IPv6 in brackets), `path` is what goes on the wire:
    path and query. `port` is filled in where the URL leaves it out."""

    href: str
    scheme: str
    host: str
    port: int
    path: str


def parse_url(text: str, base: str | None = None) -> Url | None:
    """The URL that `text` means, relative to `base`; None if it cannot be fetched over http or https."""
    href = None if len(text) > MAX_INPUT_BYTES else serialise_url(text, base)
    href = href and normalise_url(href)
    return split_url(href) if href else None


def split_url(href: str) -> Url:
    """The parts of a URL that is normalised already."""
    path_start = href.index("/", _HOST_END)
    scheme, host, port = _authority(href[:path_start])
    return Url(href, scheme, host, port, href[path_start:])


def serialise_url(text: str, base: str | None = None) -> str | None:
    """The href by the WHATWG URL standard, of any scheme, or None where the standard says failure."""
    raw = _utf8(text)
    if base is None:
        found = lib.ada_parse(raw, len(raw))
    else:
        raw_base = _utf8(base)
        found = lib.ada_parse_with_base(raw, len(raw), raw_base, len(raw_base))
    try:
        href = lib.ada_get_href(found)  # empty when not valid
        return str(ffi.unpack(href.data, href.length), "utf-8") if href.length else None
    finally:
        lib.ada_free(found)


def normalise_url(href: str) -> str | None:
    """The result of `serialise_url` in the form that is stored and fetched; None if the scheme is not http or https."""
    if not href.startswith(FETCHABLE):
        return None
    if "#" in href:
        href = href[: href.index("#")]
    if "@" in href:
        href = _without_credentials(href)
    if "%" in href:
        href = _LOWER_ESCAPE.sub(_upper, href)
    return href


def base_url(url: str, base_href: str | None) -> str:
    """The URL that the hrefs of a page are joined with: its own, or that of its `<base>` element."""
    base = parse_url(base_href, url) if base_href else None
    return base.href if base else url


def join_map(base: str, hrefs: Iterable[str], *, max_bytes: int = MAX_URL_BYTES) -> dict[str, str]:
    """The normalised URLs that a page's hrefs lead to, by href; hrefs that lead nowhere are absent.

    What is not http(s), does not parse or is longer than `max_bytes` is left out. `base` is the page's URL or its
    `<base>`, normalised.
    """
    hrefs, kernel = tuple(hrefs), native()
    if kernel is not None and (found := kernel.join_hrefs(base, hrefs, max_bytes)) is not None:
        joined, odd = found
        return _with_odd(base, joined, odd, max_bytes)
    return _join(base, hrefs, max_bytes)


class LinkRules(msgspec.Struct, frozen=True, kw_only=True):
    """Which links are followed: of a document the first `most`, which is as many as a sitemap may list."""

    agent: str
    images: bool = False
    obeys_nofollow: bool = True
    most: int = 50_000

    @property
    def for_kernel(self) -> tuple[bool, bool, int, int]:
        return self.images, self.obeys_nofollow, self.most, MAX_URL_BYTES


class FollowedLinks(KernelColumns[tuple[tuple[str, ...], bytes, tuple[str, ...]]]):
    """The links of a page that are followed: hrefs as written but without fragments, each once with its first words,
    and the `base_href` of the page. `joined` says where they lead: href → normalised URL, in their order; what leads
    nowhere is absent. Nearly all of them were seen before, and nobody asks for their texts."""

    __slots__ = ("_joined", "base_href")

    def __init__(
        self,
        hrefs: tuple[str, ...] = (),
        kinds: bytes = b"",
        anchors: tuple[str, ...] = (),
        joined: Mapping[str, str] | None = None,
        base_href: str = "",
    ) -> None:
        super().__init__((hrefs, kinds, anchors))
        self.base_href = base_href
        self._joined: Mapping[str, str] | None = joined or {}

    @classmethod
    def by_kernel(cls, found: Any, base: str, base_href: str) -> "FollowedLinks":
        """What the kernel has found, with the odd hrefs joined with `base`."""
        if found.counts()[1]:
            hrefs, kinds, anchors = found.columns()
            joined, odd = found.joined(hrefs)
            return cls(hrefs, kinds, anchors, _with_odd(base, joined, odd, MAX_URL_BYTES), base_href)
        links = cls.__new__(cls)
        links._columns = links._joined = None
        links.base_href, links.kernel = base_href, found
        return links

    @property
    def kinds(self) -> bytes:
        return self.columns[1]

    @property
    def joined(self) -> Mapping[str, str]:
        if self._joined is None:
            self._joined = self.kernel.joined(self.hrefs)[0]
        return self._joined

    @property
    def leading(self) -> int:
        """How many hrefs lead somewhere."""
        return self.kernel.counts()[0] if self._joined is None else len(self._joined)

    @property
    def urls(self) -> Any:
        """Where they lead, as `RecentUrls.unseen` takes it."""
        return list(self.joined.values()) if self.kernel is None else self.kernel

    def url_parts(self, most: int) -> Iterator[list[str]]:
        """Where they lead, at most so many URLs at a time."""
        if self.kernel is None:
            urls = list(self.joined.values())
            yield from (urls[start : start + most] for start in range(0, len(urls), most))
        else:
            yield from (self.kernel.urls(start, start + most) for start in range(0, len(self), most))

    def __repr__(self) -> str:
        return f"FollowedLinks{(*self.columns, self.joined, self.base_href)}"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FollowedLinks):
            return NotImplemented
        return (*self.columns, self.joined, self.base_href) == (*other.columns, other.joined, other.base_href)

    __hash__ = None  # type: ignore[assignment]


def follow_links(links: Links, base: str, rules: LinkRules, base_href: str = "") -> FollowedLinks:
    """The links that a crawl follows on a page whose hrefs are joined with `base`, a normalised URL: that of the page,
    joined with its `base_href`."""
    kernel = native()
    if kernel is not None:
        found = kernel.follow_links(base, base_href, links.columns, rules.for_kernel)
        if found is not None:
            return FollowedLinks.by_kernel(found, base, base_href)
    followed: dict[str, tuple[int, str]] = {}
    for href, kind, anchor, rel in zip(links.hrefs, links.kinds, links.anchors, links.rels, strict=True):
        if _is_followed(kind, rel, rules):
            stem = href_stem(href)
            if len(followed) == rules.most and stem not in followed:
                break
            first_kind, words = followed.get(stem, (kind, ""))
            followed[stem] = first_kind, words or anchor
    kinds, anchors = bytes(kind for kind, _ in followed.values()), tuple(words for _, words in followed.values())
    return FollowedLinks(tuple(followed), kinds, anchors, _join(base, followed, MAX_URL_BYTES), base_href)


def _is_followed(kind: int, rel: str, rules: LinkRules) -> bool:
    if not rel and kind in FOLLOWED_KINDS:
        return True
    if kind == LinkKind.IMG:
        return rules.images
    rels = rel.lower().split()
    if kind == LinkKind.LINK:
        return not FOLLOWED_RELS.isdisjoint(rels)
    return kind in FOLLOWED_KINDS and not (rules.obeys_nofollow and "nofollow" in rels)


def href_stem(href: str) -> str:
    """A href without its fragment; unchanged where the parser would strip something from what is left."""
    if "#" not in href:
        return href
    stem = href.partition("#")[0]
    return href if stem[-1:] in STRIPPED_CHARACTERS else stem


def _join(base: str, hrefs: Iterable[str], max_bytes: int) -> dict[str, str]:
    """Joins by the C functions of the parser itself: a third less time a link than its Python classes."""
    folder = base.partition("?")[0].rpartition("/")[0] + "/"
    urls: dict[str, str] = {}
    for href in hrefs:
        stem = href_stem(href)
        url = _joined_in(folder, stem) if _IS_OF_FOLDER.match(stem) else _joined(base, stem)
        if url and len(url) <= max_bytes:
            urls[href] = url
    return urls


def _joined(base: str, stem: str) -> str | None:
    raw = _utf8(stem)
    if len(raw) > MAX_INPUT_BYTES:
        return None
    raw_base = _utf8(base)
    found = lib.ada_parse_with_base(raw, len(raw), raw_base, len(raw_base))
    try:
        text = lib.ada_get_href(found)  # empty when not valid
        return normalise_url(str(ffi.unpack(text.data, text.length), "utf-8")) if text.length else None
    finally:
        lib.ada_free(found)


_joined_in = lru_cache(CACHED_HOSTS)(_joined)  # the pages of a folder lead to the same again and again


def _with_odd(base: str, joined: dict[str, str | None], odd: list[str], max_bytes: int) -> dict[str, str]:
    """Puts in what the kernel leaves to the parser."""
    if odd:
        joined.update(dict.fromkeys(odd) | _join(base, odd, max_bytes))
    return {href: url for href, url in joined.items() if url} if odd else cast("dict[str, str]", joined)


def bucket_of(host: str) -> int:
    """The bucket of a host, 0 to 65,535: the same for all hosts of a registrable domain, for ever."""
    return int.from_bytes(_bucket_bytes(host))


@lru_cache(CACHED_KEYS)
def url_key(href: str) -> bytes:
    """The key of a normalised URL: bucket, host key, NUL, path. Domains, hosts and path prefixes are ranges of keys.

    The host key is host, port and scheme: `org.example.www.:443:https`. Every label ends with a dot, so all of
    example.org starts with `org.example.` and nothing else does, and all of one host with its labels and a colon.
    Addresses stay as they are; a host's final dot is written as a slash.
    """
    path_start = href.index("/", _HOST_END)
    return _key_start(href[:path_start]) + _KEY_END + href[path_start:].encode()


def url_from_key(key: bytes) -> str:
    """The URL that `url_key` made this key of."""
    site, _, path = str(key[BUCKET_BYTES:], "ascii").partition("\0")
    return _origin_of_key(site) + path


@lru_cache(CACHED_HOSTS)
def _origin_of_key(site: str) -> str:
    name, port, scheme = site.rsplit(":", 2)
    port = "" if int(port) == DEFAULT_PORTS[scheme] else f":{port}"
    return f"{scheme}://{_host_of_key(name)}{port}"


def host_key_of(key: bytes) -> bytes:
    """The key of the host in a URL key, bucket and all: what its URLs begin with, before a NUL."""
    return key[: key.index(_KEY_END, BUCKET_BYTES)]


def key_prefix_end(prefix: bytes) -> bytes | None:
    """The least key above every key that starts with `prefix`; None where there is none."""
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes((stem[-1] + 1,)) if stem else None


def _without_credentials(href: str) -> str:
    host_start = href.index("//") + 2
    credentials_end = href.rfind("@", host_start, href.index("/", host_start))
    return href if credentials_end < 0 else href[:host_start] + href[credentials_end + 1 :]


def _upper(escape: re.Match[str]) -> str:
    return escape[0].upper()


def _utf8(text: str) -> bytes:
    """Lone surrogates become U+FFFD and pairs of them one character, as the standard has it."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()


@lru_cache(CACHED_HOSTS)
def _authority(origin: str) -> tuple[str, str, int]:
    """`https://example.org:8443` → scheme, host, port."""
    scheme, _, authority = origin.partition("://")
    host, colon, port = authority.rpartition(":")
    if not colon or port.endswith("]"):
        return scheme, authority, DEFAULT_PORTS[scheme]
    return scheme, host, int(port)


@lru_cache(CACHED_HOSTS)
def _key_start(origin: str) -> bytes:
    scheme, host, port = _authority(origin)
    return _bucket_bytes(host) + f"{_host_in_key(host)}:{port}:{scheme}".encode()


def _bucket_bytes(host: str) -> bytes:
    return blake2b(domain_of(host).encode(), digest_size=BUCKET_BYTES).digest()


def _host_in_key(host: str) -> str:
    if is_ip_host(host):
        return host
    labels = host.removesuffix(".").split(".")
    return ".".join(reversed(labels)) + ("./" if host.endswith(".") else ".")


def _host_of_key(name: str) -> str:
    if not name.endswith((".", "/")):
        return name
    labels = name.removesuffix("/").removesuffix(".").split(".")
    return ".".join(reversed(labels)) + ("." if name.endswith("/") else "")
