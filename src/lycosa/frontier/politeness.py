"""Politeness: slots that are free again a delay after the request in them has ended.

Pure: takes `now`, never reads a clock. A `Slots` stands for a host or an address. Invariant: never more than `limit`
requests at a time, and a slot is not used again sooner than `delay_s` after its last request's *end*.
Used by `frontier.hosts` for hosts and by `frontier.frontier` for addresses.
"""

import heapq


class Slots:
    """The slots of one host or address. `free_at` has a time for every slot that is not in use, the earliest first."""

    __slots__ = ("free_at", "in_use", "limit")

    def __init__(self, limit: int, *, first_at: float = 0.0) -> None:
        self.limit = limit
        self.in_use = 0
        self.free_at = [first_at] * limit

    def __repr__(self) -> str:
        return f"<Slots {self.in_use}/{self.limit} next {self.next_at():.3f}>"

    def next_at(self) -> float:
        """When a slot is free; infinity while all are in use."""
        return self.free_at[0] if self.free_at else float("inf")

    def take(self) -> None:
        heapq.heappop(self.free_at)
        self.in_use += 1

    def give_back(self, free_at: float) -> None:
        self.in_use -= 1
        heapq.heappush(self.free_at, free_at)

    def not_before(self, when: float) -> None:
        """No slot is free before `when`: a whole host waits."""
        self.free_at = [max(time, when) for time in self.free_at]
