"""An authoritative DNS server for the simulated hosts, on a loopback UDP port.

`hN.sim` has one A record with a TTL and no AAAA; other names do not exist. Shares of the hosts can fail as names do:
SERVFAIL, silence, slow answers, answers that change every TTL. Which hosts is a draw, so it is the same in every run.
"""

import asyncio

import dns.exception
import dns.flags
import dns.message
import dns.opcode
import dns.rcode
import dns.rdataclass
import dns.rdatatype
import dns.rrset

from lycosa.simweb.network import SimClock
from lycosa.simweb.settings import DNS_NUMBER
from lycosa.simweb.vocabulary import unit
from lycosa.simweb.web import SimWeb

SLOW_LOOKUP_S = 1.0
DNS_PURPOSE = 80
ZONE = "sim."
NEGATIVE_TTL_S = 30


class NameServer(asyncio.DatagramProtocol):
    """Answers queries for one web. Filled and emptied by the socket; keeps nothing."""

    def __init__(self, web: SimWeb, clock: SimClock) -> None:
        self._web, self._clock = web, clock

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: asyncio.DatagramTransport = transport  # type: ignore[assignment]

    def datagram_received(self, data: bytes, peer: tuple[str, int]) -> None:
        try:
            query = dns.message.from_wire(data)
        except dns.exception.DNSException:
            return  # not DNS: a name server says nothing to that
        if query.flags & dns.flags.QR or query.opcode() != dns.opcode.QUERY or len(query.question) != 1:
            return
        host = self._host(query)
        if host is not None and self._has(host, "timeout"):
            return
        reply = self._reply(query, host).to_wire()
        if host is not None and self._has(host, "slow"):
            asyncio.get_running_loop().call_later(SLOW_LOOKUP_S, self._send, reply, peer)
        else:
            self._send(reply, peer)

    def _send(self, reply: bytes, peer: tuple[str, int]) -> None:
        if not self._transport.is_closing():
            self._transport.sendto(reply, peer)

    def _host(self, query: dns.message.Message) -> int | None:
        name = query.question[0].name.to_text(omit_final_dot=True).lower()
        return self._web.layout.host_number(name) if name.endswith(".sim") else None

    def _reply(self, query: dns.message.Message, host: int | None) -> dns.message.Message:
        reply = dns.message.make_response(query)
        reply.flags |= dns.flags.AA
        question = query.question[0]
        if host is None:
            reply.set_rcode(dns.rcode.NXDOMAIN)
        elif self._has(host, "servfail"):
            reply.set_rcode(dns.rcode.SERVFAIL)
            return reply
        elif question.rdtype in (dns.rdatatype.A, dns.rdatatype.ANY):
            ttl = self._web.settings.dns_ttl_s
            reply.answer = [
                dns.rrset.from_text(question.name, ttl, dns.rdataclass.IN, dns.rdatatype.A, self.address(host))
            ]
            return reply
        soa = f"ns.{ZONE} admin.{ZONE} 1 3600 600 86400 {NEGATIVE_TTL_S}"
        reply.authority = [dns.rrset.from_text(ZONE, NEGATIVE_TTL_S, dns.rdataclass.IN, dns.rdatatype.SOA, soa)]
        return reply

    def address(self, host: int) -> str:
        """The host's address now."""
        turn = 0
        if self._has(host, "changing"):
            turn = int(self._clock.elapsed_s() / max(1, self._web.settings.dns_ttl_s))
        return self._web.layout.address_of(host, turn=turn)

    def _has(self, host: int, name: str) -> bool:
        return has_dns_trouble(self._web, host, name)


def has_dns_trouble(web: SimWeb, host: int, name: str) -> bool:
    """Is `host` one of those whose names fail in the way `name`?"""
    share = web.settings.dns.get(name, 0.0)
    return share > 0 and unit(web.draws.mix(host, DNS_NUMBER[name], DNS_PURPOSE)) < share
