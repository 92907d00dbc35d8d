"""What is wrong with an expression before it is evaluated: types that can never fit, as the Go implementation finds them.

Nothing is told of what nobody here knows: names without a declared type, and functions that say too little. Texts and rules
follow cel-go (`checker/checker.go`, `cel/validator.go`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from . import ast, types
from .calls import resolved
from .operators import declared
from .types import DYN, ERROR, UNKNOWN, Free, Type, Unifier, list_of, map_of, optional_of, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from .functions.registry import Overload

    Functions = Mapping[tuple[str, bool], tuple[Overload, ...]]


class Rule(Enum):
    """What refuses an expression."""

    LANGUAGE = "language"
    """No implementation evaluates it."""
    TYPES = "types"
    """An implementation that checks types does not compile it."""
    MIXED = "mixed"
    """An environment in which lists and maps hold one type does not compile it, as Kubernetes' own."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong, in the Go implementation's words, at a character of the expression."""

    message: str
    at: int
    rule: Rule


@dataclass(frozen=True, slots=True)
class Checked:
    """The type that an expression comes to, and what is wrong with it in the order of its places."""

    type: Type
    faults: tuple[Fault, ...]


VARIABLES: Final = "variables"
"""The type of the variables of a policy, whose fields have their own types."""

OBJECTS: Final[Mapping[str, Type]] = MappingProxyType({"object": DYN, "oldObject": DYN})
"""What every policy about objects reads: they are of any kind."""


def check(tree: ast.Node, functions: Functions, names: Mapping[str, Type] = OBJECTS) -> Checked:
    """Check an expression that may call `functions` and read `names`; names without a type are not judged.

    `names` also says of types what fields they have: `variables.x`.
    """
    checker = _Checker(functions, names)
    found = checker.settled(checker.of(tree))
    return Checked(found, tuple(sorted(checker.faults(), key=lambda fault: fault.at)))


_TYPES_OF: Final[dict[type, str]] = {
    type(None): "null", bool: "bool", int: "int", float: "double", str: "string", bytes: "bytes",
}  # fmt: skip
_TESTS: Final = frozenset(("all", "exists", "exists_one"))
_PATCH: Final = {"op": "string", "path": "string", "from": "string", "value": DYN}
_MOMENTS: Final = {"google.protobuf.Timestamp": "timestamp", "google.protobuf.Duration": "duration"}


class _Checker:
    def __init__(self, functions: Functions, names: Mapping[str, Type]) -> None:
        self._functions = functions
        self._names = names
        self._locals: dict[str, Type] = {}
        self._unifier = Unifier()
        self._faults: list[Fault] = []
        self._literals: list[list[tuple[Type, int]]] = []
        self._formatting = 0

    def settled(self, kind: Type) -> Type:
        return self._unifier.settled(kind, is_final=True)

    def faults(self) -> Iterable[Fault]:
        """Return all faults; whether literals hold one type is known only when everything else is."""
        return (*self._faults, *filter(None, map(self._mixed, self._literals)))

    def _mixed(self, parts: list[tuple[Type, int]]) -> Fault | None:
        kinds = [(self.settled(kind), at) for kind, at in parts]
        if any(types.mentions(kind, one) for kind, _ in kinds for one in (UNKNOWN, ERROR)):
            return None
        first = kinds[0][0]
        for kind, at in kinds:
            if kind != first:
                text = f"expected type '{shown(first)}' but found '{shown(kind)}'"
                return Fault(text, at, Rule.MIXED)
        return None

    def of(self, node: ast.Node) -> Type:
        return _VISITS[type(node)](self, node)

    def fault(self, message: str, at: int, rule: Rule = Rule.TYPES) -> Type:
        self._faults.append(Fault(message, at, rule))
        return ERROR

    def literal(self, node: ast.Literal) -> Type:
        return _TYPES_OF.get(type(node.value), "uint")

    def ident(self, node: ast.Ident) -> Type:
        if not node.absolute and node.name in self._locals:
            return self._locals[node.name]
        return self._names.get(node.name, UNKNOWN)

    def select(self, node: ast.Select) -> Type:
        found = self._field(self.of(node.operand), node)
        return "bool" if node.test else found

    def _field(self, operand: Type, node: ast.Select) -> Type:
        kind = self._unifier.settled(operand)
        is_optional = types.head(kind) == "optional_type"
        kind = types.parts(kind)[0] if is_optional else kind
        name = types.head(kind)
        if name == "map":
            found = types.parts(kind)[1]
        elif isinstance(kind, Free) or types.is_open(kind):
            found = UNKNOWN if kind == UNKNOWN else DYN
        elif name in types.SCALARS or name in ("list", "timestamp", "duration"):
            text = f"type '{shown(self.settled(kind))}' does not support field selection"
            is_sure = name in types.SCALARS and name != "type"
            found = self.fault(text, node.at, Rule.LANGUAGE if is_sure else Rule.TYPES)
        else:
            found = self._names.get(f"{name}.{node.field}", UNKNOWN)
            if found == UNKNOWN and f"{name}.{types.CLOSED}" in self._names:
                found = self._undefined(name, node)
        return optional_of(found) if is_optional or node.optional else found

    def _undefined(self, name: str, node: ast.Select) -> Type:
        """Tell of a field that its type does not have; what is only not known is none."""
        if f"{name}.{node.field}" in self._names:
            return UNKNOWN
        return self.fault(f"undefined field '{node.field}'", node.at)

    def index(self, node: ast.Index) -> Type:
        name = "_[?_]" if node.optional else "_[_]"
        operand, key = self.of(node.operand), self.of(node.key)
        if operand == VARIABLES:
            return UNKNOWN
        return self._operator(name, (operand, key), node.at)

    def _operator(self, name: str, given: tuple[Type, ...], at: int) -> Type:
        return self._overloaded(name, declared(name), given, at)

    def _overloaded(
        self, name: str, overloads: Iterable[tuple[Type, ...]], given: tuple[Type, ...], at: int,
        *, is_method: bool = False,
    ) -> Type:  # fmt: skip
        """Return what the overloads that take these types give, open where they differ."""
        found: Type | None = None
        for overload in overloads:
            *wanted, result = types.fresh(overload)
            if not self._unifier.fit(given, tuple(wanted)):
                continue
            result = self._unifier.settled(result)
            if found is None:
                found = result
            elif not types.is_open(found) and found != result:
                found = UNKNOWN if types.mentions(found, UNKNOWN) else DYN
        if found is not None:
            return found
        texts = [shown(self.settled(kind)) for kind in given]
        receiver = f"{texts.pop(0)}." if is_method else ""
        text = (
            f"found no matching overload for '{name}' applied to '{receiver}({', '.join(texts)})'"
        )
        return self.fault(text, at)

    def call(self, node: ast.Call) -> Type:
        overloads, arguments = resolved(self._functions, node, self._locals)
        self._formatting += node.name == "format"
        given = tuple(map(self.of, arguments))
        self._formatting -= node.name == "format"
        if not overloads:
            return UNKNOWN
        if node.name == "orValue":
            return self._or_value(*given)
        is_method = overloads[0].is_method
        fitting = [_stretched(one, len(given)) for one in overloads if one.accepts(len(given))]
        if not fitting and len(overloads[0].kinds) == 0 == len(given):
            return UNKNOWN
        prefix = "" if is_method or node.target is None else overloads[0].name
        return self._overloaded(prefix or node.name, fitting, given, node.at, is_method=is_method)

    def _or_value(self, held: Type, *instead: Type) -> Type:
        """Return the type of `x.orValue(d)`, which policies of Kyverno also say of what is no optional."""
        kind = self._unifier.settled(held)
        if types.head(kind) != "optional_type" or len(instead) != 1:
            return UNKNOWN
        inner = types.parts(kind)[0]
        found = self._unifier.joined(inner, instead[0])
        return UNKNOWN if found is None or types.is_open(found) else self._unifier.settled(found)

    def unary(self, node: ast.Unary) -> Type:
        return self._operator(f"{node.operator}_", (self.of(node.operand),), node.at)

    def chain(self, node: ast.Chain) -> Type:
        found = self.of(node.first)
        for operator, part, at in node.rest:
            name = "@in" if operator == "in" else f"_{operator}_"
            found = self._operator(name, (found, self.of(part)), at)
        return found

    def logic(self, node: ast.Logic) -> Type:
        for part in node.parts:
            self._expect_bool(self.of(part), part.at)
        return "bool"

    def _expect_bool(self, kind: Type, at: int) -> None:
        if not self._unifier.fit((kind,), ("bool",)):
            self.fault(f"expected type 'bool' but found '{shown(self.settled(kind))}'", at)

    def choice(self, node: ast.Choice) -> Type:
        found = self.of(node.otherwise)
        for test, value in reversed(node.cases):
            found = self._operator("_?_:_", (self.of(test), self.of(value), found), test.at)
        return found

    def listed(self, node: ast.ListLiteral) -> Type:
        kinds = [self._part(item, is_optional=optional) for item, optional in node.items]
        return list_of(self._common(kinds))

    def _part(self, node: ast.Node, *, is_optional: bool) -> tuple[Type, int]:
        """Return the type of a part of a literal and its place; of an optional part, what it holds."""
        kind = self.of(node)
        if not is_optional:
            return kind, node.at
        kind = self._unifier.settled(kind)
        if types.head(kind) == "optional_type":
            return types.parts(kind)[0], node.at
        if not types.is_open(kind):
            text = f"expected type '{shown(optional_of(kind))}' but found '{shown(kind)}'"
            self.fault(text, node.at)
        return UNKNOWN, node.at

    def _common(self, kinds: list[tuple[Type, int]]) -> Type:
        if not kinds:
            return Free()
        if not self._formatting:
            self._literals.append(kinds)
        common: Type | None = kinds[0][0]
        for kind, _ in kinds[1:]:
            common = DYN if common is None else self._unifier.joined(common, kind)
        return DYN if common is None else common

    def mapped(self, node: ast.MapLiteral) -> Type:
        keys = [self._part(key, is_optional=False) for key, _, _ in node.entries]
        values = [self._part(value, is_optional=optional) for _, value, optional in node.entries]
        return map_of(self._common(keys), self._common(values))

    def message(self, node: ast.MessageLiteral) -> Type:
        fields = _PATCH if node.name == "JSONPatch" else {}
        for name, value, is_optional, at in node.entries:
            kind, _ = self._part(value, is_optional=is_optional)
            wanted = fields.get(name, UNKNOWN)
            if not self._unifier.fit((wanted,), (kind,)):
                self.fault(
                    f"expected type of field '{name}' is '{shown(wanted)}' but provided type is"
                    f" '{shown(self.settled(kind))}'",
                    at,
                )
        if node.name.startswith("google."):
            return _MOMENTS.get(node.name, UNKNOWN)
        return node.name

    def comprehension(self, node: ast.Comprehension) -> Type:
        source = self._unifier.settled(self.of(node.source))
        first, second = self._elements(source, node)
        names = {node.first: first} | ({node.second: second} if node.second else {})
        if node.filter is not None:
            self._test(self._within(names, node.filter), node.filter.at)
        body = self._within(names, node.body)
        if node.kind in _TESTS or node.kind == "filter":
            self._test(body, node.body.at)
        return _results(node, source, first, body)

    def _test(self, kind: Type, at: int) -> None:
        self._expect_bool(kind, at)

    def _elements(self, source: Type, node: ast.Comprehension) -> tuple[Type, Type]:
        """Return the types of a comprehension's names: of a list its elements, of a map its keys."""
        if types.head(source) == "list":
            element = types.parts(source)[0]
            return ("int", element) if node.second else (element, ERROR)
        if types.head(source) == "map":
            key, value = types.parts(source)
            return key, value
        if isinstance(source, Free) or types.is_open(source):
            kind = UNKNOWN if source in (UNKNOWN, ERROR) else DYN
            return kind, kind
        text = (
            f"expression of type '{shown(self.settled(source))}' cannot be range of a comprehension"
            " (must be list, map, or dynamic)"
        )
        self.fault(text, node.source.at)
        return ERROR, ERROR

    def _within(self, names: Mapping[str, Type], node: ast.Node) -> Type:
        outer = self._locals
        self._locals = {**outer, **names}
        try:
            return self.of(node)
        finally:
            self._locals = outer

    def bind(self, node: ast.Bind) -> Type:
        value = self._unifier.settled(self.of(node.value))
        if node.kind == "bind":
            return self._within({node.name: value}, node.body)
        held: Type = DYN if value == DYN else UNKNOWN
        if types.head(value) == "optional_type":
            held = types.parts(value)[0]
        elif not isinstance(value, Free) and not types.is_open(value):
            given = shown(self.settled(value))
            self.fault(
                f"found no matching overload for 'hasValue' applied to '{given}.()'", node.at
            )
        body = self._within({node.name: held}, node.body)
        return optional_of(body) if node.kind == "optMap" else body


def _stretched(overload: Overload, count: int) -> tuple[Type, ...]:
    """Return what an overload takes and gives, its last parameter as often as there are arguments."""
    *taken, given = overload.types()
    return (*taken, *taken[-1:] * (count - len(taken)), given)


def _results(node: ast.Comprehension, source: Type, first: Type, body: Type) -> Type:
    """Return the type of a comprehension, whose first name and body have these types."""
    if node.kind in _TESTS:
        return "bool"
    if node.kind == "filter":
        return source if types.head(source) == "list" else list_of(first)
    if node.kind == "sortBy":
        return source
    if node.kind in ("map", "transformList"):
        return list_of(body)
    return map_of(first, body) if node.kind == "transformMap" else UNKNOWN


_VISITS: Final[dict[type[ast.Node], Callable[[_Checker, Any], Type]]] = {
    ast.Literal: _Checker.literal,
    ast.Ident: _Checker.ident,
    ast.Select: _Checker.select,
    ast.Index: _Checker.index,
    ast.Call: _Checker.call,
    ast.Unary: _Checker.unary,
    ast.Chain: _Checker.chain,
    ast.Logic: _Checker.logic,
    ast.Choice: _Checker.choice,
    ast.ListLiteral: _Checker.listed,
    ast.MapLiteral: _Checker.mapped,
    ast.MessageLiteral: _Checker.message,
    ast.Comprehension: _Checker.comprehension,
    ast.Bind: _Checker.bind,
}
