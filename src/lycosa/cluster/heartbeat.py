"""Heartbeats: what an agent reports twice a second, the orders it gets in return, and the pause between two.

Sent by `Agent`, answered by `Coordinator.heartbeat`. Enrolment, report and orders are the whole conversation between an
agent and the coordinator. Agents and coordinator are of the same version, so these records are free to change.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any

import msgspec

from lycosa.cluster.assignment import AssignmentTable
from lycosa.crawl import CrawlStats, LimitUse, Recrawl
from lycosa.settings import CrawlSettings

HEARTBEAT_S = 0.5
QUICK_HEARTBEAT_S = 0.1  # while somebody waits for an address
MIN_PAUSE_S = 0.05  # requests for addresses within so long travel together
# One coordinator answers all of them. Up to so many agents beat at full pace, more of them beat more slowly; below
# 10,000 agents the pause stays shorter than a lease.
FULL_PACE_AGENTS = 400
QUICK_PACE_AGENTS = 50

MoveRound = tuple[int, int]
"""The epoch that hosts move for, and the round: the last incarnation given when the handover began."""
NO_MOVE: MoveRound = (0, 0)


class Enrolment(msgspec.Struct, frozen=True):
    """What an agent is started with. `settings` are those of the whole crawl, `members` everyone's incarnation."""

    name: str
    incarnation: int  # never given before, to anyone
    table: AssignmentTable
    settings: CrawlSettings
    folder: str
    members: dict[str, int] = {}
    number: int = 0
    version: str = ""
    next_table: AssignmentTable | None = None
    generation: int = 0  # how often the shard has moved to another machine
    recrawl: Recrawl | None = None  # its part of one


class AgentReport(msgspec.Struct, frozen=True, kw_only=True):
    """An agent's heartbeat."""

    name: str
    incarnation: int
    epoch: int
    boot: str = ""  # the coordinator's start that it knows of
    stats: CrawlStats
    ended: str = ""
    leftovers: tuple[str, ...] = ()  # when it has ended: sentences about what is left to do

    # whether the crawl is over
    is_idle: bool = False  # nothing to do, and receivers have committed all that it sent
    waits_long: bool = False  # nothing can be done for very long, and receivers have committed all that it sent
    is_resting: bool = False  # nothing to do of its own; rows that it sent may be under way
    activity: int = 0  # a number that changes with everything it does
    pages: int = 0
    cap: int = 0  # the number of pages up to which it may go
    widened: tuple[str, ...] = ()  # URLs whose hosts it made part of the scope

    # addresses
    holds: tuple[str, ...] = ()  # only for a coordinator that does not know
    wants: tuple[str, ...] = ()
    releases: tuple[str, ...] = ()
    bucket_addresses: dict[int, str] = {}  # as `cluster.assignment` has it

    # handover of hosts
    handing_over: int = 0  # the epoch for which it hands over what leaves
    handed_over: int = 0  # the epoch for which it has
    round: int = 0
    backed_up: MoveRound = NO_MOVE  # a checkpoint with all that came in that move counts

    # exchange and central store
    sent_urls: int = 0
    sent_bytes: int = 0
    sent_messages: int = 0
    stored_bytes: int = 0
    unstored: int = 0  # archive files and checkpoints that are still to be uploaded
    trouble: str = ""

    # its machine
    unix: float = 0.0
    machine: str = ""


class AgentOrders(msgspec.Struct, frozen=True, kw_only=True):
    """The coordinator's answer to a heartbeat."""

    is_void: bool = False  # another incarnation has taken this one's place, or the member is not known
    table: AssignmentTable | None = None  # in force, if the agent's is old
    next_table: AssignmentTable | None = None  # hosts move: hand over what leaves
    back_up: MoveRound = NO_MOVE  # everything has arrived: a checkpoint with it is wanted
    last_incarnation: int = 0  # that anyone got
    members: dict[str, int] = {}  # everyone's incarnation
    stop: str = ""
    is_over: bool = False
    cap: int | None = None  # None: the crawl has no limit of pages
    seconds: float = 0.0  # how long the collection has been crawled for
    limits: LimitUse = LimitUse()  # how much of them the whole crawl has used up
    collected: int = 0  # pages that the whole collection has
    widened: tuple[str, ...] = ()
    boot: str = ""  # the coordinator's own start
    granted: dict[str, float] = {}  # addresses, for so many seconds from when the report was sent
    contended: dict[str, bool] = {}  # its addresses for which others wait, and whether its turn there is over


class Heartbeat:
    """The pauses between the heartbeats of one agent: half a second, or less where somebody waits for an address."""

    def __init__(self) -> None:
        self._hurry = asyncio.Event()

    def __repr__(self) -> str:
        return f"<Heartbeat{' in a hurry' if self._hurry.is_set() else ''}>"

    def hurry(self) -> None:
        """Ends the pause: an address is wanted that the coordinator was not asked for."""
        self._hurry.set()

    def begin(self) -> None:
        """A heartbeat begins, and reports all that there is to report now."""
        self._hurry.clear()

    async def pause(self, agents: int, *, is_quick: bool) -> None:
        """Waits until the next heartbeat of one of so many agents is due."""
        slow_down = max(1.0, agents / QUICK_PACE_AGENTS)
        pause_s = QUICK_HEARTBEAT_S * slow_down if is_quick else HEARTBEAT_S * max(1.0, agents / FULL_PACE_AGENTS)
        await asyncio.sleep(MIN_PAUSE_S * slow_down)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._hurry.wait(), max(0.0, pause_s - MIN_PAUSE_S * slow_down))


async def cancel_and_wait(tasks: Sequence["asyncio.Task[Any]"]) -> None:
    """Cancels tasks and waits until they have ended."""
    for task in tasks:
        task.cancel()
    for task in tasks:
        with contextlib.suppress(asyncio.CancelledError):
            await task
