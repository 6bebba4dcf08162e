"""Termination: how the coordinator learns that a crawl is finished, out of pages, or cannot go on.

`TerminationDetector` finds that nobody has work and nothing is under way. `PageQuota` divides a limit of pages among
the agents. `MemberHealth` counts the failures of members and says when only failing ones could go on. Pure: `now` is an
argument.
"""

from collections.abc import Collection
from typing import NamedTuple

# An agent gets so many pages at a time, or half an equal share of what is free, if that is more.
MIN_GRANT_PAGES = 8

FAILING_AFTER, RECENT_FAILURES_S = 3, 120.0
# Between two starts of a failing member: a full disk is not emptied by trying at once.
RESTART_PAUSE_S = 15.0
# All others have been idle for so long: what they wait for will not come.
ALL_RESTING_S = 10.0

ActivityMark = tuple[int, int]  # an agent's incarnation and its count of everything it did


class TerminationDetector:
    """The crawl has terminated when every member was idle twice in a row and nothing at all moved in between.

    An agent is idle when nothing is queued, in flight or uncommitted there, and its receivers have committed every row
    it sent; one whose whole queue has to wait for very long counts as idle, too (`AgentReport.waits_long`).
    """

    # One round is not enough: agents report one after the other, and one that was idle may have been given work by one
    # that reported later and is idle by now. In a second round without any activity nobody can have given anything.

    def __init__(self) -> None:
        self._first_round: dict[str, ActivityMark] = {}
        self._second_round: set[str] = set()

    def record(self, name: str, mark: ActivityMark | None, members: Collection[str]) -> None:
        """A member has reported; `mark` is None while it is busy."""
        if mark is None or self._first_round.get(name, mark) != mark:
            self.reset()
        if mark is None:
            return
        if self._first_round.keys() >= set(members):
            self._second_round.add(name)
        self._first_round[name] = mark

    def has_terminated(self, members: Collection[str]) -> bool:
        return bool(members) and self._second_round >= set(members)

    def reset(self) -> None:
        """The members have changed, or there is new work."""
        self._first_round, self._second_round = {}, set()


class PageQuota:
    """The limit of pages of a whole collection, or of visits, as caps of its agents: their sum never exceeds the limit.

    An idle agent lowers its own cap to what it has used. What is free goes to agents with work, little by little, so
    that none holds what another could use.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._caps: dict[str, int] = {}

    def __repr__(self) -> str:
        return f"<PageQuota {sum(self._caps.values())} of {self._limit}>"

    def update(self, name: str, *, used: int, cap: int, wants: bool, members: Collection[str]) -> int:
        """An agent reports the pages that it has or fetches, and its cap; returns its new cap."""
        self._caps[name] = max(cap, used)
        # A new coordinator grants nothing before it knows all caps: those of the others may fill the limit.
        if not wants or not self._caps.keys() >= set(members):
            return self._caps[name]
        free = self._limit - sum(self._caps.values())
        room = self._caps[name] - used
        grant = max(MIN_GRANT_PAGES, free // (2 * len(members))) - room
        self._caps[name] += max(0, min(free, grant))
        return self._caps[name]


class MemberFailure(NamedTuple):
    """Why a member ended. `is_store`: its disk or store was to blame."""

    reason: str
    is_store: bool


class MemberHealth:
    """The failures of members. A member is failing after `FAILING_AFTER` failures within `RECENT_FAILURES_S`.

    A failing member is started less often, and the others go on. Once all of those are idle and wait for it, the crawl
    has failed, for its reason.
    """

    def __init__(self) -> None:
        self._failures: dict[str, list[float]] = {}
        self._last: dict[str, MemberFailure] = {}
        self._resting_since: float | None = None

    def __repr__(self) -> str:
        return f"<MemberHealth failures of {', '.join(self._failures) or 'nobody'}>"

    def record_failure(self, name: str, failure: MemberFailure, now: float) -> None:
        recent = [at for at in self._failures.get(name, []) if at > now - RECENT_FAILURES_S]
        self._failures[name] = [*recent[1 - FAILING_AFTER :], now]
        self._last[name] = failure

    def is_failing(self, name: str, now: float) -> bool:
        return sum(at > now - RECENT_FAILURES_S for at in self._failures.get(name, [])) >= FAILING_AFTER

    def may_start(self, name: str, now: float) -> bool:
        return not self.is_failing(name, now) or now - self._failures[name][-1] >= RESTART_PAUSE_S

    def crawl_failure(self, members: Collection[str], resting: Collection[str], now: float) -> MemberFailure | None:
        """The failure that ends the crawl, once nobody is left who could go on. `resting` members have nothing to do
        of their own."""
        failing = [name for name in members if self.is_failing(name, now)]
        if not failing or not set(members) <= {*failing, *resting}:
            self._resting_since = None
            return None
        if self._resting_since is None:
            self._resting_since = now
        is_hopeless = len(failing) == len(members) or now - self._resting_since >= ALL_RESTING_S
        return self._last[failing[0]] if is_hopeless else None
