"""How far a grant would reach: failing results that it lets through, results that stay, objects yet to come that would fit."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from engine.lang import wildcard
from engine.record import record, replace
from kubectl_kpolicy.cluster.violations import all_rows, is_failure

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from kubectl_kpolicy.cluster.rows import Row
    from kubectl_kpolicy.cluster.world import World

    from .reading import Target


@record
class Reach:
    """Rows of reports that would turn, how many failures of the policy stay, and whether later objects could fit."""

    flips: tuple[Row, ...]
    stays: int
    fits_later: bool


def reach_of(world: World, policy: str, rules: Sequence[str], targets: Sequence[Target]) -> Reach:
    """Return how far a grant would reach by what reports say now."""
    failing = [row for row in all_rows(world) if is_failure(row) and row.text("policy") == policy]
    flips = [
        row
        for row in failing
        if any(wildcard.match(rule, row.text("rule")) for rule in rules)
        and any(_is_meant(target, row) for target in targets)
    ]
    later = any(one.selector or wildcard.has_wildcard(one.name) for one in targets)
    return Reach(tuple(flips), len(failing) - len(flips), later)


def _is_meant(target: Target, row: Row) -> bool:
    """Tell whether a row is about a target; labels are not in reports, so that every object of the kind may be meant."""
    kind, _, name = row.text("resource").partition("/")
    return (
        target.kind in (kind, "*")
        and target.namespace in ("", row.text("namespace"))
        and (bool(target.selector) or wildcard.match(target.name, name))
    )


def show(args: argparse.Namespace) -> int:
    """Print the reach of what the words ask for; raises EngineError."""
    from kubectl_kpolicy.cli.lists import check_needs, listing_of, read_world
    from kubectl_kpolicy.session import cluster

    from . import reading
    from .commands import asked_of

    policy, rules, targets = asked_of(args)
    found = cluster.with_client(args, lambda client, _access: reading.with_kinds(client, targets))
    space = args.namespace or cluster.access_of(args).namespace or "default"
    placed = [replace(one, namespace=one.namespace or space) for one in found]
    world, _ = read_world(args, listing_of("violations"))
    if code := check_needs(world, listing_of("violations")):
        return code
    reach = reach_of(world, policy, rules, placed)
    _print(reach, getattr(args, "output", ""))
    return 0


def _print(reach: Reach, form: str) -> None:
    from kubectl_kpolicy.output.cells import plain
    from kubectl_kpolicy.output.structured import json_text

    places = [
        {
            "namespace": row.text("namespace"),
            "resource": row.text("resource"),
            "policy": row.text("policy"),
            "rule": row.text("rule"),
        }
        for row in reach.flips
    ]
    if form == "json":
        sys.stdout.write(json_text({"flips": places, "stays": reach.stays, "matchesLater": reach.fits_later}))  # fmt: skip
        return
    for one in places:
        print(plain(f"would be let through: {one['namespace']}/{one['resource']} {one['policy']}/{one['rule']}"))  # fmt: skip
    print(f"{len(places)} results would turn, {reach.stays} of the same policy stay")
    if reach.fits_later:
        print("objects made later may fit, too")
