"""`python -m controllers.report_store`: one report store in or beside a cluster, until SIGTERM or SIGINT."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from typing import TYPE_CHECKING

from controllers.report_store.settings import read_settings
from engine.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controllers.report_store.settings import Settings


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until told to stop; return 1, with one line on standard error, when it cannot start."""
    try:
        settings = read_settings(sys.argv[1:] if arguments is None else arguments)
        logging.basicConfig(
            level=settings.log_level.upper(),
            format="%(asctime)s %(levelname)s %(name)s %(message)s",
        )
        asyncio.run(_run(settings))
    except EngineError as error:
        print(f"error: {error.message}", file=sys.stderr)
        if error.help:
            print(f"help: {error.help}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


async def _run(settings: Settings) -> None:
    from controllers.report_store.process import serve

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, stop.set)
    await serve(settings, stop)


if __name__ == "__main__":
    sys.exit(main())
