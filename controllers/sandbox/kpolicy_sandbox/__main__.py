"""`python -m kpolicy_sandbox --dir DIR [--port N]`: run a sandbox until it is told to stop (SIGINT, SIGTERM)."""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal
import sys
from pathlib import Path

from .expressions import Expressions, named
from .server import Busy, Sandbox


def main(words: list[str] | None = None) -> int:
    """Run the sandbox; print one line when it is ready; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="kpolicy-sandbox", description="An embedded Kubernetes API server on loopback."
    )
    parser.add_argument(
        "--dir", type=Path, required=True, help="folder for its database, keys and kubeconfig"
    )
    parser.add_argument(
        "--port",
        type=int,
        default=0,
        help="port to listen on (default: the one it had, or a free one)",
    )
    parser.add_argument(
        "--expressions",
        default="",
        metavar="MODULE:NAME",
        help="implementation of CEL (default: none, and what takes CEL is refused)",
    )
    arguments = parser.parse_args(words)
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(name)s %(message)s", stream=sys.stderr
    )
    try:
        expressions = named(arguments.expressions) if arguments.expressions else None
        asyncio.run(_serve(arguments.dir, arguments.port, expressions))
    except (Busy, OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


async def _serve(folder: Path, port: int, expressions: Expressions | None) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for one in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(one, stop.set)
    async with Sandbox.start(folder, port=port, expressions=expressions) as sandbox:
        closed = (
            f"; others could open {', '.join(sandbox.were_open)} until now"
            if sandbox.were_open
            else ""
        )
        print(f"ready: {sandbox.url}, KUBECONFIG={sandbox.kubeconfig}{closed}", flush=True)
        await stop.wait()


if __name__ == "__main__":
    raise SystemExit(main())
