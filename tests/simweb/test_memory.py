"""The web without sockets: same bytes, virtual time, failures told as a client tells them."""

import asyncio

import pytest

from lycosa.records import Failure, Request, Response, Truncation
from lycosa.simweb import SimSettings, SimWeb
from lycosa.simweb.layout import PagePlace
from lycosa.simweb.log import AuditRules, audit
from lycosa.simweb.memory import ClientLimits, MemoryWeb, run_virtual


def request(url: str, host: str = "h0.sim") -> Request:
    return Request(url=url, host=host, port=8800, address="127.1.0.1", headers=(("User-Agent", "lycosa"),))


async def fetch(memory: MemoryWeb, url: str) -> Response:
    future: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
    memory.start(request(url), future.set_result)
    return await future


def test_memory_web_gives_the_generators_bytes(web: SimWeb) -> None:
    async def main() -> Response:
        return await fetch(MemoryWeb(web), "http://h3.sim:8800/")

    response = run_virtual(main())
    assert response.body == web.answer(3, "/").body
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert response.header_block.startswith(b"HTTP/1.1 200 OK\r\n")


def test_an_hour_of_waiting_takes_no_time() -> None:
    async def main() -> float:
        await asyncio.sleep(3600)
        return asyncio.get_running_loop().time()

    assert run_virtual(main()) == pytest.approx(3600)


def test_network_model_takes_virtual_time_and_more_on_a_new_connection() -> None:
    web = SimWeb(SimSettings(hosts=1, pages=40, rtt_ms=200, bandwidth_bytes_s=10_000))

    async def main() -> list[Response]:
        memory = MemoryWeb(web)
        return [await fetch(memory, "http://h0.sim:8800/") for _ in range(2)]

    cold, warm = run_virtual(main())
    transfer = (len(cold.header_block) + len(cold.body)) / 10_000
    assert cold.first_byte_s - cold.started_s == pytest.approx(0.4)
    assert warm.first_byte_s - warm.started_s == pytest.approx(0.2)
    assert cold.ended_s - cold.first_byte_s == pytest.approx(transfer)
    assert warm.ended_s - warm.first_byte_s == pytest.approx(transfer)


def test_transfers_of_a_host_share_its_bandwidth_and_hosts_do_not() -> None:
    web = SimWeb(SimSettings(hosts=2, pages=80, bandwidth_bytes_s=10_000))

    async def main(hosts: tuple[int, int]) -> tuple[float, float]:
        memory = MemoryWeb(web)
        one, other = await asyncio.gather(*(fetch(memory, f"http://h{host}.sim:8800/") for host in hosts))
        return max(one.ended_s, other.ended_s), (len(one.header_block + one.body)) / 10_000

    ended, transfer = run_virtual(main((0, 0)))
    assert ended == pytest.approx(2 * transfer)
    assert run_virtual(main((0, 1)))[0] < 2 * transfer


def test_transfers_of_all_hosts_share_the_clients_line() -> None:
    web = SimWeb(SimSettings(hosts=2, pages=80, line_bytes_s=10_000))

    async def main() -> list[Response]:
        memory = MemoryWeb(web)
        return await asyncio.gather(*(fetch(memory, f"http://h{host}.sim:8800/") for host in range(2)))

    responses = run_virtual(main())
    size = sum(len(response.header_block + response.body) for response in responses)
    assert max(response.ended_s for response in responses) == pytest.approx(size / 10_000)


def test_slow_transfer_is_cut_at_the_clients_limit() -> None:
    web = SimWeb(SimSettings(hosts=1, pages=40, bandwidth_bytes_s=100))

    async def main() -> Response:
        return await fetch(MemoryWeb(web, limits=ClientLimits(total_s=20)), "http://h0.sim:8800/")

    response = run_virtual(main())
    assert response.failure is Failure.TOTAL_TIMEOUT
    assert response.ended_s == pytest.approx(20)
    assert 1500 < len(response.body) < 2000


def test_bytes_in_the_log_are_those_of_head_and_body(web: SimWeb) -> None:
    async def main() -> tuple[Response, MemoryWeb]:
        memory = MemoryWeb(web)
        return await fetch(memory, "http://h0.sim:8800/"), memory

    response, memory = run_virtual(main())
    assert memory.entries[0].bytes == len(response.header_block) + len(response.body)


@pytest.mark.parametrize(
    ("trouble", "failure", "truncated", "seconds"),
    [
        ("hang", Failure.FIRST_BYTE_TIMEOUT, None, 30),
        ("drip", Failure.TOTAL_TIMEOUT, None, 300),
        ("reset", Failure.RESET, None, 0),
        ("header-flood", Failure.HEADERS_TOO_LARGE, None, 0),
        ("truncated", None, Truncation.DISCONNECT, 0),
        ("endless", None, Truncation.LENGTH, 0),
        ("huge", None, Truncation.LENGTH, 0),
    ],
)
def test_trouble_comes_back_as_a_client_would_tell_it(
    trouble: str, failure: Failure | None, truncated: Truncation | None, seconds: float
) -> None:
    web = SimWeb(SimSettings(hosts=1, pages=40, trouble={trouble: 1.0}))

    async def main() -> Response:
        return await fetch(MemoryWeb(web), f"http://h0.sim:8800/{web.layout.folder(0, 0).name(1)}")

    response = run_virtual(main())
    assert (response.failure, response.truncated) == (failure, truncated)
    assert response.ended_s - response.started_s == pytest.approx(seconds)


def test_names_resolve_and_fail_as_over_dns() -> None:
    web = SimWeb(SimSettings(hosts=40, pages=400, dns={"servfail": 0.3}))

    async def main() -> list[Failure | None]:
        memory = MemoryWeb(web)
        unknown = await memory.resolve("example.org")
        assert unknown.failure is Failure.NO_SUCH_HOST
        answers = [await memory.resolve(f"h{i}.sim") for i in range(40)]
        assert all(a.failure or a.addresses == (web.layout.address_of(i),) for i, a in enumerate(answers))
        return [a.failure for a in answers]

    failures = run_virtual(main())
    assert 3 < sum(f is Failure.DNS for f in failures) < 25


@pytest.mark.slow
def test_two_thousand_pages_are_fetched_politely_on_virtual_time() -> None:
    web = SimWeb(SimSettings(hosts=40, pages=4_000, addresses=40, sizes="uniform", robots={"rules": 0}))

    async def one_host(memory: MemoryWeb, host: int) -> None:
        origin, address = web.linker.origin(host), web.layout.address_of(host)
        places = [PagePlace(host, index, page) for index in range(4) for page in range(32)][:49]
        for path in ["/robots.txt", *map(web.layout.path_of, places)]:
            future: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
            memory.start(Request(origin + path, f"h{host}.sim", 8800, address), future.set_result)
            await future
            await asyncio.sleep(1)  # virtual

    async def main() -> MemoryWeb:
        memory = MemoryWeb(web)
        await asyncio.gather(*(one_host(memory, host) for host in range(40)))
        return memory

    memory = run_virtual(main())
    findings = audit(web.settings, memory.entries, AuditRules(delay_s=1.0))
    assert findings.requests == 2_000
    assert sum(entry.status == 200 for entry in memory.entries) >= 1_960
    assert findings.is_clean


def test_cancelled_requests_are_told_and_logged(web: SimWeb) -> None:
    async def main() -> list[Response]:
        memory, outcomes = MemoryWeb(web), list[Response]()
        memory.start(request("http://h0.sim:8800/"), outcomes.append)
        await memory.close()
        assert memory.stats() == {"open": 0, "requests": 1}
        return outcomes

    assert [r.failure for r in run_virtual(main())] == [Failure.CANCELLED]


def test_clock_that_nothing_can_move_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lycosa.simweb.memory.STUCK_S", 0.05)

    async def main() -> None:
        await asyncio.Event().wait()

    with pytest.raises(RuntimeError, match="stands still"):
        run_virtual(main())
