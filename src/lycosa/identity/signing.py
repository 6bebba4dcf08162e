"""Signed requests: HTTP Message Signatures (RFC 9421) as Web Bot Auth uses them.

A signature covers the authority that a request goes to and the address of the signer's directory, and lasts for
`LIFETIME_S`: whoever records it can use it for that long, and for that host alone. There are two forms of the field
Signature-Agent: a dictionary, as the draft has it (draft-ietf-webbotauth-httpsig-protocol-00), and a string, as
earlier drafts had it and Cloudflare checks it. `RequestSigner` is a request hook of the crawl: every request is
signed, that for robots.txt too, each hop of a redirect anew.
"""

import secrets
from base64 import b64encode
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path

import msgspec

from lycosa.crawl import Engine
from lycosa.errors import SettingsError
from lycosa.frontier import RequestKind
from lycosa.identity.keys import BotKey
from lycosa.records import Request
from lycosa.settings import CrawlSettings

LIFETIME_S = 240  # the draft asks for minutes rather than hours; a request may wait for a connection for some seconds
LABEL = "sig1"
TAG = "web-bot-auth"
NONCE_BYTES = 64

Fields = tuple[tuple[str, str], ...]


class SignatureForm(StrEnum):
    """How Signature-Agent is written: as a dictionary with the signature's label, or as a string."""

    DRAFT = "draft"
    CLOUDFLARE = "cloudflare"


class RequestSigner:
    """Signs requests with a key, as the agent whose directory is at `agent`."""

    def __init__(self, key: BotKey, agent: str, form: SignatureForm, now_unix: Callable[[], float]) -> None:
        self._key, self._agent, self._form, self._now_unix = key, agent, form, now_unix

    def __repr__(self) -> str:
        return f"<RequestSigner {self._agent} {self._key.key_id}>"

    def prepare(self, request: Request, kind: RequestKind) -> Request:
        """The request with its signature."""
        nonce = b64encode(secrets.token_bytes(NONCE_BYTES)).decode()
        fields = self.signature(authority_of(request.url), created=int(self._now_unix()), nonce=nonce)
        return msgspec.structs.replace(request, headers=request.headers + fields)

    def signature(
        self, authority: str, *, created: int, lifetime_s: int = LIFETIME_S, nonce: str, label: str = LABEL
    ) -> Fields:
        """The three header fields of a request to `authority`."""
        text = f'"{self._agent}"'
        if self._form is SignatureForm.DRAFT:
            sent, component = f"{label}={text}", f'"signature-agent";key="{label}"'
        else:
            sent, component = text, '"signature-agent"'
        parameters = (
            f'("@authority" {component});created={created};keyid="{self._key.key_id}";alg="ed25519"'
            f';expires={created + lifetime_s};nonce="{nonce}";tag="{TAG}"'
        )
        base = f'"@authority": {authority}\n{component}: {text}\n"@signature-params": {parameters}'
        signed = b64encode(self._key.sign(base.encode("ascii"))).decode()
        return (
            ("Signature-Agent", sent),
            ("Signature-Input", f"{label}={parameters}"),
            ("Signature", f"{label}=:{signed}:"),
        )


def authority_of(url: str) -> str:
    """The host of a normalised URL, with its port if that is not the usual one."""
    return url.split("/", 3)[2]


def sign_requests(engine: Engine, settings: CrawlSettings) -> None:
    """Has all requests of a crawl signed."""
    if not settings.bot_key or not settings.bot_agent:
        raise SettingsError(
            "requests are signed with a key, and by an agent that publishes it: give --bot-key FILE and --bot-agent URL"
        )
    key, form = BotKey.read(Path(settings.bot_key)), SignatureForm(settings.bot_form)
    engine.features.prepare_requests(RequestSigner(key, settings.bot_agent, form, engine.shard.now_unix))
