"""CustomResourceDefinitions, made from the engine's field tables.

For `kubectl kpolicy install`, the sandbox and tests. `definitions()` is the one source; nothing is stored as text. A module
beside this one whose name begins with `native` adds the kinds of its `KINDS` without being named here.
"""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from . import cel_kinds
from .kinds import KINDS, Column, CustomKind
from .schema import schema_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.model import Object
    from engine.parse.schema import Node

__all__ = ["KINDS", "Column", "CustomKind", "all_kinds", "definition", "definitions", "schema_of"]

LABELS = {
    "app.kubernetes.io/component": "crds",
    "app.kubernetes.io/instance": "kyverno",
    "app.kubernetes.io/part-of": "kyverno",
}
OWNER = {"kpolicy.io/owner": "kpolicy"}
"""Marks what was installed by us and not by Kyverno; detection and removal go by it."""

_HEAD = {
    "apiVersion": {
        "description": "The version of the schema of this object.",
        "type": "string",
    },
    "kind": {"description": "The kind of this object.", "type": "string"},
    "metadata": {"type": "object"},
}


def definitions() -> list[Object]:
    """Return every CustomResourceDefinition, in the order in which to install them."""
    return [definition(kind) for kind in all_kinds()]


@cache
def all_kinds() -> tuple[CustomKind, ...]:
    """Return every kind that is installed: the classic ones, those of CEL, and our own."""
    native = sorted(
        found.name for found in pkgutil.iter_modules(__path__) if found.name.startswith("native")
    )
    modules = [import_module(f".{name}", __name__) for name in native]
    own = [kind for module in modules for kind in getattr(module, "KINDS", ())]
    return (*KINDS, *cel_kinds.KINDS, *own)


def definition(kind: CustomKind) -> Object:
    """Return the CustomResourceDefinition of one kind."""
    stored = next(iter(kind.versions))
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": kind.name, "labels": {**LABELS}, "annotations": {**OWNER}},
        "spec": {
            "group": kind.group,
            "names": {
                "categories": ["kyverno"],
                "kind": kind.kind,
                "listKind": f"{kind.kind}List",
                "plural": kind.plural,
                "shortNames": [kind.short],
                "singular": kind.kind.lower(),
            },
            "scope": "Namespaced" if kind.is_namespaced else "Cluster",
            "versions": [
                _version(kind, version, fields, is_stored=version == stored)
                for version, fields in kind.versions.items()
            ],
        },
    }


def _version(
    kind: CustomKind, version: str, fields: Mapping[str, Node], *, is_stored: bool
) -> Object:
    made: Object = {
        "additionalPrinterColumns": [_column(column) for column in kind.columns],
        "name": version,
        "schema": {"openAPIV3Schema": _document(kind, fields)},
        "served": True,
        "storage": is_stored,
    }
    if kind.has_status:
        made["subresources"] = {"status": {}}
    return made


def _document(kind: CustomKind, fields: Mapping[str, Node]) -> Object:
    # Without a stored default the columns that show a field of the spec would be empty for most objects.
    shown = {column.path.removeprefix(".spec.") for column in kind.columns}
    made: Object = {
        "description": kind.about or f"{kind.kind} of {kind.group}.",
        "type": "object",
        "properties": {
            **_HEAD,
            **{
                name: schema_of(node, defaults=shown, words=kind.words)
                for name, node in fields.items()
            },
        },
    }
    if "spec" in fields:
        made["required"] = ["spec"]
    return made


def _column(column: Column) -> Object:
    made: Object = {"jsonPath": column.path, "name": column.name, "type": column.type}
    return {**made, "priority": column.priority} if column.priority else made
