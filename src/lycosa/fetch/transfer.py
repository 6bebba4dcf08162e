"""One transfer: an easy handle of libcurl, what it has received so far, and what that means as a `Response`.

A handle is used for one request after the other; it is set up once and only told what differs (a reset and a full set
of options cost 5 to 10 µs more a request). Its callbacks run inside libcurl: they never raise, and stop a transfer by
their return value, with the reason noted first.
Whether a piece of a body may come in now says `fetch.flow`. Called by `fetch.curl`.
"""

import re
import sys
from collections.abc import Callable
from enum import Enum
from io import BytesIO
from time import monotonic

import msgspec
import pycurl

from lycosa.fetch.downloader import (
    AcceptsResponse,
    DoneCallback,
    TransferLimits,
    curl_lines,
    parse_fields,
    parse_status,
)
from lycosa.fetch.flow import FlowControl
from lycosa.mapping import parse_ip_address
from lycosa.records import Failure, PrivateParts, Request, Response, Truncation

# A watcher is shown a response when so much has come, then each time it has grown by half: all looks together read
# three times what has come. Beyond the last a document is waited for.
LOOK_FIRST_BYTES = 2 * 1024
LOOK_GROWTH = 1.5
LOOK_LAST_BYTES = 2 * 1024 * 1024
# So many pieces of a body, or bytes of them, are joined at a time: a list of millions takes far more memory than the
# body, and joining a long body at its end takes its size twice. A body of many pieces that are this small on average is
# meant to keep us busy, and is cut.
JOINED_PIECES, JOINED_BYTES = 1_024, 256 * 1024
MANY_PIECES = 100_000
SMALL_PIECE_BYTES = 64
# A server may give a client up that takes nothing for so long.
LONG_HOLD_S = 2.0
CLOSING_MOST = 10_000  # origins that are remembered to close connections early

_STOP = 0  # fewer bytes than were offered: libcurl ends the transfer

# libcurl's codes by what they mean here; what is in none of these is PROTOCOL.
_TLS_CODES = {35, 51, 53, 54, 58, 59, 60, 64, 66, 77, 80, 82, 83, 90, 91, 98}
_FAILURES = {
    pycurl.E_COULDNT_RESOLVE_PROXY: Failure.CONNECT,
    pycurl.E_COULDNT_RESOLVE_HOST: Failure.DNS,
    pycurl.E_COULDNT_CONNECT: Failure.CONNECT,
    97: Failure.CONNECT,  # a proxy's handshake
    pycurl.E_PARTIAL_FILE: Failure.RESET,
    pycurl.E_GOT_NOTHING: Failure.RESET,
    pycurl.E_SEND_ERROR: Failure.RESET,
    100: Failure.HEADERS_TOO_LARGE,  # one line above libcurl's own limit of 100 KB
} | dict.fromkeys(_TLS_CODES, Failure.TLS)

_TIMEOUTS = {
    Failure.CONNECT_TIMEOUT,
    Failure.FIRST_BYTE_TIMEOUT,
    Failure.IDLE_TIMEOUT,
    Failure.TOTAL_TIMEOUT,
}


# The value of a cookie that a server sets: whoever reads an archive must not be able to take part in a session.
_COOKIE_VALUE = re.compile(rb"^(set-cookie[ \t]*:[^=;\r\n]*=)[^;\r\n]*", re.I | re.M)
_AUTHORITY_AND_TARGET = re.compile(r"[a-zA-Z]+://([^/?#]*)([^#]*)")


class Phase(Enum):
    """How far a request is: each phase has its own clock."""

    CONNECTING = "connecting"
    SENT = "sent"
    ANSWERING = "answering"


class TransferContext(msgspec.Struct, frozen=True):
    """What all transfers of one downloader share."""

    limits: TransferLimits
    flow: FlowControl
    accepts: AcceptsResponse | None
    options: tuple[tuple[int, object], ...]
    on_broken: Callable[["Transfer", int, str], None]
    closing: set[str] = msgspec.field(default_factory=set)  # origins that close connections without a word

    def closes_early(self, origin: str) -> None:
        if len(self.closing) >= CLOSING_MOST:
            self.closing.clear()
        self.closing.add(origin)


class Transfer:
    """One request on a reusable handle. Between `begin` and `response` it belongs to that request."""

    def __init__(self, shared: TransferContext) -> None:
        self.curl = pycurl.Curl()
        self._shared = shared
        self._flow = shared.flow
        self._header_limit = shared.limits.header_bytes
        for option, value in shared.options:
            self.curl.setopt(option, value)
        self.curl.setopt(pycurl.PREREQFUNCTION, self._on_connected)
        self.curl.setopt(pycurl.HEADERFUNCTION, self._on_header)
        self.curl.setopt(pycurl.WRITEFUNCTION, self._on_body)
        self.done: DoneCallback = _tell_nobody
        # what the handle was told last
        self._headers: object = None
        self._pin = "", 0
        self._method = "GET"
        self._is_fresh = False
        self._is_tls = False
        self._is_proxied = False
        self.is_paused = False
        self._lines: list[bytes] = []
        self._chunks: list[bytes] = []
        self._clear()

    def _clear(self) -> None:
        self._lines.clear()
        self._chunks.clear()
        self._block = b""
        self._fields: dict[str, str] = {}
        self._status = 0
        self._hints = ""
        self._next_look_bytes = LOOK_FIRST_BYTES
        self._header_bytes = 0
        self._joined: BytesIO | None = None
        self._joined_bytes = self._pieces = 0
        self.body_bytes = 0
        self._phase = Phase.CONNECTING
        self._first_byte_s = 0.0
        self._held_s = self._longest_hold_s = 0.0
        self._cause: Failure | Truncation | None = None
        self._detail = ""

    def let_go(self) -> None:
        """Its answer has been told: a handle that waits for another request holds no body, nor who was told of it."""
        self._clear()
        self.done = _tell_nobody

    def begin(self, request: Request, done: DoneCallback) -> None:
        """Takes on a request. Raises ValueError or pycurl.error for one that cannot be sent."""
        self._clear()
        self.request = request
        self.done = done
        curl, pin = self.curl, (request.address, request.port)
        pinned = pin_of(*pin) if pin != self._pin else ""
        curl.setopt(pycurl.URL, request.url)
        curl.setopt(pycurl.REQUEST_TARGET, target_of(request.url))
        if request.headers is not self._headers:
            curl.setopt(pycurl.HTTPHEADER, curl_lines(request.headers))
            self._headers = request.headers
        if pinned:
            curl.setopt(pycurl.CONNECT_TO, [pinned])
            self._pin = pin
        if request.private is not None:
            self._set_private(request, request.private)
        elif request.method != self._method:
            self._set_method(request.method)
        is_closing = bool(self._shared.closing) and _origin(request.url) in self._shared.closing
        if is_closing != self._is_fresh:
            curl.setopt(pycurl.FRESH_CONNECT, is_closing)
            self._is_fresh = is_closing
        is_tls = request.url.startswith("https")
        if is_tls != self._is_tls:
            # wait for a connection under way to see whether it can be shared; plain HTTP/1.1 cannot
            curl.setopt(pycurl.PIPEWAIT, is_tls)
            self._is_tls = is_tls
        self._limit = request.body_limit_bytes or self._shared.limits.body_bytes
        self.started_s = self._heard_s = monotonic()

    def _set_method(self, method: str) -> None:
        if method not in ("GET", "HEAD"):
            raise ValueError(f"method {method!r} is not used by a crawler")
        self.curl.setopt(pycurl.NOBODY if method == "HEAD" else pycurl.HTTPGET, True)
        self._method = method

    def _set_private(self, request: Request, private: PrivateParts) -> None:
        """Sets what only this request may carry. The handle is closed after it, so nothing has to be taken back."""
        curl, replaced = self.curl, {name.lower() for name, _ in private.fields}
        kept = [field for field in request.headers if field[0].lower() not in replaced]
        sent = [(name, value) for name, value in private.fields if value is not None]
        curl.setopt(pycurl.HTTPHEADER, curl_lines([*kept, *sent]))
        if request.method == "POST":
            curl.setopt(pycurl.POSTFIELDS, private.body)
        else:
            self._set_method(request.method)
        if private.jar is not None:
            curl.setopt(pycurl.SHARE, private.jar)
            curl.setopt(pycurl.COOKIEFILE, "")  # turns the cookie engine on
        if private.certificate:
            curl.setopt(pycurl.SSLCERT, private.certificate)
            if private.key_password:
                curl.setopt(pycurl.KEYPASSWD, private.key_password)
        if private.proxy:
            curl.setopt(pycurl.PROXY, private.proxy)
            curl.setopt(pycurl.HTTPPROXYTUNNEL, True)  # to the checked address, and no field of the request is told
            self._is_proxied = True
        if private.proxy_user:
            curl.setopt(pycurl.PROXYUSERPWD, private.proxy_user)
            curl.setopt(pycurl.PROXYAUTH, pycurl.HTTPAUTH_BASIC)

    def _on_connected(self, peer: str, _local: str, _peer_port: int, _local_port: int) -> int:
        """Called before the request goes out, on new and on reused connections."""
        if self._phase is not Phase.CONNECTING:
            # A connection that was used before broke without an answer, and libcurl would ask again at once. Who asks
            # again has to wait the host's delay and is counted, so that is left to the retry table. A server that
            # closes connections without a word is given a new one for every request from now on.
            self._shared.closes_early(_origin(self.request.url))
            self._cause, self._detail = Failure.RESET, "the connection was closed before an answer came"
            return int(pycurl.PREREQFUNC_ABORT)
        self._phase = Phase.SENT
        self._heard_s = monotonic()
        expected = self.request.address
        if peer != expected and not self._is_proxied and parse_ip_address(peer) != parse_ip_address(expected):
            self._cause = Failure.ADDRESS_REFUSED
            self._detail = f"connected to {peer}, not to {expected}"
            return int(pycurl.PREREQFUNC_ABORT)
        return int(pycurl.PREREQFUNC_OK)

    def _on_header(self, line: bytes) -> int | None:
        if self._block or self._phase is Phase.CONNECTING:
            return None  # trailers, or a proxy's own answer
        self._heard_s = monotonic()
        if not self._lines:
            self._first_byte_s = self._first_byte_s or self._heard_s
            self._phase = Phase.ANSWERING
        self._lines.append(line)
        self._header_bytes += len(line)
        if self._header_bytes > self._header_limit:
            self._cause = Failure.HEADERS_TOO_LARGE
            return _STOP
        return self._on_headers_end() if line in (b"\r\n", b"\n") else None

    def _on_headers_end(self) -> int | None:
        block = b"".join(self._lines)
        if self.request.private is not None and self.request.private.jar is not None:
            block = _COOKIE_VALUE.sub(rb"\1[redacted]", block)
        status = parse_status(block)
        if not status:
            self._cause, self._detail = Failure.PROTOCOL, "the answer begins with no HTTP status line"
            return _STOP
        if 100 <= status < 200 and status != 101:
            self._lines.clear()
            if status == 103 and (hinted := parse_fields(block).get("link")):
                self._hints = f"{self._hints}, {hinted}" if self._hints else hinted
                self._next_look_bytes = 0
            return None
        self._block = block
        self._status = status
        self._fields = parse_fields(block)
        if "link" in self._fields:
            self._next_look_bytes = 0
        accepts = self._shared.accepts
        if accepts is None or self.request.takes_any_type:
            return None
        try:
            if accepts(status, self._fields):
                return None
            self._cause = Truncation.UNWANTED
        except Exception as error:  # a hook from outside must not raise into libcurl
            self._cause = Failure.PROTOCOL
            self._detail = f"accepts failed: {type(error).__name__}: {error}"
        return _STOP

    def _on_body(self, data: bytes) -> int | None:
        size = len(data)
        room = self._limit - self.body_bytes
        if size > room:
            data, size = data[:room], room
            self._cause = Truncation.LENGTH
        if not self._flow.admit(self, size):
            self._cause = None
            self._held_since_s = monotonic()
            return int(pycurl.WRITEFUNC_PAUSE)
        self._chunks.append(data)
        self.body_bytes += size
        self._heard_s = monotonic()
        if len(self._chunks) >= JOINED_PIECES or self.body_bytes - self._joined_bytes >= JOINED_BYTES:
            self._join_pieces()
        return None if self._cause is None else _STOP

    def _join_pieces(self) -> None:
        """Puts the pieces behind those that are joined; each byte is copied once."""
        if self._joined is None:
            self._joined = BytesIO()
        self._pieces += len(self._chunks)
        self._joined.writelines(self._chunks)
        self._chunks.clear()
        self._joined_bytes = self.body_bytes
        if self._pieces > MANY_PIECES and self.body_bytes < SMALL_PIECE_BYTES * self._pieces:
            self._cause = Truncation.LENGTH

    def _body(self) -> bytes:
        if self._joined is None:
            return self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
        if self._chunks:
            self._join_pieces()
        return self._joined.getvalue()

    def go_on(self) -> None:
        """Takes in what was held. libcurl hands it to `_on_body` before this returns."""
        self._heard_s = monotonic()
        hold_s = self._heard_s - self._held_since_s
        self._held_s += hold_s
        self._longest_hold_s = max(self._longest_hold_s, hold_s)
        try:
            self.curl.pause(pycurl.PAUSE_CONT)
        except pycurl.error as error:
            self._shared.on_broken(self, *_code_and_text(error))

    @property
    def has_news(self) -> bool:
        """Whether enough has come that a watcher has not seen."""
        return self.body_bytes >= self._next_look_bytes and bool(self._block or self._hints)

    def so_far(self) -> Response:
        """The response as far as it has come, for a watcher."""
        grown = max(LOOK_FIRST_BYTES, int(self.body_bytes * LOOK_GROWTH))
        self._next_look_bytes = grown if grown <= LOOK_LAST_BYTES else sys.maxsize
        return Response(
            url=self.request.url,
            status=self._status,
            header_block=self._block,
            headers=self._fields,
            body=self._body(),
            address=self.request.address,
            started_s=self.started_s,
            first_byte_s=self._first_byte_s,
            hints=self._hints,
        )

    def overdue(self, now_s: float) -> Failure | None:
        """The timeout that has expired, or None. Time for which we held the transfer counts for none of them."""
        if self.is_paused:
            return None
        limits = self._shared.limits
        quiet_s = now_s - self._heard_s
        if self._phase is Phase.CONNECTING:
            return Failure.CONNECT_TIMEOUT if quiet_s > limits.connect_s else None
        if now_s - self.started_s - self._held_s > limits.total_s:
            return Failure.TOTAL_TIMEOUT
        if self._phase is Phase.SENT:
            return Failure.FIRST_BYTE_TIMEOUT if quiet_s > limits.first_byte_s else None
        return Failure.IDLE_TIMEOUT if quiet_s > limits.idle_s else None

    def response(self, code: int, text: str, failure: Failure | None = None) -> Response:
        """The outcome of the request: by libcurl's code, by the reason noted when it was stopped, or the given one."""
        truncated = self._cause if isinstance(self._cause, Truncation) else None
        if failure is None and isinstance(self._cause, Failure):
            failure = self._cause
        if failure is None and truncated is None and code:
            failure = self._failure_of(code, text)
        if failure is None and not self._block:
            failure, text = Failure.RESET, "the headers ended early"  # libcurl is content with half of them
            self._shared.closes_early(_origin(self.request.url))  # and would use the connection again
        if failure is not None and self._block:
            truncated = Truncation.TIME if failure in _TIMEOUTS else Truncation.DISCONNECT
        ended_s = monotonic()
        hold_s = max(self._longest_hold_s, ended_s - self._held_since_s if self.is_paused else 0.0)
        return Response(
            url=self.request.url,
            status=self._status,
            header_block=self._block,
            headers=self._fields,
            body=self._body(),
            address=self.request.address,
            started_s=self.started_s,
            first_byte_s=self._first_byte_s,
            ended_s=ended_s,
            failure=failure,
            truncated=truncated,
            detail=self._detail or (text if failure else ""),
            hints=self._hints,
            was_held=failure is Failure.RESET and hold_s > LONG_HOLD_S,
        )

    def _failure_of(self, code: int, text: str) -> Failure:
        if code == pycurl.E_RECV_ERROR:
            # one code for a broken connection and for a broken chunk or header: only its text tells them apart
            return Failure.RESET if text.startswith("Recv failure") or "closed" in text else Failure.PROTOCOL
        if code == pycurl.E_OPERATION_TIMEDOUT:
            return Failure.CONNECT_TIMEOUT if self._phase is Phase.CONNECTING else Failure.TOTAL_TIMEOUT
        return _FAILURES.get(code, Failure.PROTOCOL)


def _tell_nobody(_: Response) -> None:
    """Stands for whoever waits for an answer where nobody does."""


def pin_of(address: str, port: int) -> str:
    """The address that libcurl is told to connect to, whatever host and port it reads in the URL. Raises ValueError."""
    packed = parse_ip_address(address)
    if packed is None or not 0 < port < 65_536:
        raise ValueError(f"{address!r} port {port} is no address to connect to")
    return f"::{address}:{port}" if len(packed) == 4 else f"::[{address}]:{port}"


def target_of(url: str) -> str:
    """The path and query as they stand in the URL: libcurl would tidy them. Raises ValueError.

    A URL with a user name and password is refused: libcurl would send them, a crawler never does.
    """
    match = _AUTHORITY_AND_TARGET.match(url)
    if match is None or "@" in match[1]:
        raise ValueError("no URL to ask for" if match is None else "the URL carries credentials")
    return match[2] if match[2].startswith("/") else f"/{match[2]}"


def _origin(url: str) -> str:
    return url[: url.find("/", 8)] if url.find("/", 8) > 0 else url


def _code_and_text(error: pycurl.error) -> tuple[int, str]:
    code, text = error.args if len(error.args) == 2 else (-1, str(error))
    return int(code), str(text)
