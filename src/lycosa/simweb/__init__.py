"""The simulated web: hosts, names, pages, change and trouble, all from one seed.

The way through the room: `settings` → `web` (pure: what is there) → `protocol` (HTTP around it) → over sockets
`server` and `nameserver`, or without them `memory` → `log` → `audit`; `truth` is what a perfect crawler would find.
"""

from lycosa.simweb.settings import SimSettings
from lycosa.simweb.web import Answer, SimWeb

__all__ = ["Answer", "SimSettings", "SimWeb"]
