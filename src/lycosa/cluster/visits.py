"""An agent's side of the turns: which addresses it holds, which it waits for, which it can give back.

An address that is held may be asked until its time is over, and is renewed long before. What others wait for is given
back when there is nothing to ask for a moment; once the turn is over it is used no more, and given back when nothing is
under way there any longer. Pure: `now` is an argument.
"""

from collections.abc import Callable, Mapping

IDLE_S = 5.0  # an address that nobody wanted to ask for so long is given back
AWAITED_IDLE_S = 0.1  # the same, where others wait
MARGIN_S = 1.0  # before its time is over an address is not asked any more
# An address with less time left is renewed by the next beat: whatever was held at the last beat that was answered
# outlasts the agent's lease.
RENEW_S = 16.0


class Visits:
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
            most_s = IDLE_S if is_over is None else AWAITED_IDLE_S
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
