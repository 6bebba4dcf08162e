"""Which origin gets what: the credentials of the settings, with their secrets, by scheme, host and port.

An origin that is not named here gets nothing; there is no other rule, and so no way by which a redirect, another port
or another scheme gets what is not its own. Made once when a crawl begins; secrets that are missing end it there.
"""

import os
from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

import msgspec

from lycosa.errors import SettingsError
from lycosa.fetch import is_field_value
from lycosa.sessions.authentication import PasswordAnswers
from lycosa.settings import (
    CREDENTIALS_FILE,
    DIRECT,
    OPEN_FIELDS,
    CrawlSettings,
    read_secrets,
    references,
    replace_references,
    split_certificate,
    split_origin,
    split_proxy,
)
from lycosa.store import sharded_parent
from lycosa.web import matches_pattern, pattern_pieces

REDACTED = "[redacted]"


class Secrets:
    """Finds secrets by name: in the environment, in the credentials file of the settings, in the collection's own."""

    def __init__(self, collection: Path, file: str = "", given: Mapping[str, str] | None = None) -> None:
        self._given = given or {}
        own = (sharded_parent(collection) or collection) / CREDENTIALS_FILE
        self._files = [*([Path(file)] if file else []), *([own] if own.exists() else [])]
        self._values: dict[str, str] | None = None

    def __repr__(self) -> str:
        return f"<Secrets of {', '.join(map(str, self._files)) or 'the environment'}>"

    def get(self, name: str) -> str:
        """The secret of this name. Raises SettingsError where there is none."""
        if (value := os.environ.get(name)) is not None:
            return value
        if name in self._given:
            return self._given[name]
        if self._values is None:
            self._values = {}
            for file in reversed(self._files):
                self._values |= read_secrets(file)
        if name not in self._values:
            files = " or ".join(map(str, self._files)) or "a credentials file (--credentials FILE)"
            raise SettingsError(f"the secret {name} is missing: set the environment variable, or add it to {files}")
        return self._values[name]

    def fill(self, text: str) -> str:
        """The text with the secrets that it names."""
        return replace_references(text, self.get)


class SentField(NamedTuple):
    """A header field as it is sent, and as the archive gets it."""

    name: str
    value: str
    recorded: str

    @property
    def is_open(self) -> bool:
        """May everybody see it?"""
        return self.value == self.recorded


class OriginCredentials(msgspec.Struct):
    """What one origin gets."""

    fields: list[SentField] = []
    password: PasswordAnswers | None = None
    password_name: str = ""
    proxy_user: str = ""  # NAME:PASSWORD where the origin is that of a proxy
    certificate: str = ""
    key_password: str = ""


def credentials_by_origin(settings: CrawlSettings, secrets: Secrets) -> dict[str, OriginCredentials]:
    """The credentials of the settings; those that name no origin are left out, since nobody has bound them."""
    found: dict[str, OriginCredentials] = {}
    for origin, text in map(split_origin, settings.headers):
        name, _, value = text.partition(": ")
        is_open = name.lower() in OPEN_FIELDS and not references(value)
        field = SentField(name, secrets.fill(value), value if is_open else redacted(value))
        if not is_field_value(field.value):
            raise SettingsError(f"{name} cannot be sent to {origin}: its secret has line breaks, or spaces around it")
        found.setdefault(origin, OriginCredentials()).fields.append(field)
    for origin, text in map(split_origin, settings.users):
        name, _, password = text.partition(":")
        filled, one = secrets.fill(password), found.setdefault(origin, OriginCredentials())
        one.password, one.password_name = PasswordAnswers(name, filled), redacted(password)
        one.proxy_user = f"{name}:{filled}"
    for origin, text in map(split_origin, settings.certificates):
        path, password = split_certificate(text)
        one = found.setdefault(origin, OriginCredentials())
        one.certificate, one.key_password = _require_pem(path), secrets.fill(password)
    found.pop("", None)
    return found


class Proxies:
    """The proxies of the settings; those for the same hosts take turns, request by request."""

    def __init__(self, entries: Sequence[str]) -> None:
        urls: dict[str, list[str]] = {}
        for hosts, url in map(split_proxy, entries):
            urls.setdefault(hosts, []).append("" if url == DIRECT else url)
        self._turns = [(pattern_pieces(hosts), cycle(some)) for hosts, some in urls.items() if hosts]
        self._others = cycle(urls.get("", [""]))

    def of(self, host: str) -> str:
        """The proxy for the next request to a host; empty: none."""
        matching = (turns for pattern, turns in self._turns if matches_pattern(pattern, host, to_end=True))
        return next(next(matching, self._others))


def redacted(value: str) -> str:
    """What stands in the archive for a value: the names of its secrets."""
    names = references(value)
    return f"[redacted: {' '.join(names)}]" if names else REDACTED


def _require_pem(path: str) -> str:
    """The path of a certificate that has its key. libcurl would say so too, but as a failure of every host."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise SettingsError(f"the client certificate {path} cannot be read: {error.strerror}") from error
    if b"-----BEGIN CERTIFICATE-----" not in data or b"PRIVATE KEY-----" not in data:
        raise SettingsError(f"{path} is no client certificate: give a PEM file that has the certificate and its key")
    return path


def origin_of(url: str) -> str:
    """Scheme, host and port of a normalised URL, the port only where it is not the scheme's own."""
    return url[: url.index("/", 8)]
