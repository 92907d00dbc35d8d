"""Context files, cluster resources, prepared calls and global entries (rows K-05 and K-09), made into a MockCluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.errors import EvaluationError
from engine.images import parse_reference
from engine.lang import jmes
from engine.lang.jmes.values import Env
from engine.record import replace

from .inventory import Inventory
from .mock_cluster import Call, MockCluster
from .shapes import ANY, HEAD, MAP, NUMBER, TEXT, check_shape

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from engine.lang.yaml import Document
    from engine.model import Object

_IMAGE = {
    "image": TEXT, "resolvedImage": TEXT, "registry": TEXT, "repository": TEXT, "tag": TEXT,
    "digest": TEXT, "imageIndex": ANY, "manifest": ANY, "config": ANY,
}  # fmt: skip
CONTEXT_FILE = {**HEAD, "spec": {"resources": [MAP], "images": [_IMAGE]}}
CLUSTER_FILE = {**HEAD, "spec": {"crds": [TEXT], "resources": [MAP]}}
CALLS = [
    {"url": TEXT, "urlPath": TEXT, "method": TEXT, "response": {"statusCode": NUMBER, "body": ANY}}
]
ENTRIES = [
    {
        "name": TEXT,
        "data": ANY,
        "resources": [MAP],
        "resourceFiles": [TEXT],
        "fieldPath": TEXT,
        "projections": [{"name": TEXT, "path": TEXT, "jmesPath": TEXT}],
    }
]


def with_context(world: MockCluster, document: Document) -> MockCluster:
    """Add the objects and images of a context file; raises DocumentError where it is not one."""
    spec = check_shape(document, CONTEXT_FILE, what="context file").get("spec") or {}
    return with_objects(
        replace(world, images={**world.images, **_images(spec.get("images") or ())}),
        spec.get("resources") or (),
    )


def with_objects(world: MockCluster, objects: Iterable[Object]) -> MockCluster:
    """Add objects that stand in the cluster; from then on, what is not among them does not exist."""
    known = [*world.objects, *objects]
    return replace(world, objects=Inventory(known), has_cluster=world.has_cluster or bool(known))


def _images(images: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for image in images:
        entry = _image_entry(image)
        found[str(image.get("image", ""))] = found[entry["image"]] = entry
    return found


def _image_entry(image: Mapping[str, Any]) -> dict[str, Any]:
    """Return the map that an imageRegistry context entry gives (row A-54)."""
    name = str(image.get("image", ""))
    parsed = parse_reference(name)
    registry = image.get("registry") or (parsed.registry if parsed else "")
    repository = image.get("repository") or (parsed.path if parsed else "")
    tag = image.get("tag") or (parsed.tag if parsed else "")
    digest = image.get("digest") or (parsed.digest if parsed else "")
    full = f"{registry}/{repository}"
    return {
        "image": f"{full}:{tag}" if tag else f"{full}@{digest}",
        "resolvedImage": image.get("resolvedImage") or (f"{full}@{digest}" if digest else name),
        "registry": registry,
        "repository": repository,
        "identifier": digest or tag,
        "manifestList": image.get("imageIndex"),
        "manifest": image.get("manifest"),
        "configData": image.get("config"),
    }


def prepared_calls(calls: Iterable[Mapping[str, Any]]) -> list[Call]:
    """Make calls of a test's `apiCallResponses`."""
    return [
        Call(
            address=call.get("url") or call.get("urlPath") or "",
            method=str(call.get("method") or "").upper(),
            status=(call.get("response") or {}).get("statusCode") or 200,
            body=(call.get("response") or {}).get("body"),
        )
        for call in calls
    ]


def prepared_entries(
    entries: Iterable[Mapping[str, Any]], files: Mapping[str, Sequence[Object]]
) -> dict[str, Any]:
    """Make the data of a test's `globalContextEntries`; `files` holds the objects of their resource files.

    A projection is reachable as `entry.projection`, and as a field of the entry where that is a map. Raises
    EvaluationError for a path that cannot be applied.
    """
    found: dict[str, Any] = {}
    for entry in entries:
        name, data = str(entry.get("name", "")), _entry_data(entry, files)
        projected = {
            str(item.get("name", "")): _at(item.get("jmesPath") or item.get("path") or "@", data)
            for item in entry.get("projections") or ()
        }
        found |= {f"{name}.{key}": value for key, value in projected.items()}
        found[name] = {**data, **projected} if isinstance(data, dict) else data
    return found


def _entry_data(entry: Mapping[str, Any], files: Mapping[str, Sequence[Object]]) -> Any:
    data = entry.get("data")
    if data is None:
        below = [obj for name in entry.get("resourceFiles") or () for obj in files[name]]
        data = [*(entry.get("resources") or ()), *below]
    return _at(entry["fieldPath"], data) if entry.get("fieldPath") else data


def _at(path: str, data: Any) -> Any:
    try:
        return jmes.compile(path)(data, Env())
    except jmes.ExpressionError as error:
        raise EvaluationError(f"cannot read the path `{path}`: {error.message}") from error
