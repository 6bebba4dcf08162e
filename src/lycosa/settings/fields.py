"""Fields of pages as people write them: a name and a CSS selector, for all hosts or for one.

    price=.price            the text of the first element that matches
    link=h1 a@href          an attribute of it
    tags=.tag*              a list of all that match; `.tag@href*` of an attribute of each
    shop.example/price=.amount b     on this host and its subdomains in place of `price`

A `*` directly behind a name, a bracket or another `*` asks for the list; behind a space, `>`, `+`, `~` or `|` it is
that of CSS. Whatever cannot be a selector is refused here, before anything is fetched. `field_table` is the validator
of the setting `fields`, `read_field` makes the rule of one entry.
"""

import re
from collections.abc import Iterator, Mapping

from lycosa.records import FieldRule
from lycosa.settings.values import InvalidValue, SettingTable, text

MAX_SELECTOR_CHARS = 1_000
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
_HOST = re.compile(r"[^\s/=]{1,255}")
_ATTRIBUTE = re.compile(r"@([A-Za-z_:][A-Za-z0-9_:.-]*)$")
_IS_LIST = re.compile(r"(?<=[\w\])\"'*-])\*$")


def field_table(value: object) -> SettingTable:
    """Fields, from a table of selectors (in it tables for hosts), a list of NAME=SELECTOR, or such with `;` between."""
    found = dict[str, str]()
    for key, selector in _entries(value):
        entry = f"{key}={selector}"
        try:
            rule = read_field(entry)
        except InvalidValue as invalid:
            raise InvalidValue(invalid.phrase, entry) from None
        found[f"{rule.host}/{rule.name}" if rule.host else rule.name] = selector.strip()
    return SettingTable(f"{key}={selector}" for key, selector in found.items())


def _entries(value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, inside in value.items():
            if isinstance(inside, Mapping):
                yield from ((_key(f"{key}/{name}"), text(selector)) for name, selector in inside.items())
            else:
                yield _key(key), text(inside)
        return
    items = [item for item in value.split(";") if item.strip()] if isinstance(value, str) else value
    if not isinstance(items, list | tuple):
        raise InvalidValue("it must be a table of selectors, such as {price = '.price'}")
    for item in items:
        name, equals, selector = text(item).partition("=")
        if not equals:
            raise InvalidValue("it must be a name and a CSS selector, such as price=.price", item)
        yield name, selector


def _key(value: object) -> str:
    if "=" in text(value):
        raise InvalidValue("the name of a field is letters, digits, _, - and .", value)
    return text(value)


def read_field(entry: str) -> FieldRule:
    """The rule of NAME=SELECTOR; raises InvalidValue that says what is wrong with it."""
    key, _, written = entry.partition("=")
    host, _, name = key.strip().rpartition("/")
    if not _NAME.fullmatch(name):
        raise InvalidValue(f"the name of a field is letters, digits, _, - and ., not {name[:40]!r}: price=.price")
    if host and not _HOST.fullmatch(host):
        raise InvalidValue(f"{host[:40]!r} is no host: shop.example/price=.price")
    selector, is_list, attribute = written.strip(), False, ""
    if found := _IS_LIST.search(selector):
        selector, is_list = selector[: found.start()], True
    if found := _ATTRIBUTE.search(selector):
        selector, attribute = selector[: found.start()].rstrip(), found[1].lower()
    require_selector(selector)
    return FieldRule(name, selector, attribute, is_list, host.lower())


def require_selector(selector: str) -> None:
    """Raises InvalidValue for what is no CSS selector."""
    if not selector or len(selector) > MAX_SELECTOR_CHARS:
        raise InvalidValue("it must have a CSS selector behind the =, such as price=.price")
    if _matches(selector):
        return
    if selector.startswith(("/", "./")):
        raise InvalidValue("that is XPath; write a CSS selector: .price, h1 a@href, table td:nth-child(2)")
    good = next((end for end in range(len(selector) - 1, 0, -1) if _matches(selector[:end])), 0)
    hint = ": .name is its text, .name@href an attribute" if "::" in selector else ""
    raise InvalidValue(f"the CSS selector cannot be read from {selector[good:].strip()[:40]!r} on{hint}")


def _matches(selector: str) -> bool:
    """Whether the parser knows what the selector means."""
    from selectolax.lexbor import LexborHTMLParser, SelectolaxError  # lazy: 30 ms, for crawls with fields alone

    try:
        LexborHTMLParser("<p>").css(selector)
    except (SelectolaxError, UnicodeError):
        return False
    return True
