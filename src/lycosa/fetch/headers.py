"""HTTP header fields: those a request carries, and how those of a response are read.

Pure. Field values are Latin-1 on the wire, both ways; what goes out never contains a control character, so nothing
from outside can start a line of its own. Called by the crawl for requests, and by `fetch.transfer`.
"""

import re
from collections.abc import Iterable, Mapping

from lycosa.errors import SettingsError

Fields = tuple[tuple[str, str], ...]

ACCEPT_PAGES = "text/html,application/xhtml+xml,application/xml;q=0.9,text/plain;q=0.8,*/*;q=0.1"
# What `fetch.decode` undoes. No deflate: servers disagree on what it means.
ACCEPT_ENCODING = "gzip, br, zstd"

# libcurl takes a tab for the space and 2000 for 200; a server that writes these does not speak HTTP.
_STATUS_LINE = re.compile(rb"HTTP/[0-9](?:\.[0-9])? ([1-9][0-9]{2})(?=[ \r\n]|\Z)")


def user_agent(product: str, *, contact: str = "") -> str:
    """The User-Agent field: the product that crawls, and where its operators can be reached. Whoever needs the field
    calls this."""
    value = f"{product} (+{contact})" if contact else product
    if not is_field_value(value):
        raise SettingsError(f"user agent {value!r}: use plain characters on one line")
    return value


def request_fields(agent: str, *, accept: str = ACCEPT_PAGES) -> Fields:
    """The fields that every request carries. They are made once a crawl: equal tuples are cheap to send again."""
    return (("User-Agent", agent), ("Accept", accept), ("Accept-Encoding", ACCEPT_ENCODING))


def is_field_value(value: str) -> bool:
    """Whether `value` can be sent: Latin-1, no control characters but tabs, no space around it."""
    if not value.isascii() and any(character > "\xff" for character in value):
        return False
    plain = value.replace("\t", " ")
    return value == value.strip() and not any(character < " " or character == "\x7f" for character in plain)


def parse_status(block: bytes) -> int:
    """The status of a header block; 0 when its first line is no status line of HTTP."""
    found = _STATUS_LINE.match(block)
    return int(found[1]) if found else 0


def parse_fields(block: bytes) -> dict[str, str]:
    """The fields of a header block by lower-case name; repeated ones joined by ", ", folded lines unfolded."""
    fields: dict[str, str] = {}
    name = ""
    for line in block.decode("latin-1").split("\n")[1:]:
        if line[:1] in (" ", "\t"):
            if name and line.strip():
                fields[name] = f"{fields[name]} {line.strip()}"
            continue
        name, colon, value = line.partition(":")
        if not colon:
            name = ""
            continue
        name = name.strip().lower()
        value = value.strip()
        fields[name] = f"{fields[name]}, {value}" if name in fields else value
    return fields


def response_media_type(fields: Mapping[str, str]) -> str:
    """The media type of a response, lower-case and without parameters; "" when it names none."""
    return fields.get("content-type", "").partition(";")[0].partition(",")[0].strip().lower()


def curl_lines(fields: Iterable[tuple[str, str]]) -> list[bytes]:
    """The fields as libcurl takes them. Raises ValueError for one that cannot be sent."""
    lines = []
    names = set()
    for name, value in fields:
        if not is_field_value(value) or not _is_field_name(name):
            raise ValueError(f"header field {name!r} cannot be sent")
        # libcurl drops "Name:" and sends "Name;" as an empty field
        lines.append(f"{name}: {value}".encode("latin-1") if value else f"{name};".encode("latin-1"))
        names.add(name.lower())
    if "accept" not in names:
        lines.append(b"Accept:")  # libcurl would add one of its own
    return lines


def _is_field_name(name: str) -> bool:
    return (
        name.isascii()
        and bool(name)
        and all(character.isalnum() or character in "!#$%&'*+-.^_`|~" for character in name)
    )
