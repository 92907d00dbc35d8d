"""A collector of traces that keeps what it is sent."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


class Traces:
    """What a collector was sent, and the port at which it listens."""

    def __init__(self) -> None:
        self.spans: list[dict[str, Any]] = []
        self.port = 0


@contextmanager
def collector() -> Iterator[Traces]:
    """Take traces until the end of the block, as OTLP over HTTP."""
    traces = Traces()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            for one in sent["resourceSpans"]:
                traces.spans += [span for scope in one["scopeSpans"] for span in scope["spans"]]
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Write nothing of each request."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    traces.port = server.server_port
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield traces
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
