"""Where rendering pays: learned by host and family of paths, from pages that were read both ways.

A page that looks empty without its scripts is rendered; of others a few are, to see whether that adds links or text.
Where it did, all of the family are rendered, until it adds nothing many times in a row; where it did not, one in a
while is, since sites change. Pure, bounded, kept for the run. Asked by `render.rendering`.
"""

import re
from collections import OrderedDict

import msgspec

from lycosa.web import Page

EMPTY_TEXT_BYTES = 200  # a page with less text and with scripts looks empty
SAMPLES = 2  # pages of a family that are rendered to see
HOST_SAMPLES = 12  # of all families of a host that does not look as if it needed it
IN_VAIN = 20  # renderings in a row that added nothing: then the family is left alone
EMPTY_SAMPLES = 5  # the same for pages that look empty, in a family where rendering has never added anything
AGAIN_EVERY = 50  # one in so many is tried again nevertheless
MOST_FAMILIES = 20_000
ADDED_TEXT_BYTES, ADDED_TEXT_SHARE = 200, 0.2

_ROOT = re.compile(
    rb"<(?:div|main|section|app-root)\b[^>]*\bid\s*=\s*[\"']?(?:root|app|__next|__nuxt|___gatsby|svelte|app-root)"
    rb"[\"']?[^>]*>\s*+(?:<!--[^>]*-->\s*+)?+</",
    re.IGNORECASE,
)
_CUSTOM_ROOT = re.compile(rb"<(app-root|ember-app|my-app)\b[^>]*>\s*+</", re.IGNORECASE)
_ASKS = re.compile(rb"<noscript\b[^>]*>(?:(?!</noscript).){0,2000}?\bjavascript\b", re.IGNORECASE | re.DOTALL)


def looks_empty(page: Page, body: bytes) -> bool:
    """Does a page look as if its scripts had to fill it?"""
    if b"<script" not in body and b"<SCRIPT" not in body:
        return False
    if len(page.text_utf8) < EMPTY_TEXT_BYTES or _ROOT.search(body) or _CUSTOM_ROOT.search(body):
        return True
    return _ASKS.search(body) is not None


def adds_something(links_before: set[str], text_before: int, links: set[str], text: int) -> bool:
    """Did rendering add links, or a good deal of text? Texts by their bytes."""
    return not links <= links_before or text - text_before >= max(ADDED_TEXT_BYTES, ADDED_TEXT_SHARE * text_before)


class _Family(msgspec.Struct):
    asked: int = 0
    rendered: int = 0
    gained: int = 0
    in_vain: int = 0  # in a row


class RenderFamilies:
    """What is known of families of pages, those used last; each is named by a host and a pattern of paths."""

    def __init__(self) -> None:
        self._families: OrderedDict[tuple[bytes, str], _Family] = OrderedDict()
        self._sampled: OrderedDict[bytes, int] = OrderedDict()

    def __repr__(self) -> str:
        return f"<RenderFamilies {len(self._families)}>"

    def wants(self, name: tuple[bytes, str], *, is_empty: bool) -> bool:
        """Is the next page of a family rendered? It counts as asked for."""
        family = self._families.setdefault(name, _Family())
        self._families.move_to_end(name)
        if len(self._families) > MOST_FAMILIES:
            self._families.popitem(last=False)
        family.asked += 1
        is_turn = family.asked % AGAIN_EVERY == 0
        if family.gained:
            return family.in_vain < IN_VAIN or is_turn
        if is_empty:
            return family.rendered < EMPTY_SAMPLES or is_turn
        if family.rendered < SAMPLES and self._sampled.get(name[0], 0) < HOST_SAMPLES:
            self._sampled[name[0]] = self._sampled.get(name[0], 0) + 1
            if len(self._sampled) > MOST_FAMILIES:
                self._sampled.popitem(last=False)
            return True
        return is_turn

    def learn(self, name: tuple[bytes, str], *, has_gained: bool) -> None:
        """A page of the family was read both ways."""
        family = self._families.setdefault(name, _Family())
        family.rendered += 1
        family.gained += has_gained
        family.in_vain = 0 if has_gained else family.in_vain + 1
