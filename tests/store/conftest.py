"""What the store's tests share: a fetched page, and both ways to make its records."""

from collections.abc import Iterator

import pytest

from lycosa.records import Request, Response
from lycosa.store import warc_record


@pytest.fixture
def request_sent() -> Request:
    return Request(
        url="https://www.example.org:8443/a/b?c=d",
        host="www.example.org",
        port=8443,
        address="192.0.2.7",
        headers=(("User-Agent", "lycosa"), ("Accept", "*/*")),
    )


@pytest.fixture
def response_got(request_sent: Request) -> Response:
    body = b"<html>" + b"hello " * 100 + b"</html>"
    return Response(
        url=request_sent.url,
        status=200,
        header_block=b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(body),
        body=body,
        address="192.0.2.7",
    )


@pytest.fixture(params=["python", "native"], scope="module")
def each_kernel(request: pytest.FixtureRequest) -> Iterator[str]:
    """Both ways to make records; without the native kernel its half is skipped."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "python":
            patch.setattr(warc_record, "member_writer", lambda: None)
        elif warc_record.member_writer() is None:
            pytest.skip("the native kernel is not installed")
        yield request.param
