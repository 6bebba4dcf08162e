"""The c-ares adapter against a real DNS server on loopback."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest
import uvloop
from name_server import NameServer, Zone, name_server

from lycosa.errors import SettingsError
from lycosa.mapping.mapper import CaresResolver, parse_server
from lycosa.records import Failure, Resolved

T = TypeVar("T")
UNANSWERED = ("silent.example", "garbage.example")

ZONE: Zone = {
    ("two.example", "A"): (300, ["192.0.2.1", "192.0.2.2"]),
    ("six.example", "AAAA"): (60, ["2001:db8::1"]),
    ("alias.example", "A"): (20, ["cname middle.example"]),
    ("middle.example", "A"): (40, ["cname two.example"]),
    ("empty.example", "TXT"): (60, ["nothing"]),
    ("broken.example", "A"): "servfail",
    ("silent.example", "A"): "silent",
    ("garbage.example", "A"): "garbage",
}


def with_resolver(
    work: Callable[[CaresResolver, NameServer], Awaitable[T]],
    *,
    use_ipv6: bool = True,
    timeout_s: float = 20.0,
    tries: int = 2,
) -> T:
    """What `work` returns. The server is in the same process, and may need long for all that it is asked."""

    async def main() -> T:
        async with name_server(dict(ZONE)) as server:
            resolver = CaresResolver(
                [server.address], use_ipv6=use_ipv6, timeout_s=timeout_s, tries=tries, flush_interval_s=0.0
            )
            try:
                return await asyncio.wait_for(work(resolver, server), 120)
            finally:
                await resolver.close()

    return uvloop.run(main())


def resolve(name: str, *, timeout_s: float = 20.0) -> Resolved:
    return with_resolver(lambda resolver, _: resolver.resolve(name), timeout_s=timeout_s)


def test_resolver_name_with_addresses_gives_all_of_them_and_the_ttl() -> None:
    answer = resolve("two.example")

    assert set(answer.addresses) == {"192.0.2.1", "192.0.2.2"}
    assert answer.ttl_s == 300
    assert answer.failure is None


def test_resolver_cname_chain_gives_the_shortest_ttl_of_the_chain() -> None:
    answer = resolve("alias.example")

    assert set(answer.addresses) == {"192.0.2.1", "192.0.2.2"}
    assert answer.ttl_s == 20


def test_resolver_name_without_a_gives_aaaa() -> None:
    assert resolve("six.example").addresses == ("2001:db8::1",)


def test_resolver_without_ipv6_never_asks_for_aaaa() -> None:
    async def work(resolver: CaresResolver, server: NameServer) -> tuple[Resolved, list[tuple[str, str]]]:
        return await resolver.resolve("six.example"), server.asked

    answer, asked = with_resolver(work, use_ipv6=False)

    assert answer.failure is Failure.NO_SUCH_HOST
    assert {kind for _, kind in asked} == {"A"}


def test_resolver_name_with_a_is_not_asked_for_aaaa() -> None:
    async def work(resolver: CaresResolver, server: NameServer) -> list[tuple[str, str]]:
        await resolver.resolve("two.example")
        return server.asked

    assert with_resolver(work) == [("two.example", "A")]


@pytest.mark.parametrize(
    ("name", "failure"),
    [
        ("missing.example", Failure.NO_SUCH_HOST),
        ("empty.example", Failure.NO_SUCH_HOST),
        ("a" * 64 + ".example", Failure.NO_SUCH_HOST),
        (".".join(["a" * 60] * 5), Failure.NO_SUCH_HOST),
        ("a..b.example", Failure.NO_SUCH_HOST),
        ("bücher.example", Failure.NO_SUCH_HOST),
        ("", Failure.NO_SUCH_HOST),
        ("broken.example", Failure.DNS),
        ("silent.example", Failure.DNS),
        ("garbage.example", Failure.DNS),
    ],
)
def test_resolver_bad_name_or_server_gives_a_failure(name: str, failure: Failure) -> None:
    answer = resolve(name, timeout_s=0.1 if name in UNANSWERED else 20.0)

    assert answer.failure is failure
    assert answer.addresses == ()
    assert answer.detail


def test_resolver_many_names_at_once_are_all_answered() -> None:
    async def work(resolver: CaresResolver, server: NameServer) -> list[Resolved]:
        server.zone.update({(f"h{n}.example", "A"): (60, [f"192.0.2.{n}"]) for n in range(200)})
        return await asyncio.gather(*(resolver.resolve(f"h{n}.example") for n in range(200)))

    assert [answer.addresses for answer in with_resolver(work)] == [(f"192.0.2.{n}",) for n in range(200)]


def test_resolver_flushed_asks_the_server_again() -> None:
    async def work(resolver: CaresResolver, server: NameServer) -> list[tuple[str, ...]]:
        seen = [(await resolver.resolve("two.example")).addresses]
        server.zone[("two.example", "A")] = (300, ["192.0.2.9"])
        seen.append((await resolver.resolve("two.example")).addresses)
        resolver.flush()
        seen.append((await resolver.resolve("two.example")).addresses)
        return seen

    first, kept, fresh = with_resolver(work)

    assert set(kept) == set(first)
    assert fresh == ("192.0.2.9",)


def test_resolver_flushed_with_a_query_under_way_still_answers_it() -> None:
    async def work(resolver: CaresResolver, server: NameServer) -> list[Resolved]:
        slow = asyncio.ensure_future(resolver.resolve("silent.example"))
        await asyncio.sleep(0)
        resolver.flush()
        quick = await resolver.resolve("two.example")
        server.zone[("silent.example", "A")] = (60, ["192.0.2.7"])  # what is asked once more after a while
        return [quick, await slow]

    quick, slow = with_resolver(work, timeout_s=0.3, tries=6)

    assert quick.failure is None
    assert slow.addresses == ("192.0.2.7",)


@pytest.mark.parametrize(
    ("text", "server"),
    [("127.0.0.1:5353", "127.0.0.1:5353"), ("9.9.9.9", "9.9.9.9:53"), ("[::1]:54", "[::1]:54"), ("::1", "[::1]:53")],
)
def test_parse_server_good_text_gives_address_and_port(text: str, server: str) -> None:
    assert parse_server(text) == server


@pytest.mark.parametrize(
    "text", ["", "dns.example", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:99999", "1.2.3.4:x", "[::1"]
)
def test_parse_server_bad_text_is_a_settings_error(text: str) -> None:
    with pytest.raises(SettingsError, match="dns server"):
        parse_server(text)
