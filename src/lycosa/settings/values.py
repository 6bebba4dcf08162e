"""Single values as people write them: counts, seconds, sizes, switches, words, lists, networks, seeds.

Pure functions from what a file, a variable or an option holds to what the schema keeps. Each takes any object and
gives the value or raises `Unfit`, whose phrase says what is allowed; reading a value that was read already changes
nothing. Used by `settings.schema` as validators.
"""

import math
import re
from collections.abc import Callable
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any, TypeVar, get_args

from ada_url import URL

T = TypeVar("T")

# What `allow_private` means without a network: every network people number their own machines from. Link-local is
# not among them, cloud metadata services live there.
PRIVATE_NETWORKS = ("10.0.0.0/8", "127.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "::1/128", "fc00::/7")
PRIVATE = "private"
NONE = "none"

ONLY_HTTP = "only http and https URLs can be seeds"
# Longer text is no URL that anything downstream would take.
MAX_SEED_BYTES = 16_384
# Fits the integers of TOML, JSON and the state.
MOST = 2**63 - 1
# Ten years; what is longer is a slip of the unit.
MOST_S = 10 * 365 * 86_400.0

# In one rendered page.
MOST_SCROLLS, MOST_WAIT_S = 100, 60.0

_NUMBER = r"\d{1,18}(?:\.\d{1,18})?"
_DURATION = re.compile(rf"(?:{_NUMBER}(?:ms|[smhd]))+", re.ASCII)
_DURATION_PART = re.compile(rf"({_NUMBER})(ms|[smhd])", re.ASCII)
_SECONDS_IN = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
_SIZE = re.compile(rf"({_NUMBER})\s?([kmgt]?)(i?)b?", re.ASCII | re.IGNORECASE)
_PLAIN = re.compile(r"[+-]?(?:\d{1,18}\.?\d{0,18}|\.\d{1,18})(?:e[+-]?\d{1,3})?", re.ASCII | re.IGNORECASE)
_PORT = re.compile(r"[0-9]{1,5}")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
# `mailto:`, `javascript:`: a scheme without a host. `example.org:80` and `localhost:80` are none.
_OTHER_SCHEME = re.compile(r"(?!https?:)[A-Za-z][A-Za-z0-9+-]*:(?![0-9/])")
_PATH = re.compile(r"/(?!/)|\.{1,2}(?:/|$)|~")
_PRODUCT = re.compile(r"[A-Za-z_-]{1,64}")
# Printable ASCII that cannot end the comment of a user agent or begin another header.
_CONTACT = re.compile(r"https?://[!-'*-\[\]-~]{1,250}|(?:mailto:)?[!-'*-?A-\[\]-~]{1,64}@[A-Za-z0-9.-]{1,190}")
_USERINFO = re.compile(r"https?://[^/?#]*@")
_LETTER = re.compile(r"[A-Za-z0-9._:\[\]-]=[0-9]{1,6}")
_EXTENSION = re.compile(r"[a-z0-9_+~-]{1,32}")
_YES, _NO = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


class InvalidValue(ValueError):
    """A value that cannot be: `phrase` says what is allowed, `item` which one of a list it is about."""

    def __init__(self, phrase: str, item: object = None) -> None:
        super().__init__(phrase, item)
        self.phrase = phrase
        self.item = item


class SettingTable(tuple[str, ...]):
    """NAME=VALUE entries, which TOML files hold as a table; like all settings it is hashable."""

    __slots__ = ()


def or_none(read: Callable[[object], T]) -> Callable[[object], T | None]:
    """The same, and `none` for a limit or a name that is not set."""

    def read_or_none(value: object) -> T | None:
        if value is None or (isinstance(value, str) and value.strip().lower() in ("", NONE)):
            return None
        try:
            return read(value)
        except InvalidValue as unfit:
            raise InvalidValue(f"{unfit.phrase}, or none", unfit.item) from None

    return read_or_none


def whole(least: int, most: int = MOST) -> Callable[[object], int]:
    """Whole numbers between two bounds: 20000, "20_000", "20,000"."""
    allowed = f"it must be a whole number {_range(least, most)}"

    def read(value: object) -> int:
        number = _number(value.replace("_", "").replace(",", "") if isinstance(value, str) else value, allowed)
        if number != int(number):
            raise InvalidValue(allowed)
        return int(_within(number, least, most, allowed))

    return read


def share(value: object) -> float:
    """Numbers from 0 to 1."""
    allowed = "it must be a number from 0 to 1"
    return float(_within(_number(value, allowed), 0, 1, allowed))


def seconds(least: float, most: float = MOST_S) -> Callable[[object], float]:
    """Lengths of time in seconds: 90, 0.5, "90", "500ms", "10m", "1h30m"."""
    allowed = f"it must be a time {_range(least, most, 's')}, such as 90, 500ms, 10m or 2h"

    def read(value: object) -> float:
        text = value.strip().lower() if isinstance(value, str) else ""
        if _DURATION.fullmatch(text):
            value = sum(float(number) * _SECONDS_IN[unit] for number, unit in _DURATION_PART.findall(text))
        return float(_within(_number(value, allowed), least, most, allowed))

    return read


def size(least: int) -> Callable[[object], int]:
    """Sizes in bytes: 500000, "500 kB", "2GiB", "1.5MB"."""
    allowed = f"it must be a size {_range(least, MOST, 'bytes')}, such as 500000, 500MB or 2GiB"

    def read(value: object) -> int:
        match = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
        if match and (match[2] or not match[3]):
            number, prefix, binary = match.groups()
            factor = (1024 if binary else 1000) ** " kmgt".index(prefix.lower() or " ")
            value = int(number) * factor if number.isdigit() else round(float(number) * factor)
        return round(_within(_number(value, allowed), least, MOST, allowed))

    return read


def flag(value: object) -> bool:
    """Switches: true, false, and the words for them that an environment uses."""
    word = value.strip().lower() if isinstance(value, str) else ""
    if isinstance(value, bool):
        return value
    if word in _YES or word in _NO:
        return word in _YES
    raise InvalidValue("it must be true or false")


def one_of(literal: Any) -> Callable[[object], str]:
    """One of the words of a `Literal`."""
    words: tuple[str, ...] = get_args(literal)

    def read(value: object) -> str:
        word = value.strip().lower() if isinstance(value, str) else ""
        if word not in words:
            raise InvalidValue(f"it must be one of {', '.join(words)}")
        return word

    return read


def each(read: Callable[[str], str]) -> Callable[[object], tuple[str, ...]]:
    """A list, each item read by `read` and kept once; one string is a list of its words."""

    def read_each(value: object) -> tuple[str, ...]:
        if isinstance(value, str):
            value = value.split()
        if not isinstance(value, list | tuple):
            raise InvalidValue("it must be a list of texts")
        found: dict[str, None] = {}
        for item in value:
            try:
                found[read(text(item))] = None
            except InvalidValue as unfit:
                raise InvalidValue(unfit.phrase, item) from None
        return tuple(found)

    return read_each


def text(value: object) -> str:
    """Text that can be written to a file and read again."""
    if not isinstance(value, str) or not value.isprintable():
        raise InvalidValue("it must be text without control characters")
    return value.strip()


def path(value: object) -> str:
    """The path of a file, made absolute since other processes read it too; or nothing."""
    written = text(value)
    return str(Path(written).expanduser().absolute()) if written else ""


def pattern(value: str) -> str:
    """A URL pattern with `*`."""
    if not value:
        raise InvalidValue("it must be a pattern such as /blog/* or *.pdf")
    return value


def media_type(value: str) -> str:
    """A media type, or a pattern of them."""
    kind, slash, rest = value.partition("/")
    if not (kind and slash and rest) and "*" not in value:
        raise InvalidValue("it must be a media type such as application/pdf, or a pattern such as 'image/*'")
    return value.lower()


def render_step(value: str) -> str:
    """Something that is done in a rendered page."""
    read_render_step(value)
    return " ".join(value.split())


def read_render_step(value: str) -> tuple[str, str, int]:
    """What a step does, to which selector, and how often or for how many milliseconds."""
    verb, _, what = " ".join(value.split()).partition(" ")
    if verb == "scroll" and (what or "1").isdecimal() and 0 < int(what or 1) <= MOST_SCROLLS:
        return verb, "", int(what or 1)
    if verb == "wait" and _DURATION.fullmatch(what):
        return verb, "", round(1000 * seconds(0, MOST_WAIT_S)(what))
    if verb in ("wait", "click") and what and not what.isdecimal():
        return verb, what, 0
    raise InvalidValue("it must be 'wait SELECTOR', 'wait 500ms', 'click SELECTOR' or 'scroll 5'", value)


def group(value: str) -> str:
    """Hosts that share their slots: PATTERN=REQUESTS or PATTERN=REQUESTS/DELAY."""
    name, requests, delay_s = read_group(value)
    return f"{name}={requests}/{delay_s:g}"


def read_group(value: str) -> tuple[str, int, float]:
    """Pattern, requests at a time, and pause of a group."""
    allowed = "it must be a pattern, requests at a time and a pause, such as *.example.org=2/1s or domain=1/500ms"
    name, equals, numbers = value.rpartition("=")
    requests, _, delay = numbers.partition("/")
    try:
        found = name.strip().lower(), whole(1, 10_000)(requests), seconds(0)(delay or 0)
    except InvalidValue:
        raise InvalidValue(allowed) from None
    if not equals or not found[0]:
        raise InvalidValue(allowed)
    return found


def host_pages(value: str) -> str:
    """Hosts that have a limit of pages of their own: PATTERN=N."""
    pattern, pages = read_host_pages(value)
    return f"{pattern}={pages}"


def read_host_pages(value: str) -> tuple[str, int]:
    """The pattern and the number of pages of such a limit."""
    pattern, _, pages = value.rpartition("=")
    try:
        found = pattern.strip().lower(), whole(1)(pages)
    except InvalidValue:
        found = "", 0
    if not found[0]:
        raise InvalidValue("it must be a pattern and a number of pages, such as *.example.org=500")
    return found


def place(value: str) -> str:
    """A range of addresses and the name of where it is: RANGE=PLACE."""
    network, name = read_place(value)
    return f"{network}={name}"


def read_place(value: str) -> tuple[str, str]:
    """Range and place."""
    allowed = "it must be a range of addresses and a place, such as 192.0.2.0/24=berlin"
    network, equals, name = value.partition("=")
    try:
        found = str(ip_network(network.strip(), strict=False)), name.strip()
    except ValueError:
        raise InvalidValue(allowed) from None
    if not equals or not found[1]:
        raise InvalidValue(allowed)
    return found


def analyser(value: str) -> str:
    """A kind of documents, or a media type, and the part that reads them: KIND=NAME."""
    kind, equals, name = value.partition("=")
    if not (equals and kind.strip() and name.strip()):
        raise InvalidValue("it must be a kind of documents and a part, such as pdf=my_parts:pdf or text/html=html")
    return f"{kind.strip().lower()}={name.strip()}"


def letter(value: str) -> str:
    """A character of host names and its value: -=37."""
    character, worth = read_letter(value)
    return f"{character}={worth}"


def read_letter(value: str) -> tuple[str, int]:
    """Character and value."""
    if not _LETTER.fullmatch(value):
        raise InvalidValue("it must be a character of host names and a number, such as -=37")
    return value[0].lower(), int(value[2:])


def extension(value: str) -> str:
    """`*.PDF`, `.pdf` and `pdf` are the same."""
    bare = value.lower().removeprefix("*").removeprefix(".")
    if not _EXTENSION.fullmatch(bare):
        raise InvalidValue("it must be an extension such as pdf or zip")
    return bare


def seed(value: str) -> str:
    """A URL to start from, as the URL standard writes it; without a scheme it is https."""
    allowed = "it must be a URL such as https://example.org/"
    if not text(value) or len(value) > MAX_SEED_BYTES:
        raise InvalidValue(allowed)
    if _PATH.match(value):
        raise InvalidValue("this is a path, not a URL")
    if _OTHER_SCHEME.match(value):
        raise InvalidValue(ONLY_HTTP)
    try:
        url = URL(value if _SCHEME.match(value) else f"https://{value}")
    except ValueError:
        raise InvalidValue(allowed) from None
    if url.protocol not in ("http:", "https:"):
        raise InvalidValue(ONLY_HTTP)
    if url.username or url.password:
        raise InvalidValue("it must not hold a user name or password, none is ever sent")
    return url.href


def webhook(value: str) -> str:
    """The URL of a webhook; without a scheme it is https."""
    try:
        return seed(value)
    except InvalidValue:
        raise InvalidValue("it must be an http or https URL without a password: https://example.org/hook") from None


def network(value: str) -> str:
    """A network such as 10.0.0.0/8; a lone address is a network of one."""
    try:
        return str(ip_network(value, strict=False))
    except ValueError:
        raise InvalidValue(f"it must be a network such as 192.168.0.0/16, or {PRIVATE} for all private ones") from None


def private_networks(value: object) -> tuple[str, ...]:
    """Networks opened by the user: a list of them, in which `private` (or true) stands for all private ones."""
    if isinstance(value, bool):
        value = [PRIVATE] if value else []
    words = value.split() if isinstance(value, str) else value
    if isinstance(words, list | tuple):
        words = [item for word in words for item in (PRIVATE_NETWORKS if word == PRIVATE else (word,))]
    return each(network)(words)


def name_server(value: str) -> str:
    """ADDRESS:PORT of a name server, 53 where the port is left out; IPv6 in brackets."""
    allowed = "it must be an address and a port such as 127.0.0.1:53 or [::1]:53"
    host, port = value, "53"
    if value.startswith("["):
        host, _, rest = value[1:].partition("]")
        port = rest.removeprefix(":") if rest else port
    elif value.count(":") == 1:
        host, _, port = value.partition(":")
    try:
        address = ip_address(host)
    except ValueError:
        raise InvalidValue(allowed) from None
    if not _PORT.fullmatch(port) or not 0 < int(port) < 65_536 or "%" in host:
        raise InvalidValue(allowed)
    return f"{address}:{int(port)}" if address.version == 4 else f"[{address}]:{int(port)}"


def product(value: object) -> str:
    """The product token of a user agent, as RFC 9309 wants it."""
    if not isinstance(value, str) or not _PRODUCT.fullmatch(value):
        raise InvalidValue("it must be a name of letters, - and _, at most 64 of them")
    return value


def contact(value: object) -> str:
    """A web or e-mail address that fits into a header."""
    if not isinstance(value, str) or not _CONTACT.fullmatch(value):
        raise InvalidValue("it must be a URL or an e-mail address such as https://example.org/bot or crawl@example.org")
    if has_userinfo(value):
        raise InvalidValue("it must not hold a user name or password, since every host is sent it")
    return value


def has_userinfo(value: str) -> bool:
    """Whether a web address names a user or a password."""
    return _USERINFO.match(value) is not None


def bot_agent(value: object) -> str:
    """The https origin of a signer's directory, or nothing."""
    if value == "":
        return ""
    allowed = "it must be a URL such as https://bot.example.org, without a path"
    try:
        url = URL(text(value))
    except ValueError:
        raise InvalidValue(allowed) from None
    if url.protocol != "https:" or url.pathname != "/" or url.search or url.hash or url.username or url.password:
        raise InvalidValue(allowed)
    return url.href.removesuffix("/")


def _number(value: object, allowed: str) -> int | float:
    """What a plain number is; text is allowed, switches are not."""
    if isinstance(value, str) and _PLAIN.fullmatch(value.strip()):
        value = int(value) if value.strip().isdigit() else float(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not _is_finite(value):
        raise InvalidValue(allowed)
    return value


def _is_finite(value: int | float) -> bool:
    return isinstance(value, int) or math.isfinite(value)


def _within(value: int | float, least: float, most: float, allowed: str) -> int | float:
    if not least <= value <= most:
        raise InvalidValue(allowed)
    return value


def _range(least: float, most: float, unit: str = "") -> str:
    lower = f"{least:,} {unit}".rstrip()
    return f"of at least {lower}" if most in (MOST, MOST_S) else f"between {least:,} and {most:,} {unit}".rstrip()
