"""The network model: round-trip time and bandwidth of each host, by distribution.

Both are log-normal over hosts around the settings' medians; a spread of 0 makes all hosts equal.
A host's transfers share its bandwidth, and the transfers of all hosts the client's line, where it has a limit: each
reserves time on the lines, piece by piece where pieces are sent. The limit of a single transfer is shared with nobody.
The server and the in-memory web turn the figures into waiting.
"""

import math
import sys

import msgspec

from lycosa.simweb.draws import Draws, unit
from lycosa.simweb.settings import SimSettings

PACE_S = 0.02  # a piece is what the line carries in this time
RTT_PURPOSE, BANDWIDTH_PURPOSE = 70, 71
CLIENT = -1  # the client's line, among those of the hosts


class Line(msgspec.Struct, frozen=True):
    """The line to one host. `bandwidth_bytes_s` 0 means without limit."""

    rtt_s: float
    bandwidth_bytes_s: float


class Network:
    """The lines to all hosts of one web. Keeps, for the hosts that were asked, until when their line is taken."""

    def __init__(self, settings: SimSettings, draws: Draws) -> None:
        self._settings, self._draws = settings, draws
        self._taken_until: dict[int, float] = {}
        limits = settings.bandwidth_bytes_s, settings.line_bytes_s, settings.transfer_bytes_s
        self.is_ideal = not (settings.rtt_ms or any(limits))

    def line(self, host: int) -> Line:
        s = self._settings
        return Line(
            rtt_s=s.rtt_ms / 1000 * self._factor(host, RTT_PURPOSE, s.rtt_spread),
            bandwidth_bytes_s=s.bandwidth_bytes_s * self._factor(host, BANDWIDTH_PURPOSE, s.bandwidth_spread),
        )

    def piece_bytes(self, host: int) -> int:
        """How much to send at once, so that transfers take turns."""
        limits = [bytes_s for _, bytes_s in self._limits(host)]
        limits += [s] if (s := self._settings.transfer_bytes_s) else []
        return max(1, int(min(limits) * PACE_S)) if limits else sys.maxsize

    def reserve(self, host: int, size_bytes: int, now: float) -> float:
        """Takes the lines for so many bytes, after those who came before; when the last one has passed."""
        until = now
        for line, bytes_s in self._limits(host):
            free = self._taken_until.get(line, 0.0)
            if free < now - PACE_S:  # idle; else a piece that went a moment late, as timers do, is made good
                free = now
            self._taken_until[line] = free + size_bytes / bytes_s
            until = max(until, self._taken_until[line])
        own = self._settings.transfer_bytes_s
        return max(until, now + size_bytes / own) if own else until

    def _limits(self, host: int) -> list[tuple[int, float]]:
        """The lines on a host's way that have a limit: its own, and the client's."""
        lines = ((host, self.line(host).bandwidth_bytes_s), (CLIENT, self._settings.line_bytes_s))
        return [(line, bytes_s) for line, bytes_s in lines if bytes_s]

    def _factor(self, host: int, purpose: int, sigma: float) -> float:
        """A log-normal factor with median 1, from two uniforms (Box and Muller)."""
        if not sigma:
            return 1.0
        x = self._draws.mix(host, 0, purpose)
        radius = math.sqrt(-2 * math.log(1 - unit(x)))
        return math.exp(sigma * radius * math.cos(2 * math.pi * unit(self._draws.mix(host, 1, purpose))))
