"""`python -m controllers`: one replica of the engine in or beside a cluster, until SIGTERM or SIGINT."""

from __future__ import annotations

import asyncio
import signal
import sys
from typing import TYPE_CHECKING

from controllers.runtime.logs import configure
from controllers.runtime.options import read_options
from engine.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controllers.runtime.options import Options


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until told to stop; return 1, with one line on standard error, when it cannot start."""
    options = read_options(sys.argv[1:] if arguments is None else arguments)
    configure(options.log_level, options.log_format, "parent")
    try:
        asyncio.run(_run(options))
    except EngineError as error:
        print(f"error: {error.message}", file=sys.stderr)
        if error.help:
            print(f"help: {error.help}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


async def _run(options: Options) -> None:
    from controllers.replica import serve

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, stop.set)
    await serve(options, stop=stop)


if __name__ == "__main__":
    sys.exit(main())
