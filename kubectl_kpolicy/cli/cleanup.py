"""`kubectl kpolicy cleanup`: what will be deleted when, by policy or by label; preview, postpone, skip and pause with a reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.cleanup.holds import HoldState
from kubectl_kpolicy.output.diagnostics import visible

from .changes import is_meant, meant, named, perform, preview, run
from .flags import Arguments, Flags, Verbs, guarded, list_request

if TYPE_CHECKING:
    from collections.abc import Callable

    from kubectl_kpolicy.output.rows import Row

_NAMES = "KIND/NAME|NAME"
_CHANGES = (
    ("postpone", "postpone deletions", "cleanup-postpone"),
    ("skip", "skip the next run", "cleanup-skip"),
    ("pause", "pause deletions until they are resumed", "cleanup-pause"),
    ("resume", "resume deletions", "cleanup-pause"),
)


def add_arguments(flags: Flags) -> None:
    """Add the command's verbs."""
    verbs = Verbs(flags, "cleanup -A --due-in 1h", usual="list")
    listed = verbs.listing(
        "list", "list scheduled deletions, the next first", _list, _NAMES, beside=True
    )
    listed.text("--due-in", "DURATION", "only what is due within this time")
    listed.text("--by", "POLICY", "only what this policy deletes")
    verbs.describing("cleanup", _NAMES, named=is_meant)
    verbs.listing("preview", "list the objects that the next run of a cleanup policy would delete, and those it leaves", guarded(preview), "POLICY")  # fmt: skip
    by_hand = verbs.add(
        "run", "delete now what the next run would, with your own rights", guarded(run)
    )
    by_hand.add("names", "which ones", nargs="+", metavar=_NAMES)
    by_hand.reason()
    by_hand.yes()
    by_hand.dry_run()
    for name, text, action in _CHANGES:
        change = verbs.add(name, text, _change(name, action))
        change.add("names", "which ones", nargs="+", metavar=_NAMES)
        change.reason()
        change.dry_run()
        if name == "postpone":
            change.text("--for", "DURATION", "for how long", dest="length", default="1h")


def _list(args: Arguments) -> int:
    from .lists import run_list

    terms = [f"left<{args.due_in}"] if args.due_in else []
    terms += [f'by="*/{args.by}"'] if args.by else []
    return run_list(list_request(args, *terms), "cleanup", named=is_meant)


def _change(name: str, action: str) -> Callable[[Arguments], int]:
    return guarded(lambda args: _perform(args, name, action))


def _perform(args: Arguments, name: str, action: str) -> int:
    from engine.record import replace
    from kubectl_kpolicy.cluster.health import check_engine
    from kubectl_kpolicy.grants.requests import duration_of

    from .lists import listing_of, read_world

    listing = listing_of("cleanup")
    if name == "postpone":
        duration_of(args.length)
    world, now = read_world(
        list_request(args), replace(listing, wants=(*listing.wants, "validatingwebhooks"))
    )
    every = listing.rows(world, now)
    rows = _held_back(name, meant(args.names, every))
    check_engine(world, name, rows)
    if args.dry_run == "client":
        for row in rows:
            print(visible(f"{named(row)}: {name} (client dry run)"))
        return 0
    form = {"reason": args.reason, "for": getattr(args, "length", "")}
    if name == "resume":
        form["resume"] = "yes"
    if args.dry_run == "server":
        form["dry-run"] = args.dry_run
    return perform(args, action, rows, form)


def _held_back(name: str, rows: list[Row]) -> list[Row]:
    """Return the rows that can be paused or resumed; raises Conflict where all are as they would become."""
    from controllers.kube.errors import Conflict

    if name not in ("pause", "resume"):
        return rows
    if name == "pause":
        found = [row for row in rows if row.text("state") != HoldState.PAUSED]
    else:
        found = [row for row in rows if row.text("state") in set(HoldState)]
    if not found:
        state = "paused already" if name == "pause" else "not held back"
        raise Conflict(f"{' and '.join(map(named, rows))}: {state}", status=409)
    return found
