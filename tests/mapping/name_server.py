"""A small DNS server on a loopback UDP port, for tests: answers from a zone that a test may change at any time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import dns.flags
import dns.message
import dns.rcode
import dns.rrset

# (name, type) -> (ttl, values), or the word for what goes wrong
Zone = dict[tuple[str, str], tuple[int, list[str]] | str]


class NameServer(asyncio.DatagramProtocol):
    """`zone` says what is answered: missing names do not exist; "servfail", "silent" and "garbage" misbehave."""

    def __init__(self, zone: Zone) -> None:
        self.zone = zone
        self.asked: list[tuple[str, str]] = []
        self.address = ""
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self.address = "{}:{}".format(*transport.get_extra_info("sockname")[:2])

    def datagram_received(self, data: bytes, addr: Any) -> None:
        query = dns.message.from_wire(data)
        name, kind = query.question[0].name.to_text(omit_final_dot=True).lower(), query.question[0].rdtype.name
        self.asked.append((name, kind))
        answer = self._answer(query, name, kind)
        if answer is not None and self._transport is not None:
            self._transport.sendto(answer, addr)

    def _answer(self, query: dns.message.Message, name: str, kind: str) -> bytes | None:
        reply = dns.message.make_response(query)
        reply.flags |= dns.flags.RA
        found = self.zone.get((name, kind))
        if found == "silent":
            return None
        if found == "garbage":
            return query.to_wire()[:2] + b"\xff" * 30
        if found == "servfail":
            reply.set_rcode(dns.rcode.SERVFAIL)
        elif found is None and not any(known == name for known, _ in self.zone):
            reply.set_rcode(dns.rcode.NXDOMAIN)
        elif isinstance(found, tuple):
            self._follow(reply, name, kind, found)
        return reply.to_wire()

    def _follow(self, reply: dns.message.Message, name: str, kind: str, found: tuple[int, list[str]]) -> None:
        ttl, values = found
        if values[0].startswith("cname "):
            target = values[0].removeprefix("cname ")
            reply.answer.append(dns.rrset.from_text(f"{name}.", ttl, "IN", "CNAME", f"{target}."))
            onward = self.zone.get((target, kind))
            if isinstance(onward, tuple):
                self._follow(reply, target, kind, onward)
            return
        reply.answer.append(dns.rrset.from_text(f"{name}.", ttl, "IN", kind, *values))


@asynccontextmanager
async def name_server(zone: Zone) -> AsyncIterator[NameServer]:
    loop = asyncio.get_running_loop()
    transport, server = await loop.create_datagram_endpoint(lambda: NameServer(zone), local_addr=("127.0.0.1", 0))
    try:
        yield server
    finally:
        transport.close()
