"""The log of requests, and the audit that finds rude or disobedient ones in it.

One JSON object a line, settings first. The audit is pure and judges from the log alone, by the rules of
`AuditRules`: delay, robots.txt, one transfer a host. Written by the server, read by tests, experiments and the
command line.
"""

import contextlib
import errno
import heapq
import math
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from lycosa.errors import SettingsError, StoreError
from lycosa.simweb.settings import SimSettings
from lycosa.simweb.web import SimWeb


class LoggedRequest(msgspec.Struct, frozen=True):
    """One request as the server saw it."""

    start: float
    end: float
    host: str
    address: str
    path: str
    status: int
    bytes: int
    agent: str
    method: str = "GET"
    retry_after_s: float = 0.0


class LogHeader(msgspec.Struct, frozen=True):
    """The first line: the settings, from which the audit builds the same web again."""

    simweb: SimSettings
    clock: str = "monotonic"


_encode = msgspec.json.Encoder().encode


class RequestLog:
    """Writes entries to a new file. `path` None keeps nothing. After a failure every flush raises it again."""

    def __init__(self, path: Path | None, settings: SimSettings) -> None:
        self._lines: list[bytes] = []
        self._file: BinaryIO | None = None
        self._failure: StoreError | None = None
        self._size = 0
        self.path, self.requests = path, 0
        if path is not None:
            self._file = _new_file(path)
            self._lines.append(_encode(LogHeader(settings)))
            try:
                self.flush()
            except StoreError:
                self._file.close()
                raise

    def add(self, entry: LoggedRequest) -> None:
        self.requests += 1
        if self._file is not None and self._failure is None:
            self._lines.append(_encode(entry))

    def flush(self) -> None:
        if self._failure is not None:
            raise self._failure
        if self._file is None or not self._lines:
            return
        data = b"\n".join(self._lines) + b"\n"
        self._lines, written = [], 0
        try:
            while written < len(data):
                written += self._file.write(data[written:]) or 0
        except OSError as error:
            with contextlib.suppress(OSError):  # not every file can be cut
                os.ftruncate(self._file.fileno(), self._size + data.rfind(b"\n", 0, written) + 1)
            reason = "no space left" if error.errno == errno.ENOSPC else error.strerror
            self._failure = StoreError(f"cannot write the log {self.path}: {reason}")
            raise self._failure from error
        self._size += written

    def close(self) -> None:
        if self._file is None:
            return
        try:
            self.flush()
        finally:
            self._file.close()
            self._file = None


def _new_file(path: Path) -> BinaryIO:
    """The file to log to; one that has something in it is somebody's evidence."""
    try:
        file = path.open("ab", buffering=0)
    except OSError as error:
        raise SettingsError(f"cannot write the log {path}: {error.strerror}") from error
    if os.fstat(file.fileno()).st_size:
        file.close()
        raise SettingsError(f"the log {path} is there already: remove it, or choose another name with --log")
    return file


def read_log(path: Path) -> tuple[SimSettings, Iterator[LoggedRequest]]:
    """The settings and the entries of a log. A last line that is cut off is left out."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise SettingsError(f"cannot read the log {path}: {error.strerror}") from error
    try:
        header = msgspec.json.decode(file.readline(), type=LogHeader)
    except (msgspec.DecodeError, SettingsError) as error:
        file.close()
        raise SettingsError(
            f"{path} is not a log of the simulated web: its first line must name the web's settings"
        ) from error
    return header.simweb, _logged_requests(path, file)


def _logged_requests(path: Path, file: BinaryIO) -> Iterator[LoggedRequest]:
    decode = msgspec.json.Decoder(LoggedRequest).decode
    with file:
        for number, line in enumerate(file, 2):
            if not line.endswith(b"\n"):
                return
            try:
                yield decode(line)
            except msgspec.DecodeError as error:
                raise SettingsError(f"{path}, line {number}: not a request of the simulated web") from error


_DIGITS = re.compile(r"[0-9]{1,9}\Z")
TOLERANCE_S = 0.002  # the server takes a byte's time after it has left: a moment late on a busy machine


class AuditRules(msgspec.Struct, frozen=True, kw_only=True):
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


def audit_log(path: Path, rules: AuditRules) -> Audit:
    """The audit of a log file."""
    settings, entries = read_log(path)
    return audit(settings, entries, rules)


def audit(settings: SimSettings, entries: Iterable[LoggedRequest], rules: AuditRules) -> Audit:
    """The audit of some requests to the web of `settings`."""
    web = SimWeb(settings)
    by_host: dict[str, list[LoggedRequest]] = defaultdict(list)
    by_address: dict[str, list[LoggedRequest]] = defaultdict(list)
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


def _host_finding(web: SimWeb, name: str, entries: list[LoggedRequest], rules: AuditRules) -> Finding:
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


def _finding(name: str, entries: list[LoggedRequest], slots: int, delay_s: float) -> Finding:
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


def _before_robots(entries: list[LoggedRequest]) -> int:
    """Requests that started before any answer to robots.txt had ended."""
    known = min((e.end for e in entries if e.path == "/robots.txt" and e.status), default=float("inf"))
    return sum(e.path != "/robots.txt" and e.start < known - TOLERANCE_S for e in entries)


def _before_retry_after(entries: list[LoggedRequest]) -> int:
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
