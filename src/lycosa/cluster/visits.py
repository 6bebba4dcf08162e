"""An agent's side of the turns: which addresses it holds, which it waits for, which it can give back.

An address that is held may be asked until its time is over; what is used is renewed by the next beat, what others wait
for is used no more and given back when nothing is under way there any longer. Pure: `now` is an argument.
"""

from collections.abc import Callable, Mapping, Sequence

IDLE_S = 2.0  # an address that nobody wanted to ask for so long is given back
MARGIN_S = 1.0  # before its time is over an address is not asked any more


class Visits:
    """The addresses of one agent."""

    def __init__(self) -> None:
        self.held: dict[str, float] = {}  # → until when
        self._used: dict[str, float] = {}  # → when it was wanted last
        self._waiting: dict[str, set[str]] = {}  # → hosts that are put aside
        self._leaving: set[str] = set()  # others wait for it
        self._returned: list[str] = []
        self._returning: list[str] = []

    def __repr__(self) -> str:
        return f"<Visits held={len(self.held)} waiting={len(self._waiting)}>"

    def may_visit(self, address: str, host: str, now: float) -> bool:
        """May the address be asked now? If not, the host is put aside until it may."""
        if self.held.get(address, 0.0) - MARGIN_S > now and address not in self._leaving:
            self._used[address] = now
            return True
        self._waiting.setdefault(address, set()).add(host)
        return False

    def look(self, in_use: Callable[[str], int], now: float) -> None:
        """Before a beat: what can be given back, and what is lost by now."""
        for address in list(self.held):
            is_busy = in_use(address) > 0
            if is_busy:
                self._used[address] = now
            is_idle = now - self._used.get(address, now) > IDLE_S
            if not is_busy and (address in self._leaving or is_idle or self.held[address] <= now):
                del self.held[address]
                self._used.pop(address, None)
                self._leaving.discard(address)
                self._returning.append(address)

    def wake_all(self) -> list[str]:
        """The hosts have changed: all that wait are looked at anew."""
        waiting, self._waiting = self._waiting, {}
        return [host for hosts in waiting.values() for host in hosts]

    def wants(self) -> tuple[str, ...]:
        """What to ask for: addresses that hosts wait for, and those in use, to be renewed."""
        return tuple({**self.held, **self._waiting})

    def returns(self) -> tuple[str, ...]:
        """What is given back; said until it was heard."""
        return tuple(self._returning)

    def granted(self, granted: Mapping[str, float], wanted: Sequence[str], asked: float) -> list[str]:
        """The answer to a beat that was made at `asked`; returns the hosts that may go on."""
        self._returning = []
        woken: list[str] = []
        self._leaving = set(wanted)
        for address, seconds in granted.items():
            self.held[address] = asked + seconds
            self._used.setdefault(address, asked)
            if address not in self._leaving:
                woken += self._waiting.pop(address, ())
        return woken
