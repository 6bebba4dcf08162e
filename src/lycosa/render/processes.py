"""The processes of browsers: how they are started, found, measured and ended.

Used on both sides: `render.browser_link` ends the process that drives browsers, `render.browser` the browsers.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any


class BrowserLoop(asyncio.SelectorEventLoop):
    """The event loop on which drivers run; `driver` is the last one that was started."""

    def __init__(self) -> None:
        super().__init__()
        self.driver: asyncio.SubprocessTransport | None = None

    async def subprocess_exec(self, *arguments: Any, **options: Any) -> Any:
        started = await super().subprocess_exec(*arguments, **options)
        self.driver = started[0]
        return started


def pid_with(mark: str) -> int:
    """The process that was started with a mark in its command line; 0 where there is none, or that cannot be known."""
    found = [pid for pid in _processes() if mark.encode() in read_process(pid, "cmdline")]
    parents = {pid: _parent(pid) for pid in found}
    return next((pid for pid in found if parents[pid] not in parents), 0)


def descendants(pid: int) -> list[int]:
    """The processes that a process has started, and theirs."""
    children: dict[int, list[int]] = {}
    for process in _processes():
        children.setdefault(_parent(process), []).append(process)
    found, rest = list[int](), [pid]
    while rest:
        some = children.get(rest.pop(), [])
        found += some
        rest += some
    return found


def resident_bytes(pid: int) -> int:
    """The memory of a process and its descendants that no other file backs."""
    if not pid:
        return 0
    total = 0
    for process in [pid, *descendants(pid)]:
        fields = read_process(process, "statm").split()
        total += (int(fields[1]) - int(fields[2])) * os.sysconf("SC_PAGE_SIZE") if len(fields) > 2 else 0
    return total


def kill_tree(pid: int) -> None:
    """Ends a process and its descendants at once."""
    for process in [*descendants(pid), pid]:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process, signal.SIGKILL)


def read_process(pid: int, name: str) -> bytes:
    """A file of a process; empty where it is gone."""
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def _processes() -> Sequence[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdecimal()]  # noqa: PTH208 - names are enough
    except OSError:  # another system
        return []


def _parent(pid: int) -> int:
    fields = read_process(pid, "stat").rpartition(b")")[2].split()
    return int(fields[1]) if len(fields) > 1 else 0
