"""The limits that the user set on a crawl as a whole: pages, bytes, time, and visits of a recrawl.

Limits count over the collection, not the run; the time of `--keep-fresh` and of a recrawl is that of the run. Pure but
for the clock it is given. The loop asks before every request and a few times a second.
"""

from collections.abc import Callable

import msgspec

from lycosa.crawl.other_shards import OtherShards
from lycosa.crawl.seams import AnswerConverter
from lycosa.crawl.stats import Counters
from lycosa.frontier import Frontier
from lycosa.settings import CrawlSettings


class Recrawl(msgspec.Struct, frozen=True, kw_only=True):
    """Look at pages again. `budget` is in visits a day, `most` ends it after so many visits, `time_s` after so long;
    `everything`: whether it is due or not; `urls`: these and no others."""

    budget: float | None = None
    most: int | None = None
    everything: bool = False
    urls: tuple[str, ...] = ()
    time_s: float | None = None


class LimitChecker:
    """What may still be done. `now` is the monotonic clock, `run_s` the time of this run so far, `visits` are the most
    that it makes."""

    def __init__(
        self,
        settings: CrawlSettings,
        counters: Counters,
        run_s: Callable[[], float],
        frontier: Frontier,
        now: Callable[[], float],
        *,
        visits: int | None = None,
        other_shards: OtherShards | None = None,
    ) -> None:
        self._settings, self._counters, self._run_s, self._other_shards = settings, counters, run_s, other_shards
        self._frontier, self._now = frontier, now
        self.converter: AnswerConverter | None = None
        self._last_visit = None if visits is None else counters.totals.visits + visits
        self._seconds_before = counters.totals.seconds

    def seconds(self) -> float:
        """Seconds that this collection has been crawled for, this run included."""
        return self._seconds_before + self._run_s()

    def heard(self, seconds: float) -> None:
        """The crawl of which this is a shard has gone on for so long, from before this shard was started."""
        self._seconds_before = max(self._seconds_before, seconds - self._run_s())

    def reached(self, in_flight: int = 0) -> str:
        """The name of the limit that is reached, or nothing."""
        s, t = self._settings, self._counters.totals
        has_pages = s.pages is not None and t.pages >= s.pages
        if self._frontier.holds_pages or has_pages:
            self._hold_pages(in_flight)
        if has_pages and not self._frontier.requisites:
            return "pages"
        if s.bytes is not None and t.bytes >= s.bytes:
            return "bytes"
        if s.time_s is not None and self.seconds() >= s.time_s:
            return "time"
        return "visits" if self._visits_left() == 0 else ""

    def _visits_left(self) -> int | None:
        """The visits that may still be made; None where as many may be made as are queued."""
        left = None if self._last_visit is None else max(0, self._last_visit - self._counters.totals.visits)
        return left if left is not None and self._frontier.revisiting > left else None

    def has_room(self, in_flight: int) -> bool:
        """May one more be asked for beside those in flight?"""
        s = self._settings
        if in_flight - (self.converter.waiting if self.converter is not None else 0) >= s.transfers:
            return False
        may_ask = self._may_ask(in_flight)
        if not may_ask and not self._frontier.holds_pages:
            self._hold_pages(in_flight)
        if self._frontier.holds_pages:
            return self._other_shards is None or self._other_shards.may_ask(-1)
        if not may_ask:
            return False
        visits_left = self._visits_left()
        return visits_left is None or in_flight < visits_left

    def _hold_pages(self, in_flight: int) -> None:
        """Where no page may be asked for, what pages need to be shown still is: those that are there, or those that a
        browser renders."""
        self._frontier.hold_pages(self._frontier.requisites > 0 and not self._may_ask(in_flight), self._now())

    def _may_ask(self, in_flight: int) -> bool:
        """May one more page be asked for, beside those in flight?"""
        if self.converter is not None and self.converter.is_full:
            return False
        most, pages = self._settings.pages, self._counters.totals.pages + in_flight
        if self._other_shards is not None and not self._other_shards.may_ask(pages):
            return False
        return most is None or pages < most

    def share(self) -> float | None:
        """How much of the limit that is nearest is used up, from 0 to 1; None without a limit."""
        s, t = self._settings, self._counters.totals
        limits = ((s.pages, t.pages), (s.bytes, t.bytes), (s.time_s, self.seconds()))
        return max((min(had / most, 1.0) for most, had in limits if most is not None), default=None)

    def left_s(self) -> float | None:
        """The seconds until a limit ends the crawl, at the pace so far; None without a limit or a pace."""
        s, run_pages = self._settings, self._counters.run_pages
        guesses = []
        if s.time_s is not None:
            guesses.append(s.time_s - self.seconds())
        if s.pages is not None and run_pages:
            guesses.append((s.pages - self._counters.totals.pages) * self._run_s() / run_pages)
        return max(0.0, min(guesses)) if guesses else None


def effective_limits(settings: CrawlSettings, recrawl: Recrawl | None, seconds_before: float) -> CrawlSettings:
    """The settings whose limits count: a recrawl has its own, by which alone it is bounded. What keeps fresh goes on
    for ever, so its time is that of this run: an earlier one has used none of it."""
    if recrawl is None:
        if not settings.keep_fresh or settings.time_s is None:
            return settings
        return settings.replace(time_s=seconds_before + settings.time_s)
    time_s = None if recrawl.time_s is None else seconds_before + recrawl.time_s
    return settings.replace(pages=None, bytes=None, time_s=time_s)
