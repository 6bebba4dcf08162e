"""Runs the live page: the application with its guard, and beside it the replay of stored copies on a port of its own.

Crawled pages never share an origin with the page that can steer: the replay has another port, the next one, and a path
that only the live page knows. Both listen on loopback unless the user names another address, which needs TLS or an
explicit waiver.
"""

import asyncio
import contextlib
import os
import secrets
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

from lycosa.errors import LycosaError, MissingExtra, SettingsError
from lycosa.processes import on_end
from lycosa.replay import HttpServer, Replay, ReplayAnswer, ReplayRequest
from lycosa.serve.access import AccessGuard, App
from lycosa.serve.source import CollectionSource

LOOPBACK = ("127.0.0.1", "::1", "localhost")


class ServeOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a collection is served. `certificate` and `key` are files in PEM; `is_waived`: without TLS although others
    may listen."""

    port: int = 8480
    bind: str = "127.0.0.1"
    token: str = ""
    certificate: str = ""
    key: str = ""
    is_waived: bool = False


class StoredCopies:
    """The replay of a collection, from the moment it is there: a crawl that has just begun may not have made it."""

    def __init__(self, path: Path) -> None:
        self._path, self.prefix = path, f"/{secrets.token_urlsafe(24)}/"
        self._replay: Replay | None = None

    def answer(self, request: ReplayRequest) -> ReplayAnswer:
        if self._replay is None:
            try:
                self._replay = Replay(self._path, prefix=self.prefix)
            except LycosaError as error:
                return ReplayAnswer(503, f"{error}\n".encode(), (("Content-Type", "text/plain; charset=utf-8"),))
        return self._replay.answer(request)

    def close(self) -> None:
        if self._replay is not None:
            self._replay.close()


def make_app(source: CollectionSource, *, token: str, replay_at: str, name: str = "", is_tls: bool = False) -> App:
    """The whole application, with its guard."""
    _require_extra()
    # lazy: the web framework is an extra, and takes a fifth of a second
    from fastapi import FastAPI

    from lycosa.serve.api import add_api  # lazy: likewise
    from lycosa.serve.live import Broadcast  # lazy: likewise
    from lycosa.serve.pages import add_pages  # lazy: likewise
    from lycosa.version import __version__  # lazy: likewise

    broadcast = Broadcast(source)

    @contextlib.asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        yield
        await broadcast.close()

    app = FastAPI(
        title="Lycosa",
        version=__version__,
        openapi_url="/api/v1/openapi.json",
        docs_url=None,  # it loads scripts from elsewhere
        redoc_url=None,
        lifespan=lifespan,
    )
    add_api(app, source, broadcast)
    add_pages(app, source, replay_at=replay_at)
    return AccessGuard(app, token=token, name=name, is_tls=is_tls, replay_at=replay_at)


def serve_collection(path: Path, options: ServeOptions, on_ready: Callable[[str], None]) -> None:
    """Serves the collection at `path` until the process is told to end; `on_ready` hears the link to open."""
    if options.bind not in LOOPBACK and not options.certificate and not options.is_waived:
        raise SettingsError(
            f"--bind {options.bind} lets other machines in: give --certificate and --key, or say --insecure"
        )
    if bool(options.certificate) != bool(options.key):
        raise SettingsError("--certificate and --key belong together: give both")
    _require_extra()
    asyncio.run(_serve(path, options, on_ready))


async def _serve(path: Path, options: ServeOptions, on_ready: Callable[[str], None]) -> None:
    import uvicorn  # lazy: part of the extra

    source, token = CollectionSource(path), options.token or secrets.token_urlsafe(24)
    replay = StoredCopies(path)
    copies = HttpServer(replay.answer, name=options.bind)
    await _start_copies(copies, options)
    here = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(options.bind, options.bind)  # what stands for all is no address
    shown = f"[{here}]" if ":" in here else here
    scheme = "https" if options.certificate else "http"
    replay_at = f"{scheme}://{shown}:{copies.port}{replay.prefix}"
    app = make_app(source, token=token, replay_at=replay_at, name=options.bind, is_tls=bool(options.certificate))
    listening = _listen(options)
    config = uvicorn.Config(
        app,
        ssl_certfile=options.certificate or None,
        ssl_keyfile=options.key or None,
        log_level="error",
        access_log=False,  # addresses would hold what was searched for
        server_header=False,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    # Its own handlers raise the signal once more when it has ended, so that the process would end by it.
    server.capture_signals = contextlib.nullcontext  # type: ignore[method-assign,assignment]
    on_end(lambda: setattr(server, "should_exit", True))
    on_ready(f"{scheme}://{shown}:{listening.getsockname()[1]}/?token={token}")
    try:
        await server.serve(sockets=[listening])
    finally:
        listening.close()
        await copies.close()
        replay.close()
        source.close()


async def _start_copies(copies: HttpServer, options: ServeOptions) -> None:
    """On the port after that of the live page, so that both can be passed on, or where that is taken on any."""
    tls = _tls(options)
    try:
        await copies.start(options.bind, options.port + 1 if options.port else 0, tls)
    except SettingsError:
        await copies.start(options.bind, 0, tls)


def _tls(options: ServeOptions) -> ssl.SSLContext | None:
    """What stored copies are sent with: the same certificate as the live page."""
    if not options.certificate:
        return None
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(options.certificate, options.key)
    except OSError as error:
        why = error.strerror or str(error)
        raise SettingsError(f"cannot use {options.certificate} with {options.key} for TLS: {why}") from error
    return context


def _listen(options: ServeOptions) -> socket.socket:
    family = socket.AF_INET6 if ":" in options.bind else socket.AF_INET
    try:
        return socket.create_server((options.bind, options.port), family=family)
    except OSError as error:
        where = f"port {options.port} of {options.bind}"
        why = os.strerror(error.errno) if error.errno else str(error)
        raise SettingsError(f"cannot listen on {where} ({why}): choose another --port") from error


def _require_extra() -> None:
    if any(find_spec(name) is None for name in ("fastapi", "uvicorn", "jinja2")):
        raise MissingExtra.of("serve", what="the live page")
