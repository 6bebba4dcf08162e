"""Where buckets live, for assignments that go by addresses: `ip`, and places.

A bucket begins with the member that its name draws. Whoever looks up its first host tells the address; the coordinator
keeps the first one it hears, for ever, so that a name with many addresses stays where it is. Every now and then buckets
that belong elsewhere by now move there, as they do when a member joins: all of a host is with one agent at any time.
Pure: `now` is an argument.
"""

from collections.abc import Mapping

from lycosa.cluster.places import Places
from lycosa.web.url import bucket_of

HOSTS_KEPT = 65_536  # hosts that an agent remembers to have told of
FIRST_S, LONGEST_S = 2.0, 60.0  # between two moves, each time twice as long


class Sightings:
    """An agent's side: addresses of buckets that the coordinator has not heard of."""

    def __init__(self) -> None:
        self._hosts: set[str] = set()
        self._told: set[int] = set()
        self.news: dict[int, str] = {}

    def __repr__(self) -> str:
        return f"<Sightings {len(self._told)} told, {len(self.news)} to tell>"

    def note(self, host: str, address: str) -> None:
        """A host was looked up."""
        if host in self._hosts:
            return
        if len(self._hosts) >= HOSTS_KEPT:
            self._hosts.clear()
        self._hosts.add(host)
        bucket = bucket_of(host)
        if bucket not in self._told:
            self.news.setdefault(bucket, address)

    def heard(self, told: Mapping[int, str], *, is_new_to_it: bool = False) -> None:
        """The coordinator knows these. `is_new_to_it`: it is another one than before, and is told all of it again."""
        if is_new_to_it:
            self._hosts.clear()
            self._told.clear()
        self._told |= told.keys()
        self.news = {bucket: address for bucket, address in self.news.items() if bucket not in told}


class Learned:
    """The coordinator's side: what was told since the last move, and when the next one is worth it."""

    def __init__(self) -> None:
        self.homes: dict[int, str] = {}
        self._next, self._pause_s = 0.0, FIRST_S

    def __repr__(self) -> str:
        return f"<Learned {len(self.homes)}>"

    def hear(self, told: Mapping[int, str], known: Mapping[int, str], now: float) -> None:
        if not self.homes:
            self._next = max(self._next, now + FIRST_S)
        for bucket, address in told.items():
            if bucket not in known:
                self.homes.setdefault(bucket, address)

    def is_due(self, now: float) -> bool:
        return bool(self.homes) and now >= self._next

    def take(self, now: float) -> dict[int, str]:
        """What is to be settled now."""
        self._next, self._pause_s = now + self._pause_s, min(2 * self._pause_s, LONGEST_S)
        homes, self.homes = self.homes, {}
        return homes


def placed(homes: Mapping[int, str], ranges: Places) -> dict[int, str]:
    """Buckets and their places, for those whose address is in a range."""
    if not len(ranges):
        return {}
    return {bucket: place for bucket, address in homes.items() if (place := ranges.of(address))}
