"""Addresses in turns: several agents may have hosts at one address, but only one of them asks it at a time.

An agent has to hold an address before it asks there. It holds it for `HOLD_S` at a time and renews that for as long as
it has something to ask; after `TURN_S` it is told that others wait, starts nothing more there, and gives the address
back when its last request has ended. Who dies or is cut off loses it when its time is over. Pure: `now` is an argument.
"""

from collections import deque

HOLD_S = 15.0
TURN_S = 10.0


class _Address:
    __slots__ = ("holder", "since", "until", "waiting")

    def __init__(self) -> None:
        self.holder = ""
        self.since = self.until = 0.0
        self.waiting: deque[str] = deque()


class AddressTurns:
    """Who holds which address. `hears_until`: so long nothing new is granted, unless everyone was heard before."""

    def __init__(self, hears_until: float = 0.0) -> None:
        self._addresses: dict[str, _Address] = {}
        self.hears_until = hears_until

    def __repr__(self) -> str:
        return f"<AddressTurns {len(self._addresses)} held>"

    def held(self, agent: str, address: str, now: float) -> None:
        """An agent says what it holds from before this coordinator began."""
        one = self._addresses.setdefault(address, _Address())
        if not one.holder:
            one.holder, one.since, one.until = agent, now, now + HOLD_S

    def ask(self, agent: str, address: str, now: float) -> float:
        """An agent wants an address, or goes on with it; returns for how many seconds it has it, 0: it has to wait."""
        one = self._addresses.setdefault(address, _Address())
        if one.holder and one.holder != agent and one.until <= now:
            one.holder = ""
        if not one.holder:
            self._wait(one, agent)
            if one.waiting[0] != agent or now < self.hears_until:
                return 0.0
            one.waiting.popleft()
            one.holder, one.since = agent, now
        if one.holder == agent:
            one.until = now + HOLD_S
            return HOLD_S
        self._wait(one, agent)
        return 0.0

    @staticmethod
    def _wait(one: _Address, agent: str) -> None:
        if agent not in one.waiting:
            one.waiting.append(agent)

    def is_wanted(self, agent: str, address: str, now: float) -> bool:
        """Has the agent had its turn, and do others wait?"""
        one = self._addresses.get(address)
        return one is not None and one.holder == agent and bool(one.waiting) and now - one.since >= TURN_S

    def give_back(self, agent: str, address: str) -> None:
        one = self._addresses.get(address)
        if one is None:
            return
        if one.holder == agent:
            one.holder, one.until = "", 0.0
        if agent in one.waiting:
            one.waiting.remove(agent)
        if not one.holder and not one.waiting:
            del self._addresses[address]

    def forget(self, agent: str) -> None:
        """A new incarnation of an agent begins: what it waited for is void; what it held runs out by itself."""
        for one in self._addresses.values():
            if agent in one.waiting:
                one.waiting.remove(agent)
