"""Budgets by registrable domain: how many pages a domain may have before others come first (IRLbot's STAR).

A domain begins with `BASE` pages and earns `PER_DOMAIN` more with every other domain that links to it: links from
elsewhere are what a spam farm cannot make at will. Beyond its budget nothing is lost: the hosts of the domain are put
last, and are asked when nobody else is to be asked soon.
Meant for crawls without bounds (`--scope any`). Pure; memory: `MOST_SOURCES` hashes of four bytes a domain.
"""

import msgspec
import xxhash

BASE, PER_DOMAIN = 1_000, 200  # pages
MOST_SOURCES = 256  # a domain that so many link to has no limit

_encode = msgspec.msgpack.Encoder().encode
_KEY = b"domain-budget:"


class DomainBudget(msgspec.Struct, array_like=True, omit_defaults=True):
    """One domain; the record is its own row."""

    pages: int = 0
    sources: set[int] = msgspec.field(default_factory=set)

    def linked_from(self, domain: str) -> None:
        """A page of another registrable domain links here."""
        if len(self.sources) < MOST_SOURCES:
            self.sources.add(xxhash.xxh32_intdigest(domain.encode()))

    @property
    def budget(self) -> float:
        return float("inf") if len(self.sources) >= MOST_SOURCES else BASE + PER_DOMAIN * len(self.sources)

    @property
    def is_spent(self) -> bool:
        return self.pages >= self.budget

    def fetched(self) -> None:
        self.pages += 1

    def pack(self) -> bytes:
        return _encode(self)


_decode = msgspec.msgpack.Decoder(DomainBudget).decode


def unpack_domain(row: bytes | None) -> DomainBudget:
    """The budget in a row; a new one where there is none."""
    return _decode(row) if row else DomainBudget()


def domain_key(domain: str) -> bytes:
    """Where a domain's row stands among the `meta` rows."""
    return _KEY + domain.encode()
