"""The hostile web on loopback: raw sockets, names and certificates for the rows of `hostile`, and good hosts beside.

Row N has the address 127.66.1.N, good hosts `good-N.hostile` share 127.66.2.x: a crawl is allowed 127.66.0.0/16. The
server listens on every loopback address; a connection to any other one is a trespass, and is noted. Nothing is
written to disk.
"""

import asyncio
import datetime
import random
import ssl
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import dns.exception
import dns.flags
import dns.message
import dns.rcode
import dns.rdatatype
import dns.rrset

from lycosa.errors import MissingExtra
from lycosa.simweb.hostile import ROWS, HostileRow, hostile_row
from lycosa.simweb.hostile_acts import DOMAIN, OUTSIDE
from lycosa.simweb.network import tcp_listener, udp_socket
from lycosa.simweb.raw import RawConnection, page_bytes

GOOD = "good-"
GOOD_PAGES = 20
_BROKEN = (
    asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError, ssl.SSLError, UnicodeError, IndexError,
)  # fmt: skip


class HostileWeb:
    """A running hostile web. `asked` counts requests by row or good host, `pages` those for anything but robots.txt,
    `trespasses` are the connections to other addresses, `heads` the last request head of each host."""

    ALLOWED = "127.66.0.0/16"  # the network that a crawl of this web has to be allowed

    def __init__(self, good_pages: int) -> None:
        self.port = self.tls_port = self.dns_port = 0
        self._good_pages = good_pages
        self.good_since_s = self.good_until_s = 0.0  # the first and the last request to a good host
        self.asked: Counter[str] = Counter()
        self.pages: Counter[str] = Counter()
        self.heads: dict[str, str] = {}
        self.trespasses: list[str] = []
        self._turns: Counter[tuple[str, str]] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()

    def seed(self, row: HostileRow) -> str:
        return f"https://{row.host}:{self.tls_port}/" if row.tls else f"http://{row.host}:{self.port}/"

    def good_seed(self, number: int) -> str:
        return f"http://{GOOD}{number}.{DOMAIN}:{self.port}/"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        address = str(writer.get_extra_info("sockname")[0])
        if not address.startswith("127.66."):
            self.trespasses.append(address)
        try:
            with suppress(*_BROKEN, asyncio.CancelledError):
                while not writer.is_closing():
                    await self._answer((await reader.readuntil(b"\r\n\r\n")).decode("latin-1"), reader, writer)
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _answer(self, head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = RawConnection(reader, writer)
        line.path = head.split(" ")[1]
        line.host = head.lower().partition("\r\nhost: ")[2].partition("\r\n")[0]
        line.port = self.port
        name = line.host.partition(":")[0]
        self._turns[name, line.path] += 1
        line.turn = self._turns[name, line.path]
        row = hostile_row(name)
        self.asked[row.name if row else name] += 1
        self.pages[row.name if row else name] += line.path != "/robots.txt"
        self.heads[name] = head
        if row is not None:
            await row.act(line.path)(line)
        else:
            self.good_until_s = asyncio.get_running_loop().time()
            self.good_since_s = self.good_since_s or self.good_until_s
            await line.say(_good_page(line.path, self._good_pages))

    async def stop(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _good_page(path: str, pages: int) -> bytes:
    if path == "/robots.txt":
        return page_bytes(b"", status="404 Not Found")
    number = int(path[1:]) if path[1:].isdigit() else 0
    draw = random.Random(number)  # pages that are not copies of each other
    words = " ".join(draw.randbytes(3).hex() for _ in range(100))
    links = "".join(f'<a href="/{n}">{n}</a>' for n in range(number + 1, number + 5) if n < pages)
    return page_bytes(f"<title>{number}</title><p>{words}<p>{links}".encode(), fields="Content-Type: text/html\r\n")


# names


class HostileNames(asyncio.DatagramProtocol):
    """The name server: any name below `.hostile` exists, and rows with trouble of their names have it."""

    def __init__(self) -> None:
        self._lookups: Counter[str] = Counter()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: asyncio.DatagramTransport = transport  # type: ignore[assignment]

    def datagram_received(self, data: bytes, peer: tuple[str, int]) -> None:
        with suppress(dns.exception.DNSException, OSError):  # not DNS, or an answer that no datagram can hold
            query = dns.message.from_wire(data)
            self._transport.sendto(self._reply(query).to_wire(max_size=65_535), peer)

    def _reply(self, query: dns.message.Message) -> dns.message.Message:
        reply = dns.message.make_response(query)
        reply.flags |= dns.flags.AA
        question = query.question[0]
        name = question.name.to_text(omit_final_dot=True).lower()
        if not name.endswith(f".{DOMAIN}"):
            reply.set_rcode(dns.rcode.NXDOMAIN)
        elif question.rdtype == dns.rdatatype.A:
            self._lookups[name] += 1
            kind, values = self._records(name)
            reply.answer = [dns.rrset.from_text(question.name, 0, "IN", kind, *values)]
        return reply

    def _records(self, name: str) -> tuple[str, list[str]]:
        row = hostile_row(name)
        if row is None:
            number = int(digits) if (digits := name.removeprefix(GOOD).partition(".")[0]).isdigit() else 0
            return "A", [f"127.66.2.{1 + number % 250}"]
        own = f"127.66.1.{1 + ROWS.index(row)}"
        if row.dns == "loop":
            return "CNAME", [f"{'' if name.startswith('b.') else 'b.'}{row.host}."]
        if row.dns == "thousands":
            return "A", [own, *(f"127.66.{n // 250}.{1 + n % 250}" for n in range(1_000, 4_999))]
        if row.dns == "mixed":
            return "A", [own, OUTSIDE]
        return "A", [OUTSIDE if row.dns == "rebinding" and self._lookups[name] > 1 else own]


# certificates


def _contexts(ca_file: Path | None) -> ssl.SSLContext:
    """A context that shows each host the certificate that its row wants."""
    try:
        import trustme
    except ImportError as error:
        raise MissingExtra.of("tls", what="the hostile web") from error
    authority, unknown = trustme.CA(organization_name="Lycosa hostile web"), trustme.CA()
    if ca_file is not None:
        authority.cert_pem.write_to_path(str(ca_file))
    past = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)

    def context(row: HostileRow) -> ssl.SSLContext:
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        if row.tls == "expired":
            certificate = authority.issue_cert(row.host, not_before=past, not_after=past + datetime.timedelta(days=1))
        else:
            signer = unknown if row.tls == "self-signed" else authority
            certificate = signer.issue_cert("other.test" if row.tls == "wrong-host" else row.host)
        certificate.configure_cert(made)
        return made

    contexts = {row.host: context(row) for row in ROWS if row.tls}

    def choose(tls: ssl.SSLSocket | ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> int | None:
        chosen = contexts.get(name or "")
        if chosen is None:
            return ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME
        tls.context = chosen
        return None

    front = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    front.sni_callback = choose
    return front


@asynccontextmanager
async def serve_hostile(
    *, port: int = 0, tls_port: int = 0, dns_port: int = 0, ca_file: Path | None = None, good_pages: int = GOOD_PAGES
) -> AsyncIterator[HostileWeb]:
    """The hostile web for as long as the block runs. Port 0 takes a free one."""
    web = HostileWeb(good_pages)
    loop = asyncio.get_running_loop()
    plain, tls, names = tcp_listener(port), tcp_listener(tls_port), udp_socket(dns_port)
    servers = [
        await asyncio.start_server(web.serve, sock=plain),
        await asyncio.start_server(web.serve, sock=tls, ssl=_contexts(ca_file)),
    ]
    transport, _ = await loop.create_datagram_endpoint(HostileNames, sock=names)
    web.port, web.tls_port, web.dns_port = (sock.getsockname()[1] for sock in (plain, tls, names))
    try:
        yield web
    finally:
        transport.close()
        for server in servers:
            server.close()
        await web.stop()
