"""The text by which HTML pages are compared: that of the main element, else of the body, without navigation and links.

It is read in the same pass as the rest of a page, so that it costs a crawl next to nothing, and is rougher than the
main text that people read (`readable`): only its words count. The text of links is left out because lists of other
pages are what copies differ in. This is the specification of native/src/comparable.rs, which finds the same. Pure.
Called by `html`, last.
"""

import re
from collections.abc import Iterable

from selectolax.lexbor import LexborHTMLParser, LexborNode

from lycosa.web.similarity import simhash

_MAY_NAVIGATE = (
    "nav,footer,[role=navigation],[role=contentinfo],[id^=nav],[class*=nav],[class*=breadcrumb],[class*=sidebar]"
)
_NAVIGATION = re.compile(r"(?:^|[- \t\n\f\r])nav|breadcrumb|sidebar")  # of a class; "canavan" is none
_ROLES = frozenset(("navigation", "contentinfo"))
_NAMED = frozenset("center dir div dl fieldset figure form header menu ol section table ul".split())


def comparable_simhash(tree: LexborHTMLParser, *, main: LexborNode | None, links: Iterable[LexborNode]) -> bytes:
    """The SimHash of the text of an HTML document's tree without hidden elements, of which links and navigation are
    taken out; empty where it is too short. `main` is its main element, where there is exactly one."""
    root = main or tree.body
    if root is None:
        return b""
    navigation = filter(_is_navigation, root.css(_MAY_NAVIGATE))
    for node in (*navigation, *links):
        node.decompose(recursive=False)
    return simhash(root.text(separator="\0"))


def _is_navigation(node: LexborNode) -> bool:
    """Whether an element is navigation, or what stands on every page."""
    if node.tag not in _NAMED:
        return node.tag in ("nav", "footer")
    attributes = node.attributes
    return (
        attributes.get("role") in _ROLES
        or (attributes.get("id") or "").startswith("nav")
        or _NAVIGATION.search(attributes.get("class") or "") is not None
    )
