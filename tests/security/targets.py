"""The hosts that a crawl must never connect to: both ends of every special-purpose prefix, in all their spellings.

Read from the conformance data: the IANA registries and the odd IPv4 forms. A target is one origin (host and port) as a
URL may write it; every target has its own origin, so that refusing one does not hide another.
"""

import ipaddress
import json
from pathlib import Path
from typing import NamedTuple

# Spellings get ports of their own from here on: they stand for addresses that are targets already.
SPELLED_PORTS = 20_000

_NAT64, _LOCAL_NAT64, _MAPPED, _SIX_TO_FOUR = 0x64FF9B << 96, (0x64FF9B << 96) | (1 << 80), 0xFFFF << 32, 0x2002 << 112
# Escapes that the URL standard undoes: of plain digits, of wide digits, of ideographic full stops.
_DISGUISED = {
    "%31%32%37.0.0.1": "127.0.0.1",
    "%EF%BC%91%EF%BC%92%EF%BC%97.0.0.1": "127.0.0.1",
    "169%E3%80%82254%E3%80%82169%E3%80%82254": "169.254.169.254",
}


class Target(NamedTuple):
    """`written` is the authority as a page may spell it, `origin` what it means, `address` where it leads."""

    written: str
    origin: str
    address: str

    @property
    def url(self) -> str:
        return f"http://{self.written}/"


def addresses(conformance: Path) -> list[str]:
    """First and last address of every prefix that is not globally reachable, and the IPv4 ones inside IPv6."""
    lines = (conformance / "ssrf" / "iana_special_purpose.jsonl").read_text().splitlines()
    rows = [row for row in map(json.loads, lines) if not row["globally_reachable"]]
    ends = [ipaddress.ip_address(row[end]) for row in rows for end in ("first", "last")]
    numbers = dict.fromkeys(int(end) for end in ends if end.version == 4)
    wrapped = [wrap | number for wrap in (_MAPPED, _NAT64, _LOCAL_NAT64) for number in numbers]
    wrapped += [_SIX_TO_FOUR | number << 80 for number in numbers]
    return list(dict.fromkeys(str(address) for address in (*ends, *map(ipaddress.IPv6Address, wrapped))))


def literals(conformance: Path) -> list[Target]:
    """Every address written as itself, on the usual port."""
    written = [f"[{address}]" if ":" in address else address for address in addresses(conformance)]
    return [Target(host, f"http://{host}", host.strip("[]")) for host in written]


def spellings(conformance: Path) -> list[Target]:
    """The refused IPv4 addresses in decimal, octal, hexadecimal, short and disguised forms."""
    ours = [address for address in addresses(conformance) if ":" not in address]
    forms: dict[str, str | None] = json.loads((conformance / "ssrf" / "funky_ipv4.json").read_text())
    found = [(form, address) for form, address in forms.items() if address and _is_special(address)]
    for address in ours:
        number, parts = int(ipaddress.IPv4Address(address)), address.split(".")
        found += [(str(number), address), (hex(number), address), (f"0{number:o}", address)]
        found.append((".".join(f"0{int(part):o}" for part in parts), address))
    found += list(_DISGUISED.items())
    return [
        Target(f"{form}:{port}", f"http://{address}:{port}", address)
        for port, (form, address) in enumerate(found, SPELLED_PORTS)
    ]


def open_forms(conformance: Path) -> list[str]:
    """Odd forms of addresses that anyone may ask: the guard must not refuse whatever looks odd."""
    forms: dict[str, str | None] = json.loads((conformance / "ssrf" / "funky_ipv4.json").read_text())
    return [form for form, address in forms.items() if address and not _is_special(address)]


def _is_special(address: str) -> bool:
    """All forms in the data are in 0/8, 1/8, 10/8, 63/8, 192.168/16 or 255/8."""
    return address.split(".")[0] not in ("1", "63")
