"""One cluster of a console: where its rows come from, and by whom and how it is changed.

A console has one, or several side by side; what is done to a row is done in the row's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubectl_kpolicy.actions.executor import ActionExecutor
from kubectl_kpolicy.grants.form import GrantForm
from kubectl_kpolicy.output.rows import CLUSTER
from kubectl_kpolicy.session.identity import Identity, KnownRights

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from kubectl_kpolicy.actions.codes import CodeActions
    from kubectl_kpolicy.cluster.sources import Source
    from kubectl_kpolicy.output.rows import Row
    from kubectl_kpolicy.session.identity import Right


class OneCluster:
    """See the module. `name` is its context, empty where the console has no other cluster."""

    def __init__(
        self,
        source: Source,
        doer: ActionExecutor | None = None,
        grant_form: GrantForm | None = None,
        rights: Mapping[Right, bool] | None = None,
        *,
        user: str = "",
        name: str = "",
    ) -> None:
        self.name, self.source = name, source
        self.doer = doer or ActionExecutor(None, source.now, Identity(user))
        self.grant_form = grant_form or GrantForm(source.world, source.now)
        self.rights = KnownRights(rights)
        self.codes: CodeActions | None = None

    def __repr__(self) -> str:
        return f"<OneCluster {self.name or self.source.name}>"


def cluster_of(row: Row | None, clusters: Mapping[str, OneCluster]) -> OneCluster:
    """Return the cluster of a row; the first one where a row has none."""
    name = row.text(CLUSTER.id) if row is not None else ""
    return clusters.get(name) or next(iter(clusters.values()))


def by_cluster(
    rows: Iterable[Row], clusters: Mapping[str, OneCluster]
) -> list[tuple[OneCluster, Sequence[Row]]]:
    """Return rows by their clusters."""
    found: dict[str, tuple[OneCluster, list[Row]]] = {}
    for row in rows:
        one = cluster_of(row, clusters)
        found.setdefault(one.name, (one, []))[1].append(row)
    return list(found.values())
