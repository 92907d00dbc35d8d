"""OpenAPI: an empty answer for version 2 (all that kubectl needs of it), and version 3 made of the type table and the CRDs.

kubectl reads from version 3 that `fieldValidation` is the server's business, and `explain` shows its schemas.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kpolicy_sandbox.errors import no_such_path
from kpolicy_sandbox.schema.types import Field, item_type, struct

if TYPE_CHECKING:
    from kpolicy_sandbox.kinds import Registry, Resource

Object = dict[str, Any]
V2 = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_GVK = "x-kubernetes-group-version-kind"
_LEAVES: dict[str, Object] = {
    "string": {"type": "string"},
    "bool": {"type": "boolean"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "float64": {"type": "number", "format": "double"},
    "bytes": {"type": "string", "format": "byte"},
    "time": {"type": "string", "format": "date-time"},
    "microtime": {"type": "string", "format": "date-time"},
    "duration": {"type": "string"},
    "quantity": {"type": "string"},
    "intorstring": {"type": "string", "format": "int-or-string"},
    "fields": {"type": "object"},
    "raw": {"type": "object"},
    "json": {"type": "object"},
}


def index(registry: Registry) -> Object:
    """Return the list of documents, one per group and version; the hash changes when a CRD does."""
    places = [
        f"apis/{group}/{version}" if group else f"api/{version}"
        for group, versions in registry.groups().items()
        for version in versions
    ]
    return {
        "paths": {
            place: {"serverRelativeURL": f"/openapi/v3/{place}?hash={registry.revision:08X}"}
            for place in places
        }
    }


def document(registry: Registry, place: str) -> Object:
    """Return the document of a group and version. ApiError 404 where there is none."""
    group, version = _group_version(place)
    resources = registry.in_version(group, version)
    if not resources:
        raise no_such_path()
    paths: Object = {}
    schemas: Object = {}
    for resource in resources:
        paths |= _paths(place, resource)
        _add_schema(resource, schemas)
    return {
        "openapi": "3.0.0",
        "info": {"title": "kpolicy sandbox", "version": "v1.32.4"},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _group_version(place: str) -> tuple[str, str]:
    match place.split("/"):
        case ["api", version]:
            return "", version
        case ["apis", group, version]:
            return group, version
    raise no_such_path()


def _paths(place: str, resource: Resource) -> Object:
    spaced = "/namespaces/{namespace}" if resource.namespaced else ""
    collection = f"/{place}{spaced}/{resource.plural}"
    if resource.review:
        return {collection: {"post": _operation(resource, "post")}}
    return {
        collection: {"get": _operation(resource, "list"), "post": _operation(resource, "post")},
        f"{collection}/{{name}}": {
            verb: _operation(resource, verb) for verb in ("get", "put", "patch", "delete")
        },
    }


def _operation(resource: Resource, action: str) -> Object:
    names = (
        ["dryRun", "fieldManager", "fieldValidation"] if action in {"post", "put", "patch"} else []
    )
    parameters = [
        {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}
        for name in names
    ]
    reference = {"$ref": f"#/components/schemas/{_schema_name(resource)}"}
    return {
        _GVK: _gvk(resource),
        "x-kubernetes-action": action,
        "parameters": parameters,
        "responses": {
            "200": {"description": "OK", "content": {"application/json": {"schema": reference}}}
        },
    }


def _gvk(resource: Resource) -> Object:
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _schema_name(resource: Resource) -> str:
    if resource.custom is None:
        return resource.type
    return f"{'.'.join(reversed(resource.group.split('.')))}.{resource.version}.{resource.kind}"


def _add_schema(resource: Resource, schemas: Object) -> None:
    name = _schema_name(resource)
    if resource.custom is None:
        _add_type(name, schemas)
    else:
        _add_type("meta.v1.ObjectMeta", schemas)
        schemas[name] = {
            **resource.custom.schema,
            "properties": dict(resource.custom.schema.get("properties", {})),
        }
        schemas[name]["type"] = "object"
    if name not in schemas:
        return
    schemas[name][_GVK] = [_gvk(resource)]
    properties = schemas[name]["properties"]
    properties["apiVersion"] = {"type": "string", "description": _API_VERSION}
    properties["kind"] = {"type": "string", "description": _KIND}
    properties["metadata"] = _reference("meta.v1.ObjectMeta", "Standard object's metadata.")


_API_VERSION = "APIVersion defines the versioned schema of this representation of an object."
_KIND = "Kind is a string value representing the REST resource this object represents."


def _add_type(name: str, schemas: Object) -> None:
    found = struct(name)
    if found is None or name in schemas:
        return
    schemas[name] = made = {"type": "object", "description": found.text, "properties": {}}
    required = [key for key, field in found.fields.items() if field.required]
    if required:
        made["required"] = required
    for key, field in found.fields.items():
        made["properties"][key] = _field(field)  # type: ignore[index] # a dict under construction
        _add_type(item_type(item_type(field.type)), schemas)


def _field(field: Field) -> Object:
    made = _typed(field.type, field.text)
    if field.strategy:
        made["x-kubernetes-patch-strategy"] = ",".join(sorted(field.strategy))
    if field.merge_key:
        made["x-kubernetes-patch-merge-key"] = field.merge_key
    if field.list_type:
        made["x-kubernetes-list-type"] = field.list_type
    if field.list_keys:
        made["x-kubernetes-list-map-keys"] = list(field.list_keys)
    return made


def _typed(kind: str, text: str = "") -> Object:
    described = {"description": text} if text else {}
    if kind in _LEAVES:
        return {**_LEAVES[kind], **described}
    if kind.startswith("map:"):
        return {"type": "object", "additionalProperties": _typed(item_type(kind)), **described}
    if kind.startswith(("[]", "items:")):
        return {"type": "array", "items": _typed(item_type(kind)), **described}
    return _reference(kind, text)


def _reference(name: str, text: str) -> Object:
    made: Object = {"allOf": [{"$ref": f"#/components/schemas/{name}"}], "default": {}}
    return {**made, "description": text} if text else {"$ref": f"#/components/schemas/{name}"}
