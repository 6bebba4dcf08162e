"""From a lease to the request that goes out: what is asked for, with which fields, and how much of it is taken.

Called by the engine for every lease that it starts; the downloader gets what comes out. No I/O.
"""

from lycosa.engine.host_rules import ROBOTS_BYTES, SITEMAP_BYTES
from lycosa.engine.outcomes import Outcomes
from lycosa.fetch.headers import request_fields, user_agent
from lycosa.frontier.lease import Lease
from lycosa.frontier.rows import Kind
from lycosa.records import Request
from lycosa.settings import CrawlSettings
from lycosa.web.relevance import HEAD_BYTES
from lycosa.web.table import MAX_BYTES

# Of pages as much as the settings allow.
BODY_LIMITS = {Kind.ROBOTS: ROBOTS_BYTES, Kind.SITEMAP: SITEMAP_BYTES, Kind.TABLE: MAX_BYTES}


class Asking:
    """Makes requests. Equal fields are the same tuple, which is cheap to send again."""

    def __init__(self, settings: CrawlSettings, outcomes: Outcomes) -> None:
        self._outcomes = outcomes
        self._fields = request_fields(user_agent(settings.agent, contact=settings.contact or ""))
        self._head_fields = (
            *((name, value) for name, value in self._fields if name.lower() != "accept-encoding"),
            ("Accept-Encoding", "identity"),
            ("Range", f"bytes=0-{HEAD_BYTES - 1}"),
        )

    def request(self, lease: Lease, ticket: int) -> Request:
        """What is asked for a lease. A page that may be looked at while it arrives carries its ticket."""
        fields, url, kind = self._head_fields if lease.is_head else self._fields, lease.url, lease.kind
        if kind is Kind.REVISIT:
            revisits = self._outcomes.revisits
            table_url = revisits.tables.table_of(lease)
            if table_url is None:
                fields += revisits.conditions(lease)
            else:
                fields += revisits.tables.conditions(lease)
                url, kind = table_url, Kind.TABLE
        return Request(
            url=url,
            host=lease.host.host,
            port=lease.host.port,
            address=lease.address,
            headers=fields,
            body_limit_bytes=BODY_LIMITS.get(kind, 0),
            takes_any_type=kind not in (Kind.PAGE, Kind.REVISIT),
            ticket=ticket if kind is Kind.PAGE and not lease.is_head else 0,
        )
