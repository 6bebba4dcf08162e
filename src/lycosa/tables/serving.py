"""WSGI and ASGI middleware that serves tables for an application that knows nothing of them.

    application = WsgiTables(application, volatile=".visitors")
    app = AsgiTables(app, volatile=".visitors")

    /a/page.tol   is the table of   /a/page.html, /a/page.htm, /a/page.xhtml, /a/page.xml, /a/page or /a/page/
    /a/index.tol  is the table of   /a/, or of /a/index.html and so on

A request for a table that the application does not answer itself asks it for these documents in turn; the first that
answers 200 gives the table. Documents get a `Link` header that tells of it. Everything else passes untouched.
"""

import hashlib
import re
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from http import HTTPStatus
from typing import Any, NamedTuple

from lycosa.tables.formats import TOL, TOL_REL, table_url
from lycosa.tables.publisher import MEDIA_TYPES, AugmentOptions, tables_of

MEDIA_TYPE = "text/plain; charset=utf-8"
# A longer document is not held in memory for its table.
MAX_DOCUMENT_BYTES = 16 * 1024 * 1024
_PLAIN = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=@/-]+\Z")
_DOCUMENT_TYPES = ("text/html", "application/xhtml+xml", "application/xml", "text/xml")


class TableReply(NamedTuple):
    """An answer, of the application or of the middleware itself."""

    status: str
    headers: list[tuple[str, str]]
    body: bytes


NOT_FOUND = TableReply("404 Not Found", [("Content-Type", "text/plain"), ("Content-Length", "0")], b"")


def _word_of(path: str) -> str:
    """The table that a path asks for, `tol` or `tvi`; empty if it asks for none."""
    word = path[-4:]
    return word[1:] if word in (".tol", ".tvi") else ""


def _documents_of(path: str) -> list[str]:
    """The paths of the documents whose table this may be, the likeliest first."""
    stem = path[:-4]
    endings = [*MEDIA_TYPES, "", "/"]
    found = [stem + ending for ending in endings]
    return [stem.removesuffix("index"), *found] if stem.endswith("/index") else found


def _is_document(status: str, content_type: str) -> bool:
    return status.startswith("200") and content_type.partition(";")[0].strip().lower() in _DOCUMENT_TYPES


def _link_field(path: str, status: str, content_type: str) -> str | None:
    """The Link header by which a document tells of its table; None for other responses, and for names that no header
    can hold."""
    where = table_url(path.rpartition("/")[2] or "./", TOL) if _is_document(status, content_type) else None
    return f'<{where}>; rel="{TOL_REL}"' if where is not None and _PLAIN.match(where) else None


class TableRequest:
    """One request for a table.

    `path` is what the application has to be asked for next, `answered` takes its answer; when `path` is None, `reply`
    is the answer to the request. No I/O: `WsgiTables` and `AsgiTables` ask the application.
    """

    def __init__(self, path: str, options: AugmentOptions, if_none_match: str) -> None:
        self._word, self._options, self._if_none_match = _word_of(path), options, if_none_match
        self._rest = iter(_documents_of(path))
        self._is_own = True  # the first question: does the application have such a table itself?
        self.path: str | None = path
        self.reply = NOT_FOUND

    def answered(self, found: TableReply | None) -> None:
        """Takes the application's answer to a GET of `path`; None if it cannot be used."""
        asked, self.path = self.path or "", None
        if self._is_own:
            self._is_own = False
            if found is not None and not found.status.startswith("404"):
                self.reply = found
                return
        elif found is not None:
            fields = {name.lower(): value for name, value in found.headers}
            if _is_document(found.status, fields.get("content-type", "")):
                self.reply = self._table(asked, found.body, fields)
                return
        self.path = next(self._rest, None)

    def _table(self, path: str, body: bytes, fields: dict[str, str]) -> TableReply:
        """The table of a document, or 404 if it has none."""
        if fields.get("content-encoding", "").lower() not in ("", "identity"):
            return NOT_FOUND
        made = tables_of(body, self._options, name=path.rpartition("/")[2], content_type=fields["content-type"] or None)
        content = made.tol if self._word == TOL else made.tvi
        if content is None:
            return NOT_FOUND
        etag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
        headers = [("ETag", etag), ("Cache-Control", "no-cache")]
        known = [tag.strip().removeprefix("W/") for tag in self._if_none_match.split(",")]
        if self._if_none_match == "*" or etag in known:
            return TableReply("304 Not Modified", headers, b"")
        headers += [("Content-Type", MEDIA_TYPE), ("Content-Length", str(len(content)))]
        return TableReply("200 OK", headers, content)


Environ = dict[str, Any]
StartResponse = Callable[..., Any]
WsgiApplication = Callable[[Environ, StartResponse], Iterable[bytes]]
# Header fields of the request for a table that must not reach the request for its document.
_WSGI_CONDITIONS = (
    "HTTP_IF_NONE_MATCH",
    "HTTP_IF_MODIFIED_SINCE",
    "HTTP_RANGE",
    "HTTP_ACCEPT_ENCODING",
    "HTTP_IF_RANGE",
)


class WsgiTables:
    """WSGI middleware. `site` is the origin at which the application is published, `volatile` a CSS selector of the
    elements that change often."""

    def __init__(self, application: WsgiApplication, *, site: str = "", volatile: str = "") -> None:
        self._application, self._options = application, AugmentOptions(site, volatile)

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        if not _word_of(path) or environ.get("REQUEST_METHOD") not in ("GET", "HEAD"):
            return self._application(environ, _with_link_wsgi(start_response, path))
        request = TableRequest(path, self._options, environ.get("HTTP_IF_NONE_MATCH", ""))
        while request.path is not None:
            request.answered(self._ask(environ, request.path))
        start_response(request.reply.status, request.reply.headers)
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [request.reply.body]

    def _ask(self, environ: Environ, path: str) -> TableReply | None:
        """The application's answer to a GET of `path`; None if the body is too long."""
        asked = {name: value for name, value in environ.items() if name not in _WSGI_CONDITIONS}
        asked |= {"PATH_INFO": path, "REQUEST_METHOD": "GET"}
        began: list[tuple[str, list[tuple[str, str]]]] = []
        pieces: list[bytes] = []

        def start(status: str, headers: list[tuple[str, str]], exc_info: object = None) -> Callable[[bytes], object]:
            began[:] = [(status, headers)]
            return pieces.append

        answer = self._application(asked, start)
        try:
            size = 0
            for piece in answer:
                pieces.append(piece)
                size += len(piece)
                if size > MAX_DOCUMENT_BYTES:
                    return None
        finally:
            if (close := getattr(answer, "close", None)) is not None:
                close()
        return TableReply(*began[0], b"".join(pieces)) if began else None


def _with_link_wsgi(start_response: StartResponse, path: str) -> StartResponse:
    """`start_response` that adds the Link header to documents."""

    def start(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
        content_type = next((value for name, value in headers if name.lower() == "content-type"), "")
        if (field := _link_field(path, status, content_type)) is not None:
            headers = [*headers, ("Link", field)]
        try:
            return start_response(status, headers, exc_info) if exc_info else start_response(status, headers)
        finally:
            exc_info = None  # a traceback that refers to this frame

    return start


Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
AsgiApplication = Callable[[Message, Receive, Send], Awaitable[None]]
_ASGI_CONDITIONS = (b"if-none-match", b"if-modified-since", b"range", b"accept-encoding", b"if-range")


class AsgiTables:
    """ASGI middleware; the arguments are those of `WsgiTables`."""

    def __init__(self, application: AsgiApplication, *, site: str = "", volatile: str = "") -> None:
        self._application, self._options = application, AugmentOptions(site, volatile)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._application(scope, receive, send)
        elif _word_of(scope["path"]) and scope["method"] in ("GET", "HEAD"):
            await self._answer(scope, send)
        else:
            await self._application(scope, receive, _with_link_asgi(send, scope["path"]))

    async def _answer(self, scope: Message, send: Send) -> None:
        """Answers a request for a table."""
        condition = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"if-none-match"), "")
        request = TableRequest(scope["path"], self._options, condition)
        while request.path is not None:
            request.answered(await self._ask(scope, request.path))
        reply = request.reply
        headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in reply.headers]
        await send({"type": "http.response.start", "status": int(reply.status[:3]), "headers": headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else reply.body})

    async def _ask(self, scope: Message, path: str) -> TableReply | None:
        """The application's answer to a GET of `path`; None if the body is too long."""
        headers = [(name, value) for name, value in scope["headers"] if name not in _ASGI_CONDITIONS]
        asked = {**scope, "path": path, "raw_path": path.encode(), "method": "GET", "headers": headers}
        answer = _AsgiAnswer()
        await self._application(asked, _nothing, answer.send)
        return answer.reply()


class _AsgiAnswer:
    """The messages that an application sends, put together."""

    def __init__(self) -> None:
        self._status, self._size = 0, 0
        self._headers: list[tuple[str, str]] = []
        self._pieces: list[bytes] = []

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            fields = message.get("headers", [])
            self._headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in fields]
        elif message["type"] == "http.response.body":
            piece = message.get("body", b"")
            self._size += len(piece)
            if self._size <= MAX_DOCUMENT_BYTES:
                self._pieces.append(piece)

    def reply(self) -> TableReply | None:
        if not self._status or self._size > MAX_DOCUMENT_BYTES:
            return None
        reason = HTTPStatus(self._status).phrase if self._status in HTTPStatus._value2member_map_ else ""
        return TableReply(f"{self._status} {reason}", self._headers, b"".join(self._pieces))


async def _nothing() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


def _with_link_asgi(send: Send, path: str) -> Send:
    """`send` that adds the Link header to documents."""

    async def send_with_link(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = list(message.get("headers", []))
            kinds = [value.decode("latin-1") for name, value in headers if name.lower() == b"content-type"]
            field = _link_field(path, str(message["status"]), kinds[0] if kinds else "")
            if field is not None:
                message = {**message, "headers": [*headers, (b"link", field.encode("latin-1"))]}
        await send(message)

    return send_with_link
