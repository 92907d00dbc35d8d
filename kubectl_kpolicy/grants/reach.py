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

    from controllers.kube import Access, Client
    from kubectl_kpolicy.cluster.cache import ClusterCache
    from kubectl_kpolicy.cluster.rows import Row

    from .arguments import Target


@record
class Reach:
    """Rows of reports that would turn, how many failures of the policy stay, and whether later objects could fit."""

    flips: tuple[Row, ...]
    stays: int
    fits_later: bool


def reach_of(
    world: ClusterCache, policy: str, rules: Sequence[str], targets: Sequence[Target]
) -> Reach:
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
    kind, _, name = row.text("resource").partition("/")
    return (
        target.kind in (kind, "*")
        and target.namespace in ("", row.text("namespace"))
        and wildcard.match(target.name or "*", name)
    )


def show(args: argparse.Namespace) -> int:
    """Print the reach of what the words ask for; raises EngineError."""
    from kubectl_kpolicy.cli.lists import check_needs, listing_of, read_world
    from kubectl_kpolicy.session import cluster

    from .commands import asked_of

    policy, rules, targets = asked_of(args)

    async def work(client: Client, access: Access) -> list[Target]:
        return await _placed(client, targets, args.namespace or access.namespace or "default")

    placed = cluster.with_client(args, work)
    world, _ = read_world(args, listing_of("violations"))
    if code := check_needs(world, listing_of("violations")):
        return code
    later = any(one.selector or wildcard.has_wildcard(one.name) for one in targets)
    reach = replace(reach_of(world, policy, rules, placed), fits_later=later)
    _print(reach, _judged(args, policy, rules), getattr(args, "output", ""))
    return 0


async def _placed(client: Client, targets: Sequence[Target], namespace: str) -> list[Target]:
    """Return targets with their kinds and namespaces; one by labels as the objects that have them now, for reports have none."""
    from controllers.kube import Discovery, KubeError

    from . import arguments
    from .arguments import Target

    found: list[Target] = []
    for one in await arguments.with_kinds(client, targets):
        place = one.namespace or namespace
        if not one.selector:
            found.append(replace(one, namespace=place))
            continue
        discovery = Discovery(client)
        await discovery.refresh()
        kind = discovery.named(one.kind)
        if kind is None:
            raise KubeError(f"the server has no kind `{one.kind}`")
        labels = ",".join(f"{key}={value}" for key, value in one.selector.get("matchLabels", {}).items())  # fmt: skip
        page = await client.list_all(kind, place if kind.namespaced else "", label_selector=labels, metadata_only=True)  # fmt: skip
        found += [Target(one.kind, obj["metadata"]["name"], place) for obj in page.items]
    return found


def _judged(args: argparse.Namespace, policy: str, rules: Sequence[str]) -> list[dict[str, str]]:
    """Return what the engine says that objects from a file fail now: what was denied stands in no report."""
    documents = getattr(args, "documents", [])
    if not documents:
        return []
    from kubectl_kpolicy.apply.checking import failures_of

    return failures_of(args, documents, policy, rules)


def _print(reach: Reach, judged: Sequence[dict[str, str]], form: str) -> None:
    from kubectl_kpolicy.output.cells import plain
    from kubectl_kpolicy.output.structured import json_text, yaml_text

    names = ("namespace", "resource", "policy", "rule")
    places = [{name: row.text(name) for name in names} for row in reach.flips]
    fresh = [one for one in judged if one not in places]
    if form:
        data = {"apiVersion": "kpolicy.io/v1alpha1", "kind": "GrantPreview", "flips": places, "fromFile": fresh, "stays": reach.stays, "matchesLater": reach.fits_later}  # fmt: skip
        sys.stdout.write(json_text(data) if form == "json" else yaml_text(data))
        return
    for one in (*places, *fresh):
        print(plain(f"would be let through: {one['namespace']}/{one['resource']} {one['policy']}/{one['rule']}"))  # fmt: skip
    print(f"{len(places)} results would turn, {reach.stays} of the same policy stay")
    if fresh:
        print(f"{len(fresh)} of the file, which is not in the cluster so, would be let in")
    if reach.fits_later:
        print("objects made later may fit, too")
