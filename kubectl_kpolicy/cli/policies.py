"""`kubectl kpolicy policies`: which policies are in force, in which mode, with counts of results and exceptions."""

from __future__ import annotations

from .flags import Arguments, Flags, Verbs, guarded, list_request, request_of


def add_arguments(flags: Flags) -> None:
    """Add the command's verbs."""
    verbs = Verbs(flags, "policies --where 'mode=audit fail>0' -o wide", usual="list")
    verbs.listed("policies", "list policies with their results", "NAME", everywhere=True)
    verbs.describing("policies", "NAME")
    test = verbs.add("test", "test objects in files against a policy of the cluster", _test)
    test.add("name", "which policy (wildcards)", metavar="NAME")
    test.many("-f --filename", "FILE|FOLDER|-", "the objects (repeatable)", required=True)
    test.output("table", "wide", "json", "yaml", "name")


@guarded
def _test(args: Arguments) -> int:
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
