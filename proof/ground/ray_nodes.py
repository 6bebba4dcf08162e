"""A cluster of two Ray nodes on this machine and a simulated web on loopback, for `faults` and `elastic`.

For a line that is cut the second node is in a network namespace (root only), with the same web on its own loopback.
Nodes and crawls are the project's own commands.
"""

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from lycosa.simweb import LoggedRequest, SimSettings, SimWeb, read_log, truth_of
from proof.ground.commands import descendants, lycosa, scratch
from proof.ground.servers import free_port, simulated_web

HEAD, JOINED = "127.0.0.1", "127.0.0.2"
NAMESPACE, LINE, HEAD_APART, JOINED_APART = "lycosa-faults", "lycosa0", "10.213.7.1", "10.213.7.2"
NOT_PAGES = ("robots.txt", ".xml", ".gz")
JOINS_S = 60.0
SIZES = "uniform"  # all hosts have work until the end


class RayNodes:
    """What runs, and where. `hosts` and `pages` are those of the web, each host with an address of its own."""

    def __init__(self, folder: Path, hosts: int, pages: int, *, is_apart: bool = False) -> None:
        self.folder, self.hosts, self.pages, self.port_of_head = folder, hosts, pages, 0
        self.head_address, self.address = (HEAD_APART, JOINED_APART) if is_apart else (HEAD, JOINED)
        self.inside = ["ip", "netns", "exec", NAMESPACE] if is_apart else []
        self.at = ""
        self.into, self.said, self.nodes_said = folder / "crawl", folder / "said", folder / "nodes-said"
        self.port = self.dns_port = 0
        self._undo = contextlib.ExitStack()
        self.head: subprocess.Popen[bytes]
        self.joined: subprocess.Popen[bytes]

    # what runs

    def open(self) -> None:
        self.port, self.dns_port = self._web(self.folder / "log", [])
        if self.inside:
            self._undo.enter_context(_namespace())
            self._web(self.folder / "log-apart", self.inside)
        self.start_head()
        self.start_joined()

    def close(self) -> None:
        self._undo.close()

    def _web(self, log: Path, inside: list[str]) -> tuple[int, int]:
        shape = {"hosts": self.hosts, "pages": self.pages, "addresses": self.hosts, "sizes": SIZES}
        words = [word for name, value in shape.items() for word in (f"--{name}", str(value))]
        ports = {"port": self.port, "dns_port": self.dns_port}
        web = self._undo.enter_context(simulated_web(log, *words, **ports, inside=inside))
        return web.port, web.dns_port

    def _cluster(self, *words: str | Path) -> list[str | Path]:
        return lycosa("cluster", "--token-file", self.folder / "token", *words)

    def start_head(self) -> None:
        """A head at a port that nobody uses: several of these may run at a time."""
        self.port_of_head = free_port()
        self.at = f"{self.head_address}:{self.port_of_head}"
        where = ["--address", self.head_address, "--port", str(self.port_of_head), "--processors", "1"]
        self.head = self._node([], self._cluster("start", "--head", *where))
        _wait_for(self.head_address, self.port_of_head)

    def move_head(self) -> None:
        """Another head; at another port, since Ray refuses one at which a node of this machine believes it to be."""
        self.start_head()
        while not self.nodes():
            time.sleep(0.5)

    def start_joined(self, environment: Mapping[str, str] | None = None) -> None:
        where = ["--join", self.at, "--address", self.address, "--processors", "1"]
        self.joined = self._node(self.inside, self._cluster("start", *where), environment)
        deadline = time.monotonic() + JOINS_S
        while self.address not in self.nodes() and time.monotonic() < deadline:
            time.sleep(0.5)

    def _node(
        self, inside: list[str], command: list[str | Path], environment: Mapping[str, str] | None = None
    ) -> "subprocess.Popen[bytes]":
        with self.nodes_said.open("ab") as said:
            node = subprocess.Popen([*inside, *command], stderr=said, env={**os.environ, **(environment or {})})
        self._undo.callback(_end, node)
        return node

    def nodes(self) -> list[str]:
        """The machines that are alive."""
        ran = subprocess.run(
            self._cluster("--at", self.at, "status", "--json"), capture_output=True, check=False, timeout=60
        )
        found = msgspec.json.decode(ran.stdout)["nodes"] if ran.returncode == 0 else []
        return [node["address"] for node in found if node["is_alive"]]

    def order(self, *words: str) -> int:
        """A command to the crawl that runs, such as grow."""
        return subprocess.run(self._cluster("--at", self.at, *words), check=False).returncode

    def crawl(self, delay_s: float, *more: str, workers: int = 2, is_shared: bool = True) -> "subprocess.Popen[bytes]":
        """What it says goes to `said`."""
        words = ["crawl", self.seed, "--into", str(self.into), "--scope", "any", "--delay", str(delay_s)]
        words += ["--dns", f"127.0.0.1:{self.dns_port}", "--allow-private", "127.0.0.0/8", "--quiet"]
        words += ["--workers", str(workers), *more]
        command = self._cluster("--at", self.at, *(["--shared"] if is_shared else []), *words)
        with self.said.open("ab") as said:
            return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said)

    # what is known of it

    @property
    def store(self) -> Path:
        return self.folder / "store"

    @property
    def seed(self) -> str:
        return f"http://h0.sim:{self.port}/"

    @property
    def logs(self) -> list[Path]:
        return [log for log in (self.folder / "log", self.folder / "log-apart") if log.exists()]

    def logged(self) -> int:
        return sum(log.read_bytes().count(b"\n") for log in self.logs)

    def entries(self) -> list[LoggedRequest]:
        return [entry for log in self.logs for entry in read_log(log)[1]]

    def web(self) -> SimWeb:
        return SimWeb(
            SimSettings(hosts=self.hosts, pages=self.pages, addresses=self.hosts, sizes=SIZES, port=self.port)
        )

    def truth(self) -> set[str]:
        """Hosts and paths of all pages there are to find."""
        pages = truth_of(self.web(), [self.seed], scope="any", mine="ancestors").pages
        return {url.partition("//")[2].replace(f":{self.port}", "", 1) for url in pages}

    def holder(self, shard: str) -> int:
        """The process that writes a shard."""
        return int((self.into / "shards" / shard / "lycosa.lock").read_text())

    def shards_of_joined(self) -> list[str]:
        mine = descendants(self.joined.pid)
        return [shard for shard in ("s0", "s1") if self.holder(shard) in mine]


@contextlib.contextmanager
def two_nodes(hosts: int, pages: int, *, is_apart: bool = False) -> Iterator[RayNodes]:
    with scratch() as folder:
        on = RayNodes(folder, hosts, pages, is_apart=is_apart)
        try:
            on.open()
            yield on
        finally:
            on.close()


def kill_descendants(pid: int) -> None:
    """A process and all below it, at once."""
    for each in descendants(pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)


@contextlib.contextmanager
def _namespace() -> Iterator[None]:
    """A network namespace with one line to it; needs root."""
    lines = [
        f"netns add {NAMESPACE}",
        f"link add {LINE} type veth peer name {LINE}-in netns {NAMESPACE}",
        f"addr add {HEAD_APART}/30 dev {LINE}",
        f"link set {LINE} up",
        f"-n {NAMESPACE} addr add {JOINED_APART}/30 dev {LINE}-in",
        f"-n {NAMESPACE} link set {LINE}-in up",
        f"-n {NAMESPACE} link set lo up",
    ]
    try:
        for line in lines:
            subprocess.run(["ip", *line.split()], check=True)
        yield
    finally:
        subprocess.run(["ip", "netns", "del", NAMESPACE], check=False)


def _wait_for(address: str, port: int) -> None:
    deadline = time.monotonic() + JOINS_S
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            socket.create_connection((address, port), timeout=1).close()
            return
        time.sleep(0.2)


def _end(process: "subprocess.Popen[bytes] | subprocess.Popen[str]") -> None:
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=20)
        return
    kill_descendants(process.pid)
