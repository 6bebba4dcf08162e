"""Keys and signed requests: an Ed25519 key in a PEM file that only its owner may read, the directory that publishes it,
and HTTP Message Signatures (RFC 9421) as Web Bot Auth uses them.

A signature covers the authority that a request goes to and the address of the signer's directory, and lasts for
`LIFETIME_S`: whoever records it can use it for that long, and for that host alone. There are two forms of the field
Signature-Agent: a dictionary, as the draft has it (draft-ietf-webbotauth-httpsig-protocol-00), and a string, as
earlier drafts had it and Cloudflare checks it. `RequestSigner` is a request hook of the crawl: every request is
signed, that for robots.txt too, each hop of a redirect anew.

A key is named by its JWK thumbprint (RFC 7638, RFC 8037): whoever has the directory finds the key of a signature by it.
`lycosa identity` makes keys; a crawl reads its own when it begins.
"""

import hashlib
import os
import secrets
import stat
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path

import msgspec

from lycosa.crawl import Engine
from lycosa.errors import MissingExtra, SettingsError, storage_errors
from lycosa.frontier import RequestKind
from lycosa.records import Request
from lycosa.settings import CrawlSettings

try:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
        PublicFormat,
        load_pem_private_key,
    )
except ImportError as error:
    raise MissingExtra.of("identity", what="signing requests") from error

# draft-ietf-webbotauth-httpsig-directory
DIRECTORY_PATH = "/.well-known/http-message-signatures-directory"
DIRECTORY_TYPE = "application/http-message-signatures-directory+json"
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class BotKey:
    """An Ed25519 key; `key_id` is its thumbprint."""

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key
        self.x = _base64url(key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw))
        canonical = f'{{"crv":"Ed25519","kty":"OKP","x":"{self.x}"}}'
        self.key_id = _base64url(hashlib.sha256(canonical.encode()).digest())

    def __repr__(self) -> str:
        return f"<BotKey {self.key_id}>"

    def sign(self, text: bytes) -> bytes:
        return self._key.sign(text)

    @classmethod
    def read(cls, path: Path) -> "BotKey":
        """The key in a file; raises SettingsError if it cannot be used, or if others may read it."""
        try:
            if path.stat().st_mode & _OTHERS:
                raise SettingsError(f"{path} can be read by others: chmod 600 {path}, or make another key")
            key = load_pem_private_key(path.read_bytes(), password=None)
        except OSError as error:
            said = error.strerror or "it cannot be read"
            raise SettingsError(f"the key {path} cannot be used: {said}; lycosa identity {path} makes one") from error
        except (ValueError, TypeError, UnsupportedAlgorithm) as error:
            raise SettingsError(f"{path} holds no private key without a password: lycosa identity makes one") from error
        if not isinstance(key, Ed25519PrivateKey):
            raise SettingsError(f"{path} is no Ed25519 key: lycosa identity makes one")
        return cls(key)

    @classmethod
    def make(cls, path: Path) -> "BotKey":
        """A new key in a new file, which only its owner may read."""
        key = Ed25519PrivateKey.generate()
        text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with storage_errors(path, doing="writing the key"), os.fdopen(os.open(path, flags, 0o600), "wb") as file:
            file.write(text)
        return cls(key)


def key_directory(*keys: BotKey) -> bytes:
    """The directory to publish: the public keys as JSON (JWKS)."""
    entries = [{"kty": "OKP", "crv": "Ed25519", "kid": key.key_id, "x": key.x, "use": "sig"} for key in keys]
    return msgspec.json.format(msgspec.json.encode({"keys": entries})) + b"\n"


def _base64url(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


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
