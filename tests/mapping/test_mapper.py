"""The mapping stage: queue, sets, cache, guard. The resolver is a fake, the clock is virtual."""

import asyncio
import ipaddress
from collections.abc import Awaitable, Callable

import pytest
import uvloop

from lycosa.mapping.guard import AddressGuard
from lycosa.mapping.mapper import FAILED_TTL_S, MAX_TTL_S, MIN_TTL_S, NO_SUCH_HOST_TTL_S, Mapped, Mapper
from lycosa.records import Failure, Resolved


class FakeResolver:
    """Answers from a dictionary; names it holds back wait until they are let go."""

    def __init__(self) -> None:
        self.answers: dict[str, Resolved] = {}
        self.held: dict[str, asyncio.Event] = {}
        self.asked: list[str] = []
        self.flushed = 0
        self.under_way = self.most_under_way = 0

    async def resolve(self, name: str) -> Resolved:
        self.asked.append(name)
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        await (self.held[name].wait() if name in self.held else asyncio.sleep(0))
        self.under_way -= 1
        if name == "raises.example":
            raise RuntimeError("plug-in bug")
        return self.answers.get(name, Resolved(name, ("9.9.9.9",), 300))

    def flush(self) -> None:
        self.flushed += 1

    async def close(self) -> None:
        pass


class Stage:
    """A mapper with its fake resolver, a clock to turn and what was delivered."""

    def __init__(self, *, allow: tuple[str, ...] = (), **options: int) -> None:
        self.now_s = 1000.0
        self.resolver = FakeResolver()
        self.guard = AddressGuard(ipaddress.ip_network(net) for net in allow)
        self.batches: list[list[Mapped]] = []
        self.mapper = Mapper(self.resolver, self.guard, self.batches.append, now=lambda: self.now_s, **options)

    @property
    def delivered(self) -> list[Mapped]:
        return [mapped for batch in self.batches for mapped in batch]

    async def settle(self) -> None:
        for _ in range(50):
            await asyncio.sleep(0)

    async def ask(self, *hosts: str) -> list[Mapped]:
        before = len(self.delivered)
        for host in hosts:
            assert self.mapper.want(host)
        await self.settle()
        return self.delivered[before:]


def run(work: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await asyncio.wait_for(work(), 60)

    uvloop.run(main())


def test_mapper_unknown_host_is_resolved_and_then_known() -> None:
    async def work() -> None:
        stage = Stage()
        assert stage.mapper.lookup("a.example", 80) is None
        assert await stage.ask("a.example") == [Mapped("a.example", "9.9.9.9", stage.now_s + 300)]
        assert stage.mapper.lookup("a.example", 80) == stage.delivered[0]

    run(work)


def test_mapper_answer_past_its_ttl_is_unknown_again() -> None:
    async def work() -> None:
        stage = Stage()
        await stage.ask("a.example")
        stage.now_s += 299.9
        assert stage.mapper.lookup("a.example", 80) is not None
        stage.now_s += 0.2
        assert stage.mapper.lookup("a.example", 80) is None

    run(work)


def test_mapper_ttl_out_of_bounds_is_bounded() -> None:
    async def work() -> None:
        stage = Stage()
        stage.resolver.answers = {
            "short.example": Resolved("short.example", ("9.9.9.9",), 0),
            "long.example": Resolved("long.example", ("9.9.9.9",), 10**9),
        }
        short, long = await stage.ask("short.example", "long.example")
        assert short.expires_s == stage.now_s + MIN_TTL_S
        assert long.expires_s == stage.now_s + MAX_TTL_S

    run(work)


def test_mapper_failures_are_cached_for_their_time() -> None:
    async def work() -> None:
        stage = Stage()
        stage.resolver.answers = {
            "no.example": Resolved("no.example", failure=Failure.NO_SUCH_HOST, detail="nx"),
            "bad.example": Resolved("bad.example", failure=Failure.DNS, detail="timeout"),
        }
        missing, failed = await stage.ask("no.example", "bad.example")
        assert (missing.failure, missing.expires_s) == (Failure.NO_SUCH_HOST, stage.now_s + NO_SUCH_HOST_TTL_S)
        assert (failed.failure, failed.expires_s) == (Failure.DNS, stage.now_s + FAILED_TTL_S)
        assert stage.mapper.lookup("no.example", 80) == missing

    run(work)


def test_mapper_resolver_that_raises_gives_a_failed_host_not_a_lost_one() -> None:
    async def work() -> None:
        stage = Stage()
        (mapped,) = await stage.ask("raises.example")
        assert mapped.failure is Failure.DNS
        assert "plug-in bug" in mapped.detail

    run(work)


def test_mapper_name_with_one_private_address_is_refused() -> None:
    async def work() -> None:
        stage = Stage()
        stage.resolver.answers = {"mix.example": Resolved("mix.example", ("9.9.9.9", "10.0.0.1"), 60)}
        (mapped,) = await stage.ask("mix.example")
        assert mapped.failure is Failure.ADDRESS_REFUSED
        assert mapped.address == ""
        assert "10.0.0.1" in mapped.detail

    run(work)


def test_mapper_name_in_an_allowed_network_is_mapped() -> None:
    async def work() -> None:
        stage = Stage(allow=("10.0.0.0/8",))
        stage.resolver.answers = {"in.example": Resolved("in.example", ("10.0.0.1",), 60)}
        assert [mapped.address for mapped in await stage.ask("in.example")] == ["10.0.0.1"]

    run(work)


def test_mapper_literal_host_is_known_at_once_and_never_resolved() -> None:
    async def work() -> None:
        stage = Stage()
        stage.guard.allow_literal("localhost", 8000)
        addresses = [
            stage.mapper.lookup(host, port)
            for host, port in (("9.9.9.9", 80), ("[2606:4700::1]", 443), ("localhost", 8000))
        ]
        assert [mapped.address for mapped in addresses if mapped] == ["9.9.9.9", "2606:4700::1", "127.0.0.1"]
        for host, port in (("localhost", 8001), ("127.0.0.1", 8000), ("[::1]", 8000), ("a.localhost", 8000)):
            refused = stage.mapper.lookup(host, port)
            assert refused is not None
            assert refused.failure is Failure.ADDRESS_REFUSED
        with pytest.raises(ValueError, match="no name"):
            stage.mapper.want("localhost")
        assert stage.resolver.asked == []

    run(work)


def test_mapper_typed_localhost_does_not_open_names_that_resolve_to_it() -> None:
    async def work() -> None:
        stage = Stage()
        stage.guard.allow_literal("127.0.0.1", 80)
        stage.resolver.answers = {"evil.example": Resolved("evil.example", ("127.0.0.1",), 60)}
        assert [mapped.failure for mapped in await stage.ask("evil.example")] == [Failure.ADDRESS_REFUSED]

    run(work)


def test_mapper_host_wanted_twice_is_resolved_and_delivered_once() -> None:
    async def work() -> None:
        stage = Stage()
        assert len(await stage.ask("a.example", "a.example")) == 1
        assert stage.resolver.asked == ["a.example"]

    run(work)


def test_mapper_full_queue_refuses_more() -> None:
    async def work() -> None:
        stage = Stage(queue_hosts=2)
        assert [stage.mapper.want(f"{n}.example") for n in range(3)] == [True, True, False]
        await stage.settle()
        assert stage.mapper.want("2.example")

    run(work)


def test_mapper_workers_hold_at_most_their_sets() -> None:
    async def work() -> None:
        stage = Stage(workers=3, batch=4)
        delivered = await stage.ask(*(f"{n}.example" for n in range(100)))
        assert sorted(mapped.host for mapped in delivered) == sorted(f"{n}.example" for n in range(100))
        assert stage.resolver.most_under_way <= 12
        assert len(stage.batches) < 100

    run(work)


def test_mapper_slow_names_do_not_hold_up_the_others() -> None:
    async def work() -> None:
        stage = Stage(workers=2, batch=4)
        stage.resolver.held = {f"slow{n}.example": asyncio.Event() for n in range(4)}
        await stage.ask("slow0.example", "a.example", "b.example", "c.example", "slow1.example", "d.example")
        delivered = await stage.ask(*(f"{n}.example" for n in range(50)))
        assert len(delivered) == 50
        for event in stage.resolver.held.values():
            event.set()
        await stage.settle()
        assert {"slow0.example", "slow1.example"} <= {mapped.host for mapped in stage.delivered}

    run(work)


def test_mapper_host_keeps_one_address_until_it_is_forgotten() -> None:
    async def work() -> None:
        stage = Stage()
        addresses = ("9.9.9.9", "8.8.8.8", "1.1.1.1")
        chosen = set()
        for order in (addresses, addresses[::-1]):
            stage.resolver.answers = {"many.example": Resolved("many.example", order, 60)}
            chosen |= {mapped.address for mapped in await stage.ask("many.example")}
            stage.now_s += 61
        assert len(chosen) == 1
        await stage.ask("many.example")
        stage.mapper.forget("many.example")
        assert stage.mapper.lookup("many.example", 80) is None
        assert stage.resolver.flushed == 1
        chosen |= {mapped.address for mapped in await stage.ask("many.example")}
        assert len(chosen) == 2

    run(work)


def test_mapper_cache_never_grows_beyond_its_bound() -> None:
    async def work() -> None:
        stage = Stage(cache_hosts=10)
        await stage.ask(*(f"{n}.example" for n in range(30)))
        assert stage.mapper.stats().cached == 10
        assert stage.mapper.lookup("0.example", 80) is None

    run(work)


def test_mapper_restored_addresses_hold_as_long_as_they_are_valid_and_are_judged_again() -> None:
    async def work() -> None:
        stage = Stage()
        stage.mapper.restore("a.example", "9.9.9.9", valid_s=280)
        stage.mapper.restore("in.example", "10.0.0.1", valid_s=80)
        stage.mapper.restore("old.example", "9.9.9.9", valid_s=-10)
        assert stage.mapper.lookup("a.example", 80) == Mapped("a.example", "9.9.9.9", stage.now_s + 280)
        refused = stage.mapper.lookup("in.example", 80)
        assert refused is not None
        assert refused.failure is Failure.ADDRESS_REFUSED
        assert stage.mapper.lookup("old.example", 80) is None

    run(work)


def test_mapper_restored_after_the_wall_clock_jumped_back_is_bounded() -> None:
    async def work() -> None:
        stage = Stage()
        stage.mapper.restore("a.example", "9.9.9.9", valid_s=9e9)
        mapped = stage.mapper.lookup("a.example", 80)
        assert mapped is not None
        assert mapped.expires_s == stage.now_s + MAX_TTL_S

    run(work)


def test_mapper_closed_delivers_nothing_more() -> None:
    async def work() -> None:
        stage = Stage()
        stage.resolver.held = {"slow.example": asyncio.Event()}
        await stage.ask("slow.example")
        await stage.mapper.close()
        await stage.settle()
        assert stage.delivered == []
        assert stage.mapper.stats().resolving == 0

    run(work)
