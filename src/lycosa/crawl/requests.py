"""The request builder makes the request that goes out for a lease: address, header fields, and limits. No I/O.

Called by whoever handles a kind of request. Equal header fields are the same tuple, which is cheap to send again.
"""

from lycosa.fetch import request_fields, user_agent
from lycosa.frontier import Lease
from lycosa.records import Request
from lycosa.settings import CrawlSettings

Fields = tuple[tuple[str, str], ...]


class RequestBuilder:
    """See the module. `fields` are the header fields of every request."""

    def __init__(self, settings: CrawlSettings) -> None:
        self.fields: Fields = request_fields(user_agent(settings.agent, contact=settings.contact or ""))

    def build(
        self,
        lease: Lease,
        *,
        url: str = "",
        fields: Fields | None = None,
        more: Fields = (),
        body_limit_bytes: int = 0,
        takes_any_type: bool = False,
        is_watched: bool = False,
    ) -> Request:
        """The request of a lease; `url` is asked for in place of the lease's own, `fields` are sent in place of the
        usual ones, `more` after them. `is_watched`: observers may look at the response while it arrives."""
        return Request(
            url=url or lease.url,
            host=lease.host.host,
            port=lease.host.port,
            address=lease.address,
            headers=(self.fields if fields is None else fields) + more,
            body_limit_bytes=body_limit_bytes,
            takes_any_type=takes_any_type,
            ticket=lease.ticket if is_watched else 0,
        )
