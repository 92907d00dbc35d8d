"""`cleanup preview`: what the next run of a cleanup policy deletes and what it leaves, as the engine itself plans it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from engine.errors import EngineError
from kubectl_kpolicy.output.misuse import Misuse
from kubectl_kpolicy.session import cluster

if TYPE_CHECKING:
    import argparse
    from datetime import datetime

    from controllers.kube import Access, Client
    from engine.cleanup import Cleanup, Plan
    from engine.model import Object


def preview(args: argparse.Namespace) -> int:
    """Print a row for each object that a policy matches; raises EngineError."""
    from .lists import listing_of, read_world

    if not args.names:
        raise Misuse("name a cleanup policy", help="`kubectl kpolicy cleanup list -A` lists them")  # fmt: skip
    world, now = read_world(args, listing_of("cleanup"))
    wanted = {name.rpartition("/")[2] for name in args.names}
    policies = [
        policy
        for name in ("clustercleanuppolicies", "cleanuppolicies")
        for policy in world.objects(name)
        if policy["metadata"]["name"] in wanted
    ]
    if not policies:
        raise EngineError(f"there is no cleanup policy called {' or '.join(args.names)}")
    found: list[Object] = []
    for policy in policies:
        found += _planned(args, policy, now)
    _print(args, found)
    return 0


def _planned(args: argparse.Namespace, policy: Object, now: datetime) -> list[Object]:
    from engine.cleanup import compile_cleanup
    from engine.parse import parse_cleanup_policy

    compiled = compile_cleanup(parse_cleanup_policy(policy, strict=False))

    async def work(client: Client, _access: Access) -> Plan:
        return await _plan(client, compiled, now)

    plan = cluster.with_client(args, work)
    when = plan.run_at.strftime("%Y-%m-%dT%H:%M:%SZ") if plan.run_at else ""
    return [
        {
            "apiVersion": "kpolicy.io/v1alpha1",
            "kind": "PlannedDeletion",
            "metadata": {"name": one.object["metadata"]["name"], "namespace": one.object["metadata"].get("namespace", "")},
            "target": one.object.get("kind", ""),
            "policy": compiled.policy.key,
            "at": when,
            "goes": one.goes,
            "reason": one.reason,
        }
        for one in plan.decisions
    ]  # fmt: skip


async def _plan(client: Client, compiled: Cleanup, now: datetime) -> Plan:
    """List the kinds that a policy names and let the engine decide; conditions that need a context are not evaluated."""
    from controllers.kube import Discovery
    from engine.cleanup import plan
    from engine.errors import EvaluationError
    from engine.match import parse_kind
    from kubectl_kpolicy.cluster.cleanup import kinds_of
    from kubectl_kpolicy.cluster.fetching import named

    discovery = Discovery(client)
    await discovery.refresh()
    objects: list[Object] = []
    for text in filter(None, kinds_of(compiled.policy.raw).split(",")):
        wanted = parse_kind(text)
        for kind in discovery.matching(wanted.group, wanted.version, wanted.kind, preferred=True):
            page = await client.list_all(kind, compiled.policy.namespace if kind.namespaced else "")
            objects += named(page.items, kind)

    def undecided(_obj: Object) -> bool:
        raise EvaluationError("the conditions are evaluated when it runs")

    return plan(compiled, objects, now, check_conditions=undecided)


def _print(args: argparse.Namespace, found: list[Object]) -> None:
    from kubectl_kpolicy.output.formats import write_list
    from kubectl_kpolicy.output.table import Column, Table

    table = Table([Column(head) for head in ("GOES", "AT", "KIND", "NS", "NAME", "REASON")])
    for one in found:
        table.add("yes" if one["goes"] else "no", one["at"] or "-", one["target"], one["metadata"]["namespace"] or "-", one["metadata"]["name"], one["reason"])  # fmt: skip
    form = args.output if args.output in ("table", "wide", "json", "yaml", "name", "markdown") else "table"  # fmt: skip
    write_list(sys.stdout, found, table, form, heads=not args.no_headers)
    if not found:
        print("nothing matches: the next run deletes nothing", file=sys.stderr)
