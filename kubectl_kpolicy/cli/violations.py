"""`kubectl kpolicy violations`: what fails which policy, from policy reports, and with `--blocks` what was denied."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .flags import Arguments, Flags, Verbs, guarded, list_request

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kubectl_kpolicy.output.rows import Row

    from .selection import ListRequest

_NAMES = "POLICY[/RULE]|KIND/NAME"
_FAILING = "results.result!=pass,results.result!=skip"
"""What every failing result has, as a field selector of reports."""


def add_arguments(flags: Flags) -> None:
    """Add the command's verbs."""
    verbs = Verbs(flags, "violations -A --where 'sev>=high age<1h' -o json", usual="list")
    for name, text in (
        ("list", "list failed results"),
        ("watch", "list failed results and print changes"),
    ):
        listed = verbs.listing(name, text, _list, _NAMES, beside=name == "list")
        listed.switch("--all", "also passing and skipped results")
        listed.text("--severity", "S[,S]", "only these severities")
        listed.text("--result", "R[,R]", "only these results")
        listed.text("--kind", "KIND", "only objects of this kind")
        listed.text("--owner", "KIND/NAME", "only objects owned by this one, directly or not")
        listed.text("--since", "DURATION", "only what is newer than this")
        listed.switch("--blocks", "denied requests instead of results")
    verbs.describing("violations", _NAMES)


@guarded
def _list(args: Arguments) -> int:
    from kubectl_kpolicy.cluster.violations import is_failure
    from kubectl_kpolicy.output.misuse import Misuse
    from kubectl_kpolicy.output.rows import SEVERITIES

    from .lists import run_list

    _check_known("severity", args.severity, [one for one in SEVERITIES if one])
    _check_known("result", args.result, ("pass", "fail", "warn", "error", "skip"))
    if args.blocks and (args.owner or args.severity or args.result or args.selector):
        raise Misuse("denied requests have no owner, labels, severity or result", help="leave out --owner, -l, --severity and --result, or --blocks")  # fmt: skip
    shows_all = args.all or args.blocks or bool(args.result)
    watch, results = args.watch or args.verb == "watch", "" if shows_all else _FAILING
    flags = list_request(args, *_terms(args), watch=watch, results=results)

    def choice(row: Row) -> bool:
        owned = not args.owner or row.text("owner").lower() == args.owner.lower()
        return owned and (shows_all or is_failure(row))

    if args.blocks:
        return run_list(flags, "blocks", choice)
    shows_owners = _asks_for_owners(flags, args.owner)
    if not (shows_owners or args.selector or args.show_labels or _asks_for_labels(flags.where)):
        return run_list(flags, "violations", choice)
    from kubectl_kpolicy.cluster.owners import Owners

    owners = Owners()
    listing = owners.listing(shows_owners=shows_owners)
    return run_list(flags, "violations", choice, listing=listing, learn=owners.learn)


def _terms(args: Arguments) -> list[str]:
    """Return the filter that the flags stand for, beside the one that was given."""
    given = (("sev", args.severity), ("res", args.result), ("kind", args.kind))
    since = f"{'time' if args.blocks else 'age'}<{args.since}" if args.since else ""
    return [*(f"{name}={value}" for name, value in given if value), *filter(None, (since,))]


def _asks_for_owners(flags: ListRequest, owner: str) -> bool:
    """Tell whether a flag speaks of owners, for which more of the cluster is read."""
    return bool(owner) or "owner" in (flags.group_by, flags.sort_by.lstrip("-")) or "owner" in flags.where  # fmt: skip


def _asks_for_labels(where: str) -> bool:
    """Tell whether a filter speaks of labels; one that cannot be read is refused where it is used."""
    from kubectl_kpolicy.cluster.violations import LISTING
    from kubectl_kpolicy.filter import FilterError, compile_filter

    try:
        return compile_filter(where, LISTING).asks_for_labels
    except FilterError:
        return False


def _check_known(what: str, given: str, known: Sequence[str]) -> None:
    """Raise Misuse for a word that no result has: it would look as if there were none."""
    from kubectl_kpolicy.output.misuse import Misuse

    for word in filter(None, (one.strip().lower() for one in given.split(","))):
        if word not in known:
            raise Misuse(f"there is no {what} `{word}`", help=f"there are {', '.join(known)}")
