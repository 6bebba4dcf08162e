"""The learning room decides what a crawl does with what it has learned of a host: traps, idle parameters, guesses.

`TrapGuard` slows and drops URLs that lead to nothing new, `UrlMining` queues URLs that nobody links to; both are hooks
of the frontier. What they know of a host is its `HostProfile`, which lasts over restarts. The arithmetic of
`traps` and of the `Miner` is pure.
"""

from lycosa.learning.mining import HostProfiles, MiningLevel, UrlMining, ancestors
from lycosa.learning.trap_guard import TrapGuard, read_domain_budget
from lycosa.learning.traps import path_pattern

__all__ = [
    "HostProfiles",
    "MiningLevel",
    "TrapGuard",
    "UrlMining",
    "ancestors",
    "path_pattern",
    "read_domain_budget",
]
