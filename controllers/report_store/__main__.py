"""`python -m controllers.report_store`: one report store in or beside a cluster, until SIGTERM or SIGINT."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

from controllers.report_store.settings import read_settings
from controllers.runtime.running import run_until_stopped

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until told to stop; return 1, with one line on standard error, when it cannot start."""

    async def served(stop: asyncio.Event) -> None:
        settings = read_settings(sys.argv[1:] if arguments is None else arguments)
        logging.basicConfig(
            level=settings.log_level.upper(),
            format="%(asctime)s %(levelname)s %(name)s %(message)s",
        )
        from controllers.report_store.process import serve

        await serve(settings, stop)

    return run_until_stopped(served)


if __name__ == "__main__":
    sys.exit(main())
