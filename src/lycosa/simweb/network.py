"""The simulated network: clock, latency and bandwidth, names, loopback sockets and TLS.

Time counts in seconds since the web began. It stands still by default, so that two crawls see the same web; it can be
scaled or set, and stops for good after a century, so that every date can be written. Round trips and bandwidth are
log-normal over hosts around the medians of the settings. Nothing here listens on anything but loopback. The server
turns all of it into waiting and sockets; the in-memory web uses the clock, the lines and the names alone.
"""

import asyncio
import errno
import math
import re
import socket
import ssl
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from pathlib import Path

import dns.exception
import dns.flags
import dns.message
import dns.opcode
import dns.rcode
import dns.rdataclass
import dns.rdatatype
import dns.rrset
import msgspec

from lycosa.errors import MissingExtra, SettingsError
from lycosa.simweb.settings import DNS_NUMBER, SimSettings
from lycosa.simweb.vocabulary import Draws, unit
from lycosa.simweb.web import SimWeb

LATEST_S = 100 * 365 * 86_400.0


def check_time(option: str, value: float) -> None:
    """Refuses a simulated time, or a pace of it, that no clock here can have."""
    if not 0 <= value <= LATEST_S:
        raise SettingsError(f"{option} is {value:g}, it must be between 0 and {LATEST_S:.0f}")


class SimClock:
    """Maps a monotonic clock to simulated time."""

    def __init__(self, monotonic: Callable[[], float], *, scale: float = 0.0, start_s: float = 0.0) -> None:
        self._monotonic = monotonic
        self._began = self._since = monotonic()
        self._base_s, self.scale = start_s, scale

    def time_s(self) -> float:
        """Simulated seconds since the web began."""
        return min(LATEST_S, self._base_s + (self._monotonic() - self._since) * self.scale)

    def elapsed_s(self) -> float:
        """Real seconds since the clock was made."""
        return self._monotonic() - self._began

    def set(self, *, time_s: float | None = None, scale: float | None = None) -> None:
        """Move the hand, change the pace, or both; what is not given stays."""
        self._base_s = self.time_s() if time_s is None else time_s
        self._since = self._monotonic()
        self.scale = self.scale if scale is None else scale


# latency and bandwidth

PACE_S = 0.02  # a piece is what the line carries in this time
RTT_PURPOSE, BANDWIDTH_PURPOSE = 70, 71
CLIENT = -1  # the client's line, among those of the hosts


class HostLine(msgspec.Struct, frozen=True):
    """The line to one host. `bandwidth_bytes_s` 0 means without limit."""

    rtt_s: float
    bandwidth_bytes_s: float


class Network:
    """The lines to all hosts of one web. Keeps, for the hosts that were asked, until when their line is taken."""

    def __init__(self, settings: SimSettings, draws: Draws) -> None:
        self._settings, self._draws = settings, draws
        self._taken_until: dict[int, float] = {}
        limits = settings.bandwidth_bytes_s, settings.line_bytes_s, settings.transfer_bytes_s
        self.is_ideal = not (settings.rtt_ms or any(limits))

    def line(self, host: int) -> HostLine:
        s = self._settings
        return HostLine(
            rtt_s=s.rtt_ms / 1000 * self._factor(host, RTT_PURPOSE, s.rtt_spread),
            bandwidth_bytes_s=s.bandwidth_bytes_s * self._factor(host, BANDWIDTH_PURPOSE, s.bandwidth_spread),
        )

    def piece_bytes(self, host: int) -> int:
        """How much to send at once, so that transfers take turns."""
        limits = [bytes_s for _, bytes_s in self._limits(host)]
        limits += [s] if (s := self._settings.transfer_bytes_s) else []
        return max(1, int(min(limits) * PACE_S)) if limits else sys.maxsize

    def reserve(self, host: int, size_bytes: int, now: float) -> float:
        """Takes the lines for so many bytes, after those who came before; when the last one has passed."""
        until = now
        for line, bytes_s in self._limits(host):
            free = self._taken_until.get(line, 0.0)
            if free < now - PACE_S:  # idle; else a piece that went a moment late, as timers do, is made good
                free = now
            self._taken_until[line] = free + size_bytes / bytes_s
            until = max(until, self._taken_until[line])
        own = self._settings.transfer_bytes_s
        return max(until, now + size_bytes / own) if own else until

    def _limits(self, host: int) -> list[tuple[int, float]]:
        """The lines on a host's way that have a limit: its own, and the client's."""
        lines = ((host, self.line(host).bandwidth_bytes_s), (CLIENT, self._settings.line_bytes_s))
        return [(line, bytes_s) for line, bytes_s in lines if bytes_s]

    def _factor(self, host: int, purpose: int, sigma: float) -> float:
        """A log-normal factor with median 1, from two uniforms (Box and Muller)."""
        if not sigma:
            return 1.0
        x = self._draws.mix(host, 0, purpose)
        radius = math.sqrt(-2 * math.log(1 - unit(x)))
        return math.exp(sigma * radius * math.cos(2 * math.pi * unit(self._draws.mix(host, 1, purpose))))


# names

SLOW_LOOKUP_S = 1.0
DNS_PURPOSE = 80
ZONE = "sim."
NEGATIVE_TTL_S = 30


class NameServer(asyncio.DatagramProtocol):
    """An authoritative DNS server for the hosts of one web; it keeps nothing.

    `hN.sim` has one A record with a TTL and no AAAA; other names do not exist. Shares of the hosts can fail as names
    do: SERVFAIL, silence, slow answers, answers that change every TTL. Which hosts is a draw, the same in every run.
    """

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


# sockets, on loopback only

BACKLOG = 4096


def tcp_listener(port: int) -> socket.socket:
    """A listening TCP socket; port 0 takes a free one."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return _bound(listener, _bind_to_loopback(listener), port, "--port", listen=True)


def udp_socket(port: int) -> socket.socket:
    """A UDP socket on 127.0.0.1; port 0 takes a free one."""
    return _bound(socket.socket(socket.AF_INET, socket.SOCK_DGRAM), "127.0.0.1", port, "--dns-port", listen=False)


def is_loopback(address: str) -> bool:
    return address.startswith("127.")


def _bind_to_loopback(listener: socket.socket) -> str:
    """Ties the socket to the loopback device and returns the address to bind: every one, or only 127.0.0.1."""
    if sys.platform != "linux":
        return "127.0.0.1"
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo\0")
    except OSError:  # an old kernel, or a container without the right
        return "127.0.0.1"
    return "0.0.0.0"


def _bound(sock: socket.socket, address: str, port: int, option: str, *, listen: bool) -> socket.socket:
    if not 0 <= port <= 65_535:
        sock.close()
        raise SettingsError(f"{option} is {port}, a port is between 0 and 65535")
    try:
        sock.bind((address, port))
        if listen:
            sock.listen(BACKLOG)
    except OSError as error:
        sock.close()
        if error.errno == errno.EADDRINUSE:
            raise SettingsError(
                f"port {port} is taken: choose another one with {option}, or 0 for a free one"
            ) from error
        if error.errno == errno.EACCES:
            raise SettingsError(f"port {port} needs more rights: choose one above 1023 with {option}") from error
        raise SettingsError(f"cannot listen on port {port}: {error.strerror}") from error
    sock.setblocking(False)
    return sock


# TLS

READ_BYTES = 1 << 16


class TlsStream:
    """The server's side of one TLS connection. `is_closed`: the client has ended it, or does not speak TLS."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._has_met = False
        self.is_closed = False

    def receive(self, data: bytes) -> tuple[bytes, bytes]:
        """(plain bytes from the client, bytes to send it now: handshake and alerts)."""
        self._incoming.write(data)
        parts = []
        try:
            if not self._has_met:
                with _odd_names_refused_quietly():
                    self._tls.do_handshake()
                self._has_met = True
            while part := self._tls.read(READ_BYTES):
                parts.append(part)
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError:  # the client's good-bye is one of these
            self.is_closed = True
        return b"".join(parts), self._outgoing.read()

    def send(self, data: bytes | memoryview) -> bytes:
        """What to put on the wire for `data`."""
        left = memoryview(data)
        while left:
            left = left[self._tls.write(left) :]
        return self._outgoing.read()

    def close(self) -> bytes:
        """The good-bye to send. Nothing can be sent after it."""
        with suppress(ssl.SSLError):  # the client has not said good-bye yet, or has never been met
            self._tls.unwrap()
        return self._outgoing.read()


@contextmanager
def _odd_names_refused_quietly() -> Iterator[None]:
    """Python refuses a client that asks for a host name outside ASCII, but writes a traceback; that is left out."""
    hook = sys.unraisablehook

    def without_names(unraisable: "sys.UnraisableHookArgs") -> None:
        if unraisable.exc_type is not UnicodeDecodeError:
            hook(unraisable)

    sys.unraisablehook = without_names
    try:
        yield
    finally:
        sys.unraisablehook = hook


CACHED = 256  # names, and addresses
_NAME = re.compile(r"(?=.{1,253}\Z)[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63})*\Z", re.IGNORECASE)


class Certificates:
    """The authority of one run and what it has signed."""

    def __init__(self) -> None:
        try:
            import trustme
        except ImportError as error:
            raise MissingExtra.of("tls", what="the simulated web over TLS") from error
        self._authority = trustme.CA(organization_name="Lycosa simulated web")
        self._signed = lru_cache(CACHED)(self._sign)
        self.context = lru_cache(CACHED)(self._context)

    def write(self, path: Path) -> None:
        """Writes the authority's certificate for clients to trust."""
        try:
            self._authority.cert_pem.write_to_path(str(path))
        except OSError as error:
            raise SettingsError(f"cannot write the certificate {path}: {error.strerror}") from error

    def _context(self, address: str) -> ssl.SSLContext:
        """A server context for connections to `address`; which certificate it shows is settled in the handshake."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.sni_callback = partial(self._choose, address)
        return context

    def _choose(self, address: str, tls: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> int | None:
        if name is not None and not _NAME.match(name):
            return ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME
        try:
            tls.context = self._signed(name) if name else self._signed(address, "127.0.0.1", "localhost", "h0.sim")
        except ValueError:  # a name that no certificate can carry
            return ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME
        return None

    def _sign(self, *names: str) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._authority.issue_cert(*names).configure_cert(context)
        return context
