"""A million host names as a crawl meets them: names of words under the suffixes that people register, sites of one host
and platforms of thousands, addresses spread as unevenly as on the web.

Made from a seed, nothing is read from anywhere. The shape: suffixes by their share of registrations; hosts a site with
a heavy tail; half the sites behind addresses that many share.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from lycosa.cluster.assignment import LETTER_VALUES

Integers = np.ndarray[Any, np.dtype[np.int64]]

SUFFIXES = {
    "com": 46, "org": 6, "net": 6, "de": 6, "co.uk": 4, "ru": 4, "nl": 3, "fr": 2.5, "com.br": 2.5, "it": 2.2, "pl": 2,
    "com.au": 1.6, "eu": 1.5, "info": 1.5, "ch": 1.2, "co.jp": 1.2, "es": 1.2, "ca": 1.2, "in": 1, "cz": 1, "se": 1,
    "edu": 0.4, "gov.uk": 0.2, "ac.uk": 0.2, "github.io": 1, "blogspot.com": 1, "io": 0.8, "shop": 0.8, "xyz": 0.8,
}  # fmt: skip
STARTS = (
    "b bl br c ch cl cr d dr f fl fr g gl gr h j k kl kr l m n p pl pr qu r s sc sh sl sn sp st t th tr v w".split()
)
MIDDLES = "a e i o u ai au ea ee ei ie io oa oo ou".split()
ENDS = ["", "b", "ck", "d", "g", "ll", "m", "n", "nd", "ng", "nt", "p", "r", "rn", "rt", "s", "ss", "st", "t", "x"]
WORDS = "shop blog online web hotel media design group tech law club home auto music art food news city travel".split()
PREFIXES = "blog shop m en de mail docs forum news dev support static my status wiki app store api cdn help".split()
WORDS_KNOWN = 40_000
PLATFORM_SHARE = 0.004  # of all hosts, in the largest site


class Hosts(NamedTuple):
    """Arrays with one value a host. `site` numbers the registrable domains."""

    names: list[str]
    domains: list[str]
    site: Integers
    addresses: Integers


def make_hosts(count: int, seed: int) -> Hosts:
    """About `count` hosts, never fewer."""
    chance = np.random.default_rng(seed)
    sizes = _site_sizes(count, chance)
    domains = _domains(len(sizes), chance)
    names: list[str] = []
    for domain, size in zip(domains, sizes.tolist(), strict=True):
        names += _hosts_of(domain, size, chance)
    site = np.repeat(np.arange(len(sizes)), sizes)
    return Hosts(names, domains, site, _addresses(len(sizes), chance)[site])


def _site_sizes(count: int, chance: np.random.Generator) -> Integers:
    """Hosts a site: mostly one or two, with a tail of platforms."""
    sites = count
    sizes = np.minimum(chance.zipf(2.3, sites), max(2, int(count * PLATFORM_SHARE))).astype(np.int64)
    enough = int(np.searchsorted(np.cumsum(sizes), count)) + 1
    return sizes[:enough]


def _domains(count: int, chance: np.random.Generator) -> list[str]:
    syllables = [a + b + c for a in STARTS for b in MIDDLES for c in ENDS]
    picks = chance.integers(len(syllables), size=(WORDS_KNOWN, 2))
    known = [syllables[a] + (syllables[b] if b % 3 else "") for a, b in picks.tolist()]
    suffixes, shares = list(SUFFIXES), np.array(list(SUFFIXES.values()))
    endings = chance.choice(len(suffixes), size=count, p=shares / shares.sum()).tolist()
    first, second = (chance.integers(WORDS_KNOWN, size=count).tolist() for _ in range(2))
    forms = chance.integers(10, size=count).tolist()
    seen: set[str] = set()
    domains = []
    for a, b, form, ending in zip(first, second, forms, endings, strict=True):
        stem = known[a] + ("" if form < 3 else WORDS[b % len(WORDS)] if form < 5 else known[b])
        stem = f"{known[a]}-{known[b]}" if form == 9 else stem
        domain = f"{stem}.{suffixes[ending]}"
        while domain in seen:
            domain = f"{stem}{len(seen)}.{suffixes[ending]}"
        seen.add(domain)
        domains.append(domain)
    return domains


def _hosts_of(domain: str, size: int, chance: np.random.Generator) -> list[str]:
    if size == 1:
        return [domain if chance.random() < 0.4 else f"www.{domain}"]
    usual = [domain, f"www.{domain}", *(f"{prefix}.{domain}" for prefix in PREFIXES)]
    if size <= len(usual):
        return usual[:size]
    return usual + [f"u{chance.integers(10**9)}x{number}.{domain}" for number in range(size - len(usual))]


def _addresses(sites: int, chance: np.random.Generator) -> Integers:
    """Half the sites have an address of their own; the others share those of hosters, some of which are very large."""
    own = np.arange(sites) + 10_000_000
    shared = chance.zipf(1.5, sites) % 50_000
    return np.where(chance.random(sites) < 0.5, own, shared)


class HostArray:
    """Host names laid end to end, for sums over all of them at once. No name is empty."""

    def __init__(self, hosts: Sequence[str]) -> None:
        encoded = [host.encode() for host in hosts]
        self.codes = np.frombuffer(b"".join(encoded), np.uint8)
        lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
        if not lengths.all():
            raise ValueError("a host has a name")
        self.starts = np.concatenate(([0], np.cumsum(lengths)[:-1]))
        self._lengths = lengths

    def __len__(self) -> int:
        return len(self._lengths)

    def letter_sums(self, table: Mapping[str, int] = LETTER_VALUES) -> Integers:
        worth = np.zeros(256, np.int64)
        for character, value in table.items():
            worth[ord(character)] = value
        sums: Integers = np.add.reduceat(worth[self.codes], self.starts)
        return sums

    def java_hashes(self) -> Integers:
        """Java's `String.hashCode` without its sign, as Nutch partitions by: s[0]·31^(k−1) + … modulo 2^32."""
        after = np.repeat(self.starts + self._lengths - 1, self._lengths) - np.arange(len(self.codes))
        powers = np.ones(int(self._lengths.max()), np.uint32)
        powers[1:] = 31
        powers = np.multiply.accumulate(powers, dtype=np.uint32)
        terms = self.codes.astype(np.uint32) * powers[after]
        hashes: Integers = np.add.reduceat(terms, self.starts, dtype=np.uint32).astype(np.int64) & 0x7FFFFFFF
        return hashes
