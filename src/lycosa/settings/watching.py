"""Rules for watching pages as people write them: what a comparison leaves out, and which changes are told.

    css=.ad, .clock             `ignore`: elements that match a CSS selector are left out
    text=Read * times           pieces of text that contain this are left out; * is any text
    numbers                     two versions that differ in numbers alone are the same
    appears=in stock            `tell`: only if this text is there now and was not before; * is any text
    disappears=sold out         only if it was there before and is not now
    shop.example                only of changes on these URLs

A rule may begin with a pattern of URLs, of which * is any text: `/news/* css=.ad` looks at the path, `shop.example
numbers` and `shop.example/news/* numbers` at the host, `https://shop.example/* numbers` at the whole URL. Regular
expressions are not offered: one of them over one long text can take minutes. `ignore_rules` and `tell_rules` are the
validators of the settings, `read_rule` makes the rule of one entry.
"""

from collections.abc import Callable

import msgspec

from lycosa.settings.fields import require_selector
from lycosa.settings.values import InvalidValue, text

MAX_RULES = 200
_IGNORED = ("css", "text", "numbers")
_TOLD = ("appears", "disappears")
_ALONE = "numbers"  # the one rule without a value


class WatchRule(msgspec.Struct, frozen=True):
    """One rule: what it looks at, the selector or text, and the pattern of the URLs for which it counts ("": all)."""

    kind: str
    value: str = ""
    where: str = ""


def ignore_rules(value: object) -> tuple[str, ...]:
    """The entries of the setting `ignore`."""
    return _entries(value, _ignored)


def tell_rules(value: object) -> tuple[str, ...]:
    """The entries of the setting `tell`."""
    return _entries(value, _told)


def read_rule(entry: str) -> WatchRule:
    """The rule of an entry that one of the validators has read."""
    first, _, rest = entry.partition(" ")
    where = "" if _begins_rule(entry) else first
    kind, _, value = (rest if where else entry).partition("=")
    return WatchRule(kind, value, _url_pattern(where))


def _begins_rule(words: str) -> bool:
    name, equals, _ = words.partition("=")
    return words == _ALONE or bool(equals and name in (*_IGNORED, *_TOLD))


def _url_pattern(where: str) -> str:
    """The pattern of whole URLs, or of paths, that a host with or without a path stands for."""
    if not where or where.startswith(("/", "*")) or "://" in where:
        return where
    host, slash, path = where.partition("/")
    return f"*://{host.lower()}/{path if slash else '*'}"


def _entries(value: object, read: Callable[[str], str]) -> tuple[str, ...]:
    items = value.split(";") if isinstance(value, str) else value
    if not isinstance(items, list | tuple):
        raise InvalidValue("it must be a list of rules, such as ['css=.ad', 'numbers']")
    found: dict[str, None] = {}
    for item in items:
        entry = " ".join(text(item).split())
        if entry or not isinstance(value, str):
            try:
                found[read(entry)] = None
            except InvalidValue as invalid:
                raise InvalidValue(invalid.phrase, item) from None
    if len(found) > MAX_RULES:
        raise InvalidValue(f"there may be {MAX_RULES} rules at most")
    return tuple(found)


def _ignored(entry: str) -> str:
    rule = read_rule(entry)
    allowed = "it must be css=SELECTOR, text=PATTERN or numbers, if need be behind a pattern of URLs: /news/* css=.ad"
    if rule.kind not in _IGNORED or (rule.kind == _ALONE) != (not rule.value):
        raise InvalidValue(allowed)
    if rule.kind == "css":
        require_selector(rule.value)
    elif rule.kind == "text" and not rule.value.replace("*", ""):
        raise InvalidValue("a pattern of stars alone would leave out everything: text=Read * times")
    return entry


def _told(entry: str) -> str:
    rule = read_rule(entry)
    allowed = "it must be appears=TEXT, disappears=TEXT, a pattern of URLs, or one of them behind it: /shop/*"
    if rule.kind in _TOLD:
        if not rule.value.replace("*", ""):
            raise InvalidValue(allowed)
    elif not rule.where or rule.kind or "=" in entry.partition(" ")[0].partition("?")[0]:
        raise InvalidValue(allowed)
    return entry
