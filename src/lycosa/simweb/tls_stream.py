"""TLS without a socket: the client's bytes in, plain bytes out, and back.

A connection keeps its plain transport and puts this in between. So the moment when the last byte has left, a reset and
an abort mean the same with TLS as without; an event loop's own TLS layer hides all three. Only `Connection` uses it.
"""

import ssl
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

READ_BYTES = 1 << 16


class TlsStream:
    """The server's side of one TLS connection. `is_closed`: the client has ended it, or does not speak TLS."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._has_met = False
        self.is_closed = False

    def receive(self, data: bytes) -> tuple[bytes, bytes]:
        """(plain bytes from the client, bytes to send it now: handshake and alerts)."""
        self._incoming.write(data)
        parts = []
        try:
            if not self._has_met:
                with _odd_names_refused_quietly():
                    self._tls.do_handshake()
                self._has_met = True
            while part := self._tls.read(READ_BYTES):
                parts.append(part)
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError:  # the client's good-bye is one of these
            self.is_closed = True
        return b"".join(parts), self._outgoing.read()

    def send(self, data: bytes | memoryview) -> bytes:
        """What to put on the wire for `data`."""
        left = memoryview(data)
        while left:
            left = left[self._tls.write(left) :]
        return self._outgoing.read()

    def close(self) -> bytes:
        """The good-bye to send. Nothing can be sent after it."""
        with suppress(ssl.SSLError):  # the client has not said good-bye yet, or has never been met
            self._tls.unwrap()
        return self._outgoing.read()


@contextmanager
def _odd_names_refused_quietly() -> Iterator[None]:
    """Python refuses a client that asks for a host name outside ASCII, but writes a traceback; that is left out."""
    hook = sys.unraisablehook

    def without_names(unraisable: "sys.UnraisableHookArgs") -> None:
        if unraisable.exc_type is not UnicodeDecodeError:
            hook(unraisable)

    sys.unraisablehook = without_names
    try:
        yield
    finally:
        sys.unraisablehook = hook
