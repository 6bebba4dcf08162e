"""From a lease to the request that goes out: what is asked for, with which fields, and how much of it is taken.

Called by the engine for every lease that it starts; the downloader gets what comes out. No I/O.
"""

from lycosa.crawl.host_rules import ROBOTS_BYTES, SITEMAP_BYTES
from lycosa.crawl.responses import ResponseHandler
from lycosa.fetch import request_fields, user_agent
from lycosa.frontier import Lease, RequestKind
from lycosa.records import Request
from lycosa.settings import CrawlSettings
from lycosa.tables.formats import TABLE_MAX_BYTES
from lycosa.web import TOPIC_HEAD_BYTES

# Of pages as much as the settings allow.
BODY_LIMITS = {RequestKind.ROBOTS: ROBOTS_BYTES, RequestKind.SITEMAP: SITEMAP_BYTES, RequestKind.TABLE: TABLE_MAX_BYTES}


class RequestBuilder:
    """Makes requests. Equal fields are the same tuple, which is cheap to send again."""

    def __init__(self, settings: CrawlSettings, outcomes: ResponseHandler) -> None:
        self._outcomes = outcomes
        self._fields = request_fields(user_agent(settings.agent, contact=settings.contact or ""))
        self._head_fields = (
            *((name, value) for name, value in self._fields if name.lower() != "accept-encoding"),
            ("Accept-Encoding", "identity"),
            ("Range", f"bytes=0-{TOPIC_HEAD_BYTES - 1}"),
        )

    def request(self, lease: Lease, ticket: int) -> Request:
        """What is asked for a lease. A page that may be looked at while it arrives carries its ticket."""
        fields, url, kind = self._head_fields if lease.is_head else self._fields, lease.url, lease.kind
        if kind is RequestKind.REVISIT:
            revisits = self._outcomes.revisits
            table_url = revisits.tables.table_of(lease)
            if table_url is None:
                fields += revisits.conditions(lease)
            else:
                fields += revisits.tables.conditions(lease)
                url, kind = table_url, RequestKind.TABLE
        return Request(
            url=url,
            host=lease.host.host,
            port=lease.host.port,
            address=lease.address,
            headers=fields,
            body_limit_bytes=BODY_LIMITS.get(kind, 0),
            takes_any_type=kind not in (RequestKind.PAGE, RequestKind.REVISIT),
            ticket=ticket if kind is RequestKind.PAGE and not lease.is_head else 0,
        )
