"""The frontier alone: nothing lost, nothing twice, nobody asked too early, whatever the order of events and crashes."""

import pytest
from frontier_world import TOMORROW, World
from hypothesis import given, settings
from hypothesis import strategies as st

from lycosa.frontier.frontier import Frontier
from lycosa.frontier.host_cache import MemoryLimits
from lycosa.frontier.politeness import PageLimits, Politeness, ProcessStart
from lycosa.frontier.rows import Origin, Reason, UrlRow, UrlState
from lycosa.records import Failure, Family
from lycosa.web.robots import Robots
from lycosa.web.url import parse_url, url_key

URLS = [parse_url(f"http://h{i % 4}.example/{i}") for i in range(24)]
STEPS = st.one_of(
    st.tuples(st.just("admit"), st.lists(st.sampled_from(URLS), max_size=8)),
    st.tuples(st.just("lease"), st.none()),
    st.tuples(st.just("end"), st.tuples(st.integers(0, 9), st.sampled_from(["done", "retry", "wait", "cancelled"]))),
    st.tuples(st.just("commit"), st.none()),
    st.tuples(st.just("pass"), st.sampled_from([0.1, 0.6, 1.0, 3.0, 10.0])),
    st.tuples(st.just("crash"), st.none()),
    st.tuples(st.just("last"), st.sets(st.sampled_from([f"h{i}.example" for i in range(4)]))),
    st.tuples(st.just("vouch"), st.dictionaries(st.sampled_from(URLS), st.floats(-30, 30), max_size=8)),
)
POLICIES = ["breadth", "top-window", "leaf-window", "pvalue", "pvalue+leaf-window", "pvalue+top-window"]


@pytest.mark.slow
@settings(max_examples=600, deadline=None)
@given(
    steps=st.lists(STEPS, max_size=60),
    per_host=st.integers(1, 3),
    delay_s=st.sampled_from([0.0, 1.0]),
    policy=st.sampled_from(POLICIES),
    room=st.sampled_from([1, 2, 5, 512]),
)
def test_no_url_is_lost_or_done_twice_or_asked_too_early(
    steps: list,  # type: ignore[type-arg]
    per_host: int,
    delay_s: float,
    policy: str,
    room: int,
) -> None:
    world = World(Politeness(delay_s=delay_s, per_host=per_host, per_ip=2), policy, memory=MemoryLimits(window=room))
    for name, argument in steps:
        if name == "admit":
            world.admit(argument)
        elif name == "end":
            world.end(*argument)
        elif name == "pass":
            world.now += argument
        elif name == "last":
            world.last = argument
        elif name == "vouch":
            world.frontier.add_evidence({url.href: more for url, more in argument.items()}, world.now)
        else:
            getattr(world, name)()
    world.finish_all()
    assert set(world.done) == world.known
    assert set(world.done.values()) <= {1}
    assert world.disk.rows[Family.QUEUE] == {}
    rows = {key: UrlRow.unpack(row) for key, row in world.disk.rows[Family.URL].items()}
    assert rows == {url_key(url): UrlRow(UrlState.DONE, 1) for url in world.known}


def test_disallowed_urls_are_dropped_with_the_reason() -> None:
    world = World(Politeness(delay_s=0.0))
    world.admit([URLS[0], URLS[4]])  # type: ignore[list-item]
    world.lease()
    rules = Robots(agent="lycosa", disallow=("/4",))
    host = world.leases[0].host
    world.frontier.host_control.set_robots(host, rules, until_unix=TOMORROW, now=world.now)
    world.end(0, "done")
    world.frontier.host_control.set_robots(host, rules, until_unix=TOMORROW, now=world.now)
    world.finish_all()
    row = UrlRow.unpack(world.disk.rows[Family.URL][url_key("http://h0.example/4")])
    assert (row.state, row.reason) == (UrlState.DROPPED, Reason.ROBOTS)
    assert world.counts.dropped == {"robots": 1}


def given_up() -> World:
    """A world whose one host was given up while the first of its three URLs was asked for."""
    world = World(Politeness(delay_s=0.0, robots=False))
    world.admit([URLS[0], URLS[4], URLS[8]])  # type: ignore[list-item]
    world.lease()
    lease = world.leases.pop()
    world.frontier.outcomes.return_to_queue(lease)
    world.frontier.host_control.give_up(lease.host, str(Failure.CONNECT), world.now)
    world.frontier.outcomes.release(lease, world.now, world.now)
    world.commit()
    assert world.frontier.counts.queued == 0
    assert world.counts.failed == {"connect": 3}
    assert len(world.disk.rows[Family.QUEUE]) == 3
    return world


def test_host_given_up_keeps_its_queue_and_comes_back_when_wanted() -> None:
    world = given_up()
    assert world.frontier.leasing.next(world.now + 100, world.now + 100) is None
    world.frontier.admit([URLS[0]], depth=0, now=world.now, origin=Origin.SEED)  # type: ignore[list-item]
    assert (world.frontier.counts.queued, world.counts.failed.total()) == (3, 0)
    world.now += 100
    world.finish_all()
    assert sum(world.done.values()) == 3


def test_host_given_up_is_tried_again_by_the_next_run_once() -> None:
    world = given_up()
    world.crash()
    assert world.frontier.counts.queued == 3
    world.now += 100
    world.lease()
    lease = world.leases.pop()
    world.frontier.outcomes.return_to_queue(lease)
    world.frontier.host_control.give_up(lease.host, str(Failure.CONNECT), world.now)
    world.frontier.outcomes.release(lease, world.now, world.now)
    for _ in range(5):
        world.commit()
        assert world.frontier.leasing.next(world.now + 100, world.now + 100) is None
    world.crash()
    world.now += 100
    world.finish_all()
    assert sum(world.done.values()) == 3


def test_front_in_memory_is_bounded_and_the_rest_read_from_disk() -> None:
    world = World(Politeness(delay_s=0.0, robots=False))
    urls = [parse_url(f"http://one.example/{i}") for i in range(3000)]
    world.admit(urls)  # type: ignore[arg-type]
    world.commit()
    (host,) = world.frontier.hosts.values()
    assert len(host.windows[1].entries) <= 512
    order = []
    for _ in range(3000):
        world.lease()
        order.append(world.leases[0].url)
        world.end(0, "done")
    assert order == [url.href for url in urls if url]


def test_hosts_put_out_of_memory_come_in_again_wherever_they_lie() -> None:
    world = World(Politeness(delay_s=0.0, robots=False), memory=MemoryLimits(hosts=3, rows_per_read=2))
    for round_of_urls in range(3):  # new URLs bring hosts in, each commit puts the surplus out
        world.admit([parse_url(f"http://h{i}.example/{round_of_urls}") for i in range(20)])  # type: ignore[misc]
        world.commit()
        assert len(world.frontier.hosts) <= 3
        for _ in range(4):
            world.lease()
            world.end(0, "done")
            world.commit()

    world.finish_all()

    assert set(world.done.values()) == {1}
    assert len(world.done) == 60


def test_hosts_on_disk_come_in_piece_by_piece() -> None:
    world = World(Politeness(delay_s=0.0, robots=False), memory=MemoryLimits(rows_per_read=5, rows_per_look=10))
    world.admit([parse_url(f"http://h{i}.example/") for i in range(25)])  # type: ignore[misc]
    world.commit()
    world.crash()

    counts = [len(world.frontier.hosts)]
    for _ in range(2):
        world.commit()
        counts.append(len(world.frontier.hosts))

    assert counts == [10, 20, 25]


def test_host_of_a_known_seed_goes_on_after_a_restart() -> None:
    world = World(Politeness(delay_s=0.0, robots=False))
    world.admit([URLS[0], URLS[4]])  # type: ignore[list-item]
    world.commit()
    start = ProcessStart(world.now, world.now, is_restart=True)
    frontier = Frontier(world.disk, world.disk, world.pace, start, locate=world.locate)
    frontier.admit([URLS[0]], depth=0, now=world.now, origin=Origin.SEED)  # type: ignore[list-item]
    frontier.load(world.now)
    lease = frontier.leasing.next(world.now, world.now)
    assert lease is not None
    assert lease.url == "http://h0.example/0"


def test_host_that_is_put_last_goes_when_nobody_else_is_to_be_asked_soon() -> None:
    world = World(Politeness(delay_s=1.0, robots=False))
    world.admit([URLS[0], URLS[4], URLS[1], URLS[5]])  # type: ignore[list-item]
    world.last = {"h0.example"}
    world.finish_all()
    assert [url.rpartition("/")[2] for url in world.done] == ["1", "5", "0", "4"]


def test_host_that_is_put_last_no_longer_goes_on_after_a_commit() -> None:
    world = World(Politeness(delay_s=1.0, robots=False))
    world.admit([URLS[0], *URLS[1:24:4]])  # type: ignore[list-item]
    world.last = {"h0.example"}
    world.lease()
    assert [lease.host.host for lease in world.leases] == ["h1.example"]
    world.lease()
    assert len(world.leases) == 1
    world.last = set()
    world.commit()
    world.lease()
    assert [lease.host.host for lease in world.leases] == ["h1.example", "h0.example"]


def test_slot_of_an_address_is_not_kept_for_a_host_that_is_put_last() -> None:
    world = World(Politeness(delay_s=0.0, per_ip=1, robots=False))
    urls = [parse_url(f"http://{name}.h1.example/") for name in "abc"]
    world.admit(urls)  # type: ignore[arg-type]
    for _ in range(3):
        world.lease()
    world.last = {"b.h1.example"}
    world.end(0, "done")
    world.lease()
    assert [lease.host.host for lease in world.leases] == ["c.h1.example"]
    world.finish_all()
    assert set(world.done) == {url.href for url in urls if url}


def test_pages_that_fail_leave_their_place_under_a_limit_to_others() -> None:
    world = World(Politeness(delay_s=0.0, per_host=4, per_ip=4, pages_per_host=2, robots=False))
    world.admit(URLS[0:24:4])  # type: ignore[arg-type]
    for _ in range(4):
        world.lease()
    assert len(world.leases) == 2
    world.end(0, "done")  # no page came of it
    for _ in range(4):
        world.lease()
    assert len(world.leases) == 2
    for lease in world.leases:
        lease.host.count(pages=1)
    world.finish_all()
    assert (len(world.done), world.counts.dropped) == (3, {"pages-per-host": 3})


def test_limit_of_a_pattern_holds_in_place_of_that_of_every_host() -> None:
    limits = PageLimits(5, [("a.example.org", 1), ("*.example.org", 50)])
    assert [limits.of(host) for host in ("a.example.org", "b.example.org", "example.com")] == [1, 50, 5]
    assert PageLimits(None, []).of("example.com") is None


def test_host_of_a_leased_url_stays_in_memory_after_its_slot_is_free() -> None:
    """A sitemap is leased until all of it is taken in, long after its request has ended."""
    world = World(Politeness(robots=False), memory=MemoryLimits(hosts=-1))  # more hosts than fit
    world.admit([url for path in ("sitemap.xml", "p0") if (url := parse_url(f"http://a.test/{path}"))])
    lease = world.frontier.leasing.next(world.now, world.now)
    assert lease is not None
    world.frontier.outcomes.release(lease, world.now, world.now)
    world.commit()

    world.now += 100
    if host := world.frontier.scheduler.next_ready(world.now):  # its delay is over
        world.frontier.scheduler.ready(host)
    world.commit()

    assert list(world.frontier.hosts.values()) == [lease.host]
