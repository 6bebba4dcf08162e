"""Crawls of a web that is known, with their worth: what came after how many pages, and what guessing found.

Pages that only guessing finds have no in-links and so no rank here; they count as pages and for their topic.
Used by experiments.
"""

import tempfile
from collections.abc import Callable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from lycosa.frontier.rows import Reason, UrlRow, UrlState
from lycosa.inspect.status import open_to_read
from lycosa.records import Family
from lycosa.simweb import SimSettings, SimWeb
from lycosa.simweb.truth import truth
from lycosa.simweb.vocabulary import TOPICS
from proof.known import KnownWeb
from proof.sim_crawl import Crawled, Look, crawl


class Mined(NamedTuple):
    """Guesses that were asked for, and those of them that were pages."""

    asked: int
    found: int


class Measured(NamedTuple):
    """A crawl with its worth: on-topic pages and rank mass after each page."""

    crawled: Crawled
    on_topic: Sequence[int]
    mass: Sequence[float]
    mined: Mined

    @property
    def pages(self) -> int:
        return len(self.on_topic)

    def at(self, pages: int) -> Look:
        """The crawl as it was when so many pages were committed."""
        looks = self.crawled.looks
        return next((look for look in looks if look.pages >= pages), looks[-1])


class Ground:
    """One known web, a topic to look for, and crawls of it. `fifth` is the number of pages at which orders compare."""

    def __init__(self, seed: int, *, hosts: int, pages: int) -> None:
        self.known = KnownWeb(SimWeb(SimSettings(seed=seed, hosts=hosts, pages=pages)))
        self.topic = seed * 3 % len(TOPICS)  # another one on every web
        self.fifth = len(self.known) // 5

    def __repr__(self) -> str:
        return f"<Ground {self.known!r} topic={TOPICS[self.topic][0]}>"

    def crawl(
        self,
        policy: str,
        *,
        mine: str = "ancestors",
        pages: int | None = None,
        advance: Callable[[int], None] = lambda pages: None,
    ) -> Measured:
        """By the real engine under default politeness, to the end or until there are so many pages."""
        topic = {"topic": " ".join(TOPICS[self.topic])} if policy == "topic" else {}
        with tempfile.TemporaryDirectory(prefix="lycosa-lab-") as folder:
            into = Path(folder) / "crawl"
            limits: dict[str, Any] = {"policy": policy, "mine": mine, "pages": pages, **topic}
            done = crawl(self.known.web, into, *self.known.seeds, advance=advance, **limits)
            mined = _mined(into)
        known = self.known
        on_topic = accumulate(int(known.topic_of(url) == self.topic) for url in done.urls)
        numbers = [known.number(url) for url in done.urls]
        mass = accumulate(0.0 if number is None else float(known.ranks[number]) for number in numbers)
        return Measured(done, list(on_topic), list(mass), mined)

    def on_topic_pages(self) -> int:
        return sum(self.known.topic_of(url) == self.topic for url in self.known.pages)

    def unlinked_pages(self) -> int:
        """The pages that only guessing finds: folders and members of series that nobody links to."""
        reachable = truth(self.known.web, self.known.seeds, scope="any", mine="all").pages
        return len(reachable) - len(self.known)


def _mined(collection: Path) -> Mined:
    with open_to_read(collection) as opened:
        rows = [UrlRow.unpack(row) for _, row in opened.state.walk(Family.URL)]
    guesses = [row for row in rows if row.origin.is_guess]
    found = sum(row.state is UrlState.DONE for row in guesses)
    return Mined(found + sum(row.reason is Reason.GUESS for row in guesses), found)
