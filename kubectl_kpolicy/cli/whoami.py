"""`kubectl kpolicy whoami`: who you are to the cluster, and what you may view, request, approve and change."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from engine import vocabulary

from .flags import Arguments, Flags, cluster_flags, guarded

if TYPE_CHECKING:
    from controllers.kube import Access, Client
    from engine.model import Object
    from kubectl_kpolicy.session.identity import Identity, Right

_ANSWERS = {True: "yes", False: "no", None: "unknown"}


def add_arguments(flags: Flags) -> None:
    """Add the command's flags."""
    flags.example("kubectl kpolicy whoami --as alice --as-group developers -n payments")
    flags.of_cluster()
    flags.output("table", "json", "yaml")


@guarded
def run(args: Arguments) -> int:
    """Print identity and rights."""
    from kubectl_kpolicy.output.structured import write_object
    from kubectl_kpolicy.session import cluster
    from kubectl_kpolicy.session.identity import identity_of, rights_of

    wanted = matrix()

    async def work(client: Client, access: Access) -> tuple[Identity, dict[Right, bool], list[Object] | str, str]:  # fmt: skip
        namespace = cluster.namespace_of(cluster_flags(args), access)
        rights = [right for group in wanted.values() for right in group]
        identity = await identity_of(client)
        asked = await _under_grant_policies(client, identity)
        return identity, await rights_of(client, rights, namespace), asked, access.context

    identity, answers, grants, context = cluster.with_client(cluster_flags(args), work)
    if args.output != "table":
        rows = [{"for": name, "right": str(right), "allowed": answers.get(right)} for name, group in wanted.items() for right in group]  # fmt: skip
        made = {"apiVersion": vocabulary.KPOLICY, "kind": "Identity", "user": identity.user, "groups": list(identity.groups), "context": context, "rights": rows, "grantPolicies": None if isinstance(grants, str) else grants}  # fmt: skip
        write_object(sys.stdout, made, args.output)
        return 0
    _print(identity, answers, wanted, context, args.as_user)
    _print_grants(grants)
    return 0


def matrix() -> dict[str, list[Right]]:
    """Return the rights that matter, by what they are for."""
    from kubectl_kpolicy.actions.catalog import ALL
    from kubectl_kpolicy.cluster.resources import RESOURCES
    from kubectl_kpolicy.session.identity import Right

    kinds = (resource.kind for resource in RESOURCES.values())
    pairs = [("view", Right("list", kind.plural, kind.group)) for kind in kinds]
    pairs += [(action.title.lower(), right) for action in ALL for right in action.rights]
    found: dict[str, list[Right]] = {}
    for name, right in dict.fromkeys(pairs):
        found.setdefault(name, []).append(right)
    return found


async def _under_grant_policies(client: Client, who: Identity) -> list[Object] | str:
    """Return what somebody may ask for and approve under each grant policy, or why that is not known."""
    from controllers.kube.errors import KubeError
    from controllers.kube.kinds import GRANT_POLICIES
    from engine.errors import EngineError
    from engine.grants import length_text, parse_grant_policy
    from engine.grants.approvals import is_on_a_level
    from engine.grants.requests import lets_ask

    try:
        page = await client.list_all(GRANT_POLICIES)
    except KubeError as error:
        return error.message
    found: list[Object] = []
    for obj in sorted(page.items, key=lambda one: str(one["metadata"]["name"])):
        try:
            policy = parse_grant_policy(obj)
        except EngineError as error:
            found.append({"name": obj["metadata"]["name"], "problem": error.message})
            continue
        groups = frozenset(who.groups)
        found.append({
            "name": policy.name, "mayRequest": lets_ask(policy, who.user, groups), "mayApprove": is_on_a_level(who.user, groups, policy),
            "policies": list(policy.policies), "namespaces": list(policy.namespaces), "maxDuration": length_text(policy.max_for),
        })  # fmt: skip
    return found


def _print_grants(found: list[Object] | str) -> None:
    """Print what grant policies say; without any nobody can ask for an exception."""
    from kubectl_kpolicy.output.table import Column, Table

    print()
    if isinstance(found, str):
        print(f"grant policies: unknown: {found}")
        return
    if not found:
        print("grant policies: none, so nobody can ask for an exception")
        return
    roles = {"yes": "good", "no": "bad"}
    table = Table([Column("GRANTPOLICY"), Column("REQUEST", roles=roles), Column("APPROVE", roles=roles), Column("POLICIES"), Column("NAMESPACES"), Column("AT MOST")])  # fmt: skip
    for one in found:
        names = (",".join(one.get(key) or ()) for key in ("policies", "namespaces"))
        may = (_ANSWERS[one.get(key)] for key in ("mayRequest", "mayApprove"))
        table.add(one["name"], *may, *names, one.get("maxDuration") or one["problem"])
    print(table.text(), end="")


def _print(identity: Identity, answers: dict[Right, bool], wanted: dict[str, list[Right]], context: str, acting: str) -> None:  # fmt: skip
    from kubectl_kpolicy.output.table import Column, Table

    table = Table([Column("FOR"), Column("RIGHT"), Column("ALLOWED", roles={"yes": "good", "no": "bad"})])  # fmt: skip
    for name, group in wanted.items():
        for right in group:
            table.add(name, str(right), _ANSWERS[answers.get(right)])
    print(f"user: {identity.user or 'the server does not say'}" + (" (impersonated)" if acting else ""))  # fmt: skip
    groups = ", ".join(identity.groups) or ("none" if identity.user else "the server does not say")
    print(f"groups: {groups}")
    print(f"context: {context}\n")
    sys.stdout.write(table.text())
