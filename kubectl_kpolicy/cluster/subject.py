"""The one object that somebody asks about, read from the server by the `KIND/NAME` that people write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controllers.kube import Discovery

if TYPE_CHECKING:
    from controllers.kube import Client
    from engine.model import Object


async def object_named(client: Client, namespace: str, resource: str) -> Object | None:
    """Return the object; None where the server has no such kind. Raises NotFound and KubeError."""
    kind_name, _, name = resource.rpartition("/")
    discovery = Discovery(client)
    await discovery.refresh()
    kind = discovery.named(kind_name)
    if kind is None:
        return None
    return await client.get(kind, name, namespace if kind.namespaced else "")
