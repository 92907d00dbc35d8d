"""Bringing a code along: an object from a file is applied with the code in its annotation, which no command line shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controllers.kube import Client, Discovery
from controllers.kube.client import APPLY
from controllers.kube.errors import KubeError
from engine.codes import CODE_ANNOTATION, shown
from engine.errors import EngineError
from kubectl_kpolicy.session.errors import of_server

if TYPE_CHECKING:
    from engine.model import Object

MANAGER = "kpolicy"


def carrying(obj: Object, code: str) -> Object:
    """Return an object that carries a code beside those that it carries already."""
    metadata = obj.get("metadata") or {}
    annotations = metadata.get("annotations") or {}
    before = str(annotations.get(CODE_ANNOTATION) or "")
    codes = ",".join(filter(None, (before, shown(code))))
    return {**obj, "metadata": {**metadata, "annotations": {**annotations, CODE_ANNOTATION: codes}}}


def object_in(text: str, name: str) -> Object:
    """Return the one object that a file holds; raises EngineError."""
    from engine.lang.yaml import load_all

    objects: list[Object] = [one.value for one in load_all(text) if isinstance(one.value, dict)]
    if len(objects) != 1:
        raise EngineError(f"`{name}` holds {len(objects)} objects", help="a code is for one")
    return objects[0]


async def bring(client: Client, obj: Object, namespace: str, *, dry_run: bool = False) -> Object:
    """Apply an object and return it as stored; raises Refused where admission denies it, EngineError and KubeError."""
    discovery = Discovery(client)
    await discovery.refresh()
    kind = discovery.find(str(obj.get("apiVersion")), str(obj.get("kind")))
    if kind is None:
        raise EngineError(
            f"the server has no kind `{obj.get('kind')}` in `{obj.get('apiVersion')}`"
        )
    metadata = obj["metadata"]
    place = str(metadata.get("namespace") or namespace) if kind.namespaced else ""
    if not metadata.get("name"):
        raise EngineError("the object has no name", help="one with generateName cannot be applied")
    try:
        return await client.patch(
            kind, str(metadata["name"]), place, obj, content_type=APPLY, field_manager=MANAGER, force=True, dry_run=dry_run
        )  # fmt: skip
    except KubeError as error:
        raise of_server(error) from error
