"""The frontier alone: nothing lost, nothing twice, nobody asked too early, whatever the order of events and crashes."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from lycosa.frontier.frontier import Frontier, Lease, Pace
from lycosa.frontier.rows import Kind, Reason, UrlRow, UrlState
from lycosa.frontier.shelf import Start
from lycosa.records import Failure, Family, Mapped
from lycosa.web.robots import Robots
from lycosa.web.url import Url, parse, url_key

OPEN = Robots(agent="lycosa")


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


class World:
    """A frontier, its disk, a clock, and what was asked of whom."""

    def __init__(self, pace: Pace) -> None:
        self.pace, self.disk, self.now = pace, Disk(), 100.0
        self.known: set[str] = set()
        self.committed: set[str] = set()
        self.done: Counter[str] = Counter()
        self.uncommitted_done: list[str] = []
        self.leases: list[Lease] = []
        self.ended: dict[str, list[float]] = {}
        self.begin(is_restart=False)

    def begin(self, *, is_restart: bool) -> None:
        start = Start(self.now, self.now, is_restart=is_restart)
        self.frontier = Frontier(self.disk, self.pace, start, locate=self.locate)
        self.frontier.batch = self.disk
        self.frontier.queued = sum(row[0] == UrlState.QUEUED for row in self.disk.rows[Family.URL].values())
        self.frontier.load(self.now)

    def locate(self, host: object) -> Mapped:
        return Mapped(host.host, f"addr-{host.host[-1]}", float("inf"))  # type: ignore[attr-defined]

    def admit(self, urls: list[Url]) -> None:
        self.known |= {url.href for url in urls}
        self.frontier.admit(urls, depth=1, now=self.now)

    def lease(self) -> None:
        lease = self.frontier.next(self.now, self.now)
        if lease is None:
            return
        ends = self.ended.setdefault(lease.host.origin, [])
        running = [other for other in self.leases if other.host.origin == lease.host.origin]
        assert len(running) < self.pace.per_host
        recent = sorted(ends)[-(self.pace.per_host - len(running)) :] if len(ends) >= self.pace.per_host else []
        assert not recent or self.now >= recent[0] + self.pace.delay_s - 1e-9
        assert sum(other.address == lease.address for other in self.leases) < self.pace.per_ip
        if lease.kind is Kind.PAGE:
            assert lease.url not in {other.url for other in self.leases}
            assert lease.url in self.known
        self.leases.append(lease)

    def end(self, number: int, outcome: str) -> None:
        if not self.leases:
            return
        lease = self.leases.pop(number % len(self.leases))
        self.ended.setdefault(lease.host.origin, []).append(self.now)
        wait_s = 0.0
        if lease.kind is Kind.ROBOTS:
            self.frontier.set_robots(lease.host, OPEN, until_unix=1e12, now=self.now)
        elif outcome == "retry":
            self.frontier.retry(lease, due_unix=self.now + 5, due=self.now + 5)
        elif outcome == "wait":
            self.frontier.retry(lease, due_unix=self.now, due=self.now, counts=False)
            wait_s = 7.0
        elif outcome == "cancelled":
            self.frontier.put_back(lease)
        else:
            self.frontier.finish(lease, UrlState.DONE)
            self.uncommitted_done.append(lease.url)
        self.frontier.release(lease, self.now, self.now, wait_s=wait_s, reason="x", now_unix=self.now)

    def commit(self) -> None:
        self.frontier.write_hosts()
        self.disk.commit()
        self.frontier.committed(self.now)
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
            if self.frontier.queued <= 0 and not self.leases:
                return
            self.now += 0.5
        raise AssertionError(f"does not come to an end: {self.frontier!r}")


URLS = [parse(f"http://h{i % 4}.example/{i}") for i in range(24)]
STEPS = st.one_of(
    st.tuples(st.just("admit"), st.lists(st.sampled_from(URLS), max_size=8)),
    st.tuples(st.just("lease"), st.none()),
    st.tuples(st.just("end"), st.tuples(st.integers(0, 9), st.sampled_from(["done", "retry", "wait", "cancelled"]))),
    st.tuples(st.just("commit"), st.none()),
    st.tuples(st.just("pass"), st.sampled_from([0.1, 0.6, 1.0, 3.0, 10.0])),
    st.tuples(st.just("crash"), st.none()),
)


@settings(max_examples=300, deadline=None)
@given(steps=st.lists(STEPS, max_size=60), per_host=st.integers(1, 3), delay_s=st.sampled_from([0.0, 1.0]))
def test_no_url_is_lost_or_done_twice_or_asked_too_early(steps: list, per_host: int, delay_s: float) -> None:  # type: ignore[type-arg]
    world = World(Pace(delay_s=delay_s, per_host=per_host, per_ip=2))
    for name, argument in steps:
        if name == "admit":
            world.admit(argument)
        elif name == "end":
            world.end(*argument)
        elif name == "pass":
            world.now += argument
        else:
            getattr(world, name)()
    world.finish_all()
    assert set(world.done) == world.known
    assert set(world.done.values()) <= {1}
    assert world.disk.rows[Family.QUEUE] == {}
    rows = {key: UrlRow.unpack(row) for key, row in world.disk.rows[Family.URL].items()}
    assert rows == {url_key(url): UrlRow(UrlState.DONE, 1) for url in world.known}


def test_disallowed_urls_are_dropped_with_the_reason() -> None:
    world = World(Pace(delay_s=0.0))
    world.admit([URLS[0], URLS[4]])  # type: ignore[list-item]
    world.lease()
    rules = Robots(agent="lycosa", disallow=("/4",))
    host = world.leases[0].host
    world.frontier.set_robots(host, rules, until_unix=1e12, now=world.now)
    world.end(0, "done")
    world.frontier.set_robots(host, rules, until_unix=1e12, now=world.now)
    world.finish_all()
    row = UrlRow.unpack(world.disk.rows[Family.URL][url_key("http://h0.example/4")])
    assert (row.state, row.reason) == (UrlState.DROPPED, Reason.ROBOTS)
    assert world.frontier.dropped == {"robots": 1}


def test_host_given_up_keeps_its_queue_and_comes_back_when_wanted() -> None:
    world = World(Pace(delay_s=0.0, robots=False))
    urls = [URLS[0], URLS[4], URLS[8]]
    world.admit(urls)  # type: ignore[arg-type]
    world.lease()
    lease = world.leases.pop()
    world.frontier.finish(lease, UrlState.FAILED, Reason.FAILURE)
    world.frontier.give_up(lease.host, str(Failure.CONNECT))
    world.frontier.release(lease, world.now, world.now)
    world.commit()
    assert world.frontier.queued == 0
    assert world.frontier.failed == {"connect": 2}
    assert len(world.disk.rows[Family.QUEUE]) == 2
    world.crash()
    world.frontier.queued, world.frontier.failed = 0, Counter({"connect": 2})
    assert world.frontier.next(world.now + 100, world.now + 100) is None
    world.frontier.admit([URLS[0]], depth=0, now=world.now, is_wish=True)  # type: ignore[list-item]
    assert world.frontier.queued == 2
    world.now += 100
    world.finish_all()
    assert sum(world.done.values()) == 2


def test_front_in_memory_is_bounded_and_the_rest_read_from_disk() -> None:
    world = World(Pace(delay_s=0.0, robots=False))
    urls = [parse(f"http://one.example/{i}") for i in range(3000)]
    world.admit(urls)  # type: ignore[arg-type]
    world.commit()
    (host,) = world.frontier.shelf.hosts.values()
    assert len(host.front) <= 512
    order = []
    for _ in range(3000):
        world.lease()
        order.append(world.leases[0].url)
        world.end(0, "done")
    assert order == [url.href for url in urls if url]


def test_host_of_a_known_seed_goes_on_after_a_restart() -> None:
    world = World(Pace(delay_s=0.0, robots=False))
    world.admit([URLS[0], URLS[4]])  # type: ignore[list-item]
    world.commit()
    frontier = Frontier(world.disk, world.pace, Start(world.now, world.now, is_restart=True), locate=world.locate)
    frontier.batch = world.disk
    frontier.admit([URLS[0]], depth=0, now=world.now, is_wish=True)  # type: ignore[list-item]
    frontier.load(world.now)
    lease = frontier.next(world.now, world.now)
    assert lease is not None
    assert lease.url == "http://h0.example/0"
