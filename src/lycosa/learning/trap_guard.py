"""The trap guard slows and drops URL families that say nothing new, and limits the pages of a domain.

The frontier asks it about every URL whose turn has come: the URL goes, waits, or is dropped with a reason. Waits are
for the sake of a host's other URLs: where it has nothing else to give they are over at once. Of URLs that differ in
idle parameters only one is fetched. In crawls without bounds (`--scope any`) a registrable domain has a budget of
pages, too (IRLbot's STAR), which links from other domains raise; beyond it, hosts of other domains go first. Whether
pages are nearly copies of known ones is asked for many of them at once, before a commit. What is slowed, dropped or put
last is logged once a family or domain.
"""

import re
from collections import OrderedDict
from collections.abc import Callable, Sequence
from itertools import compress
from typing import NamedTuple, Protocol

import msgspec
import xxhash

from lycosa.frontier import KEY_END, Frontier, FrontierHook, Host, Lease, Origin, QueueEntry, Reason, RequestKind
from lycosa.learning.mining import HostProfile, HostProfiles
from lycosa.learning.traps import (
    DROPPED,
    Judgement,
    PageSignature,
    QueryParameters,
    family_key,
    path_pattern,
    sign_page,
)
from lycosa.records import Family
from lycosa.store import Batch, PageRow, State
from lycosa.web import LinkKind, Page, Url, domain_of, key_prefix_end

# A domain begins with `BASE` pages and earns `PER_DOMAIN` more with every other domain that links to it: links from
# elsewhere are what a spam farm cannot make at will.
BASE, PER_DOMAIN = 1_000, 200
MOST_SOURCES = 256  # a domain that so many link to has no limit


class DomainBudget(msgspec.Struct, array_like=True, omit_defaults=True):
    """How many pages a registrable domain has had, and which other domains link to it; the record is its own row."""

    pages: int = 0
    sources: set[int] = msgspec.field(default_factory=set)

    def linked_from(self, domain: str) -> None:
        """Count a link from a page of another registrable domain."""
        if len(self.sources) < MOST_SOURCES:
            self.sources.add(xxhash.xxh32_intdigest(domain.encode()))

    @property
    def budget(self) -> float:
        return float("inf") if len(self.sources) >= MOST_SOURCES else BASE + PER_DOMAIN * len(self.sources)

    @property
    def is_spent(self) -> bool:
        return self.pages >= self.budget


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(DomainBudget).decode


def read_domain_budget(state: State, domain: str) -> DomainBudget:
    """Return the budget of a domain as it is stored; a new one where there is none."""
    row = state.get(Family.META, _domain_key(domain))
    return _decode(row) if row else DomainBudget()


def write_domain_budget(batch: Batch, domain: str, budget: DomainBudget) -> None:
    batch.put(Family.META, _domain_key(domain), _encode(budget))


def _domain_key(domain: str) -> bytes:
    return b"domain-budget:" + domain.encode()


DOMAINS_MOST = 10_000
# What the user named, or what was a page before its record was lost, is asked for whatever its family is worth.
NOT_JUDGED = frozenset({Origin.SEED, Origin.LOST})
LOGGED_MOST = 10_000  # families that were logged; then they may be logged again
LOOKED_UP_LEAST = 32  # texts; a crawl of fewer needs no index, and not the time to import what it needs
SUBTREE_MOST = 10_000  # known URLs that are counted, in 2 ms

_FOLDED = re.compile(r"[#*+?~]")  # what stands in a pattern for something else, or begins a query
_IS_IMAGE = bytes(kind == LinkKind.IMG for kind in range(256))


class TextIndex(Protocol):
    """The texts that the crawl knows, by their SimHashes."""

    def originals(self, hashes: Sequence[bytes]) -> list[int]:
        """For each the number of the known text that it is nearly a copy of, 0 where it is new and known from now
        on."""
        ...

    def flush(self) -> None: ...


class _HeldPage(NamedTuple):
    """A page that seems good, until its text is looked up."""

    host: Host
    path: str
    seen: PageSignature
    simhash: bytes
    new: Sequence[Url]


class TrapGuard(FrontierHook):
    """The budgets of a shard: by family of URLs and, if `limits_domains`, by domain. `log` writes an event."""

    def __init__(
        self,
        frontier: Frontier,
        state: State,
        profiles: HostProfiles,
        *,
        limits_domains: bool,
        log: Callable[..., None],
        now_unix: Callable[[], float],
        open_texts: Callable[[], TextIndex] | None = None,
    ) -> None:
        self._open_texts = open_texts
        self._texts: TextIndex | None = None
        self._held: list[_HeldPage] = []
        self._first: list[bytes] = []  # texts of the first pages
        self._frontier, self._state, self._profiles = frontier, state, profiles
        self._log, self._now_unix = log, now_unix
        self._domains: OrderedDict[str, DomainBudget] | None = OrderedDict() if limits_domains else None
        self._changed: set[str] = set()
        self._pending: dict[bytes, bytes] = {}  # rows of plain forms and copies for the next commit
        self._logged: set[tuple[str, ...]] = set()
        frontier.add_hook(self)

    def __repr__(self) -> str:
        return f"<TrapGuard domains={len(self._domains or ())} {self._profiles!r}>"

    # what the frontier asks

    def judge(self, host: Host, entry: QueueEntry, now_unix: float) -> Reason | float | None:
        if entry.kind is not RequestKind.PAGE or entry.origin in NOT_JUDGED:
            return None
        profile = self._profiles.change(host)
        if self._has_double(host, profile.parameters, entry.path):
            return Reason.PARAMETER
        budgets = profile.budgets
        wait_s = budgets.claim(entry.path, now_unix)
        if 0 < wait_s < DROPPED and entry.is_late and not host.available:  # it waits for nobody any longer
            wait_s = budgets.claim(entry.path, now_unix + wait_s)
        if not wait_s:
            return None
        pattern, is_dropped = path_pattern(entry.path), wait_s == DROPPED
        event = "pattern-dropped" if is_dropped else "pattern-slowed"
        if self._is_first(event, host.origin, pattern):
            seconds = 0.0 if is_dropped else round(wait_s, 1)
            known = self._known_below(host, pattern)
            self._log(event, host=host.origin, pattern=pattern, wait_s=seconds, known=known)
        return Reason.PATTERN if is_dropped else wait_s

    def puts_last(self, host: Host) -> bool:
        """Return whether the host's domain has had its pages."""
        if self._domains is None:
            return False
        domain = domain_of(host.host)
        budget = self._domain_named(domain)
        if budget.is_spent and self._is_first(domain):
            self._log("domain-put-last", domain=domain, pages=budget.pages)
        return budget.is_spent

    def _is_first(self, *what: str) -> bool:
        """Return whether something is logged for the first time."""
        if what in self._logged:
            return False
        if len(self._logged) >= LOGGED_MOST:
            self._logged.clear()
        self._logged.add(what)
        return True

    def _known_below(self, host: Host, pattern: str) -> int:
        """Count the known URLs that begin as the pattern of a family does, up to a bound."""
        start = host.key + KEY_END + _FOLDED.split(pattern, 1)[0].encode("utf-8", "surrogatepass")
        return self._state.count(Family.URL, start, key_prefix_end(start) or start, most=SUBTREE_MOST)

    # URLs and documents that stand for each other

    def without_doubles(self, host: Host, urls: Sequence[Url]) -> list[Url]:
        """Leave out URLs that differ from known ones in idle parameters only."""
        parameters = self._profiles.of(host).parameters
        if not parameters.idle:
            return list(urls)
        here = host.origin + "/"
        return [
            url for url in urls if not url.href.startswith(here) or not self._has_double(host, parameters, url.path)
        ]

    def _has_double(self, host: Host, parameters: QueryParameters, path: str) -> bool:
        """Return whether another URL stands for this one, idle parameters aside; if none does, this one will."""
        if not parameters.idle:
            return False
        plain = parameters.plain(path)
        key = b"plain:" + host.key + KEY_END + plain.encode()
        known = self._row(key)
        if known is not None:
            return known != path.encode()
        if plain != path and parameters.was_fetched(plain):
            return True
        self._pending[key] = path.encode()
        return False

    def _is_first_copy(self, host: Host, path: str, fingerprint: int) -> bool:
        """Return whether the family of a path has had no copy of this document before; it has from now on."""
        key = b"copy:" + host.key + KEY_END + family_key(path).to_bytes(8) + fingerprint.to_bytes(8)
        if self._row(key) is not None:
            return False
        self._pending[key] = b"1"
        return True

    def _row(self, key: bytes) -> bytes | None:
        return self._pending.get(key) or self._state.get(Family.META, key)

    # what the crawl tells

    def page_fetched(self, lease: Lease, page: Page, new: Sequence[Url]) -> bool:
        """Learn from a page that was fetched and led to `new` URLs; return whether it says anything new for its
        host."""
        entry, host = lease.entry, lease.host
        assert entry is not None
        if entry.origin is Origin.LOST:  # it had its say the first time: nothing on it would be new
            self.count_links(host.host, new)
            return True
        profile = self._profiles.change(host)
        seen = _signature(page, entry.depth, is_leaf=not new)
        if profile.budgets.is_known_text(seen):
            seen = msgspec.structs.replace(seen, fresh=_fresh(host, profile, entry.path, new))
        holds_good = bool(page.simhash) and self._open_texts is not None
        judgement = self._note(host, profile, entry.path, seen, page.text_digest, new, holds_good=holds_good)
        if holds_good and judgement is Judgement.GOOD:
            self._held.append(_HeldPage(host, entry.path, seen, page.simhash, new))
        return judgement is Judgement.GOOD

    def _judge_held(self) -> None:
        """Judge the pages that are held. One that is nearly a copy of a known text is judged as a copy is: the first
        one of each text in a family counts neither way, nor does one that leads to something new."""
        held, self._held = self._held, []
        originals = self._originals([page.simhash for page in held])
        for page, original in zip(held, originals, strict=True):
            profile, judgement = self._profiles.change(page.host), Judgement.GOOD
            if original:
                is_first = self._is_first_copy(page.host, page.path, original)
                is_neutral = is_first or _fresh(page.host, profile, page.path, page.new)
                judgement = Judgement.NEUTRAL if is_neutral else Judgement.DULL
            profile.budgets.judge_held(page.path, page.seen, judgement, self._now_unix())

    def _originals(self, hashes: list[bytes]) -> list[int]:
        """The known texts that these are near; none as long as there are few, since a small crawl needs no index."""
        if self._texts is None:
            self._first += hashes
            if len(self._first) < LOOKED_UP_LEAST or self._open_texts is None:
                return [0] * len(hashes)
            self._texts = self._open_texts()
            self._texts.originals(self._first[: -len(hashes)])
            self._first.clear()
        return self._texts.originals(hashes)

    def copy_fetched(self, lease: Lease, original: PageRow, new: Sequence[Url]) -> None:
        """Learn from a page whose document is known under another URL."""
        entry, host = lease.entry, lease.host
        assert entry is not None
        if entry.origin is Origin.LOST:
            self.count_links(host.host, new)
            return
        is_first = self._is_first_copy(host, entry.path, original.fingerprint)
        seen = PageSignature(
            entry.depth, original.fingerprint, 0, 0, False, True, is_first_copy=is_first, fresh=len(new)
        )
        self._note(host, self._profiles.change(host), entry.path, seen, original.text_digest, new)

    def _note(
        self,
        host: Host,
        profile: HostProfile,
        path: str,
        seen: PageSignature,
        text_digest: bytes,
        new: Sequence[Url],
        *,
        holds_good: bool = False,
    ) -> Judgement:
        judgement = profile.budgets.note(path, seen, self._now_unix(), holds_good=holds_good)
        profile.parameters.note(path, int.from_bytes(text_digest[:8]))
        if self._domains is not None:
            here = domain_of(host.host)
            self._domain_named(here).pages += 1
            self._changed.add(here)
            self.count_links(host.host, new)
        return judgement

    def count_links(self, source: str, new: Sequence[Url]) -> None:
        """Count links from a page of the host `source` to new URLs for the domains of these."""
        if self._domains is None:
            return
        here, owns = domain_of(source), self._frontier.owns
        for there in {domain_of(url.host) for url in new if owns(url.host)} - {here}:
            self._domain_named(there).linked_from(here)
            self._changed.add(there)

    def _domain_named(self, name: str) -> DomainBudget:
        assert self._domains is not None
        budget = self._domains.get(name)
        if budget is None:
            budget = self._domains[name] = read_domain_budget(self._state, name)
        self._domains.move_to_end(name)
        return budget

    # commits

    def before_commit(self, batch: Batch, *, is_last: bool) -> None:
        if self._held:
            self._judge_held()
        if is_last and self._texts is not None:
            self._texts.flush()
        for key, value in self._pending.items():
            batch.put(Family.META, key, value)
        domains = self._domains
        if domains is not None:
            for name in self._changed:
                write_domain_budget(batch, name, domains[name])
            self._changed.clear()
            while len(domains) > DOMAINS_MOST:
                domains.popitem(last=False)
        self._profiles.before_commit(batch)

    def on_committed(self) -> None:
        self._pending.clear()

    def forget(self) -> None:
        """Forget what is remembered of rows, because hosts have come or gone between two commits."""
        if self._domains is not None:
            self._domains.clear()
        self._held.clear()
        self._profiles.forget()


def _fresh(host: Host, profile: HostProfile, path: str, new: Sequence[Url]) -> int:
    """Count the new URLs that speak for the page at `path` on which they were found, see `sign_page`."""
    pattern, own = path_pattern(path), [url.path for url in new if url.host == host.host]
    return len(new) - len(own) + sum(profile.budgets.counts(path, pattern) for path in own)


def _signature(page: Page, depth: int, *, is_leaf: bool) -> PageSignature:
    links, kinds = page.links, page.links.kinds
    images = " ".join(compress(links.hrefs, kinds.translate(_IS_IMAGE))) if LinkKind.IMG in kinds else ""
    return sign_page(
        text=page.text_utf8,
        images=images,
        structure=page.structure_first,
        digest=page.digest,
        depth=depth,
        title=page.title or "",
        is_leaf=is_leaf,
    )
