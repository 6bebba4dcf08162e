"""The built-in policies by name: a walk (`breadth`, `top-window`, `leaf-window`), a ranking, or RANKING+WALK.

`top-window` is T4, `leaf-window` T5. The rankings are in `frontier.rankings`; any of them goes with any walk, as in
`pvalue+leaf-window`.
"""

from collections.abc import Callable, Mapping

from lycosa.frontier.policy import Policy, Ranking, Walk
from lycosa.frontier.rankings import InternalFirst, PValue, Rank

STEP_HOSTS = 1_000  # hosts in the window of one step, unless it is set

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
RANKINGS: Mapping[str, Callable[[], Ranking]] = {"pvalue": PValue, "rank": Rank, "internal-first": InternalFirst}


def policy_of(name: str, rankings: Mapping[str, Callable[[], Ranking]] = RANKINGS) -> Policy:
    """The policy of this name; KeyError names the part that is not known."""
    first, _, second = name.partition("+")
    if first in WALKS:
        if second:
            raise KeyError(second)
        return Policy(None, WALKS[first])
    return Policy(rankings[first](), WALKS[second] if second else PLAIN)
