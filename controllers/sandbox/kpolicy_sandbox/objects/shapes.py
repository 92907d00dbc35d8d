"""What a place in an object is made of, the same for built-in types and for schemas of CRDs: children, kinds of lists, keys.

For strategic merge and server-side apply; apart so that both walk any kind alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kpolicy_sandbox.schema.types import LEAVES, Field, is_list, item_type, struct

if TYPE_CHECKING:
    from kpolicy_sandbox.kinds import Resource


@dataclass(frozen=True, slots=True)
class Shape:
    """A place: by the name of a type (with the field it is the value of), or by a schema."""

    type: str = ""
    field: Field | None = None
    schema: dict[str, Any] | None = None

    def child(self, key: str) -> Shape:
        """Return the shape of a map's value."""
        if self.schema is not None:
            return _schema_child(self.schema, key)
        if self.type.startswith("map:"):
            return Shape(item_type(self.type))
        found = struct(self.type)
        field = found.fields.get(key) if found else None
        return Shape(field.type, field) if field else ANY

    def item(self) -> Shape:
        """Return the shape of a list's items."""
        if self.schema is not None:
            return Shape(schema=self.schema.get("items") or {})
        return Shape(item_type(self.type)) if is_list(self.type) else ANY

    @property
    def list_type(self) -> str:
        """Return `atomic`, `set` or `map`; lists are atomic unless said otherwise."""
        if self.schema is not None:
            return str(self.schema.get("x-kubernetes-list-type", "atomic"))
        if self.field is None:
            return "atomic"
        if self.field.list_type:
            return self.field.list_type
        return "map" if self.field.merge_key else "atomic"

    @property
    def list_keys(self) -> tuple[str, ...]:
        """Return the keys that identify an item of a map list."""
        if self.schema is not None:
            return tuple(self.schema.get("x-kubernetes-list-map-keys", ()))
        if self.field is None:
            return ()
        return self.field.list_keys or ((self.field.merge_key,) if self.field.merge_key else ())

    @property
    def atomic(self) -> bool:
        """Tell whether a map at this place is owned as a whole."""
        if self.schema is not None:
            return self.schema.get("x-kubernetes-map-type") == "atomic"
        if self.field is not None and self.field.list_type == "atomic":
            return True
        return self.type in LEAVES or self.type in _ATOMIC


ANY = Shape(schema={})
_META = "meta.v1.ObjectMeta"
_ATOMIC = {
    "core.v1.LocalObjectReference",
    "core.v1.ObjectReference",
    "core.v1.SecretReference",
    "core.v1.TypedLocalObjectReference",
    "core.v1.ObjectFieldSelector",
    "core.v1.ResourceFieldSelector",
    "core.v1.ConfigMapKeySelector",
    "core.v1.SecretKeySelector",
    "core.v1.NodeSelector",
    "core.v1.NodeSelectorTerm",
    "meta.v1.LabelSelector",
    "rbac.v1.RoleRef",
    "rbac.v1.Subject",
}


def shape_of(resource: Resource) -> Shape:
    """Return the shape of a resource's objects."""
    if resource.custom is not None:
        return Shape(schema={**resource.custom.schema, _ROOT: True})
    return Shape(resource.type)


_ROOT = "x-sandbox-root"


def _schema_child(schema: dict[str, Any], key: str) -> Shape:
    if _ROOT in schema and key == "metadata":
        return Shape(_META)
    properties = schema.get("properties", {})
    if key in properties:
        return Shape(schema=properties[key])
    more = schema.get("additionalProperties")
    return Shape(schema=more) if isinstance(more, dict) else ANY
