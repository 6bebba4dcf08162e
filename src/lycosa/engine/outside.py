"""One shard among others: the door to the rest of the crawl, and how what comes through it is taken in.

The engine asks the door whether it may go on, tells it of commits, and lets it write into them; everything else (who
owns what, how URLs travel, who is alive) is behind it. A crawl of one process has no door.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from lycosa.engine.copies import Claim, Owners
from lycosa.engine.shard import Shard
from lycosa.frontier.crossing import Crossing, Elsewhere
from lycosa.frontier.rows import Kind, Origin
from lycosa.records import Response
from lycosa.store import Batch
from lycosa.web.url import Url, split

if TYPE_CHECKING:
    from lycosa.engine.outcomes import Outcomes


class Outside(Elsewhere, Owners, Protocol):
    """The rest of the crawl, as an engine sees it."""

    def may_ask(self, pages: int) -> bool:
        """May one more request be started, `pages` being fetched or under way already?"""
        ...

    def may_visit(self, address: str, host: str) -> bool:
        """May this address be asked now? If not, the engine hears of the host by `Engine.located`, later."""
        ...

    def may_end(self) -> bool:
        """Is the crawl over where nothing is queued here?"""
        ...

    def ask_robots(self, url: Url, then: Callable[[Response], None]) -> None:
        """Has a robots.txt fetched by the shard that owns its host; `then` hears what came back."""
        ...

    def write(self, batch: Batch) -> None:
        """Puts what has to last into a commit."""
        ...

    def committed(self) -> None:
        """That commit is on disk."""
        ...


def take_in(shard: Shard, outcomes: "Outcomes", parcels: Sequence[Crossing | Claim], *, now: float) -> None:
    """Takes in what other shards found, as if it had been found here."""
    crossings = [one for one in parcels if isinstance(one, Crossing)]
    if len(crossings) < len(parcels) and outcomes.copies is not None:
        outcomes.copies.take([one for one in parcels if isinstance(one, Claim)])
    frontier = shard.frontier
    is_ranked = frontier.policy.ranking is not None
    groups: dict[tuple[int, int, int, int, str], list[Crossing]] = defaultdict(list)
    for one in crossings:
        if not one.is_vouch:
            groups[one.depth, one.kind, one.hops, one.origin, one.source].append(one)
    for (depth, kind, hops, origin, source), some in groups.items():
        urls = [split(one.href) for one in some]
        if depth == 0 and kind == Kind.PAGE and origin in (Origin.WISH, Origin.REDIRECT):
            outcomes.widen(urls)  # asked for by the user, or where that leads
            if origin == Origin.WISH:
                outcomes.ask_again(urls)
        new = frontier.admit(
            urls,
            depth=depth,
            kind=Kind(kind),
            hops=hops,
            now=now,
            origin=Origin(origin),
            credits=[one.credit for one in some] if is_ranked else None,
            source=source,
        )
        if source and new:
            outcomes.budgets.linked(source, new)
    vouches = {one.href: one.credit for one in crossings if one.is_vouch}
    frontier.vouch(vouches, now)
