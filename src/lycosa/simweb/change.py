"""How pages change: independent Poisson processes, readable at any time without playing them through.

Time is cut into epochs of four expected events; the number of events of an epoch and their times are draws for
(page, kind, epoch). The state of a page is the *last* event of each kind, found by looking back a few epochs, so
a year costs as much as a second. Rates are log-normal over pages: most hardly change, a few change all the time.
Time is in seconds since the web began; at time 0 nothing has changed yet.
"""

import msgspec

from lycosa.simweb.draws import Draws, lognormal_table, poisson_table, unit

DAY_S = 86_400.0
MEDIAN_RATE_PER_DAY = 1 / 30
RATE_SIGMA = 1.8
EPOCH_EVENTS = 4.0
MOST_EVENTS = 64  # in an epoch: room for the event's number in its ordinal
GONE_MEAN_DAYS = 5.0

# kind → its events per event of the page's own rate
TEXT, STRUCTURE, IMAGE, VOLATILE, GONE = range(5)
RATE_OF_KIND = (0.6, 0.15, 0.2, 8.0, 0.05)
RATE_PURPOSE, EVENT_PURPOSE = 10, 11

_RATES = lognormal_table(MEDIAN_RATE_PER_DAY / DAY_S, RATE_SIGMA)
_COUNTS = poisson_table(EPOCH_EVENTS)


class Event(msgspec.Struct, frozen=True):
    """The last event of a kind: a number that no other event of this page and kind has, and when it was."""

    ordinal: int
    at_s: float


NEVER = Event(0, 0.0)


class State(msgspec.Struct, frozen=True):
    """A page at a time: the ordinal of the last event of each kind (0: none yet)."""

    text: int = 0
    structure: int = 0
    image: int = 0
    volatile: int = 0
    gone: bool = False
    changed_s: float = 0.0


UNCHANGED = State()


class Changes:
    """The change history of every page of one seed; `key` stands for the page."""

    def __init__(self, draws: Draws) -> None:
        self._draws = draws

    def rate(self, key: int) -> float:
        """Events a second of the page's own process."""
        return _RATES[self._draws.mix(key, 0, RATE_PURPOSE) & 1023]

    def state(self, key: int, time_s: float, *, has_volatile: bool = True, can_go: bool = True) -> State:
        """The page at a time; a page without a volatile part has no volatile events, some pages never disappear."""
        if time_s <= 0:
            return UNCHANGED
        rate = self.rate(key)
        text, structure, image, volatile, gone = (
            self._last_event(key * 8 + kind, rate * factor, time_s) if happens else NEVER
            for (kind, factor), happens in zip(enumerate(RATE_OF_KIND), (1, 1, 1, has_volatile, can_go), strict=True)
        )
        return State(
            text=text.ordinal,
            structure=structure.ordinal,
            image=image.ordinal,
            volatile=volatile.ordinal,
            gone=gone.ordinal > 0 and time_s < gone.at_s + self._gone_for(key, gone.ordinal),
            changed_s=max(text.at_s, structure.at_s, volatile.at_s),
        )

    def _gone_for(self, key: int, ordinal: int) -> float:
        return 2 * GONE_MEAN_DAYS * DAY_S * unit(self._draws.mix(key, ordinal, GONE))

    def _last_event(self, key: int, rate: float, time_s: float) -> Event:
        length = EPOCH_EVENTS / rate
        epoch = int(time_s / length)
        while epoch >= 0:
            x = self._draws.mix(key, epoch, EVENT_PURPOSE)
            times = sorted(unit(self._draws.mix(x, i, EVENT_PURPOSE)) for i in range(_COUNTS[x & 1023]))
            for i in range(len(times) - 1, -1, -1):
                at_s = (epoch + times[i]) * length
                if at_s <= time_s:
                    return Event(epoch * MOST_EVENTS + i + 1, at_s)
            epoch -= 1
        return NEVER
