"""`kubectl kpolicy violations`: what fails which policy, from policy reports, and with `--blocks` what was denied."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .verbs import Verbs

if TYPE_CHECKING:
    import argparse

    from kubectl_kpolicy.cluster.rows import Row

SUMMARY = "what fails which policy, and what was denied"
_NAMES = "POLICY[/RULE]|KIND/NAME"


def add_parser(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command and its verbs."""
    verbs = Verbs(sub, "violations", SUMMARY, "kubectl kpolicy violations -A --where 'sev>=high age<1h' -o json")  # fmt: skip
    for name, text, run in (
        ("list", "list results that fail", _list),
        ("watch", "list them and go on printing what changes", _watch),
    ):
        parser = verbs.listing(name, text, run, _NAMES)
        parser.add_argument("--all", action="store_true", help="passing and skipped results, too")
        parser.add_argument("--severity", default="", metavar="S[,S]", help="only these severities")
        parser.add_argument("--result", default="", metavar="R[,R]", help="only these results")
        parser.add_argument("--kind", default="", metavar="KIND", help="only objects of this kind")
        parser.add_argument(
            "--since", default="", metavar="DURATION", help="only what is not older"
        )
        parser.add_argument(
            "--blocks", action="store_true", help="denied requests instead of results"
        )
    verbs.describing("violations", _NAMES)


def _list(args: argparse.Namespace) -> int:
    from kubectl_kpolicy.cluster.violations import is_failure

    from .lists import is_named, run_list

    noun = "blocks" if args.blocks else "violations"
    terms = [f"{name}={value}" for name, value in (("sev", args.severity), ("res", args.result), ("kind", args.kind)) if value and (name == "kind" or not args.blocks)]  # fmt: skip
    if args.since:
        terms.append(f"{'time' if args.blocks else 'age'}<{args.since}")
    args.where = " ".join([*terms, f"({args.where})" if args.where.strip() else ""]).strip()
    shows_all = args.all or args.blocks or bool(args.result)

    def choice(row: Row) -> bool:
        return (shows_all or is_failure(row)) and is_named(row, args.names)

    return run_list(args, noun, choice)


def _watch(args: argparse.Namespace) -> int:
    args.watch = True
    return _list(args)
