"""What counts how much: score = text × anchors × rank.

    text      the sum over the query's words of BM25 × weight, in title, headings, text and URL
    anchors   (1 + BM25 of the words in the links to the page) ^ weight; 1 where links do not have all of them
    rank      (1 + PageRank × pages) ^ weight; 1 where ranks were never worked out

A weight of 0 takes a part out. `Weights.read("title=2,rank=0")` changes some of them.
"""

import math

import msgspec
import numpy as np
from numpy.typing import NDArray

from lycosa.errors import SettingsError

LEAST_TEXT = 0.01  # a page that has none of the words, and is called so by others
Floats = NDArray[np.float64]


class Weights(msgspec.Struct, frozen=True):
    """The weights in force; chosen by `make bench NAME=search`."""

    title: float = 3.0
    headings: float = 1.0
    text: float = 1.0
    url: float = 1.0
    anchors: float = 0.3
    rank: float = 0.1

    @classmethod
    def read(cls, text: str) -> "Weights":
        """From `title=2,rank=0`; SettingsError if that cannot be."""
        changed: dict[str, float] = {}
        for pair in filter(None, (part.strip() for part in text.split(","))):
            name, _, value = pair.partition("=")
            try:
                number = float(value)
            except ValueError:
                number = math.nan
            if name.strip() not in cls.__struct_fields__ or not 0 <= number <= 100:
                allowed = ", ".join(cls.__struct_fields__)
                raise SettingsError(f"weights are NAME=NUMBER from 0 to 100, not {pair[:40]!r}; names are {allowed}")
            changed[name.strip()] = number
        return msgspec.structs.replace(cls(), **changed)


BM25_ALONE = Weights(title=1.0, headings=0.0, text=1.0, url=0.0, anchors=0.0, rank=0.0)


def factors(text: Floats, anchors: Floats, mean_ranks: Floats, weights: Weights) -> tuple[Floats, Floats, Floats]:
    """The three factors; `mean_ranks` are PageRanks in units of the mean, below 0 where they are not known."""
    called = (1.0 + np.maximum(anchors, 0.0)) ** weights.anchors
    ranked = (1.0 + np.maximum(mean_ranks, 0.0)) ** weights.rank
    return np.maximum(text, LEAST_TEXT), called, ranked
