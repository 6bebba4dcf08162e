"""Files in which a host speaks of the use of its content: `tdmrep.json` (TDMRep) and licences in RSL 1.0.

Both become pairs of a pattern of paths, in the form in which robots.txt is compared, and a value that
`web.preferences` reads: `reservations` and `terms` of a host's `Robots`. What cannot be read says nothing; any bytes
give an answer, and entities are never expanded. Called by the crawl where its purpose asks for these files.
"""

from collections.abc import Iterator
from xml.parsers import expat

import msgspec

from lycosa.web.preferences import RSL_USAGES, TDM_RESERVATION, Purpose
from lycosa.web.robots import MAX_USE_CHARS, MAX_USE_LINES, comparable_pattern
from lycosa.web.url import parse_url

TDMREP_PATH = "/.well-known/tdmrep.json"
MAX_USAGE_FILE_BYTES = 512 * 1024
# RSL 1.0: what a licence with another payment grants is granted to those who have paid.
FREE_PAYMENTS = frozenset(("free", "attribution"))

PatternValues = tuple[tuple[str, str], ...]


def read_reservations(body: bytes) -> PatternValues:
    """The rules of a tdmrep.json: pattern, and the reservation with its policy, if it has one."""
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ()
    rules = list[tuple[str, str]]()
    for entry in found if isinstance(found, list) else [found]:
        if not isinstance(entry, dict):
            continue
        location, reserved, policy = (entry.get(name) for name in ("location", "tdm-reservation", "tdm-policy"))
        value = str(int(reserved)) if isinstance(reserved, int | float) and reserved in (0, 1) else str(reserved)
        if isinstance(location, str) and location.startswith(("/", "*")) and value in TDM_RESERVATION:
            text = policy[:MAX_USE_CHARS] if isinstance(policy, str) and policy.isprintable() else ""
            rules.append((comparable_pattern(location), f"{value} {text}".strip()))
    return tuple(rules[:MAX_USE_LINES])


def read_terms(body: bytes, site: str) -> PatternValues:
    """What the licences in an RSL document say of the paths of the host at `site`: pattern, and `ai-train=n, …`."""
    reader = _RslReader()
    try:
        reader.parse(body)
    except (expat.ExpatError, ValueError):
        return ()
    home, rules = parse_url(site), list[tuple[str, str]]()
    for content in reader.contents:
        path = content.url
        if not path.startswith("/"):
            url = parse_url(path)
            if url is None or home is None or (url.host, url.port) != (home.host, home.port):
                continue
            path = url.path
        said = content.says()
        value = ", ".join(f"{purpose}={'y' if may else 'n'}" for purpose, may in said.items())
        rules.append((comparable_pattern(path), value))
    return tuple(rules[:MAX_USE_LINES])


class _RslLicense:
    """One `<license>`: the usages that it permits (None: it names none) and prohibits; `is_conditional`: it is for some
    users or countries only; `is_paid`: what it grants has to be paid for."""

    def __init__(self) -> None:
        self.permits: set[Purpose] | None = None
        self.prohibits: set[Purpose] = set()
        self.is_conditional = self.is_paid = False

    def answer(self, purpose: Purpose) -> bool | None:
        if purpose in self.prohibits or (self.permits is not None and purpose not in self.permits):
            return False
        if self.permits is None and not self.prohibits:
            return False if self.is_paid else None
        return False if self.is_paid else None if self.is_conditional else True


class _RslContent:
    """One `<content>`, with its licences; a client may choose among them."""

    def __init__(self, url: str, *, needs_license: bool) -> None:
        self.url, self._needs_license = url, needs_license
        self.licenses: list[_RslLicense] = []

    def says(self) -> dict[Purpose, bool]:
        found: dict[Purpose, bool] = {}
        for purpose in Purpose:
            answers = [one.answer(purpose) for one in self.licenses]
            if self._needs_license and self.licenses:
                answers = [False]  # whatever it grants has to be obtained from the licence server
            if purpose is not Purpose.ARCHIVE and any(answer is not None for answer in answers):
                found[purpose] = True in answers
        return found


class _RslReader:
    """Reads an RSL document."""

    def __init__(self) -> None:
        self.contents: list[_RslContent] = []
        self._license: _RslLicense | None = None
        self._usages: set[Purpose] | None = None
        self._text: list[str] = []

    def parse(self, body: bytes) -> None:
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        parser.CharacterDataHandler = self._text.append
        parser.StartDoctypeDeclHandler = self._refuse
        parser.Parse(body[:MAX_USAGE_FILE_BYTES], True)

    def _refuse(self, *_: object) -> None:
        raise ValueError("a licence has no document type")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        name, kind = name.rpartition(" ")[2], attributes.get("type", "usage").strip().lower()
        if name == "content":
            self.contents.append(_RslContent(attributes.get("url", ""), needs_license=bool(attributes.get("server"))))
        elif name == "license" and self.contents:
            self._license = _RslLicense()
            self.contents[-1].licenses.append(self._license)
        elif self._license is not None and name in ("permits", "prohibits"):
            if kind != "usage":
                self._license.is_conditional = True
            elif name == "permits":
                self._usages = self._license.permits = self._license.permits or set()
            else:
                self._usages = self._license.prohibits
        elif self._license is not None and name == "payment" and kind not in FREE_PAYMENTS:
            self._license.is_paid = "type" in attributes
        self._text.clear()

    def _end(self, name: str) -> None:
        name = name.rpartition(" ")[2]
        if name in ("permits", "prohibits") and self._usages is not None:
            self._usages.update(_purposes("".join(self._text)))
            self._usages = None
        elif name == "license":
            self._license = None
        self._text.clear()


def _purposes(text: str) -> Iterator[Purpose]:
    for word in text.lower().replace(",", " ").split():
        yield from RSL_USAGES.get(word, ())
