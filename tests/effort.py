"""Work that must not blow up, measured in a unit that a slow machine makes longer, too.

A unit is the processor time that a fixed piece of work takes in this process right before: Python code, compression and
fresh memory, since what is measured is made of these. It is some 8 ms on a machine of 2024. Limits are ten times what
is usual or more; what they are to catch takes a hundred times that. How quick something is, benchmarks tell.
"""

import gc
import sys
import zlib
from collections.abc import Callable
from time import process_time
from types import FrameType
from typing import TypeVar

Result = TypeVar("Result")

TRIES = 3  # another process can slow this one down, but not three times in a row by so much


def bounded(call: Callable[[], Result], *, units: float) -> Result:
    """What the call returns; AssertionError if it takes more work than `units` each time that it is tried."""
    spent = []
    for _ in range(TRIES):
        unit_s = min(cpu_s(_unit)[0] for _ in range(3))
        spent_s, result = cpu_s(call)
        spent.append(spent_s / unit_s)
        if spent[-1] <= units:
            return result
    raise AssertionError(f"took {min(spent):,.0f} units of work at best, {units:,.0f} are allowed")


def cpu_s(call: Callable[[], Result]) -> tuple[float, Result]:
    """The processor time of a call in seconds, and what it returned."""
    gc.collect()  # what other tests left behind is not part of it, and is not looked through meanwhile
    gc.freeze()
    try:
        began_s = process_time()
        result = call()
        return process_time() - began_s, result
    finally:
        gc.unfreeze()


def python_calls(call: Callable[[], object]) -> int:
    """How many Python functions are called, `call` among them: a count, the same on every machine."""
    count = 0

    def on_event(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(on_event)
    try:
        call()
    finally:
        sys.setprofile(None)
    return count


def _unit() -> None:
    total = 0
    for number in range(50_000):
        total += number & 7
    zlib.crc32(zlib.compress(bytes(1 << 19) + b"".join(b"%d" % number for number in range(10_000))))
