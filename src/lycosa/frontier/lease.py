"""What passes over the frontier's counter: a URL given out, the politeness asked for, its counts, and who watches.

Records only. Made by `frontier.frontier` and by the engine, which hands a lease back when its request has ended.
"""

from typing import Protocol

import msgspec

from lycosa.frontier.hosts import Host, RobotsJob
from lycosa.frontier.politeness import Group, Share
from lycosa.frontier.rows import Entry, Kind, Reason
from lycosa.records import Failure


class Lease(msgspec.Struct, frozen=True):
    """A URL given out, with the address to ask. `failure` says that the host has none."""

    host: Host
    kind: Kind
    url: str
    address: str
    entry: Entry | None = None
    job: RobotsJob | None = None
    failure: Failure | None = None
    detail: str = ""
    shares: tuple[Share, ...] = ()
    is_head: bool = False  # only the beginning is asked for
    credit: float | None = None  # what spoke for it, where that was looked up

    @property
    def depth(self) -> int:
        return self.entry.depth if self.entry else 0


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """The politeness that is asked for."""

    delay_s: float = 1.0
    per_host: int = 1
    ip_delay_s: float = 0.0
    per_ip: int = 4
    groups: tuple[Group, ...] = ()
    pages_per_host: int | None = None
    host_depth: int | None = None
    robots: bool = True


class FrontierStats(msgspec.Struct, frozen=True):
    known: int
    queued: int
    hosts: int
    active: int
    waiting: int
    parked: int
    revisiting: int = 0


class Watcher(Protocol):
    """Whoever wants to hear of URLs that are new, and has a say in which are asked for."""

    def queued(self, host: Host, entry: Entry) -> None: ...

    def judge(self, host: Host, entry: Entry, now_unix: float) -> Reason | float | None:
        """Why a URL whose turn has come is not asked for after all, or for how many seconds it waits; None: it goes."""
        ...

    def dropped(self, host: Host, entry: Entry, reason: Reason) -> None: ...

    def puts_last(self, host: Host) -> bool:
        """Has this host had its share, so that others go first?"""
        ...
