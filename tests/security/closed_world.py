"""A world of its own for crawls: a network namespace in which only `lo` is up, and every address there is, is here.

All of IPv4 and IPv6 is routed to `lo`, where one listener takes connections to any address and notes which: a guard
that fails is heard, and reaches nobody. A name server and the sites live on addresses of their own. Each way a URL can
come in (`ways`) is one crawl by the real command.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lycosa.inspect import hosts, open_to_read
from tests.mapping.name_server import NameServer, Zone
from tests.security.targets import Target, literals, open_forms, spellings

SITE = "127.0.0.9"  # the only address that the crawls are allowed to ask
NAMES = ("127.0.0.53", 5300)
PORTS = (80, 443, 8080, 8081)
TIMEOUT_S = 600


@dataclass
class Way:
    """What came of one crawl. `expected` are the origins that had to be refused, as `lycosa hosts` spells them; `tried`
    says how often a way was gone where these are not known."""

    expected: list[str]
    code: int = -1
    said: str = ""
    started: list[list[str | int]] = field(default_factory=list)
    heard: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    tried: int = 0


Until = Callable[[], bool]


async def _interrupt(pid: int, ended: "asyncio.Future[bytes]", until: Until) -> None:
    while not ended.done() and not until():  # noqa: ASYNC110  # other processes bring it about
        await asyncio.sleep(0.25)
    await asyncio.sleep(1.0)
    if not ended.done():
        os.kill(pid, signal.SIGINT)


class FlippingServer(NameServer):
    """A name server that changes its mind about some names after it was asked once."""

    def __init__(self, zone: Zone, flips: dict[str, str]) -> None:
        super().__init__(zone)
        self._flips = flips

    def datagram_received(self, data: bytes, addr: Any) -> None:
        super().datagram_received(data, addr)
        name, kind = self.asked[-1]
        if kind == "A" and name in self._flips:
            address = self._flips.pop(name)
            del self.zone[name, "A"]
            self.zone[name, "AAAA" if ":" in address else "A"] = (0, [address])


class World:
    """The servers, and what they heard since the last look."""

    def __init__(self, conformance: Path, folder: Path) -> None:
        self.folder = folder
        self.literals, self.spellings = literals(conformance), spellings(conformance)
        self.targets = [*self.literals, *self.spellings]
        self.open_forms = open_forms(conformance)
        self.heard: list[str] = []
        self.asked: list[tuple[str, str]] = []  # (host, path)
        self.zone: Zone = {}
        self.tasks: list[asyncio.Task[None]] = []
        self._socket = str(folder / "lycosa")
        self.flips: dict[str, str] = {}  # name → its address after the first lookup
        self.pages: dict[tuple[str, str], tuple[str, bytes]] = {}  # (site, path) → (extra header line, body)
        self.named = [self.name(f"a{n}.bad.test", [target.address]) for n, target in enumerate(self.literals)]

    def name(self, name: str, addresses: list[str]) -> Target:
        self.zone[name, "AAAA" if ":" in addresses[0] else "A"] = (60, addresses)
        return Target(name, f"http://{name}", addresses[-1])

    def site(self, name: str) -> str:
        """A site that may be asked."""
        self.name(name, [SITE])
        self.page(name, "/robots.txt", "User-agent: *\nAllow: /\n")
        return f"http://{name}/"

    def page(self, site: str, path: str, body: str, *, header: str = "Content-Type: text/html") -> None:
        self.pages[site, path] = (header, body.encode())

    # the servers

    async def begin(self) -> None:
        """Serve until the process ends."""
        for port in PORTS:
            await asyncio.start_server(self._serve, "::", port, backlog=1000)
            await asyncio.start_server(self._serve, "0.0.0.0", port, backlog=1000)
        loop = asyncio.get_running_loop()
        self.names = FlippingServer(self.zone, self.flips)
        await loop.create_datagram_endpoint(lambda: self.names, local_addr=NAMES)
        command = [sys.executable, "-m", "tests.security.recorded_lycosa", self._socket]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        # Four lookups of a crawl at a time: the name server here has one thread, and on a busy machine the last of some
        # hundred would time out. A host that cannot be looked up is given up for that, and its address never judged.
        env = {**os.environ, "LYCOSA_MAPPING_BATCH": "1"}
        self._server: Any = await asyncio.create_subprocess_exec(*command, **pipes, env=env)
        await self._server.stdout.readline()  # it listens

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        address, port = writer.get_extra_info("sockname")[:2]
        self.heard.append(f"{address} {port}")
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                writer.write(self._answer(head.decode()))
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, UnicodeDecodeError, IndexError, OSError):
            pass
        finally:
            writer.close()

    def _answer(self, head: str) -> bytes:
        """The page asked for; where there is none, an empty one, so that a crawl that got here goes on."""
        path, host = head.split(" ")[1], head.lower().partition("\r\nhost: ")[2].split("\r\n")[0]
        self.asked.append((host, path))
        header, body = self.pages.get((host, path), ("Content-Type: text/plain", b""))
        status = "302 Found" if header.startswith("Location") else "200 OK"
        return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{header}\r\n\r\n".encode() + body

    # the crawls

    async def crawl(
        self,
        name: str,
        expected: list[Target],
        *words: str,
        private: tuple[str, ...] = (SITE,),
        until: Until | None = None,
    ) -> Way:
        """`lycosa crawl WORDS` into a collection called `name`, heard from start to end; interrupted a moment after
        `until` is true."""
        leave = [word for network in private for word in ("--allow-private", network)]
        dns = "{}:{}".format(*NAMES)
        into = self.folder / name
        options = ["--into", str(into), "--scope", "any", "--delay", "0", "--per-host", "8", "--dns", dns]
        way = Way([target.origin for target in expected])
        heard_before = len(self.heard)
        way.code, way.said = await self.lycosa(name, "crawl", *words, *options, *leave, "--images", "-q", until=until)
        way.heard = sorted(set(self.heard[heard_before:]))
        started = self._said(name).with_suffix(".started")
        way.started = [json.loads(line) for line in started.read_text().splitlines()] if started.exists() else []
        with open_to_read(into) as collection:
            way.refused = [host.host for host in hosts(collection) if host.gave_up == "address-refused"]
        return way

    async def lycosa(self, name: str, *words: str, until: Until | None = None) -> tuple[int, str]:
        """Runs the command; returns its exit code and what it said."""
        said = self._said(name)
        said.unlink(missing_ok=True)
        reader, writer = await asyncio.open_unix_connection(self._socket)
        writer.write(json.dumps([str(said), words]).encode() + b"\n")
        pid = int(await reader.readline())
        ended = asyncio.ensure_future(reader.readline())
        if until is not None:
            self.tasks.append(asyncio.create_task(_interrupt(pid, ended, until)))
        await asyncio.wait([ended], timeout=TIMEOUT_S)
        if not ended.done():
            os.kill(pid, signal.SIGKILL)
        code = int(await ended)
        writer.close()
        return code, said.read_text()

    def _said(self, name: str) -> Path:
        return self.folder / f"{name}.said"

    def listed(self, name: str, targets: list[Target]) -> str:
        path = self.folder / f"{name}.txt"
        path.write_text("".join(f"{target.url}\n" for target in targets))
        return str(path)


def close_the_world() -> None:
    """Bring `lo` up in this namespace and make all addresses local to it; refuse to go on if there is a way out."""
    up = subprocess.run(["ip", "-o", "link", "show", "up"], check=True, capture_output=True, text=True).stdout
    if any(": lo:" not in line for line in up.splitlines()):
        raise SystemExit("more than lo is up here: run this under unshare --net")
    for words in ("link set lo up", "route add local 0.0.0.0/0 dev lo", "-6 route add local ::/0 dev lo"):
        subprocess.run(["ip", *words.split()], check=True)
