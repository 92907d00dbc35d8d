"""Carrying out changes from a command: an action on rows as in the console, and clean-ups planned, shown and run by hand."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from engine.errors import EngineError
from kubectl_kpolicy.output.diagnostics import ExitCode, report, visible
from kubectl_kpolicy.output.misuse import Misuse
from kubectl_kpolicy.output.structured import name_of
from kubectl_kpolicy.session import cluster

from .flags import Arguments, cluster_flags, list_request
from .selection import is_named, missing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from controllers.kube import Access, Client
    from engine.cleanup.holds import Hold
    from engine.model import Object
    from kubectl_kpolicy.actions.executor import Outcome
    from kubectl_kpolicy.cluster.planning import Planned
    from kubectl_kpolicy.output.rows import Row


def perform(args: Arguments, action: str, rows: Sequence[Row], form: Mapping[str, str]) -> int:
    """Do an action on rows, print what became of each, and return the exit code."""

    async def work(client: Client, _access: Access) -> list[Outcome]:
        return await _done(client, action, rows, form)

    outcomes = cluster.with_client(cluster_flags(args), work)
    tried = f" ({form['dry-run']} dry run)" if form.get("dry-run") else ""
    code = ExitCode.DONE
    for row, outcome in zip(rows, outcomes, strict=True):
        stream = sys.stdout if outcome.done else sys.stderr
        print(visible(f"{named(row)}: {outcome.text}{tried}"), file=stream)
        if not outcome.done:
            code = ExitCode.FAILED if outcome.error is None else cluster.exit_code(outcome.error)
    return code


async def _done(
    client: Client, action: str, rows: Sequence[Row], form: Mapping[str, str]
) -> list[Outcome]:
    from kubectl_kpolicy.actions.catalog import action_of
    from kubectl_kpolicy.actions.executor import ActionExecutor
    from kubectl_kpolicy.session.identity import who_am_i

    doer = ActionExecutor(client, cluster.now, await who_am_i(client))
    return await doer.perform(action_of(action), rows, form)


def named(row: Row) -> str:
    """Return how people call what is behind a row: `kind.group/name`, and its namespace where it has one."""
    place = row.text("namespace")
    return name_of(row.object) + (f" in {place}" if place else "")


_HEADS = (("GOES", False), ("AT", False), ("KIND", False), ("NS", False), ("NAME", False), ("OWNER", False), ("TAKES", False),
          ("PROPAGATION", True), ("BY", True), ("REASON", False))  # fmt: skip


def is_meant(row: Row, names: Sequence[str]) -> bool:
    """Tell whether a row is a cleanup policy or an object that one of the names means."""
    by = row.text("by").lower()
    return is_named(row, names) or any(
        name.lower() in (by, by.rpartition("/")[2]) for name in names
    )


def meant(names: Sequence[str], every: Sequence[Row]) -> list[Row]:
    """Return the rows that names mean; raises NotFound for a name that none has, so that nothing is done by halves."""
    from controllers.kube.errors import NotFound

    if lost := missing(every, names, is_meant):
        raise NotFound(f"there is no clean-up called {' or '.join(lost)}", status=404, help="`kubectl kpolicy cleanup list -A` lists what there is")  # fmt: skip
    return [row for row in every if is_meant(row, names)]


# The plans of clean-ups: `cleanup preview` and `cleanup run`.


def preview(args: Arguments) -> int:
    """Print a row for each object that what is named is about; raises EngineError."""
    found, rows, now = _planned(args)
    _print(args, found)
    _say_held(rows, now)
    return ExitCode.DONE


def run(args: Arguments) -> int:
    """Delete now what the next run would, under one's own rights; raises EngineError."""
    found, rows, now = _planned(args)
    _check_holds(rows, now)
    from kubectl_kpolicy.cluster.planning import named_in_full

    going = [one for one in found if one.goes]
    if not going:
        print("nothing would go", file=sys.stderr)
        return ExitCode.DONE
    if args.dry_run == "client" or not args.yes:
        for one in going:
            print(visible(f"would delete {named_in_full(one)}"))
        if args.dry_run == "none":
            print("help: add --yes to do it", file=sys.stderr)
        return ExitCode.DONE

    async def work(client: Client, _access: Access) -> ExitCode:
        if args.dry_run == "none":
            await _note(client, rows, args.reason)
        return await _delete_all(client, going, dry_run=args.dry_run == "server")

    return cluster.with_client(cluster_flags(args), work)


def _planned(args: Arguments) -> tuple[list[Planned], list[Row], datetime]:
    """Return the plans for what is named, the rows that were meant, and the instant; raises EngineError."""
    from kubectl_kpolicy.cluster.planning import plans_of

    from .lists import check_needs, listing_of, read_world

    if not args.names:
        raise Misuse("name a cleanup policy, or an object with a TTL label", help="`kubectl kpolicy cleanup list -A` lists them")  # fmt: skip
    listing = listing_of("cleanup")
    world, now = read_world(list_request(args, everywhere=True), listing)
    check_needs(world, listing)
    rows = meant(args.names, listing.rows(world, now))

    async def work(client: Client, _access: Access) -> list[Planned]:
        return await plans_of(client, rows, now)

    return cluster.with_client(cluster_flags(args), work), rows, now


def _say_held(rows: Sequence[Row], now: datetime) -> None:
    """Say of policies that are held back that nothing goes until they are not."""
    for row, hold in _held(rows, now):
        print(f"note: {row.text('by')} is {_words(hold)}", file=sys.stderr)


def _check_holds(rows: Sequence[Row], now: datetime) -> None:
    """Refuse to run a policy by hand that is held back, as its own runs are; raises Conflict."""
    from controllers.kube import Conflict

    for row, hold in _held(rows, now):
        name = row.text("by")
        raise Conflict(f"{name} is {_words(hold)}: nothing was deleted", status=409, help=f"`kubectl kpolicy cleanup resume {name} --reason TEXT` lets it go on")  # fmt: skip


def _held(rows: Sequence[Row], now: datetime) -> Iterator[tuple[Row, Hold]]:
    """Yield the policies that are held back; of an object with a label, its plan says so."""
    from kubectl_kpolicy.cluster.cleanup import hold_of, is_of_label

    for row in rows:
        if not is_of_label(row) and (hold := hold_of(row, now)):
            yield row, hold


def _words(hold: Hold) -> str:
    state = "skipped once" if hold.state == "skip" else hold.state
    return "held back by an annotation that cannot be read" if hold.is_unreadable else state


def _print(args: Arguments, found: Sequence[Planned]) -> None:
    from kubectl_kpolicy.cluster.planning import as_object
    from kubectl_kpolicy.output.cells import short
    from kubectl_kpolicy.output.structured import write_list
    from kubectl_kpolicy.output.table import Column, Table

    objects = [as_object(one) for one in found]
    table = Table([Column(head, wide) for head, wide in _HEADS])
    for one, obj in zip(found, objects, strict=True):
        metadata = obj["metadata"]
        table.add("yes" if one.goes else "no", obj["at"] or "-", obj["target"]["kind"], metadata["namespace"] or "-", metadata["name"],
                  " < ".join(one.owners) or "-", short(one.takes) or "-", one.propagation, one.by, one.reason)  # fmt: skip
    if args.output in ("jsonl", "csv") or args.output.startswith(("jsonpath=", "custom-columns=")):
        _print_data(args, objects)
    else:
        write_list(sys.stdout, objects, table, args.output, heads=not args.no_headers)
    if not any(one.goes for one in found) and not args.quiet:
        print("nothing goes: the next run deletes nothing", file=sys.stderr)


def _print_data(args: Arguments, objects: list[Object]) -> None:
    """Print plans in the formats that lists of rows have."""
    from kubectl_kpolicy.output.rows import Column, Listing, Row

    from .printing import print_rows

    rows = [Row(str(number), {**obj, **obj["metadata"], "kind": obj["target"]["kind"], "owners": " < ".join(obj["owners"])}, obj) for number, obj in enumerate(objects)]  # fmt: skip
    names = ("goes", "at", "kind", "namespace", "name", "owners", "propagation", "policy", "reason")
    listing = Listing("plans", "Plans", (), tuple(Column(name, name.upper()) for name in names), lambda _w, _n: rows, ())  # fmt: skip
    print_rows(list_request(args), rows, listing, cluster.now())


async def _note(client: Client, rows: Sequence[Row], reason: str) -> None:
    """Write on each policy who ran it and why; raises KubeError, for then nothing is deleted either."""
    from kubectl_kpolicy.cluster.cleanup import is_of_label

    policies = [row for row in rows if not is_of_label(row)]
    for outcome in await _done(client, "cleanup-run", policies, {"reason": reason}):
        if not outcome.done:
            raise EngineError(f"nothing was deleted: {outcome.text}")


async def _delete_all(client: Client, going: Sequence[Planned], *, dry_run: bool) -> ExitCode:
    """Delete just these very objects; one that cannot be deleted keeps no other from going."""
    from controllers.kube import Conflict, Discovery, KubeError, NotFound
    from kubectl_kpolicy.cluster.planning import named_in_full

    discovery = Discovery(client)
    await discovery.refresh()
    code = ExitCode.DONE
    tried = " (server dry run)" if dry_run else ""
    for one in going:
        kind = discovery.find(str(one.object["apiVersion"]), str(one.object["kind"]))
        metadata = one.object["metadata"]
        try:
            if kind is None:
                raise NotFound(f"the server has no {one.object['kind']}", status=404)
            await client.delete(kind, metadata["name"], metadata.get("namespace") or "", uid=metadata["uid"], propagation=one.propagation, dry_run=dry_run)  # fmt: skip
        except (NotFound, Conflict):
            print(visible(f"{named_in_full(one)} is gone already, or another one by now: left alone"), file=sys.stderr)  # fmt: skip
        except KubeError as error:
            report(error)
            code = cluster.exit_code(error)
        else:
            print(visible(f"{named_in_full(one)} deleted{tried}"))
    return code
