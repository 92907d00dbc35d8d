"""Whether holding back a clean-up would be honoured: Kyverno's own engine deletes all the same.

Apart from `cleanup`, which only reads, because the console and commands ask it before they write.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from engine.errors import EngineError
from kubectl_kpolicy.output.structured import name_of

from .cleanup import is_of_label
from .health import engine_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kubectl_kpolicy.output.rows import Row

    from .cache import ClusterCache


def check_engine(world: ClusterCache, name: str, rows: Sequence[Row]) -> None:
    """Refuse what Kyverno would not honour, with the command that does the same there; raises EngineError."""
    if engine_of(world) == "Kyverno":
        raise EngineError(f"Kyverno knows no way to {name} a clean-up, so that nothing would come of it", help="; ".join(map(_instead, rows)))  # fmt: skip


def _instead(row: Row) -> str:
    """Return the command that keeps Kyverno from deleting: another schedule, or no TTL label."""
    place = f" -n {row.text('namespace')}" if row.text("namespace") else ""
    thing = shlex.quote(name_of(row.object))
    if is_of_label(row):
        return f"kubectl label {thing}{place} cleanup.kyverno.io/ttl- takes its label away"
    patch = shlex.quote('{"spec":{"schedule":"0 0 31 2 *"}}')
    return f"kubectl patch {thing}{place} --type merge -p {patch} gives it a schedule that never comes"  # fmt: skip
