"""Keys made of a host's letters: the letter sum of paper 3 (H1) and the two sums of Tarantula's hash (T6).

The letter sum exists for one host, as a router asks, and for an array of hosts, as the lab asks; both give the same.
Pure.
"""

from collections.abc import Mapping, Sequence
from string import ascii_lowercase, digits
from typing import Any

import numpy as np

Integers = np.ndarray[Any, np.dtype[np.int64]]

# a=1 … z=26 as in the paper, whose table has numbers too: 0=27 … 9=36. Dots and dashes are worth nothing unless the
# setting `letters` says otherwise.
LETTERS: Mapping[str, int] = {letter: place for place, letter in enumerate(ascii_lowercase + digits, 1)}
# The table of collections that were begun when digits had no value.
WITHOUT_DIGITS: Mapping[str, int] = {letter: LETTERS[letter] for letter in ascii_lowercase}


def letter_sum(host: str, table: Mapping[str, int] = LETTERS) -> int:
    """The sum over the characters of a host."""
    return sum(table.get(character, 0) for character in host)


def even_sum(host: str) -> int:
    """The sum of the codes of the characters at even places, the first one being place 0."""
    return sum(host.encode()[::2])


def odd_sum(host: str) -> int:
    """The sum of the codes of the characters at odd places."""
    return sum(host.encode()[1::2])


class HostArray:
    """Host names laid end to end, for sums over all of them at once. No name is empty."""

    def __init__(self, hosts: Sequence[str]) -> None:
        encoded = [host.encode() for host in hosts]
        self.codes = np.frombuffer(b"".join(encoded), np.uint8)
        lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
        if not lengths.all():
            raise ValueError("a host has a name")
        self.starts = np.concatenate(([0], np.cumsum(lengths)[:-1]))
        self._lengths = lengths

    def __len__(self) -> int:
        return len(self._lengths)

    def letter_sums(self, table: Mapping[str, int] = LETTERS) -> Integers:
        worth = np.zeros(256, np.int64)
        for character, value in table.items():
            worth[ord(character)] = value
        sums: Integers = np.add.reduceat(worth[self.codes], self.starts)
        return sums

    def java_hashes(self) -> Integers:
        """Java's `String.hashCode` without its sign, as Nutch partitions by: s[0]·31^(k−1) + … modulo 2^32."""
        after = np.repeat(self.starts + self._lengths - 1, self._lengths) - np.arange(len(self.codes))
        powers = np.ones(int(self._lengths.max()), np.uint32)
        powers[1:] = 31
        powers = np.multiply.accumulate(powers, dtype=np.uint32)
        terms = self.codes.astype(np.uint32) * powers[after]
        hashes: Integers = np.add.reduceat(terms, self.starts, dtype=np.uint32).astype(np.int64) & 0x7FFFFFFF
        return hashes
