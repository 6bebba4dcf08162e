"""Termination: how the coordinator learns that a crawl is finished, out of pages, or cannot go on.

`TerminationDetector` finds that nobody has work and nothing is under way. `PageQuota` divides a limit of pages among
the agents. `MemberHealth` counts the failures of members and decides when only failing ones are left. Pure.
"""

from collections.abc import Collection
from typing import NamedTuple

ActivityMark = tuple[int, int]  # incarnation and activity


class TerminationDetector:
    """Told of every beat by `heard`; `is_quiet` for given members."""

    def __init__(self) -> None:
        self._first: dict[str, ActivityMark] = {}
        self._second: set[str] = set()

    def heard(self, name: str, mark: ActivityMark | None, members: Collection[str]) -> None:
        """A member has told of itself; `mark` is None while it is busy."""
        if mark is None or self._first.get(name, mark) != mark:
            self._first, self._second = {}, set()
        if mark is None:
            return
        if self._first.keys() >= set(members):
            self._second.add(name)
        self._first[name] = mark

    def is_quiet(self, members: Collection[str]) -> bool:
        return bool(members) and self._second >= set(members)

    def forget(self) -> None:
        """The members have changed, or there is new work."""
        self._first, self._second = {}, set()


MIN_GRANT_PAGES = 8  # pages given at a time, or half an equal share of what is free, if that is more


class PageQuota:
    """Caps by name. `limit` is the number of pages of the whole collection."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._caps: dict[str, int] = {}

    def __repr__(self) -> str:
        return f"<Allowance {sum(self._caps.values())} of {self.limit}>"

    def beat(self, name: str, *, used: int, cap: int, wants: bool, members: Collection[str]) -> int:
        """An agent tells how many pages it has or is getting, and its cap; returns its cap from now on."""
        self._caps[name] = max(cap, used)
        if not wants or not self._caps.keys() >= set(members):  # unknown caps of others may fill the limit
            return self._caps[name]
        free = self.limit - sum(self._caps.values())
        room = self._caps[name] - used
        grant = max(MIN_GRANT_PAGES, free // (2 * len(members))) - room
        self._caps[name] += max(0, min(free, grant))
        return self._caps[name]


AILS_AFTER, RECENT_S = 3, 120.0
RESTART_PAUSE_S = 15.0  # between two starts of a member that ails
ALL_RESTING_S = 10.0  # all others rest for so long: nothing more will happen


class MemberFailure(NamedTuple):
    """Why a member ended."""

    words: str
    is_store: bool


class MemberHealth:
    """Failures by name. `AILS_AFTER` of them make a member ail until `RECENT_S` without any have passed."""

    def __init__(self) -> None:
        self._failures: dict[str, list[float]] = {}
        self._last: dict[str, MemberFailure] = {}
        self._resting_since: float | None = None

    def __repr__(self) -> str:
        return f"<Ailing {', '.join(self._failures) or 'nobody'}>"

    def failed(self, name: str, trouble: MemberFailure, now: float) -> None:
        recent = [at for at in self._failures.get(name, []) if at > now - RECENT_S]
        self._failures[name] = [*recent[1 - AILS_AFTER :], now]
        self._last[name] = trouble

    def ails(self, name: str, now: float) -> bool:
        failures = self._failures.get(name, [])
        return sum(at > now - RECENT_S for at in failures) >= AILS_AFTER

    def may_start(self, name: str, now: float) -> bool:
        """May a member be started now?"""
        return not self.ails(name, now) or now - self._failures[name][-1] >= RESTART_PAUSE_S

    def verdict(self, members: Collection[str], resting: Collection[str], now: float) -> MemberFailure | None:
        """What ends the crawl: nobody is left who could go on. `resting`: members with nothing to do of their own."""
        ill = [name for name in members if self.ails(name, now)]
        if not ill or not set(members) <= {*ill, *resting}:
            self._resting_since = None
            return None
        if self._resting_since is None:
            self._resting_since = now
        is_vain = len(ill) == len(members) or now - self._resting_since >= ALL_RESTING_S
        return self._last[ill[0]] if is_vain else None
