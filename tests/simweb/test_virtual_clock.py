"""The virtual clock: timers, and callers that plan again for a moment later."""

import asyncio
import math

from lycosa.simweb.memory import run_virtual


def test_virtual_clock_passes_a_moment_that_two_callers_wait_for() -> None:
    """Both look whether a time has come that is one step of a float away, and plan again if it has not."""

    async def main() -> int:
        loop = asyncio.get_running_loop()
        at = math.nextafter(loop.time() + 1.0, math.inf)
        looks, reached = 0, [asyncio.Event(), asyncio.Event()]

        def look(number: int) -> None:
            nonlocal looks
            looks += 1
            if loop.time() >= at or looks > 1000:
                reached[number].set()
            else:
                loop.call_later(at - loop.time(), loop.call_soon, look, number)

        await asyncio.sleep(1.0)
        for number in range(2):
            loop.call_soon(look, number)
            await asyncio.sleep(0)  # they take turns
        await asyncio.gather(*(event.wait() for event in reached))
        return looks

    assert run_virtual(main()) <= 4
