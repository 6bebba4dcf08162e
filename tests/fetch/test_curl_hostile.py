"""The libcurl adapter against servers that misbehave: each one becomes a response, in bounded time and memory."""

import asyncio
import random
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import msgspec
import pytest
from rig import QUICK, UNHURRIED, Rig, with_rig
from rough_server import Act, Line, drips, says

from lycosa.fetch.downloader import TransferLimits
from lycosa.fetch.transfer import MANY_PIECES
from lycosa.records import Failure, Response, Truncation

OK = b"HTTP/1.1 200 OK\r\n"
LENGTH_100 = OK + b"Content-Length: 100\r\n\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


def ask(act: Act, check: Callable[[Response], None], *, limits: TransferLimits = UNHURRIED) -> None:
    async def work(rig: Rig) -> None:
        rig.server.acts["/bad"] = act
        check(await rig.get("/bad"))
        assert (await rig.get("/good")).body == b"hello"

    with_rig(work, limits)


@pytest.mark.parametrize(
    ("act", "failure", "truncated", "body"),
    [
        (says(b"", then=Line.hang_up), Failure.RESET, None, b""),
        (says(b"", then=Line.reset), Failure.RESET, None, b""),
        (says(b"HTTP/1.1 200 OK\r\nContent-Le", then=Line.hang_up), Failure.RESET, None, b""),
        (says(LENGTH_100 + b"part", then=Line.hang_up), Failure.RESET, Truncation.DISCONNECT, b"part"),
        (says(LENGTH_100 + b"part", then=Line.reset), Failure.RESET, Truncation.DISCONNECT, b"part"),
        (says(CHUNKED + b"4\r\npart\r\n", then=Line.hang_up), Failure.RESET, Truncation.DISCONNECT, b"part"),
        (says(CHUNKED + b"4\r\npart\r\nZZ\r\n", hangs=True), Failure.PROTOCOL, Truncation.DISCONNECT, b"part"),
        (says(CHUNKED + b"fffffffffffffffffff\r\n", hangs=True), Failure.PROTOCOL, Truncation.DISCONNECT, b""),
        (says(OK + b"Content-Length: -5\r\n\r\n", hangs=True), Failure.PROTOCOL, None, b""),
        (says(OK + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", hangs=True), Failure.PROTOCOL, None, b""),
        (says(b"SSH-2.0-OpenSSH_9.0\r\n", hangs=True), Failure.PROTOCOL, None, b""),
        (says(b"<html>no headers at all</html>", then=Line.hang_up), Failure.PROTOCOL, None, b""),
        (says(b"\x15\x03\x01\x00\x02\x02\x28", then=Line.hang_up), Failure.PROTOCOL, None, b""),
        (says(b"HTTP/9.9 200 OK\r\n\r\n", hangs=True), Failure.PROTOCOL, None, b""),
        (says(b"HTTP/1.1 2\x0000 OK\r\n\r\n", hangs=True), Failure.PROTOCOL, None, b""),
        (says(b"HTTP/1.1\t200 OK\r\nContent-Length: 2\r\n\r\nno"), Failure.PROTOCOL, None, b""),
        (says(b"HTTP/1.1 2000 OK\r\nContent-Length: 2\r\n\r\nno"), Failure.PROTOCOL, None, b""),
    ],
)
def test_curl_broken_answer_is_a_failure_with_what_was_read(
    act: Act, failure: Failure, truncated: Truncation | None, body: bytes
) -> None:
    def check(response: Response) -> None:
        assert (response.failure, response.truncated, response.body) == (failure, truncated, body), response.detail
        assert response.detail
        assert bool(response.status) == bool(response.header_block)

    ask(act, check)


def test_curl_body_longer_than_its_length_is_read_to_its_length() -> None:
    ask(
        says(OK + b"Content-Length: 4\r\nConnection: close\r\n\r\nbodyANDMORE", then=Line.hang_up),
        lambda response: _is_whole(response, b"body"),
    )


def _is_whole(response: Response, body: bytes) -> None:
    assert (response.failure, response.truncated, response.body) == (None, None, body)


@pytest.mark.parametrize("head", [OK + b"\r\n", CHUNKED, OK + b"Content-Length: 999999999999\r\n\r\n"])
def test_curl_endless_body_is_cut_at_the_limit_exactly(head: bytes) -> None:
    piece = b"x" * 7_000
    piece = b"%x\r\n%s\r\n" % (len(piece), piece) if head is CHUNKED else piece

    def check(response: Response) -> None:
        assert (response.status, response.failure, response.truncated) == (200, None, Truncation.LENGTH)
        assert response.body == b"x" * UNHURRIED.body_bytes

    ask(drips(head, piece, every_s=0), check)


def test_curl_body_of_tiny_chunks_is_whole_in_order_and_cut_when_there_are_too_many() -> None:
    digits = b"".join(b"%d" % (number % 10) for number in range(5_000))
    few = b"".join(b"1\r\n%c\r\n" % digit for digit in digits) + b"0\r\n\r\n"
    limits = TransferLimits(body_bytes=10_000_000)
    ask(says(CHUNKED + few), lambda response: _is_whole(response, digits), limits=limits)

    def check(response: Response) -> None:
        assert (response.failure, response.truncated) == (None, Truncation.LENGTH)
        assert MANY_PIECES < len(response.body) < 2 * MANY_PIECES

    ask(drips(CHUNKED, b"1\r\nx\r\n" * 10_000, every_s=0), check, limits=limits)


def test_curl_body_of_exactly_the_limit_is_whole() -> None:
    body = b"x" * UNHURRIED.body_bytes
    ask(says(OK + b"Content-Length: %d\r\n\r\n" % len(body) + body), lambda response: _is_whole(response, body))


def test_curl_limit_of_the_request_replaces_the_usual_one() -> None:
    async def work(rig: Rig) -> None:
        body = b"x" * (UNHURRIED.body_bytes * 2)
        rig.server.acts["/"] = says(OK + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        more, less = await rig.get("/", body_limit_bytes=10**6), await rig.get("/", body_limit_bytes=10)

        assert (len(more.body), more.truncated) == (len(body), None)
        assert (less.body, less.truncated) == (b"x" * 10, Truncation.LENGTH)

    with_rig(work)


@pytest.mark.parametrize(
    "act",
    [
        drips(OK, b"X-Flood: " + b"y" * 1_000 + b"\r\n", every_s=0),
        drips(OK + b"X-Long: ", b"y" * 4_000, every_s=0),
        drips(b"", b"HTTP/1.1 103 Early Hints\r\nLink: </" + b"y" * 1_000 + b">\r\n\r\n", every_s=0),
    ],
)
def test_curl_flood_of_headers_is_stopped(act: Act) -> None:
    def check(response: Response) -> None:
        assert response.failure is Failure.HEADERS_TOO_LARGE

    ask(act, check)


def test_curl_server_that_never_answers_ends_by_the_first_byte_clock() -> None:
    def check(response: Response) -> None:
        assert (response.failure, response.status) == (Failure.FIRST_BYTE_TIMEOUT, 0)
        assert response.ended_s - response.started_s >= QUICK.first_byte_s

    ask(says(b"", hangs=True), check, limits=QUICK)


def test_curl_server_that_stops_in_the_body_ends_by_the_idle_clock() -> None:
    def check(response: Response) -> None:
        assert (response.failure, response.truncated) == (Failure.IDLE_TIMEOUT, Truncation.TIME)
        assert (response.status, response.body) == (200, b"part")

    ask(says(LENGTH_100 + b"part", hangs=True), check, limits=QUICK)


def test_curl_server_that_stops_in_the_headers_ends_by_the_idle_clock() -> None:
    def check(response: Response) -> None:
        assert (response.failure, response.truncated, response.status) == (Failure.IDLE_TIMEOUT, None, 0)

    ask(says(OK + b"Server: slow\r\n", hangs=True), check, limits=QUICK)


@pytest.mark.parametrize(
    "act",
    [
        drips(LENGTH_100, b".", every_s=0.05),
        drips(OK, b"X: y\r\n", every_s=0.05),
        drips(b"", OK + b"\r\n.", every_s=0.05),
    ],
)
def test_curl_server_that_drips_ends_by_the_total_clock(act: Act) -> None:
    def check(response: Response) -> None:
        assert response.failure is Failure.TOTAL_TIMEOUT
        assert response.ended_s - response.started_s >= 0.6

    ask(act, check, limits=TransferLimits(connect_s=60, first_byte_s=60, idle_s=60, total_s=0.6))


@contextmanager
def full_listener() -> Iterator[int]:
    """A port whose queue of connections is full: a further one gets no answer at all."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        waiting = []
        for _ in range(4):
            client = socket.socket()
            client.setblocking(False)
            client.connect_ex(listener.getsockname())
            waiting.append(client)
        try:
            yield listener.getsockname()[1]
        finally:
            for client in waiting:
                client.close()


def test_curl_host_that_does_not_accept_ends_by_the_connect_clock() -> None:
    async def work(rig: Rig) -> None:
        with full_listener() as port:
            response = await rig.get("/", port=port)

        assert response.failure is Failure.CONNECT_TIMEOUT
        assert response.ended_s - response.started_s >= QUICK.connect_s - 0.002  # libcurl counts milliseconds

    with_rig(work, QUICK)


def test_curl_tls_handshake_that_hangs_ends_by_the_connect_clock() -> None:
    async def work(rig: Rig) -> None:
        response = await rig.get("/", scheme="https")

        assert response.failure is Failure.CONNECT_TIMEOUT

    with_rig(work, QUICK)


def test_curl_closed_port_is_a_failure_to_connect() -> None:
    async def work(rig: Rig) -> None:
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            response = await rig.get("/", port=unused.getsockname()[1])

        assert response.failure is Failure.CONNECT
        assert response.detail

    with_rig(work)


def trickling(body: bytes) -> Callable[[Line], Awaitable[None]]:
    async def trickle(line: Line) -> None:
        await line.say(OK + b"Content-Length: %d\r\n\r\n" % len(body))
        for start in range(0, len(body), 5_000):
            await line.say(body[start : start + 5_000])
            await asyncio.sleep(0.005)

    return trickle


async def fails_as(rig: Rig, path: str) -> Failure | None:
    return (await rig.get(path)).failure


async def arrives_as(body: bytes, rig: Rig) -> bool:
    return (await rig.get("/")).body == body


def test_curl_bodies_beyond_the_memory_wait_for_each_other_and_all_arrive() -> None:
    limits = TransferLimits(
        body_bytes=60_000, in_flight_bytes=480_000, small_bytes=2_400, idle_s=2.0, first_byte_s=20.0
    )
    body = bytes(range(250)) * 200

    async def work(rig: Rig) -> None:
        rig.server.acts["/"] = trickling(body)
        answers = [asyncio.ensure_future(arrives_as(body, rig)) for _ in range(60)]
        most_bytes = most_paused = 0
        while not all(answer.done() for answer in answers):
            stats = rig.downloader.stats()
            most_bytes, most_paused = max(most_bytes, stats.in_flight_bytes), max(most_paused, stats.paused)
            await asyncio.sleep(0.002)

        assert [answer.result() for answer in answers] == [True] * 60
        assert most_bytes <= limits.in_flight_bytes
        assert most_paused > 10

    with_rig(work, limits)


def test_curl_large_bodies_wait_while_nobody_reads_those_that_came() -> None:
    limits = TransferLimits(
        body_bytes=60_000, in_flight_bytes=480_000, unread_bytes=72_000, small_bytes=2_400, total_s=120.0
    )
    body = bytes(range(250)) * 200

    async def work(rig: Rig) -> None:
        rig.server.acts["/"] = trickling(body)
        rig.server.acts["/small"] = says(OK + b"Content-Length: 5\r\n\r\nhello")
        unread = [await rig.get("/") for _ in range(2)]
        waiting = [asyncio.ensure_future(arrives_as(body, rig)) for _ in range(8)]
        async with asyncio.timeout(60):
            while rig.downloader.stats().paused < 8:  # noqa: ASYNC110 -- nobody tells
                await asyncio.sleep(0.002)

            assert (await rig.get("/small")).body == b"hello"  # large ones that drip do not stop small ones
            unread[:] = [msgspec.structs.replace(each, body=b"") for each in unread]  # it counts as before
            await asyncio.sleep(0.01)
            assert rig.downloader._flow.unread_bytes == 2 * len(body)
            unread.clear()
            assert await asyncio.gather(*waiting) == [True] * 8

    with_rig(work, limits)


@pytest.mark.parametrize("long_s", [0.05, 60.0])
def test_curl_connection_that_breaks_after_a_long_hold_says_so(monkeypatch: pytest.MonkeyPatch, long_s: float) -> None:
    monkeypatch.setattr("lycosa.fetch.transfer.LONG_HOLD_S", long_s)
    limits = TransferLimits(
        body_bytes=60_000, in_flight_bytes=480_000, unread_bytes=10_000, small_bytes=2_400, total_s=120.0
    )

    async def work(rig: Rig) -> None:
        gives_up = asyncio.Event()

        async def send_a_part(line: Line) -> None:
            await line.say(OK + b"Content-Length: 50000\r\n\r\n" + b"x" * 20_000)
            await gives_up.wait()
            await line.hang_up()

        rig.server.acts["/whole"] = says(OK + b"Content-Length: 20000\r\n\r\n" + b"x" * 20_000)
        rig.server.acts["/part"] = send_a_part
        unread = [await rig.get("/whole")]
        asked = asyncio.ensure_future(rig.get("/part"))
        while not rig.downloader.stats().paused:  # noqa: ASYNC110 -- nobody tells
            await asyncio.sleep(0.002)
        await asyncio.sleep(0.1)
        gives_up.set()
        unread.clear()
        broken = await asked

        assert (broken.failure, broken.truncated) == (Failure.RESET, Truncation.DISCONNECT)
        assert broken.was_held == (long_s < 1)
        assert not (await rig.get("/good")).was_held

    with_rig(work, limits)


@pytest.mark.slow
def test_curl_slow_transfers_cannot_block_the_memory_for_ever() -> None:
    limits = TransferLimits(body_bytes=50_000, in_flight_bytes=100_000, small_bytes=500, idle_s=0.8, total_s=120.0)

    async def work(rig: Rig) -> None:
        rig.server.acts["/stuck"] = says(OK + b"Content-Length: 50000\r\n\r\n" + b"x" * 20_000, hangs=True)
        stuck = [asyncio.ensure_future(fails_as(rig, "/stuck")) for _ in range(20)]
        await asyncio.sleep(0.1)
        good = await rig.get("/good")

        assert good.body == b"hello"
        assert {await answer for answer in stuck} == {Failure.IDLE_TIMEOUT}

    with_rig(work, limits)


@pytest.mark.slow
def test_curl_bandwidth_is_kept_and_shared_evenly() -> None:
    rate_bytes_s = 400_000
    limits = TransferLimits(bandwidth_bytes_s=rate_bytes_s)
    body = b"x" * 150_000

    async def work(rig: Rig) -> None:
        rig.server.acts["/"] = says(OK + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        responses = await asyncio.gather(*(rig.get("/") for _ in range(4)))
        took_s = max(response.ended_s for response in responses) - min(response.started_s for response in responses)
        ends = sorted(response.ended_s - response.started_s for response in responses)

        assert all(response.body == body for response in responses)
        assert took_s >= 0.8 * 600_000 / rate_bytes_s  # a busy machine takes longer
        assert ends[0] > 0.4 * ends[-1]

    with_rig(work, limits)


@pytest.mark.slow
def test_curl_thousands_of_slow_transfers_run_at_once() -> None:
    async def slow(line: Line) -> None:
        await asyncio.sleep(0.5)
        await line.say(OK + b"Content-Length: 2\r\n\r\nok")

    async def work(rig: Rig) -> None:
        rig.server.acts["/"] = slow
        responses = await asyncio.gather(*(rig.get("/") for _ in range(2_000)))

        assert {response.body for response in responses} == {b"ok"}

    with_rig(work, TransferLimits())


@pytest.mark.slow
def test_curl_any_mixture_of_servers_answers_each_request_once() -> None:
    limits = TransferLimits(
        connect_s=2, first_byte_s=0.8, idle_s=0.8, total_s=2, body_bytes=20_000, in_flight_bytes=150_000
    )
    acts = [
        says(b"", then=Line.hang_up),
        says(b"", then=Line.reset),
        says(b"", hangs=True),
        says(LENGTH_100 + b"part", then=Line.reset),
        says(LENGTH_100 + b"part", hangs=True),
        says(CHUNKED + b"ZZ\r\n", then=Line.hang_up),
        says(OK + b"Content-Length: 15000\r\n\r\n" + b"x" * 15_000),
        says(OK + b"Connection: close\r\nContent-Length: 2\r\n\r\nok", then=Line.hang_up),
        drips(OK + b"\r\n", b"x" * 3_000, every_s=0.001),
        drips(OK, b"X: y\r\n", every_s=0.01),
    ]

    async def work(rig: Rig) -> None:
        chance = random.Random(7)
        heard: list[str] = []
        wanted = [f"/{number}" for number in range(800)]
        rig.server.acts = {path: chance.choice(acts) for path in wanted if chance.random() < 0.8}
        waiting = list(wanted)
        finished = asyncio.Event()

        def done(response: Response) -> None:
            heard.append("/" + response.url.rpartition("/")[2])
            if waiting:
                rig.downloader.start(rig.request(waiting.pop()), done)
            elif len(heard) == len(wanted):
                finished.set()

        for _ in range(100):
            rig.downloader.start(rig.request(waiting.pop()), done)
        await asyncio.wait_for(finished.wait(), 120)
        await asyncio.sleep(0.1)

        assert sorted(heard) == sorted(wanted)
        assert (await rig.get("/good")).body == b"hello"

    with_rig(work, limits)
