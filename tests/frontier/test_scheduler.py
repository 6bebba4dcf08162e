"""Nobody waits for ever, nobody is asked too early: what went wrong once, or could have."""

from frontier_world import TOMORROW, World
from test_policies import Ladder, drained, urls_of

from lycosa.frontier.host_cache import MemoryLimits
from lycosa.frontier.hosts import HostPlace
from lycosa.frontier.lease import Lease
from lycosa.frontier.policy import PLAIN, Policy
from lycosa.frontier.politeness import HostGroup, Politeness
from lycosa.frontier.rows import UrlState
from lycosa.records import Mapped
from lycosa.web.robots import Robots


def end(world: World, lease: Lease, *, wait_s: float = 0.0) -> None:
    world.frontier.outcomes.finish(lease, UrlState.DONE)
    world.frontier.outcomes.release(
        lease, world.now, world.now, wait_s=wait_s, reason="503" * bool(wait_s), now_unix=world.now
    )


def given(world: World) -> Lease:
    lease = world.frontier.leasing.next(world.now, world.now)
    assert lease is not None
    return lease


def on_one_address(pace: Politeness, policy: str | Policy = "breadth") -> tuple[World, dict[str, str]]:
    world, addresses = World(pace, policy), dict[str, str]()
    world.frontier._locate = lambda host: Mapped(host.host, addresses.get(host.host, "X"), float("inf"))
    return world, addresses


def test_slot_that_a_waiter_does_not_take_goes_to_the_next() -> None:
    world, addresses = on_one_address(Politeness(delay_s=0.0, per_ip=1, robots=False))
    world.admit(urls_of("a.example/1", "b.example/1", "c.example/1"))
    first = given(world)
    assert world.frontier.leasing.next(world.now, world.now) is None
    addresses["b.example"] = "Y"
    end(world, first)
    assert {lease.host.host for lease in drained(world)} == {"b.example", "c.example"}


def test_better_url_that_waits_for_a_slot_holds_back_nobody_who_could_use_it() -> None:
    world, _ = on_one_address(Politeness(delay_s=0.0, per_ip=1, robots=False), Policy(Ladder(0), PLAIN))
    for path, band in (("a.example/1", 1.0), ("c.example/1", 4.0), ("d.example/1", 1.0)):
        world.frontier.admit(urls_of(path), depth=0, now=world.now, credits=[band])
        if band == 1.0 and path.startswith("a"):
            first = given(world)
        else:
            assert world.frontier.leasing.next(world.now, world.now) is None
    end(world, first)
    assert len(drained(world)) == 2


def test_host_with_a_long_pause_holds_back_nobody() -> None:
    world = World(Politeness(delay_s=1.0, per_ip=100, robots=False), Policy(Ladder(0), PLAIN))
    urls = urls_of("a.example/1", "a.example/2", "b.example/1", "b.example/2", "b.example/3")
    world.frontier.admit(urls, depth=0, now=world.now, credits=[1.0, 1.0, 4.0, 4.0, 4.0])
    first = given(world)
    first.host.delay_s = 600.0
    end(world, first)
    asked = []
    for _ in range(10):
        world.now += 1.0
        asked += [lease.host.host for lease in drained(world)]
    assert asked == ["b.example"] * 3


def test_wait_of_a_host_holds_for_its_slots_in_use_too() -> None:
    world = World(Politeness(delay_s=0.5, per_host=2, per_ip=9, robots=False))
    world.admit(urls_of(*(f"a.example/{n}" for n in range(6))))
    first, second = given(world), given(world)
    end(world, first, wait_s=60.0)
    world.now += 1.0
    end(world, second)
    world.now += 58.0
    assert drained(world) == []
    assert first.host.row.wait_reason == "503"
    world.now += 2.0
    assert drained(world)


def test_pause_of_a_group_survives_a_restart() -> None:
    world = World(Politeness(delay_s=0.1, per_ip=9, robots=False, groups=(HostGroup("*.example", 1, 30.0),)))
    world.admit(urls_of("a.example/1", "b.example/1", "c.example/1"))
    world.commit()
    world.crash()
    world.now += 29.0
    assert drained(world) == []
    world.now += 2.0
    assert drained(world)


def test_crawl_delay_that_comes_late_counts_from_the_last_request() -> None:
    world = World(Politeness(delay_s=1.0, per_ip=9))
    world.admit(urls_of("a.example/1"))
    robots = given(world)
    world.frontier.outcomes.release(robots, world.now, world.now)
    world.frontier.host_control.set_robots(
        robots.host, Robots(agent="lycosa", crawl_delay_s=20.0), until_unix=TOMORROW, now=world.now
    )
    world.now += 19.0
    assert drained(world) == []
    world.now += 1.5
    assert drained(world)


def test_retry_that_is_not_committed_yet_is_not_overtaken() -> None:
    world = World(Politeness(delay_s=0.0, per_host=3, per_ip=9, robots=False))
    world.admit(urls_of("a.example/1", "a.example/2"))
    first, second = given(world), given(world)
    world.frontier.outcomes.retry(second, due_unix=world.now + 2, due=world.now + 2)
    world.frontier.outcomes.release(second, world.now, world.now)
    world.commit()
    world.frontier.outcomes.retry(first, due_unix=world.now + 1, due=world.now + 1)
    world.frontier.outcomes.release(first, world.now, world.now)
    world.now += 3.0
    assert {lease.url for lease in drained(world)} == {first.url, second.url}


def test_host_whose_last_retry_is_done_waits_for_what_is_due_later() -> None:
    world = World(Politeness(delay_s=0.0, per_ip=9, robots=False))
    world.admit(urls_of("a.example/1", "a.example/2"))
    failed = given(world)
    world.frontier.outcomes.retry(failed, due_unix=world.now + 5, due=world.now + 5, failed="reset")
    world.frontier.outcomes.release(failed, world.now, world.now)
    slowed = given(world)
    world.frontier.outcomes.retry(slowed, due_unix=world.now + 60, due=world.now + 60)
    world.frontier.outcomes.release(slowed, world.now, world.now)
    world.now += 6.0

    again = given(world)
    assert again.url == failed.url
    end(world, again)
    assert again.host.place is HostPlace.WAITING  # it was ready for ever, and nobody else had a turn
    assert drained(world) == []

    world.now += 55.0
    assert [lease.url for lease in drained(world)] == [slowed.url]


def test_leaf_window_gets_past_what_is_settled_and_not_committed() -> None:
    world = World(Politeness(delay_s=0.0, per_ip=9), "leaf-window", memory=MemoryLimits(window=4))
    world.admit(urls_of("a.example/zz", *(f"a.example/no/{n:03}" for n in range(40))))
    world.commit()
    lease = given(world)
    world.frontier.host_control.set_robots(
        lease.host, Robots(agent="lycosa", disallow=("/no/",)), until_unix=TOMORROW, now=world.now
    )
    world.frontier.outcomes.release(lease, world.now, world.now)
    assert [lease.url for lease in drained(world)] == ["http://a.example/zz"]


def test_many_drops_leave_the_loop_a_turn() -> None:
    world = World(Politeness(delay_s=0.0, per_ip=9))
    world.admit(urls_of(*(f"a.example/{n}" for n in range(3_000))))
    lease = given(world)
    world.frontier.host_control.set_robots(
        lease.host, Robots(agent="lycosa", disallow=("/",)), until_unix=TOMORROW, now=world.now
    )
    world.frontier.outcomes.release(lease, world.now, world.now)
    calls = 0
    while world.frontier.counts.queued:
        assert world.frontier.leasing.next(world.now, world.now) is None
        assert world.frontier.leasing.has_more or not world.frontier.counts.queued
        calls += 1
    assert calls >= 5


def test_waiting_host_that_gets_more_urls_stands_in_the_heap_once() -> None:
    world = World(Politeness(delay_s=5.0, per_ip=9, robots=False))
    world.admit(urls_of("a.example/0", "a.example/00"))
    end(world, given(world))
    for n in range(1, 200):
        world.admit(urls_of(f"a.example/{n}"))
    assert len(world.frontier.scheduler._waiting) <= 2


def test_key_of_what_waits_never_falls_on_an_entry_of_the_run_before() -> None:
    world = World(Politeness(delay_s=0.0))
    world.admit(urls_of("h0.example/"))
    (host,) = world.frontier.hosts.values()
    before = [host.due.key(5.0, 500 + n) for n in range(4)]
    host.due.loaded = before[1] + b"\0"  # the first two were read, the others are on disk
    later = [host.due.key(5.0, 7 + n) for n in range(3)]
    assert len({*before, *later}) == 7
    assert min(later) > before[1]
