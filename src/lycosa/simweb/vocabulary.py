"""Chance and words: every draw of the simulated web comes from its seed, and so does all its text.

Pure. `mix` turns two numbers and a purpose into 64 evenly spread bits; the vocabulary is made once for each seed.
Used by every other module of the room.
"""

import hashlib
import math
import struct
from functools import cache, lru_cache
from statistics import NormalDist

import numpy as np

MASK = 0xFFFFFFFFFFFFFFFF


def mix(a: int, b: int, salt: int) -> int:
    """64 bits out of three integers: two multiply-xorshift rounds, as in SplitMix64."""
    x = (a * 0x9E3779B97F4A7C15 + b * 0xBF58476D1CE4E5B9 + salt * 0xD6E8FEB86659FD93) & MASK
    x = ((x ^ (x >> 31)) * 0x94D049BB133111EB) & MASK
    x = ((x ^ (x >> 29)) * 0xBF58476D1CE4E5B9) & MASK
    return x ^ (x >> 32)


def unit(x: int) -> float:
    """64 bits as a number in [0, 1)."""
    return (x >> 11) / 9007199254740992.0


class Draws:
    """The draws of one seed."""

    def __init__(self, seed: int) -> None:
        self._base = hashlib.shake_128(b"lycosa simweb %d\0" % seed)
        self.salt = int.from_bytes(self._base.digest(8), "little")

    def mix(self, a: int, b: int, purpose: int) -> int:
        return mix(a, b, self.salt ^ purpose)

    def text_hash(self, text: str, purpose: int) -> int:
        h = self._base.copy()
        h.update(b"%d\0%s" % (purpose, text.encode("utf-8", "surrogateescape")))
        return int.from_bytes(h.digest(8), "little")

    def words(self, key: bytes, count: int) -> tuple[int, ...]:
        """`count` independent 32-bit words for `key`."""
        h = self._base.copy()
        h.update(key)
        return struct.unpack(f"<{count}I", h.digest(4 * count))


def lognormal_table(median: float, sigma: float, steps: int = 1024) -> list[float]:
    """A log-normal distribution as `steps` equally likely values: one draw is one look-up."""
    normal = NormalDist()
    return [median * math.exp(sigma * normal.inv_cdf((i + 0.5) / steps)) for i in range(steps)]


def poisson_table(mean: float, steps: int = 1024) -> list[int]:
    """A Poisson distribution as `steps` equally likely counts."""
    table: list[int] = []
    count, term = 0, math.exp(-mean)
    total = term
    for i in range(steps):
        while (i + 0.5) / steps > total and count < 64:
            count += 1
            term *= mean / count
            total += term
        table.append(count)
    return table


TOPICS: tuple[tuple[str, ...], ...] = (
    ("energy", "solar", "turbine", "battery", "storage", "voltage", "photovoltaic", "grid"),
    ("medicine", "vaccine", "surgery", "diagnosis", "antibody", "clinic", "cardiology", "dosage"),
    ("astronomy", "galaxy", "telescope", "comet", "nebula", "orbit", "parallax", "quasar"),
    ("cooking", "recipe", "simmer", "pastry", "garlic", "oven", "marinade", "dough"),
    ("sailing", "rudder", "keel", "harbour", "spinnaker", "mooring", "regatta", "knots"),
    ("law", "statute", "plaintiff", "appeal", "tribunal", "contract", "liability", "verdict"),
    ("music", "sonata", "chord", "rhythm", "orchestra", "violin", "counterpoint", "tempo"),
    ("geology", "basalt", "sediment", "fault", "magma", "strata", "erosion", "quartz"),
    ("football", "striker", "penalty", "midfield", "offside", "league", "goalkeeper", "referee"),
    ("gardening", "compost", "perennial", "pruning", "seedling", "mulch", "orchard", "trellis"),
    ("railways", "locomotive", "signal", "gauge", "timetable", "junction", "freight", "platform"),
    ("chess", "gambit", "endgame", "castling", "zugzwang", "opening", "rook", "tactics"),
    ("birds", "plumage", "nesting", "migration", "raptor", "songbird", "wetland", "wingspan"),
    ("finance", "dividend", "equity", "hedge", "inflation", "ledger", "liquidity", "yield"),
    ("textiles", "loom", "weaving", "cotton", "dye", "spindle", "embroidery", "fabric"),
    ("robotics", "actuator", "gripper", "servo", "kinematics", "sensor", "autonomy", "torque"),
)
TOPIC_COUNT = len(TOPICS)
TOPIC_WORDS = 512
GENERAL_WORDS = 2048
PASSAGES = 2048  # a topic; 16 topics of 2,048 passages of two sentences are about 6 MB
KEPT_SEEDS = 2
TOPIC_SHARE = 0.4  # of a sentence's words

FUNCTION_WORDS = (
    "the of and to in is that for it as was with be by on not he his but at are this have from or had an they which "
    "one you were all her she there would their we him been has when who will no more if out so up said what its about"
).split()

# Folder names inside a section: real words, so that URLs read like URLs.
FOLDERS = (
    "about archive articles basics blog books brief cases classes clubs columns courses data diary digest docs essays "
    "events examples facts features field forum gallery glossary guides history howto ideas imprint interviews "
    "journal lab lectures lessons letters library lists maps media members methods models news notes opinion papers "
    "people photos pictures places plans posts practice press primer profiles projects quotes reports research "
    "resources reviews"
).split()


def _made_up(index: int, syllables: int) -> str:
    consonants, vowels = "bdfgklmnprstvzjh", "aeiou"
    scrambled = (index * 2654435761 + 12345) % 80**syllables  # odd multiplier not divisible by 5: a bijection
    letters = []
    for _ in range(syllables):
        scrambled, syllable = divmod(scrambled, 80)
        letters.append(consonants[syllable // 5] + vowels[syllable % 5])
    return "".join(letters)


def _topic_words(topic: int) -> list[str]:
    start = topic * TOPIC_WORDS
    made_up = [_made_up(start + i, 3) for i in range(TOPIC_WORDS)]
    return [*TOPICS[topic], *made_up[len(TOPICS[topic]) :]]


def _zipf_cumulative(count: int) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    weights = 1.0 / (np.arange(count) + 2.7)  # Mandelbrot's shift: the first word has about 6 %
    return np.cumsum(weights / weights.sum())


class Vocabulary:
    """The words of the simulated web and, for one seed, its prose."""

    general: tuple[str, ...] = (*FUNCTION_WORDS, *(_made_up(i, 2) for i in range(GENERAL_WORDS - len(FUNCTION_WORDS))))
    topics: tuple[list[str], ...] = tuple(_topic_words(topic) for topic in range(TOPIC_COUNT))

    def __init__(self, draws: Draws) -> None:
        self._draws = draws
        self.passages = tuple(self._topic_passages(topic) for topic in range(TOPIC_COUNT))
        self.mean_passage = sum(map(len, self.passages[0])) / PASSAGES

    @classmethod
    @lru_cache(KEPT_SEEDS)
    def of(cls, seed: int) -> "Vocabulary":
        """The vocabulary of a seed; the last few are kept, for processes that build the same web again."""
        return cls(Draws(seed))

    @classmethod
    @cache
    def places(cls) -> dict[str, tuple[int, int]]:
        """Topic word → (topic, index in the topic)."""
        return {word: (t, i) for t, words in enumerate(cls.topics) for i, word in enumerate(words)}

    def _topic_passages(self, topic: int) -> list[str]:
        """Passages of two sentences."""
        sentences = self._topic_sentences(topic, 2 * PASSAGES)
        return [f"{one} {other}" for one, other in zip(sentences[::2], sentences[1::2], strict=True)]

    def _topic_sentences(self, topic: int, count: int) -> list[str]:
        """Sentences of a topic in a handful of array calls: word choices by inverse distribution."""
        longest = 22
        raw = self._draws.words(b"sentences %d" % topic, count * (2 * longest + 1))
        chance = np.array(raw, dtype=np.uint32).reshape(count, 2 * longest + 1) / 2**32
        lengths = 6 + (chance[:, -1] * (longest - 6)).astype(int)
        is_topic = chance[:, :longest] < TOPIC_SHARE
        pick = chance[:, longest:-1]
        by_topic = np.searchsorted(_zipf_cumulative(TOPIC_WORDS), pick).clip(0, TOPIC_WORDS - 1)
        by_general = np.searchsorted(_zipf_cumulative(GENERAL_WORDS), pick).clip(0, GENERAL_WORDS - 1)
        words = np.where(
            is_topic,
            np.array(self.topics[topic], dtype=object)[by_topic],
            np.array(self.general, dtype=object)[by_general],
        ).tolist()
        return [" ".join(row[:n]).capitalize() + "." for row, n in zip(words, lengths.tolist(), strict=True)]
