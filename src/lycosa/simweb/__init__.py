"""The simulated web: hosts, names, pages, change and trouble, all from one seed.

The way through the room: `settings` → `web` (pure: what is there) → `protocol` (HTTP around it) → over sockets
`server` and `nameserver`, or without them `memory` → `log` → `audit`; `truth` is what a perfect crawler would find.
"""

from lycosa.simweb.log import Audit, AuditRules, Finding, audit_log
from lycosa.simweb.network import check_time
from lycosa.simweb.server import RunningWeb, serve_web
from lycosa.simweb.settings import DNS, DOCUMENT_TROUBLE, HOST_TROUBLE, ROBOTS, ROBOTS_DEFAULTS, SimSettings
from lycosa.simweb.truth import TruthLimits, example_pages, summarise, truth
from lycosa.simweb.web import Answer, SimWeb

__all__ = [
    "DNS",
    "DOCUMENT_TROUBLE",
    "HOST_TROUBLE",
    "ROBOTS",
    "ROBOTS_DEFAULTS",
    "Answer",
    "Audit",
    "AuditRules",
    "Finding",
    "RunningWeb",
    "SimSettings",
    "SimWeb",
    "TruthLimits",
    "audit_log",
    "check_time",
    "example_pages",
    "serve_web",
    "summarise",
    "truth",
]
