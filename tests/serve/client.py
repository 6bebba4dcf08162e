"""A client that speaks to the application without a socket, as ASGI has it."""

import asyncio
import json
from collections.abc import Mapping, MutableMapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from lycosa.serve.access import App


class Answered(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def facts(self) -> Any:
        return json.loads(self.body)


class Client:
    """Asks with the right token unless headers say otherwise."""

    def __init__(self, app: App, token: str) -> None:
        self.app, self.token = app, token

    def get(self, path: str, **headers: str) -> Answered:
        return self.ask("GET", path, headers)

    def post(self, path: str, value: object, **headers: str) -> Answered:
        return self.ask("POST", path, headers, json.dumps(value).encode())

    def ask(self, method: str, path: str, headers: Mapping[str, str], body: bytes = b"") -> Answered:
        asked = {"host": "127.0.0.1:8480", "authorization": f"Bearer {self.token}", "content-type": "application/json"}
        asked.update({name.replace("_", "-"): value for name, value in headers.items()})
        parts = urlsplit(path)
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "path": parts.path,
            "raw_path": parts.path.encode(),
            "query_string": parts.query.encode(),
            "root_path": "",
            "scheme": "http",
            "headers": [(name.encode(), value.encode()) for name, value in asked.items() if value],
            "client": ("127.0.0.1", 50_000),
            "server": ("127.0.0.1", 8480),
        }
        return asyncio.run(self._run(scope, body))

    async def _run(self, scope: dict[str, Any], body: bytes) -> Answered:
        start: dict[str, Any] = {}
        pieces: list[bytes] = []
        sent = False

        async def receive() -> dict[str, Any]:
            nonlocal sent
            if sent:
                await asyncio.sleep(3_600)
            sent = True
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                start.update(message)
            elif message["type"] == "http.response.body":
                pieces.append(message.get("body", b""))

        await self.app(scope, receive, send)
        headers = {name.decode().lower(): value.decode() for name, value in start["headers"]}
        return Answered(start["status"], headers, b"".join(pieces))
