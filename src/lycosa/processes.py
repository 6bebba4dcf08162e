"""Processes: helpers of this one, each `main()` of a module in a Python of its own, and the memory of this one."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

_SOURCE = str(Path(__file__).parents[1])
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8  # glibc's malloc.h
LARGE_BLOCK_BYTES = 512 << 10  # below RocksDB's 1 MB blocks, above the buffers that come and go with every page
HEAP_SPARE_BYTES = 4 << 20
TRIM_PAUSE_TIMES = 50


def start_helper(module: str, *words: str | Path, has_pipes: bool = True) -> "subprocess.Popen[bytes]":
    """Runs `main()` of a module with `words` as its arguments; with `has_pipes` its standard input and output are
    pipes. It gets no Ctrl-C from the terminal, and should end by itself when its input does."""
    known = os.environ.get("PYTHONPATH")
    stream = subprocess.PIPE if has_pipes else subprocess.DEVNULL
    return subprocess.Popen(
        # -P: what lies in the current folder is no module of ours
        [sys.executable, "-P", "-c", f"from {module} import main; main()", *map(str, words)],
        env={**os.environ, "PYTHONPATH": f"{_SOURCE}{os.pathsep}{known}" if known else _SOURCE},
        stdin=stream,
        stdout=stream,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def on_end(end: Callable[[], None]) -> None:
    """`end` is called in the running loop when this process is told to end: by Ctrl-C, SIGTERM, or because its terminal
    is closed, unless it is to live on then (`nohup`)."""
    import asyncio  # lazy: helpers have no loop, and should start fast

    loop = asyncio.get_running_loop()
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signum != signal.SIGHUP or signal.getsignal(signum) is not signal.SIG_IGN:
            with contextlib.suppress(ValueError, RuntimeError):  # not in the main thread
                loop.add_signal_handler(signum, end)


def return_large_blocks() -> None:
    """Large blocks, such as those of memtables, go back to the kernel when they are freed. By itself glibc soon keeps
    blocks of up to 32 MB on its heap, where small ones settle in the gaps and hold them (docs/decisions/0007). Threads
    that begin from now on share that heap, since each would keep what was freed on one of its own; they are few, and
    most of what they ask for comes from small caches that each has."""
    with contextlib.suppress(OSError, AttributeError):  # not glibc: nothing to tune
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(M_MMAP_THRESHOLD, LARGE_BLOCK_BYTES)
        mallopt(M_TRIM_THRESHOLD, HEAP_SPARE_BYTES)
        mallopt(M_ARENA_MAX, 1)


class FreeMemory:
    """Gives back to the kernel what lies free on the heap between blocks in use, which a document of many megabytes
    leaves a lot of. That looks at the whole heap, a millisecond or, of hundreds of megabytes, some fifty: it is done
    again after fifty times as long."""

    def __init__(self) -> None:
        self._not_before_s = 0.0

    def give_back(self) -> None:
        began_s = time.monotonic()
        if began_s < self._not_before_s:
            return
        with contextlib.suppress(OSError, AttributeError):  # not glibc
            ctypes.CDLL(None).malloc_trim(0)
        ended_s = time.monotonic()
        self._not_before_s = ended_s + (ended_s - began_s) * TRIM_PAUSE_TIMES
