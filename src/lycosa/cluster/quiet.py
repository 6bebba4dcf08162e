"""Is a crawl over? When every member was found idle twice in a row and nothing at all has moved in between.

An agent is idle when nothing is queued, in flight or uncommitted, and every row it sent is committed by its receiver;
one whose whole queue has to wait for very long counts as idle, too (`Report.waits_long`).
One look at each is not enough: whoever was idle may be given work by whoever was looked at later. Pure.
"""

from collections.abc import Collection

Mark = tuple[int, int]  # incarnation and activity


class Quiet:
    """Told of every beat by `heard`; `is_quiet` for given members."""

    def __init__(self) -> None:
        self._first: dict[str, Mark] = {}
        self._second: set[str] = set()

    def heard(self, name: str, mark: Mark | None, members: Collection[str]) -> None:
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
