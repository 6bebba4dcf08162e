"""What a site allows a robot: robots.txt by RFC 9309, and the directives in headers and meta tags.

`Robots` is the record a host keeps: the rules of the one group that concerns us, with crawl delay and sitemaps, and
what the host says on the use of its content (`web.preferences` knows what that means). It is plain data (msgspec,
pickle); what makes matching fast is built from it on first use. The crawl makes it from a response with
`robots_from_response_steps` and asks `allows` before every request. Any bytes give a record; nothing here raises. Long
work is a generator of `Steps`: it yields every few milliseconds and returns its result, so that whoever
must not be held up runs it a step at a time.
"""

import codecs
import re
from collections.abc import Generator, Iterable
from functools import cached_property
from math import isfinite
from typing import TypeAlias, TypeVar

import msgspec

from lycosa.web.date import parse_date
from lycosa.web.scope import matches_pattern, pattern_pieces

StepResult = TypeVar("StepResult")
Steps: TypeAlias = Generator[None, None, StepResult]


def run_steps(steps: Steps[StepResult]) -> StepResult:
    """Runs all steps at once and returns their result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: StepResult = end.value
            return result


# RFC 9309 §2.5: at least this much of a robots.txt is read. More is cut at a line's end.
MAX_ROBOTS_BYTES = 500 * 1024
# A longer Crawl-delay counts as this: at one request an hour a host is as good as left alone, yet not forgotten.
MAX_CRAWL_DELAY_S = 3_600.0
# What is kept of the Sitemap lines: an index names the rest, and the record is written with every host.
MAX_SITEMAPS = 1_000
# What is kept of the lines on the use of content: each kind of them, and of one of them.
MAX_USE_LINES, MAX_USE_CHARS = 200, 500
# What is read in one step.
LINES_A_STEP = 500
# Rules with stars are tried one after the other: so many take about a twentieth of a millisecond, the
# unit of `rule_cost`.
PATTERNS_PER_COST_UNIT = 100

_LINE_TOKEN = re.compile(r"[A-Za-z_-]*")  # RFC 9309 §2.2.1: all a product token may hold
_OWN_TOKEN = re.compile(r"[^/\s]*")
# Each key with the spellings that other parsers of note (Google's, protego, crawler-commons) accept for it: whoever
# wrote one of these meant the rule, and is obeyed elsewhere. None for `allow`: a doubt never widens what we may fetch.
_SPELLINGS = {
    "user-agent": "user agent;useragent;user-agents;useg-agent;ser-agent",
    "allow": "allow",
    "disallow": "dissallow;dissalow;disalow;diasllow;disallaw;disallows;desallow;dssalow;dsallow",
    "crawl-delay": "crawl delay;crawldelay",
    "sitemap": "sitemaps;site-map",
    "content-usage": "content-usage",
    "content-signal": "content-signal;content-signals",
    "license": "license;licence",
}
# Lines that are not among the rules of RFC 9309, and so do not end a run of User-agent lines. Content-Usage is a rule.
_NO_RULES = frozenset((b"crawl-delay", b"content-signal"))
_KEYS = {
    spelling.encode(): key.encode()
    for key, spellings in _SPELLINGS.items()
    for spelling in (key, *spellings.split(";"))
}
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_ESCAPE_OR_ODD = re.compile(r"%[0-9A-Fa-f]{2}|[^\w\-.~:/?#\[\]@!$&()*+,;=%]", re.ASCII)
_PATH_NEEDS_WORK = re.compile(r"[^\w\-.~:/?#\[\]@!&()+,;=]", re.ASCII)
# In a query ":" and "/" mean nothing of their own, and RFC 9309 §2.2.2 takes them for equal to their escapes.
_QUERY_ESCAPE = re.compile(r"%(?:3A|2F)")


class Robots(msgspec.Struct, frozen=True, dict=True, omit_defaults=True):
    """The rules of one site for one product token. Patterns are in the form they are compared in.

    The fields after `is_unreachable` are what the host says on the use of its content: `usages` (Content-Usage, each
    with its path), `signals` (Content-Signal), `licenses` (addresses of licences, as written), and from files that are
    asked for beside robots.txt, `reservations` (tdmrep.json) and `terms` (of licences), each with its path."""

    agent: str
    allow: tuple[str, ...] = ()
    disallow: tuple[str, ...] = ()
    crawl_delay_s: float | None = None
    sitemaps: tuple[str, ...] = ()
    is_unreachable: bool = False
    usages: tuple[tuple[str, str], ...] = ()
    signals: tuple[str, ...] = ()
    licenses: tuple[str, ...] = ()
    reservations: tuple[tuple[str, str], ...] = ()
    terms: tuple[tuple[str, str], ...] = ()

    @cached_property
    def speaks_of_use(self) -> bool:
        """Does the host say anything on the use of its content?"""
        return bool(self.usages or self.signals or self.licenses or self.reservations or self.terms)

    def allows(self, path: str) -> bool:
        """Whether `path` (with query, as in `Url.path`) may be asked for: the longest rule that matches decides, of
        two equally long ones the one that allows; without a rule it is allowed. (robots.txt itself is fetched
        without asking.)"""
        return self._matcher.allows(path)

    def disallowed_by(self, path: str) -> str:
        """The pattern of the rule that disallows `path`; empty where it may be asked for."""
        rules = [] if self.allows(path) else longest_matches(((rule, rule) for rule in self.disallow), path)
        return rules[0] if rules else ""

    @cached_property
    def rule_cost(self) -> int:
        """How long an answer of `allows` may take, in units that are a small part of a millisecond."""
        return 1 + sum("*" in rule for rule in (*self.allow, *self.disallow)) // PATTERNS_PER_COST_UNIT

    @cached_property
    def _matcher(self) -> "_RobotsMatcher":
        return _RobotsMatcher(self.allow, self.disallow)


def robots_from_response_steps(status: int, body: bytes, *, agent: str) -> Steps[Robots]:
    """The rules that the answer to a request for robots.txt means; `status` 0 stands for no whole answer.

    2xx is parsed. Any 4xx, and a redirect that led nowhere, means there are no rules. Everything else means that there
    are rules that cannot be read: nothing is allowed and `is_unreachable` asks the caller to try again.
    """
    if 200 <= status < 300:
        return (yield from parse_robots_steps(body, agent=agent))
    if 300 <= status < 500:
        return Robots(product_token(agent))
    return Robots(product_token(agent), disallow=("/",), is_unreachable=True)


def parse_robots_steps(body: bytes, *, agent: str) -> Steps[Robots]:
    """The rules in a robots.txt for `agent`: those of every group that names its product token, or else those of
    every group for `*`."""
    token = product_token(agent)
    ours, others, sitemaps, licenses = _RobotsGroup(), _RobotsGroup(), list[str](), list[str]()
    current: set[_RobotsGroup] = set()  # whom the rules that follow are for
    in_rules = False
    for number, (key, value) in enumerate(_lines(body), 1):
        if number % LINES_A_STEP == 0:
            yield
        if key == b"user-agent":
            if in_rules:
                current, in_rules = set(), False
            if value == "*" or value.startswith(("* ", "*\t")):
                current.add(others)
            elif token and _prefix(_LINE_TOKEN, value).lower() == token.lower():
                ours.is_named = True
                current.add(ours)
        elif key == b"sitemap":
            sitemaps.append(value)
        elif key == b"license":
            licenses.append(_storable(value) if "/" in value else "")  # a name is no address
        elif key:
            in_rules = in_rules or key not in _NO_RULES
            for group in current:
                group.add(key, value)
    chosen = ours if ours.is_named else others
    distinct = tuple(dict.fromkeys(filter(None, sitemaps)))[:MAX_SITEMAPS]
    return Robots(
        token,
        tuple(chosen.allow),
        tuple(chosen.disallow),
        chosen.crawl_delay_s,
        distinct,
        usages=tuple(chosen.usages[:MAX_USE_LINES]),
        signals=tuple(dict.fromkeys(chosen.signals))[:MAX_USE_LINES],
        licenses=tuple(dict.fromkeys(filter(None, licenses)))[:MAX_USE_LINES],
    )


def comparable_pattern(path: str) -> str:
    """A pattern of paths from elsewhere, in the form in which the rules of robots.txt are compared."""
    return _comparable(path[:MAX_USE_CHARS])


def longest_matches(rules: Iterable[tuple[str, str]], path: str) -> list[str]:
    """The values of those rules (pattern and value) that match `path`, the longest pattern alone; several, where
    it stands there several times."""
    if _PATH_NEEDS_WORK.search(path):
        path = _comparable(path).replace("*", "%2A").replace("$", "%24")
    longest, found = -1, list[str]()
    for pattern, value in rules:
        if len(pattern) < longest:
            continue
        to_end = pattern.endswith("$")
        if matches_pattern(pattern_pieces(pattern.removesuffix("$")), path, to_end=to_end):
            found = [*found, value] if len(pattern) == longest else [value]
            longest = len(pattern)
    return found


def product_token(agent: str) -> str:
    """`Lycosa/1.0 (+https://…)` → `Lycosa`: what user-agent lines are compared with. A name with anything but letters,
    `-` and `_` is no product token: no line can name it, and the rules for `*` hold."""
    return _prefix(_OWN_TOKEN, agent)


class RobotsDirectives(msgspec.Struct, frozen=True):
    """What a page itself says to robots. Nothing said means yes; `unavailable_s` is when the page wants to disappear
    from search results, in seconds since 1970, or 0."""

    noindex: bool = False
    nofollow: bool = False
    noarchive: bool = False
    nosnippet: bool = False
    unavailable_s: float = 0.0

    def __or__(self, other: "RobotsDirectives") -> "RobotsDirectives":
        """The directives of both together."""
        ends = [each.unavailable_s for each in (self, other) if each.unavailable_s]
        return RobotsDirectives(
            self.noindex or other.noindex,
            self.nofollow or other.nofollow,
            self.noarchive or other.noarchive,
            self.nosnippet or other.nosnippet,
            min(ends, default=0.0),
        )


def robots_directives(values: Iterable[str], agent: str) -> RobotsDirectives:
    """The directives for `agent` in the values of X-Robots-Tag headers, or in the contents of meta tags named
    `robots` or after the agent."""
    said, unavailable_s = _directives(values, agent)
    none = "none" in said
    return RobotsDirectives(
        none or "noindex" in said,
        none or "nofollow" in said,
        "noarchive" in said,
        "nosnippet" in said or "max-snippet:0" in said,
        unavailable_s,
    )


def directive_words(values: Iterable[str], agent: str) -> set[str]:
    """All directives for `agent`, in lower case, known or not."""
    return _directives(values, agent)[0]


def _directives(values: Iterable[str], agent: str) -> tuple[set[str], float]:
    """The directives that concern us, which add up, and when the page wants to disappear; `name:` before a directive
    aims it and those after it at that robot alone."""
    token = product_token(agent).lower()
    said: set[str] = set()
    ends: list[float] = []
    for value in values:
        concerns_us, parts = True, value.split(",")[::-1]
        while parts:
            name, colon, rest = parts.pop().partition(":")
            if colon and name.strip().lower() not in _DIRECTIVES_WITH_VALUE:
                concerns_us = name.strip().lower() in (token, "*", "robots")
                name, colon, rest = rest.partition(":")
            name = name.strip().lower()
            if name == "unavailable_after":
                at_s = parse_date(rest.strip())
                if at_s is None and parts and (at_s := parse_date(f"{rest},{parts[-1]}".strip())) is not None:
                    parts.pop()  # a date with the day of the week before it
                ends += [at_s] if concerns_us and at_s is not None else []
            elif concerns_us:
                said.add(f"{name}:{rest.strip()}" if colon else name)
    return said, max(1.0, min(ends)) if ends else 0.0


# Directives written with a colon of their own, which is then not the end of a robot's name.
_DIRECTIVES_WITH_VALUE = frozenset(("unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"))


class _RobotsGroup:
    """The rules gathered for one kind of robot, from all groups that name it."""

    def __init__(self) -> None:
        self.is_named = False
        self.allow: dict[str, None] = {}
        self.disallow: dict[str, None] = {}
        self.crawl_delay_s: float | None = None
        self.usages: list[tuple[str, str]] = []
        self.signals: list[str] = []

    def add(self, key: bytes, value: str) -> None:
        if key == b"crawl-delay":
            self.crawl_delay_s = max(filter(None, (self.crawl_delay_s, _delay(value))), default=None)
        elif key == b"content-signal":
            self.signals.append(_storable(value))
        elif key == b"content-usage":
            path, usage = (*value.split(None, 1), "")[:2] if value.startswith("/") else ("/", value)
            self.usages.append((comparable_pattern(path), _storable(usage)))
        elif value:
            (self.allow if key == b"allow" else self.disallow)[_comparable(value)] = None


class _RobotsMatcher:
    """Finds the longest matching rule: plain prefixes by look-up, patterns one after the other, longest first.

    A rule's weight is twice its length, plus one if it allows: the heaviest match decides, and the last bit says what.
    """

    def __init__(self, allow: Iterable[str], disallow: Iterable[str]) -> None:
        self._prefixes: dict[str, int] = {}
        self._patterns: list[tuple[int, tuple[str, ...], bool]] = []
        for rule in disallow:
            self._add(rule, 2 * len(rule))
        for rule in allow:
            self._add(rule, 2 * len(rule) + 1)
        self._patterns.sort(key=lambda pattern: -pattern[0])
        heaviest: dict[int, int] = {}
        for prefix, weight in self._prefixes.items():
            heaviest[len(prefix)] = max(weight, heaviest.get(len(prefix), 0))
        self._lengths = sorted(heaviest.items(), key=lambda item: -item[1])

    def _add(self, rule: str, weight: int) -> None:
        if "*" not in rule and "$" not in rule:
            self._prefixes[rule] = max(weight, self._prefixes.get(rule, 0))
            return
        to_end = rule.endswith("$")
        pieces = pattern_pieces(rule.removesuffix("$").replace("$", "%24"))
        if to_end or pieces[1:] not in ((), ("",)):
            self._patterns.append((weight, pieces, to_end))
        else:  # one star at the end changes a rule's length, not what it matches
            self._prefixes[pieces[0]] = max(weight, self._prefixes.get(pieces[0], 0))

    def allows(self, path: str) -> bool:
        if _PATH_NEEDS_WORK.search(path):
            path = _comparable(path).replace("*", "%2A").replace("$", "%24")
        found = -1
        for length, weight in self._lengths:
            if weight <= found:
                break
            found = max(found, self._prefixes.get(path[:length], -1))
        for weight, pieces, to_end in self._patterns:
            if weight <= found:
                break
            if matches_pattern(pieces, path, to_end=to_end):
                found = weight
        return found < 0 or found % 2 == 1


def _lines(body: bytes) -> Iterable[tuple[bytes, str]]:
    """The lines as key, as we know it or empty, and value. A missing colon is forgiven where one word follows."""
    if len(body) > MAX_ROBOTS_BYTES:
        body = body[:MAX_ROBOTS_BYTES]
        body = body[: max(body.rfind(b"\n"), body.rfind(b"\r")) + 1]
    if body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        body = body.decode("utf-16", "replace").encode()
    for mark in (b"\xef", b"\xbb", b"\xbf"):  # a byte order mark, or the beginning of one
        if not body.startswith(mark):
            break
        body = body[1:]
    for whole_line in body.splitlines():
        line = whole_line.partition(b"#")[0]
        key, colon, value = line.partition(b":")
        if not colon:
            words = line.split()
            key, value = words if len(words) == 2 else (b"", b"")
        yield _KEYS.get(key.strip().lower(), b""), value.strip().decode("utf-8", "surrogateescape")


def _prefix(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.match(text)
    return found[0] if found else ""


def _comparable(path: str) -> str:
    """RFC 9309 §2.2.2: escapes of unreserved characters undone, all others in upper case, and everything that a URL
    writes as an escape written so here too."""
    path = _ESCAPE_OR_ODD.sub(_one_spelling, path)
    before, mark, query = path.partition("?")
    return before + mark + _QUERY_ESCAPE.sub(lambda escape: ":" if escape[0] == "%3A" else "/", query)


def _one_spelling(found: re.Match[str]) -> str:
    text = found[0]
    if len(text) == 3:
        character = chr(int(text[1:], 16))
        return character if character in _UNRESERVED else text.upper()
    return "".join(f"%{byte:02X}" for byte in text.encode("utf-8", "surrogateescape"))


def _storable(value: str) -> str:
    """The value of a line on the use of content, as a host keeps it."""
    return value[:MAX_USE_CHARS].encode("utf-8", "replace").decode()


def _delay(value: str) -> float | None:
    try:
        seconds = float(value)
    except ValueError:
        return None
    return min(seconds, MAX_CRAWL_DELAY_S) if isfinite(seconds) and seconds > 0 else None
