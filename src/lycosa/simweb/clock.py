"""The time of the simulated web: frozen, real, scaled, or set by hand.

Counted in seconds since the web began. It stands still by default, so that two crawls see the same web; `scale` 1 lets
it run with the real clock, 86,400 makes a day of every second. It stops for good after a century, so that every date
can be written. The caller gives the monotonic time.
"""

from collections.abc import Callable

from lycosa.errors import SettingsError

LATEST_S = 100 * 365 * 86_400.0


def check_time(option: str, value: float) -> None:
    """Refuses a simulated time, or a pace of it, that no clock here can have."""
    if not 0 <= value <= LATEST_S:
        raise SettingsError(f"{option} is {value:g}, it must be between 0 and {LATEST_S:.0f}")


class SimClock:
    """Maps a monotonic clock to simulated time."""

    def __init__(self, monotonic: Callable[[], float], *, scale: float = 0.0, start_s: float = 0.0) -> None:
        self._monotonic = monotonic
        self._began = self._since = monotonic()
        self._base_s, self.scale = start_s, scale

    def time_s(self) -> float:
        """Simulated seconds since the web began."""
        return min(LATEST_S, self._base_s + (self._monotonic() - self._since) * self.scale)

    def elapsed_s(self) -> float:
        """Real seconds since the clock was made."""
        return self._monotonic() - self._began

    def set(self, *, time_s: float | None = None, scale: float | None = None) -> None:
        """Move the hand, change the pace, or both; what is not given stays."""
        self._base_s = self.time_s() if time_s is None else time_s
        self._since = self._monotonic()
        self.scale = self.scale if scale is None else scale
