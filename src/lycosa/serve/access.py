"""Access to the live page: who may ask, from where, and what a browser may do with an answer.

    Host            an address, localhost or the name the server was given; anything else may be DNS rebinding
    token           always: in `Authorization: Bearer`, in the cookie, or once as `?token=` of the printed link
    other methods   than GET and HEAD come from this page (Origin), or from a program that sends the token itself
    answers         carry a policy by which nothing is loaded from elsewhere and no other site may frame them

`/healthz` alone needs no token: it says that the server runs and nothing else.
"""

import hashlib
from collections.abc import Awaitable, Callable, MutableMapping
from hmac import compare_digest
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from lycosa.replay import is_own_host

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

OPEN_PATHS = frozenset({"/healthz"})
READING = frozenset({"GET", "HEAD"})
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "frame-src 'self'{}; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


def copies_at(replay_at: str, host: str) -> str:
    """Where stored copies are for a viewer who asks by this Host: at the same name or address, on their own port."""
    parts, name = urlsplit(replay_at), urlsplit(f"//{host}").hostname or ""
    return f"{parts.scheme}://{f'[{name}]' if ':' in name else name}:{parts.port}{parts.path}"


class AccessGuard:
    """Passes on to `app` only what may be answered. What is on the origin of stored copies, `replay_at`, may be shown
    in a frame, too."""

    def __init__(self, app: App, *, token: str, name: str = "", is_tls: bool = False, replay_at: str = "") -> None:
        self._app, self._token, self._name, self._is_tls, self._replay_at = app, token, name, is_tls, replay_at
        # A cookie goes to all ports of a host: two servers on one machine must not overwrite each other's.
        self.cookie = "lycosa-" + hashlib.sha256(token.encode()).hexdigest()[:12]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return  # a web socket: nothing here speaks it
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        host = headers.get("host", "")
        if not is_own_host(host, self._name):
            await self._refuse(send, 421, "This server is asked by its address or as localhost only.")
        elif scope["path"] in OPEN_PATHS:
            await self._app(scope, receive, self._with_headers(send, host))
        elif (linked := self._linked(scope)) is not None:
            await self._enter(send, scope, linked, host)
        elif not (by_header := self._bears_token(headers)) and not self._has_cookie(headers):
            await self._refuse(send, 401, "The token is missing or wrong: open the link that lycosa serve printed.")
        elif scope["method"] not in READING and not by_header and not self._is_from_here(headers, host):
            await self._refuse(send, 403, "This can only be done from the page itself, or with a bearer token.")
        else:
            await self._app(scope, receive, self._with_headers(send, host))

    def _is_token(self, text: str) -> bool:
        return compare_digest(text.encode(), self._token.encode())

    def _bears_token(self, headers: dict[str, str]) -> bool:
        kind, _, word = headers.get("authorization", "").partition(" ")
        return kind.lower() == "bearer" and self._is_token(word.strip())

    def _has_cookie(self, headers: dict[str, str]) -> bool:
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(self.cookie)
        except CookieError:
            return False
        return found is not None and self._is_token(found.value)

    def _is_from_here(self, headers: dict[str, str], host: str) -> bool:
        origin = headers.get("origin", "")
        site = headers.get("sec-fetch-site", "same-origin")
        return origin == f"{'https' if self._is_tls else 'http'}://{host}" and site == "same-origin"

    def _linked(self, scope: Scope) -> str | None:
        """The address without its token, where a page was asked for with the right one."""
        if scope["method"] != "GET" or scope["path"].startswith("/api/"):
            return None
        asked = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        if not any(name == "token" and self._is_token(value) for name, value in asked):
            return None
        rest = urlencode([(name, value) for name, value in asked if name != "token"])
        path: str = scope["path"]
        return "/" + path.lstrip("/") + (f"?{rest}" if rest else "")

    def _headers(self, host: str = "") -> tuple[tuple[bytes, bytes], ...]:
        # A policy cannot name an IPv6 address: there pictures are shown by links alone.
        frames = copies_at(self._replay_at, host) if self._replay_at and host else ""
        source = f" {frames}" if "[" not in frames else ""
        return (b"content-security-policy", POLICY.format(source).encode()), *HEADERS

    async def _enter(self, send: Send, scope: Scope, where: str, host: str) -> None:
        secure = "; Secure" if self._is_tls else ""
        cookie = f"{self.cookie}={self._token}; HttpOnly; SameSite=Strict; Path=/{secure}"
        headers = [
            (b"location", where.encode("latin-1", "replace")),
            (b"set-cookie", cookie.encode()),
            *self._headers(host),
        ]
        await send({"type": "http.response.start", "status": 303, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    def _with_headers(self, send: Send, host: str) -> Send:
        async def with_headers(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                own = list(message.get("headers", ()))
                named = {name.lower() for name, _ in own}  # the report comes with a policy of its own
                message["headers"] = [*own, *(pair for pair in self._headers(host) if pair[0] not in named)]
            await send(message)

        return with_headers

    async def _refuse(self, send: Send, status: int, words: str) -> None:
        headers = [(b"content-type", b"text/plain; charset=utf-8"), *self._headers()]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": f"{words}\n".encode()})
