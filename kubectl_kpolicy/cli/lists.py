"""What every command that lists rows does: read, choose, print; and describe what is named."""

from __future__ import annotations

import sys
from types import MappingProxyType
from typing import TYPE_CHECKING

from engine.errors import EngineError
from engine.record import replace
from kubectl_kpolicy.output.diagnostics import ExitCode, report
from kubectl_kpolicy.session import cluster

from .printing import print_rows
from .reading import check_needs, read, read_world
from .selection import ListRequest, check_words, is_named, missing, selected

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from kubectl_kpolicy.output.rows import Listing, Row

    from .reading import Learn
    from .selection import Choice, Named

__all__ = ["check_needs", "is_named", "listing_of", "print_rows", "read_world", "run_describe", "run_list", "selected"]  # fmt: skip


def listing_of(noun: str) -> Listing:
    """Return a listing by its noun."""
    from kubectl_kpolicy.actions.screens import LISTINGS

    return LISTINGS[noun]


def run_list(
    flags: ListRequest,
    noun: str,
    choice: Choice = lambda _row: True,
    *,
    named: Named = is_named,
    listing: Listing | None = None,
    learn: Learn | None = None,
) -> int:
    """Print the rows of a listing that names and `choice` mean, and return the exit code; plain lists never return 1 for what they hold.

    `named` tells what a name of the command line means, `listing` stands in for the noun's own one, `learn` is as in
    `read_world`.
    """
    made = listing or listing_of(noun)

    def chosen(row: Row) -> bool:
        return choice(row) and named(row, flags.names)

    return cluster.guarded(lambda given: _run_list(given, made, chosen, named, learn), flags)


def _run_list(
    flags: ListRequest, listing: Listing, choice: Choice, named: Named, learn: Learn | None
) -> int:
    if flags.contexts:
        from kubectl_kpolicy.cluster.beside import with_cluster

        from .reading import read_beside

        shown = with_cluster(listing)
        check_words(flags, shown)
        every, unknown = read_beside(flags, listing, learn)
        return _print_chosen(flags, shown, every, cluster.now(), choice, named, unknown)
    check_words(flags, listing)
    if flags.watch or flags.watch_only or flags.output_watch_events:
        from .watching import watch_rows

        return watch_rows(flags, listing, choice)
    found = read(flags, listing, learn, None if learn else choice)
    check_needs(found.world, listing)
    rows = listing.rows(found.world, found.now)
    return _print_chosen(replace(flags, place=found.place), listing, rows, found.now, choice, named)


def _print_chosen(
    flags: ListRequest,
    listing: Listing,
    rows: Sequence[Row],
    now: datetime,
    choice: Choice,
    named: Named,
    unknown: Mapping[str, ExitCode] = MappingProxyType({}),
) -> ExitCode:
    """Print the rows that flags ask for; where a cluster is unknown, nobody knows whether a name is missing."""
    from kubectl_kpolicy.actions.screens import SCREENS

    chosen = selected(flags, rows, listing, now, choice)
    screen = SCREENS.get(listing.noun)
    is_told = screen is not None and screen.is_named and not unknown
    lost = missing(rows, flags.names, named) if is_told else []
    if chosen or unknown or not lost:
        print_rows(flags, chosen, listing, now, unknown=tuple(unknown))
    if lost:
        return _report_lost(listing.noun, lost)
    return next(iter(unknown.values()), ExitCode.DONE)


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
    from kubectl_kpolicy.cluster.details import described, in_detail

    listing = listing_of(noun)
    world, now = read_world(flags, in_detail(listing))
    check_needs(world, listing)
    every = listing.rows(world, now)
    rows = [row for row in every if named(row, flags.names)]
    sys.stdout.write("\n".join(described(row, listing, world, now) for row in rows))
    lost = missing(every, flags.names, named)
    return _report_lost(noun, lost) if lost else ExitCode.DONE
