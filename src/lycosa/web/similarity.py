"""The SimHash of a text: 64 bits that are nearly the same for nearly the same texts.

Each bit is what most of the hashes of a text's shingles (three words in a row) have. Bits that were decided by few
votes change first when a text is edited, so that the two closest of each block of 16 are marked as *unsure*: two texts
are near if they differ in at most three bits that are sure in both. That finds texts of which some five of a hundred
shingles differ; by all 64 bits it would be one of a hundred. A text of fewer than `LEAST_WORDS` has no SimHash: one
other word changes three shingles, which is more than five of a hundred there, so that nearness would say nothing.

Packed: the bits and the mask of the unsure ones, eight bytes each. `simhash` is the twin of the kernel's. Pure. Called
by the analysis of pages; `duplicates` looks them up.
"""

import re

import numpy as np
import numpy.typing as npt
import xxhash

from lycosa.web.kernel import native

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
