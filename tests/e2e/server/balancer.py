"""What a Service is to Pods: one address on loopback that hands connections to whichever replica takes them."""

from __future__ import annotations

import itertools
import socket
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_BLOCK = 65536


@contextmanager
def balanced(ports: Sequence[int]) -> Iterator[int]:
    """Listen until the end of the block; gives the port. Connections go round, past replicas that refuse them.

    `ports` may change meanwhile.
    """
    listener = socket.create_server(("127.0.0.1", 0), backlog=256)
    turns = itertools.count()

    def serve() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            turn, there = next(turns), list(ports)
            order = [there[(turn + step) % len(there)] for step in range(len(there))]
            threading.Thread(target=_carry, args=(client, order), daemon=True).start()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def _carry(client: socket.socket, ports: Sequence[int]) -> None:
    for port in ports:
        with suppress(OSError):
            server = socket.create_connection(("127.0.0.1", port), timeout=5)
            break
    else:
        client.close()
        return
    server.settimeout(None)
    back = threading.Thread(target=_pump, args=(server, client), daemon=True)
    back.start()
    _pump(client, server)
    back.join()
    client.close()
    server.close()


def _pump(source: socket.socket, target: socket.socket) -> None:
    """Carry bytes one way until either side ends; then neither has more to say."""
    with suppress(OSError):
        while block := source.recv(_BLOCK):
            target.sendall(block)
    for one in (source, target):
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
