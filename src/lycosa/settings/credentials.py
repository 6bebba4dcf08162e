"""Credentials as settings hold them: which origin gets what, with the names of secrets in place of their values.

    X-Api-Key: ${api-key}                           a header field, for the origins of the seeds
    https://api.example.org X-Api-Key: ${api-key}   for this scheme, host and port
    ann:${password-of-ann}                          a user name and a password, likewise

A secret is `${NAME}`: an environment variable, or an entry of the credentials file. What is written in clear is moved
to the file `credentials.toml` of the collection, which its owner alone may read, before the settings are saved or go
to another process (`take_out_secrets`, `save_secrets`); entries without an origin are bound to those of the seeds at
the same time, so that a seed of a later run gets nothing. The first part are the validators of the settings.
"""

import os
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ada_url import URL

from lycosa.errors import SettingsError, StoreError
from lycosa.settings.values import InvalidValue, SettingTable, text

if TYPE_CHECKING:
    from lycosa.settings.schema import CrawlSettings

DIRECT = "direct"  # in place of a proxy
CREDENTIALS_FILE = "credentials.toml"  # in the folder of a collection
_HEADING = "# Secrets of this collection by name; its settings refer to them as ${NAME}. Keep this file to yourself.\n"
_REFERENCE = re.compile(r"\$\{([A-Za-z0-9_][A-Za-z0-9_.-]{0,99})\}")
_FIELD_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_WEB = ("http:", "https:")
_PROXY_SCHEMES = (*_WEB, "socks4:", "socks4a:", "socks5:", "socks5h:")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_NOT_IN_NAMES = re.compile(r"[^a-z0-9_.-]+")
# Header fields that give nothing away: they may stand in settings and archive as they are.
OPEN_FIELDS = frozenset(
    "accept accept-language cache-control dnt pragma prefer referer save-data sec-gpc upgrade-insecure-requests".split()
)
# Header fields that are the crawler's own, and where they are set.
_OWN_FIELDS = {
    "user-agent": "the name is set by --agent, the address by --contact",
    "host": "it follows from the URL",
    "accept-encoding": "what can be decoded is asked for",
    "range": "it is set where a part is asked for",
    "proxy-authorization": "name the user of a proxy by --user 'http://PROXY:PORT NAME:PASSWORD'",
} | dict.fromkeys(("connection", "content-length", "transfer-encoding", "te", "upgrade"), "libcurl sets it")
_ALLOWED_HEADER = "it must be NAME: VALUE, or ORIGIN NAME: VALUE as in 'https://api.example.org X-Api-Key: ${key}'"
_ALLOWED_USER = "it must be NAME:PASSWORD, or ORIGIN NAME:PASSWORD as in 'https://example.org ann:${password}'"
_ALLOWED_PROXY = (
    "it must be a URL such as http://proxy.example:3128, or HOSTS=URL as in *.example.org=socks5://127.0.0.1:1080"
)
_ALLOWED_CERTIFICATE = "it must be a PEM file with certificate and key, FILE, FILE:PASSWORD or ORIGIN FILE"


class _Hidden:
    """Stands for a value in messages."""

    def __repr__(self) -> str:
        return "a value that cannot be used"


class BoundText(NamedTuple):
    """A setting that is for one origin; without one it is for those of the seeds."""

    origin: str
    text: str

    def __str__(self) -> str:
        return f"{self.origin} {self.text}" if self.origin else self.text


# validators


def lines_of(read: Callable[[str], str]) -> Callable[[object], tuple[str, ...]]:
    """A list of texts that may have spaces in them; one string is a list of its lines. What is wrong is not shown."""

    def read_lines(value: object) -> tuple[str, ...]:
        items = value.splitlines() if isinstance(value, str) else value
        if not isinstance(items, list | tuple):
            raise InvalidValue("it must be a list of texts", _Hidden())
        try:
            return tuple(dict.fromkeys(read(text(item)) for item in items if item != ""))
        except InvalidValue as invalid:
            raise InvalidValue(invalid.phrase, _Hidden()) from None

    return read_lines


def header(value: str) -> str:
    """A header field, maybe with the origin that gets it."""
    origin, field = _bound(value, _ALLOWED_HEADER)
    name, colon, content = field.partition(":")
    if not colon or not _FIELD_NAME.fullmatch(name):
        raise InvalidValue(_ALLOWED_HEADER)
    if own := _OWN_FIELDS.get(name.lower()):
        raise InvalidValue(f"the field {name} cannot be set: {own}")
    if any(character > "\xff" for character in content):
        raise InvalidValue(f"the value of {name} has characters that no header field can hold")
    return str(BoundText(origin, f"{name}: {content.strip()}"))


def user(value: str) -> str:
    """A user name and a password, maybe with the origin that they are for."""
    origin, pair = _bound(value, _ALLOWED_USER, _PROXY_SCHEMES)
    name, colon, _ = pair.partition(":")
    if not (name and colon):
        raise InvalidValue(_ALLOWED_USER)
    return str(BoundText(origin, pair))


def certificate(value: str) -> str:
    """A file with a client certificate and its key, maybe with a password and the origin that it is for."""
    origin, file = _bound(value, _ALLOWED_CERTIFICATE)
    if not file:
        raise InvalidValue(_ALLOWED_CERTIFICATE)
    path, password = split_certificate(file)
    absolute = str(Path(path).expanduser().absolute())
    return str(BoundText(origin, f"{absolute}:{password}" if password else absolute))


def file(value: str) -> str:
    """The absolute path of a file."""
    if not value:
        raise InvalidValue("it must be a file")
    return str(Path(value).expanduser().absolute())


def proxy(value: str) -> str:
    """The URL of a proxy, or `direct`, maybe with the hosts that it is for."""
    hosts, where = split_proxy(value)
    if where != DIRECT:
        try:
            url = URL(where)
        except ValueError:
            raise InvalidValue(_ALLOWED_PROXY) from None
        if url.username or url.password:
            raise InvalidValue("name the user of a proxy by --user 'http://PROXY:PORT NAME:PASSWORD'")
        if url.protocol not in _PROXY_SCHEMES or not url.hostname or url.pathname not in ("", "/"):
            raise InvalidValue(_ALLOWED_PROXY)
        where = _origin(url)
    return f"{hosts}={where}" if hosts else where


def split_proxy(value: str) -> tuple[str, str]:
    """The pattern of hosts that a proxy is for, and its URL."""
    hosts, _, where = value.rpartition("=")
    return hosts.strip().lower(), where.strip()


def split_certificate(value: str) -> tuple[str, str]:
    """The file of a certificate, and the password of its key."""
    path, _, password = value.partition(":")
    return path, password


class LoginRule(NamedTuple):
    """A form login: the page with the form, the fields that are filled in, and how its success and the loss of the
    session are known. `origins` are those whose pages are behind it."""

    url: str
    fields: tuple[tuple[str, str], ...]
    form: str = ""
    success: str = ""
    lost_url: str = ""
    lost_text: str = ""
    lost_status: str = ""
    origins: tuple[str, ...] = ()

    def table(self) -> SettingTable:
        """The rule as a setting."""
        named = {name: getattr(self, name) for name in _LOGIN_KEYS if name != "origins" and getattr(self, name)}
        named |= {"origins": " ".join(self.origins)} | {f"fields.{name}": value for name, value in self.fields}
        return SettingTable(f"{name}={value}" for name, value in named.items())


_LOGIN_KEYS = ("url", "form", "success", "lost_url", "lost_text", "lost_status", "origins")
_ALLOWED_LOGIN = (
    "a login is a table such as {url = 'https://example.org/login', fields = {user = 'ann', password = '${password}'}}"
)


def logins(value: object) -> tuple[SettingTable, ...]:
    """A list of form logins, each a table. What is wrong is not shown."""
    if not isinstance(value, list | tuple):
        raise InvalidValue(_ALLOWED_LOGIN, _Hidden())
    try:
        return tuple(read_login(item).table() for item in value)
    except InvalidValue as invalid:
        raise InvalidValue(invalid.phrase, _Hidden()) from None


def read_login(value: object) -> LoginRule:
    """The rule of a table, as TOML or as the settings have it. Raises InvalidValue."""
    given: dict[str, str] = {}
    items = dict(entry.split("=", 1) for entry in value) if isinstance(value, SettingTable) else value
    if not isinstance(items, Mapping):
        raise InvalidValue(_ALLOWED_LOGIN)
    for key, inside in items.items():
        if isinstance(inside, Mapping):
            given |= {f"{key}.{name}": text(str(content)) for name, content in inside.items()}
        else:
            given[str(key)] = " ".join(map(str, inside)) if isinstance(inside, list | tuple) else text(str(inside))
    fields = tuple((key.removeprefix("fields."), given.pop(key)) for key in list(given) if key.startswith("fields."))
    if unknown := [key for key in given if key not in _LOGIN_KEYS]:
        raise InvalidValue(f"a login has no {unknown[0]}: it has fields, {', '.join(_LOGIN_KEYS)}")
    try:
        url = URL(given.pop("url", ""))
        origins = tuple(URL(origin).origin for origin in given.pop("origins", "").split()) or (url.origin,)
    except ValueError:
        raise InvalidValue(_ALLOWED_LOGIN) from None
    if url.protocol not in ("http:", "https:") or not fields:
        raise InvalidValue(_ALLOWED_LOGIN)
    return LoginRule(url.href, fields, origins=origins, **given)


def split_origin(value: str) -> BoundText:
    """The origin that a validated setting is for, and the rest."""
    return _bound(value, "", _PROXY_SCHEMES)


def _bound(value: str, allowed: str, schemes: tuple[str, ...] = _WEB) -> BoundText:
    if not _SCHEME.match(value):
        return BoundText("", value)
    where, _, rest = value.partition(" ")
    try:
        url = URL(where)
    except ValueError:
        raise InvalidValue(allowed) from None
    if url.protocol not in schemes:
        raise InvalidValue(allowed)
    if url.username or url.password or url.pathname not in ("", "/") or url.search or url.hash:
        raise InvalidValue(f"an origin is a scheme, a host and maybe a port, such as {_origin(url)}")
    return BoundText(_origin(url), rest.strip())


def _origin(url: URL) -> str:
    return url.origin if url.protocol in _WEB else f"{url.protocol}//{url.host}"


def references(value: str) -> list[str]:
    """The names of the secrets that a text refers to."""
    return _REFERENCE.findall(value)


def replace_references(value: str, secret: Callable[[str], str]) -> str:
    """The text with the secrets in it."""
    return _REFERENCE.sub(lambda found: secret(found[1]), value)


# what is written in clear


class TakenOut(NamedTuple):
    """Settings without secrets, and the secrets that were in them, by name."""

    settings: "CrawlSettings"
    secrets: dict[str, str]


def take_out_secrets(settings: "CrawlSettings", folder: Path) -> TakenOut:
    """The settings of the collection in a folder with every credential bound to origins and every secret replaced by
    its name. Settings that name no credentials come back as they are."""
    if settings.credentials:
        read_secrets(Path(settings.credentials))  # a file that cannot be used is no surprise for later
    if not settings.has_sessions:
        return TakenOut(settings, {})
    known = read_secrets(folder / CREDENTIALS_FILE) if (folder / CREDENTIALS_FILE).exists() else {}
    texts = *settings.headers, *settings.users, *settings.certificates, *(" ".join(table) for table in settings.logins)
    taken = _Taking(known, {name for text in texts for name in references(text)})
    origins = list(dict.fromkeys(URL(seed).origin for seed in settings.seeds))
    changes = {
        "headers": _bind([taken.header(item) for item in map(split_origin, settings.headers)], origins),
        "users": _bind([taken.user(item) for item in map(split_origin, settings.users)], origins),
        "logins": [taken.login(read_login(table)).table() for table in settings.logins],
        "certificates": _bind([taken.certificate(item) for item in map(split_origin, settings.certificates)], origins),
    }
    return TakenOut(settings.replace(**changes), taken.new)


def _bind(items: Iterable[BoundText], origins: list[str]) -> tuple[str, ...]:
    bound = [BoundText(origin, item.text) for item in items for origin in ([item.origin] if item.origin else origins)]
    return tuple(dict.fromkeys(map(str, bound)))


class _Taking:
    """Replaces secrets by names. `used` are names that the settings have already; the secret of another one, such as an
    old password, gives way."""

    def __init__(self, known: Mapping[str, str], used: set[str]) -> None:
        self._used = {name: known.get(name) for name in used}
        self.new = dict[str, str]()

    def header(self, item: BoundText) -> BoundText:
        name, _, value = item.text.partition(": ")
        if name.lower() in OPEN_FIELDS or references(value) or not value:
            return item
        kind, space, secret = value.partition(" ") if name.lower() == "authorization" else ("", "", value)
        if not secret:  # no scheme before it
            kind, space, secret = "", "", value
        return BoundText(item.origin, f"{name}: {kind}{space}{self._named(name, secret)}")

    def user(self, item: BoundText) -> BoundText:
        name, _, password = item.text.partition(":")
        if references(password) or not password:
            return item
        return BoundText(item.origin, f"{name}:{self._named(f'password-of-{name}', password)}")

    def certificate(self, item: BoundText) -> BoundText:
        path, password = split_certificate(item.text)
        if not password or references(password):
            return item
        return BoundText(item.origin, f"{path}:{self._named(f'password-of-{Path(path).stem}', password)}")

    def login(self, rule: LoginRule) -> LoginRule:
        host = URL(rule.url).hostname
        named = [(k, v if references(v) or not v else self._named(f"{host}-{k}", v)) for k, v in rule.fields]
        return rule._replace(fields=tuple(named))

    def _named(self, name: str, secret: str) -> str:
        base = _NOT_IN_NAMES.sub("-", name.lower()).strip("-.")[:80] or "secret"
        number = 1
        while self._used.get(key := base if number == 1 else f"{base}-{number}", secret) != secret:
            number += 1
        self._used[key] = self.new[key] = secret
        return f"${{{key}}}"


# the credentials file


def read_secrets(path: Path) -> dict[str, str]:
    """The secrets of a credentials file by name. Raises SettingsError, also where others may read it."""
    try:
        if path.stat().st_mode & 0o077:
            raise SettingsError(f"other users may read {path}: run chmod 600 {path}")
        values = tomllib.loads(path.read_text())
    except OSError as error:
        raise SettingsError(f"cannot read the credentials file {path}: {error.strerror}") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError):
        # the parser's message may quote the line
        raise SettingsError(f'{path} cannot be read as TOML: it must have lines such as name = "secret"') from None
    if wrong := [name for name, value in values.items() if not isinstance(value, str)]:
        raise SettingsError(f'{wrong[0]} in {path} is no text: write {wrong[0]} = "secret"')
    return values


def save_secrets(folder: Path, secrets: Mapping[str, str]) -> None:
    """Adds secrets to the credentials file of a collection, as a whole or not at all; only its owner may read it."""
    if not secrets:
        return
    path = folder / CREDENTIALS_FILE
    known = read_secrets(path) if path.exists() else {}
    lines = [f"{_toml(name)} = {_toml(value)}\n" for name, value in {**known, **secrets}.items()]
    new = path.with_name(f"{path.name}.new")
    try:
        new.unlink(missing_ok=True)
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(_HEADING + "".join(lines))
        new.replace(path)
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror}") from error


def _toml(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in escaped) + '"'
