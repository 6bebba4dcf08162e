"""One crawl of a small simulated web on a machine that can be made to fail: its disk, its clock, its name server, its
memory, the server. The faults themselves are in `bench/machine.py`; here is what they are made of."""

import os
import random
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from lycosa.simweb import AuditRules, LoggedRequest, SimSettings, SimWeb, audit, read_log, truth_of
from proof.ground.commands import lycosa
from proof.ground.servers import ServedWeb, simulated_web
from tests.crawl.consistency import problems

HOSTS, DELAY_S = 12, 0.02
LONGEST_S = 240.0
NOT_PAGES = ("robots.txt", ".xml", ".gz")
TAIL_BYTES = 20_000
GROUPS = (Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup"))  # where the first two versions of control groups are
LIMITS = ("memory.limit_in_bytes", "memory.max")


class FaultEnd(NamedTuple):
    """How the crawl under a fault ended: its code, what it said, whether that is right."""

    code: int
    said: str
    is_right: bool


class MachineTrial:
    """One crawl of a small web, and the machine under it."""

    def __init__(self, pages: int, folder: Path, stack: ExitStack, ports: tuple[int, int]) -> None:
        self.pages, self.folder, self.stack, self._ports = pages, folder, stack, ports
        self.into, self.said = folder / "disk" / "crawl", folder / "said"
        self.into.parent.mkdir()
        self._logs: list[Path] = []
        self._server = ExitStack()
        self.begin_web()
        self.dns_port = self.web.dns_port

    # the server

    def begin_web(self) -> None:
        self._logs.append(self.folder / f"log{len(self._logs)}")
        shape = ["--hosts", str(HOSTS), "--pages", str(self.pages)]
        port, dns_port = self._ports
        serving = simulated_web(self._logs[-1], *shape, port=port, dns_port=dns_port)
        self.web: ServedWeb = self._server.enter_context(serving)

    def end_web(self) -> None:
        self._server.close()

    # the crawl

    def start(
        self, *more: str, before: Sequence[str] = (), program: Sequence[str | Path] = ()
    ) -> "subprocess.Popen[str]":
        """`before` is a command that runs another, `program` what runs in place of `lycosa`."""
        manners = ["--scope", "any", "--delay", str(DELAY_S), *more]
        web = self.web._replace(dns_port=self.dns_port)
        words: list[str | Path] = ["crawl", web.front_page(), "--into", self.into, *manners, *web.options()]
        return self._begin([*before, *(program or lycosa()), *words])

    def run(self, *words: str | Path) -> "subprocess.Popen[str]":
        """Another command than a crawl."""
        return self._begin(lycosa(*words))

    def _begin(self, command: Sequence[str | Path]) -> "subprocess.Popen[str]":
        with self.said.open("w") as said:
            return subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL, stderr=said, text=True)

    def end(self, process: "subprocess.Popen[str]", codes: Sequence[int], *words: str) -> FaultEnd:
        """Right are one of these codes, these words, and no traceback."""
        try:
            process.wait(timeout=LONGEST_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        said = self.said.read_text(errors="replace").replace(str(self.folder), "")
        is_right = process.returncode in codes and all(word in said for word in words) and "Traceback" not in said
        return FaultEnd(process.returncode, " ".join(said.split())[-300:], is_right)

    def run_until(self, requests: int, *more: str, program: Sequence[str | Path] = ()) -> "subprocess.Popen[str]":
        process = self.start(*more, program=program)
        self.wait(requests, process)
        return process

    def wait(self, requests: int, process: "subprocess.Popen[str]") -> None:
        deadline = time.monotonic() + LONGEST_S
        while self.web.served() < requests and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.1)

    def kill_at(self, requests: int, *more: str, program: Sequence[str | Path] = ()) -> None:
        process = self.run_until(requests, *more, program=program)
        process.kill()
        process.wait()

    def wait_for_words(self, process: "subprocess.Popen[str]", word: str) -> None:
        deadline = time.monotonic() + LONGEST_S
        while process.poll() is None and word not in self.said.read_text() and time.monotonic() < deadline:
            time.sleep(0.1)

    def told(self, end: FaultEnd, event: str) -> FaultEnd:
        """Right only if the crawl's log has this event."""
        log = (self.into / "log.jsonl").read_text(errors="replace")
        return end._replace(is_right=end.is_right and f'"{event}"' in log)

    # the disk

    def small_disk(self, size: str) -> None:
        disk = self.into.parent
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "lycosa-disk", str(disk)], check=True)
        self.stack.callback(subprocess.run, ["umount", "-l", str(disk)], check=False)

    def remount(self, options: str) -> None:
        subprocess.run(["mount", "-o", f"remount,{options}", str(self.into.parent)], check=True)

    def newest(self, folder: str, pattern: str) -> Path:
        """The file that was written last."""
        files = (path for path in (self.into / folder).glob(pattern) if path.is_file())
        return max(files, key=lambda path: (path.stat().st_mtime, path.name))

    def cut_tail(self, path: Path) -> None:
        os.truncate(path, max(0, path.stat().st_size - TAIL_BYTES))

    def flip_bits(self, path: Path, *, count: int = 3) -> None:
        """Turns over some bits of the last part of a file."""
        chance, data = random.Random(path.name), bytearray(path.read_bytes())
        for _ in range(count):
            data[chance.randrange(max(0, len(data) - TAIL_BYTES), len(data))] ^= 1 << chance.randrange(8)
        path.write_bytes(data)

    # what is left

    def entries(self) -> list[LoggedRequest]:
        return [entry for log in self._logs for entry in read_log(log)[1]]

    def missing(self) -> frozenset[str]:
        """The pages of the web that were never fetched."""
        web = SimWeb(SimSettings(hosts=HOSTS, pages=self.pages, port=self.web.port))
        got = {
            f"http://{entry.host}:{self.web.port}{entry.path}"
            for entry in self.entries()
            if entry.status == 200 and not entry.path.endswith(NOT_PAGES)
        }
        return truth_of(web, [self.web.front_page()], scope="any", mine="ancestors").pages - got

    def wrongs(self) -> list[str]:
        """What is wrong with the collection: pages that are not there, impolite requests, promises of the state."""
        settings = SimSettings(hosts=HOSTS, pages=self.pages, port=self.web.port)
        found = [f"{len(missing)} pages are missing"] if (missing := self.missing()) else []
        broken = audit(settings, self.entries(), AuditRules(delay_s=DELAY_S)).broken()
        return found + [str(each) for each in broken[:3]] + problems(self.into)[:3]


@contextmanager
def memory_group() -> Iterator[Path]:
    """A control group of memory; the file for its limit is among `LIMITS`."""
    parent = next(path for path in GROUPS if (path / "cgroup.procs").exists())
    group = parent / f"lycosa-proof-{os.getpid()}"
    group.mkdir()
    try:
        yield group
    finally:
        group.rmdir()


def can_limit_memory() -> bool:
    """May control groups be made here?"""
    try:
        with memory_group() as group:
            return any((group / name).exists() for name in LIMITS)
    except (OSError, StopIteration):
        return False


class NameRelay:
    """A name server that hands questions on to another one. While it `is_dead` it answers those about the first name
    only."""

    def __init__(self, to_port: int) -> None:
        self.is_dead, self.unanswered = False, 0
        self._to, self._first = ("127.0.0.1", to_port), b""
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self._is_over = False
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while not self._is_over:
            if not select.select([self._socket], [], [], 0.2)[0]:
                continue
            question, asker = self._socket.recvfrom(4096)
            name = question[12:].partition(b"\0")[0]
            self._first = self._first or name
            if self.is_dead and name != self._first:
                self.unanswered += 1
                continue
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
                other.settimeout(5)
                other.sendto(question, self._to)
                self._socket.sendto(other.recv(4096), asker)

    def close(self) -> None:
        self._is_over = True
        self._thread.join()
        self._socket.close()


# the wall clock


def wrong_clock(offset: Path) -> list[str | Path]:
    """`lycosa` on a machine whose wall clock is off by as many seconds as the file says at this moment."""
    return [sys.executable, "-m", "proof.ground.machine_trial", offset]


def _run_with_wrong_clock(offset: Path) -> None:
    right = time.time
    time.time = lambda: right() + float(offset.read_text())
    # lazy: it comes after the clock
    from lycosa.cli import main

    main()


if __name__ == "__main__":
    _run_with_wrong_clock(Path(sys.argv.pop(1)))
