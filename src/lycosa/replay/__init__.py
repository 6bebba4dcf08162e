"""Replay: the archive of a collection in a browser, as it was, without the live web.

`Replay` answers requests below a path, from the collection alone; `HttpServer` brings them to it on loopback.
`lycosa replay` puts both together, and whatever else serves a collection can mount a `Replay` below a path of its own.
"""

from lycosa.replay.http import HttpServer, ReplayAnswer, ReplayRequest, is_own_host
from lycosa.replay.replay import Replay

__all__ = ["HttpServer", "Replay", "ReplayAnswer", "ReplayRequest", "is_own_host"]
