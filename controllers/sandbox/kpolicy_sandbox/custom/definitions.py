"""From a CustomResourceDefinition to the resources that it serves, one per served version."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from kpolicy_sandbox.errors import Cause, bad_request
from kpolicy_sandbox.kinds import Registry, Resource
from kpolicy_sandbox.schema.unknown import prune

from . import structural
from .rules import passed_over, rule_causes

if TYPE_CHECKING:
    from kpolicy_sandbox.call import Call

Object = dict[str, Any]
STORAGE = "apiextensions.k8s.io/customresourcedefinitions"
_META = "meta.v1.ObjectMeta"
_OPEN: Object = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


@dataclass(frozen=True)
class Custom:
    """One version of a custom resource: its schema and what the CRD says beside it."""

    version: Object
    storage_version: str

    @cached_property
    def schema(self) -> Object:
        """Return the OpenAPI v3 schema."""
        found: Object = (self.version.get("schema") or {}).get("openAPIV3Schema") or _OPEN
        return found

    @property
    def printer_columns(self) -> list[Object]:
        """Return `additionalPrinterColumns`."""
        found: list[Object] = self.version.get("additionalPrinterColumns") or []
        return found

    def prune(self, obj: Object) -> tuple[Object, list[str]]:
        """Return an object without fields that the schema does not have, and their paths."""
        made, unknown = structural.prune(self.schema, obj)
        if not isinstance(made.get("metadata") or {}, dict):
            raise bad_request("metadata: it is not an object")
        meta, more = prune(_META, made.get("metadata") or {})
        return {**made, "metadata": meta}, [*unknown, *(f"metadata.{path}" for path in more)]

    def default(self, obj: Object) -> Object:
        """Return an object with the schema's defaults."""
        made: Object = structural.default(self.schema, obj)
        return made

    def validate(self, call: Call, obj: Object) -> list[Cause]:
        """Return what is wrong with an object that a call brings."""
        expressions = call.cluster.expressions
        rules = partial(rule_causes, expressions) if expressions else partial(passed_over, call.warnings)  # fmt: skip
        return structural.validate(self.schema, obj, rules)


def resources_of(definition: Object) -> list[Resource]:
    """Return the resources that a CRD serves."""
    spec = definition["spec"]
    names = spec["names"]
    storage = next((one["name"] for one in spec["versions"] if one.get("storage")), "")
    made = []
    for version in spec["versions"]:
        if not version.get("served"):
            continue
        below = version.get("subresources") or {}
        made.append(
            Resource(
                group=spec["group"],
                version=version["name"],
                plural=names["plural"],
                kind=names["kind"],
                namespaced=spec["scope"] == "Namespaced",
                singular=names.get("singular") or names["kind"].lower(),
                short_names=tuple(names.get("shortNames") or ()),
                categories=tuple(names.get("categories") or ()),
                has_status="status" in below,
                list_kind=names.get("listKind") or f"{names['kind']}List",
                custom=Custom(version, storage),
            )
        )
    return made


def serve(registry: Registry, definition: Object) -> None:
    """Serve what a CRD defines, and no longer what it defined before."""
    withdraw(registry, definition)
    for resource in resources_of(definition):
        registry.add(resource)


def withdraw(registry: Registry, definition: Object) -> None:
    """Serve nothing of a CRD any more."""
    spec = definition["spec"]
    if registry.any_version(spec["group"], spec["names"]["plural"]) is not None:
        registry.remove(spec["group"], spec["names"]["plural"])
