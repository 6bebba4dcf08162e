"""Locality: which place an address is in, and which address decides where a bucket belongs.

Used by the assignment `ip` and by places. A bucket begins with the member that its name draws. The agent that looks up
its first host reports the address; the coordinator keeps the first one it hears, for ever, so that a name with many
addresses stays where it is. Now and then the buckets that belong elsewhere by now move there, as they do when a member
joins. Pure: `now` is an argument.
"""

from collections.abc import Mapping
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path

from lycosa.errors import SettingsError
from lycosa.settings import CrawlSettings, read_place
from lycosa.web import bucket_of

CACHED_ADDRESSES = 16_384


class PlaceRanges:
    """The map from address ranges, such as 192.0.2.0/24, to places."""

    def __init__(self, ranges: Mapping[str, str]) -> None:
        self._places: dict[IPv4Network | IPv6Network, str] = {}
        for text, place in ranges.items():
            try:
                self._places[ip_network(text, strict=False)] = place
            except ValueError as error:
                raise SettingsError(
                    f"{text!r} is no range of addresses; write 192.0.2.0/24 or 2001:db8::/32"
                ) from error
        self._lengths = {
            version: sorted({n.prefixlen for n in self._places if n.version == version}, reverse=True)
            for version in (4, 6)
        }
        self.of = lru_cache(CACHED_ADDRESSES)(self._of)

    def __len__(self) -> int:
        return len(self._places)

    def _of(self, address: str) -> str:
        """The place of an address; nothing where no range has it."""
        try:
            parsed = ip_address(address)
        except ValueError:
            return ""
        for length in self._lengths[parsed.version]:
            place = self._places.get(ip_network((parsed, length), strict=False))
            if place is not None:
                return place
        return ""


def place_ranges(settings: CrawlSettings) -> dict[str, str]:
    """The ranges that a crawl's settings name."""
    return dict(read_place(text) for text in settings.places)


def read_places_file(path: Path) -> list[str]:
    """A file of ranges and places, a line each (`192.0.2.0/24 berlin  # comment`), as the settings have them."""
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"cannot read the places {path}: {error}") from error
    found = []
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].split()
        if len(words) == 2:
            found.append(f"{words[0]}={words[1]}")
        elif words:
            raise SettingsError(f"{path}, line {number}: write a range and a place, such as 192.0.2.0/24 berlin")
    if not found:
        raise SettingsError(f"{path} has no places: write a range and a place a line, such as 192.0.2.0/24 berlin")
    return found


REMEMBERED_HOSTS = 65_536  # hosts that an agent remembers to have told of
FIRST_S, LONGEST_S = 2.0, 60.0  # between two moves, each time twice as long


class ObservedAddresses:
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
        if len(self._hosts) >= REMEMBERED_HOSTS:
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


class LearnedAddresses:
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


def bucket_places(homes: Mapping[int, str], ranges: PlaceRanges) -> dict[int, str]:
    """Buckets and their places, for those whose address is in a range."""
    if not len(ranges):
        return {}
    return {bucket: place for bucket, address in homes.items() if (place := ranges.of(address))}
