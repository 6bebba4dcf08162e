"""From a host to the one address that a crawl may connect to.

`Mapper` queues hosts, asks a `Resolver`, keeps its answers and chooses an address; `AddressGuard` decides whether an
address may be connected to at all. Invariant: an address that leaves this room has passed the guard together with all
others of its answer; literal addresses and `localhost` never reach a name server.
"""

from lycosa.mapping.guard import AddressGuard, is_literal_host, literal_address, parse_ip_address
from lycosa.mapping.mapper import CaresResolver, Mapper, Resolver

__all__ = [
    "AddressGuard", "CaresResolver", "Mapper", "Resolver", "is_literal_host", "literal_address", "parse_ip_address",
]  # fmt: skip
