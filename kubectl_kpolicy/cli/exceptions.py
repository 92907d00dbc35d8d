"""`kubectl kpolicy exceptions`: who is let through until when; what is wrong with exceptions, and taking bad ones away."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from kubectl_kpolicy.output.diagnostics import visible

from .flags import Arguments, Flags, Verbs, guarded, list_request

if TYPE_CHECKING:
    from kubectl_kpolicy.output.rows import Row


def add_arguments(flags: Flags) -> None:
    """Add the command's verbs."""
    verbs = Verbs(flags, "exceptions audit -A -o json", usual="list")
    verbs.listed("exceptions", "list exceptions", "NAME")
    audit = verbs.listing("audit", "list exceptions that are expired, orphaned, unused, stale, over-broad or endless", _audit, "NAME")  # fmt: skip
    audit.switch("--exit-code", "exit with 1 when there is any")
    prune = verbs.add("prune", "delete expired exceptions, or named ones", _prune)
    prune.add("names", "which exceptions (the expired ones by default)", nargs="*", metavar="NAME")
    prune.yes()
    prune.dry_run()
    adopt = verbs.add("adopt", "print the command that turns an exception into a grant", _adopt)
    adopt.add("name", "the exception", metavar="NAME")
    adopt.text("--for", "DURATION", "how long it stays in force", dest="length", default="4h")
    verbs.describing("exceptions", "NAME")


def _audit(args: Arguments) -> int:
    from .lists import is_named, run_list

    found: list[Row] = []

    def choice(row: Row) -> bool:
        if not row.cells["drift"] or not is_named(row, args.names):
            return False
        found.append(row)
        row.object.setdefault("concerns", row.text("drift").split(", "))
        return True

    code = run_list(list_request(args), "exceptions", choice)
    return 1 if args.exit_code and found and code == 0 else code


@guarded
def _prune(args: Arguments) -> int:
    from .lists import check_needs, is_named, listing_of, read_world
    from .selection import missing

    listing = listing_of("exceptions")
    world, now = read_world(list_request(args), listing)
    check_needs(world, listing)
    every = listing.rows(world, now)
    _check_names(missing(every, args.names))
    rows = [row for row in every if (is_named(row, args.names) if args.names else row.cells["state"] == "expired")]  # fmt: skip
    if not rows:
        print("No resources found.", file=sys.stderr)
        return 0
    from .changes import named, perform

    if args.dry_run == "client" or not args.yes:
        for row in rows:
            print(visible(f"would delete {named(row)}"))
        if args.dry_run == "none":
            print("help: add --yes to do it", file=sys.stderr)
        return 0
    form = {"dry-run": "server"} if args.dry_run == "server" else {}
    return perform(args, "exception-revoke", rows, form)


def _check_names(lost: list[str]) -> None:
    """Raise NotFound for names that no exception has, so that nothing is done by halves."""
    if lost:
        from controllers.kube.errors import NotFound

        raise NotFound(f"there is no exception called {' or '.join(lost)}", status=404, help="`kubectl kpolicy exceptions list -A` lists them")  # fmt: skip


@guarded
def _adopt(args: Arguments) -> int:
    """Print a command for each rule and target of the exception; grants are for one of each."""
    import shlex

    from engine.errors import EngineError
    from kubectl_kpolicy.cluster.celkinds import is_cel
    from kubectl_kpolicy.cluster.exceptions import rule_texts, targets

    from .lists import is_named, listing_of, read_world

    listing = listing_of("exceptions")
    world, now = read_world(list_request(args), listing)
    row = next((one for one in listing.rows(world, now) if is_named(one, [args.name])), None)
    if row is None:
        _check_names([args.name])
        return 1
    if is_cel(row.object):
        raise EngineError(f"`{args.name}` is from policies written in CEL, which grants do not except from", help="give it an end of its own: spec.expiresAt")  # fmt: skip
    for rule in rule_texts(row.object):
        for target in targets(row.object):
            place = target.partition(" in ")[0]
            print(f"kubectl kpolicy grant request {shlex.quote(rule)} {shlex.quote(place)} -n {row.text('namespace')} --for {args.length} --reason REASON")  # fmt: skip
    return 0
