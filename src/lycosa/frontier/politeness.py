"""Politeness decides how long a host waits, and how many requests it gets at a time.

    between two requests       `Politeness.pause_s`: the delay or the host's Crawl-delay, and a margin
    after a start or restart   `ProcessStart.first_at`: one full delay, and what is left of a wait from disk
    after a failure            what `LeaseOutcomes.release` is told, by the retry table (`fetch.retry`, `crawl.pages`)
    for others                 the slots of its address and of its group (`Share`)

`Slots` stand for a host, an address or a group. Invariant: never more than `limit` requests at a time, and a slot is
not used again sooner than the delay after its last request's *end*, as the crawler saw it. The longest of all waits
counts. Pure: takes `now`, never reads a clock.
"""

import heapq
from collections.abc import Sequence
from functools import lru_cache

import msgspec

from lycosa.frontier.rows import HostRow
from lycosa.web import CACHED_HOSTS, Purpose, Robots, domain_of, matches_pattern, pattern_pieces

# A busy server may note the end of an answer a few milliseconds after its last byte has left, and counts from there. So
# a pause is longer than the delay: by more than a process waits for its turn, but at most by this share of the delay.
MARGIN_S, MARGIN_SHARE = 0.01, 0.1
# No wait, and no robots.txt, holds for longer than a day. What on disk holds for two was written by a wrong wall clock.
LONGEST_WAIT_S = 2 * 86_400.0


def believed_wait_s(until_unix: float, now_unix: float) -> float:
    """Return for how long what was written to disk still holds; 0 if it is over, or cannot be true."""
    wait_s = until_unix - now_unix
    return wait_s if 0 < wait_s <= LONGEST_WAIT_S else 0.0


def pause_of(delay_s: float) -> float:
    """Return the pause that keeps a delay by the server's clock, too."""
    return delay_s + min(MARGIN_S, MARGIN_SHARE * delay_s)


def delay_of(pause_s: float) -> float:
    """Return the delay that a pause keeps: what people set and read."""
    return max(pause_s - MARGIN_S, pause_s / (1 + MARGIN_SHARE))


class Share(msgspec.Struct, frozen=True):
    """Slots that several hosts share: of an address, or of a group."""

    name: str
    limit: int
    delay_s: float = 0.0


# Behind many names, and many addresses, there may be one machine: whoever knows that says so.
class HostGroup(msgspec.Struct, frozen=True):
    """Hosts whose names match `pattern` share slots; the pattern `domain` makes a group of every registrable domain."""

    pattern: str
    limit: int = 1
    delay_s: float = 0.0


class Politeness(msgspec.Struct, frozen=True, kw_only=True):
    """The politeness that the settings ask for, the limits that hold for each host, and what the crawl is for."""

    delay_s: float = 1.0
    per_host: int = 1
    ip_delay_s: float = 0.0
    per_ip: int = 4
    groups: tuple[HostGroup, ...] = ()
    pages_per_host: int | None = None
    host_pages: tuple[tuple[str, int], ...] = ()  # patterns of hosts, and the limit that holds there instead
    host_depth: int | None = None
    robots: bool = True
    purpose: Purpose = Purpose.ARCHIVE

    def pause_s(self, robots: Robots | None) -> float:
        """Return the pause between two requests to a host: the delay, or its Crawl-delay if that is longer."""
        return pause_of(max(self.delay_s, (robots and robots.crawl_delay_s) or 0.0))


class PageLimits:
    """Finds how many pages of a host are kept at most, by the first pattern that it matches, or as of every host."""

    def __init__(self, of_all: int | None, patterns: Sequence[tuple[str, int]]) -> None:
        self._of_all, self._patterns = of_all, patterns
        self._matched = lru_cache(CACHED_HOSTS)(self._match)

    def of(self, host: str) -> int | None:
        return self._matched(host) if self._patterns else self._of_all

    def _match(self, host: str) -> int | None:
        for pattern, pages in self._patterns:
            if matches_pattern(pattern_pieces(pattern), host, to_end=True):
                return pages
        return self._of_all


class HostGroups:
    """Finds what a host shares: its address, and its group, the first whose pattern it matches."""

    def __init__(self, politeness: Politeness) -> None:
        # Asked for every lease; patterns are matched once a host.
        self._politeness = politeness
        self.of, self.address = lru_cache(CACHED_HOSTS)(self._of), lru_cache(CACHED_HOSTS)(self._address)

    def _address(self, address: str) -> Share:
        return Share(address, self._politeness.per_ip, self._politeness.ip_delay_s)

    def _of(self, host: str) -> Share | None:
        for group in self._politeness.groups:
            if group.pattern == "domain":
                return Share(f"domain {domain_of(host)}", group.limit, group.delay_s)
            if matches_pattern(pattern_pieces(group.pattern), host, to_end=True):
                return Share(f"group {group.pattern}", group.limit, group.delay_s)
        return None


class Slots:
    """The slots of one host or address. `free_at` has a time for every slot that is not in use, the earliest first.
    None is free before `floor`, those in use now included."""

    __slots__ = ("floor", "free_at", "in_use", "limit")

    def __init__(self, limit: int, *, first_at: float = 0.0) -> None:
        self.limit = limit
        self.in_use = 0
        self.floor = 0.0
        self.free_at = [first_at] * limit

    def __repr__(self) -> str:
        return f"<Slots {self.in_use}/{self.limit} next {self.next_at():.3f}>"

    def next_at(self) -> float:
        """Return when a slot is free; infinity while all are in use."""
        return self.free_at[0] if self.free_at else float("inf")

    def take(self) -> None:
        heapq.heappop(self.free_at)
        self.in_use += 1

    def release_slot(self, free_at: float) -> None:
        # A wait for the whole host that began while this request was in flight holds for its slot, too.
        self.in_use -= 1
        heapq.heappush(self.free_at, max(free_at, self.floor))

    def not_before(self, when: float) -> None:
        """Let no slot be free before `when`: the whole host waits."""
        self.floor = max(self.floor, when)
        self.free_at = [max(time, when) for time in self.free_at]

    def later_by(self, seconds: float) -> None:
        """Lengthen the current pause: it turned out to be longer than thought."""
        self.free_at = [time + seconds for time in self.free_at]


class ProcessStart:
    """When this process began, by both clocks, and whether another one may have asked hosts just before."""

    def __init__(self, now: float, now_unix: float, *, is_restart: bool) -> None:
        self.now, self.now_unix, self.is_restart = now, now_unix, is_restart

    def first_at(self, row: HostRow, delay_s: float) -> float:
        """Return when a host may be asked first."""
        # After a restart every host waits one full delay, known or not: the process before may have asked it a moment
        # ago, and that request is in no commit (decision 4). A wait from disk may lengthen that, never shorten it: the
        # wall clock may have been set back.
        at = self.now + delay_s if self.is_restart or row.requests else 0.0
        if wait_s := believed_wait_s(row.wait_until, self.now_unix):
            at = max(at, self.now + wait_s)
        return at
