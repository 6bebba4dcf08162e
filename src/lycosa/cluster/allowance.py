"""A limit of pages over many agents: each may go up to its cap, and all caps together never exceed the limit.

An agent that has nothing to do lowers its own cap to what it has used, and says so; what is free is given to those that
still have work, little by little, so that no one holds what another could use. Pure.
"""

from collections.abc import Collection

GRANT_LEAST = 8  # pages given at a time, or half an equal share of what is free, if that is more


class Allowance:
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
        grant = max(GRANT_LEAST, free // (2 * len(members))) - room
        self._caps[name] += max(0, min(free, grant))
        return self._caps[name]
