"""Random input for a reader of foreign bytes, made from its samples: the same seed and number give the same input."""

import random
from collections.abc import Callable
from typing import NamedTuple


class FuzzTarget(NamedTuple):
    """A reader of foreign bytes. `errors` are those that are documented; `make` makes an input in its own way."""

    check: Callable[[bytes], object]
    samples: tuple[bytes, ...]
    words: tuple[bytes, ...]
    errors: tuple[type[Exception], ...] = ()
    make: Callable[[random.Random], bytes] | None = None

    def input(self, chance: random.Random) -> bytes:
        return mutated(self, chance) if self.make is None else self.make(chance)


_ODD = (
    b"\0", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\xe2\x80\xae", b"\r\n", b"\n", b"\t", b" ", b"%00",
    b"%", b"%zz", b"\\", b"'", b'"', b"<", b">", b"&", b";", b"=", b":", b"/", b"//", b"..", b"*", b"$", b"#", b"?",
    b"[", b"]", b"{", b"}", b"-1", b"0", b"1e999", b"NaN", b"Infinity", b"9" * 25, b"\\ud800", b"\\u0000", b"a" * 300,
)  # fmt: skip
LONGEST_BYTES = 1 << 16


def mutated(target: FuzzTarget, chance: random.Random) -> bytes:
    """A sample with a few changes, each at a random place."""
    data = bytearray(chance.choice(target.samples))
    for _ in range(chance.choice((1, 1, 2, 3, 5, 8, 20))):
        at, kind = chance.randint(0, len(data)), chance.random()
        if kind < 0.3:
            data[at:at] = chance.choice(target.words)
        elif kind < 0.5:
            data[at : at + chance.choice((0, 1, 4))] = chance.choice(_ODD)
        elif kind < 0.6:
            del data[at : at + chance.randint(1, 16)]
        elif kind < 0.7 and at < len(data):
            data[at] ^= 1 << chance.randrange(8)
        elif kind < 0.8:
            part = data[at : at + chance.randint(1, 60)]
            data[at:at] = part * chance.choice((1, 2, 50, 500))
        elif kind < 0.9:
            other = chance.choice(target.samples)
            start = chance.randint(0, len(other))
            data[at:] = other[start:]
        elif kind < 0.95:
            del data[at:]
        else:
            data[at:at] = chance.randbytes(chance.randint(1, 12))
        del data[LONGEST_BYTES:]
    return bytes(data)
