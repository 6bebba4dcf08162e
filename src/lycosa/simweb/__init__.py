"""The simulated web: hosts, names, pages, change and trouble, all from one seed, to prove a crawler on.

What is there is decided by pure code: `settings` → `web` (`layout`, `links`, `pages`, `documents`, `vocabulary`). HTTP
around it is `protocol`. It is served over loopback sockets by `server`, or without sockets and on virtual time by
`memory`. Every request is logged; `audit` judges from the log whether a crawler was polite, and `truth_of` says what a
perfect crawler finds. Nothing of the product is used here, so both are evidence from outside.
"""

from lycosa.simweb.hostile import ROWS as HOSTILE_ROWS
from lycosa.simweb.hostile import HostileRow, hostile_page
from lycosa.simweb.hostile_server import HostileWeb, serve_hostile
from lycosa.simweb.log import Audit, AuditRules, Finding, LoggedRequest, audit, audit_log, read_log
from lycosa.simweb.memory import MemoryWeb, run_virtual
from lycosa.simweb.network import check_time
from lycosa.simweb.server import RunningWeb, serve_web
from lycosa.simweb.settings import DNS, DOCUMENT_TROUBLE, HOST_TROUBLE, ROBOTS, ROBOTS_DEFAULTS, SimSettings
from lycosa.simweb.truth import Truth, TruthLimits, example_pages, summarise, truth_of
from lycosa.simweb.web import Answer, SimWeb

__all__ = [
    "DNS",
    "DOCUMENT_TROUBLE",
    "HOSTILE_ROWS",
    "HOST_TROUBLE",
    "ROBOTS",
    "ROBOTS_DEFAULTS",
    "Answer",
    "Audit",
    "AuditRules",
    "Finding",
    "HostileRow",
    "HostileWeb",
    "LoggedRequest",
    "MemoryWeb",
    "RunningWeb",
    "SimSettings",
    "SimWeb",
    "Truth",
    "TruthLimits",
    "audit",
    "audit_log",
    "check_time",
    "example_pages",
    "hostile_page",
    "read_log",
    "run_virtual",
    "serve_hostile",
    "serve_web",
    "summarise",
    "truth_of",
]
