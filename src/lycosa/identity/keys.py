"""The key of a crawler: an Ed25519 key in a PEM file that only its owner may read, and the directory that publishes it.

A key is named by its JWK thumbprint (RFC 7638, RFC 8037): whoever has the directory finds the key of a signature by it.
Read by `identity.signing` when a crawl begins, made by `lycosa identity`.
"""

import hashlib
import os
import stat
from base64 import urlsafe_b64encode
from pathlib import Path

import msgspec

from lycosa.errors import MissingExtra, SettingsError, storage_error

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
        try:
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(text)
        except OSError as error:
            raise storage_error(error, path=path, doing="writing the key") from error
        return cls(key)


def key_directory(*keys: BotKey) -> bytes:
    """The directory to publish: the public keys as JSON (JWKS)."""
    entries = [{"kty": "OKP", "crv": "Ed25519", "kid": key.key_id, "x": key.x, "use": "sig"} for key in keys]
    return msgspec.json.format(msgspec.json.encode({"keys": entries})) + b"\n"


def _base64url(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()
