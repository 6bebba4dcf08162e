"""Leases: an agent makes requests only while its own lease is valid, and at an address only while it holds that one.

`AgentLease` is renewed by every heartbeat that was answered. `AddressLeases`, at the coordinator, gives each address to
one agent at a time; `HeldAddresses` is the agent's side. Address leases are pure: `now` is an argument.

The times fit together: an agent's own lease ends 14 s after its last answered heartbeat, those of its addresses later
than 15 s after it, and the coordinator takes the agent for dead after 19 s.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping

import msgspec

from lycosa.crawl import Engine
from lycosa.errors import ClusterError

# Shorter than an address lease, and than the time after which another agent may get the shard: whoever takes over can
# be sure that the agent before has stopped, although the two cannot speak to each other.
AGENT_LEASE_S = 14.0
# Without a lease for so long an agent ends, so that its files are free for another process.
CUT_OFF_S = 10.0
WATCH_POLL_S = 0.25

ADDRESS_LEASE_S = 20.0
TURN_S = 10.0  # an address that others wait for is given up after so long
# A waiting agent asks twice a second: one that has not for so long does not want it any more.
WAITER_STALE_S = 3.0

IDLE_S = 5.0  # an address without requests for so long is given back
CONTENDED_IDLE_S = 0.1  # the same, where others wait
# An address is not asked any more so long before its lease ends.
MARGIN_S = 1.0
# A lease on an address with less time left is renewed by the next heartbeat. It must be longer than the agent's own
# lease: then every address that was held at the last answered heartbeat outlasts the agent's right to make requests.
RENEW_S = 16.0


class AgentLease:
    """The lease of one agent; a new one is valid."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._until = now() + AGENT_LEASE_S

    def __repr__(self) -> str:
        return f"<AgentLease {self._until - self._now():.1f} s left>"

    @property
    def is_valid(self) -> bool:
        return self._now() < self._until

    def renew(self, reported_at: float) -> None:
        """A heartbeat was answered. The lease counts from when it was sent: the coordinator counts from later on."""
        self._until = reported_at + AGENT_LEASE_S

    def revoke(self) -> None:
        self._until = 0.0

    def allow_for_start(self) -> None:
        """Opening the shard may have taken longer than a lease: `CUT_OFF_S` counts from now."""
        self._until = max(self._until, self._now())

    def close_if_expired(self, engine: Engine) -> bool:
        """Fences sockets: asked before every action on one. A process that was frozen finds its lease expired when it
        wakes, and closes all transfers before it can send another byte."""
        if self.is_valid:
            return False
        engine.downloader.cancel_all()
        return True

    async def watch(self, engine: Engine, shard: str) -> None:
        """Closes the transfers of an agent that nobody answers in time, and ends the agent if that lasts."""
        while True:
            await asyncio.sleep(WATCH_POLL_S)
            self.close_if_expired(engine)
            if self._now() > self._until + CUT_OFF_S:
                engine.fail(ClusterError(f"shard {shard} is cut off from the coordinator"))


class _AddressLease(msgspec.Struct):
    holder: str = ""
    since: float = 0.0
    until: float = 0.0
    waiting: dict[str, float] = {}  # agent → when it asked last, in the order in which they came


class AddressLeases:
    """The holders of addresses. Hosts of several agents may share an address, but only its holder asks there.

    A holder is told when others wait: it gives the address back as soon as it has nothing to ask there for a moment,
    and after `TURN_S` in any case, when its last request has ended. An agent that dies or is cut off loses its
    addresses when their leases end. Nothing new is granted before `quiet_until`.
    """

    def __init__(self, quiet_until: float = 0.0) -> None:
        self._addresses: dict[str, _AddressLease] = {}
        self._contended: set[str] = set()  # addresses for which somebody waits, or did a moment ago
        self.quiet_until = quiet_until

    def __repr__(self) -> str:
        return f"<AddressLeases {len(self._addresses)} held, {len(self._contended)} contended>"

    def restore(self, agent: str, address: str, now: float) -> None:
        """An agent says what it holds from before this coordinator began."""
        lease = self._addresses.setdefault(address, _AddressLease())
        if not lease.holder:
            lease.holder, lease.since, lease.until = agent, now, now + ADDRESS_LEASE_S

    def request(self, agent: str, address: str, now: float) -> float:
        """Grants or renews an address; returns for how many seconds, 0 if the agent has to wait."""
        lease = self._addresses.setdefault(address, _AddressLease())
        if lease.holder and lease.holder != agent and lease.until <= now:
            lease.holder = ""
        if not lease.holder:
            lease.waiting[agent] = now
            # First come, first served, among those that still ask: nobody starves, and nobody waits for one that is
            # gone.
            if next(iter(self._waiting(lease, now))) != agent or now < self.quiet_until:
                self._contended.add(address)
                return 0.0
            del lease.waiting[agent]
            lease.holder, lease.since = agent, now
        if lease.holder == agent:
            lease.until = now + ADDRESS_LEASE_S
            return ADDRESS_LEASE_S
        lease.waiting[agent] = now
        self._contended.add(address)
        return 0.0

    @staticmethod
    def _waiting(lease: _AddressLease, now: float) -> dict[str, float]:
        lease.waiting = {agent: asked for agent, asked in lease.waiting.items() if asked > now - WAITER_STALE_S}
        return lease.waiting

    def count(self, now: float) -> "tuple[Counter[str], Counter[str]]":
        """The number of addresses that each agent holds, and of those that it waits for."""
        held, awaited = Counter[str](), Counter[str]()
        for lease in self._addresses.values():
            if lease.holder and lease.until > now:
                held[lease.holder] += 1
            awaited.update(self._waiting(lease, now).keys())
        return held, awaited

    def contended(self, agent: str, now: float) -> dict[str, bool]:
        """The addresses of an agent for which others wait, and whether its turn there is over."""
        found: dict[str, bool] = {}
        for address in list(self._contended):
            lease = self._addresses.get(address)
            if lease is None or not self._waiting(lease, now):
                self._contended.discard(address)
            elif lease.holder == agent:
                found[address] = now - lease.since >= TURN_S
        return found

    def release(self, agent: str, address: str) -> None:
        """An agent gives an address back, or waits for it no more."""
        lease = self._addresses.get(address)
        if lease is None:
            return
        if lease.holder == agent:
            lease.holder, lease.until = "", 0.0
        lease.waiting.pop(agent, None)
        # Addresses come and go with hosts: what nobody wants is not kept.
        if not lease.holder and not lease.waiting:
            del self._addresses[address]


class HeldAddresses:
    """The addresses that one agent holds, waits for and can give back."""

    def __init__(self) -> None:
        self.held: dict[str, float] = {}  # → until when
        self._used: dict[str, float] = {}  # → when it was wanted last
        self._waiting: dict[str, set[str]] = {}  # → hosts that wait for it
        self._contended: Mapping[str, bool] = {}  # others wait for it → the turn is over
        self._released: list[str] = []
        # An address is wanted that the coordinator was not asked for yet.
        self.has_new_requests = False

    def __repr__(self) -> str:
        return f"<HeldAddresses held={len(self.held)} waiting={len(self._waiting)}>"

    @property
    def is_contended(self) -> bool:
        """Does this agent wait for another one, or another one for it?"""
        return bool(self._waiting or self._contended)

    def may_request(self, address: str, host: str, now: float) -> bool:
        """May the address be asked now? If not, the host waits until it may."""
        # The margin is for the way to the socket: no byte leaves after the lease has ended.
        if self.held.get(address, 0.0) - MARGIN_S > now and not self._contended.get(address, False):
            self._used[address] = now
            return True
        hosts = self._waiting.get(address)
        if hosts is None:
            hosts = self._waiting[address] = set()
            self.has_new_requests = True
        hosts.add(host)
        return False

    def release_idle(self, in_use: Callable[[str], int], now: float) -> None:
        """Before a heartbeat: gives back what is not used, or not any more where others wait."""
        for address in list(self.held):
            if in_use(address) > 0:
                self._used[address] = now
                continue
            # Where nobody waits, an idle address is kept for a while: the next page of the host is likely to come soon.
            is_turn_over = self._contended.get(address)
            most_s = IDLE_S if is_turn_over is None else CONTENDED_IDLE_S
            if is_turn_over or now - self._used.get(address, now) > most_s or self.held[address] <= now:
                del self.held[address]
                self._used.pop(address, None)
                self._released.append(address)

    def wake_all(self) -> list[str]:
        """Returns all hosts that wait, to be looked at anew: the assignment has changed."""
        waiting, self._waiting = self._waiting, {}
        return [host for hosts in waiting.values() for host in hosts]

    def requests(self, now: float) -> tuple[str, ...]:
        """The addresses to ask for: those that hosts wait for, and those whose lease runs out."""
        self.has_new_requests = False
        renewals = (a for a, until in self.held.items() if until < now + RENEW_S and a not in self._waiting)
        return (*self._waiting, *renewals)

    def releases(self) -> tuple[str, ...]:
        """The addresses given back, repeated until a heartbeat with them was answered."""
        return tuple(self._released)

    def on_granted(self, granted: Mapping[str, float], contended: Mapping[str, bool], reported_at: float) -> list[str]:
        """The answer to a heartbeat that was sent at `reported_at`; returns the hosts that may go on."""
        self._released = []
        self._contended = contended
        woken: list[str] = []
        for address, seconds in granted.items():
            # Counted from when it was asked for: it ends here before it ends at the coordinator.
            self.held[address] = reported_at + seconds
            self._used.setdefault(address, reported_at)
            if not contended.get(address, False):
                woken += self._waiting.pop(address, ())
        return woken
