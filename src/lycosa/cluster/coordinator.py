"""The coordinator (M1, H2, Y1): who is a member, who owns what, whether a limit is reached, whether the crawl is over.

It is told by beats and answers with orders; it never asks. What has to survive it is in one small file, replaced whole:
members, epoch, and the last incarnation given. Everything else it hears again within a beat of each agent. Knows
nothing of Ray.
"""

import os
import time
import uuid
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

import msgspec
from msgspec.structs import replace

from lycosa import __version__
from lycosa.cluster.address_turns import HOLD_S, AddressTurns
from lycosa.cluster.allowance import Allowance
from lycosa.cluster.assignment import Scheme, Table, table
from lycosa.cluster.members import Member
from lycosa.cluster.quiet import Quiet
from lycosa.cluster.reports import Enrolment, Orders, Report
from lycosa.engine.limits import limits_of
from lycosa.engine.stats import CrawlStats
from lycosa.engine.totals import joined
from lycosa.errors import ClusterError, SettingsError, StoreError
from lycosa.settings import CrawlSettings
from lycosa.store.joined import SHARDED, SHARDS

FILE = SHARDED


class Kept(msgspec.Struct):
    """What survives the coordinator. `number` is the last given to a member, `incarnation` the last of a start."""

    epoch: int = 0
    number: int = 0
    incarnation: int = 0
    scheme: Scheme = Scheme.RENDEZVOUS
    members: list[Member] = []
    after: list[Member] = []  # the members once a move is over; empty: nothing moves
    leaving: list[str] = []  # have handed over what they had, and may still have URLs to send
    widened: list[str] = []
    identity: str = ""  # by which a central store knows its collection
    moved: dict[str, int] = {}  # how often a shard has moved to another machine


class Coordinator:
    """The coordinator of the collection at `folder`."""

    def __init__(
        self, folder: Path, settings: CrawlSettings, *, now: Callable[[], float] = time.monotonic, seconds: float = 0.0
    ) -> None:
        self.folder, self.settings, self._now = folder, settings, now
        self._kept = load(folder)
        self._table: Table | None = None
        self._next: Table | None = None
        self._reports: dict[str, Report] = {}
        self._heard: dict[str, float] = {}
        self._incarnations: dict[str, int] = {}
        self._quiet = Quiet()
        self._allowance = Allowance(settings.pages) if settings.pages is not None else None
        self._told_widened: dict[str, int] = {}
        self._began, self._seconds_before = now(), seconds
        self._boot = uuid.uuid4().hex
        self._turns = AddressTurns(hears_until=now() + HOLD_S)  # others may hold addresses from before
        self.is_over = False
        self.stopping = ""

    def __repr__(self) -> str:
        return f"<Coordinator {self.folder} epoch={self._kept.epoch} members={len(self._kept.members)}>"

    # members

    @property
    def names(self) -> list[str]:
        """All who have to be there: members, those to be, and those on their way out."""
        both = {member.name: None for member in (*self._kept.members, *self._kept.after)}
        return [*both, *(name for name in self._kept.leaving if name not in both)]

    @property
    def moving(self) -> Table | None:
        """The table that will be in force once every bucket that moves has arrived."""
        if not self._kept.after:
            return None
        if self._next is None or self._next.epoch != self._kept.epoch + 1:
            self._next = table(self._kept.epoch + 1, self._kept.after, self._kept.scheme)
        return self._next

    def join(self, addresses: Iterable[str]) -> list[str]:
        """New members, one at each address; returns their names. Only their share of the buckets moves."""
        self._require_calm()
        new = []
        for address in addresses:
            self._kept.number += 1
            new.append(Member(f"s{self._kept.number - 1}", self._kept.number, address=address))
        self._kept.after = [*self._kept.members, *new]
        self._keep()
        return [member.name for member in new]

    def resize(self, count: int) -> None:
        """As many members as wanted, once what is moving has arrived: new ones join, or the youngest leave."""
        members = self._kept.after or self._kept.members
        if len(members) == count:
            return
        if count > len(members):
            self.join([""] * (count - len(members)))
        else:
            self.leave([member.name for member in members[count:]])

    def leave(self, names: Collection[str]) -> None:
        """Members hand over what they have and end."""
        self._require_calm()
        stay = [member for member in self._kept.members if member.name not in names]
        if len(stay) + len(names) != len(self._kept.members) or not stay:
            raise SettingsError(f"cannot take {', '.join(names)} out of {', '.join(self.names)}")
        self._kept.after = stay
        self._keep()

    @property
    def is_calm(self) -> bool:
        """Nothing moves, and nobody is on the way out."""
        return not self._kept.after and not self._kept.leaving

    def _require_calm(self) -> None:
        if not self.is_calm:
            raise ClusterError("hosts are moving already: try again when they have arrived")
        if self._kept.scheme is not Scheme.RENDEZVOUS:
            raise SettingsError(f"{self._kept.scheme} moves nearly every host when members change: use rendezvous")

    def _go_on_moving(self) -> None:
        """Once everything has arrived the new table is in force."""
        if not self._kept.after:
            return
        wanted = self._kept.epoch + 1
        round = self._arrived()
        if round and all(self._reports[name].settled == round for name in self._settled_by):
            stay = {member.name for member in self._kept.after}
            self._kept.leaving = [member.name for member in self._kept.members if member.name not in stay]
            self._kept.members, self._kept.after, self._kept.epoch = self._kept.after, [], wanted
            self._quiet.forget()
            self._keep()

    def _arrived(self) -> tuple[int, int] | None:
        """The next epoch and the round, if everything that moves has arrived everywhere. Where shards can come back
        from copies, it must have been handed over to those that run now."""
        epoch, round = self._kept.epoch + 1, self._kept.incarnation if self.is_restorable else 0
        known = [self._reports[name] for name in self.names if name in self._reports]
        is_there = len(known) == len(self.names) and all((r.shipped, r.round) == (epoch, round) for r in known)
        return (epoch, round) if is_there else None

    @property
    def is_restorable(self) -> bool:
        """Is there a copy of every shard elsewhere?"""
        return bool(self.settings.store) and self.settings.checkpoint_s is not None

    @property
    def _settled_by(self) -> list[str]:
        """Those whose copies must have what came to them before others forget it."""
        return [member.name for member in self._kept.after] if self.is_restorable else []

    def identity(self) -> str:
        """The name of the collection, for ever."""
        if not self._kept.identity:
            self._kept.identity = uuid.uuid4().hex
            self._keep()
        return self._kept.identity

    def gone_s(self, name: str) -> float:
        """Seconds for which a member has certainly not been heard, by this coordinator or the one before."""
        return self._now() - max(self._began, self._heard.get(name, 0.0))

    def rehome(self, name: str, address: str) -> None:
        """A member's machine is gone: from now on it lives at another address."""
        for members in (self._kept.members, self._kept.after):
            members[:] = [replace(one, address=address) if one.name == name else one for one in members]
        self._kept.moved[name] = self._kept.moved.get(name, 0) + 1
        self._keep()

    def _is_out(self, report: Report) -> bool:
        """May a member that leaves end now? It has nothing left, and all it sent has arrived."""
        return report.name in self._kept.leaving and report.epoch == self._kept.epoch and report.is_idle

    def address(self, name: str) -> str:
        """The machine that has a member's files; empty: any."""
        both = (*self._kept.members, *self._kept.after)
        return next((member.address for member in both if member.name == name), "")

    @property
    def table(self) -> Table:
        if self._table is None or self._table.epoch != self._kept.epoch:
            self._table = table(self._kept.epoch, self._kept.members, self._kept.scheme)
        return self._table

    def found(self, addresses: Iterable[str], *, scheme: Scheme = Scheme.RENDEZVOUS) -> None:
        """Makes the first members of a collection that has none, one at each address; empty: wherever there is room."""
        for number, address in enumerate(addresses):
            self._kept.number += 1
            self._kept.members.append(Member(f"s{number}", self._kept.number, address=address))
        self._kept.scheme, self._kept.epoch = scheme, self._kept.epoch + 1
        self._keep()

    def enrol(self, name: str) -> Enrolment:
        """A member starts: it gets an incarnation that nobody had before, and everyone hears of it."""
        self._kept.incarnation += 1
        self._incarnations[name] = self._kept.incarnation
        self._keep()
        self._quiet.forget()
        self._heard[name] = self._now()
        folder = str(self.folder / SHARDS / name)
        number = int(name.removeprefix("s")) + 1
        known = dict(self._incarnations)
        kept, moved = self._kept, self._kept.moved.get(name, 0)
        return Enrolment(
            name, kept.incarnation, self.table, self.settings, folder, known, number, __version__, self.moving, moved
        )

    def silent_s(self, name: str) -> float:
        """Seconds since a member was started or heard last; for ever if it never was."""
        return self._now() - self._heard.get(name, float("-inf"))

    # beats

    def beat(self, report: Report) -> Orders:
        """An agent tells of itself and hears what is in force."""
        name, known = report.name, self._incarnations.setdefault(report.name, report.incarnation)
        if report.incarnation != known or name not in self.names:
            return Orders(is_void=True)
        self._heard[name] = self._now()
        self._reports[name] = report
        if report.widened:
            self._widen(report.widened)
        mark = (report.incarnation, report.activity) if report.is_idle else None
        if not report.ended:
            self._quiet.heard(name, mark, self.names)
        self._go_on_moving()
        self._judge()
        if report.ended and name in self._kept.leaving:
            self._kept.leaving.remove(name)
            self._keep()
        granted, wanted = self._addresses(report)
        return Orders(
            boot=self._boot,
            granted=granted,
            wanted=wanted,
            table=self.table if report.epoch < self._kept.epoch else None,
            moving=self.moving,
            stop=self.stopping or ("left" if self._is_out(report) else ""),
            is_over=self.is_over,
            cap=self._cap(report),
            widened=self._news_of_scope(name, report.incarnation),
            members=dict(self._incarnations),
            given=self._kept.incarnation,
            settle=self._arrived() or (0, 0) if self._kept.after and self.is_restorable else (0, 0),
        )

    def _addresses(self, report: Report) -> tuple[dict[str, float], tuple[str, ...]]:
        """Whose turn it is at which address."""
        turns, name, now = self._turns, report.name, self._now()
        if report.boot != self._boot:
            for address in report.holds:
                turns.held(name, address, now)
        if self._reports.keys() >= set(self.names):
            turns.hears_until = 0.0  # everyone has said what it holds
        for address in report.returns:
            turns.give_back(name, address)
        granted = {address: held for address in report.wants if (held := turns.ask(name, address, now))}
        return granted, tuple(address for address in granted if turns.is_wanted(name, address, now))

    def _cap(self, report: Report) -> int | None:
        if self._allowance is None:
            return None
        return self._allowance.beat(
            report.name, used=report.pages, cap=report.cap, wants=not report.is_idle, members=self.names
        )

    def _judge(self) -> None:
        """Is a limit reached, or everything done?"""
        self.is_over = self.is_over or (self.is_calm and self._quiet.is_quiet(self.names))
        if self.stopping or self.is_over:
            return
        s, reports = self.settings, self._reports.values()
        if s.pages is not None and sum(report.stats.pages for report in reports) >= s.pages:
            self.stopping = "pages"
        elif s.bytes is not None and sum(report.stats.bytes for report in reports) >= s.bytes:
            self.stopping = "bytes"
        elif (time_s := limits_of(s, None, self._seconds_before).time_s) is not None and self.seconds() >= time_s:
            self.stopping = "time"

    def _widen(self, hrefs: Iterable[str]) -> None:
        new = [href for href in hrefs if href not in self._kept.widened]
        if new:
            self._kept.widened += new
            self._keep()

    def _news_of_scope(self, name: str, incarnation: int) -> tuple[str, ...]:
        """What became part of the scope since this start of the agent was told last."""
        key = f"{name}/{incarnation}"
        told = self._told_widened.get(key, 0)
        self._told_widened[key] = len(self._kept.widened)
        return tuple(self._kept.widened[told:])

    def stop(self, reason: str) -> None:
        """Ends the crawl gently, with the next beat of everyone."""
        self.stopping = self.stopping or reason

    def seconds(self) -> float:
        """Seconds that the collection has been crawled for, this run included."""
        return self._seconds_before + self._now() - self._began

    def stats(self) -> CrawlStats:
        """The whole crawl, as far as it was told."""
        return joined([report.stats for report in self._reports.values()], seconds=self.seconds())

    def reports(self) -> list[Report]:
        return [self._reports[name] for name in self.names if name in self._reports]

    @property
    def has_ended(self) -> bool:
        """Has every member said that it came to its end?"""
        return bool(self._reports) and all(name in self._reports and self._reports[name].ended for name in self.names)

    def _keep(self) -> None:
        save(self.folder, self._kept)


def load(folder: Path) -> Kept:
    """What an earlier coordinator kept, or nothing yet."""
    try:
        return msgspec.json.decode((folder / FILE).read_bytes(), type=Kept)
    except FileNotFoundError:
        return Kept()
    except (OSError, msgspec.DecodeError) as error:
        raise StoreError(f"{folder / FILE} cannot be read: {error}") from error


def save(folder: Path, kept: Kept) -> None:
    """Replaces the file as a whole; it is on the disk when this returns, since no incarnation may be given twice."""
    new = folder / f"{FILE}.new"
    try:
        with new.open("wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(kept)))
            file.flush()
            os.fsync(file.fileno())
        new.replace(folder / FILE)
    except OSError as error:
        raise StoreError(f"{folder / FILE} cannot be written: {error.strerror}") from error
