"""The address guard: which addresses a crawl may connect to.

Pure. Invariant: an address inside a special-purpose block that is not globally reachable, and any IPv6 address outside
global unicast, is refused, unless its network was allowed by the user or it is the very host and port typed as a seed.
The blocks are those of the IANA special-purpose registries, written out here because the standard library's
`ipaddress.is_global` disagrees with them. Called by `mapping.mapper` for every address of every answer.
"""

import socket
from bisect import bisect_right
from collections.abc import Iterable
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_network

Network = IPv4Network | IPv6Network

# Answers repeat: one address serves many hosts. 16,384 entries are about 3 MB.
CACHE_ENTRIES = 16_384

# (prefix, globally reachable, name), IANA IPv4 Special-Purpose Address Registry, with multicast (RFC 5771).
_IPV4_BLOCKS = (
    ("0.0.0.0/8", False, "this network"),
    ("10.0.0.0/8", False, "private use"),
    ("100.64.0.0/10", False, "shared address space"),
    ("127.0.0.0/8", False, "loopback"),
    ("169.254.0.0/16", False, "link-local"),
    ("172.16.0.0/12", False, "private use"),
    ("192.0.0.0/24", False, "IETF protocol assignments"),
    ("192.0.0.9/32", True, "port control protocol anycast"),
    ("192.0.0.10/32", True, "TURN anycast"),
    ("192.0.2.0/24", False, "documentation"),
    ("192.31.196.0/24", True, "AS112"),
    ("192.52.193.0/24", True, "AMT"),
    ("192.88.99.0/24", False, "6to4 relay anycast"),
    ("192.168.0.0/16", False, "private use"),
    ("192.175.48.0/24", True, "AS112 delegation"),
    ("198.18.0.0/15", False, "benchmarking"),
    ("198.51.100.0/24", False, "documentation"),
    ("203.0.113.0/24", False, "documentation"),
    ("224.0.0.0/4", False, "multicast"),
    ("240.0.0.0/4", False, "reserved"),
)

# The same for IPv6. Outside 2000::/3, the only global unicast space, what is not listed is refused too.
_IPV6_BLOCKS = (
    ("::/0", False, "not global unicast"),
    ("::/96", False, "IPv4-compatible"),
    ("::/128", False, "unspecified"),
    ("::1/128", False, "loopback"),
    ("::ffff:0:0/96", False, "IPv4-mapped"),
    ("64:ff9b::/96", True, "NAT64"),
    ("64:ff9b:1::/48", False, "local NAT64"),
    ("100::/64", False, "discard-only"),
    ("100:0:0:1::/64", False, "dummy prefix"),
    ("2000::/3", True, "global unicast"),
    ("2001::/23", False, "IETF protocol assignments"),
    ("2001::/32", False, "Teredo"),
    ("2001:1::1/128", True, "port control protocol anycast"),
    ("2001:1::2/128", True, "TURN anycast"),
    ("2001:1::3/128", True, "DNS-SD anycast"),
    ("2001:2::/48", False, "benchmarking"),
    ("2001:3::/32", True, "AMT"),
    ("2001:4:112::/48", True, "AS112"),
    ("2001:10::/28", False, "ORCHID"),
    ("2001:20::/28", True, "ORCHIDv2"),
    ("2001:30::/28", True, "drone remote id"),
    ("2001:db8::/32", False, "documentation"),
    ("2002::/16", False, "6to4"),
    ("2620:4f:8000::/48", True, "AS112 delegation"),
    ("3fff::/20", False, "documentation"),
    ("5f00::/16", False, "segment routing"),
    ("fc00::/7", False, "unique local"),
    ("fe80::/10", False, "link-local"),
    ("ff00::/8", False, "multicast"),
)

_NAT64_HIGH_BITS = int.from_bytes(socket.inet_pton(socket.AF_INET6, "64:ff9b::"), "big") >> 32


class _Ranges:
    """Blocks flattened into adjacent ranges, so that one bisection finds what the longest prefix says."""

    def __init__(self, blocks: Iterable[tuple[str, bool, str]], *, bits: int) -> None:
        nested = [(ip_network(prefix), None if ok else f"{name} ({prefix})") for prefix, ok, name in blocks]
        edges = {0} | {int(net.network_address) for net, _ in nested}
        edges |= {int(net.broadcast_address) + 1 for net, _ in nested}
        self.starts = sorted(edge for edge in edges if edge < 1 << bits)
        self.verdicts = [self._longest(nested, start) for start in self.starts]

    @staticmethod
    def _longest(nested: list[tuple[Network, str | None]], start: int) -> str | None:
        covering = [
            (net.prefixlen, verdict)
            for net, verdict in nested
            if int(net.network_address) <= start <= int(net.broadcast_address)
        ]
        return max(covering, key=lambda pair: pair[0])[1] if covering else None

    def refusal(self, number: int) -> str | None:
        return self.verdicts[bisect_right(self.starts, number) - 1]


_IPV4 = _Ranges(_IPV4_BLOCKS, bits=32)
_IPV6 = _Ranges(_IPV6_BLOCKS, bits=128)


class AddressGuard:
    """Says why an address is refused. `allow` are networks that the user opened; seeds typed as literals are added
    later."""

    def __init__(self, allow: Iterable[Network] = ()) -> None:
        networks = tuple(allow)
        self._allow4 = [net for net in networks if net.version == 4]
        self._allow6 = [net for net in networks if net.version == 6]
        self._typed: set[tuple[str, int]] = set()
        self._cached = lru_cache(maxsize=CACHE_ENTRIES)(self._judge)

    def __repr__(self) -> str:
        allowed = ", ".join(str(net) for net in (*self._allow4, *self._allow6))
        return f"AddressGuard(allow=[{allowed}], typed={sorted(self._typed)})"

    def allow_literal(self, host: str, port: int) -> None:
        """Opens one literal address or `localhost`, on one port, because the user typed it as a seed.

        A name is ignored: what it resolves to is not what the user typed.
        """
        if is_literal_host(host):
            self._typed.add((_bare(host), port))

    def is_typed(self, host: str, port: int) -> bool:
        """Whether the user typed this literal host and port as a seed."""
        return (_bare(host), port) in self._typed

    def refusal(self, address: str) -> str | None:
        """Why `address` may not be connected to, or None when it may. Anything but a plain address is refused."""
        return self._cached(address)

    def refusal_of_any(self, addresses: Iterable[str]) -> str | None:
        """The first refusal among the addresses of one answer: one bad address refuses them all."""
        for address in addresses:
            reason = self._cached(address)
            if reason is not None:
                return f"{address}: {reason}"
        return None

    def _judge(self, address: str) -> str | None:
        packed = parse_ip_address(address)
        if packed is None:
            return "not an address"
        number = int.from_bytes(packed, "big")
        return self._judge4(number) if len(packed) == 4 else self._judge6(number)

    def _judge4(self, number: int) -> str | None:
        reason = _IPV4.refusal(number)
        return None if reason is None or _inside(number, self._allow4) else reason

    def _judge6(self, number: int) -> str | None:
        if number >> 32 == _NAT64_HIGH_BITS and not _inside(number, self._allow6):
            embedded = self._judge4(number & 0xFFFF_FFFF)
            return None if embedded is None else f"NAT64 of {embedded}"
        reason = _IPV6.refusal(number)
        return None if reason is None or _inside(number, self._allow6) else reason


def parse_ip_address(text: str) -> bytes | None:
    """The 4 or 16 bytes of a plain address; None for names, odd IPv4 spellings and addresses with a zone."""
    try:
        return socket.inet_pton(socket.AF_INET6 if ":" in text else socket.AF_INET, text)
    except (OSError, ValueError):  # ValueError: a NUL or a lone surrogate inside
        return None


def is_literal_host(host: str) -> bool:
    """Whether a URL's host needs no resolver: an address (IPv6 in brackets or not) or `localhost`."""
    return literal_address(host) is not None


def literal_address(host: str) -> str | None:
    """The address a literal host stands for, in its shortest spelling; None when the host is a name.

    `localhost` and names below it are loopback by definition (RFC 6761) and must never reach a name server.
    """
    bare = _bare(host)
    packed = parse_ip_address(bare)
    if packed is not None:
        return socket.inet_ntop(socket.AF_INET if len(packed) == 4 else socket.AF_INET6, packed)
    name = bare.rstrip(".")
    return "127.0.0.1" if name == "localhost" or name.endswith(".localhost") else None


def _bare(host: str) -> str:
    return (host[1:-1] if host.startswith("[") and host.endswith("]") else host).lower()


def _inside(number: int, networks: Iterable[Network]) -> bool:
    return any(int(net.network_address) <= number <= int(net.broadcast_address) for net in networks)
