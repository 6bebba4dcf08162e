"""What the store's tests share: conformance data, a fetched page, and a small disk that can fill up."""

import os
from pathlib import Path

import pytest

from lycosa.records import Request, Response

BESIDE = Path(__file__).parents[3] / "shared" / "conformance"


@pytest.fixture(scope="session")
def conformance() -> Path:
    """The conformance data beside the repository, or where LYCOSA_CONFORMANCE says."""
    folder = BESIDE if BESIDE.is_dir() else Path(os.environ.get("LYCOSA_CONFORMANCE", "missing"))
    if not folder.is_dir():
        pytest.skip("no conformance data: set LYCOSA_CONFORMANCE to its folder")
    return folder


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
