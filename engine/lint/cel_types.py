"""What the schemas of kinds say about CEL expressions: fields that no object of the kind has, and comparisons that cannot be.

For the webhook, which warns of them when a policy is written (Kubernetes does so for ValidatingAdmissionPolicies). Schemas come
in as OpenAPI v3 documents of the server. Whatever a schema leaves open is taken for anything, so that nothing is warned of wrongly.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from engine.fields import items
from engine.lang import cel
from engine.lang.cel import ast
from engine.lang.cel.errors import place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from engine.model import Block, Rule

    Shape = Mapping[str, Any] | None
    Scope = Mapping[str, Shape]

_COMPARISONS: Final = frozenset({"==", "!=", "<", "<=", ">", ">="})
_NAMES: Final = {"string": "string", "boolean": "bool", "integer": "int", "number": "double"}
_NUMBERS: Final = frozenset({"int", "double"})
_OPENINGS: Final = ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource")
_ESCAPED: Final = {"dot": ".", "dash": "-", "slash": "/", "underscores": "__"}
_ESCAPE: Final = re.compile("__([a-z]+)__")
_SAME_ELEMENTS: Final = frozenset({"filter", "sortBy"})
_MOST_REFERENCES: Final = 32
_PARTS: Final = {
    "matchConditions": ("expression",),
    "validations": ("expression", "messageExpression"),
    "auditAnnotations": ("valueExpression",),
}
"""Where a policy written in CEL holds expressions about objects, beside its variables."""

_BOOL: Final[Mapping[str, Any]] = {"type": "boolean"}


class Schemas:
    """The schemas of one OpenAPI v3 document; references between them are followed here."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._named: Mapping[str, Any] = (document.get("components") or {}).get("schemas") or {}

    def of_kind(self, group: str, version: str, kind: str) -> Shape:
        """Return the schema of a kind, None where the document has none."""
        wanted = {"group": group, "version": version, "kind": kind}
        for found in self._named.values():
            if wanted in (found.get("x-kubernetes-group-version-kind") or ()):
                return self.resolved(found)
        return None

    def resolved(self, shape: Shape) -> Shape:
        """Return a schema without the references that stand in its place."""
        for _ in range(_MOST_REFERENCES):
            if not isinstance(shape, dict):
                return None
            every: Any = shape.get("allOf") or ()
            if len(every) == 1:
                shape = every[0]
            elif "$ref" in shape:
                shape = self._named.get(str(shape["$ref"]).rpartition("/")[2])
            else:
                return shape
        return None


def type_warnings(
    expressions: Iterable[str], variables: Iterable[Block], schemas: Schemas, shape: Shape
) -> Iterator[str]:
    """Yield what is wrong with expressions about objects of a shape, as the Go implementation words it, in one line each.

    `variables` are named expressions, each of which may read those before it.
    """
    known: dict[str, Shape] = {}
    holder = {"type": "object", "properties": known, _OPENINGS[0]: True}
    scope: dict[str, Shape] = {**dict.fromkeys(("object", "oldObject"), shape), "variables": holder}
    for variable in variables:
        check = _Check(schemas)
        known[str(variable.get("name", ""))] = check.of_text(variable.get("expression"), scope)
        yield from check.found
    for text in expressions:
        check = _Check(schemas)
        check.of_text(text, scope)
        yield from check.found


def rule_warnings(rule: Rule, schemas: Schemas, shape: Shape) -> Iterator[str]:
    """Yield what is wrong with the expressions of a classic rule about objects of a shape."""
    block: Block = (rule.validate or {}).get("cel") or {}
    as_policy = {
        **block,
        "matchConditions": list(rule.cel_preconditions),
        "validations": block.get("expressions"),
    }
    yield from policy_warnings(as_policy, schemas, shape)


def policy_warnings(spec: Block, schemas: Schemas, shape: Shape) -> Iterator[str]:
    """Yield what is wrong with the expressions of a policy written in CEL about objects of a shape."""
    texts: list[str] = []
    for part, names in _PARTS.items():
        for one in items(spec, part):
            texts += [str(one.get(name) or "") for name in names]
    yield from type_warnings(filter(None, texts), items(spec, "variables"), schemas, shape)


class _Check:
    """Goes over one expression; `found` are the texts about it."""

    def __init__(self, schemas: Schemas) -> None:
        self.found: list[str] = []
        self._schemas = schemas
        self._source = ""

    def of_text(self, text: object, scope: Scope) -> Shape:
        """Return the shape of an expression's value; one that does not compile is refused elsewhere."""
        program = cel.readable(text)
        if program is None:
            return None
        self._source = program.source
        return self._of(program.tree, scope)

    def _of(self, node: ast.Node, scope: Scope) -> Shape:
        visit = _VISITS.get(type(node))
        return self._schemas.resolved(visit(self, node, scope)) if visit is not None else None

    def _fail(self, at: int, message: str) -> None:
        line, column = place(self._source, at)
        shown = self._source.split("\n")[line - 1]
        mark = "." * (column - 1) + "^"
        self.found.append(f"ERROR: <input>:{line}:{column}: {message}; | {shown}; | {mark};")

    def ident(self, node: ast.Ident, scope: Scope) -> Shape:
        return scope.get(node.name)

    def select(self, node: ast.Select, scope: Scope) -> Shape:
        shape = self._of(node.operand, scope)
        if shape is None:
            return _BOOL if node.test else None
        part = self._field(shape, node.field, node.at)
        return _BOOL if node.test else part

    def _field(self, shape: Mapping[str, Any], name: str, at: int) -> Shape:
        kind = _scalar(shape)
        if kind:
            self._fail(at, f"type '{kind}' does not support field selection")
            return None
        properties = shape.get("properties") or {}
        for spelling in (name, _unescaped(name)):
            if spelling in properties:
                return self._schemas.resolved(properties[spelling])
        if _is_open(shape):
            more = shape.get("additionalProperties")
            return self._schemas.resolved(more if isinstance(more, dict) else None)
        self._fail(at, f"undefined field '{name}'")
        return None

    def index(self, node: ast.Index, scope: Scope) -> Shape:
        shape = self._of(node.operand, scope)
        self._of(node.key, scope)
        if shape is None:
            return None
        more = shape.get("additionalProperties")
        return shape.get("items") or (more if isinstance(more, dict) else None)

    def call(self, node: ast.Call, scope: Scope) -> Shape:
        target = self._of(node.target, scope) if node.target is not None else None
        for argument in node.arguments:
            self._of(argument, scope)
        return target if node.name in ("value", "orValue") else None

    def chain(self, node: ast.Chain, scope: Scope) -> Shape:
        left = self._of(node.first, scope)
        for operator, part, at in node.rest:
            right = self._of(part, scope)
            if operator not in _COMPARISONS:
                left = None
                continue
            one, other = _scalar(left), _scalar(right)
            if one and other and one != other and not {one, other} <= _NUMBERS:
                text = f"found no matching overload for '_{operator}_' applied to '({one}, {other})'"  # fmt: skip
                self._fail(at, text)
            left = _BOOL
        return left

    def logic(self, node: ast.Logic, scope: Scope) -> Shape:
        for part in node.parts:
            self._of(part, scope)
        return _BOOL

    def unary(self, node: ast.Unary, scope: Scope) -> Shape:
        shape = self._of(node.operand, scope)
        return _BOOL if node.operator == "!" else shape

    def choice(self, node: ast.Choice, scope: Scope) -> Shape:
        values = [self._of(node.otherwise, scope)]
        for test, value in node.cases:
            self._of(test, scope)
            values.append(self._of(value, scope))
        return values[0] if all(value == values[0] for value in values) else None

    def listed(self, node: ast.ListLiteral, scope: Scope) -> Shape:
        for item, _ in node.items:
            self._of(item, scope)
        return None

    def mapped(self, node: ast.MapLiteral, scope: Scope) -> Shape:
        for key, value, _ in node.entries:
            self._of(key, scope)
            self._of(value, scope)
        return None

    def message(self, node: ast.MessageLiteral, scope: Scope) -> Shape:
        for _, value, _, _ in node.entries:
            self._of(value, scope)
        return None

    def literal(self, node: ast.Literal, _: Scope) -> Shape:
        kinds = {str: "string", bool: "boolean", int: "integer", float: "number"}
        kind = kinds.get(type(node.value))
        return {"type": kind} if kind else None

    def comprehension(self, node: ast.Comprehension, scope: Scope) -> Shape:
        shape = self._of(node.source, scope)
        inside = {**scope, **_elements(node, shape)}
        if node.filter is not None:
            self._of(node.filter, inside)
        body = self._of(node.body, inside)
        if node.kind in _SAME_ELEMENTS:
            return shape
        if node.kind == "map":
            return {"type": "array", "items": body} if body is not None else None
        return None

    def bind(self, node: ast.Bind, scope: Scope) -> Shape:
        value = self._of(node.value, scope)
        body = self._of(node.body, {**scope, node.name: value})
        return None if node.kind == "optFlatMap" else body


_VISITS: Final[dict[type, Callable[[_Check, Any, Any], Any]]] = {
    ast.Ident: _Check.ident,
    ast.Select: _Check.select,
    ast.Index: _Check.index,
    ast.Call: _Check.call,
    ast.Chain: _Check.chain,
    ast.Logic: _Check.logic,
    ast.Unary: _Check.unary,
    ast.Choice: _Check.choice,
    ast.ListLiteral: _Check.listed,
    ast.MapLiteral: _Check.mapped,
    ast.MessageLiteral: _Check.message,
    ast.Literal: _Check.literal,
    ast.Comprehension: _Check.comprehension,
    ast.Bind: _Check.bind,
}


def _elements(node: ast.Comprehension, shape: Shape) -> dict[str, Shape]:
    """Return the shapes of a comprehension's names: of a list its elements, of a map its keys."""
    more = (shape or {}).get("additionalProperties")
    element = (shape or {}).get("items") or (more if isinstance(more, dict) else None)
    if node.second:
        return {node.first: None, node.second: element}
    return {node.first: element if (shape or {}).get("type") == "array" else None}


def _scalar(shape: Shape) -> str:
    """Return CEL's name of a scalar's type, nothing where the schema leaves it open."""
    if shape is None or shape.get("format") in _ODD_FORMATS or shape.get("nullable"):
        return ""
    if any(shape.get(name) for name in _OPENINGS) or shape.get("x-kubernetes-int-or-string"):
        return ""
    if shape.get("oneOf") or shape.get("anyOf"):
        return ""
    return _NAMES.get(str(shape.get("type")), "")


_ODD_FORMATS: Final = frozenset({"int-or-string", "date-time", "date", "duration", "byte", "quantity"})  # fmt: skip


def _is_open(shape: Mapping[str, Any]) -> bool:
    """Tell whether objects may have fields that the schema does not name."""
    if any(shape.get(name) for name in _OPENINGS) or shape.get("x-kubernetes-int-or-string"):
        return True
    if shape.get("oneOf") or shape.get("anyOf") or shape.get("allOf"):
        return True
    return bool(shape.get("additionalProperties")) or not shape.get("properties")


def _unescaped(name: str) -> str:
    """Return the property that a name of an expression stands for (Kubernetes escapes what is no name or a keyword)."""

    def meant(found: re.Match[str]) -> str:
        return _ESCAPED.get(found[1], found[1])

    return _ESCAPE.sub(meant, name) if "__" in name else name
