"""The coordinator decides who is a member, who owns what, whether a limit is reached and whether the crawl is over.

It hears heartbeats and answers with orders; it never asks. What has to survive it (members, epoch, the last incarnation
given) is saved by `Membership`; everything else it hears again within one heartbeat of each agent. Imports no Ray.
"""

import time
import uuid
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from lycosa.cluster.heartbeat import NO_MOVE, AgentOrders, AgentReport, Enrolment, MoveRound
from lycosa.cluster.leases import ADDRESS_LEASE_S, AddressLeases
from lycosa.cluster.membership import Membership
from lycosa.cluster.recrawl import ShardedRecrawl
from lycosa.cluster.termination import PageQuota, TerminationDetector
from lycosa.crawl import WAITING, CrawlStats, LimitUse, effective_limits, sum_of_shards
from lycosa.settings import CrawlSettings
from lycosa.store import SHARDS_FOLDER
from lycosa.version import __version__

# Between the clocks of two machines; a heartbeat may be under way for ten seconds.
MAX_SKEW_S = 30.0


class Coordinator(Membership):
    """The coordinator of the collection at `folder`. `seconds` is how long it was crawled for before, `recrawl` what
    its shards visit if it is not crawled but visited again."""

    def __init__(
        self,
        folder: Path,
        settings: CrawlSettings,
        *,
        now: Callable[[], float] = time.monotonic,
        seconds: float = 0.0,
        recrawl: ShardedRecrawl | None = None,
    ) -> None:
        settings = effective_limits(settings, recrawl.order if recrawl else None, seconds)
        super().__init__(folder, settings, now)
        self._recrawl = recrawl
        self._reports: dict[str, AgentReport] = {}
        self._heard: dict[str, float] = {}  # when each member was started or heard last
        self._incarnations: dict[str, int] = {}
        self._termination = TerminationDetector()
        limit = settings.pages if recrawl is None else recrawl.last_visit
        self._quota = PageQuota(limit) if limit is not None else None
        self._warnings: list[str] = []
        self._skewed: set[tuple[str, int]] = set()  # whose clock the user was told of: names and incarnations
        self._told_widened: dict[tuple[str, int], int] = {}
        self._began, self._seconds_before = now(), seconds
        # An agent that sees another boot knows that this coordinator has not heard what it holds.
        self._boot = uuid.uuid4().hex
        self._told_holds: set[str] = set()  # members that have said which addresses they hold
        # Members started by this coordinator: they hold nothing from before.
        self._started_here: set[str] = set()
        # Agents may hold addresses that the coordinator before this one granted: until every agent has said which, or
        # those leases have ended, nothing new is granted.
        self._addresses = AddressLeases(quiet_until=now() + ADDRESS_LEASE_S)
        self.is_over = False
        self.stopping = ""

    def enrol(self, name: str) -> Enrolment:
        """Starts a member: it gets an incarnation that nobody had before, and everyone hears of it."""
        incarnation = self._incarnations[name] = self.new_incarnation()
        self._started_here.add(name)
        self._termination.reset()
        self._heard[name] = self._now()
        return Enrolment(
            name=name,
            incarnation=incarnation,
            table=self.table,
            settings=self.settings,
            folder=str(self.folder / SHARDS_FOLDER / name),
            members=dict(self._incarnations),
            number=int(name.removeprefix("s")) + 1,
            version=__version__,
            next_table=self.next_table,
            generation=self._state.generations.get(name, 0),
            recrawl=self._recrawl.parts.get(name) if self._recrawl else None,
        )

    def silent_s(self, name: str) -> float:
        """Seconds since a member was started or heard last; infinite if it never was."""
        return self._now() - self._heard.get(name, float("-inf"))

    def gone_s(self, name: str) -> float:
        """Seconds for which a member has certainly not been heard, by this coordinator or the one before."""
        return self._now() - max(self._began, self._heard.get(name, 0.0))

    # heartbeats

    def heartbeat(self, report: AgentReport) -> AgentOrders:
        """An agent reports and hears what is in force."""
        name, known = report.name, self._incarnations.setdefault(report.name, report.incarnation)
        # The agent was taken for dead and lives on, or its member has left: another one has its hosts. A coordinator
        # that was started anew believes the first incarnation that it hears, since only agents of the one before can
        # speak to it.
        if report.incarnation != known or name not in self.names:
            return AgentOrders(is_void=True)
        self._heard[name] = self._now()
        self._reports[name] = report
        self._check_clock(report)
        self.widen_scope(report.widened)
        mark = (report.incarnation, report.activity) if report.is_idle or report.waits_long else None
        # An agent that has ended says nothing of the others.
        if not report.ended:
            self._termination.record(name, mark, self.names)
        self._finish_move()
        self.learn_addresses(report.bucket_addresses)
        self._check_end()
        if report.ended:
            self._warnings += (f"{name}: {left}" for left in report.leftovers)
            self.has_left(name)
        granted, contended = self._lease_addresses(report)
        return AgentOrders(
            boot=self._boot,
            granted=granted,
            contended=contended,
            table=self.table if report.epoch < self._state.epoch else None,
            next_table=None if self._hands_over(report) else self.next_table,
            stop=self.stopping or ("left" if self._may_leave(report) else ""),
            is_over=self.is_over,
            cap=self._page_cap(report),
            widened=self._new_scope(name, report.incarnation),
            members=dict(self._incarnations),
            last_incarnation=self._state.last_incarnation,
            seconds=self.seconds(),
            limits=self._limit_use(),
            collected=sum(one.stats.pages for one in self._reports.values()),
            back_up=self._arrived() or NO_MOVE if self._state.next_members and self.is_restorable else NO_MOVE,
        )

    def _check_clock(self, report: AgentReport) -> None:
        """Names a machine whose clock is far from this one's, once a start. Nothing stops: within a process the
        monotonic clock counts, and a wait that came from another machine may be too long, never too short."""
        # Waits and dates travel with hosts that move, by the wall clock of the machine before.
        ahead_s = report.unix - time.time()
        if not report.unix or abs(ahead_s) < MAX_SKEW_S or (report.name, report.incarnation) in self._skewed:
            return
        self._skewed.add((report.name, report.incarnation))
        where = "ahead of" if ahead_s > 0 else "behind"
        self._warnings.append(
            f"{report.name}: the clock of {report.machine or 'its machine'} is {abs(ahead_s):,.0f} s {where} the "
            "coordinator's: set it, or hosts that move wait too long"
        )

    def take_warnings(self) -> list[str]:
        """What the user should hear of, each once."""
        warnings, self._warnings = self._warnings, []
        return warnings

    def _lease_addresses(self, report: AgentReport) -> tuple[dict[str, float], dict[str, bool]]:
        """Takes releases and requests of addresses; returns what is granted and where others wait."""
        leases, name, now = self._addresses, report.name, self._now()
        if name not in self._told_holds and (report.boot == self._boot or name in self._started_here):
            self._told_holds.add(name)
            for address in report.holds:
                leases.restore(name, address, now)
        if self._told_holds >= set(self.names):
            leases.quiet_until = 0.0
        for address in report.releases:
            leases.release(name, address)
        granted = {address: held for address in report.wants if (held := leases.request(name, address, now))}
        return granted, leases.contended(name, now)

    def _page_cap(self, report: AgentReport) -> int | None:
        if self._quota is None:
            return None
        return self._quota.update(
            report.name, used=report.pages, cap=report.cap, wants=not report.is_idle, members=self.names
        )

    def _new_scope(self, name: str, incarnation: int) -> tuple[str, ...]:
        """What became part of the scope since this start of the agent was told last."""
        told = self._told_widened.get((name, incarnation), 0)
        self._told_widened[name, incarnation] = len(self._state.widened)
        return tuple(self._state.widened[told:])

    # moves of hosts

    @property
    def _round(self) -> int:
        """Where shards can be restored from older copies of themselves, a start of anyone begins a new round of the
        handover: whoever was restored, here or there, has lost a part of it."""
        return self._state.last_incarnation if self.is_restorable else 0

    def _hands_over(self, report: AgentReport) -> bool:
        """Does a member hand over what is to move already, in this round?"""
        return (report.handing_over, report.round) == (self._state.epoch + 1, self._round)

    def _arrived(self) -> MoveRound | None:
        """The move, once everyone has handed over everything that leaves it, in this round."""
        move = self._state.epoch + 1, self._round
        reports = self.reports()
        has_all = len(reports) == len(self.names) and all((r.handed_over, r.round) == move for r in reports)
        return move if has_all else None

    def _finish_move(self) -> None:
        """Puts the next table in force once everything has arrived; where there are checkpoints, once those of the
        receivers have it: only then may the senders forget it."""
        if not self._state.next_members:
            return
        move = self._arrived()
        receivers = [member.name for member in self._state.next_members] if self.is_restorable else []
        if move and all(self._reports[name].backed_up == move for name in receivers):
            self.activate_next_table()
            self._termination.reset()

    def _may_leave(self, report: AgentReport) -> bool:
        """May a member that leaves end now? It has nothing left, and all it sent has arrived."""
        return report.name in self._state.leaving and report.epoch == self._state.epoch and report.is_idle

    # the end

    def _check_end(self) -> None:
        """Is a limit reached, or everything done?"""
        if self.stopping or self.is_over:
            return
        # While hosts move, members may be idle because they have not got theirs yet.
        if self.is_stable and self._termination.has_terminated(self.names):
            self.is_over = not any(self._reports[name].waits_long for name in self.names)
            self.stopping = "" if self.is_over else WAITING
            return
        # Limits count over the whole collection: no agent can see that they are reached.
        s, stats = self.settings, [report.stats for report in self._reports.values()]
        if s.pages is not None and sum(one.pages for one in stats) >= s.pages:
            # What the last pages need to be shown is still fetched.
            self.stopping = "" if any(one.requisites_queued for one in stats) else "pages"
        elif s.bytes is not None and sum(one.bytes for one in stats) >= s.bytes:
            self.stopping = "bytes"
        elif s.time_s is not None and self.seconds() >= s.time_s:
            self.stopping = "time"
        elif self._recrawl is not None and (last := self._recrawl.last_visit) is not None:
            self.stopping = "visits" if sum(one.visits for one in stats) >= last else ""

    def stop(self, reason: str) -> None:
        """Ends the crawl gently, with the next heartbeat of everyone."""
        self.stopping = self.stopping or reason

    @property
    def has_ended(self) -> bool:
        """Has every member reported that it came to its end?"""
        return bool(self._reports) and all(name in self._reports and self._reports[name].ended for name in self.names)

    # what a watcher sees

    def seconds(self) -> float:
        """Seconds that the collection has been crawled for, this run included."""
        return self._seconds_before + self._now() - self._began

    def _limit_use(self) -> LimitUse:
        stats = [report.stats for report in self._reports.values()]
        return LimitUse.of(
            self.settings,
            pages=sum(one.pages for one in stats),
            size_bytes=sum(one.bytes for one in stats),
            seconds=self.seconds(),
            run_pages=sum(one.run_pages for one in stats),
            run_s=self._now() - self._began,
        )

    def stats(self) -> CrawlStats:
        """The whole crawl, as far as it was reported."""
        return sum_of_shards([report.stats for report in self._reports.values()], seconds=self.seconds())

    def leases(self) -> "tuple[Counter[str], Counter[str]]":
        """How many addresses each member holds, and for how many it waits."""
        return self._addresses.count(self._now())

    def moves(self) -> dict[str, str]:
        """What members do while hosts move: join, hand over, have handed over, leave."""
        state, found = self._state, dict.fromkeys(self._state.leaving, "leaves")
        if not state.next_members:
            return found
        now, then = {member.name for member in state.members}, {member.name for member in state.next_members}
        for report in self.reports():
            words = ["joins"] if report.name not in now else ["leaves"] if report.name not in then else []
            if report.handed_over == state.epoch + 1:
                words.append("has handed over")
            elif report.handing_over == state.epoch + 1:
                words.append("hands over")
            found[report.name] = ", ".join(words)
        return found

    def reports(self) -> list[AgentReport]:
        """The last reports of the members that were heard."""
        return [self._reports[name] for name in self.names if name in self._reports]
