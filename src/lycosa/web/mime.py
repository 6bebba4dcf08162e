"""MIME types as HTTP sends them: `Content-Type` to a record, by the WHATWG MIME Sniffing and Fetch standards.

Invariant: never raises; a value that is not a MIME type gives `None`, a bad parameter is left out, the first of two
parameters with one name counts. Called by `media`.
"""

import re
from functools import lru_cache

import msgspec

_WHITESPACE = "\t\n\r "
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+\Z")
_QUOTED_OR_TOKEN_TEXT = re.compile(r"[\t\x20-\x7e\x80-\xff]*\Z")
_ESSENCE = re.compile(r"([!#$%&'*+\-.^_`|~0-9A-Za-z]+)/([!#$%&'*+\-.^_`|~0-9A-Za-z]+)[\t\n\r ]*(?:;|\Z)")
_QUOTED_STRING = re.compile(r'"((?:[^"\\]|\\.)*)(\\?)(?:"|\Z)', re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
# A comma between two values of a repeated header: one outside quotes.
_HEADER_VALUE = re.compile(r'(?:[^",]|"(?:[^"\\]|\\.)*(?:"|\\?\Z))*', re.DOTALL)
# A crawl sees the same few headers again and again; longer ones are not worth keeping.
_CACHED_LENGTH = 100


class MimeType(msgspec.Struct, frozen=True):
    """`essence` is `type/subtype` in lower case; parameter names are lower case, values as sent."""

    essence: str
    parameters: dict[str, str] = {}

    @property
    def charset(self) -> str | None:
        return self.parameters.get("charset")

    def __str__(self) -> str:
        return self.essence + "".join(f";{name}={_written(value)}" for name, value in self.parameters.items())


def parse(value: str) -> MimeType | None:
    """One MIME type, as the standard's "parse a MIME type" reads it."""
    value = value.strip(_WHITESPACE)
    head = _ESSENCE.match(value)
    if head is None:
        return None
    parameters: dict[str, str] = {}
    at = head.end()
    while at < len(value):
        name, content, at = _parameter(value, at)
        if content is not None and _TOKEN.match(name) and _QUOTED_OR_TOKEN_TEXT.match(content):
            parameters.setdefault(name, content)
    return MimeType(f"{head[1]}/{head[2]}".lower(), parameters)


def from_header(value: str | None) -> MimeType | None:
    """The MIME type of a `Content-Type` header, whose repetitions are joined by commas: the last valid one counts.

    A later value of the same essence without a charset keeps the charset of the one before it.
    """
    if not value:
        return None
    return _from_short_header(value) if len(value) <= _CACHED_LENGTH else _from_values(value)


@lru_cache(maxsize=64)
def _from_short_header(value: str) -> MimeType | None:
    return _from_values(value)


def _from_values(header: str) -> MimeType | None:
    found: MimeType | None = None
    charset: str | None = None
    for part in _values(header):
        mime = parse(part)
        if mime is None or mime.essence == "*/*":
            continue
        if found is None or mime.essence != found.essence or mime.charset is not None:
            charset = mime.charset
        elif charset is not None:
            mime = MimeType(mime.essence, {**mime.parameters, "charset": charset})
        found = mime
    return found


def _values(header: str) -> list[str]:
    if "," not in header:
        return [header]
    values: list[str] = []
    at = 0
    while at <= len(header):
        value = _HEADER_VALUE.match(header, at)
        assert value is not None  # the pattern matches the empty string
        values.append(value[0])
        at = value.end() + 1
    return values


def _parameter(value: str, at: int) -> tuple[str, str | None, int]:
    """The parameter at `at`: its name, its content (`None` if it has none), and where the next one begins."""
    while at < len(value) and value[at] in _WHITESPACE:
        at += 1
    end = _first_of(value, ";=", at)
    name = value[at:end].lower()
    if end >= len(value) or value[end] == ";":
        return name, None, end + 1
    at = end + 1
    if value.startswith('"', at):
        quoted = _QUOTED_STRING.match(value, at)
        assert quoted is not None  # it begins with a quote, and the end of input closes it
        return name, _ESCAPED.sub(r"\1", quoted[1]) + quoted[2], _first_of(value, ";", quoted.end()) + 1
    end = _first_of(value, ";", at)
    return name, value[at:end].rstrip(_WHITESPACE) or None, end + 1


def _first_of(value: str, stops: str, at: int) -> int:
    found = [index for index in (value.find(stop, at) for stop in stops) if index >= 0]
    return min(found, default=len(value))


def _written(content: str) -> str:
    if _TOKEN.match(content):
        return content
    return '"' + content.replace("\\", "\\\\").replace('"', '\\"') + '"'
