"""Importance while crawling: cash flows along links, and a queued URL is worth the cash it has received (OPIC).

    importance.spread(cash, targets)      a page was fetched: what each link adds, gathered until the next commit
    deltas = importance.take()            once a commit: key → cash to add to the URLs that still wait
    importance.band(cash)                 the band of the queue for a URL with so much cash, `BANDS` - 1 the best

A fetched page hands all its cash on in equal parts, plus a gift of its own, without which late pages would hand on next
to nothing. A page without links pays into a root that belongs to all; the root pays out with every page fetched after.

Most links carry little, and a write for each of a page's sixty would cost more than the page. So cash is handed out in
coins, a sixteenth of a usual page's cash or less; a part of a coin becomes a whole one by chance, in proportion, which
is right on the mean and leaves most links without a write. Nothing is kept of any URL: cash lies with the URL in the
state, deltas only between two commits. Bands are a factor of two apart, measured against what fetched pages had, so
that a URL changes its band when much comes together, not with every link.

Cash for a page that is fetched already stays there and is worth nothing, so the usual cash sinks as a crawl goes on:
it is kept as 64 bits. (Handing it out again through the root levels all pages and makes the order worse.)

Pure: the chance is a generator with a seed. Called by the rank policy.
"""

from collections.abc import Hashable, Sequence
from math import floor, frexp, log2
from random import Random
from typing import Generic, TypeVar

BANDS = 8
MIDDLE = 4  # the band of a URL with the usual cash
SEED_CASH = 1.0
GIFT = 0.1  # of the usual cash: what a page hands on beside its own; much more drowns what it received
COINS = 16  # at least so many make the usual cash
ROOT_SHARE = 0.01  # of the root's cash, paid out with a page
LEAST_USUAL = 1e-250  # nothing is divided by zero, even if no page ever has cash
HORIZON = 20_000  # pages: how far back the usual cash is looked for

Key = TypeVar("Key", bound=Hashable)


class Importance(Generic[Key]):
    """The flow of cash in one crawl: four numbers, and the deltas since the last commit."""

    def __init__(self, *, seed: int = 0) -> None:
        self._chance = Random(seed).random
        self._deltas: dict[Key, float] = {}
        self.pages = 0
        self.usual = SEED_CASH
        self.root = 0.0
        self.coin = _coin(SEED_CASH)

    def __repr__(self) -> str:
        return f"<Importance pages={self.pages} usual={self.usual:.3g} root={self.root:.3g} deltas={len(self._deltas)}>"

    def spread(self, cash: float, targets: Sequence[Key]) -> None:
        """A page with `cash` was fetched and links to `targets`, each named once."""
        self._note(cash)
        paid = self.root * ROOT_SHARE
        self.root -= paid
        whole = cash + paid + GIFT * self.usual
        if not targets:
            self.root += whole
            return
        coin, chance, deltas = self.coin, self._chance, self._deltas
        number, part = divmod(whole / len(targets) / coin, 1.0)
        sure = number * coin
        for target in targets if sure else [target for target in targets if chance() < part]:
            more = (sure + coin if chance() < part else sure) if sure else coin
            deltas[target] = deltas.get(target, 0.0) + more

    def take(self) -> dict[Key, float]:
        """The deltas since the last call; whoever takes them writes them."""
        deltas, self._deltas = self._deltas, {}
        return deltas

    def band(self, cash: float) -> int:
        """The band of a waiting URL with so much cash."""
        share = cash / self.usual
        if share <= 0:  # nothing, or less than a float can say
            return 0
        return max(0, min(BANDS - 1, MIDDLE + floor(log2(share))))

    def _note(self, cash: float) -> None:
        self.pages += 1
        self.usual = max(LEAST_USUAL, self.usual + (cash - self.usual) / min(self.pages, HORIZON))
        if not self.coin <= self.usual / COINS < 4 * self.coin:  # seldom: a coin stays what it is
            self.coin = _coin(self.usual)


def _coin(usual: float) -> float:
    """The largest power of two that is no more than a `COINS`-th of the usual cash."""
    return 2.0 ** (frexp(usual / COINS)[1] - 1)
