"""`kubectl kpolicy policies`: which policies are in force, in which mode, with counts of results and exceptions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .flags import guarded, list_request, request_of
from .verbs import Verbs

if TYPE_CHECKING:
    import argparse


def add_parser(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command and its verbs."""
    verbs = Verbs(sub, "policies", "kubectl kpolicy policies --where 'mode=audit fail>0' -o wide")
    verbs.listing("list", "list policies with their results", _list, "NAME", beside=True)
    verbs.describing("policies", "NAME")
    test = verbs.add("test", "test objects in files against a policy of the cluster", _test)
    test.add_argument("name", metavar="NAME", help="which policy (wildcards)")
    test.add_argument("-f", "--filename", action="append", required=True, metavar="FILE|FOLDER|-", help="the objects (repeatable)")  # fmt: skip
    test.add_argument("-o", "--output", choices=("table", "wide", "json", "yaml", "name"), default="table", help="output format")  # fmt: skip


def _list(args: argparse.Namespace) -> int:
    from .lists import is_named, run_list

    return run_list(
        list_request(args, everywhere=True), "policies", lambda row: is_named(row, args.names)
    )


@guarded
def _test(args: argparse.Namespace) -> int:
    """Check files against one policy and show passing results as well; exit code 1 where one fails, 6 without such a policy."""
    from engine.lang import wildcard
    from kubectl_kpolicy.output.diagnostics import ExitCode, report

    from .lists import listing_of, read_world

    listing = listing_of("policies")
    world, now = read_world(list_request(args), listing)
    keys = [row.text("policy") for row in listing.rows(world, now)]
    if not any(wildcard.match(args.name, key) for key in keys):
        from engine.errors import EngineError

        report(EngineError(f"there is no policy called `{args.name}`", help="`kubectl kpolicy policies list` lists them"))  # fmt: skip
        return ExitCode.GONE
    from kubectl_kpolicy.apply.checking import FROM_CLUSTER, CheckRequest

    from .check import show_checked

    source = (FROM_CLUSTER,)
    asked = request_of(CheckRequest, args, policies=source, exceptions=source, policy=args.name)
    return show_checked(asked, list_request(args), whole=True)
