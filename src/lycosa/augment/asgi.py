"""ASGI middleware: serves tables of links and of volatile information for an application that knows nothing of them.

    app = Tables(app, volatile=".visitors")

A request for `/page.tol` that the application does not answer itself asks it for the document and answers with that
document's table; documents get a `Link` header that tells of it. Everything else passes untouched.
"""

from collections.abc import Awaitable, Callable, MutableMapping
from http import HTTPStatus
from typing import Any

from lycosa.augment.document import Wanted
from lycosa.augment.serving import (
    MAX_DOCUMENT_BYTES,
    NOT_FOUND,
    Reply,
    documents_of,
    is_document,
    link_field,
    reply,
    word_of,
)

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]
_CONDITIONS = (b"if-none-match", b"if-modified-since", b"range", b"accept-encoding", b"if-range")


class Tables:
    """See the module. `site` is the origin at which the application is published, `volatile` a CSS selector."""

    def __init__(self, application: Application, *, site: str = "", volatile: str = "") -> None:
        self._application, self._wanted = application, Wanted(site, volatile)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        path = scope["path"]
        word = word_of(path)
        if word and scope["method"] in ("GET", "HEAD"):
            answer = await self._table(scope, path, word)
            headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in answer.headers]
            await send({"type": "http.response.start", "status": int(answer.status[:3]), "headers": headers})
            body = b"" if scope["method"] == "HEAD" else answer.body
            await send({"type": "http.response.body", "body": body})
            return
        await self._application(scope, receive, _telling(send, path))

    async def _table(self, scope: Message, path: str, word: str) -> Reply:
        own = await self._ask(scope, path)
        if own is not None and not own.status.startswith("404"):  # the application has such a file itself
            return own
        condition = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"if-none-match"), "")
        for document in documents_of(path):
            found = await self._ask(scope, document)
            if found is None:
                continue
            fields = {name.lower(): value for name, value in found.headers}
            if is_document(found.status, fields.get("content-type", "")):
                coding = fields.get("content-encoding", "")
                return reply(word, document, found.body, fields["content-type"], coding, self._wanted, condition)
        return NOT_FOUND

    async def _ask(self, scope: Message, path: str) -> Reply | None:
        """What the application answers to a GET of `path`; None for a body that is too long."""
        headers = [(name, value) for name, value in scope["headers"] if name not in _CONDITIONS]
        asked = {**scope, "path": path, "raw_path": path.encode(), "method": "GET", "headers": headers}
        answer = _Answer()
        await self._application(asked, _nothing, answer.send)
        return answer.reply()


class _Answer:
    """Gathers what an application sends."""

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

    def reply(self) -> Reply | None:
        if not self._status or self._size > MAX_DOCUMENT_BYTES:
            return None
        reason = HTTPStatus(self._status).phrase if self._status in HTTPStatus._value2member_map_ else ""
        return Reply(f"{self._status} {reason}", self._headers, b"".join(self._pieces))


async def _nothing() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


def _telling(send: Send, path: str) -> Send:
    """`send` that adds the Link header to documents."""

    async def telling(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = list(message.get("headers", []))
            kinds = [value.decode("latin-1") for name, value in headers if name.lower() == b"content-type"]
            if kinds and is_document(str(message["status"]), kinds[0]) and (field := link_field(path)) is not None:
                message = {**message, "headers": [*headers, (b"link", field.encode("latin-1"))]}
        await send(message)

    return telling
