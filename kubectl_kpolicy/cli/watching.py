"""`-w`: rows as they come and change, until somebody has seen enough."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

from kubectl_kpolicy.session import cluster

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from controllers.kube import Access, Client
    from kubectl_kpolicy.cluster.rows import Listing, Row

_PAUSE = 0.2


def watch_rows(args: argparse.Namespace, listing: Listing, choice: Callable[[Row], bool]) -> int:
    """Print rows, then every row that is new or another; return when interrupted."""

    async def work(client: Client, access: Access) -> int:
        from controllers.kube.clock import SystemClock
        from kubectl_kpolicy.cluster.fetching import Scope
        from kubectl_kpolicy.cluster.resources import RESOURCES
        from kubectl_kpolicy.cluster.sources import LiveSource

        scope = Scope(cluster.namespace_of(args, access), journal=args.journal)
        names = [name for name in (*listing.needs, *listing.wants) if name in RESOURCES]
        source = LiveSource(client, SystemClock(), scope, names)
        await source.start()
        try:
            await _follow(args, listing, choice, source)
        finally:
            await source.close()
        return 0

    args.request_timeout = "0"
    return cluster.with_client(args, work)


async def _follow(args: argparse.Namespace, listing: Listing, choice: Callable[[Row], bool], source: object) -> None:  # fmt: skip
    from kubectl_kpolicy.cluster.sources import LiveSource

    from .lists import print_rows, selected

    assert isinstance(source, LiveSource)
    news = asyncio.Event()
    source.world.on_change(lambda _change: news.set())
    seen: dict[str, object] = {}
    while True:
        await news.wait()
        await asyncio.sleep(_PAUSE)
        news.clear()
        if not all(source.world.is_synced(name) or source.world.problem(name) for name in listing.needs):  # fmt: skip
            continue
        now = source.now()
        rows = selected(args, listing.rows(source.world, now), listing, now, choice)
        fresh = [row for row in rows if seen.get(row.key) != row.cells]
        if fresh:
            print_rows(args, fresh, listing, now)
            sys.stdout.flush()
            args.no_headers = True
        seen = {row.key: row.cells for row in rows}
