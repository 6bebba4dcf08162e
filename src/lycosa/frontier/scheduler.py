"""The scheduler decides which host is asked next, and the checks whether a URL whose turn has come may be fetched.

`HostScheduler` knows who is ready, who waits until when, who waits for a shared slot. Invariant: a host stands in at
most one queue; an entry of a queue whose `turn` is no longer the host's is skipped. `FetchChecks` asks robots.txt, the
preferences of a host, its limits, and hooks: now and not when the URL is queued, because rules, counts and what is
learned change while it waits. A `FrontierHook` is how other rooms have their say. Pure: takes `now`, never reads a
clock. Called by `Frontier` only.
"""

import heapq
from collections import Counter, deque
from collections.abc import Mapping
from itertools import count
from typing import Protocol

from lycosa.frontier.hosts import LAST_OFFER, NO_OFFER, Host, HostPlace
from lycosa.frontier.lanes import NEVER
from lycosa.frontier.policy import Policy
from lycosa.frontier.politeness import PageLimits, Politeness, Share, Slots, believed_wait_s, pause_of
from lycosa.frontier.rows import QueueEntry, Reason, RequestKind
from lycosa.web import Robots, host_objection

# Hosts in these places will be asked soon: they hold back whoever has less to offer. Not those that wait for a shared
# slot, which one of those held back may have to give back first (nobody would ever go on); nor those that wait long,
# because a crawl must not stand still for an hour while hosts with work are ready.
LIVE = frozenset({HostPlace.READY, HostPlace.WAITING, HostPlace.BUSY, HostPlace.NAME, HostPlace.ROBOTS})
SOON_S = 10.0
HELD_S = 60.0  # how long a page waits, that comes up while pages are held
MAX_REVIEWS_PER_COMMIT = 100  # deferred hosts that are looked at again


class FrontierHook(Protocol):
    """A hook has a say in which URLs are fetched: it derives from this class and overrides what concerns it."""

    def judge(self, host: Host, entry: QueueEntry, now_unix: float) -> Reason | float | None:
        """Return why a URL whose turn has come is dropped, or for how many seconds it has to wait; None lets it go."""
        return None

    def dropped(self, host: Host, entry: QueueEntry, reason: Reason) -> None:
        """A URL was dropped, by this hook or for any other reason."""
        return

    def gave_up(self, host: Host) -> None:
        """A host was given up: what is queued there is not fetched."""
        return

    def puts_last(self, host: Host) -> bool:
        """Return whether this host has had its share, so that other hosts go first."""
        return False


class FetchChecks:
    """The checks of one frontier."""

    def __init__(self, politeness: Politeness) -> None:
        self._obeys_robots, self._purpose = politeness.robots, politeness.purpose
        self._page_limits = PageLimits(politeness.pages_per_host, politeness.host_pages)
        self._most_depth = politeness.host_depth
        self.hooks: list[FrontierHook] = []
        self.holds_pages = False  # nothing is given out but what pages that are there need

    def needs_robots(self, host: Host, now_unix: float) -> bool:
        """Return whether the host's robots.txt has to be fetched before anything else."""
        return self._obeys_robots and (host.row.robots is None or not believed_wait_s(host.row.robots_until, now_unix))

    def allows(self, host: Host, path: str) -> bool:
        """Return whether the host's robots.txt allows this path."""
        rules = host.row.robots
        return not self._obeys_robots or (rules is not None and rules.allows(path))

    def judge(self, host: Host, entry: QueueEntry, now_unix: float) -> Reason | float | None:
        """Return why a URL is dropped, or for how many seconds it waits for the sake of others; None lets it go."""
        # Robots.txt first, for revisits, too: a page that was allowed once may be forbidden now.
        if not self.allows(host, entry.path):
            return Reason.ROBOTS
        rules = host.row.robots
        if rules is not None and rules.speaks_of_use and self._forbids_use(rules, entry):
            return Reason.PREFERENCES
        if entry.kind is RequestKind.REVISIT or entry.key in host.leased:  # it was judged when it was given out first
            return None
        # What belongs to a page that is there is asked for whatever the limits of its host.
        if entry.kind is RequestKind.REQUISITE or entry.kind is RequestKind.EXTERNAL:
            return None
        if self.holds_pages:  # a retry, or one that was postponed
            return HELD_S
        most = self._page_limits.of(host.host)
        if most is not None and host.row.pages >= most:
            return Reason.PAGES_PER_HOST
        # Depth within the host: counted from where it was entered, which may be deep in the crawl.
        if self._most_depth is not None and entry.depth - (host.row.entered or 0) > self._most_depth:
            return Reason.DEPTH
        for hook in self.hooks:
            verdict = hook.judge(host, entry, now_unix)
            if verdict is not None:
                return verdict
        return None

    def on_dropped(self, host: Host, entry: QueueEntry, reason: Reason) -> None:
        """Tell the hooks that a URL was dropped."""
        for hook in self.hooks:
            hook.dropped(host, entry, reason)

    def _forbids_use(self, rules: Robots, entry: QueueEntry) -> bool:
        """Return whether the host forbids the use that the crawl would make of a page, before it is asked for."""
        is_page = entry.kind is not RequestKind.SITEMAP and entry.kind is not RequestKind.EXTERNAL
        return is_page and self._obeys_robots and bool(host_objection(rules, entry.path, self._purpose))

    def may_reach_page_limit(self, host: Host) -> bool:
        """Return whether what is in flight may already fill the host's limit of pages; if it fails, other URLs go
        on."""
        most = self._page_limits.of(host.host)
        return most is not None and host.row.pages < most <= host.row.pages + host.slots.in_use

    def puts_last(self, host: Host) -> bool:
        """Return whether any hook puts this host behind all others."""
        for hook in self.hooks:  # noqa: SIM110 - for every URL given out
            if hook.puts_last(host):
                return True
        return False


class HostScheduler:
    """The places of all hosts in memory.

    The walk of the policy may go in steps: in a step each of so many hosts gives one URL. Its ranking may hold a host
    back while another one, soon to be asked, has something to offer that is more than `slack` bands better.
    """

    def __init__(self, policy: Policy, checks: FetchChecks, *, restarted_at: float | None = None) -> None:
        self._policy, self._checks, self._restarted_at = policy, checks, restarted_at
        self._slack, self._step_hosts = policy.slack, policy.walk.steps
        self._holds_back = policy.ranking is not None and policy.ranking.slack is not None
        self._now = restarted_at or 0.0
        self.places: Counter[HostPlace] = Counter()
        self._ready: list[deque[tuple[Host, int]]] = [deque() for _ in range(LAST_OFFER + 1)]
        self._live = [0] * (LAST_OFFER + 1)
        self._waiting: list[tuple[float, int, int, Host]] = []
        self._shares: dict[str, Slots] = {}
        self._share_waiters: dict[str, deque[Host]] = {}
        self._names: dict[str, list[Host]] = {}
        self._ticket = count()
        self.step = self._step_given = 0
        self._next_step: list[Host] = []
        self._deferred: dict[bytes, Host] = {}  # hosts that let others go first, those reviewed lately last

    def __repr__(self) -> str:
        return f"<HostScheduler {', '.join(f'{place.value} {n}' for place, n in self.places.items() if n)}>"

    def enter(self, host: Host) -> None:
        """Count a host in that has come into memory."""
        self.places[host.place] += 1

    def leave(self, host: Host) -> None:
        """Take a host out that leaves memory; wherever it stood, it is not found there any more."""
        self.move(host, HostPlace.IDLE)
        self.places[HostPlace.IDLE] -= 1

    def move(self, host: Host, place: HostPlace, *, is_soon: bool = True) -> None:
        # A host is not searched for in the queue it stood in: its turn grows with every move, and an entry with an
        # older turn is skipped when it comes up. So a move costs the same however many hosts wait.
        if host.is_live:
            self._live[host.offered] -= 1
        host.offered, host.is_live = host.offer, is_soon and place in LIVE
        if host.is_live:
            self._live[host.offered] += 1
        self.places[host.place] -= 1
        self.places[place] += 1
        host.place = place
        host.turn += 1
        if host.woken_for and (place is not HostPlace.READY or host.is_deferred):  # it does not take the slot
            share, host.woken_for = host.woken_for, ""
            self._wake(share)

    # where a host belongs

    def place(self, host: Host, now: float) -> None:
        """Put a host where it belongs now."""
        # The order of the questions matters: rules before slots (nothing may be fetched without them), slots before
        # work (a busy host is placed again when its request ends), and work before time.
        at = host.slots.next_at()
        host.offer = self._offer(host, now)
        has_work = host.has_work
        host.waits_for_due = not has_work
        if host.awaits_robots and not host.jobs:
            self.move(host, HostPlace.ROBOTS)
            return
        if at == NEVER or (self._checks.may_reach_page_limit(host) and not host.jobs):
            self.move(host, HostPlace.BUSY)
            return
        is_wanted = not host.row.gave_up and (has_work or host.row.waits or host.row.retries)
        if not is_wanted and not host.jobs:
            self.move(host, HostPlace.IDLE)
            return
        if not has_work:
            at = max(at, host.waits_until)
        if at == NEVER:  # nothing left, or what waits for its time is in flight
            self.move(host, HostPlace.IDLE)
        elif at <= now:
            self.ready(host)
        else:
            self.wait(host, at, HostPlace.PARKED if host.row.wait_reason else HostPlace.WAITING)

    def on_more_work(self, host: Host, now: float) -> None:
        """Place a host again that has more to give than before, if that makes a difference."""
        if (
            host.place is HostPlace.IDLE
            or (host.place in (HostPlace.WAITING, HostPlace.PARKED) and host.waits_for_due)
            or (host.place in (HostPlace.WAITING, HostPlace.READY) and self._offer(host, now) != host.offered)
        ):
            self.place(host, now)

    def _offer(self, host: Host, now: float) -> int:
        """Return how good the best URL of a host is; 0 is the best."""
        if host.is_deferred:
            return LAST_OFFER
        return 0 if not self._holds_back or host.is_due(now) else self._policy.offer(host)

    def defer(self, host: Host) -> None:
        """Let a host be asked only when no other host can be asked soon."""
        self._deferred[host.key] = host
        host.is_deferred = True

    def review_deferred(self, now: float, hosts: Mapping[bytes, Host]) -> None:
        """Look again at some of the deferred hosts, and let those go on that no longer have to wait. `hosts` are
        those in memory."""
        for _ in range(min(MAX_REVIEWS_PER_COMMIT, len(self._deferred))):
            host = self._deferred.pop(next(iter(self._deferred)))
            if hosts.get(host.key) is not host:
                continue
            if self._checks.puts_last(host):
                self._deferred[host.key] = host
                continue
            host.is_deferred = False
            if host.place in (HostPlace.READY, HostPlace.WAITING):
                self.place(host, now)

    # ready and waiting

    def ready(self, host: Host) -> None:
        self.move(host, HostPlace.READY)
        self._ready[host.offered].append((host, host.turn))

    def wait(self, host: Host, until: float, place: HostPlace = HostPlace.WAITING) -> None:
        # The ticket keeps the order of those who wait until the same moment, and hosts themselves out of comparisons.
        self.move(host, place, is_soon=until - self._now <= SOON_S)
        heapq.heappush(self._waiting, (until, host.turn, next(self._ticket), host))

    def next_ready(self, now: float) -> Host | None:
        """Return the host whose turn it is; it stands in no queue then and has to be placed again."""
        waiting, self._now = self._waiting, now
        while waiting and waiting[0][0] <= now:
            _, turn, _, host = heapq.heappop(waiting)
            if turn == host.turn:
                if host.is_due(now):  # what is due goes first
                    host.offer = 0
                self.ready(host)
        # Whoever gave a URL in this step waits for the next one; where all that are ready have given, a new step begins
        # at once, and the queues are looked through a second time.
        while True:
            step = self.step
            first = self._first_ready()
            if first is not None or step == self.step:
                return first

    def _first_ready(self) -> Host | None:
        worst = LAST_OFFER
        for offer, queue in enumerate(self._ready):
            while queue:
                host, turn = queue.popleft()
                if turn != host.turn:
                    continue
                if not self._step_hosts or host.step != self.step:
                    return host
                self._next_step.append(host)
            if self._next_step:
                self._end_step()
                return None
            # Somebody has this to offer soon: whoever is more than `slack` bands worse waits for that. Without it a
            # crawl of many hosts fetches whole small sites of no worth before the best of others (decision 8 has the
            # figures).
            if self._live[offer] and worst == LAST_OFFER:
                worst = min(offer + self._slack, NO_OFFER)
            if offer >= worst:
                return None
        return None

    def on_leased(self, host: Host) -> None:
        """Note that a URL of the host was leased in this step."""
        if self._step_hosts:
            host.step = self.step
            self._step_given += 1
            if self._step_given >= self._step_hosts:
                self._end_step()

    def _end_step(self) -> None:
        """Begin the next step: hosts that gave a URL in this one may give again."""
        self.step += 1
        self._step_given = 0
        late, self._next_step = self._next_step, []
        for host in late:
            if host.place is HostPlace.READY:
                self._ready[host.offered].append((host, host.turn))

    def next_wake(self) -> float | None:
        """Return when the next waiting host may be asked; None if none waits for a time."""
        waiting = self._waiting
        while waiting and waiting[0][1] != waiting[0][3].turn:
            heapq.heappop(waiting)
        return waiting[0][0] if waiting else None

    # what hosts share

    def claim(self, host: Host, shares: tuple[Share, ...], now: float) -> bool:
        """Return whether a slot of each share is free now; if not, the host waits for one."""
        for share in shares:
            slots = self._shares.get(share.name)
            if slots is None:
                slots = self._shares[share.name] = Slots(share.limit, first_at=self._first_at(share))
            at = slots.next_at()
            if at > now:
                # A host that waits never holds a slot: with a slot of its address taken while it waits for one of its
                # group, two hosts could wait for each other.
                if at == NEVER:
                    self.move(host, HostPlace.SHARED)
                    self._share_waiters.setdefault(share.name, deque()).append(host)
                else:
                    woken_for, host.woken_for = host.woken_for, ""
                    self.wait(host, at)
                    host.woken_for = woken_for  # the slot is still meant for it
                return False
        return True

    def is_free(self, shares: tuple[Share, ...], now: float) -> bool:
        """Return whether a slot of each share is free now; nobody waits for one."""
        return all(share.name in self._shares and self._shares[share.name].next_at() <= now for share in shares)

    def in_use_of(self, name: str, now: float) -> int:
        """Return how many slots of a share are in use, or not free again yet."""
        # For another shard that would ask the same address: what is not free yet counts as in use, there as here.
        slots = self._shares.get(name)
        return 0 if slots is None else slots.in_use + sum(at > now for at in slots.free_at)

    def begin_anew(self, now: float) -> None:
        """Treat addresses that are not known yet as after a restart: another shard may have asked them a moment ago."""
        self._restarted_at = now

    def _first_at(self, share: Share) -> float:
        # After a restart nobody knows when an address was asked last: rows are kept of hosts, not of addresses.
        return 0.0 if self._restarted_at is None else self._restarted_at + pause_of(share.delay_s)

    def take(self, host: Host, shares: tuple[Share, ...]) -> None:
        woken_for, host.woken_for = host.woken_for, ""
        for share in shares:
            self._shares[share.name].take()
        if woken_for and all(share.name != woken_for for share in shares):  # it lives elsewhere now
            self._wake(woken_for)

    def release_shares(self, shares: tuple[Share, ...], ended: float) -> None:
        """Free the shared slots of a request that has ended; whoever has waited for them the longest is next."""
        for share in shares:
            slots = self._shares[share.name]
            slots.release_slot(ended + pause_of(share.delay_s))
            self._wake(share.name)
            # Addresses are as many as hosts: what has nothing to remember is forgotten.
            if not slots.in_use and not share.delay_s and share.name not in self._share_waiters:
                del self._shares[share.name]

    def _wake(self, share: str) -> None:
        """Make the host ready that has waited longest for a slot of the share, if one is free."""
        # One host is woken for one slot: waking all would let the last in the row starve behind whoever asks often.
        slots, waiters = self._shares.get(share), self._share_waiters.get(share)
        if slots is None or not slots.free_at or not waiters:
            return
        while waiters:
            host = waiters.popleft()
            if host.place is HostPlace.SHARED:
                if host.is_deferred:  # its turn may be long in coming: the slot is for the next
                    self.ready(host)
                    continue
                host.woken_for = share
                self.ready(host)
                break
        if not waiters:
            self._share_waiters.pop(share, None)

    # names

    def wait_for_name(self, host: Host) -> None:
        # By name, not by host: http and https, and other ports, of one name wait for one answer.
        self.move(host, HostPlace.NAME)
        self._names.setdefault(host.host, []).append(host)

    def named(self, name: str) -> list[Host]:
        """Return the hosts that waited for a name which is resolved now."""
        return [host for host in self._names.pop(name, []) if host.place is HostPlace.NAME]
