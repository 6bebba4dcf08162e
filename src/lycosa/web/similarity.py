"""The SimHash of a text: 64 bits that are nearly the same for nearly the same texts.

Each bit is what most of the hashes of a text's shingles (three words in a row) have. Bits that were decided by few
votes change first when a text is edited, so that the two closest of each block of 16 are marked as *unsure*: two texts
are near if they differ in at most three bits that are sure in both. That finds texts of which some five of a hundred
shingles differ; by all 64 bits it would be one of a hundred. A text of fewer than `LEAST_WORDS` has no SimHash: one
other word changes three shingles, which is more than five of a hundred there, so that nearness would say nothing.

Packed: the bits and the mask of the unsure ones, eight bytes each. `simhash` is the twin of the kernel's. Pure. Called
by the analysis of pages; `duplicates` looks them up.

HTML pages are compared by the text of the main element, else of the body, without navigation and links
(`comparable_simhash`). It is read in the same pass as the rest of a page, so that it costs a crawl next to nothing, and
is rougher than the main text that people read (`readable`): only its words count. The text of links is left out because
lists of other pages are what copies differ in. This is the specification of native/src/comparable.rs, which finds the
same. Called by `html`, last.
"""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import xxhash

from lycosa.web.kernel import native

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

LEAST_WORDS = 60
NEAR_BITS = 3  # sure bits that near texts differ in at the most
BLOCK_BITS, UNSURE = 16, 2  # of each block, so many bits are unsure
Hashes = npt.NDArray[np.uint64]
_BITS = 64
# Scripts that are written without spaces: each character is a word.
_WIDE = re.compile("[\u0e00-\u0eff\u2e80-\U0010ffff]")
_NOT_WIDE = bytes(range(0xE0))  # no character of theirs begins with one of these bytes, or has one of these only
_CONTROLS_AS_SPACES = bytes(max(byte, 0x20) for byte in range(256))
_ODD = np.uint64(0x9E3779B97F4A7C15)  # spreads what the sum of three hashes has in its low bits
_MOST_VOTES = 255  # that one byte counts
_MAY_NAVIGATE = (
    "nav,footer,[role=navigation],[role=contentinfo],[id^=nav],[class*=nav],[class*=breadcrumb],[class*=sidebar]"
)
_NAVIGATION = re.compile(r"(?:^|[- \t\n\f\r])nav|breadcrumb|sidebar")  # of a class; "canavan" is none
_ROLES = frozenset(("navigation", "contentinfo"))
_NAMED = frozenset("center dir div dl fieldset figure form header menu ol section table ul".split())


def simhash(text: str, *, least_words: int = LEAST_WORDS) -> bytes:
    """The SimHash of a text, packed; empty for one with fewer words, three at the least."""
    kernel = native()
    if kernel is not None:
        packed: bytes = kernel.simhash(text, least_words)
        return packed
    words = _words(text)
    if len(words) < max(3, least_words):
        return b""
    hashes = np.fromiter(map(xxhash.xxh3_64_intdigest, words), np.uint64, len(words))
    mixed = (hashes[:-2] + _rotated(hashes[1:-1], 21) + _rotated(hashes[2:], 42)) * _ODD
    mixed ^= mixed >> np.uint64(29)
    leads = 2 * _ones(mixed) - len(mixed)
    bits = np.packbits(leads > 0, bitorder="little")
    closest = np.argsort(np.abs(leads).reshape(-1, BLOCK_BITS), axis=1, kind="stable")[:, :UNSURE]
    unsure = np.zeros(_BITS, np.bool_)
    unsure[closest + np.arange(0, _BITS, BLOCK_BITS)[:, None]] = True
    return bits.tobytes()[::-1] + np.packbits(unsure, bitorder="little").tobytes()[::-1]


def _words(text: str) -> list[bytes]:
    """The words of a text: what stands between spaces and controls."""
    encoded = text.encode()
    if encoded.translate(None, _NOT_WIDE):
        encoded = _WIDE.sub(r" \g<0> ", text).encode()
    return encoded.translate(_CONTROLS_AS_SPACES).split()


def _ones(hashes: Hashes) -> npt.NDArray[np.int64]:
    """How many of the hashes have each bit: eight bits are counted in each step, in a byte each, and in good time
    before a byte is full."""
    bits = np.unpackbits(hashes.astype("<u8").view(np.uint8).reshape(-1, 8), axis=1, bitorder="little")
    counts = np.add.reduceat(bits.view(np.uint64), range(0, len(bits), _MOST_VOTES), axis=0)
    ones: npt.NDArray[np.int64] = counts.view(np.uint8).sum(axis=0, dtype=np.int64)
    return ones


def _rotated(hashes: Hashes, by: int) -> Hashes:
    return hashes << np.uint64(by) | hashes >> np.uint64(_BITS - by)


def text_sketch(text: str) -> int:
    """The bits of the SimHash of any text, for whoever compares in other ways; 0 for a word or two."""
    return int.from_bytes(simhash(text, least_words=0)[:8])


def simhash_distance(one: bytes, other: bytes) -> int:
    """How many bits two SimHashes differ in, without those that are unsure in either."""
    bits, unsure = int.from_bytes(one[:8]), int.from_bytes(one[8:])
    return ((bits ^ int.from_bytes(other[:8])) & ~(unsure | int.from_bytes(other[8:]))).bit_count()


def comparable_simhash(tree: "LexborHTMLParser", *, main: "LexborNode | None", links: "Iterable[LexborNode]") -> bytes:
    """The SimHash of the text of an HTML document's tree without hidden elements, of which links and navigation are
    taken out; empty where it is too short. `main` is its main element, where there is exactly one."""
    root = main or tree.body
    if root is None:
        return b""
    navigation = filter(_is_navigation, root.css(_MAY_NAVIGATE))
    for node in (*navigation, *links):
        node.decompose(recursive=False)
    return simhash(root.text(separator="\0"))


def _is_navigation(node: "LexborNode") -> bool:
    """Whether an element is navigation, or what stands on every page."""
    if node.tag not in _NAMED:
        return node.tag in ("nav", "footer")
    attributes = node.attributes
    return (
        attributes.get("role") in _ROLES
        or (attributes.get("id") or "").startswith("nav")
        or _NAVIGATION.search(attributes.get("class") or "") is not None
    )
