"""Was the crawler polite? Read from the server's log, not from what the crawler says of itself.

For every host and every address: the largest overlap of requests and the smallest gap from the end of one to the start
of the next in the same slot; for hosts also the requests that robots.txt forbids, that came before it was known, or
before a Retry-After had passed. With a parallelism of n there are n slots; a request takes the slot that has been free
the longest, so a log breaks the rule only if no assignment to n slots could keep it.
"""

import heapq
import math
import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import msgspec

from lycosa.errors import SettingsError
from lycosa.simweb.log import Entry, read_log
from lycosa.simweb.settings import SimSettings
from lycosa.simweb.web import SimWeb

_DIGITS = re.compile(r"[0-9]{1,9}\Z")
TOLERANCE_S = 0.002  # the server takes a byte's time after it has left: a moment late on a busy machine


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """The politeness that is demanded; the defaults are the crawler's."""

    delay_s: float = 1.0
    per_host: int = 1
    ip_delay_s: float = 0.0
    per_ip: int = 4

    def __post_init__(self) -> None:
        if not (0 <= self.delay_s < math.inf and 0 <= self.ip_delay_s < math.inf):
            raise SettingsError("a delay is a number of seconds and must not be negative")
        if self.per_host < 1 or self.per_ip < 1:
            raise SettingsError("a parallelism must be at least 1")


class Finding(msgspec.Struct, frozen=True):
    """What the log shows of one host or address. `smallest_gap_s` is None where no slot was used twice."""

    name: str
    requests: int
    largest_overlap: int
    smallest_gap_s: float | None
    allowed_overlap: int
    least_gap_s: float
    early: int = 0
    robots: tuple[str, ...] = ()
    before_robots: int = 0
    before_retry_after: int = 0

    @property
    def is_broken(self) -> bool:
        return bool(self.early or self.robots or self.before_robots or self.before_retry_after)


class Audit(msgspec.Struct, frozen=True):
    """The findings of a log."""

    requests: int
    hosts: list[Finding]
    addresses: list[Finding]

    @property
    def is_clean(self) -> bool:
        return not any(finding.is_broken for finding in [*self.hosts, *self.addresses])

    def broken(self) -> list[str]:
        """One sentence for each broken rule."""
        return [sentence for finding in [*self.hosts, *self.addresses] for sentence in _sentences(finding)]


def audit_log(path: Path, rules: Rules) -> Audit:
    """The audit of a log file."""
    settings, entries = read_log(path)
    return audit(settings, entries, rules)


def audit(settings: SimSettings, entries: Iterable[Entry], rules: Rules) -> Audit:
    """The audit of some requests to the web of `settings`."""
    web = SimWeb(settings)
    by_host: dict[str, list[Entry]] = defaultdict(list)
    by_address: dict[str, list[Entry]] = defaultdict(list)
    count = 0
    for entry in entries:
        count += 1
        by_host[entry.host].append(entry)
        by_address[entry.address].append(entry)
    hosts = [_host_finding(web, name, by_host[name], rules) for name in sorted(by_host, key=_number)]
    per_ip = max(rules.per_ip, rules.per_host)
    addresses = [_finding(name, by_address[name], per_ip, rules.ip_delay_s) for name in sorted(by_address, key=_number)]
    return Audit(count, hosts, addresses)


def _number(name: str) -> tuple[int, ...]:
    """For the order of names; whatever a client has sent as one."""
    return tuple(int(part) for part in name.removeprefix("h").split(".") if _DIGITS.match(part))


def _host_finding(web: SimWeb, name: str, entries: list[Entry], rules: Rules) -> Finding:
    number = web.layout.host_number(name)
    if number is None:  # no host of this web: it has no rules of its own
        return _finding(name, entries, rules.per_host, rules.delay_s)
    robots = web.robots.of(number)
    finding = _finding(name, entries, rules.per_host, max(rules.delay_s, robots.crawl_delay_s))
    return msgspec.structs.replace(
        finding,
        robots=tuple(e.path for e in entries if not robots.allows(e.path, e.agent)),
        before_robots=_before_robots(entries),
        before_retry_after=_before_retry_after(entries),
    )


def _finding(name: str, entries: list[Entry], slots: int, delay_s: float) -> Finding:
    entries.sort(key=lambda entry: (entry.start, entry.end))
    free_since: list[float] = []  # one end time a slot in use so far
    open_until: list[float] = []
    largest, early, smallest = 0, 0, float("inf")
    for entry in entries:
        while open_until and open_until[0] <= entry.start:
            heapq.heappop(open_until)
        heapq.heappush(open_until, entry.end)
        largest = max(largest, len(open_until))
        if len(free_since) < slots:
            heapq.heappush(free_since, entry.end)
            continue
        gap = entry.start - heapq.heapreplace(free_since, entry.end)
        smallest = min(smallest, gap)
        early += gap < delay_s - TOLERANCE_S
    gap_s = None if smallest == float("inf") else smallest
    return Finding(name, len(entries), largest, gap_s, slots, delay_s, early)


def _before_robots(entries: list[Entry]) -> int:
    """Requests that started before any answer to robots.txt had ended."""
    known = min((e.end for e in entries if e.path == "/robots.txt" and e.status), default=float("inf"))
    return sum(e.path != "/robots.txt" and e.start < known - TOLERANCE_S for e in entries)


def _before_retry_after(entries: list[Entry]) -> int:
    """Requests that started in the time for which the host had asked to be left alone."""
    closed = sorted((e.end, e.end + e.retry_after_s) for e in entries if e.retry_after_s)
    early, told, until = 0, 0, 0.0
    for entry in sorted(entries, key=lambda entry: entry.start) if closed else ():
        while told < len(closed) and closed[told][0] < entry.start:
            until, told = max(until, closed[told][1]), told + 1
        early += entry.start < until - TOLERANCE_S
    return early


def _sentences(finding: Finding) -> Iterable[str]:
    if finding.early:
        gap = f"the shortest gap {finding.smallest_gap_s:.3f} s" if finding.smallest_gap_s is not None else ""
        yield (
            f"{finding.name}: {finding.early} requests too early ({gap}, allowed {finding.least_gap_s:g} s; "
            f"{finding.largest_overlap} at a time, allowed {finding.allowed_overlap})"
        )
    if finding.robots:
        yield f"{finding.name}: {len(finding.robots)} requests against robots.txt, the first for {finding.robots[0]}"
    if finding.before_robots:
        yield f"{finding.name}: {finding.before_robots} requests before robots.txt was known"
    if finding.before_retry_after:
        yield f"{finding.name}: {finding.before_retry_after} requests before a Retry-After had passed"
