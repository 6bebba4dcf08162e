"""What marisa-trie takes for the keys of the benchmark `trie`: run there, in an environment that has it.

    python marisa_questions.py HOST-PREFIX-IN-HEX < keys, each behind its length in two bytes

Prints one JSON object. Keys are laid out in label order, so that a walk of a subtree is in their order.
"""

import json
import random
import sys
import time
from collections.abc import Callable

import marisa_trie

ASKED = 5_000
SEED = 4


def read_keys() -> list[bytes]:
    keys, stream = [], sys.stdin.buffer
    while size := stream.read(2):
        keys.append(stream.read(int.from_bytes(size, "big")))
    return keys


def mean_s(call: Callable[[bytes], object], keys: list[bytes]) -> float:
    began = time.process_time()
    for key in keys:
        call(key)
    return (time.process_time() - began) / len(keys)


def main() -> None:
    keys, host = read_keys(), bytes.fromhex(sys.argv[1])
    began = time.process_time()
    trie = marisa_trie.BinaryTrie(keys, order=marisa_trie.LABEL_ORDER)
    build_s = time.process_time() - began
    some = random.Random(SEED).sample(keys, ASKED)
    found = {
        "bytes": len(trie.tobytes()),
        "build_s": build_s,
        "has_s": mean_s(lambda key: key in trie, some),
        "lacks_s": mean_s(lambda key: key + b"~" in trie, some),
        "count": sum(1 for _ in trie.iterkeys(host)),
        "count_s": mean_s(lambda _: sum(1 for _ in trie.iterkeys(host)), some[:3]),
        "leaf_s": mean_s(lambda key: next(trie.iterkeys(key[: key.rindex(b"/") + 1])), some),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
