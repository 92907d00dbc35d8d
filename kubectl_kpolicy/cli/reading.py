"""What the commands that list rows read: everything a listing is made of, of clusters or of a recording, and what is missing in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import EngineError
from engine.record import record, replace
from kubectl_kpolicy.output.diagnostics import ExitCode, report
from kubectl_kpolicy.output.misuse import Misuse
from kubectl_kpolicy.session import cluster

from .selection import selected

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from datetime import datetime

    from controllers.kube import Access, Client
    from engine.model import Object
    from kubectl_kpolicy.cluster.cache import ClusterCache, Problem
    from kubectl_kpolicy.output.rows import Listing, Row

    from .selection import Choice, ListRequest

    Learn = Callable[[Client, ClusterCache], Awaitable[None]]


@record
class Read:
    """Everything a listing is made of, at which instant, and the namespace that was looked at (empty: all)."""

    world: ClusterCache
    now: datetime
    place: str = ""


def read_world(
    flags: ListRequest, listing: Listing, learn: Learn | None = None
) -> tuple[ClusterCache, datetime]:
    """Return everything a listing is made of, and the instant that it is of; as `read`."""
    found = read(flags, listing, learn)
    return found.world, found.now


def read(
    flags: ListRequest, listing: Listing, learn: Learn | None = None, choice: Choice | None = None
) -> Read:
    """Read everything a listing is made of, from the cluster or from a recording; raises EngineError.

    `learn` asks the cluster for more, on the same connection. With `choice`, of violations of which only the first are asked for,
    the worst are read, and no others where the server can sort them and they are enough.
    """
    if flags.replay:
        return _replayed(flags.replay)

    async def work(client: Client, access: Access) -> tuple[ClusterCache, str]:
        from kubectl_kpolicy.cluster.fetching import Scope, fetch

        namespace = cluster.namespace_of(flags.connection, access)
        for worst in _parts(flags, listing, choice):
            scope = Scope(
                namespace,
                journal=flags.connection.journal,
                chunk=flags.chunk_size,
                results=_results(flags, listing),
                worst=worst,
            )
            world = await fetch(client, (*listing.needs, *listing.wants), cluster.now(), scope)
            if _is_enough(flags, listing, choice, world):
                break
        if learn is not None:
            await learn(client, world)
        return world, namespace

    world, place = cluster.with_client(flags.connection, work)
    # after the server has answered, so that what is left is counted by its clock
    return Read(world, cluster.now(), place)


def _results(flags: ListRequest, listing: Listing) -> str:
    """Return the field selector of reports that a filter of violations amounts to, as far as it does."""
    if listing.noun != "violations" or flags.names:
        return ""
    from kubectl_kpolicy.cluster.violations import CHOSEN_BY
    from kubectl_kpolicy.filter import FilterError
    from kubectl_kpolicy.filter.build import required

    try:
        words = required(flags.where, listing)
    except FilterError:
        # One that cannot be read is refused where it is used.
        return ""
    chosen = (f"results.{name}={words[name]}" for name in CHOSEN_BY if name in words)
    return ",".join(filter(None, (flags.results, *chosen)))


_ONCE_MORE = 20
"""How many times as many reports are read where a filter has left too few of the first ones."""

_MOST_WORST = 5_000
"""Reports that are asked for as the worst ones at most; beyond, all of them are read."""


def _parts(flags: ListRequest, listing: Listing, choice: Choice | None) -> Iterator[int]:
    """Yield how many of the worst reports to read in turn; 0, all of them, last."""
    is_first_page = flags.limit and not (flags.sort_by or flags.group_by or flags.names)
    if choice and is_first_page and listing.noun == "violations":
        for most in (flags.limit, flags.limit * _ONCE_MORE):
            if most <= _MOST_WORST:
                yield most
    yield 0


def _is_enough(
    flags: ListRequest, listing: Listing, choice: Choice | None, world: ClusterCache
) -> bool:
    """Tell whether as many rows as are asked for are at least as heavy as any that was left out, so that none comes before them."""
    if not world.left_out or choice is None:
        return True
    from kubectl_kpolicy.cluster.violations import weight

    now = cluster.now()
    rows = selected(flags, listing.rows(world, now), listing, now, choice)
    return len(rows) == flags.limit and weight(rows[-1]) >= max(world.left_out.values())


def _replayed(name: str) -> Read:
    import asyncio
    from pathlib import Path

    from kubectl_kpolicy.cluster.recording import ReplaySource, read_recording

    source = ReplaySource(read_recording(Path(name)))
    asyncio.run(source.start())
    return Read(source.world, source.now())


def check_needs(world: ClusterCache, listing: Listing) -> None:
    """Warn of what cannot be read; raises KubeError where nothing can. A journal of codes stands for itself."""
    from kubectl_kpolicy.cluster.cache import Trouble
    from kubectl_kpolicy.cluster.resources import JOURNAL

    missed = [found for name in listing.needs if (found := world.problem(name))]
    if missed and not any(map(world.is_synced, (*listing.needs, JOURNAL))):
        raise _unreadable(missed[0])
    journal = world.problem(JOURNAL) if JOURNAL in listing.wants else None
    if journal is not None:
        raise _unreadable(journal)
    for name in (*listing.needs, *listing.wants):
        problem = world.problem(name)
        if problem is not None and problem.trouble is not Trouble.MISSING:
            report(EngineError(f"without {name}: {problem.message}"), word="warning")


def _unreadable(problem: Problem) -> EngineError:
    """Return a problem as the error that it was, by which the exit code goes."""
    from controllers.kube import errors
    from kubectl_kpolicy.cluster.cache import Trouble

    kinds = {
        Trouble.FORBIDDEN: errors.Forbidden,
        Trouble.UNREACHABLE: errors.Unreachable,
        Trouble.UNAUTHORIZED: errors.Unauthorized,
        Trouble.MISSING: errors.NotFound,
    }
    return kinds.get(problem.trouble, errors.KubeError)(problem.message, help=problem.help)


# `--contexts`: the rows of several contexts in one table, each with the context that it comes from.


ANNOTATION = "kpolicy.io/context"
"""Says in data of several contexts which one an object was read from."""


def read_beside(
    flags: ListRequest, listing: Listing, learn: Learn | None = None
) -> tuple[list[Row], dict[str, ExitCode]]:
    """Return the rows of all contexts that were named, and the contexts of which nothing is known, each with the exit code.

    What is in the way of one is reported under its name. Raises EngineError where none can be meant.
    """
    if flags.replay or flags.watch or flags.watch_only or flags.output_watch_events:
        raise Misuse("several contexts are neither watched nor replayed", help="name one with --context")  # fmt: skip
    rows: list[Row] = []
    unknown: dict[str, ExitCode] = {}
    for context in cluster.several(flags.contexts, flags.connection):
        connection = replace(flags.connection, context=context)
        try:
            found = read(replace(flags, connection=connection), listing, learn)
            check_needs(found.world, listing)
        except EngineError as error:
            report(EngineError(f"{context} is unknown: {error.message}", help=error.help))
            unknown[context] = cluster.exit_code(error)
        else:
            rows += [_of(context, row) for row in listing.rows(found.world, found.now)]
    return rows, unknown


def _of(context: str, row: Row) -> Row:
    """Return a row of a context, with its object saying so."""
    from kubectl_kpolicy.cluster.beside import of_cluster

    def told() -> Object:
        metadata = row.object.get("metadata") or {}
        annotations = {**(metadata.get("annotations") or {}), ANNOTATION: context}
        return {**row.object, "metadata": {**metadata, "annotations": annotations}}

    return of_cluster(context, row, told)
