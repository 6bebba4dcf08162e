"""The control endpoint: read and move the clock of a running simulated web.

`GET /.simweb/time` tells the time, `POST /.simweb/time?set=86400&scale=0` moves it, `GET /.simweb/stats` counts.
It answers on the same port, which only this machine reaches; these requests are not part of the web they control.
"""

from typing import Protocol
from urllib.parse import parse_qs, urlsplit

import msgspec

from lycosa.simweb.clock import LATEST_S, SimClock
from lycosa.simweb.web import Answer

CONTROL_PREFIX = "/.simweb/"


class HasStats(Protocol):
    def stats(self) -> dict[str, float]: ...


class Control:
    """Answers the control requests of one server."""

    def __init__(self, clock: SimClock, server: HasStats) -> None:
        self._clock, self._server = clock, server

    def answer(self, method: str, target: str) -> Answer:
        parts = urlsplit(target)
        if parts.path == "/.simweb/stats" and method == "GET":
            return _json(self._server.stats())
        if parts.path != "/.simweb/time" or method not in ("GET", "POST"):
            return _json(
                {"error": "GET /.simweb/time, POST /.simweb/time?set=SECONDS&scale=FACTOR, GET /.simweb/stats"}, 404
            )
        if method == "POST":
            try:
                values = {name: float(value[-1]) for name, value in parse_qs(parts.query).items()}
            except ValueError:
                return _json({"error": "set and scale are numbers"}, 400)
            if not values or values.keys() - {"set", "scale"} or not all(0 <= v <= LATEST_S for v in values.values()):
                return _json({"error": f"set=SECONDS and scale=FACTOR, each between 0 and {LATEST_S:.0f}"}, 400)
            self._clock.set(time_s=values.get("set"), scale=values.get("scale"))
        return _json({"time_s": self._clock.time_s(), "scale": self._clock.scale})


def _json(value: object, status: int = 200) -> Answer:
    return Answer(status, msgspec.json.encode(value) + b"\n", "application/json")
