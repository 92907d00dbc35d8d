"""Checks of CEL expressions: that they compile, and that they read nothing that will not be there.

For every list of expressions that a policy, an exception or a native policy holds. What an expression comes to on an
object is not asked here.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from engine.lang import cel
from engine.lang.cel.ast import Ident, Index, Literal, Node, Select, walk
from engine.lang.cel.errors import place
from engine.lang.cel.functions.cluster import misplaced_calls
from engine.lang.cel.values import TYPES

from .cel_outputs import check_output
from .cel_scopes import NO_SCOPE, Scope
from .findings import Finding, error, invalid, warning
from .spelling import misspelt

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from engine.lang.cel import Program
    from engine.model import Block


NAMES = frozenset(
    {"object", "oldObject", "request", "params", "namespaceObject", "authorizer", "variables"}
)
"""What Kubernetes lets the expressions of admission policies read."""

OF_POLICIES = NAMES - {"params", "authorizer"} | {"exceptions"}
"""What those of Kyverno's policies read."""


def check_expression(
    text: object,
    path: str,
    names: Collection[str],
    scope: Scope | None = None,
    *,
    wanted: tuple[str, ...] = (),
    fault: str = "",
) -> Iterator[Finding]:
    """Yield what is wrong with one expression; without a `scope` the variables that it reads are left unchecked.

    Where `wanted` types are given it has to come to one of them, or else that is a `fault`.
    """
    yield from _check_text(text, path, names, scope)
    if wanted:
        found = (scope or NO_SCOPE).output(text)
        yield from check_output(text, path, found, *wanted, fault=fault)


def _check_text(
    text: object, path: str, names: Collection[str], scope: Scope | None
) -> Iterator[Finding]:
    source = str(text or "").strip()
    if not source:
        yield error(path, "Required value: expression is empty")
        return
    try:
        program = cel.compile(source)
    except cel.CelSyntaxError as failure:
        yield _failed(path, source, failure.position, failure.message)
        return
    for name in sorted(program.names):
        if name not in names and name not in TYPES:
            text_of = f"undeclared reference to '{name}' (in container '')"
            yield _failed(path, source, _place_of(program, name), text_of)
    for fault in (scope or NO_SCOPE).faults(program):
        yield _failed(path, source, fault.at, fault.message)
    for one in misspelt(_selected(program), ("request", "object", "oldObject")):
        yield warning(path, one.message, one.fix)
    if scope is not None:
        for name, at in sorted(read_variables(program).items()):
            if name not in scope.variables:
                yield _failed(path, source, at, f"undefined field '{name}'")


def _failed(path: str, source: str, position: int, message: str) -> Finding:
    line, column = place(source, position)
    place_of = f"ERROR: <input>:{line}:{column}: {message}"
    return invalid(path, source, f"compilation failed: {place_of}")


def _selected(program: Program) -> Iterator[tuple[str, ...]]:
    """Yield the rows of fields that an expression selects from a name, the name first."""
    for node in walk(program.tree):
        names: list[str] = []
        while isinstance(node, Select):
            names.append(node.field)
            node = node.operand
        if names and isinstance(node, Ident):
            yield (node.name, *reversed(names))


def _place_of(program: Program, name: str) -> int:
    """Return where an expression first reads a name."""
    places = [
        node.at for node in walk(program.tree) if isinstance(node, Ident) and node.name == name
    ]
    return min(places, default=0)


def check_named(
    blocks: Sequence[Block],
    path: str,
    names: Collection[str],
    scope: Scope,
    *,
    key: str = "name",
    expression: str = "expression",
    wanted: tuple[str, ...] = (),
) -> Iterator[Finding]:
    """Yield what is wrong with a list of named expressions, which come to one of the `wanted` types where some are given."""
    counts = Counter(str(block.get(key, "")) for block in blocks)
    for index, block in enumerate(blocks):
        place, name = f"{path}[{index}]", str(block.get(key, ""))
        if not name:
            yield error(f"{place}.{key}", "Required value")
        elif counts[name] > 1:
            yield error(f"{place}.{key}", f'Duplicate value: "{name}"')
            counts[name] = 0
        at = f"{place}.{expression}"
        yield from check_expression(block.get(expression), at, names, scope, wanted=wanted)


def check_variables(
    blocks: Sequence[Block], path: str, names: Collection[str], scope: Scope
) -> Iterator[Finding]:
    """Yield what is wrong with the variables of a policy; each may read those before it."""
    yield from check_named(blocks, path, names, scope)
    for index, block in enumerate(blocks):
        later = set(scope.variables[index:])
        if (program := cel.readable(block.get("expression"))) is None:
            continue
        for name, at in sorted(read_variables(program).items()):
            if name in later:
                text = f"undefined field '{name}'"
                yield _failed(f"{path}[{index}].expression", program.source, at, text)


def read_variables(program: Program) -> dict[str, int]:
    """Return the names that an expression reads from `variables`, as far as they are written out, and where."""
    found: dict[str, int] = {}
    for node in walk(program.tree):
        if name := _variable(node):
            found[name] = min(node.at, found.get(name, node.at))
    return found


def check_scope_of_calls(text: object, path: str, *, is_namespaced: bool) -> Iterator[Finding]:
    """Yield an error for each call of a function as only policies of the other scope make it."""
    if (program := cel.readable(text)) is not None:
        for call in misplaced_calls(program.tree, is_namespaced=is_namespaced):
            fault = f"found no matching overload for '{call.name}'"
            yield _failed(path, program.source, call.at, fault)


def reads(text: object, name: str) -> bool:
    """Tell whether an expression that can be read says a name, be it of a value or of a library."""
    nodes = walk(program.tree) if (program := cel.readable(text)) else ()
    return any(isinstance(node, Ident) and node.name == name for node in nodes)


def _variable(node: Node) -> str:
    match node:
        case Select(operand=Ident(name="variables"), field=name, optional=False, test=False):
            return name
        case Index(operand=Ident(name="variables"), key=Literal(value=str(name))):
            return name
    return ""
