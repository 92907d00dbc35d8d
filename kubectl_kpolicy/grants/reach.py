"""How far a grant would reach: failing results that it lets through, results that stay, objects yet to come that would fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.lang import wildcard
from engine.model.kinds import is_of_cel
from engine.record import record, replace
from kubectl_kpolicy.cluster import celkinds
from kubectl_kpolicy.cluster.violations import all_rows, is_failure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controllers.kube import Client
    from kubectl_kpolicy.cluster.cache import ClusterCache
    from kubectl_kpolicy.output.rows import Row
    from kubectl_kpolicy.session.targets import Target


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
    failing = [
        row for row in all_rows(world) if is_failure(row) and celkinds.identity_of(row) == policy
    ]
    flips = [
        row
        for row in failing
        if (is_of_cel(policy) or any(wildcard.match(rule, row.text("rule")) for rule in rules))
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


async def placed(client: Client, targets: Sequence[Target], namespace: str) -> list[Target]:
    """Return targets with their kinds and namespaces; one by labels as the objects that have them now, for reports have none."""
    from controllers.kube import Discovery, KubeError
    from kubectl_kpolicy.session.targets import Target, with_kinds

    found: list[Target] = []
    for one in await with_kinds(client, targets):
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
