"""Locality: which place an address is in, and which address decides where a bucket belongs.

Used by the assignment `ip` and by places. A bucket begins with the member that its name draws, since an address is only
known once somebody has looked it up. The agent that looks up its first host reports the address; now and then the
buckets that belong elsewhere by now move there, as they do when a member joins. Pure: `now` is an argument.
"""

from collections.abc import Mapping
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path

from lycosa.errors import SettingsError
from lycosa.settings import CrawlSettings, read_place
from lycosa.web import bucket_of

CACHED_ADDRESSES = 16_384
# Hosts whose bucket an agent has looked at; beyond it the memory begins anew.
REMEMBERED_HOSTS = 65_536
# Every move stops the exchange for a moment, and most addresses are learned early: pauses double from move to move.
FIRST_PAUSE_S, MAX_PAUSE_S = 2.0, 60.0


class PlaceRanges:
    """The map from address ranges, such as 192.0.2.0/24, to names of places; the narrowest range counts."""

    def __init__(self, ranges: Mapping[str, str]) -> None:
        self._places: dict[IPv4Network | IPv6Network, str] = {}
        for text, place in ranges.items():
            try:
                self._places[ip_network(text, strict=False)] = place
            except ValueError as error:
                raise SettingsError(
                    f"{text!r} is no range of addresses; write 192.0.2.0/24 or 2001:db8::/32"
                ) from error
        # Lengths from long to short: the first range that is found is the narrowest.
        self._lengths = {
            version: sorted({n.prefixlen for n in self._places if n.version == version}, reverse=True)
            for version in (4, 6)
        }
        self.place_of = lru_cache(CACHED_ADDRESSES)(self._place_of)

    def _place_of(self, address: str) -> str:
        """The place of an address; empty where no range has it."""
        try:
            parsed = ip_address(address)
        except ValueError:
            return ""
        for length in self._lengths[parsed.version]:
            place = self._places.get(ip_network((parsed, length), strict=False))
            if place is not None:
                return place
        return ""

    def bucket_places(self, addresses: Mapping[int, str]) -> dict[int, str]:
        """The places of buckets, for those whose address is in a range."""
        if not self._places:
            return {}
        return {bucket: place for bucket, address in addresses.items() if (place := self.place_of(address))}


def place_ranges(settings: CrawlSettings) -> dict[str, str]:
    """The ranges that a crawl's settings name, and their places."""
    return dict(read_place(text) for text in settings.places)


def read_places_file(path: Path) -> list[str]:
    """Reads ranges and places, one pair a line (`192.0.2.0/24 berlin  # comment`), as the setting `places` has them."""
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


class ObservedAddresses:
    """The agent's side: addresses of buckets that the coordinator has not heard of."""

    def __init__(self) -> None:
        self._hosts: set[str] = set()
        self._reported: set[int] = set()
        self.unreported: dict[int, str] = {}

    def __repr__(self) -> str:
        return f"<ObservedAddresses reported={len(self._reported)} unreported={len(self.unreported)}>"

    def record(self, host: str, address: str) -> None:
        """Notes the address of a host that was looked up."""
        if host in self._hosts:
            return
        if len(self._hosts) >= REMEMBERED_HOSTS:
            self._hosts.clear()
        self._hosts.add(host)
        bucket = bucket_of(host)
        if bucket not in self._reported:
            self.unreported.setdefault(bucket, address)

    def on_reported(self, reported: Mapping[int, str], *, is_new_coordinator: bool) -> None:
        """The coordinator has heard of these. A new one may not have what the one before heard: it hears it all."""
        if is_new_coordinator:
            self._hosts.clear()
            self._reported.clear()
        self._reported |= reported.keys()
        self.unreported = {bucket: a for bucket, a in self.unreported.items() if bucket not in reported}


class LearnedAddresses:
    """The coordinator's side: addresses of buckets that were reported since the last move."""

    def __init__(self) -> None:
        self._addresses: dict[int, str] = {}
        self._due, self._pause_s = 0.0, FIRST_PAUSE_S

    def __repr__(self) -> str:
        return f"<LearnedAddresses {len(self._addresses)}>"

    def record(self, reported: Mapping[int, str], known: Mapping[int, str], now: float) -> None:
        """The first address that is heard of a bucket counts for ever: a name with many addresses stays where it is."""
        if not self._addresses:
            self._due = max(self._due, now + FIRST_PAUSE_S)
        for bucket, address in reported.items():
            if bucket not in known:
                self._addresses.setdefault(bucket, address)

    def is_due(self, now: float) -> bool:
        """Is another move worth it?"""
        return bool(self._addresses) and now >= self._due

    def take(self, now: float) -> dict[int, str]:
        """Returns what was learned since the last call, and begins a longer pause."""
        self._due, self._pause_s = now + self._pause_s, min(2 * self._pause_s, MAX_PAUSE_S)
        addresses, self._addresses = self._addresses, {}
        return addresses
