"""TLS for the simulated hosts: an authority of its own, and a certificate for whatever name a client asks for.

A client that names no host gets a certificate for the address it connected to. Certificates are made when they are
first asked for and kept in a bounded cache. Needs the extra `tls`.
"""

import re
import ssl
from functools import lru_cache, partial
from pathlib import Path

from lycosa.errors import MissingExtra, SettingsError

CACHED = 256  # names, and addresses
_NAME = re.compile(r"(?=.{1,253}\Z)[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63})*\Z", re.IGNORECASE)


class Certificates:
    """The authority of one run and what it has signed."""

    def __init__(self) -> None:
        try:
            import trustme
        except ImportError as error:
            raise MissingExtra.of("tls", what="the simulated web over TLS") from error
        self._authority = trustme.CA(organization_name="Lycosa simulated web")
        self._signed = lru_cache(CACHED)(self._sign)
        self.context = lru_cache(CACHED)(self._context)

    def write(self, path: Path) -> None:
        """Writes the authority's certificate for clients to trust."""
        try:
            self._authority.cert_pem.write_to_path(str(path))
        except OSError as error:
            raise SettingsError(f"cannot write the certificate {path}: {error.strerror}") from error

    def _context(self, address: str) -> ssl.SSLContext:
        """A server context for connections to `address`; which certificate it shows is settled in the handshake."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.sni_callback = partial(self._choose, address)
        return context

    def _choose(self, address: str, tls: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> int | None:
        if name is not None and not _NAME.match(name):
            return ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME
        try:
            tls.context = self._signed(name) if name else self._signed(address, "127.0.0.1", "localhost", "h0.sim")
        except ValueError:  # a name that no certificate can carry
            return ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME
        return None

    def _sign(self, *names: str) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._authority.issue_cert(*names).configure_cert(context)
        return context
