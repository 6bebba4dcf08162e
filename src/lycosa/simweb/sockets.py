"""Listening on all of 127.0.0.0/8 and on nothing else.

One socket bound to the loopback *device* takes every loopback address without binding sixteen million of them; packets
from other interfaces never reach it. A connection from this machine to one of its outer addresses also runs over
the loopback device, so the server turns away any connection whose own end is not in 127.0.0.0/8 (`is_loopback`).
"""

import errno
import socket
import sys

from lycosa.errors import SettingsError

BACKLOG = 4096
BUFFER_BYTES = 1 << 20


def tcp_listener(port: int) -> socket.socket:
    """A listening TCP socket; port 0 takes a free one."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return _bound(listener, _bind_to_loopback(listener), port, "--port", listen=True)


def udp_socket(port: int) -> socket.socket:
    """A UDP socket on 127.0.0.1; port 0 takes a free one."""
    return _bound(socket.socket(socket.AF_INET, socket.SOCK_DGRAM), "127.0.0.1", port, "--dns-port", listen=False)


def is_loopback(address: str) -> bool:
    return address.startswith("127.")


def _bind_to_loopback(listener: socket.socket) -> str:
    """Ties the socket to the loopback device and returns the address to bind: every one, or only 127.0.0.1."""
    if sys.platform != "linux":
        return "127.0.0.1"
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo\0")
    except OSError:  # an old kernel, or a container without the right
        return "127.0.0.1"
    return "0.0.0.0"


def _bound(sock: socket.socket, address: str, port: int, option: str, *, listen: bool) -> socket.socket:
    if not 0 <= port <= 65_535:
        sock.close()
        raise SettingsError(f"{option} is {port}, a port is between 0 and 65535")
    try:
        sock.bind((address, port))
        if listen:
            sock.listen(BACKLOG)
    except OSError as error:
        sock.close()
        if error.errno == errno.EADDRINUSE:
            raise SettingsError(
                f"port {port} is taken: choose another one with {option}, or 0 for a free one"
            ) from error
        if error.errno == errno.EACCES:
            raise SettingsError(f"port {port} needs more rights: choose one above 1023 with {option}") from error
        raise SettingsError(f"cannot listen on port {port}: {error.strerror}") from error
    sock.setblocking(False)
    return sock
