"""TLS for the simulated hosts: an authority of its own, and a certificate for whatever name a client asks for.

Certificates are made when a name is first asked for and kept in a bounded cache. Needs the extra `tls`.
"""

import ssl
from functools import lru_cache
from pathlib import Path

from lycosa.errors import MissingExtra, SettingsError

CACHED_NAMES = 256


def tls_context(ca_file: Path) -> ssl.SSLContext:
    """A server context for any name; writes the authority's certificate to `ca_file` for clients to trust."""
    try:
        import trustme
    except ImportError as error:
        raise MissingExtra.of("tls", what="the simulated web over TLS") from error
    authority = trustme.CA(organization_name="Lycosa simulated web")
    try:
        authority.cert_pem.write_to_path(str(ca_file))
    except OSError as error:
        raise SettingsError(f"cannot write the certificate {ca_file}: {error.strerror}") from error

    @lru_cache(CACHED_NAMES)
    def context_of(name: str) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert(name).configure_cert(context)
        return context

    def choose(connection: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
        connection.context = context_of(name or "localhost")

    default = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost", "127.0.0.1", "h0.sim").configure_cert(default)
    default.sni_callback = choose
    return default
