"""Proxies on loopback that tunnel, by HTTP CONNECT or SOCKS5, and write down what they were told."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class TunnelProxy:
    """`told` has what each connection said to the proxy itself, as text; `targets` where it was to lead."""

    def __init__(self, *, is_socks: bool) -> None:
        self._is_socks = is_socks
        self.told: list[str] = []
        self.targets: list[str] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.url = f"{'socks5' if is_socks else 'http'}://127.0.0.1:{self.port}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, suppress(OSError, ValueError, IndexError):
            host, port = self._socks(client) if self._is_socks else self._connect(client)
            self.targets.append(f"{host}:{port}")
            with socket.create_connection((host, port)) as server:
                back = threading.Thread(target=_copy, args=(server, client), daemon=True)
                back.start()
                _copy(client, server)

    def _connect(self, client: socket.socket) -> tuple[str, int]:
        head = b""
        while b"\r\n\r\n" not in head:
            head += client.recv(1)
        self.told.append(head.decode())
        client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        host, _, port = head.split()[1].decode().rpartition(":")
        return host, int(port)

    def _socks(self, client: socket.socket) -> tuple[str, int]:
        methods = client.recv(2)
        offered = client.recv(methods[1])
        wants_user = 2 in offered
        client.sendall(b"\x05\x02" if wants_user else b"\x05\x00")
        said = ""
        if wants_user:
            client.recv(1)
            said = ":".join(client.recv(client.recv(1)[0]).decode() for _ in range(2))
            client.sendall(b"\x01\x00")
        self.told.append(said)
        request = client.recv(10)  # an IPv4 address: nothing is resolved here
        client.sendall(b"\x05\x00\x00\x01\0\0\0\0\0\0")
        return socket.inet_ntoa(request[4:8]), int.from_bytes(request[8:10])


def _copy(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65_536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)


@contextmanager
def tunnelling(*, is_socks: bool = False) -> Iterator[TunnelProxy]:
    proxy = TunnelProxy(is_socks=is_socks)
    try:
        yield proxy
    finally:
        proxy.close()
