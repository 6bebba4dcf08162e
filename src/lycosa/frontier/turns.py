"""Whose turn it is: where every host waits, and for what.

A host is in one `Place`. Ready hosts stand in a queue, waiting ones in a heap by time, hosts whose address is taken
with that address, hosts whose name is unknown with that name, and hosts whose next URLs are not committed yet apart.
Pure bookkeeping: who moves where is decided by `frontier.frontier`; politeness is in the slots.
"""

import heapq
from collections import Counter, deque
from itertools import count

from lycosa.frontier.hosts import Host, Place
from lycosa.frontier.politeness import Slots

NEVER = float("inf")


class Turns:
    """The places of all hosts in memory. `per_ip` slots and `ip_delay_s` hold for every address."""

    def __init__(self, *, per_ip: int, ip_delay_s: float) -> None:
        self._per_ip, self._ip_delay_s = per_ip, ip_delay_s
        self.places: Counter[Place] = Counter()
        self._ready: deque[Host] = deque()
        self._waiting: list[tuple[float, int, int, Host]] = []
        self._addresses: dict[str, Slots] = {}
        self._address_waiters: dict[str, deque[Host]] = {}
        self._names: dict[str, list[Host]] = {}
        self._starved: list[Host] = []
        self._ticket = count()

    def __repr__(self) -> str:
        return f"<Turns {', '.join(f'{place.value} {n}' for place, n in self.places.items() if n)}>"

    @property
    def in_use(self) -> int:
        return sum(slots.in_use for slots in self._addresses.values())

    def enter(self, host: Host) -> None:
        """A host comes into memory, idle."""
        self.places[host.place] += 1

    def leave(self, host: Host) -> None:
        """A host goes out of memory; wherever it stood, it is not found there any more."""
        self.move(host, Place.IDLE)
        self.places[Place.IDLE] -= 1

    def move(self, host: Host, place: Place) -> None:
        self.places[host.place] -= 1
        self.places[place] += 1
        host.place = place
        host.turn += 1

    # ready and waiting

    def ready(self, host: Host) -> None:
        self.move(host, Place.READY)
        self._ready.append(host)

    def wait(self, host: Host, until: float, place: Place = Place.WAITING) -> None:
        self.move(host, place)
        heapq.heappush(self._waiting, (until, host.turn, next(self._ticket), host))

    def next_ready(self, now: float) -> Host | None:
        """The host whose turn it is; it is out of the queue then and has to be put somewhere."""
        waiting, ready = self._waiting, self._ready
        while waiting and waiting[0][0] <= now:
            _, turn, _, host = heapq.heappop(waiting)
            if turn == host.turn:
                self.ready(host)
        while ready:
            host = ready.popleft()
            if host.place is Place.READY:
                return host
        return None

    def next_wake(self) -> float | None:
        """When the next waiting host may be asked; None if none waits for a time."""
        waiting = self._waiting
        while waiting and waiting[0][1] != waiting[0][3].turn:
            heapq.heappop(waiting)
        return waiting[0][0] if waiting else None

    # addresses

    def claim(self, host: Host, address: str, now: float) -> Slots | None:
        """The slots of an address with one free now; None: the host waits for one."""
        slots = self._addresses.get(address)
        if slots is None:
            slots = self._addresses[address] = Slots(self._per_ip)
        at = slots.next_at()
        if at <= now:
            return slots
        if at == NEVER:
            self.move(host, Place.ADDRESS)
            self._address_waiters.setdefault(address, deque()).append(host)
        else:
            self.wait(host, at)
        return None

    def give_back(self, address: str, ended: float) -> None:
        """A request to the address has ended: the host that has waited for it the longest is next."""
        slots = self._addresses[address]
        slots.give_back(ended + self._ip_delay_s)
        waiters = self._address_waiters.get(address)
        while waiters:
            host = waiters.popleft()
            if host.place is Place.ADDRESS:
                self.ready(host)
                return
        self._address_waiters.pop(address, None)
        if slots.in_use == 0 and not self._ip_delay_s:
            del self._addresses[address]

    # names and commits

    def wait_for_name(self, host: Host) -> None:
        self.move(host, Place.NAME)
        self._names.setdefault(host.host, []).append(host)

    def named(self, name: str) -> list[Host]:
        """The hosts that waited for a name which is resolved now."""
        return [host for host in self._names.pop(name, []) if host.place is Place.NAME]

    def wait_for_commit(self, host: Host) -> None:
        self.move(host, Place.COMMIT)
        self._starved.append(host)

    def committed(self) -> list[Host]:
        """The hosts whose next URLs can be read now."""
        starved, self._starved = self._starved, []
        return [host for host in starved if host.place is Place.COMMIT]
