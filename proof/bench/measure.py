"""Running a command and knowing what it took; results in a table, against what they must reach.

CPU time is that of the process and its children, user and system, as the kernel counts it: on a busy machine it moves
by a few per cent where the clock moves by half, so both are shown, with the machine's load.
"""

import compileall
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import lycosa as lycosa_package


class Ran(NamedTuple):
    """What a command took and said."""

    wall_s: float
    cpu_s: float
    peak_mb: float
    out: str


def run(
    command: Sequence[str | Path], *, cwd: Path | None = None, watch: Callable[[int], None] | None = None, may: int = 0
) -> Ran:
    """Runs a command to its end; `watch(pid)` is called about once a second. Exit code `may` is fine too."""
    began = time.monotonic()
    process = subprocess.Popen([str(word) for word in command], cwd=cwd, stdout=subprocess.PIPE, text=True)
    try:
        out = _read(process, watch)
        _, status, usage = os.wait4(process.pid, 0)
    except BaseException:
        process.terminate()
        raise
    wall_s = time.monotonic() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, may):
        sys.exit(f"{' '.join(map(str, command))} ended with {process.returncode}")
    return Ran(wall_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, out)


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


def cpu_s() -> float:
    """CPU seconds of this process so far."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def resident_mb(pid: int) -> float:
    """The resident set of a process; 0 when it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS:")), 0.0)


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def load() -> str:
    """How busy the machine is, for the reader of the figures."""
    return f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns under their heads, the first to the left, the others to the right."""
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    lines = []
    for row in [head, ["-" * width for width in widths], *rows]:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


class Verdict:
    """Gathers what was to be reached; `exit` ends the scenario with 1 if something was not."""

    def __init__(self) -> None:
        self._is_reached = True

    def judge(self, what: str, is_reached: bool) -> None:
        print(f"{'yes' if is_reached else 'NO ':<4}{what}")
        self._is_reached &= is_reached

    def exit(self) -> None:
        sys.exit(0 if self._is_reached else 1)
