"""A frontier over rows in memory, a clock, and what was asked of whom: what the tests of this room play with."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence

from lycosa.frontier import FrontierHook
from lycosa.frontier.frontier import Frontier
from lycosa.frontier.host_cache import MEMORY_LIMITS, MemoryLimits
from lycosa.frontier.hosts import Host
from lycosa.frontier.lease import Lease
from lycosa.frontier.policy import Policy, parse_policy
from lycosa.frontier.politeness import Politeness, ProcessStart
from lycosa.frontier.rankings import InternalFirst, PValue, Rank
from lycosa.frontier.rows import RequestKind, UrlCounts, UrlRow, UrlState, unpack_host
from lycosa.records import Family, Mapped
from lycosa.web.robots import Robots
from lycosa.web.url import Url

TOMORROW = 86_500.0  # until then robots.txt is believed: the world begins at 100
OPEN = Robots(agent="lycosa")
RANKINGS = {"pvalue": PValue, "rank": Rank, "internal-first": InternalFirst}


def built_in(name: str) -> Policy:
    return parse_policy(name, lambda ranking: RANKINGS[ranking]())


class Disk:
    """The committed rows, and a batch that is not committed yet."""

    def __init__(self) -> None:
        self.rows: dict[Family, dict[bytes, bytes]] = {family: {} for family in Family}
        self.batch: list[tuple[Family, bytes, bytes | None]] = []

    def put(self, family: Family, key: bytes, value: bytes) -> None:
        self.batch.append((family, key, value))

    def delete(self, family: Family, key: bytes) -> None:
        self.batch.append((family, key, None))

    def commit(self) -> None:
        for family, key, value in self.batch:
            if value is None:
                self.rows[family].pop(key, None)
            else:
                self.rows[family][key] = value
        self.batch = []

    def get(self, family: Family, key: bytes) -> bytes | None:
        return self.rows[family].get(key)

    def get_many(self, family: Family, keys: Sequence[bytes]) -> list[bytes | None]:
        return [self.get(family, key) for key in keys]

    def scan(
        self, family: Family, start: bytes = b"", end: bytes | None = None, *, limit: int
    ) -> list[tuple[bytes, bytes]]:
        keys = sorted(self.rows[family])
        found = keys[bisect_left(keys, start) :]
        return [(key, self.rows[family][key]) for key in found if end is None or key < end][:limit]

    def scan_back(self, family: Family, start: bytes, end: bytes, *, limit: int) -> list[tuple[bytes, bytes]]:
        return self.scan(family, start, end, limit=len(self.rows[family]) + 1)[::-1][:limit]


class World(FrontierHook):
    """A frontier, its disk, a clock, and what was asked of whom."""

    def __init__(
        self, pace: Politeness, policy: str | Policy = "breadth", *, memory: MemoryLimits = MEMORY_LIMITS
    ) -> None:
        self.memory = memory
        self.pace, self.disk, self.now, self.policy = pace, Disk(), 100.0, policy
        self.known: set[str] = set()
        self.committed: set[str] = set()
        self.done: Counter[str] = Counter()
        self.uncommitted_done: list[str] = []
        self.leases: list[Lease] = []
        self.ended: dict[str, list[float]] = {}
        self.last: set[str] = set()  # hosts that let others go first
        self.begin(is_restart=False)

    def begin(self, *, is_restart: bool) -> None:
        start = ProcessStart(self.now, self.now, is_restart=is_restart)
        policy = built_in(self.policy) if isinstance(self.policy, str) else self.policy
        counts = self.counts = UrlCounts()
        counts.queued = sum(UrlRow.unpack(row).state is UrlState.QUEUED for row in self.disk.rows[Family.URL].values())
        for host in map(unpack_host, self.disk.rows[Family.HOST].values()):
            if host.gave_up:
                counts.queued -= host.queued
                counts.failed[host.gave_up] += host.queued
        self.frontier = Frontier(
            self.disk,
            self.disk,
            self.pace,
            start,
            locate=self.locate,
            policy=policy,
            counts=counts,
            memory=self.memory,
        )
        self.frontier.add_hook(self)
        self.frontier.load(self.now)

    def puts_last(self, host: Host) -> bool:
        return host.host in self.last

    def locate(self, host: object) -> Mapped:
        return Mapped(host.host, f"addr-{host.host[-1]}", float("inf"))  # type: ignore[attr-defined]

    def admit(self, urls: list[Url]) -> None:
        self.known |= {url.href for url in urls}
        self.frontier.admit(urls, depth=1, now=self.now)

    def lease(self) -> None:
        lease = self.frontier.leasing.next(self.now, self.now)
        if lease is None:
            return
        ends = self.ended.setdefault(lease.host.origin, [])
        running = [other for other in self.leases if other.host.origin == lease.host.origin]
        assert len(running) < self.pace.per_host
        recent = sorted(ends)[-(self.pace.per_host - len(running)) :] if len(ends) >= self.pace.per_host else []
        assert not recent or self.now >= recent[0] + self.pace.delay_s - 1e-9
        assert sum(other.address == lease.address for other in self.leases) < self.pace.per_ip
        if lease.kind is RequestKind.PAGE:
            assert lease.url not in {other.url for other in self.leases}
            assert lease.url in self.known
        self.leases.append(lease)

    def end(self, number: int, outcome: str) -> None:
        if not self.leases:
            return
        lease = self.leases.pop(number % len(self.leases))
        self.ended.setdefault(lease.host.origin, []).append(self.now)
        wait_s = 0.0
        if lease.kind is RequestKind.ROBOTS:
            self.frontier.host_control.set_robots(lease.host, OPEN, until_unix=self.now + 86_400, now=self.now)
        elif outcome == "retry":
            lease.host.hold_back_retries(self.now + 20)
            self.frontier.outcomes.retry(lease, due_unix=self.now + 5, due=self.now + 5, failed="reset")
        elif outcome == "wait":
            self.frontier.outcomes.retry(lease, due_unix=self.now, due=self.now, counts=False)
            wait_s = 7.0
        elif outcome == "cancelled":
            self.frontier.outcomes.return_to_queue(lease)
        else:
            self.frontier.outcomes.finish(lease, UrlState.DONE)
            self.uncommitted_done.append(lease.url)
        self.frontier.outcomes.release(lease, self.now, self.now, wait_s=wait_s, reason="x", now_unix=self.now)

    def commit(self) -> None:
        self.frontier.before_commit()
        self.disk.commit()
        self.frontier.on_committed(self.disk, self.now)
        self.done.update(self.uncommitted_done)
        self.uncommitted_done = []
        self.committed = set(self.known)

    def crash(self) -> None:
        self.disk.batch, self.leases, self.uncommitted_done = [], [], []
        self.known = set(self.committed)
        self.ended = {origin: [*ends, self.now] for origin, ends in self.ended.items()}
        self.begin(is_restart=True)

    def finish_all(self) -> None:
        """Runs everything to its end."""
        for _ in range(5000):
            self.lease()
            if self.leases:
                self.end(0, "done")
            self.commit()
            if self.frontier.counts.queued <= 0 and not self.leases:
                return
            self.now += 0.5
        raise AssertionError(f"does not come to an end: {self.frontier!r}")
