"""The trap guard of a crawl: it slows and drops URL families that say nothing new, and limits domains.

The frontier asks it about every URL whose turn has come: the URL goes, waits, or is dropped with a reason. Waits are
for the sake of a host's other URLs: where it has nothing else to give they are over at once. Of URLs that differ in
idle parameters only one is fetched. In crawls without bounds (`--scope any`) a registrable domain has a budget of
pages, too (IRLbot's STAR), which links from other domains raise; beyond it, hosts of other domains go first. What is
slowed, dropped or put last is logged once a family or domain.
"""

import re
from collections import OrderedDict
from collections.abc import Sequence
from itertools import compress

import msgspec
import xxhash

from lycosa.crawl.shard import Shard
from lycosa.frontier import KEY_END, Host, Lease, Origin, QueueEntry, Reason, RequestKind
from lycosa.learning.profiles import HostProfiles
from lycosa.learning.traps import Judgement, PageSignature, TrapAction, family_key, fold, sight
from lycosa.records import Family
from lycosa.store import Batch, PageRow
from lycosa.web import LinkKind, Page, Url, domain_of, key_prefix_end

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


DOMAINS_MOST = 10_000
NOT_JUDGED = frozenset({Origin.WISH, Origin.LOST})
TOLD_MOST = 10_000  # families that were told of; then they may be told of again
SUBTREE_MOST = 10_000  # known URLs that are counted, in 2 ms

_FOLDED = re.compile(r"[#*+?~]")  # what stands in a pattern for something else, or begins a query
_IS_IMAGE = bytes(kind == LinkKind.IMG for kind in range(256))


class TrapGuard:
    """The budgets of a shard: by family of URLs and, in a crawl without bounds, by domain."""

    def __init__(self, shard: Shard, minds: HostProfiles) -> None:
        self._shard, self._minds = shard, minds
        self._state = shard.collection.state
        self._domains: OrderedDict[str, DomainBudget] | None = OrderedDict() if shard.settings.scope == "any" else None
        self._changed: set[str] = set()
        self._pending: dict[bytes, bytes] = {}  # rows of plain forms and copies in the batch that is not committed yet
        self._told: dict[tuple[str, str, TrapAction], None] = {}
        self._told_domains: set[str] = set()
        shard.frontier.watchers.append(self)

    def __repr__(self) -> str:
        return f"<Budgets domains={len(self._domains or ())} {self._minds!r}>"

    # what the frontier asks

    def queued(self, host: Host, entry: QueueEntry) -> None:
        """Nothing to do: a URL is judged when its turn has come."""

    def judge(self, host: Host, entry: QueueEntry, now_unix: float) -> Reason | float | None:
        """Why a URL is not asked for, how long it waits, or None if it may be asked for now."""
        if entry.kind is not RequestKind.PAGE or entry.origin in NOT_JUDGED:
            return None
        if self._has_double(host, entry.path):
            return Reason.PARAMETER
        budgets = self._minds.change(host).budgets
        verdict = budgets.ask(entry.path, now_unix)
        if (
            verdict.do is TrapAction.WAIT and entry.is_late and not host.available
        ):  # who waits for nobody waits no longer
            verdict = budgets.ask(entry.path, now_unix + verdict.wait_s)
        if verdict.do is TrapAction.GO:
            return None
        self._tell(host, verdict.pattern, verdict.do, verdict.wait_s)
        return Reason.PATTERN if verdict.do is TrapAction.DROP else verdict.wait_s

    def dropped(self, host: Host, entry: QueueEntry, reason: Reason) -> None:
        """Nothing to do."""

    def puts_last(self, host: Host) -> bool:
        """Has the host's domain had its pages?"""
        if self._domains is None:
            return False
        domain = domain_of(host.host)
        budget = self._domain_named(domain)
        if budget.is_spent and domain not in self._told_domains:
            if len(self._told_domains) >= TOLD_MOST:
                self._told_domains.clear()
            self._told_domains.add(domain)
            self._shard.events.write("domain-put-last", domain=domain, pages=budget.pages)
        return budget.is_spent

    def without_doubles(self, host: Host, urls: Sequence[Url]) -> list[Url]:
        """The URLs of a page that are not the same as known ones but for parameters that change nothing."""
        if not self._minds.of(host).parameters.idle:
            return list(urls)
        here = host.origin + "/"
        kept = [url for url in urls if not url.href.startswith(here) or not self._has_double(host, url.path)]
        self._shard.counters.totals.ignored[Reason.PARAMETER] += len(urls) - len(kept)
        return kept

    def _has_double(self, host: Host, path: str) -> bool:
        """Does another URL stand for this one, idle parameters aside? If none does, this one will."""
        parameters = self._minds.of(host).parameters
        if not parameters.idle:
            return False
        plain = parameters.plain(path)
        key = b"plain:" + host.key + KEY_END + plain.encode()
        known = self._row(key)
        if known is not None:
            return known != path.encode()
        if plain != path and parameters.was_fetched(plain):
            return True
        self._put(key, path.encode())
        return False

    def _is_first_copy(self, host: Host, path: str, fingerprint: int) -> bool:
        """Has the family of a path had no copy of this document before? It has from now on."""
        key = b"copy:" + host.key + KEY_END + family_key(fold(path)).to_bytes(8) + fingerprint.to_bytes(8)
        if self._row(key) is not None:
            return False
        self._put(key, b"1")
        return True

    def _row(self, key: bytes) -> bytes | None:
        return self._pending.get(key) or self._state.get(Family.META, key)

    def _put(self, key: bytes, value: bytes) -> None:
        self._pending[key] = value
        self._shard.committer.batch.put(Family.META, key, value)

    def _domain_named(self, name: str) -> DomainBudget:
        assert self._domains is not None
        budget = self._domains.get(name)
        if budget is None:
            budget = self._domains[name] = unpack_domain(self._state.get(Family.META, domain_key(name)))
        self._domains.move_to_end(name)
        return budget

    def _tell(self, host: Host, pattern: str, do: TrapAction, wait_s: float) -> None:
        what = host.origin, pattern, do
        if what not in self._told:
            if len(self._told) >= TOLD_MOST:
                self._told.clear()
            self._told[what] = None
            word = "pattern-dropped" if do is TrapAction.DROP else "pattern-slowed"
            known = self._known_below(host, pattern)
            self._shard.events.write(word, host=host.origin, pattern=pattern, wait_s=round(wait_s, 1), known=known)

    def _known_below(self, host: Host, pattern: str) -> int:
        """The size of the subtree that a family lies in: known URLs that begin as the pattern does, up to a bound."""
        start = host.key + KEY_END + _FOLDED.split(pattern, 1)[0].encode("utf-8", "surrogatepass")
        return self._state.count(Family.URL, start, key_prefix_end(start) or start, most=SUBTREE_MOST)

    # what the crawl tells

    def page(self, lease: Lease, page: Page, new: Sequence[Url]) -> bool:
        """A page was fetched, by which `new` URLs became known; returns whether it says anything that is new here."""
        entry, host = lease.entry, lease.host
        assert entry is not None
        if entry.origin is Origin.LOST:  # it had its say the first time: nothing on it would be new
            self.linked(host.host, new)
            return True
        mind = self._minds.change(host)
        seen = _sight(page, entry.depth)
        if mind.budgets.is_known_text(seen):
            pattern = fold(entry.path)
            own = [url.path for url in new if url.host == host.host]
            fresh = len(new) - len(own) + sum(mind.budgets.counts(path, pattern) for path in own)
            seen = msgspec.structs.replace(seen, fresh=fresh)
        judgement = mind.budgets.note(entry.path, seen, self._shard.now_unix())
        mind.parameters.note(entry.path, int.from_bytes(page.text_digest[:8]))
        self._count_domains(host, new)
        return judgement is Judgement.GOOD

    def copy(self, lease: Lease, original: PageRow, new: Sequence[Url]) -> None:
        """A page was fetched whose document is known under another URL."""
        entry, host = lease.entry, lease.host
        assert entry is not None
        if entry.origin is Origin.LOST:
            self.linked(host.host, new)
            return
        mind = self._minds.change(host)
        is_first = self._is_first_copy(host, entry.path, original.fingerprint)
        seen = PageSignature(
            entry.depth, original.fingerprint, 0, 0, False, True, is_first_copy=is_first, fresh=len(new)
        )
        mind.budgets.note(entry.path, seen, self._shard.now_unix())
        mind.parameters.note(entry.path, int.from_bytes(original.text_digest[:8]))
        self._count_domains(host, new)

    def _count_domains(self, host: Host, new: Sequence[Url]) -> None:
        if self._domains is None:
            return
        here = domain_of(host.host)
        self._domain_named(here).fetched()
        self._changed.add(here)
        self.linked(host.host, new)

    def linked(self, source: str, new: Sequence[Url]) -> None:
        """A page of the host `source` led to new URLs; each domain counts where it belongs."""
        if self._domains is None:
            return
        here, owns = domain_of(source), self._shard.frontier.owns
        for there in {domain_of(url.host) for url in new if owns(url.host)} - {here}:
            self._domain_named(there).linked_from(here)
            self._changed.add(there)

    def before_commit(self, batch: Batch) -> None:
        domains = self._domains
        if domains is not None:
            for name in self._changed:
                batch.put(Family.META, domain_key(name), domains[name].pack())
            self._changed.clear()
            while len(domains) > DOMAINS_MOST:
                domains.popitem(last=False)
        self._minds.before_commit(batch)

    def forget(self) -> None:
        """Hosts have come or gone, between two commits: what is remembered of rows may be wrong."""
        if self._domains is not None:
            self._domains.clear()
        self._minds.forget()

    def committed(self) -> None:
        self._pending.clear()


def _sight(page: Page, depth: int) -> PageSignature:
    links = page.links
    images = " ".join(compress(links.hrefs, links.kinds.translate(_IS_IMAGE))) if LinkKind.IMG in links.kinds else ""
    return sight(
        text=page.text_utf8,
        images=images,
        structure=page.structure_first,
        digest=page.digest,
        depth=depth,
    )
