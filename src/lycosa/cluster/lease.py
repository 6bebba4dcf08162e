"""An agent's lease: without a beat that was answered lately it asks nobody, someone else may own its hosts by then.

A process that was frozen finds its lease void when it wakes and closes its transfers before it touches a socket again.
"""

import asyncio
from collections.abc import Callable

from lycosa.engine.engine import Engine
from lycosa.errors import ClusterError

LEASE_S = 14.0  # less than an address is held for
CUT_OFF_S = 10.0  # without a lease for so long an agent ends, and its files are free
LOOK_S = 0.25


class Lease:
    """The lease of one agent. It begins with one."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._until = now() + LEASE_S

    def __repr__(self) -> str:
        return f"<Lease {self._until - self._now():.1f} s left>"

    @property
    def is_valid(self) -> bool:
        return self._now() < self._until

    def renew(self, asked: float) -> None:
        """A beat that was made at `asked` was answered."""
        self._until = asked + LEASE_S

    def make_void(self) -> None:
        self._until = 0.0

    def begin_late(self) -> None:
        """To open the shard may have taken long: how long one is cut off counts from now."""
        self._until = max(self._until, self._now())

    def fence(self, engine: Engine) -> bool:
        """Asked before every action on a socket: is the lease void? Then all of them are closed."""
        if self.is_valid:
            return False
        engine.downloader.cancel_all()
        return True

    async def watch(self, engine: Engine, shard: str) -> None:
        """Who is not heard any more closes its transfers in time, and ends if that lasts: others may have its shard."""
        while True:
            await asyncio.sleep(LOOK_S)
            self.fence(engine)
            if self._now() > self._until + CUT_OFF_S:
                engine.fail(ClusterError(f"shard {shard} is cut off from the coordinator"))
