"""The middleware: tables for applications that have none, through real WSGI and ASGI calls."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any
from wsgiref.util import setup_testing_defaults
from wsgiref.validate import validator

import pytest

from lycosa.tables import serving as asgi
from lycosa.tables import serving as wsgi
from lycosa.tables.formats import Tol, Tvi, parse_tol, parse_tvi, patch_document

PAGES = {
    "/": b'<a href="/page">Page</a>',
    "/page": b'<a href="/">Home</a><span data-vol="1">17</span>',
    "/both": b'<span data-vol="1">17</span><i class="v">18</i><b class="v">19<span data-vol="2">20</span></b>',
    "/own.tol": b"the application's own",
}


def wsgi_application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    body = PAGES.get(environ["PATH_INFO"])
    if body is None:
        start_response("404 Not Found", [("Content-Type", "text/html")])
        return [b"<a href=/>nothing here</a>"]
    start_response("200 OK", [("Content-Type", "text/html; charset=utf-8"), ("Content-Length", str(len(body)))])
    return [body]


async def asgi_application(scope: Any, receive: Any, send: Any) -> None:
    body = PAGES.get(scope["path"])
    status = 404 if body is None else 200
    headers = [(b"content-type", b"text/html; charset=utf-8")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": (body or b"x")[:5], "more_body": True})
    await send({"type": "http.response.body", "body": (body or b"x")[5:]})


def ask_wsgi(path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
    application = validator(wsgi.WsgiTables(validator(wsgi_application), volatile=".v"))  # type: ignore[arg-type]
    environ: dict[str, Any] = {"PATH_INFO": path, "REQUEST_METHOD": method, "QUERY_STRING": "", "SCRIPT_NAME": ""}
    environ |= {f"HTTP_{name.upper()}": value for name, value in headers.items()}
    setup_testing_defaults(environ)
    began: list[tuple[str, list[tuple[str, str]]]] = []

    def start(status: str, fields: list[tuple[str, str]], exc_info: object = None) -> Callable[[bytes], object]:
        began.append((status, fields))
        return lambda piece: None

    answer = application(environ, start)
    body = b"".join(answer)
    answer.close()  # type: ignore[attr-defined]
    status, fields = began[-1]
    return int(status[:3]), {name.lower(): value for name, value in fields}, body


def ask_asgi(path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    fields = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "path": path, "method": method, "headers": fields, "query_string": b""}
    asyncio.run(asgi.AsgiTables(asgi_application, volatile=".v")(scope, receive, send))
    found = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], found, b"".join(message.get("body", b"") for message in sent[1:])


@pytest.fixture(params=[ask_wsgi, ask_asgi])
def ask(request: pytest.FixtureRequest) -> Callable[..., tuple[int, dict[str, str], bytes]]:
    return request.param  # type: ignore[no-any-return]


def test_documents_tell_of_their_table_and_stay_as_they_are(ask: Any) -> None:
    status, headers, body = ask("/page")
    assert (status, body) == (200, PAGES["/page"])
    assert headers["link"] == '<page.tol>; rel="table-of-links"'
    assert ask("/")[1]["link"] == '<./index.tol>; rel="table-of-links"'
    assert "link" not in ask("/missing")[1]


def test_tables_are_those_of_the_document(ask: Any) -> None:
    status, headers, body = ask("/page.tol")
    found = parse_tol(body)
    assert (status, headers["content-type"]) == (200, "text/plain; charset=utf-8")
    assert isinstance(found, Tol)
    assert (found.links.hrefs, found.of) == (("/",), "page")
    volatile = parse_tvi(ask("/page.tvi")[2])
    assert isinstance(volatile, Tvi)
    assert volatile.parts == (("1", b"17"),)
    front = parse_tol(ask("/index.tol")[2])
    assert isinstance(front, Tol)
    assert front.links.hrefs == ("/page",)


def test_marked_and_selected_parts_are_in_the_table(ask: Any) -> None:
    found = parse_tvi(ask("/both.tvi")[2])
    assert isinstance(found, Tvi)
    assert [name for name, _ in found.parts] == ["1", "i:1", "b:1"]
    stored = PAGES["/both"].replace(b"17", b"1").replace(b"18", b"").replace(b"20", b"two")
    assert patch_document(stored, found, is_xml=False) == PAGES["/both"]


def test_tables_are_cached_by_their_tag(ask: Any) -> None:
    tag = ask("/page.tol")[1]["etag"]
    status, _, body = ask("/page.tol", if_none_match=tag)
    assert (status, body) == (304, b"")
    assert ask("/page.tol", if_none_match='"other"')[0] == 200
    assert ask("/page.tol", "HEAD")[0::2] == (200, b"")


def test_no_document_no_table_and_files_of_the_application_win(ask: Any) -> None:
    assert ask("/missing.tol")[0] == 404
    assert ask("/index.tvi")[0] == 404  # nothing volatile on the front page
    assert ask("/own.tol")[2] == PAGES["/own.tol"]
