"""`python -m controllers`: one replica of the engine in or beside a cluster, until SIGTERM or SIGINT."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from controllers.runtime.logs import configure
from controllers.runtime.options import read_options
from controllers.runtime.running import run_until_stopped

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until told to stop; return 1, with one line on standard error, when it cannot start."""
    options = read_options(sys.argv[1:] if arguments is None else arguments)
    configure(options.log_level, options.log_format, "parent")

    async def served(stop: asyncio.Event) -> None:
        from controllers.replica import serve

        await serve(options, stop=stop)

    return run_until_stopped(served)


if __name__ == "__main__":
    sys.exit(main())
