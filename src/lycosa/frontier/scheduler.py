"""The scheduler decides which host is asked next: who is ready, who waits until when, who waits for a shared slot.

Pure: takes `now`, never reads a clock. Invariant: a host stands in at most one queue; an entry of a queue whose `turn`
is no longer the host's is skipped. Called by `Frontier` only.
"""

import heapq
from collections import Counter, deque
from itertools import count

from lycosa.frontier.hosts import LAST_OFFER, NEVER, NO_OFFER, Host, HostPlace
from lycosa.frontier.politeness import Share, Slots, pause_of

# Hosts in these places will be asked soon: they hold back whoever has less to offer. Not those that wait for a slot
# which one of the others may have to give back, nor those that wait long.
LIVE = frozenset({HostPlace.READY, HostPlace.WAITING, HostPlace.BUSY, HostPlace.NAME, HostPlace.ROBOTS})
SOON_S = 10.0


class HostScheduler:
    """The places of all hosts in memory. `step_hosts`: in a step this many hosts give one URL each; 0: no steps.

    `slack`: a host is held back while another one, soon to be asked, has something to offer that is more than so many
    bands better.
    """

    def __init__(self, *, step_hosts: int = 0, slack: int = 0, restarted_at: float | None = None) -> None:
        self._slack, self._restarted_at = slack, restarted_at
        self._now = restarted_at or 0.0
        self.places: Counter[HostPlace] = Counter()
        self._ready: list[deque[tuple[Host, int]]] = [deque() for _ in range(LAST_OFFER + 1)]
        self._live = [0] * (LAST_OFFER + 1)
        self._waiting: list[tuple[float, int, int, Host]] = []
        self._shares: dict[str, Slots] = {}
        self._share_waiters: dict[str, deque[Host]] = {}
        self._names: dict[str, list[Host]] = {}
        self._ticket = count()
        self._step_hosts, self.step, self._step_given = step_hosts, 0, 0
        self._next_step: list[Host] = []

    def __repr__(self) -> str:
        return f"<Turns {', '.join(f'{place.value} {n}' for place, n in self.places.items() if n)}>"

    @property
    def in_use(self) -> int:
        return sum(slots.in_use for slots in self._shares.values())

    def enter(self, host: Host) -> None:
        """A host comes into memory, idle."""
        self.places[host.place] += 1

    def leave(self, host: Host) -> None:
        """A host goes out of memory; wherever it stood, it is not found there any more."""
        self.move(host, HostPlace.IDLE)
        self.places[HostPlace.IDLE] -= 1

    def move(self, host: Host, place: HostPlace, *, is_soon: bool = True) -> None:
        if host.is_live:
            self._live[host.offered] -= 1
        host.offered, host.is_live = host.offer, is_soon and place in LIVE
        if host.is_live:
            self._live[host.offered] += 1
        self.places[host.place] -= 1
        self.places[place] += 1
        host.place = place
        host.turn += 1
        if host.woken_for and (place is not HostPlace.READY or host.is_put_last):  # it does not take the slot
            share, host.woken_for = host.woken_for, ""
            self._wake(share)

    # ready and waiting

    def ready(self, host: Host) -> None:
        self.move(host, HostPlace.READY)
        self._ready[host.offered].append((host, host.turn))

    def wait(self, host: Host, until: float, place: HostPlace = HostPlace.WAITING) -> None:
        self.move(host, place, is_soon=until - self._now <= SOON_S)
        heapq.heappush(self._waiting, (until, host.turn, next(self._ticket), host))

    def next_ready(self, now: float) -> Host | None:
        """The host whose turn it is; it is out of the queue then and has to be put somewhere."""
        waiting, self._now = self._waiting, now
        while waiting and waiting[0][0] <= now:
            _, turn, _, host = heapq.heappop(waiting)
            if turn == host.turn:
                if host.is_due(now):  # what is due goes first
                    host.offer = 0
                self.ready(host)
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
            if self._live[offer] and worst == LAST_OFFER:  # somebody has this to offer, soon
                worst = min(offer + self._slack, NO_OFFER)
            if offer >= worst:
                return None
        return None

    def gave(self, host: Host) -> None:
        """The host has given a URL in this step."""
        if self._step_hosts:
            host.step = self.step
            self._step_given += 1
            if self._step_given >= self._step_hosts:
                self._end_step()

    def _end_step(self) -> None:
        """The window moves on: those who gave in this step may give again."""
        self.step += 1
        self._step_given = 0
        late, self._next_step = self._next_step, []
        for host in late:
            if host.place is HostPlace.READY:
                self._ready[host.offered].append((host, host.turn))

    def next_wake(self) -> float | None:
        """When the next waiting host may be asked; None if none waits for a time."""
        waiting = self._waiting
        while waiting and waiting[0][1] != waiting[0][3].turn:
            heapq.heappop(waiting)
        return waiting[0][0] if waiting else None

    # what hosts share

    def claim(self, host: Host, shares: tuple[Share, ...], now: float) -> bool:
        """Is a slot of each share free now? If not, the host waits for one."""
        for share in shares:
            slots = self._shares.get(share.name)
            if slots is None:
                slots = self._shares[share.name] = Slots(share.limit, first_at=self._first_at(share))
            at = slots.next_at()
            if at > now:
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
        """Is a slot of each share free now? Nobody waits for one."""
        return all(share.name in self._shares and self._shares[share.name].next_at() <= now for share in shares)

    def in_use_of(self, name: str, now: float) -> int:
        """Slots of a share that are in use, or were so short a time ago that they are not free yet."""
        slots = self._shares.get(name)
        return 0 if slots is None else slots.in_use + sum(at > now for at in slots.free_at)

    def begin_anew(self, now: float) -> None:
        """Shares that are not known yet may have been asked a moment ago, by somebody else."""
        self._restarted_at = now

    def _first_at(self, share: Share) -> float:
        """After a restart nobody knows when a share was asked last."""
        return 0.0 if self._restarted_at is None else self._restarted_at + pause_of(share.delay_s)

    def take(self, host: Host, shares: tuple[Share, ...]) -> None:
        woken_for, host.woken_for = host.woken_for, ""
        for share in shares:
            self._shares[share.name].take()
        if woken_for and all(share.name != woken_for for share in shares):  # it lives elsewhere now
            self._wake(woken_for)

    def give_back(self, shares: tuple[Share, ...], ended: float) -> None:
        """A request has ended: whoever has waited for its slots the longest is next."""
        for share in shares:
            slots = self._shares[share.name]
            slots.give_back(ended + pause_of(share.delay_s))
            self._wake(share.name)
            if not slots.in_use and not share.delay_s and share.name not in self._share_waiters:
                del self._shares[share.name]

    def _wake(self, share: str) -> None:
        """If a slot is free, the next who waits for one is ready; if it does not take it, the one after."""
        slots, waiters = self._shares.get(share), self._share_waiters.get(share)
        if slots is None or not slots.free_at or not waiters:
            return
        while waiters:
            host = waiters.popleft()
            if host.place is HostPlace.SHARED:
                if host.is_put_last:  # its turn may be long in coming: the slot is for the next
                    self.ready(host)
                    continue
                host.woken_for = share
                self.ready(host)
                break
        if not waiters:
            self._share_waiters.pop(share, None)

    # names

    def wait_for_name(self, host: Host) -> None:
        self.move(host, HostPlace.NAME)
        self._names.setdefault(host.host, []).append(host)

    def named(self, name: str) -> list[Host]:
        """The hosts that waited for a name which is resolved now."""
        return [host for host in self._names.pop(name, []) if host.place is HostPlace.NAME]
