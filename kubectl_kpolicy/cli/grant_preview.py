"""`grant request --preview`: what a request would let through, by reports and, for objects of a file, by the engine's judgement."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from engine import vocabulary
from engine.lang import wildcard
from engine.record import replace
from kubectl_kpolicy.grants.arguments import Named, resolved
from kubectl_kpolicy.grants.commands import GrantRequest, Subject, asked_of
from kubectl_kpolicy.grants.reach import Reach, placed, reach_of
from kubectl_kpolicy.session import cluster

from .flags import Arguments, cluster_flags, list_request, request_of
from .lists import check_needs, listing_of, read_world

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controllers.kube import Access, Client
    from kubectl_kpolicy.session.targets import Target


def show(args: Arguments) -> int:
    """Print the reach of what the words ask for; raises EngineError."""
    written = asked_of(request_of(GrantRequest, args))

    async def work(client: Client, access: Access) -> tuple[list[Target], Named]:
        namespace = args.namespace or access.namespace or "default"
        named = await resolved(client, (written.policy, written.rules), namespace)
        return await placed(client, written.targets, namespace), named

    meant, (policy, rules) = cluster.with_client(cluster_flags(args), work)
    subject = replace(written, policy=policy, rules=rules)
    world, _ = read_world(list_request(args), listing_of("violations"))
    check_needs(world, listing_of("violations"))
    later = any(one.selector or wildcard.has_wildcard(one.name) for one in subject.targets)
    reach = replace(reach_of(world, subject.policy, subject.rules, meant), fits_later=later)
    _print(reach, _judged(args, subject), getattr(args, "output", ""))
    return 0


def _judged(args: Arguments, subject: Subject) -> list[dict[str, str]]:
    """Return what the engine says that objects from a file fail now: what was denied stands in no report."""
    if not subject.documents:
        return []
    from kubectl_kpolicy.apply.checking import failures_of

    return failures_of(cluster_flags(args), subject.documents, subject.policy, subject.rules)


def _print(reach: Reach, judged: Sequence[dict[str, str]], form: str) -> None:
    from kubectl_kpolicy.output.cells import plain
    from kubectl_kpolicy.output.structured import write_object

    names = ("namespace", "resource", "policy", "rule")
    places = [{name: row.text(name) for name in names} for row in reach.flips]
    fresh = [one for one in judged if one not in places]
    if form:
        data = {"apiVersion": vocabulary.KPOLICY, "kind": "GrantPreview", "flips": places, "fromFile": fresh, "stays": reach.stays, "matchesLater": reach.fits_later}  # fmt: skip
        write_object(sys.stdout, data, form)
        return
    for one in (*places, *fresh):
        print(plain(f"would be let through: {one['namespace']}/{one['resource']} {one['policy']}/{one['rule']}"))  # fmt: skip
    print(f"{len(places)} results would turn, {reach.stays} of the same policy stay")
    if fresh:
        print(f"{len(fresh)} of the file, which is not in the cluster so, would be let in")
    if reach.fits_later:
        print("objects made later may fit, too")
