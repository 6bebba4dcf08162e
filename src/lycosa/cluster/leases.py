"""Leases: an agent may crawl while it has one, and may ask an address while it holds that one's.

`AgentLease` is renewed by every heartbeat that was answered. `AddressLeases`, at the coordinator, gives each address to
one agent at a time; `HeldAddresses` is the agent's side. Address leases are pure: `now` is an argument.
"""

import asyncio
from collections.abc import Callable, Mapping

from lycosa.crawl.loop import Engine
from lycosa.errors import ClusterError

AGENT_LEASE_S = 14.0  # less than an address is held for
CUT_OFF_S = 10.0  # without a lease for so long an agent ends, and its files are free
WATCH_POLL_S = 0.25


class AgentLease:
    """The lease of one agent. It begins with one."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._until = now() + AGENT_LEASE_S

    def __repr__(self) -> str:
        return f"<Lease {self._until - self._now():.1f} s left>"

    @property
    def is_valid(self) -> bool:
        return self._now() < self._until

    def renew(self, asked: float) -> None:
        """A beat that was made at `asked` was answered."""
        self._until = asked + AGENT_LEASE_S

    def make_void(self) -> None:
        self._until = 0.0

    def begin_late(self) -> None:
        """To open the shard may have taken long: how long one is cut off counts from now."""
        self._until = max(self._until, self._now())

    def fence(self, engine: Engine) -> bool:
        """Asked before every action on a socket: is the lease void? Then all of them are closed."""
        if self.is_valid:
            return False
        engine.downloader.cancel_all()
        return True

    async def watch(self, engine: Engine, shard: str) -> None:
        """Who is not heard any more closes its transfers in time, and ends if that lasts: others may have its shard."""
        while True:
            await asyncio.sleep(WATCH_POLL_S)
            self.fence(engine)
            if self._now() > self._until + CUT_OFF_S:
                engine.fail(ClusterError(f"shard {shard} is cut off from the coordinator"))


ADDRESS_LEASE_S = 20.0
TURN_S = 10.0
WAITER_STALE_S = 3.0  # who waits asks again twice a second: one who has not for so long does not want it any more


class _AddressLease:
    __slots__ = ("holder", "since", "until", "waiting")

    def __init__(self) -> None:
        self.holder = ""
        self.since = self.until = 0.0
        self.waiting: dict[str, float] = {}  # agent → when it asked last, in the order in which they came


class AddressLeases:
    """Who holds which address. `hears_until`: so long nothing new is granted, unless everyone was heard before."""

    def __init__(self, hears_until: float = 0.0) -> None:
        self._addresses: dict[str, _AddressLease] = {}
        self._contended: set[str] = set()  # addresses for which somebody waits, or did a moment ago
        self.hears_until = hears_until

    def __repr__(self) -> str:
        return f"<AddressTurns {len(self._addresses)} held, {len(self._contended)} wanted>"

    def held(self, agent: str, address: str, now: float) -> None:
        """An agent says what it holds from before this coordinator began."""
        one = self._addresses.setdefault(address, _AddressLease())
        if not one.holder:
            one.holder, one.since, one.until = agent, now, now + ADDRESS_LEASE_S

    def ask(self, agent: str, address: str, now: float) -> float:
        """An agent wants an address, or goes on with it; returns for how many seconds it has it, 0: it has to wait."""
        one = self._addresses.setdefault(address, _AddressLease())
        if one.holder and one.holder != agent and one.until <= now:
            one.holder = ""
        if not one.holder:
            one.waiting[agent] = now
            if next(iter(self._awake(one, now))) != agent or now < self.hears_until:
                self._contended.add(address)
                return 0.0
            del one.waiting[agent]
            one.holder, one.since = agent, now
        if one.holder == agent:
            one.until = now + ADDRESS_LEASE_S
            return ADDRESS_LEASE_S
        one.waiting[agent] = now
        self._contended.add(address)
        return 0.0

    @staticmethod
    def _awake(one: _AddressLease, now: float) -> dict[str, float]:
        one.waiting = {agent: asked for agent, asked in one.waiting.items() if asked > now - WAITER_STALE_S}
        return one.waiting

    def awaited(self, agent: str, now: float) -> dict[str, bool]:
        """The addresses of an agent for which others wait, and whether it has had its turn there."""
        found: dict[str, bool] = {}
        for address in list(self._contended):
            one = self._addresses.get(address)
            if one is None or not self._awake(one, now):
                self._contended.discard(address)
            elif one.holder == agent:
                found[address] = now - one.since >= TURN_S
        return found

    def give_back(self, agent: str, address: str) -> None:
        one = self._addresses.get(address)
        if one is None:
            return
        if one.holder == agent:
            one.holder, one.until = "", 0.0
        one.waiting.pop(agent, None)
        if not one.holder and not one.waiting:
            del self._addresses[address]


IDLE_S = 5.0  # an address that nobody wanted to ask for so long is given back
CONTENDED_IDLE_S = 0.1  # the same, where others wait
MARGIN_S = 1.0  # before its time is over an address is not asked any more
# An address with less time left is renewed by the next beat: whatever was held at the last beat that was answered
# outlasts the agent's lease.
RENEW_S = 16.0


class HeldAddresses:
    """The addresses of one agent."""

    def __init__(self) -> None:
        self.held: dict[str, float] = {}  # → until when
        self._used: dict[str, float] = {}  # → when it was wanted last
        self._waiting: dict[str, set[str]] = {}  # → hosts that are put aside
        self._awaited: Mapping[str, bool] = {}  # others wait for it → the turn is over
        self._returning: list[str] = []
        self.has_news = False  # an address is wanted that the coordinator was not asked for yet

    def __repr__(self) -> str:
        return f"<Visits held={len(self.held)} waiting={len(self._waiting)}>"

    @property
    def is_contended(self) -> bool:
        """Does somebody wait for somebody else?"""
        return bool(self._waiting or self._awaited)

    def may_visit(self, address: str, host: str, now: float) -> bool:
        """May the address be asked now? If not, the host is put aside until it may."""
        if self.held.get(address, 0.0) - MARGIN_S > now and not self._awaited.get(address, False):
            self._used[address] = now
            return True
        hosts = self._waiting.get(address)
        if hosts is None:
            hosts = self._waiting[address] = set()
            self.has_news = True
        hosts.add(host)
        return False

    def look(self, in_use: Callable[[str], int], now: float) -> None:
        """Before a beat: what can be given back, and what is lost by now."""
        for address in list(self.held):
            is_busy = in_use(address) > 0
            if is_busy:
                self._used[address] = now
                continue
            is_over = self._awaited.get(address)
            most_s = IDLE_S if is_over is None else CONTENDED_IDLE_S
            if is_over or now - self._used.get(address, now) > most_s or self.held[address] <= now:
                del self.held[address]
                self._used.pop(address, None)
                self._returning.append(address)

    def wake_all(self) -> list[str]:
        """The hosts have changed: all that wait are looked at anew."""
        waiting, self._waiting = self._waiting, {}
        return [host for hosts in waiting.values() for host in hosts]

    def wants(self, now: float) -> tuple[str, ...]:
        """What to ask for: addresses that hosts wait for, and those in use whose time runs out."""
        self.has_news = False
        return (
            *self._waiting,
            *(a for a, until in self.held.items() if until < now + RENEW_S and a not in self._waiting),
        )

    def returns(self) -> tuple[str, ...]:
        """What is given back; said until it was heard."""
        return tuple(self._returning)

    def granted(self, granted: Mapping[str, float], awaited: Mapping[str, bool], asked: float) -> list[str]:
        """The answer to a beat that was made at `asked`; returns the hosts that may go on."""
        self._returning = []
        self._awaited = awaited
        woken: list[str] = []
        for address, seconds in granted.items():
            self.held[address] = asked + seconds
            self._used.setdefault(address, asked)
            if not awaited.get(address, False):
                woken += self._waiting.pop(address, ())
        return woken
