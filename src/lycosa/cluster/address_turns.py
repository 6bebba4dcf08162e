"""Addresses in turns: several agents may have hosts at one address, but only one of them asks it at a time.

An agent has to hold an address before it asks there. It holds it for `HOLD_S` and renews that in time, for as long as
it has something to ask. It is told when others wait: then it gives the address back as soon as it has nothing to ask
there for a moment, and after `TURN_S` in any case, when its last request has ended. Who dies or is cut off loses it
when its time is over. Pure: `now` is an argument.
"""

HOLD_S = 20.0
TURN_S = 10.0
STALE_S = 3.0  # who waits asks again twice a second: one who has not for so long does not want it any more


class _Address:
    __slots__ = ("holder", "since", "until", "waiting")

    def __init__(self) -> None:
        self.holder = ""
        self.since = self.until = 0.0
        self.waiting: dict[str, float] = {}  # agent → when it asked last, in the order in which they came


class AddressTurns:
    """Who holds which address. `hears_until`: so long nothing new is granted, unless everyone was heard before."""

    def __init__(self, hears_until: float = 0.0) -> None:
        self._addresses: dict[str, _Address] = {}
        self._contended: set[str] = set()  # addresses for which somebody waits, or did a moment ago
        self.hears_until = hears_until

    def __repr__(self) -> str:
        return f"<AddressTurns {len(self._addresses)} held, {len(self._contended)} wanted>"

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
            one.waiting[agent] = now
            if next(iter(self._awake(one, now))) != agent or now < self.hears_until:
                self._contended.add(address)
                return 0.0
            del one.waiting[agent]
            one.holder, one.since = agent, now
        if one.holder == agent:
            one.until = now + HOLD_S
            return HOLD_S
        one.waiting[agent] = now
        self._contended.add(address)
        return 0.0

    @staticmethod
    def _awake(one: _Address, now: float) -> dict[str, float]:
        one.waiting = {agent: asked for agent, asked in one.waiting.items() if asked > now - STALE_S}
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
