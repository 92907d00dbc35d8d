"""What every command that lists rows does: read, choose, print; and describe what is named."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from engine.errors import EngineError
from engine.record import record, replace
from kubectl_kpolicy.output.diagnostics import ExitCode, report
from kubectl_kpolicy.session import cluster

from .printing import print_rows
from .selection import ListRequest, is_named, missing, selected

if TYPE_CHECKING:
    import argparse
    from collections.abc import Awaitable, Callable, Iterator
    from datetime import datetime

    from controllers.kube import Access, Client
    from kubectl_kpolicy.cluster.cache import ClusterCache
    from kubectl_kpolicy.output.rows import Listing

    from .selection import Choice, Named

    Learn = Callable[[Client, ClusterCache], Awaitable[None]]

__all__ = ["add_names", "check_needs", "is_named", "listing_of", "print_rows", "read_world", "run_describe", "run_list", "selected"]  # fmt: skip


def listing_of(noun: str) -> Listing:
    """Return a listing by its noun."""
    from kubectl_kpolicy.actions.screens import LISTINGS

    return LISTINGS[noun]


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
    flags: ListRequest,
    listing: Listing,
    learn: Learn | None = None,
    choice: Choice | None = None,
) -> Read:
    """Read everything a listing is made of, from the cluster or from a recording; raises EngineError.

    `learn` asks the cluster for more, on the same connection. With `choice`, of violations of which only the first are asked for,
    the most severe are read first, and no others where they are enough.
    """
    if flags.replay:
        return _replayed(flags.replay)

    async def work(client: Client, access: Access) -> tuple[ClusterCache, str]:
        from kubectl_kpolicy.cluster.fetching import Scope, fetch

        namespace = cluster.namespace_of(flags.connection, access)
        before: ClusterCache | None = None
        for chosen, least in _parts(flags, listing, choice):
            scope = Scope(
                namespace,
                journal=flags.connection.journal,
                chunk=flags.chunk_size,
                results=chosen,
            )
            world = await fetch(client, (*listing.needs, *listing.wants), cluster.now(), scope)
            if before is not None and least:
                _add_reports(world, before)
            if world.unchosen or _is_enough(flags, listing, choice, world, least):
                break
            before = world
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


def _parts(
    flags: ListRequest, listing: Listing, choice: Choice | None
) -> Iterator[tuple[str, str]]:
    """Yield what reports to read in turn, and the severity of the results that they are chosen for; all of them last."""
    from kubectl_kpolicy.output.rows import SEVERITIES

    every = _results(flags, listing)
    is_first_page = flags.limit and not (flags.sort_by or flags.group_by or flags.names)
    if (
        choice
        and is_first_page
        and listing.noun == "violations"
        and "results.severity" not in every
    ):
        for severity in filter(None, SEVERITIES):
            yield ",".join(filter(None, (every, f"results.severity={severity}"))), severity
    yield every, ""


def _add_reports(world: ClusterCache, before: ClusterCache) -> None:
    """Put the reports that were chosen before beside those that are chosen now."""
    from kubectl_kpolicy.cluster.violations import SOURCES

    for name in filter(world.is_synced, SOURCES):
        world.replace(name, [*before.objects(name), *world.objects(name)], world.seen_at(name))


def _is_enough(
    flags: ListRequest, listing: Listing, choice: Choice | None, world: ClusterCache, least: str
) -> bool:
    """Tell whether as many rows as are asked for are at least as severe, so that no other one comes before them."""
    from kubectl_kpolicy.output.rows import severity_rank

    if not least or choice is None:
        return True
    now = cluster.now()
    rows = selected(flags, listing.rows(world, now), listing, now, choice)
    last = rows[-1].cells.get("severity") if len(rows) == flags.limit else None
    return severity_rank(last) >= severity_rank(least)


def _replayed(name: str) -> Read:
    import asyncio
    from pathlib import Path

    from kubectl_kpolicy.cluster.recording import ReplaySource, read_recording

    source = ReplaySource(read_recording(Path(name)))
    asyncio.run(source.start())
    return Read(source.world, source.now())


def check_needs(world: ClusterCache, listing: Listing) -> ExitCode:
    """Report what cannot be read; return the exit code where nothing can. A journal of codes stands for itself."""
    from kubectl_kpolicy.cluster.cache import Trouble
    from kubectl_kpolicy.cluster.resources import JOURNAL

    codes = {
        Trouble.FORBIDDEN: ExitCode.FORBIDDEN,
        Trouble.UNREACHABLE: ExitCode.UNREACHABLE,
        Trouble.UNAUTHORIZED: ExitCode.UNREACHABLE,
        Trouble.MISSING: ExitCode.GONE,
        Trouble.FAILED: ExitCode.FAILED,
    }
    missed = [found for name in listing.needs if (found := world.problem(name))]
    if missed and not any(map(world.is_synced, (*listing.needs, JOURNAL))):
        report(EngineError(missed[0].message, help=missed[0].help))
        return codes[missed[0].trouble]
    journal = world.problem("journal") if "journal" in listing.wants else None
    if journal is not None:
        report(EngineError(journal.message, help=journal.help))
        return codes[journal.trouble]
    for name in (*listing.needs, *listing.wants):
        problem = world.problem(name)
        if problem is not None and problem.trouble is not Trouble.MISSING:
            report(EngineError(f"without {name}: {problem.message}"), word="warning")
    return ExitCode.DONE


def run_list(
    flags: ListRequest,
    noun: str,
    choice: Choice = lambda _row: True,
    *,
    named: Named = is_named,
    listing: Listing | None = None,
    learn: Learn | None = None,
) -> int:
    """Print the rows of a listing and return the exit code; plain lists never return 1 for what they hold.

    `named` tells what a name of the command line means, `listing` stands in for the noun's own one, `learn` is as in
    `read_world`.
    """

    def run(given: ListRequest) -> int:
        made = listing or listing_of(noun)
        if given.watch or given.watch_only or given.output_watch_events:
            from .watching import watch_rows

            return watch_rows(given, made, choice)
        return _run_list(given, made, choice, named, learn)

    return cluster.guarded(run, flags)


def _run_list(
    flags: ListRequest, listing: Listing, choice: Choice, named: Named, learn: Learn | None
) -> int:
    found = read(flags, listing, learn, None if learn else choice)
    code = check_needs(found.world, listing)
    if code is not ExitCode.DONE:
        return code
    rows, now = listing.rows(found.world, found.now), found.now
    chosen = selected(flags, rows, listing, now, choice)
    lost = missing(rows, flags.names, named) if _is_named(listing.noun) else []
    if chosen or not lost:
        print_rows(replace(flags, place=found.place), chosen, listing, now)
    return _report_lost(listing.noun, lost) if lost else ExitCode.DONE


def _is_named(noun: str) -> bool:
    """Tell whether things of a listing have names, so that one that none has is an error."""
    from kubectl_kpolicy.actions.screens import SCREENS

    return noun in SCREENS and SCREENS[noun].is_named


def _report_lost(noun: str, names: list[str]) -> ExitCode:
    from kubectl_kpolicy.actions.screens import SCREENS

    screen = SCREENS[noun]
    for name in names:
        report(EngineError(f"there is no {screen.called} called `{name}`", help=f"`kubectl kpolicy {screen.command} -A` lists them"))  # fmt: skip
    return ExitCode.GONE


def run_describe(flags: ListRequest, noun: str, named: Named = is_named) -> int:
    """Print everything about the rows that names choose; exit code 6 for names that nothing has."""
    return cluster.guarded(lambda given: _run_describe(given, noun, named), flags)


def _run_describe(flags: ListRequest, noun: str, named: Named) -> int:
    from kubectl_kpolicy.cluster.details import described

    listing = listing_of(noun)
    world, now = read_world(flags, listing)
    code = check_needs(world, listing)
    if code is not ExitCode.DONE:
        return code
    every = listing.rows(world, now)
    rows = [row for row in every if named(row, flags.names)]
    sys.stdout.write("\n".join(described(row, listing, world, now) for row in rows))
    lost = missing(every, flags.names, named)
    return _report_lost(noun, lost) if lost else ExitCode.DONE


def add_names(parser: argparse.ArgumentParser, metavar: str, *, needed: bool = False) -> None:
    """Add the names by which rows are chosen."""
    count: Any = "+" if needed else "*"
    parser.add_argument("names", nargs=count, metavar=metavar, help="which ones; all by default")
