"""How far a crawl is: what the limits of the user leave, counts and pace, slow hosts, retries, and why it stands still.

`LimitChecker` knows the limits on a crawl as a whole: pages, bytes, time, and visits of a recrawl. They count over the
collection, not the run; the time of `--keep-fresh` and of a recrawl is that of the run. The loop asks before every
request and a few times a second. `ProgressReporter` reads what the other parts hold and changes nothing; the progress
view asks it four times a second, and every commit does. `waits_long` decides when a crawl ends because all that is
queued has to wait for long.
"""

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import nlargest, nsmallest
from itertools import islice
from operator import itemgetter
from pathlib import Path

import msgspec

from lycosa.crawl.committer import CommitParticipant
from lycosa.crawl.seams import AnswerConverter, Fetch, OtherShards, Shard
from lycosa.crawl.stats import (
    FETCHING_SHOWN,
    MOMENT,
    PAUSED,
    RETRIES_SHOWN,
    SLOWEST_SHOWN,
    Counters,
    CrawlStats,
    InFlight,
    Retry,
    SlowHost,
)
from lycosa.crawl.timeline import TIMELINE, Sample, load_timeline
from lycosa.fetch import describe_next_try
from lycosa.frontier import Frontier, Host, HostPlace, delay_of
from lycosa.records import Failure, Family
from lycosa.settings import CrawlSettings
from lycosa.store import Batch
from lycosa.wording import clock, duration


class Recrawl(msgspec.Struct, frozen=True, kw_only=True):
    """Look at pages again. `budget` is in visits a day, `most` ends it after so many visits, `time_s` after so long;
    `everything`: whether it is due or not; `urls`: these and no others. `only_due`: what was never asked for is left
    to the crawl, as it is wherever something is queued."""

    budget: float | None = None
    most: int | None = None
    everything: bool = False
    urls: tuple[str, ...] = ()
    time_s: float | None = None
    only_due: bool = False


class LimitUse(msgspec.Struct, frozen=True):
    """How much of the limit that is nearest is used up, from 0 to 1, and the seconds until one ends the crawl at the
    pace so far; None without a limit, or a pace."""

    share: float | None = None
    left_s: float | None = None

    @classmethod
    def of(
        cls, limits: CrawlSettings, *, pages: int, size_bytes: int, seconds: float, run_pages: int, run_s: float
    ) -> "LimitUse":
        """That of a crawl which has come so far, `run_pages` of it in this run."""
        counted = ((limits.pages, pages), (limits.bytes, size_bytes), (limits.time_s, seconds))
        share = max((min(had / most, 1.0) for most, had in counted if most is not None), default=None)
        guesses = [] if limits.time_s is None else [limits.time_s - seconds]
        if limits.pages is not None and run_pages:
            guesses.append((limits.pages - pages) * run_s / run_pages)
        return cls(share, max(0.0, min(guesses)) if guesses else None)


class LimitChecker:
    """Tells what the limits of the user still allow. `now` is the monotonic clock, by which this run `began`; `visits`
    are the most that it makes."""

    def __init__(
        self,
        settings: CrawlSettings,
        counters: Counters,
        began: float,
        frontier: Frontier,
        now: Callable[[], float],
        *,
        visits: int | None = None,
        other_shards: OtherShards | None = None,
    ) -> None:
        self._settings, self._counters, self._began, self._other_shards = settings, counters, began, other_shards
        self._frontier, self._now = frontier, now
        self.converter: AnswerConverter | None = None
        self._counts_visits = visits is not None
        # Where there are other shards the visits of all of them count.
        self._last_visit = None if visits is None or other_shards is not None else counters.totals.visits + visits
        self._seconds_before = counters.totals.seconds
        self._use_of_all = LimitUse()

    def _run_s(self) -> float:
        return self._now() - self._began

    def seconds(self) -> float:
        """Seconds that this collection has been crawled for, this run included."""
        return self._seconds_before + self._run_s()

    def heard(self, seconds: float, use: LimitUse) -> None:
        """The crawl of which this is a shard has gone on for so long, from before this shard was started, and has used
        so much of its limits."""
        self._use_of_all = use
        self._seconds_before = max(self._seconds_before, seconds - self._run_s())

    def reached(self, in_flight: int = 0) -> str:
        """The name of the limit that is reached, or nothing."""
        s, t = self._settings, self._counters.totals
        has_pages = s.pages is not None and t.pages >= s.pages
        if self._frontier.holds_pages or has_pages:
            self._hold_pages(in_flight)
        if has_pages and not self._frontier.counts.requisites:
            return "pages"
        if s.bytes is not None and t.bytes >= s.bytes:
            return "bytes"
        if s.time_s is not None and self.seconds() >= s.time_s:
            return "time"
        return "visits" if self._visits_left() == 0 else ""

    def _visits_left(self) -> int | None:
        """The visits that may still be made; None where as many may be made as are queued."""
        left = None if self._last_visit is None else max(0, self._last_visit - self._counters.totals.visits)
        return left if left is not None and self._frontier.counts.revisiting > left else None

    def has_room(self, in_flight: int) -> bool:
        """May one more be asked for beside those in flight?"""
        s = self._settings
        if in_flight - (self.converter.waiting if self.converter is not None else 0) >= s.transfers:
            return False
        may_ask = self._may_ask(in_flight)
        if not may_ask and not self._frontier.holds_pages:
            self._hold_pages(in_flight)
        if self._frontier.holds_pages:
            return self._other_shards is None or self._other_shards.may_ask(-1)
        if not may_ask:
            return False
        visits_left = self._visits_left()
        return visits_left is None or in_flight < visits_left

    def _hold_pages(self, in_flight: int) -> None:
        """Where no page may be asked for, what pages need to be shown still is: those that are there, or those that a
        browser renders."""
        self._frontier.hold_pages(self._frontier.counts.requisites > 0 and not self._may_ask(in_flight), self._now())

    def _may_ask(self, in_flight: int) -> bool:
        """May one more page be asked for, beside those in flight?"""
        if self.converter is not None and self.converter.is_full:
            return False
        most, t = self._settings.pages, self._counters.totals
        pages = (t.visits if self._counts_visits else t.pages) + in_flight
        if self._other_shards is not None and not self._other_shards.may_ask(pages):
            return False
        return most is None or pages < most

    def use(self) -> LimitUse:
        """How much of the limits is used up; where there are other shards, of those of the whole crawl."""
        if self._other_shards is not None:
            return self._use_of_all
        counters, totals = self._counters, self._counters.totals
        return LimitUse.of(
            self._settings,
            pages=totals.pages,
            size_bytes=totals.bytes,
            seconds=self.seconds(),
            run_pages=counters.run_pages,
            run_s=self._run_s(),
        )


def effective_limits(settings: CrawlSettings, recrawl: Recrawl | None, seconds_before: float) -> CrawlSettings:
    """The settings whose limits count: a recrawl has its own, by which alone it is bounded. What keeps fresh goes on
    for ever, so its time is that of this run: an earlier one has used none of it."""
    if recrawl is None:
        if not settings.keep_fresh or settings.time_s is None:
            return settings
        return settings.replace(time_s=seconds_before + settings.time_s)
    time_s = None if recrawl.time_s is None else seconds_before + recrawl.time_s
    return settings.replace(pages=None, bytes=None, time_s=time_s)


HOSTS_CONSIDERED = 10_000
BUSY_CORES = 0.9  # from here on the one thread that crawls has little time left
WAITING_SHARE = 0.6  # of the hosts with work: most of them are in the same state
SLOW_ANSWER_S = 0.25
_AT_WORK = (HostPlace.READY, HostPlace.WAITING, HostPlace.BUSY)
WAITING = "waiting"  # what ends a crawl when all that is queued has to wait for long
LONG_WAIT_S = 900.0  # the table's own waits are shorter: only a host that asks for it waits for longer
ROBOTS = "robots.txt: "  # before the reason, where a host waits for its rules
_SAID = {
    Failure.DNS: "cannot be looked up",
    Failure.CONNECT: "takes no connections",
    Failure.CONNECT_TIMEOUT: "takes no connections",
    Failure.TLS: "has no certificate that can be trusted",
    Failure.RESET: "breaks off",
    Failure.PROTOCOL: "does not speak HTTP",
    Failure.FIRST_BYTE_TIMEOUT: "does not answer",
    "429": "asks for patience",
    "503": "asks for patience",
    "login": "waits for a login",
}


def standstill_reason(frontier: Frontier, now: float, now_unix: float, *, in_flight: int, is_over: bool = False) -> str:
    """Empty while requests are under way or nothing is left to wait for. `is_over`: nobody waits any more; the hosts
    are named that the next run will leave alone at first."""
    if in_flight or frontier.counts.queued <= 0:
        return ""
    at = frontier.scheduler.next_wake() or now
    hosts = list(frontier.hosts.values())[:HOSTS_CONSIDERED]
    after = [host for host in hosts if host.place is HostPlace.PARKED]
    if is_over:
        return _left_alone([host for host in after if host.row.wait_until > now_unix], now_unix)
    waiting = sum(host.place is HostPlace.WAITING and not _waits_for_retry(host) for host in hosts)
    again = [host for host in hosts if host.place is HostPlace.WAITING and _waits_for_retry(host)]
    names = sum(host.place is HostPlace.NAME for host in hosts)
    wait_s = max(1, round(at - now))
    soon = f"in {wait_s} s" if wait_s < 60 else f"in {duration(wait_s)}"
    if len(after) == 1 and not waiting and not names and not again:
        return f"{_alone(after[0])}; trying again {soon} (Ctrl-C to stop)"
    if len(again) == 1 and not waiting and not names and not after and (entry := again[0].retries.next):
        others = f", and {again[0].row.retries - 1:,} more after it" if again[0].row.retries > 1 else ""
        again_when = f"{describe_next_try(entry.tries, entry.failed)} {soon}{others}"
        return f"{again[0].origin}{entry.path}: {again_when} (Ctrl-C to stop)"
    parts = []
    if waiting:
        parts.append(f"{waiting} {_hosts(waiting)} between two requests")
    if names:
        parts.append(f"{names} {_hosts(names)} being looked up")
    if again:
        urls = sum(host.row.retries for host in again)
        parts.append(f"{urls:,} {'URL that is' if urls == 1 else 'URLs that are'} to be tried again")
    parts += _reasons(after)
    if not parts:
        return ""
    until = f" until {clock(now_unix + at - now, now_unix=now_unix)}" if at > now else ""
    return f"waiting{until}: {', '.join(parts)}"


def _waits_for_retry(host: Host) -> bool:
    """Does a host have nothing but URLs that have failed and wait for another try?"""
    return host.waits_for_due and host.row.retries > 0


def waits_long(frontier: Frontier, now: float, now_unix: float) -> bool:
    """Is something queued, and is all of it at hosts that are left alone for longer than `LONG_WAIT_S`?"""
    scheduler, at_least = frontier.scheduler, now_unix + LONG_WAIT_S
    at = scheduler.next_wake()
    if frontier.counts.queued <= 0 or at is None or at - now <= LONG_WAIT_S:
        return False
    if any(scheduler.places[place] for place in HostPlace if place not in (HostPlace.IDLE, HostPlace.PARKED)):
        return False
    parked = [host.row for host in frontier.hosts.values() if host.place is HostPlace.PARKED]
    if any(row.wait_until <= at_least for row in parked):  # a Crawl-delay, which would be as long in the next run
        return False
    return sum(row.queued - row.revisits for row in parked) >= frontier.counts.queued  # nobody else is on disk


def pace_words(hosts: Sequence[Host], *, in_flight: int, transfers: int, cores: float) -> str:
    """What sets the pace of a crawl that moves: this machine, the limit of requests, politeness, or the hosts. Empty
    where nothing stands out, as at the beginning of a crawl."""
    at_work = [host for host in hosts if host.row.queued and host.place in _AT_WORK and not _waits_for_retry(host)]
    if in_flight >= transfers:
        return f"{in_flight:,} requests at a time: this is the limit that the setting transfers allows"
    if cores >= BUSY_CORES:
        return f"{cores:.1f} processor cores are busy: this is as fast as one process crawls on this machine"
    if not at_work:
        return ""
    first, count = at_work[0], len(at_work)
    waiting = sum(host.place is HostPlace.WAITING for host in at_work)
    if first.delay_s > 0 and (count == 1 or waiting >= WAITING_SHARE * count):
        if count == 1:
            return "" if first.slots.limit > 1 else _one_host(first)
        return f"{count:,} hosts at one request {_often(first.delay_s)} each: this is as fast as politeness allows"
    asked = [host.row.seconds / host.row.requests for host in at_work if host.row.requests]
    mean_s = sum(asked) / len(asked) if asked else 0.0
    busy = sum(host.place is HostPlace.BUSY for host in at_work)
    if mean_s >= SLOW_ANSWER_S and busy >= WAITING_SHARE * count:
        which = f"{count:,} hosts take" if count > 1 else f"{first.host} takes"
        return f"{which} {duration(mean_s)} to answer: this is as fast as they answer"
    return ""


def _one_host(host: Host) -> str:
    asked = host.row.robots is not None and bool(host.row.robots.crawl_delay_s)
    why = "its robots.txt asks for this pace" if asked else "this is as fast as politeness allows"
    return f"one request {_often(host.delay_s)} to {host.host}: {why}"


def _often(pause_s: float) -> str:
    pause = f"{delay_of(pause_s):.2g}"
    return "a second" if pause == "1" else f"every {pause} s"


def _left_alone(hosts: Sequence[Host], now_unix: float) -> str:
    if not hosts:
        return ""
    first = min(hosts, key=lambda host: host.row.wait_until)
    until = f"until {clock(first.row.wait_until, now_unix=now_unix)}"
    if len(hosts) == 1:
        return f"{_alone(first)}; it is left alone {until}"
    return f"{len(hosts):,} hosts are left alone, {first.origin} {until}: {', '.join(_reasons(hosts))}"


def _reasons(hosts: Sequence[Host]) -> list[str]:
    reasons = Counter(host.row.wait_reason for host in hosts)
    return [f"{count} {_hosts(count)} after {reason}" for reason, count in reasons.most_common(3)]


def _alone(host: Host) -> str:
    reason = host.row.wait_reason.removeprefix(ROBOTS)
    return f"{host.origin} {_SAID.get(reason, f'cannot be asked ({reason})')}"


def _hosts(count: int) -> str:
    return "host" if count == 1 else "hosts"


MOMENT_EVERY_S = 1.0
HOSTS_SAMPLED = 5_000  # for the slowest ones and for retries, four times a second


class ProgressReporter(CommitParticipant):
    """Reports how one shard is doing, to views and with its commits; `began` is when this run did. `is_paused` is set
    while somebody has paused the crawl."""

    def __init__(self, shard: Shard, limits: LimitChecker, in_flight: Mapping[int, Fetch], *, began: float) -> None:
        self._shard, self._limits, self._in_flight, self._began = shard, limits, in_flight, began
        self._next_moment = self._next_sample = began
        self._timeline = load_timeline(shard.collection.state)
        self._has_begun = False
        self._cpu_s, self._cpu_at, self._cores = time.process_time(), time.monotonic(), 0.0
        self.is_paused = False

    def stats(self, *, is_over: bool = False) -> CrawlStats:
        """The crawl at this moment, or at its end."""
        in_flight = len(self._in_flight)
        shard, now, use = self._shard, self._shard.now(), self._limits.use()
        hosts = list(islice(shard.frontier.hosts.values(), HOSTS_SAMPLED))
        retrying, retries = retries_of(hosts, now)
        return shard.counters.stats(
            shard.frontier.stats(),
            seconds=self._limits.seconds(),
            run_s=max(now - self._began, 1e-9),
            is_running=not is_over,
            is_paused=self.is_paused and not is_over,
            in_flight=in_flight,
            memory_bytes=0 if is_over else memory_bytes(),
            cores=0.0 if is_over else self._busy_cores(),
            slowest=slowest(hosts),
            retrying=retrying,
            retries=retries,
            fetching=tuple(self._fetching()),
            left_s=use.left_s,
            limit_share=use.share,
            pace="" if is_over else self._pace(hosts, in_flight),
            standing=standstill_reason(shard.frontier, now, shard.now_unix(), in_flight=in_flight, is_over=is_over),
        )

    def _pace(self, hosts: Sequence[Host], in_flight: int) -> str:
        if self.is_paused:
            return f"{PAUSED}it continues when it is resumed"
        if failure := self._shard.committer.failure:
            return f"{PAUSED}{failure}; it is tried again every second"
        return pace_words(hosts, in_flight=in_flight, transfers=self._shard.settings.transfers, cores=self._cores)

    def _busy_cores(self) -> float:
        """The processor time that this process takes in a second, over the last second or so."""
        cpu_s, at = time.process_time(), time.monotonic()
        if at - self._cpu_at >= MOMENT_EVERY_S:
            self._cores = (cpu_s - self._cpu_s) / (at - self._cpu_at)
            self._cpu_s, self._cpu_at = cpu_s, at
        return self._cores

    def _fetching(self) -> Iterator[InFlight]:
        offset = self._shard.now_unix() - self._shard.now()
        for fetch in islice(self._in_flight.values(), FETCHING_SHOWN):
            yield InFlight(fetch.lease.url, fetch.started_s + offset)

    def before_commit(self, batch: Batch, *, is_last: bool) -> None:
        """Every commit keeps the counts. Once a second it keeps all of it, for whoever asks from outside; the last one
        takes that away."""
        self.write_counts(batch)
        now = self._shard.now()
        if is_last:
            batch.delete(Family.META, MOMENT)
        elif now >= self._next_moment:
            self._next_moment = now + MOMENT_EVERY_S
            batch.put(Family.META, MOMENT, msgspec.json.encode(self.stats()))
        if is_last or now >= self._next_sample:
            self._timeline.add(self._sample())
            self._next_sample = now + self._timeline.interval_s
            batch.put(Family.META, TIMELINE, self._timeline.pack())

    def _sample(self) -> Sample:
        shard, totals = self._shard, self._shard.counters.totals
        frontier, begins, self._has_begun = shard.frontier.stats(), not self._has_begun, True
        return Sample(
            at_unix=round(shard.now_unix(), 3),
            begins=begins,
            pages=totals.pages,
            bytes=totals.bytes,
            requests=totals.requests,
            failed=sum(totals.failed.values()),
            known=frontier.known,
            queued=frontier.queued,
            hosts=frontier.hosts,
            hosts_active=frontier.active,
            in_flight=len(self._in_flight),
            memory_bytes=memory_bytes(),
            archive_bytes=folder_bytes(shard.collection.warc.folder),
        )

    def write_counts(self, batch: Batch) -> None:
        """Puts the counts of the collection into a commit."""
        batch.put(*self._shard.counters.row(self._shard.frontier.stats(), seconds=self._limits.seconds()))


def retries_of(hosts: Sequence[Host], now: float) -> tuple[int, tuple[Retry, ...]]:
    """How many URLs wait for another try, and the next of them; of very many hosts, the first ones stand for all."""
    failed = [host for host in hosts if host.row.retries and not host.row.gave_up]
    due = [
        (max(lane.at - now, 0.0), host.origin, entry)
        for host in failed
        if (entry := next(iter((lane := host.retries).ready), lane.next)) is not None
    ]
    first = nsmallest(RETRIES_SHOWN, due, key=itemgetter(0))
    return sum(host.retries_left for host in failed), tuple(
        Retry(origin + entry.path, entry.tries, entry.failed, in_s) for in_s, origin, entry in first
    )


def slowest(hosts: Sequence[Host]) -> tuple[SlowHost, ...]:
    """The slowest of the hosts that still have work; of very many, the first ones stand for all."""
    busy = (h for h in hosts if h.row.requests and h.row.queued and not h.row.gave_up)
    asked = [(h.row.seconds / h.row.requests, h.host, h.row.queued) for h in busy]
    return tuple(SlowHost(name, mean_s, queued) for mean_s, name, queued in nlargest(SLOWEST_SHOWN, asked))


def memory_bytes() -> int:
    """The resident memory of this process."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):  # another system than Linux
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def folder_bytes(folder: Path) -> int:
    """The bytes of the files in a folder."""
    try:
        return sum(entry.stat().st_size for entry in os.scandir(folder) if entry.is_file())
    except OSError:  # it is gone, or a file of it is, at this moment
        return 0
