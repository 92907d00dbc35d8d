"""Deleting one object, that very one, and saying so: what all clean-ups share (row E-07)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controllers.kube import Conflict, Kind, KubeError, NotFound
from controllers.loops.announcing import announce
from controllers.store.events import cleaned_up

if TYPE_CHECKING:
    from collections.abc import Mapping

    from controllers.loops.context import LoopContext
    from engine.model import Object

LONGEST_SLEEP = 30.0
"""Seconds until a due instant is compared with the clock again, which may have been set."""


async def delete(
    context: LoopContext,
    kind: Kind,
    obj: Object,
    about: Mapping[str, str],
    *,
    propagation: str = "",
    says_failure: bool = True,
) -> bool:
    """Delete an object with its UID as the condition and write an Event; return whether it was there.

    Raises KubeError, about which an Event is written first when `says_failure`.
    """
    metadata = obj["metadata"]
    shown = {"apiVersion": kind.api_version, "kind": kind.kind, **obj}
    try:
        await context.client.delete(
            kind,
            str(metadata["name"]),
            str(metadata.get("namespace") or ""),
            uid=str(metadata["uid"]),
            propagation=propagation,
        )
    except (NotFound, Conflict):
        return False
    except KubeError as error:
        if says_failure:
            announce(context, [cleaned_up(about, shown, error.message)])
        raise
    announce(context, [cleaned_up(about, shown)])
    return True
