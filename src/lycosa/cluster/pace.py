"""How often an agent beats: twice a second, and at once where somebody waits for an address."""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any

BEAT_S = 0.5
QUICK_S, SOONEST_S = 0.1, 0.05  # while somebody waits for an address; and before the first word of one
BEATERS = 400  # so many agents may beat at this pace; more beat more slowly, and nobody's lease suffers below 10,000
QUICK_BEATERS = 50  # the same for quick beats


class Pace:
    """The pauses between the beats of one agent."""

    def __init__(self) -> None:
        self._hurry = asyncio.Event()

    def __repr__(self) -> str:
        return f"<Pace{' in a hurry' if self._hurry.is_set() else ''}>"

    def hurry(self) -> None:
        """An address is wanted that nobody was asked for."""
        self._hurry.set()

    def begin(self) -> None:
        """A beat says all that there is to say now."""
        self._hurry.clear()

    async def rest(self, agents: int, *, is_quick: bool) -> None:
        """Until the next beat of one of so many agents."""
        soonest_s = SOONEST_S * max(1.0, agents / QUICK_BEATERS)
        rest_s = QUICK_S * max(1.0, agents / QUICK_BEATERS) if is_quick else BEAT_S * max(1.0, agents / BEATERS)
        await asyncio.sleep(soonest_s)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._hurry.wait(), max(0.0, rest_s - soonest_s))


async def cancelled(tasks: Sequence["asyncio.Task[Any]"]) -> None:
    """Ends tasks and waits until they have ended."""
    for task in tasks:
        task.cancel()
    for task in tasks:
        with contextlib.suppress(asyncio.CancelledError):
            await task
