"""The libcurl adapter: what is sent, what comes back, and what is never done."""

import asyncio
import gzip
import pickle
import sys
from typing import Any

import pytest
from rig import QUICK, Rig, with_rig
from rough_server import Line, page, rough_server, says

from lycosa.fetch.curl import raise_descriptor_limit
from lycosa.fetch.downloader import SchemeDownloader, request_fields
from lycosa.records import Failure, PrivateParts, Request, Response

FIELDS = request_fields("Lycosa/1.0 (+https://example.org/bot)")


def test_curl_good_page_comes_back_whole() -> None:
    async def work(rig: Rig) -> None:
        rig.server.acts["/a"] = page(b"<p>hi</p>", fields="Content-Type: text/html\r\nX-Twice: 1\r\nx-twice: 2\r\n")
        response = await rig.get("/a")

        assert (response.status, response.body, response.failure, response.truncated) == (200, b"<p>hi</p>", None, None)
        assert response.header_block.startswith(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n")
        assert response.header_block.endswith(b"x-twice: 2\r\n\r\n")
        assert response.headers == {"content-length": "9", "content-type": "text/html", "x-twice": "1, 2"}
        assert response.address == "127.0.0.1"
        assert 0 < response.started_s <= response.first_byte_s <= response.ended_s
        assert pickle.loads(pickle.dumps(response)) == response

    with_rig(work)


@pytest.mark.parametrize("size", [2_000, 90_000])
def test_curl_body_is_held_by_its_response_alone(size: int) -> None:
    async def work(rig: Rig) -> None:
        rig.server.acts["/a"] = page(b"x" * size)
        response = await rig.get("/a")
        body = response.body

        assert len(body) == size
        assert sys.getrefcount(body) == 3  # here, in the response, and as an argument

    with_rig(work)


def test_curl_headers_are_sent_exactly_as_given() -> None:
    async def work(rig: Rig) -> None:
        await rig.get("/a?b=c", headers=(*FIELDS, ("X-Empty", ""), ("X-Latin", "é")))
        await rig.get("/", headers=())

        host = f"Host: site.example:{rig.server.port}\r\n".encode()
        lines = "".join(f"{name}: {value}\r\n" for name, value in FIELDS).encode()
        assert rig.server.heads[0] == (b"GET /a?b=c HTTP/1.1\r\n" + host + lines + b"X-Empty:\r\nX-Latin: \xe9\r\n\r\n")
        assert rig.server.heads[1] == b"GET / HTTP/1.1\r\n" + host + b"\r\n"

    with_rig(work)


@pytest.mark.parametrize(
    "target", ["/a|b[c]^~'", "/%2e%2e/%41?q={a}|^`\\", "/a//b/./c/../d", "/?", "/a;b=c,d@e:f!$&()*+", "/" + "x" * 4_000]
)
def test_curl_path_and_query_are_sent_as_they_are(target: str) -> None:
    async def work(rig: Rig) -> None:
        await rig.get(target)

        assert rig.server.heads[0].split(b" ")[1].decode() == target

    with_rig(work)


def test_curl_handle_used_again_carries_nothing_over() -> None:
    async def work(rig: Rig) -> None:
        rig.server.acts["/cookie"] = page(fields="Set-Cookie: a=b\r\nWWW-Authenticate: Basic\r\n", status="401 No")
        rig.server.acts["/head"] = says(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
        await rig.get("/cookie", headers=(*FIELDS, ("If-None-Match", '"x"')))
        head = await rig.get("/head", method="HEAD", headers=FIELDS)
        last = await rig.get("/", headers=FIELDS)

        assert (head.status, head.body) == (200, b"")
        assert last.body == b"hello"
        assert [line.split(b" ")[0] for line in rig.server.heads] == [b"GET", b"HEAD", b"GET"]
        assert b"If-None-Match" in rig.server.heads[0]
        assert not any(word in rig.server.heads[2] for word in (b"If-None-Match", b"Cookie", b"Authorization"))
        assert rig.server.lines == 1

    with_rig(work)


def test_curl_redirect_is_an_answer_and_not_followed() -> None:
    async def work(rig: Rig) -> None:
        rig.server.acts["/old"] = page(b"", status="302 Found", fields="Location: /new\r\n")
        response = await rig.get("/old")

        assert (response.status, response.headers["location"]) == (302, "/new")
        assert len(rig.server.heads) == 1

    with_rig(work)


def test_curl_body_stays_content_coded() -> None:
    async def work(rig: Rig) -> None:
        packed = gzip.compress(b"text" * 100)
        rig.server.acts["/"] = page(packed, fields="Content-Encoding: gzip\r\n")

        assert (await rig.get("/", headers=FIELDS)).body == packed

    with_rig(work)


def test_curl_informational_answers_are_left_out() -> None:
    async def work(rig: Rig) -> None:
        early = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
        rig.server.acts["/"] = says(early + b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        response = await rig.get("/")

        assert response.status == 200
        assert response.header_block == b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"
        assert response.headers == {"content-length": "2"}
        assert response.body == b"ok"

    with_rig(work)


def test_curl_trailers_are_left_out() -> None:
    async def work(rig: Rig) -> None:
        head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        rig.server.acts["/"] = says(head + b"3\r\nabc\r\n2\r\nde\r\n0\r\nX-Late: 1\r\n\r\n")
        response = await rig.get("/")

        assert response.body == b"abcde"
        assert response.header_block == head
        assert "x-late" not in response.headers

    with_rig(work)


def test_curl_body_that_ends_with_the_connection_is_whole() -> None:
    async def work(rig: Rig) -> None:
        rig.server.acts["/"] = says(b"HTTP/1.0 200 OK\r\n\r\nall of it", then=Line.hang_up)
        response = await rig.get("/")

        assert (response.body, response.failure) == (b"all of it", None)

    with_rig(work)


def test_curl_not_modified_has_no_body() -> None:
    async def work(rig: Rig) -> None:
        rig.server.acts["/"] = says(b"HTTP/1.1 304 Not Modified\r\nContent-Length: 500\r\n\r\n")
        first, second = await rig.get("/"), await rig.get("/b")

        assert (first.status, first.body, first.failure) == (304, b"", None)
        assert second.body == b"hello"
        assert rig.server.lines == 1

    with_rig(work)


def test_curl_requests_in_a_row_use_one_connection() -> None:
    async def work(rig: Rig) -> None:
        for _ in range(20):
            assert (await rig.get("/")).failure is None

        assert rig.server.lines == 1
        assert rig.downloader.stats().connections_opened == 1

    with_rig(work)


def test_curl_connections_closed_by_the_server_while_idle_cost_one_request_at_most() -> None:
    async def work(rig: Rig) -> None:
        lines: list[Line] = []

        async def remember(line: Line) -> None:
            lines.append(line)
            await page()(line)

        rig.server.acts["/"] = remember
        failures = []
        for _ in range(6):
            failures.append((await rig.get("/")).failure)
            lines[-1].hang_up()
            await asyncio.sleep(0.02)

        # within a second libcurl does not look whether a connection is still there: one request finds that out
        assert failures[2:] == [None] * 4
        assert failures.count(None) >= 5

    with_rig(work)


def test_curl_request_goes_to_the_pinned_address_whatever_the_url_says() -> None:
    async def work(rig: Rig) -> None:
        for host in ("no-such-name.invalid", "localhost", "8.8.8.8", "[2606:4700::1]"):
            response = await rig.get("/", url=f"http://{host}/", host=host)

            assert (response.status, response.address) == (200, "127.0.0.1")
            assert f"Host: {host}\r\n".encode() in rig.server.heads[-1]

    with_rig(work)


def test_curl_two_addresses_of_one_host_share_no_connection() -> None:
    async def work(rig: Rig) -> None:
        async with rough_server(host="127.0.0.2") as other:
            # the same host and port in the URL, pinned to one server and then to another
            first = await rig.get("/", url="http://site.example/")
            second = await rig.get("/", url="http://site.example/", address="127.0.0.2", port=other.port)
            third = await rig.get("/", url="http://site.example/")

            assert [response.status for response in (first, second, third)] == [200, 200, 200]
            assert (len(rig.server.heads), len(other.heads)) == (2, 1)

    with_rig(work)


def test_curl_peer_that_is_not_the_pinned_one_is_refused_before_the_request() -> None:
    async def work(rig: Rig) -> None:
        start = rig.downloader.start

        def start_then_change_the_pin(request: Request, done: Any) -> None:
            start(request, done)
            (transfer,) = rig.downloader._active.values()
            transfer.request = rig.request("/", address="127.0.0.9")

        rig.downloader.start = start_then_change_the_pin  # type: ignore[method-assign]
        response = await rig.get("/")

        assert response.failure is Failure.ADDRESS_REFUSED
        assert "127.0.0.9" in response.detail
        assert rig.server.heads == []

    with_rig(work)


def test_curl_proxy_of_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")

    async def work(rig: Rig) -> None:
        assert (await rig.get("/")).status == 200

    with_rig(work)


def test_curl_proxy_that_was_set_is_asked_for_the_pinned_address() -> None:
    async def main(rig: Rig) -> None:
        async def tunnel(line: Line) -> None:
            await line.say(b"HTTP/1.1 200 Connection established\r\nX-Proxy: yes\r\n\r\n")

        async with rough_server() as proxy:
            proxy.acts[f"127.0.0.1:{rig.server.port}"] = tunnel
            private = PrivateParts(proxy=f"http://127.0.0.1:{proxy.port}")
            response = await rig.get("/", private=private)

        assert proxy.heads[0].startswith(b"CONNECT 127.0.0.1:")
        assert proxy.heads[1].startswith(b"GET / ")
        assert (response.status, response.body) == (200, b"hello")
        assert "x-proxy" not in response.headers

    with_rig(main)


@pytest.mark.parametrize(
    "changes",
    [
        {"url": "ftp://site.example/"},
        {"url": "file:///etc/passwd"},
        {"url": "not a url"},
        {"url": ""},
        {"url": "http://user:secret@site.example/"},
        {"url": "http://site.example/\u00e9\ud800"},
        {"url": "http://site.example/\0"},
        {"address": "site.example"},
        {"address": ""},
        {"address": "127.0.0.1:80"},
        {"address": "fe80::1%lo"},
        {"port": 0},
        {"port": 99_999},
        {"method": "POST"},
        {"headers": (("X", "a\r\nY: b"),)},
        {"headers": (("X Y", "a"),)},
    ],
)
def test_curl_request_that_cannot_be_sent_is_a_response(changes: dict[str, Any]) -> None:
    async def work(rig: Rig) -> None:
        response = await rig.get("/", **changes)

        assert response.failure is Failure.PROTOCOL
        assert response.detail
        assert rig.server.heads == []
        assert (await rig.get("/")).status == 200

    with_rig(work)


def test_curl_cancel_all_tells_each_one_once() -> None:
    async def work(rig: Rig) -> None:
        rig.server.acts["/hang"] = says(b"", hangs=True)
        responses: list[Response] = []
        for _ in range(10):
            rig.downloader.start(rig.request("/hang"), responses.append)
        await asyncio.sleep(0.05)
        rig.downloader.cancel_all()

        assert [response.failure for response in responses] == [Failure.CANCELLED] * 10
        await asyncio.sleep(0.05)
        assert len(responses) == 10
        assert (await rig.get("/")).status == 200

    with_rig(work)


def test_curl_closed_downloader_answers_cancelled() -> None:
    async def work(rig: Rig) -> None:
        responses: list[Response] = []
        rig.downloader.start(rig.request("/"), responses.append)
        await rig.downloader.close()

        assert [response.failure for response in responses] == [Failure.CANCELLED]
        assert (await rig.get("/")).failure is Failure.CANCELLED

    with_rig(work)


def test_curl_done_may_start_and_raise_and_others_still_hear() -> None:
    async def work(rig: Rig) -> None:
        heard: list[str] = []
        complaints: list[dict[str, Any]] = []
        finished = asyncio.Event()
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))

        def again(response: Response) -> None:
            heard.append("again")
            if heard.count("again") < 50:
                rig.downloader.start(rig.request("/"), again)
            else:
                finished.set()
            raise RuntimeError("a bug in done")

        for _ in range(5):
            rig.downloader.start(rig.request("/"), again)
        await asyncio.wait_for(finished.wait(), 60)
        await asyncio.sleep(0.1)

        assert len(heard) >= 50
        assert len(complaints) == len(heard)

    with_rig(work)


def test_curl_hook_is_asked_at_the_end_of_the_headers() -> None:
    asked: list[tuple[int, str]] = []

    def accepts(status: int, headers: dict[str, str]) -> bool:
        asked.append((status, headers["content-type"]))
        return headers["content-type"] == "text/html"

    async def work(rig: Rig) -> None:
        rig.server.acts["/page"] = page(fields="Content-Type: text/html\r\n")
        rig.server.acts["/film"] = says(b"HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\n\r\n", hangs=True)
        wanted, unwanted = await rig.get("/page"), await rig.get("/film")
        anyway = await rig.get("/film", takes_any_type=True)

        assert (wanted.body, wanted.truncated) == (b"hello", None)
        assert (unwanted.status, unwanted.truncated, unwanted.failure) == (200, "unspecified", None)
        assert unwanted.body == b""
        assert unwanted.headers["content-type"] == "video/mp4"
        assert anyway.failure is Failure.IDLE_TIMEOUT
        assert asked == [(200, "text/html"), (200, "video/mp4")]

    with_rig(work, QUICK, accepts=accepts)


def test_curl_hook_that_raises_is_a_failure_of_that_request_only() -> None:
    def accepts(status: int, headers: dict[str, str]) -> bool:
        return headers["content-type"] == "text/html"

    async def work(rig: Rig) -> None:
        response = await rig.get("/")  # has no content type

        assert response.failure is Failure.PROTOCOL
        assert "KeyError" in response.detail

    with_rig(work, accepts=accepts)


def test_by_scheme_chooses_and_answers_for_unknown_schemes() -> None:
    async def work(rig: Rig) -> None:
        both = SchemeDownloader({"http": rig.downloader, "https": rig.downloader})
        future: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        both.start(rig.request("/"), future.set_result)
        assert (await future).status == 200

        future = asyncio.get_running_loop().create_future()
        both.start(rig.request("/", url="gopher://site.example/"), future.set_result)
        assert (await future).failure is Failure.PROTOCOL
        assert both.stats() == rig.downloader.stats()
        await both.close()

    with_rig(work)


def test_raise_descriptor_limit_gives_what_the_process_may_have() -> None:
    assert raise_descriptor_limit() >= 64
    assert raise_descriptor_limit() == raise_descriptor_limit()


def test_curl_reused_connection_that_breaks_is_not_asked_again_at_once() -> None:
    async def work(rig: Rig) -> None:
        async def reset(line: Line) -> None:
            line.reset()

        rig.server.acts["/bad"] = reset
        assert (await rig.get("/")).failure is None
        response = await rig.get("/bad")

        assert response.failure is Failure.RESET
        assert sum(b"/bad" in head for head in rig.server.heads) == 1

    with_rig(work)
