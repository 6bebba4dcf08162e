"""ASGI middleware: the tables of `augment.wsgi` for applications of the other kind.

app = Tables(app, volatile=".visitors")
"""

from collections.abc import Awaitable, Callable, MutableMapping
from http import HTTPStatus
from typing import Any

from lycosa.augment import serving
from lycosa.augment.document import Wanted

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]
_CONDITIONS = (b"if-none-match", b"if-modified-since", b"range", b"accept-encoding", b"if-range")


class Tables:
    """See the module; the arguments are those of `wsgi.Tables`."""

    def __init__(self, application: Application, *, site: str = "", volatile: str = "") -> None:
        self._application, self._wanted = application, Wanted(site, volatile)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._application(scope, receive, send)
        elif serving.word_of(scope["path"]) and scope["method"] in ("GET", "HEAD"):
            await self._answer(scope, send)
        else:
            await self._application(scope, receive, _telling(send, scope["path"]))

    async def _answer(self, scope: Message, send: Send) -> None:
        """A table."""
        condition = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"if-none-match"), "")
        asking = serving.Asking(scope["path"], self._wanted, condition)
        while asking.path is not None:
            asking.heard(await self._ask(scope, asking.path))
        reply = asking.reply
        headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in reply.headers]
        await send({"type": "http.response.start", "status": int(reply.status[:3]), "headers": headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else reply.body})

    async def _ask(self, scope: Message, path: str) -> serving.Reply | None:
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
            if self._size <= serving.MAX_DOCUMENT_BYTES:
                self._pieces.append(piece)

    def reply(self) -> serving.Reply | None:
        if not self._status or self._size > serving.MAX_DOCUMENT_BYTES:
            return None
        reason = HTTPStatus(self._status).phrase if self._status in HTTPStatus._value2member_map_ else ""
        return serving.Reply(f"{self._status} {reason}", self._headers, b"".join(self._pieces))


async def _nothing() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


def _telling(send: Send, path: str) -> Send:
    """`send` that adds the Link header to documents."""

    async def telling(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = list(message.get("headers", []))
            kinds = [value.decode("latin-1") for name, value in headers if name.lower() == b"content-type"]
            field = serving.link_field(path, str(message["status"]), kinds[0] if kinds else "")
            if field is not None:
                message = {**message, "headers": [*headers, (b"link", field.encode("latin-1"))]}
        await send(message)

    return telling
