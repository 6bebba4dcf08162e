"""Where a host lives: from a name to one checked address, by a resolver, a cache and the address guard."""

from lycosa.mapping.guard import AddressGuard, is_literal_host, literal_address, parse_ip_address
from lycosa.mapping.mapper import KnownHost, Mapper
from lycosa.mapping.resolver import CaresResolver, Resolver

__all__ = [
    "AddressGuard", "CaresResolver", "KnownHost", "Mapper", "Resolver", "is_literal_host", "literal_address",
    "parse_ip_address",
]  # fmt: skip
