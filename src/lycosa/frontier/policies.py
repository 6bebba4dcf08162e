"""The built-in policies by name: `breadth`, `pvalue`, `top-window`, `leaf-window`, and two of them joined by `+`.

`pvalue` is Y3 and Y4: P = FwdLK − age · BkLK, in three lists of equal size that are served 4 : 2 : 1. `top-window` is
T4, `leaf-window` T5. A ranking and a walk go together: `pvalue+leaf-window`.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence

import msgspec

from lycosa.frontier.policy import Policy, Ranking, Source, Walk
from lycosa.frontier.rows import HostRow

STEP_HOSTS = 1_000  # hosts in the window of one step
TYPICAL_LINKS = 20.0  # on a page of a host of which nothing is known yet
SAMPLE = 999  # pvalues that the cuts between the lists are taken from

PLAIN = Walk("")
WALKS: Mapping[str, Walk] = {
    walk.name: walk
    for walk in (
        Walk("breadth"),
        Walk("top-window", by_path=True, steps=STEP_HOSTS),
        Walk("leaf-window", by_path=True, swings=True, steps=STEP_HOSTS),
    )
}
BREADTH = Policy(None, WALKS["breadth"])


def pvalue(forward_links: float, back_links: float, age: float) -> float:
    """Y3: a page that leads to many others and that few point to goes first, the more so as the crawl grows older."""
    return forward_links - age * back_links


def three_lists(ranked: Mapping[str, float]) -> tuple[list[str], list[str], list[str]]:
    """Y4: names sorted by their pvalue, cut at round(n/3) and round(2n/3)."""
    names = sorted(ranked, key=lambda name: -ranked[name])
    first, second = round(len(names) / 3), round(2 * len(names) / 3)
    return names[:first], names[first:second], names[second:]


class PValue:
    """Y3 with Y4's three lists. What speaks for a URL is BkLK, the number of links to it; FwdLK is its host's mean.

    The age grows from 0 to 1 as the crawl has done more of what it knows. The cuts between the lists are those of the
    last `SAMPLE` pvalues; a URL changes its list when another link to it is found.
    """

    name = "pvalue"
    bands = 3
    takes: tuple[int, ...] = (1, 1, 1, 1, 2, 2, 3)
    slack: int | None = None
    sees_all = True

    def __init__(self) -> None:
        self._age = 0.0
        self._sample: deque[float] = deque(maxlen=SAMPLE)
        self._cuts = (0.0, 0.0)

    def __repr__(self) -> str:
        return f"<PValue age={self._age:.2f} cuts={self._cuts}>"

    def fetched(self, source: Source, urls: Sequence[str], anchors: Sequence[str]) -> Sequence[float]:
        return [1.0] * len(urls)

    def combine(self, credit: float, more: float) -> float:
        return credit + more

    def band(self, credit: float, host: HostRow) -> int:
        forward = host.links / host.pages if host.pages else TYPICAL_LINKS
        value = pvalue(forward, credit, self._age)
        self._sample.append(value)
        upper, lower = self._cuts
        return 1 if value >= upper else 2 if value >= lower else 3

    def matured(self, done: int, known: int) -> None:
        self._age = done / known if known else 0.0
        if self._sample:
            values = sorted(self._sample, reverse=True)
            self._cuts = (values[len(values) // 3], values[2 * len(values) // 3])

    def dump(self) -> bytes:
        return msgspec.msgpack.encode(list(self._sample))

    def load(self, learned: bytes) -> None:
        self._sample.extend(msgspec.msgpack.decode(learned, type=list[float]))


RANKINGS: Mapping[str, Callable[[], Ranking]] = {"pvalue": PValue}


def policy_of(name: str, rankings: Mapping[str, Callable[[], Ranking]] = RANKINGS) -> Policy:
    """The policy of this name; KeyError names the part that is not known."""
    first, _, second = name.partition("+")
    if first in WALKS:
        if second:
            raise KeyError(second)
        return Policy(None, WALKS[first])
    return Policy(rankings[first](), WALKS[second] if second else PLAIN)
