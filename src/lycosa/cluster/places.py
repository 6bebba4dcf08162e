"""Places: which agents are near an address (Y1). Address ranges map to names of places, the narrowest range counts.

A crawl without places has one, with no name.
"""

from collections.abc import Mapping
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path

from lycosa.errors import SettingsError
from lycosa.settings import CrawlSettings
from lycosa.settings.values import read_place

ADDRESSES_KEPT = 16_384


class Places:
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
        self.of = lru_cache(ADDRESSES_KEPT)(self._of)

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


def ranges_of(settings: CrawlSettings) -> dict[str, str]:
    """The ranges that a crawl's settings name."""
    return dict(read_place(text) for text in settings.places)


def read_file(path: Path) -> list[str]:
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
