"""`-w`: rows as they come, change and go, until somebody has seen enough."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

from kubectl_kpolicy.session import cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from controllers.kube import Access, Client
    from kubectl_kpolicy.cluster.sources import LiveSource
    from kubectl_kpolicy.output.rows import Listing, Row

    from .selection import ListRequest

_PAUSE = 0.2
_DOCUMENTS = ("json", "yaml", "jsonl")


def watch_rows(flags: ListRequest, listing: Listing, choice: Callable[[Row], bool]) -> int:
    """Print rows (unless `--watch-only`), then every one that is new, another or gone; return when interrupted."""

    async def work(client: Client, access: Access) -> int:
        from controllers.kube.clock import SystemClock
        from kubectl_kpolicy.cluster.celkinds import NAMES
        from kubectl_kpolicy.cluster.fetching import Scope
        from kubectl_kpolicy.cluster.resources import RESOURCES
        from kubectl_kpolicy.cluster.sources import LiveSource

        scope = Scope(
            cluster.namespace_of(flags.connection, access), journal=flags.connection.journal
        )
        names = [
            name for name in (*listing.needs, *listing.wants) if name in RESOURCES or name in NAMES
        ]
        source = LiveSource(client, SystemClock(), scope, names)
        await source.start()
        try:
            await _follow(flags, listing, choice, source)
        finally:
            await source.close()
        return 0

    from engine.record import replace

    return cluster.with_client(replace(flags.connection, request_timeout="0"), work)


async def _follow(
    flags: ListRequest, listing: Listing, choice: Callable[[Row], bool], source: LiveSource
) -> None:
    from engine.record import replace

    from .selection import selected

    news = asyncio.Event()
    source.world.on_change(lambda _change: news.set())
    seen: dict[str, Row] = {}
    is_first = True
    while True:
        await news.wait()
        await asyncio.sleep(_PAUSE)
        news.clear()
        if not all(source.world.is_synced(name) or source.world.problem(name) for name in listing.needs):  # fmt: skip
            continue
        now = source.now()
        rows = selected(flags, listing.rows(source.world, now), listing, now, choice)
        found = changes(seen, rows)
        if not flags.output_watch_events:
            found = [one for one in found if one[0] != "DELETED"]
        if found and not (is_first and flags.watch_only):
            _print(flags, found, listing, now)
            flags = replace(flags, no_headers=True)
        is_first, seen = False, {row.key: row for row in rows}


def changes(before: Mapping[str, Row], rows: Sequence[Row]) -> list[tuple[str, Row]]:
    """Return what became of rows since `before`, in the words of a watch: ADDED, MODIFIED, DELETED."""
    found = []
    for row in rows:
        old = before.get(row.key)
        if old is None or old.cells != row.cells:
            found.append(("ADDED" if old is None else "MODIFIED", row))
    there = {row.key for row in rows}
    return [*found, *(("DELETED", row) for key, row in before.items() if key not in there)]


def _print(flags: ListRequest, found: Sequence[tuple[str, Row]], listing: Listing, now: datetime) -> None:  # fmt: skip
    """Print changes; as data one document each, because a watch has no end at which a List could be closed."""
    from .printing import print_rows

    if flags.output in _DOCUMENTS:
        _print_documents(flags, found)
    elif flags.output_watch_events and flags.output in ("table", "wide"):
        _print_events(flags, found, listing, now)
    else:
        print_rows(flags, [row for _, row in found], listing, now)
    sys.stdout.flush()


def _print_documents(flags: ListRequest, found: Sequence[tuple[str, Row]]) -> None:
    from kubectl_kpolicy.output.structured import json_text, yaml_text

    for event, row in found:
        value = {"type": event, "object": row.object} if flags.output_watch_events else row.object
        if flags.output == "yaml":
            sys.stdout.write(f"---\n{yaml_text(value)}")
        elif flags.output == "json":
            sys.stdout.write(json_text(value))
        else:
            import orjson

            sys.stdout.write(orjson.dumps(value).decode() + "\n")


def _print_events(flags: ListRequest, found: Sequence[tuple[str, Row]], listing: Listing, now: datetime) -> None:  # fmt: skip
    from engine.record import replace
    from kubectl_kpolicy.output.listings import is_read_whole, table_of
    from kubectl_kpolicy.output.rows import Column
    from kubectl_kpolicy.output.table import wanted

    from .printing import named_first

    shown = named_first(listing)
    with_event = replace(shown, columns=(Column("event", "EVENT"), *shown.columns))
    rows = [replace(row, cells={**row.cells, "event": event}) for event, row in found]
    is_whole = is_read_whole(sys.stdout, flags.output)
    table = table_of(rows, with_event, now, labels=flags.show_labels, is_whole=is_whole)
    color = wanted(flags.color, sys.stdout)
    sys.stdout.write(
        table.text(wide=flags.output == "wide", heads=not flags.no_headers, color=color)
    )
