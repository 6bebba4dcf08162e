"""The network model: round-trip time and bandwidth of each host, by distribution.

Both are log-normal over hosts around the settings' medians; a spread of 0 makes all hosts equal.
Pure; the server and the in-memory web turn the figures into waiting.
"""

import math

import msgspec

from lycosa.simweb.draws import Draws, unit
from lycosa.simweb.settings import SimSettings

RTT_PURPOSE, BANDWIDTH_PURPOSE = 70, 71


class Line(msgspec.Struct, frozen=True):
    """The line to one host. `bandwidth_bytes_s` 0 means without limit."""

    rtt_s: float
    bandwidth_bytes_s: float


class Network:
    """The lines to all hosts of one web."""

    def __init__(self, settings: SimSettings, draws: Draws) -> None:
        self._settings, self._draws = settings, draws
        self.is_ideal = not settings.rtt_ms and not settings.bandwidth_bytes_s

    def line(self, host: int) -> Line:
        s = self._settings
        return Line(
            rtt_s=s.rtt_ms / 1000 * self._factor(host, RTT_PURPOSE, s.rtt_spread),
            bandwidth_bytes_s=s.bandwidth_bytes_s * self._factor(host, BANDWIDTH_PURPOSE, s.bandwidth_spread),
        )

    def _factor(self, host: int, purpose: int, sigma: float) -> float:
        """A log-normal factor with median 1, from two uniforms (Box and Muller)."""
        if not sigma:
            return 1.0
        x = self._draws.mix(host, 0, purpose)
        radius = math.sqrt(-2 * math.log(1 - unit(x)))
        return math.exp(sigma * radius * math.cos(2 * math.pi * unit(self._draws.mix(host, 1, purpose))))
