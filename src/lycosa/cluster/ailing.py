"""Members that fail again and again: a full disk, another version. The others go on; each is tried again, with pauses.

A member ails after `AILS_AFTER` failures within `RECENT_S`. From then on it is started less often, for as long as the
others have work. Once all of them rest and wait for it, the crawl has failed, for its reason.
Pure: `now` is an argument.
"""

from collections.abc import Collection
from typing import NamedTuple

AILS_AFTER, RECENT_S = 3, 120.0
PAUSE_S = 15.0  # between two starts of a member that ails
PATIENCE_S = 10.0  # all others rest for so long: nothing more will happen


class Trouble(NamedTuple):
    """Why a member ended."""

    words: str
    is_store: bool


class Ailing:
    """Failures by name. `AILS_AFTER` of them make a member ail until `RECENT_S` without any have passed."""

    def __init__(self) -> None:
        self._failures: dict[str, list[float]] = {}
        self._last: dict[str, Trouble] = {}
        self._resting_since: float | None = None

    def __repr__(self) -> str:
        return f"<Ailing {', '.join(self._failures) or 'nobody'}>"

    def failed(self, name: str, trouble: Trouble, now: float) -> None:
        recent = [at for at in self._failures.get(name, []) if at > now - RECENT_S]
        self._failures[name] = [*recent[1 - AILS_AFTER :], now]
        self._last[name] = trouble

    def ails(self, name: str, now: float) -> bool:
        failures = self._failures.get(name, [])
        return sum(at > now - RECENT_S for at in failures) >= AILS_AFTER

    def may_start(self, name: str, now: float) -> bool:
        """May a member be started now?"""
        return not self.ails(name, now) or now - self._failures[name][-1] >= PAUSE_S

    def verdict(self, members: Collection[str], resting: Collection[str], now: float) -> Trouble | None:
        """What ends the crawl: nobody is left who could go on. `resting`: members with nothing to do of their own."""
        ill = [name for name in members if self.ails(name, now)]
        if not ill or not set(members) <= {*ill, *resting}:
            self._resting_since = None
            return None
        if self._resting_since is None:
            self._resting_since = now
        is_vain = len(ill) == len(members) or now - self._resting_since >= PATIENCE_S
        return self._last[ill[0]] if is_vain else None
