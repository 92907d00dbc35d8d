"""Checks of CEL expressions: that they compile, and that they read nothing that will not be there.

For every list of expressions that a policy, an exception or a native policy holds. What an expression comes to on an
object is not asked here.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from engine.lang import cel
from engine.lang.cel import types
from engine.lang.cel.ast import Ident, Index, Literal, Node, Select, walk
from engine.lang.cel.checker import OBJECTS, VARIABLES
from engine.lang.cel.errors import place
from engine.lang.cel.values import TYPES

from .cel_outputs import check_output
from .findings import Finding, error, invalid, warning
from .spelling import misspelt

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from engine.lang.cel import Program
    from engine.lang.cel.checker import Checked, Fault
    from engine.lang.cel.types import Type
    from engine.model import Block

NAMES = frozenset(
    {"object", "oldObject", "request", "params", "namespaceObject", "authorizer", "variables"}
)
"""What Kubernetes lets the expressions of admission policies read."""

_LATER = "is defined only after it is read, which other engines refuse"


class Variables(dict[str, "Type"]):
    """The variables that a policy's expressions may read, and the types they come to.

    Lists and maps written out in these expressions hold one type each, but where they `may_mix`.
    """

    def __init__(self, blocks: Iterable[Block] = (), *, may_mix: bool = False) -> None:
        super().__init__()
        self.may_mix = may_mix
        for block in blocks:
            self[str(block.get("name", ""))] = self.output(block.get("expression"))

    def output(self, text: object) -> Type:
        """Return the type that an expression comes to, an unknown one where it cannot be read."""
        try:
            return self.checked(cel.compile(str(text or "").strip())).type
        except cel.CelSyntaxError:
            return types.UNKNOWN

    def checked(self, program: Program) -> Checked:
        """Check an expression that reads these variables."""
        known = {f"{VARIABLES}.{name}": kind for name, kind in self.items()}
        return program.check({**OBJECTS, VARIABLES: VARIABLES, **known})

    def faults(self, program: Program) -> Iterator[Fault]:
        """Yield what keeps an expression from being compiled."""
        for fault in self.checked(program).faults:
            if not (self.may_mix and fault.rule is cel.Rule.MIXED):
                yield fault


NO_VARIABLES = Variables()


def check_expression(
    text: object, path: str, names: Collection[str], variables: Variables | None = None
) -> Iterator[Finding]:
    """Yield what is wrong with one expression; `variables` are those it may read, None leaves them unchecked."""
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
    for fault in (NO_VARIABLES if variables is None else variables).faults(program):
        yield _failed(path, source, fault.at, fault.message)
    for one in misspelt(_selected(program), ("request", "object", "oldObject")):
        yield warning(path, one.message, one.fix)
    if variables is not None:
        for name, at in sorted(read_variables(program).items()):
            if name not in variables:
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
    variables: Variables,
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
        yield from check_expression(
            block.get(expression), f"{place}.{expression}", names, variables
        )
        if wanted:
            output = variables.output(block.get(expression))
            yield from check_output(block.get(expression), f"{place}.{expression}", output, *wanted)


def check_variables(
    blocks: Sequence[Block], path: str, names: Collection[str], variables: Variables
) -> Iterator[Finding]:
    """Yield what is wrong with the variables of a policy; each may read those before it."""
    known = [str(block.get("name", "")) for block in blocks]
    yield from check_named(blocks, path, names, variables)
    for index, block in enumerate(blocks):
        for name in sorted(_read(block.get("expression")) & set(known[index:])):
            yield warning(f"{path}[{index}].expression", f"variable `{name}` {_LATER}")


def read_variables(program: Program) -> dict[str, int]:
    """Return the names that an expression reads from `variables`, as far as they are written out, and where."""
    found: dict[str, int] = {}
    for node in walk(program.tree):
        if name := _variable(node):
            found[name] = min(node.at, found.get(name, node.at))
    return found


def reads(text: object, name: str) -> bool:
    """Tell whether an expression that can be read says a name, be it of a value or of a library."""
    try:
        tree = cel.compile(str(text or "").strip()).tree
    except cel.CelSyntaxError:
        return False
    return any(isinstance(node, Ident) and node.name == name for node in walk(tree))


def _read(text: object) -> set[str]:
    try:
        return set(read_variables(cel.compile(str(text or "").strip())))
    except cel.CelSyntaxError:
        return set()


def _variable(node: Node) -> str:
    if isinstance(node, Select | Index):
        if not (isinstance(node.operand, Ident) and node.operand.name == "variables"):
            return ""
        if isinstance(node, Select):
            return "" if node.optional or node.test else node.field
        key = node.key
        return key.value if isinstance(key, Literal) and isinstance(key.value, str) else ""
    return ""
