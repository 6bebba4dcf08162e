"""The members of a cluster: shards with a name for ever, and the record of who they are at an epoch.

A shard's *name* decides what it owns, so it keeps it through restarts, on another machine too. Its *incarnation* is a
number that only grows, given by the coordinator at every start. Records only.
"""

import msgspec


class Member(msgspec.Struct, frozen=True):
    """One shard. `number` grows in the order of registration (H2); `capacity` is its share beside others'."""

    name: str
    number: int = 0
    capacity: float = 1.0
    place: str = ""
    address: str = ""

    def __post_init__(self) -> None:
        if not 0 < self.capacity < float("inf"):
            raise ValueError(f"the capacity of {self.name} is {self.capacity}: it must be a number above 0")
