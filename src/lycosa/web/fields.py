"""Fields of a page by CSS selectors: `FieldExtractor` reads what its rules name from the body of an HTML document.

A field is the text of an element, white space collapsed, without scripts and styles in it, or one of its attributes;
`href`, `src` and the like become absolute URLs. Elements without text by their nature give what they stand for: `meta`
its content, `img` its URL, `input` its value. A field that is nowhere on a page is None, a list of fields empty, so
that all pages of a collection have the same names. Of rules for one name that of the narrowest host counts.

Pure; any document gives a result, bounded by the limits below. Called when the fields of a page are asked
for.
"""

from collections.abc import Mapping, Sequence

from selectolax.lexbor import LexborNode

from lycosa.records import FieldRule
from lycosa.web.document import Document
from lycosa.web.html import parse_html
from lycosa.web.media import SNIFF_BYTES, identify_media
from lycosa.web.page import charset_of, has_main_text
from lycosa.web.url import base_url, parse_url, serialise_url

FieldValue = str | list[str] | None

MAX_VALUES = 1_000  # of one list
MAX_CHARS = 100_000  # of one text
MAX_CHARS_A_PAGE = 4_000_000  # read for all fields; elements may nest
_URLS = frozenset(("href", "src", "action", "poster", "cite", "formaction", "data-src"))
_STAND_FOR = {"meta": "content", "img": "src", "input": "value", "source": "src"}
_UNREAD = frozenset(("script", "style"))


class FieldExtractor:
    """Extracts fields by rules whose selectors were checked. `names` are those of all its fields, in order."""

    def __init__(self, rules: Sequence[FieldRule]) -> None:
        self._rules = sorted(rules, key=lambda rule: len(rule.host))  # the narrowest host comes last, and counts
        self.names = tuple(dict.fromkeys(rule.name for rule in rules))
        self._is_list = {rule.name: rule.is_list for rule in self._rules}

    def __repr__(self) -> str:
        return f"<FieldExtractor {' '.join(self.names)}>"

    def __bool__(self) -> bool:
        return bool(self._rules)

    @property
    def lists(self) -> dict[str, bool]:
        """Of each field, in order, whether it is a list."""
        return {name: self._is_list[name] for name in self.names}

    def extract(self, body: bytes, *, url: str, content_type: str | None = None) -> dict[str, FieldValue]:
        """The fields of a document (content coding undone) by name; of one that is not HTML all are empty."""
        chosen = self._rules_for(url)
        found: dict[str, FieldValue] = {
            name: [] if (chosen[name].is_list if name in chosen else self._is_list[name]) else None
            for name in self.names
        }
        media = identify_media(content_type, body[:SNIFF_BYTES])
        if not chosen or not has_main_text(media):
            return found
        tree, _ = parse_html(Document(body, url, media, charset_of(body, media)))
        bases = tree.css("base[href]")
        base = base_url(url, bases[0].attributes["href"] if bases else None)
        matched = {name: _unique(tree.css(rule.selector)) for name, rule in chosen.items()}
        asked_for = {node.mem_id for nodes in matched.values() for node in nodes if node.tag in _UNREAD}
        for node in tree.css("script,style"):
            if node.mem_id not in asked_for:
                node.decompose()
        room = MAX_CHARS_A_PAGE
        for name, nodes in matched.items():
            rule, texts = chosen[name], list[str]()
            for node in nodes:
                text = _value(node, rule.attribute, base)
                room -= len(text)
                texts += [text[:MAX_CHARS]] if text else []
                if room < 0 or (texts and not rule.is_list):
                    break
            found[name] = texts if rule.is_list else next(iter(texts), None)
        return found

    def _rules_for(self, url: str) -> Mapping[str, FieldRule]:
        """Which rule counts for each name on a page."""
        parsed = parse_url(url)
        hosts = (parsed.host, f"{parsed.host}:{parsed.port}") if parsed else ("", "")
        return {
            rule.name: rule
            for rule in self._rules
            if not rule.host or any(host == rule.host or host.endswith(f".{rule.host}") for host in hosts)
        }


def _unique(nodes: list[LexborNode]) -> list[LexborNode]:
    """Each element once; those that match two selectors of a list come twice."""
    return list({node.mem_id: node for node in nodes[: 2 * MAX_VALUES]}.values())[:MAX_VALUES]


def _value(node: LexborNode, attribute: str, base: str) -> str:
    attribute = attribute or _STAND_FOR.get(node.tag or "", "")
    if not attribute:
        return " ".join(node.text().split())
    written = " ".join((node.attributes.get(attribute) or "").split())
    return (attribute in _URLS and written and serialise_url(written, base)) or written
