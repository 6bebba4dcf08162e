"""Brings the parts of a running simulated web up together and takes them down together.

Ports are taken before anything else is built, so that a taken port costs nothing and leaves nothing behind.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import msgspec

from lycosa.simweb.certificates import Certificates
from lycosa.simweb.clock import SimClock
from lycosa.simweb.log import RequestLog
from lycosa.simweb.nameserver import NameServer
from lycosa.simweb.server import Server
from lycosa.simweb.settings import SimSettings
from lycosa.simweb.sockets import tcp_listener, udp_socket
from lycosa.simweb.web import SimWeb


class Running(msgspec.Struct, frozen=True):
    """A simulated web that is up: where it listens, and the parts that can be asked."""

    web: SimWeb
    clock: SimClock
    server: Server
    port: int
    dns_port: int

    @property
    def front_page(self) -> str:
        return f"{self.web.settings.scheme}://127.0.0.1:{self.port}/"


@asynccontextmanager
async def running(
    settings: SimSettings,
    *,
    dns_port: int = 0,
    log: Path | None = None,
    time_scale: float = 0.0,
    gzip: bool = True,
    ca_file: Path | None = None,
    on_failure: Callable[[], None] | None = None,
) -> AsyncIterator[Running]:
    """A simulated web for as long as the block runs. Port 0 takes a free one.

    With `ca_file` it speaks TLS and writes its authority there. When the log fails, `on_failure` is called and the
    block's end raises the error.
    """
    loop = asyncio.get_running_loop()
    with ExitStack() as taken:
        listener = taken.enter_context(tcp_listener(settings.port))
        names = taken.enter_context(udp_socket(dns_port))
        settings = msgspec.structs.replace(settings, port=listener.getsockname()[1])
        web, clock = SimWeb(settings), SimClock(loop.time, scale=time_scale)
        web.prepare()
        certificates = Certificates() if ca_file else None
        request_log = RequestLog(log, settings)
        taken.callback(request_log.close)
        if certificates and ca_file:
            certificates.write(ca_file)
        taken.pop_all()
    server = Server(web, clock, request_log, gzip=gzip, certificates=certificates, on_failure=on_failure)
    transport, _ = await loop.create_datagram_endpoint(lambda: NameServer(web, clock), sock=names)
    try:
        await server.start(listener)
        yield Running(web, clock, server, settings.port, names.getsockname()[1])
    finally:
        transport.close()
        await server.close()
