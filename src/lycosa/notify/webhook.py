"""Webhooks: changes are posted as signed JSON through the crawl's own downloader.

The address of the receiver passes the address guard before each request, and the request is pinned to it; redirects
are not followed. An answer of 200 to 299 acknowledges. The secret comes from the environment, or from a file in the
collection's folder that only its owner can read; it is made where there is none. It is never logged or written into
settings.
"""

import asyncio
import binascii
import contextlib
import os
import secrets
import time
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from lycosa.errors import SettingsError, StoreError
from lycosa.fetch import Downloader, user_agent
from lycosa.mapping import AddressGuard, Resolver, literal_address
from lycosa.notify.message import webhook_body, webhook_fields
from lycosa.notify.notifier import NotDelivered
from lycosa.notify.outbox import Notice
from lycosa.records import PrivateParts, Request, Response
from lycosa.settings import CrawlSettings
from lycosa.web import parse_url

SECRET_FILE = "webhook.secret"
SECRET_VARIABLE = "LYCOSA_WEBHOOK_SECRET"
SECRET_BYTES, LEAST_SECRET_BYTES = 32, 16
ENCODED = "whsec_"  # before a secret in base64
ANSWER_BYTES = 64 << 10  # of an answer that nobody reads


class WebhookTarget:
    """The webhook at `href`."""

    def __init__(
        self,
        href: str,
        settings: CrawlSettings,
        *,
        collection: str,
        secret: bytes,
        downloader: Downloader,
        resolver: Resolver,
        guard: AddressGuard,
    ) -> None:
        url = parse_url(href)
        assert url is not None, "the settings hold URLs only"
        self._url, self._collection, self._secret = url, collection, secret
        self._downloader, self._resolver, self._guard = downloader, resolver, guard
        self._agent = user_agent(settings.agent, contact=settings.contact or "")
        self.id = f"webhook:{sha256(url.href.encode()).hexdigest()[:16]}"
        self.name = f"the webhook at {url.host}"  # not its path, which may be a secret

    def __repr__(self) -> str:
        return f"<WebhookTarget {self.name}>"

    async def send(self, notices: Sequence[Notice]) -> None:
        address, now_s = await self._address(), time.time()
        body = webhook_body(notices, collection=self._collection, now_s=now_s)
        fields = webhook_fields(body, notices, secret=self._secret, now_s=now_s)
        request = Request(
            self._url.href,
            self._url.host,
            self._url.port,
            address,
            (("User-Agent", self._agent), ("Accept", "*/*"), *fields),
            method="POST",
            private=PrivateParts(body=body),
            body_limit_bytes=ANSWER_BYTES,
            takes_any_type=True,
        )
        answered: asyncio.Future[Response] = asyncio.get_running_loop().create_future()

        def done(response: Response) -> None:
            if not answered.done():  # else nobody waits for it any more
                answered.set_result(response)

        self._downloader.start(request, done)
        response = await answered
        if 200 <= response.status < 300:
            return
        if response.failure is not None:
            raise NotDelivered(str(response.failure).replace("-", " "))
        if 300 <= response.status < 400:
            raise NotDelivered(f"it answers {response.status}, and redirects are not followed")
        raise NotDelivered(f"it answers {response.status}")

    async def _address(self) -> str:
        """The address of the receiver, which the guard has passed."""
        host = self._url.host
        if literal := literal_address(host):
            addresses: Sequence[str] = (literal,)
        else:
            found = await self._resolver.resolve(host)
            if found.failure is not None:
                raise NotDelivered(str(found.failure).replace("-", " "))
            addresses = found.addresses
        refusal = self._guard.refusal_of_any(addresses)
        if refusal and not self._guard.is_typed(host, self._url.port):
            raise NotDelivered(f"its address is {refusal}, which --allow-private would open")
        return addresses[0]


def refuse_private_webhook(settings: CrawlSettings, guard: AddressGuard) -> None:
    """Raises SettingsError for a webhook at an address that the guard never lets through."""
    for href in settings.webhook:
        url = parse_url(href)
        address = literal_address(url.host) if url else None
        reason = guard.refusal(address) if address else None
        if url and reason and f"{url.host}:{url.port}" not in settings.typed_hosts:
            raise SettingsError(
                f"the webhook at {url.host}:{url.port} has a special address, {reason}, which this crawl may not ask: "
                f"open its network with --allow-private {address}"
            )


def webhook_secret(folder: Path, environ: Mapping[str, str] | None = None) -> bytes:
    """The secret of the collection in a folder; raises SettingsError for one that others can read, or that is weak."""
    written = (os.environ if environ is None else environ).get(SECRET_VARIABLE, "")
    if written:
        return _read_secret(written, SECRET_VARIABLE)
    path = folder / SECRET_FILE
    try:
        if not path.exists():
            _make_secret(path)
        require_private(path)
        return _read_secret(path.read_text(), str(path))
    except OSError as error:
        raise StoreError(f"cannot use {path}: {error.strerror}") from error


def require_private(path: Path) -> None:
    """Raises SettingsError if others than the owner can read a file with secrets."""
    if path.stat().st_mode & 0o077:
        raise SettingsError(f"{path} holds secrets, and others can read it: chmod 600 {path}")


def _make_secret(path: Path) -> None:
    """Writes a new secret; another process that does the same at this moment gives the same result."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(new, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(f"{ENCODED}{b64encode(secrets.token_bytes(SECRET_BYTES)).decode()}\n")
    with contextlib.suppress(FileExistsError):
        os.link(new, path)
    new.unlink()


def _read_secret(written: str, where: str) -> bytes:
    text = written.strip()
    try:
        found = b64decode(text.removeprefix(ENCODED), validate=True) if text.startswith(ENCODED) else text.encode()
    except binascii.Error:
        found = b""
    if len(found) < LEAST_SECRET_BYTES:
        raise SettingsError(
            f"{where} holds no secret: write {LEAST_SECRET_BYTES} characters or more, or {ENCODED} and base64"
        )
    return found
