"""An event loop whose clock does not wait: when nothing is ready it jumps to the next timer.

Code that uses `asyncio.sleep`, `call_later` and `loop.time()` runs unchanged, a simulated hour in milliseconds.
Real sockets and threads still work, but they see no time pass while they are waited for.
"""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, TypeVar, TypeVarTuple

T = TypeVar("T")
Words = TypeVarTuple("Words")
# asyncio calls a timer up to the clock's resolution (1 ns) before its time. On a clock that moves only when nothing is
# ready, two callers that each plan again for "a moment later" would then keep each other ready, and time would stop.
LATER_S = 2e-9
STUCK_S = 10.0  # real seconds without a timer and without an event: nothing will ever happen


class _Selector(selectors.DefaultSelector):
    """Looks at real events without waiting, and lets the time jump instead."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        events: list[tuple[selectors.SelectorKey, int]] = super().select(0 if timeout is not None else STUCK_S)
        if timeout is None and not events:
            raise RuntimeError("the virtual clock stands still: tasks wait for something that has no timer")
        if not events and timeout:
            self.now += timeout
        return events


class VirtualLoop(asyncio.SelectorEventLoop):
    """An asyncio loop on virtual time, starting at 0."""

    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.now

    def call_at(
        self, when: float, callback: Callable[[*Words], object], *args: *Words, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return super().call_at(when + LATER_S, callback, *args, context=context)


def run_virtual(main: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run` on virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
