"""From a CustomResourceDefinition to the resources that it serves, one per served version."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from kpolicy_sandbox.errors import Cause, bad_request, invalid_field
from kpolicy_sandbox.kinds import Registry, Resource
from kpolicy_sandbox.schema.unknown import prune

from . import structural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kpolicy_sandbox.call import Call
    from kpolicy_sandbox.expressions import Expressions

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


# `x-kubernetes-validations` of CRDs: CEL rules over the value at their place.
#
# Transition rules (with `oldSelf`) hold only between two objects, which validation here does not see: they are passed over.


_PASSED_OVER = "rules of the schema (x-kubernetes-validations) are not evaluated: the sandbox was started without `--expressions`"


def rule_causes(
    expressions: Expressions, rules: list[dict[str, Any]], value: Any, path: str
) -> Iterator[Cause]:
    """Yield one cause per rule that does not hold."""
    for rule in rules:
        try:
            program = expressions.compile(rule["rule"])
            if "oldSelf" in program.names or program({"self": value}) is True:
                continue
        except ValueError as error:
            yield _cause(path, f"{rule['rule']}: {error}")
            continue
        yield _cause(path, rule.get("message") or f"failed rule: {rule['rule']}")


def passed_over(warnings: list[str], *_: Any) -> Iterator[Cause]:
    """Yield nothing, and warn once that no rule is evaluated."""
    if _PASSED_OVER not in warnings:
        warnings.append(_PASSED_OVER)
    return iter(())


def _cause(path: str, why: str) -> Cause:
    return invalid_field(path or "<nil>", {}, why)
