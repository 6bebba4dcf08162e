"""Running a command and knowing what it took; what the kernel says of a process.

CPU time is that of the process and its children, user and system, as the kernel counts it: on a busy machine it moves
by a few per cent where the clock moves by half, so benchmarks show both.
"""

import compileall
import contextlib
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import lycosa as lycosa_package
from lycosa.errors import LycosaError

TICKS = os.sysconf("SC_CLK_TCK")
END_S = 20.0


class CommandUsage(NamedTuple):
    """What a command took and said."""

    wall_s: float
    cpu_s: float
    peak_mb: float
    out: str


def run_command(
    command: Sequence[str | Path], *, cwd: Path | None = None, watch: Callable[[int], None] | None = None, may: int = 0
) -> CommandUsage:
    """Runs a command to its end; `watch(pid)` is called about once a second. Exit code `may` is fine, too."""
    began = time.monotonic()
    process = subprocess.Popen([str(word) for word in command], cwd=cwd, stdout=subprocess.PIPE, text=True)
    try:
        out = _read(process, watch)
        _, status, usage = os.wait4(process.pid, 0)
    except BaseException:
        _end(process)
        raise
    wall_s = time.monotonic() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, may):
        raise LycosaError(f"{' '.join(map(str, command))} ended with {process.returncode}")
    return CommandUsage(wall_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, out)


def _end(process: "subprocess.Popen[str]") -> None:
    """Ends it, and waits until it has let go of its files."""
    process.terminate()
    try:
        process.wait(END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def ending_with_us(signal_name: str) -> list[str]:
    """What to put before a command that shall not outlive this process, not even its `kill -9`."""
    return ["setpriv", "--pdeathsig", signal_name]


def _read(process: "subprocess.Popen[str]", watch: Callable[[int], None] | None) -> str:
    """Standard output to its end."""
    assert process.stdout is not None
    if watch is None:
        return process.stdout.read()
    while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
        watch(process.pid)
        time.sleep(1.0)
    return process.stdout.read()


@cache
def _compiled() -> bool:
    """Bytecode beside the sources, as pip leaves it; where Python may not write it each start would compile anew."""
    return bool(compileall.compile_dir(Path(lycosa_package.__file__).parent, quiet=1))


def lycosa(*words: str | Path) -> list[str | Path]:
    """The crawler's command line."""
    _compiled()
    return [sys.executable, "-m", "lycosa", *words]


@contextlib.contextmanager
def scratch(beside: Path | None = None) -> Iterator[Path]:
    """A folder that is gone with the block; on the file system of `beside`, where that matters."""
    with tempfile.TemporaryDirectory(prefix="lycosa-proof-", dir=beside) as name:
        yield Path(name)


# what the kernel says


def own_cpu_s() -> float:
    """CPU seconds of this process so far."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def cpu_s(pid: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def memory_mb(pid: int | str = "self", *, peak: bool = False) -> float:
    """The resident set of a process, or the largest it ever was; 0 when it has ended."""
    wanted = "VmHWM:" if peak else "VmRSS:"
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith(wanted)), 0.0)


def descendants(root: int) -> list[int]:
    """The process and all below it."""
    found, known = [root], {root}
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, ValueError):
                continue
            children.setdefault(parent, []).append(int(entry.name))
    for pid in found:
        new = [child for child in children.get(pid, []) if child not in known]
        known.update(new)
        found += new
    return found


def best_us(work: Callable[[], object], count: int, *, rounds: int = 5) -> float:
    """CPU microseconds for each of `count` things that `work` does: the best of some rounds."""
    best = float("inf")
    for _ in range(rounds):
        started_s = time.process_time()
        work()
        best = min(best, time.process_time() - started_s)
    return best / count * 1e6
