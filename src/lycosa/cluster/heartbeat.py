"""Heartbeats: what an agent reports twice a second, the orders it gets in return, and the pause between two.

Called by `Agent` on one side and `Coordinator.beat` on the other.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any

import msgspec

from lycosa.cluster.assignment import AssignmentTable
from lycosa.crawl.stats import CrawlStats
from lycosa.settings import CrawlSettings


class Enrolment(msgspec.Struct, frozen=True):
    """What an agent is started with. `incarnation` was never given before. `settings` are those of the whole crawl.
    `generation` is how often the shard has moved to another machine."""

    name: str
    incarnation: int
    table: AssignmentTable
    settings: CrawlSettings
    folder: str
    members: dict[str, int] = {}
    number: int = 0
    version: str = ""
    moving: AssignmentTable | None = None
    generation: int = 0


class AgentReport(msgspec.Struct, frozen=True, kw_only=True):
    """An agent's beat. `activity` is a number that moves with everything it does; `cap` is up to which page it may go.
    `widened` are URLs whose hosts it made part of the scope. Of addresses it says which it holds (to a coordinator that
    does not know yet), which it wants or goes on with, and which it gives back. Of the central store: bytes that it
    brought there, archive files it has yet to bring, the epoch and round for which a copy of all that moved counts,
    and what is wrong with it. `round` is the last incarnation that it knew of when it began to hand over what it has
    `shipped`."""

    name: str
    incarnation: int
    epoch: int
    stats: CrawlStats
    is_idle: bool = False
    waits_long: bool = False  # nothing can be done for very long, and all it sent has arrived
    activity: int = 0
    pages: int = 0
    cap: int = 0
    widened: tuple[str, ...] = ()
    ended: str = ""
    shipped: int = 0
    boot: str = ""
    holds: tuple[str, ...] = ()
    wants: tuple[str, ...] = ()
    returns: tuple[str, ...] = ()
    sent_urls: int = 0
    sent_bytes: int = 0
    sent_messages: int = 0
    is_resting: bool = False  # nothing to do of its own; what it sent may still be under way
    unix: float = 0.0
    machine: str = ""
    homes: dict[int, str] = {}  # addresses of buckets, as `cluster.locality` has it
    carrying: int = 0  # the epoch for which it hands over what leaves
    stored_bytes: int = 0
    unstored: int = 0
    round: int = 0
    settled: tuple[int, int] = (0, 0)
    trouble: str = ""


class AgentOrders(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a beat. `is_void`: another incarnation has taken this one's place, or the member is not known.
    `table` is there when the agent's is old; `cap` is None where the crawl has no limit of pages; `members` has every
    member's incarnation. `boot` names the coordinator's own start. Addresses in `granted` may be asked for so many
    seconds from when the report was made; for those in `awaited` others wait: back with them once the turn is over.
    `settle`: everything for this epoch has arrived, in this round, and a copy of it is wanted. `given` is the last
    incarnation that anyone got; `seconds` is how long the collection has been crawled for."""

    is_void: bool = False
    table: AssignmentTable | None = None
    moving: AssignmentTable | None = None
    stop: str = ""
    is_over: bool = False
    cap: int | None = None
    widened: tuple[str, ...] = ()
    members: dict[str, int] = {}
    boot: str = ""
    granted: dict[str, float] = {}
    awaited: dict[str, bool] = {}
    settle: tuple[int, int] = (0, 0)
    given: int = 0
    seconds: float = 0.0


HEARTBEAT_S = 0.5
QUICK_S, SOONEST_S = 0.1, 0.05  # while somebody waits for an address; and before the first word of one
FULL_PACE_AGENTS = (
    400  # so many agents may beat at this pace; more beat more slowly, and nobody's lease suffers below 10,000
)
QUICK_PACE_AGENTS = 50  # the same for quick beats


class Heartbeat:
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
        soonest_s = SOONEST_S * max(1.0, agents / QUICK_PACE_AGENTS)
        rest_s = (
            QUICK_S * max(1.0, agents / QUICK_PACE_AGENTS)
            if is_quick
            else HEARTBEAT_S * max(1.0, agents / FULL_PACE_AGENTS)
        )
        await asyncio.sleep(soonest_s)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._hurry.wait(), max(0.0, rest_s - soonest_s))


async def cancel_and_wait(tasks: Sequence["asyncio.Task[Any]"]) -> None:
    """Ends tasks and waits until they have ended."""
    for task in tasks:
        task.cancel()
    for task in tasks:
        with contextlib.suppress(asyncio.CancelledError):
            await task
