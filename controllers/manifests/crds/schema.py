"""Structural OpenAPI v3 schemas from the engine's field tables: what a CustomResourceDefinition says about a document.

Apart from the tables of kinds because it knows nothing of kinds. Parts that belong to another language (patterns, patches,
values) accept anything, as does whatever may hold itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.parse.schema import (
    Flag,
    Free,
    Later,
    ListOf,
    MapOf,
    MapOrList,
    Node,
    Shape,
    Text,
    Whole,
)

from .words import WORDS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from engine.model import Object

ANYTHING = "x-kubernetes-preserve-unknown-fields"


def schema_of(
    node: Node, *, defaults: Collection[str] = (), words: Mapping[str, str] = WORDS
) -> Object:
    """Return the schema of a node; `words` say what fields mean, by name.

    `defaults` names the fields of the node itself whose defaults are written into it. Others are left to the engine: a
    default that the server adds makes GitOps tools see a change.
    """
    match node:
        case Shape():
            return _shape(node, defaults, words)
        case ListOf():
            return {"type": "array", "items": schema_of(node.items, words=words)}
        case MapOf():
            return {"type": "object", "additionalProperties": schema_of(node.values, words=words)}
        case Free() | MapOrList() | Later():
            return {ANYTHING: True}
        case Text() | Flag() | Whole():
            return _scalar(node)


def _shape(node: Shape, defaults: Collection[str], words: Mapping[str, str]) -> Object:
    made: Object = {"type": "object"}
    if node.fields:
        made["properties"] = {
            name: _described(
                name,
                _field(field, words, has_default=node.filled_in or name in defaults),
                words,
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


def _field(node: Node, words: Mapping[str, str], *, has_default: bool) -> Object:
    made = schema_of(node, words=words)
    if has_default and isinstance(node, Text | Flag | Whole) and node.default is not None:
        made["default"] = node.default
    return made


def _described(name: str, schema: Object, words: Mapping[str, str]) -> Object:
    return {"description": words[name], **schema} if name in words else schema


def _scalar(node: Text | Flag | Whole) -> Object:
    match node:
        case Text():
            return _filled(type="string", enum=list(node.enum) or None, maxLength=node.longest)
        case Flag():
            return {"type": "boolean"}
        case Whole():
            return _filled(type="integer", format="int64", minimum=node.least, maximum=node.most)


def _filled(**fields: Any) -> Object:
    return {name: value for name, value in fields.items() if value is not None}
