"""Budgets by registrable domain: how many pages a domain may have before others come first (IRLbot's STAR).

A domain begins with `BASE` pages and earns `PER_DOMAIN` more with every other domain that links to it: links from
elsewhere are what a spam farm cannot make at will. Beyond its budget nothing is lost: each page waits, and the wait
doubles with every further `STEP` pages, so that the domain's URLs go after everybody else's.
Meant for crawls without bounds (`--scope any`). Pure; memory: `MOST_SOURCES` hashes of four bytes a domain.
"""

import msgspec
import xxhash

from lycosa.frontier.budgets import GO, Do, Verdict

BASE, PER_DOMAIN = 1_000, 200  # pages
STEP = 100  # pages over the budget
FIRST_WAIT_S, MOST_WAIT_S = 10.0, 86_400.0
MOST_SOURCES = 256  # a domain that so many link to has no limit
_MOST_DOUBLINGS = 30


class DomainBudget(msgspec.Struct, array_like=True, omit_defaults=True):
    """One domain; the record is its own row."""

    pages: int = 0
    until: float = 0.0
    sources: set[int] = msgspec.field(default_factory=set)

    def linked_from(self, domain: str) -> None:
        """A page of another registrable domain links here."""
        if len(self.sources) < MOST_SOURCES:
            self.sources.add(xxhash.xxh32_intdigest(domain.encode()))

    @property
    def budget(self) -> float:
        return float("inf") if len(self.sources) >= MOST_SOURCES else BASE + PER_DOMAIN * len(self.sources)

    def ask(self, now: float) -> Verdict:
        """May a page of this domain be asked for now? Over the budget: one at the end of every wait."""
        over = self.pages - self.budget
        if over < 0:
            return GO
        if now < self.until:
            return Verdict(Do.WAIT, self.until - now)
        doublings = min(int(over) // STEP, _MOST_DOUBLINGS)
        self.until = now + min(MOST_WAIT_S, FIRST_WAIT_S * 2**doublings)
        return GO

    def fetched(self) -> None:
        self.pages += 1
