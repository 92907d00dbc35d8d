"""An API server of answers made beforehand, so that what is measured is the reader: pages of policy reports, empty lists, silent watches.

`python -m tests.bench.console_server ROWS` prints its port. Every report holds five results.
"""

from __future__ import annotations

import asyncio
import re
import sys
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

import orjson

if TYPE_CHECKING:
    from collections.abc import Sequence

IN_A_REPORT, _READ = 5, 63_000
_SEVERITIES = ("critical", "high", "medium", "low", "info")


def report(index: int) -> bytes:
    """Return one policy report about one Pod."""
    place = {"namespace": f"team-{index % 40}", "uid": f"uid-{index}"}
    metadata = {"name": f"{index:08d}", "resourceVersion": str(index + 1), "creationTimestamp": "2026-11-21T10:00:00Z"}  # fmt: skip
    results = [
        {
            "policy": f"require-{number}-probe",
            "rule": f"check-{number}",
            "result": "fail",
            "severity": _SEVERITIES[(index * 7 + number) % 5],
            "message": f"validation error: rule check-{number} failed at path /spec/containers/{number}/livenessProbe/",
            "source": "kyverno",
            "category": "Best Practices",
            "scored": True,
            "timestamp": {"seconds": 1_763_700_000 + index * 3 + number, "nanos": 0},
        }
        for number in range(IN_A_REPORT)
    ]
    scope = {"apiVersion": "v1", "kind": "Pod", "name": f"checkout-{index:05d}", **place}
    return orjson.dumps({"metadata": {**metadata, **place}, "scope": scope, "results": results})


def page(reports: Sequence[bytes], start: int, size: int, rows: int) -> bytes:
    """Return the body of a list of so many reports from an offset on, of those that are made beforehand."""
    end = start + size
    left = rows // IN_A_REPORT - end
    more = {"continue": str(end), "remainingItemCount": left} if left > 0 else {}
    head = {
        "kind": "PolicyReportList",
        "apiVersion": "wgpolicyk8s.io/v1alpha2",
        "metadata": {"resourceVersion": "9", **more},
    }
    return orjson.dumps(head)[:-1] + b',"items":[' + b",".join(reports[start:end]) + b"]}"


class Server:
    """Answers one request after the other on each connection."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        # a console reads no more of a longer list
        self._reports = [report(index) for index in range(min(rows, _READ) // IN_A_REPORT)]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer until the other side leaves."""
        try:
            while await self._answer(reader, writer):
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = re.search(r"content-length: (\d+)", head, re.IGNORECASE)
        if length:
            await reader.readexactly(int(length[1]))
        method, address, _ = head.split("\r\n")[0].split()
        path, _, query = address.partition("?")
        words = dict(parse_qsl(query))
        if words.get("watch"):
            writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            await writer.drain()
            await reader.read()  # nothing changes until the other side leaves
            return False
        body = b'{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}'
        if method == "POST":
            body = b'{"status":{"allowed":true,"userInfo":{"username":"alice"}}}'
        elif path.endswith("/wgpolicyk8s.io/v1alpha2/policyreports"):
            start, size = int(words.get("continue") or 0), int(words.get("limit") or self._rows)
            body = page(self._reports, start, size, self._rows)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)  # fmt: skip
        return True


async def main(rows: int) -> None:
    """Serve on a port of the system's choice until somebody ends the process."""
    server = await asyncio.start_server(Server(rows).serve, "127.0.0.1", 0, limit=1 << 20)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
