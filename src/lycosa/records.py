"""The records that pass between rooms: frozen data, no behaviour beyond reading itself.

A failed request is data (a `Response` with a `failure`), never an exception. All records survive pickling.
"""

from enum import StrEnum

import msgspec


class Failure(StrEnum):
    """Why a request gave no whole response. The table in `fetch.retry` says what each one means for a retry."""

    NO_SUCH_HOST = "no-such-host"
    DNS = "dns"
    ADDRESS_REFUSED = "address-refused"
    CONNECT = "connect"
    CONNECT_TIMEOUT = "connect-timeout"
    TLS = "tls"
    FIRST_BYTE_TIMEOUT = "first-byte-timeout"
    IDLE_TIMEOUT = "idle-timeout"
    TOTAL_TIMEOUT = "total-timeout"
    RESET = "reset"
    PROTOCOL = "protocol"
    HEADERS_TOO_LARGE = "headers-too-large"
    CANCELLED = "cancelled"
    NOT_LOGGED_IN = "not-logged-in"


class Truncation(StrEnum):
    """Why a body is shorter than the server meant it to be; the words are those of WARC-Truncated."""

    LENGTH = "length"
    TIME = "time"
    DISCONNECT = "disconnect"
    UNWANTED = "unspecified"


class PrivateParts(msgspec.Struct, frozen=True):
    """What a request carries that is written down nowhere; its `repr` says nothing.

    `fields` are sent in place of those header fields of the request that have the same names, which are what the
    archive gets; with None libcurl sends a field of its own. `body` is what a POST sends. `jar` are the cookies of the
    site, a share handle of libcurl. `certificate` is the file of a client certificate, `proxy` the URL of the proxy
    that the request goes through, `proxy_user` is NAME:PASSWORD. `session` is the number of the login that it is under.
    """

    fields: tuple[tuple[str, str | None], ...] = ()
    body: bytes = b""
    jar: object = None
    certificate: str = ""
    key_password: str = ""
    proxy: str = ""
    proxy_user: str = ""
    session: int = 0

    def __repr__(self) -> str:
        return "<PrivateParts>"


class Request(msgspec.Struct, frozen=True):
    """One request to one checked address. `headers` are sent exactly as given, in this order.

    `body_limit_bytes` replaces the downloader's usual limit (0: the usual one). `takes_any_type`: the body is wanted
    whatever its media type, as for robots.txt and sitemaps. `ticket` is the caller's own number for it. `private` is
    what else is sent, and not archived.
    """

    url: str
    host: str
    port: int
    address: str
    headers: tuple[tuple[str, str], ...] = ()
    method: str = "GET"
    body_limit_bytes: int = 0
    takes_any_type: bool = False
    ticket: int = 0
    private: PrivateParts | None = None


class BodyClaim(msgspec.Struct, frozen=True, weakref=True):
    """Stands for a large body in what a downloader counts; gone, when nobody wants the body any more."""


class Response(msgspec.Struct, frozen=True, weakref=True):
    """What came back, or why nothing did. Times are of the monotonic clock, in seconds.

    `header_block` is the last response's status line and headers as received; `headers` the same with lower-case names,
    repeated ones joined by ", ". `body` is what HTTP transferred: transfer coding undone, content coding not. `hints`
    are the `Link` fields of 103 Early Hints that came before. `was_held`: the connection broke after we had let it wait
    for long, which says nothing of the host. `claim`: whoever has it counts as having the body; None where that is not
    counted.
    """

    url: str
    status: int = 0
    header_block: bytes = b""
    headers: dict[str, str] = {}
    body: bytes = b""
    address: str = ""
    started_s: float = 0.0
    first_byte_s: float = 0.0
    ended_s: float = 0.0
    failure: Failure | None = None
    truncated: Truncation | None = None
    detail: str = ""
    hints: str = ""
    was_held: bool = False
    claim: "BodyClaim | None" = None

    @property
    def size_bytes(self) -> int:
        """The length of the body."""
        return len(self.body)

    @property
    def took_ms(self) -> int:
        """How long the request took; at least 1 where its times are known."""
        return max(1, round(1_000 * (self.ended_s - self.started_s))) if self.ended_s else 0


class Resolved(msgspec.Struct, frozen=True):
    """A resolver's answer for a name: its addresses for `ttl_s` seconds, or why there are none."""

    name: str
    addresses: tuple[str, ...] = ()
    ttl_s: float = 0.0
    failure: Failure | None = None
    detail: str = ""


class Mapped(msgspec.Struct, frozen=True):
    """The address of a host until `expires_s` (monotonic), or why it cannot be asked. `address` has passed
    the guard."""

    host: str
    address: str
    expires_s: float
    failure: Failure | None = None
    detail: str = ""


class FieldRule(msgspec.Struct, frozen=True):
    """How a field of pages is found: the text, or an attribute, of the first element that a CSS selector matches, or
    of all of them; only on a host and its subdomains, if one is named."""

    name: str
    selector: str
    attribute: str = ""
    is_list: bool = False
    host: str = ""


class Family(StrEnum):
    """The key families of a collection's state, in the order of a URL's life."""

    URL = "url"
    QUEUE = "queue"
    PAGE = "page"
    DOC = "doc"
    HOST = "host"
    DUE = "due"
    VISIT = "visit"
    CHANGE = "change"
    LINK = "link"
    FILE = "file"
    FEED = "feed"
    META = "meta"
