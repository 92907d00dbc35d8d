"""What every command that lists rows does: read, filter, sort, print as kubectl prints; and describe one row."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from engine.errors import EngineError
from kubectl_kpolicy.output.diagnostics import ExitCode, report
from kubectl_kpolicy.session import cluster

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from controllers.kube import Access, Client
    from kubectl_kpolicy.cluster.rows import Listing, Row
    from kubectl_kpolicy.cluster.world import World

    Choice = Callable[[Row], bool]


def listing_of(noun: str) -> Listing:
    """Return a listing by its noun."""
    from kubectl_kpolicy.cluster.listings import LISTINGS

    return LISTINGS[noun]


def read_world(args: argparse.Namespace, listing: Listing) -> tuple[World, datetime]:
    """Return everything a listing is made of, from the cluster or from a recording; raises EngineError."""
    if getattr(args, "replay", ""):
        return _replayed(args.replay)
    now = cluster.now()

    async def work(client: Client, access: Access) -> World:
        from kubectl_kpolicy.cluster.fetching import Scope, fetch

        namespace = cluster.namespace_of(args, access)
        scope = Scope(namespace, journal=getattr(args, "journal", ""))
        return await fetch(client, (*listing.needs, *listing.wants), now, scope)

    return cluster.with_client(args, work), now


def _replayed(name: str) -> tuple[World, datetime]:
    import asyncio
    from pathlib import Path

    from kubectl_kpolicy.cluster.recording import ReplaySource, read_recording

    source = ReplaySource(read_recording(Path(name)))
    asyncio.run(source.start())
    return source.world, source.now()


def check_needs(world: World, listing: Listing) -> ExitCode:
    """Report what cannot be read; return the exit code where nothing can."""
    from kubectl_kpolicy.cluster.world import Trouble

    codes = {
        Trouble.FORBIDDEN: ExitCode.FORBIDDEN,
        Trouble.UNREACHABLE: ExitCode.UNREACHABLE,
        Trouble.UNAUTHORIZED: ExitCode.UNREACHABLE,
        Trouble.MISSING: ExitCode.GONE,
        Trouble.FAILED: ExitCode.FAILED,
    }
    missing = [found for name in listing.needs if (found := world.problem(name))]
    if missing and not any(world.is_synced(name) for name in listing.needs):
        report(EngineError(missing[0].message, help=missing[0].help))
        return codes[missing[0].trouble]
    for name in (*listing.needs, *listing.wants):
        problem = world.problem(name)
        if problem is not None and problem.trouble is not Trouble.MISSING:
            report(EngineError(f"without {name}: {problem.message}"), word="warning")
    return ExitCode.DONE


def selected(
    args: argparse.Namespace, rows: Sequence[Row], listing: Listing, now: datetime, choice: Choice
) -> list[Row]:
    """Return the rows that flags ask for, in the order they ask for; raises EngineError."""
    from kubectl_kpolicy.cluster.rows import sort_rows
    from kubectl_kpolicy.filter import compile_filter

    where = f'{args.where} -l "{args.selector}"' if args.selector else args.where
    wanted = compile_filter(where, listing)
    kept = [row for row in rows if choice(row) and wanted.keeps(row, now)]
    order: tuple[str, ...] = listing.sort
    if args.sort_by:
        if listing.column(args.sort_by.lstrip("-")) is None:
            names = ", ".join(one.id for one in listing.columns)
            raise EngineError(f"there is no column `{args.sort_by}`", help=f"there are {names}")
        order = (args.sort_by, *order)
    ordered = sort_rows(kept, listing, order)
    return ordered[: args.limit] if args.limit else ordered


def print_rows(args: argparse.Namespace, rows: Sequence[Row], listing: Listing, now: datetime) -> None:  # fmt: skip
    """Print rows in the format that was asked for; nothing found is said on standard error."""
    from kubectl_kpolicy.output.color import wanted
    from kubectl_kpolicy.output.formats import write_list
    from kubectl_kpolicy.output.listings import table_of, write_rows
    from kubectl_kpolicy.output.paths import columns, jsonpath
    from kubectl_kpolicy.output.structured import list_of
    from kubectl_kpolicy.output.table import Column, Table

    out, form = sys.stdout, args.output
    objects = [row.object for row in rows]
    if args.group_by:
        _print_groups(args, rows, listing)
    elif form.startswith("jsonpath="):
        out.write(jsonpath(list_of(objects), form.removeprefix("jsonpath=")))
    elif form.startswith("custom-columns="):
        lines = columns(objects, form.removeprefix("custom-columns="), heads=not args.no_headers)
        out.write(Table([Column("") for _ in lines[0]], lines).text(heads=False) if lines else "")
    elif form in ("jsonl", "csv"):
        write_rows(out, rows, listing, form, now)
    else:
        table = table_of(rows, listing, now, labels=args.show_labels)
        color = wanted(args.color, out)
        write_list(out, objects, table, form, heads=not args.no_headers, color=color)
    if not rows and form in ("table", "wide") and not args.quiet:
        print(_nothing(args), file=sys.stderr)


def _nothing(args: argparse.Namespace) -> str:
    place = f" in {args.namespace} namespace" if args.namespace and not args.all_namespaces else ""
    return f"No resources found{place}."


def _print_groups(args: argparse.Namespace, rows: Sequence[Row], listing: Listing) -> None:
    from collections import Counter

    from kubectl_kpolicy.output.structured import json_text
    from kubectl_kpolicy.output.table import Column, Table

    column = listing.column(args.group_by)
    if column is None:
        raise EngineError(f"there is no column `{args.group_by}`", help=f"there are {', '.join(one.id for one in listing.columns)}")  # fmt: skip
    counts = Counter(row.text(column.id) for row in rows).most_common()
    if args.output == "json":
        sys.stdout.write(json_text([{column.id: name, "count": count} for name, count in counts]))
        return
    lines = [[name or "-", str(count)] for name, count in counts]
    sys.stdout.write(Table([Column(column.head), Column("COUNT")], lines).text(heads=not args.no_headers))  # fmt: skip


def run_list(args: argparse.Namespace, noun: str, choice: Choice = lambda _row: True) -> int:
    """Print the rows of a listing and return the exit code; plain lists never return 1 for what they hold."""
    return cluster.guarded(lambda given: _run_list(given, noun, choice), args)


def _run_list(args: argparse.Namespace, noun: str, choice: Choice) -> int:
    listing = listing_of(noun)
    if args.watch:
        from .watching import watch_rows

        return watch_rows(args, listing, choice)
    world, now = read_world(args, listing)
    code = check_needs(world, listing)
    if code is ExitCode.DONE:
        print_rows(args, selected(args, listing.rows(world, now), listing, now, choice), listing, now)  # fmt: skip
    return code


def run_describe(args: argparse.Namespace, noun: str) -> int:
    """Print everything about the rows that names choose; exit code 6 when there is none."""
    return cluster.guarded(lambda given: _run_describe(given, noun), args)


def _run_describe(args: argparse.Namespace, noun: str) -> int:
    from kubectl_kpolicy.output.describing import described

    listing = listing_of(noun)
    world, now = read_world(args, listing)
    code = check_needs(world, listing)
    if code is not ExitCode.DONE:
        return code
    rows = [row for row in listing.rows(world, now) if is_named(row, args.names)]
    if not rows:
        report(EngineError(f"no {noun} called {' or '.join(args.names)}", help=f"`kubectl kpolicy {noun} list -A` lists them"))  # fmt: skip
        return ExitCode.GONE
    sys.stdout.write("\n".join(described(row, listing, world, now) for row in rows))
    return ExitCode.DONE


def is_named(row: Row, names: Sequence[str]) -> bool:
    """Tell whether a row is what one of the names means: a name, `KIND/NAME`, `POLICY` or `POLICY/RULE`; no names mean all."""
    if not names:
        return True
    own = {row.text("name"), row.text("resource"), row.text("policy"), row.text("id"), row.text("rules"),
           f"{row.text('policy')}/{row.text('rule')}", f"{row.text('kind')}/{row.text('name')}"}  # fmt: skip
    lowered = {one.lower() for one in own if one}
    return any(name.lower() in lowered for name in names)


def add_names(parser: argparse.ArgumentParser, metavar: str, *, needed: bool = False) -> None:
    """Add the names by which rows are chosen."""
    count: Any = "+" if needed else "*"
    parser.add_argument("names", nargs=count, metavar=metavar, help="which ones; all by default")
