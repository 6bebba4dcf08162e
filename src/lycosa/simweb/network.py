"""The network model: round-trip time and bandwidth of each host, by distribution.

Both are log-normal over hosts around the settings' medians; a spread of 0 makes all hosts equal.
A host's transfers share its bandwidth: each reserves time on the line, piece by piece where pieces are sent.
The server and the in-memory web turn the figures into waiting.
"""

import math
import sys

import msgspec

from lycosa.simweb.draws import Draws, unit
from lycosa.simweb.settings import SimSettings

PACE_S = 0.02  # a piece is what the line carries in this time
RTT_PURPOSE, BANDWIDTH_PURPOSE = 70, 71


class Line(msgspec.Struct, frozen=True):
    """The line to one host. `bandwidth_bytes_s` 0 means without limit."""

    rtt_s: float
    bandwidth_bytes_s: float


class Network:
    """The lines to all hosts of one web. Keeps, for the hosts that were asked, until when their line is taken."""

    def __init__(self, settings: SimSettings, draws: Draws) -> None:
        self._settings, self._draws = settings, draws
        self._taken_until: dict[int, float] = {}
        self.is_ideal = not settings.rtt_ms and not settings.bandwidth_bytes_s

    def line(self, host: int) -> Line:
        s = self._settings
        return Line(
            rtt_s=s.rtt_ms / 1000 * self._factor(host, RTT_PURPOSE, s.rtt_spread),
            bandwidth_bytes_s=s.bandwidth_bytes_s * self._factor(host, BANDWIDTH_PURPOSE, s.bandwidth_spread),
        )

    def piece_bytes(self, host: int) -> int:
        """How much to send at once, so that the host's transfers take turns."""
        bytes_s = self.line(host).bandwidth_bytes_s
        return max(1, int(bytes_s * PACE_S)) if bytes_s else sys.maxsize

    def reserve(self, host: int, size_bytes: int, now: float) -> float:
        """Takes the host's line for so many bytes, after those who came before; when the last one has passed."""
        bytes_s = self.line(host).bandwidth_bytes_s
        if not bytes_s:
            return now
        free = self._taken_until.get(host, 0.0)
        if free < now - PACE_S:  # idle; else a piece that went a moment late, as timers do, is made good
            free = now
        until = self._taken_until[host] = free + size_bytes / bytes_s
        return max(now, until)

    def _factor(self, host: int, purpose: int, sigma: float) -> float:
        """A log-normal factor with median 1, from two uniforms (Box and Muller)."""
        if not sigma:
            return 1.0
        x = self._draws.mix(host, 0, purpose)
        radius = math.sqrt(-2 * math.log(1 - unit(x)))
        return math.exp(sigma * radius * math.cos(2 * math.pi * unit(self._draws.mix(host, 1, purpose))))
