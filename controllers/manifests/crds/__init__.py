"""CustomResourceDefinitions, made from the engine's field tables.

For `kubectl kpolicy install`, the sandbox and tests. `definitions()` is the one source; nothing is stored as text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from controllers.kube.kinds import CRDS
from controllers.manifests.choice import labels_of
from engine import vocabulary
from engine.parse import schema

from . import native
from .kinds import KINDS, Column, CustomKind
from .words import WORDS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from engine.model import Object

__all__ = ["KINDS", "Column", "CustomKind", "all_kinds", "definition", "definitions", "schema_of"]

OWNER = {vocabulary.OWNER: "kpolicy"}
"""Marks what was installed by us and not by Kyverno; detection and removal go by it."""

_HEAD = {
    "apiVersion": {"description": "The version of the schema of this object.", "type": "string"},
    "kind": {"description": "The kind of this object.", "type": "string"},
    "metadata": {"type": "object"},
}


def definitions() -> list[Object]:
    """Return every CustomResourceDefinition, in the order in which to install them."""
    return [definition(kind) for kind in all_kinds()]


def all_kinds() -> tuple[CustomKind, ...]:
    """Return every kind that is installed: the classic ones, those of CEL, and our own."""
    return (*KINDS, *native.KINDS)


def definition(kind: CustomKind) -> Object:
    """Return the CustomResourceDefinition of one kind."""
    stored = next(iter(kind.versions))
    spec = {
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
    }
    return CRDS.document(kind.name, labels=labels_of("crds"), annotations={**OWNER}, spec=spec)


def _version(
    kind: CustomKind, version: str, fields: Mapping[str, schema.Node], *, is_stored: bool
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


def _document(kind: CustomKind, fields: Mapping[str, schema.Node]) -> Object:
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


# Structural OpenAPI v3 schemas from the engine's field tables: what a CustomResourceDefinition says about a document.
#
# Apart from the tables of kinds because it knows nothing of kinds. Parts that belong to another language (patterns, patches,
# values) accept anything, as does whatever may hold itself.

ANYTHING = "x-kubernetes-preserve-unknown-fields"
_LIST = "x-kubernetes-list"


def schema_of(
    node: schema.Node, *, defaults: Collection[str] = (), words: Mapping[str, str] = WORDS
) -> Object:
    """Return the schema of a node; `words` say what fields mean, by name.

    `defaults` names the fields of the node itself whose defaults are written into it. Others are left to the engine: a
    default that the server adds makes GitOps tools see a change.
    """
    match node:
        case schema.Shape():
            return _shape(node, defaults, words)
        case schema.ListOf():
            made = {"type": "array", "items": schema_of(node.items, words=words)}
            if node.key:
                made |= {f"{_LIST}-type": "map", f"{_LIST}-map-keys": [node.key]}
            return {**made, f"{_LIST}-type": "set"} if node.unique else made
        case schema.MapOf():
            return {"type": "object", "additionalProperties": schema_of(node.values, words=words)}
        case schema.Free() | schema.MapOrList() | schema.Later():
            return {ANYTHING: True}
        case schema.Text() | schema.Flag() | schema.Whole():
            return _scalar(node)


def _shape(node: schema.Shape, defaults: Collection[str], words: Mapping[str, str]) -> Object:
    made: Object = {"type": "object"}
    if node.fields:
        made["properties"] = {
            name: _described(
                name, _field(field, words, has_default=node.filled_in or name in defaults), words
            )
            for name, field in sorted(node.fields.items())
        }
    if node.required:
        made["required"] = sorted(node.required)
    if node.filled_in:
        made["default"] = {}
    if node.open:
        made[ANYTHING] = True
    if node.one_of:
        made["oneOf"] = [{"required": [name]} for name in node.one_of]
    return made


def _field(node: schema.Node, words: Mapping[str, str], *, has_default: bool) -> Object:
    made = schema_of(node, words=words)
    if (
        has_default
        and isinstance(node, schema.Text | schema.Flag | schema.Whole)
        and node.default is not None
    ):
        made["default"] = node.default
    return made


def _described(name: str, plain: Object, words: Mapping[str, str]) -> Object:
    return {"description": words[name], **plain} if name in words else plain


def _scalar(node: schema.Text | schema.Flag | schema.Whole) -> Object:
    match node:
        case schema.Text():
            return _filled(type="string", enum=list(node.enum) or None, maxLength=node.longest)
        case schema.Flag():
            return {"type": "boolean"}
        case schema.Whole():
            return _filled(type="integer", format="int64", minimum=node.least, maximum=node.most)


def _filled(**fields: Any) -> Object:
    return {name: value for name, value in fields.items() if value is not None}
