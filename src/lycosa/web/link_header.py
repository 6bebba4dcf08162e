"""The `Link` header (RFC 8288): links that a response has before, or without, a document.

Pure, linear, never raises: what fits no rule is passed over. Addresses are relative to the response's own URL, whatever
`<base>` its document has. Called by the engine, for the headers of responses and of 103 Early Hints.
"""

import re
from typing import NamedTuple

MAX_CHARACTERS = 32 * 1024
MAX_LINKS = 200

_SPACE = r"[ \t]*+"
_LINK = re.compile(
    rf"<([^<>]*+)>((?:{_SPACE};{_SPACE}[^\s;,=\"<>]*+(?:{_SPACE}={_SPACE}(?:\"(?:[^\"\\]|\\.)*+\"|[^\s;,\"]*+))?)*+)",
    re.DOTALL,
)
_PARAMETER = re.compile(
    rf";{_SPACE}([^\s;,=\"<>]++){_SPACE}={_SPACE}(?:\"((?:[^\"\\]|\\.)*+)\"|([^\s;,\"]*+))", re.DOTALL
)


class HeaderLink(NamedTuple):
    """One link: its address as written, and its relations in lower case."""

    href: str
    rels: frozenset[str]


def parse_links(value: str) -> list[HeaderLink]:
    """The links of a header's value, or of several joined by commas; those about another context are left out."""
    found: list[HeaderLink] = []
    for link in _LINK.finditer(value[:MAX_CHARACTERS]):
        parameters: dict[str, str] = {}
        for parameter in _PARAMETER.finditer(link[2]):
            text = parameter[2] if parameter[2] is not None else parameter[3]
            parameters.setdefault(parameter[1].lower(), text)
        if "anchor" not in parameters:
            found.append(HeaderLink(link[1].strip(), frozenset(parameters.get("rel", "").lower().split())))
        if len(found) >= MAX_LINKS:
            break
    return found
