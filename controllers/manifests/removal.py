"""Takes objects away in order, but only those that carry our mark: Kyverno's objects have the same names.

For `kubectl kpolicy uninstall` and for the Job that a Helm release runs before it is deleted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from controllers.kube import Client, Conflict, Discovery, Kind, NotFound
from engine import vocabulary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from engine.model import Object

    Said = Callable[[str], None]
    Found = tuple[Object, Kind, str]


async def ours(client: Client, objects: Iterable[Object], stays: Said) -> list[Found]:
    """Return those of these objects that are there and ours, in order, each with its kind and UID; raises KubeError.

    `stays` is told of what is there and not ours.
    """
    discovery = Discovery(client)
    await discovery.refresh()
    found = []
    for one in objects:
        kind = discovery.find(one["apiVersion"], one["kind"])
        if kind is None:
            continue
        name, namespace = _place(one)
        try:
            metadata = (await client.get(kind, name, namespace))["metadata"]
        except NotFound:
            continue
        if vocabulary.OWNER in (metadata.get("annotations") or {}):
            found.append((one, kind, metadata["uid"]))
        else:
            stays(f"{one['kind']} {name}: stays, it is not ours")
    return found


async def remove(client: Client, found: Iterable[Found], deleted: Said, stays: Said) -> None:
    """Delete objects in order and say of each what became of it; raises KubeError."""
    for one, kind, uid in found:
        name, namespace = _place(one)
        try:
            await client.delete(kind, name, namespace, uid=uid)
        except NotFound:
            continue
        except Conflict:
            stays(f"{one['kind']} {name}: stays, it was made anew meanwhile")
            continue
        deleted(f"{one['kind']} {name}: deleted")


def _place(one: Object) -> tuple[str, str]:
    return one["metadata"]["name"], one["metadata"].get("namespace", "")
