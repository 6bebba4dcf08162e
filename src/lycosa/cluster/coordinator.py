"""The coordinator decides who is a member, who owns what, whether a limit is reached and whether the crawl is over.

It hears heartbeats and answers with orders; it never asks. What has to survive it (members, epoch, the last incarnation
given) is kept by `Membership`; everything else it hears again within one heartbeat of each agent. Imports no Ray.
"""

import time
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path

from lycosa.cluster.heartbeat import AgentOrders, AgentReport, Enrolment
from lycosa.cluster.leases import ADDRESS_LEASE_S, AddressLeases
from lycosa.cluster.membership import Membership
from lycosa.cluster.termination import PageQuota, TerminationDetector
from lycosa.crawl.limits import effective_limits
from lycosa.crawl.progress import WAITING
from lycosa.crawl.stats import CrawlStats, sum_of_shards
from lycosa.settings import CrawlSettings
from lycosa.store import SHARDS_FOLDER
from lycosa.version import __version__

MAX_SKEW_S = 30.0  # a beat may be under way for ten


class ClockSkew:
    """Whose clock was complained of, by name and incarnation."""

    def __init__(self) -> None:
        self._told: set[tuple[str, int]] = set()

    def __repr__(self) -> str:
        return f"<Clocks {len(self._told)} told>"

    def warning(self, name: str, incarnation: int, machine: str, *, theirs: float, ours: float) -> str:
        """A sentence for the user, or nothing."""
        ahead_s = theirs - ours
        if not theirs or abs(ahead_s) < MAX_SKEW_S or (name, incarnation) in self._told:
            return ""
        self._told.add((name, incarnation))
        where = "ahead of" if ahead_s > 0 else "behind"
        return (
            f"{name}: the clock of {machine or 'its machine'} is {abs(ahead_s):,.0f} s {where} the coordinator's: "
            "set it, or hosts that move wait too long"
        )


class Coordinator(Membership):
    """The coordinator of the collection at `folder`."""

    def __init__(
        self, folder: Path, settings: CrawlSettings, *, now: Callable[[], float] = time.monotonic, seconds: float = 0.0
    ) -> None:
        super().__init__(folder, settings, now)
        self._reports: dict[str, AgentReport] = {}
        self._heard: dict[str, float] = {}
        self._incarnations: dict[str, int] = {}
        self._quiet, self._clocks = TerminationDetector(), ClockSkew()
        self._warnings: list[str] = []
        self._allowance = PageQuota(settings.pages) if settings.pages is not None else None
        self._told_widened: dict[str, int] = {}
        self._began, self._seconds_before = now(), seconds
        self._boot = uuid.uuid4().hex
        self._told_holds: set[str] = set()  # members that have said what they hold
        self._begun_here: set[str] = set()  # members that began under this coordinator: they hold nothing from before
        self._turns = AddressLeases(hears_until=now() + ADDRESS_LEASE_S)  # others may hold addresses from before
        self.is_over = False
        self.stopping = ""

    def _go_on_moving(self) -> None:
        """Once everything has arrived the new table is in force."""
        if not self._kept.after:
            return
        round = self._arrived()
        if round and all(self._reports[name].settled == round for name in self._settled_by):
            self.put_in_force()
            self._quiet.forget()

    def _knows_moving(self, report: AgentReport) -> bool:
        """Does a member hand over already what is to move, to those that run now?"""
        round = self._kept.incarnation if self.is_restorable else 0
        return (report.carrying, report.round) == (self._kept.epoch + 1, round)

    def _arrived(self) -> tuple[int, int] | None:
        """The next epoch and the round, if everything that moves has arrived everywhere. Where shards can come back
        from copies, it must have been handed over to those that run now."""
        epoch, round = self._kept.epoch + 1, self._kept.incarnation if self.is_restorable else 0
        known = [self._reports[name] for name in self.names if name in self._reports]
        is_there = len(known) == len(self.names) and all((r.shipped, r.round) == (epoch, round) for r in known)
        return (epoch, round) if is_there else None

    @property
    def _settled_by(self) -> list[str]:
        """Those whose copies must have what came to them before others forget it."""
        return [member.name for member in self._kept.after] if self.is_restorable else []

    def gone_s(self, name: str) -> float:
        """Seconds for which a member has certainly not been heard, by this coordinator or the one before."""
        return self._now() - max(self._began, self._heard.get(name, 0.0))

    def _is_out(self, report: AgentReport) -> bool:
        """May a member that leaves end now? It has nothing left, and all it sent has arrived."""
        return report.name in self._kept.leaving and report.epoch == self._kept.epoch and report.is_idle

    def enrol(self, name: str) -> Enrolment:
        """A member starts: it gets an incarnation that nobody had before, and everyone hears of it."""
        self._kept.incarnation += 1
        self._incarnations[name] = self._kept.incarnation
        self._begun_here.add(name)
        self._keep()
        self._quiet.forget()
        self._heard[name] = self._now()
        folder = str(self.folder / SHARDS_FOLDER / name)
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

    def beat(self, report: AgentReport) -> AgentOrders:
        """An agent tells of itself and hears what is in force."""
        name, known = report.name, self._incarnations.setdefault(report.name, report.incarnation)
        if report.incarnation != known or name not in self.names:
            return AgentOrders(is_void=True)
        self._heard[name] = self._now()
        self._reports[name] = report
        self._watch_clock(report)
        if report.widened:
            self._widen(report.widened)
        mark = (report.incarnation, report.activity) if report.is_idle or report.waits_long else None
        if not report.ended:
            self._quiet.heard(name, mark, self.names)
        self._go_on_moving()
        self.settle_homes(report.homes)
        self._judge()
        if report.ended and name in self._kept.leaving:
            self._kept.leaving.remove(name)
            self._keep()
        granted, awaited = self._addresses(report)
        return AgentOrders(
            boot=self._boot,
            granted=granted,
            awaited=awaited,
            table=self.table if report.epoch < self._kept.epoch else None,
            moving=None if self._knows_moving(report) else self.moving,
            stop=self.stopping or ("left" if self._is_out(report) else ""),
            is_over=self.is_over,
            cap=self._cap(report),
            widened=self._news_of_scope(name, report.incarnation),
            members=dict(self._incarnations),
            given=self._kept.incarnation,
            seconds=self.seconds(),
            settle=self._arrived() or (0, 0) if self._kept.after and self.is_restorable else (0, 0),
        )

    def _watch_clock(self, report: AgentReport) -> None:
        warning = self._clocks.warning(
            report.name, report.incarnation, report.machine, theirs=report.unix, ours=time.time()
        )
        self._warnings += [warning] if warning else []

    def take_warnings(self) -> list[str]:
        """What the user should hear of, each once."""
        warnings, self._warnings = self._warnings, []
        return warnings

    def _addresses(self, report: AgentReport) -> tuple[dict[str, float], dict[str, bool]]:
        """Whose turn it is at which address."""
        turns, name, now = self._turns, report.name, self._now()
        if name not in self._told_holds and (report.boot == self._boot or name in self._begun_here):
            self._told_holds.add(name)
            for address in report.holds:
                turns.held(name, address, now)
        if self._told_holds >= set(self.names):
            turns.hears_until = 0.0  # everyone has said what it holds
        for address in report.returns:
            turns.give_back(name, address)
        granted = {address: held for address in report.wants if (held := turns.ask(name, address, now))}
        return granted, turns.awaited(name, now)

    def _cap(self, report: AgentReport) -> int | None:
        if self._allowance is None:
            return None
        return self._allowance.beat(
            report.name, used=report.pages, cap=report.cap, wants=not report.is_idle, members=self.names
        )

    def _judge(self) -> None:
        """Is a limit reached, or everything done?"""
        if self.stopping or self.is_over:
            return
        if self.is_calm and self._quiet.is_quiet(self.names):
            self.is_over = not any(self._reports[name].waits_long for name in self.names)
            self.stopping = "" if self.is_over else WAITING
            return
        s, reports = self.settings, self._reports.values()
        if s.pages is not None and sum(report.stats.pages for report in reports) >= s.pages:
            self.stopping = "pages"
        elif s.bytes is not None and sum(report.stats.bytes for report in reports) >= s.bytes:
            self.stopping = "bytes"
        elif (
            time_s := effective_limits(s, None, self._seconds_before).time_s
        ) is not None and self.seconds() >= time_s:
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
        return sum_of_shards([report.stats for report in self._reports.values()], seconds=self.seconds())

    def reports(self) -> list[AgentReport]:
        return [self._reports[name] for name in self.names if name in self._reports]

    @property
    def has_ended(self) -> bool:
        """Has every member said that it came to its end?"""
        return bool(self._reports) and all(name in self._reports and self._reports[name].ended for name in self.names)
