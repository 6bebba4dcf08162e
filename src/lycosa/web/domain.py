"""Registrable domains: which hosts belong to one owner, by the public suffix list as browsers use it.

Both sections of the list count (ICANN and private), so that a.github.io and b.github.io are two domains. Hosts come
as `lycosa.web.url` writes them: lower case, punycode, IPv6 in brackets. Called for scopes and for a URL's bucket.
"""

from functools import cache, lru_cache

from publicsuffixlist import PublicSuffixList

# Hosts remembered with their domain: a few MB, and far more hosts than one shard works on at a time.
CACHED_HOSTS = 16_384


def registrable_domain(host: str) -> str | None:
    """The part of `host` that someone registered; None where there is none: an address, a public suffix, one label."""
    return None if is_address(host) else _suffix_list().privatesuffix(host)


@lru_cache(CACHED_HOSTS)
def domain_of(host: str) -> str:
    """The registrable domain, or the host itself where it has none. A final dot belongs to neither."""
    return registrable_domain(host) or host.removesuffix(".")


def is_address(host: str) -> bool:
    """Whether `host` is an IP literal. The URL standard reads every name whose last label is a number as IPv4."""
    return host.startswith("[") or host[host.rfind(".") + 1 :].isdecimal()


@cache
def _suffix_list() -> PublicSuffixList:
    """Read on first use: it takes some 40 ms, which a command that asks for no domain need not wait for."""
    return PublicSuffixList()
