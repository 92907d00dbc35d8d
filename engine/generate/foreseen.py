"""What a generating policy will make, as far as its expressions say it, without an evaluation.

For whoever asks about a policy before it acts: the rights of its author, its reach, the kinds it makes. Objects come out as
the blocks of classic generate rules (`apiVersion`, `kind`, `namespace`, `name`, `data`), with OPEN for everything that only a
trigger decides; a copy names the `resource` that it is of instead of a kind. None stands for objects that cannot be read at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from engine.errors import EngineError
from engine.lang import cel
from engine.lang.cel import ast
from engine.model.kinds import is_enabled, rules_of
from engine.model.result import ResourceEffect

from .placeholders import MARK, documents_of, is_interpolated, sources_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from engine.model import Block, Json, Policy

    Names = dict[str, list[tuple[ast.Node, bool]]]
    Read = Callable[[ast.Node], Iterator[Block | None]]

OPEN: Final = "{{ }}"
"""Stands for a value that is not known before there is a trigger; written as variables of classic rules are."""

Foreseen = tuple[str, "Block | None"]
"""Where a policy says it, and what it makes."""

_DEEPEST: Final = 40
_MOST_STEPS: Final = 5_000
"""Parts of expressions that are read for one policy: names that stand for each other would be read for ever."""
_GLOBAL: Final = frozenset({"variables", "resource", "generator"})
"""Names that mean something else where a local name hides them, beside those that expressions read."""
_WRAPPERS: Final = frozenset({"dyn", "string"})


def foreseen(spec: Block, namespace: str) -> list[Foreseen]:
    """Return what the `spec` of a policy of a namespace (empty for one of the cluster) will make.

    Wherever an expression stands, what it applies is made: in a condition, too, and in an audit annotation.
    """
    texts = [*_expressions(spec)]
    programs = [(at, program) for at, text in texts if (program := cel.readable(text)) is not None]
    variables = {
        str(one.get("name")): program.tree
        for one in spec.get("variables") or ()
        if (program := cel.readable(one.get("expression"))) is not None
    }
    names: Names = {}
    for _, program in programs:
        _collect_names(program.tree, names)
    read = _GLOBAL.union(*(program.names for _, program in programs))
    reader = _Reader(variables, names)
    is_hidden = not read.isdisjoint(names)
    found: list[Foreseen] = []
    for at, program in programs:
        blocks = _applied(program.tree, reader, namespace)
        found += ((at, None if is_hidden else block) for block in blocks)
    for index, item in enumerate(spec.get("generate") or ()):
        if template := item.get("template"):
            found += _of_template(template, f"spec.generate[{index}].template", namespace)
    return found


def _expressions(spec: Block) -> Iterator[tuple[str, object]]:
    """Yield every expression of a spec with its place."""
    for one in spec.get("variables") or ():
        yield f"spec.variables[{one.get('name')}]", one.get("expression")
    for index, one in enumerate(spec.get("matchConditions") or ()):
        yield f"spec.matchConditions[{index}]", one.get("expression")
    for index, item in enumerate(spec.get("generate") or ()):
        at = f"spec.generate[{index}]"
        if template := item.get("template"):
            yield from ((f"{at}.template", source) for source in sources_of(template))
        else:
            yield f"{at}.expression", item.get("expression")
    for index, one in enumerate(spec.get("auditAnnotations") or ()):
        yield f"spec.auditAnnotations[{index}]", one.get("valueExpression")


def effects_of(policy: Policy) -> Iterator[ResourceEffect]:
    """Yield what a policy reads of its triggers, and what it does to objects that it makes."""
    spec = policy.raw["spec"]
    reading = ("get", "list") if is_enabled(spec, "generateExisting") else ("get",)
    for rule in rules_of(spec):
        whole = [str(text).partition("/")[0] for text in rule.get("resources") or ()]
        yield ResourceEffect("spec.matchConstraints", reading, {**rule, "resources": whole})
    verbs = ["get", "create", "update"]
    verbs += ["delete"] if is_enabled(spec, "synchronize") else []
    verbs += ["patch"] if spec.get("useServerSideApply") is True else []
    for at, block in foreseen(spec, policy.namespace):
        yield ResourceEffect(at, tuple(verbs), made=block)


def _of_template(template: Block, at: str, namespace: str) -> Iterator[Foreseen]:
    try:
        documents = documents_of(template)
    except EngineError:
        return
    is_open = is_interpolated(template)
    for document in documents:
        value = _opened(document) if is_open else document
        yield at, _block(value, namespace) if isinstance(value, dict) else None


def _opened(value: Json) -> Json:
    """Return a part of a template with OPEN for what has a placeholder in it."""
    if isinstance(value, dict):
        return {key: _opened(below) for key, below in value.items()}
    if isinstance(value, list):
        return [_opened(below) for below in value]
    return OPEN if isinstance(value, str) and MARK in value else value


def _applied(tree: ast.Node, reader: _Reader, namespace: str) -> Iterator[Block | None]:
    """Yield what every call of `generator.Apply` in an expression wants."""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and node.name.lower() == "apply"):
            continue
        if not (isinstance(node.target, ast.Ident) and node.target.name == "generator"):
            continue
        if len(node.arguments) > 1:
            place = reader.value(node.arguments[0])
            where = place if isinstance(place, str) else OPEN
        else:
            where = namespace
        for value in reader.elements(node.arguments[-1]):
            yield None if value is None else {**value, "namespace": where}


def _collect_names(tree: ast.Node, names: Names) -> None:
    """Collect what the local names of an expression stand for: a value, or (True) the elements of it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Comprehension):
            names.setdefault(node.second or node.first, []).append((node.source, True))
            if node.second:
                names.setdefault(node.first, []).append((ast.Literal(None), False))
        elif isinstance(node, ast.Bind):
            names.setdefault(node.name, []).append((node.value, False))


def _block(obj: Mapping[str, Json], namespace: str = "") -> Block | None:
    """Return an object as the block of a generate rule; `namespace` is that of one which names none.

    None for a list of objects of their own kinds, and for what says of itself only when it is evaluated.
    """
    version, kind, metadata = obj.get("apiVersion"), obj.get("kind"), obj.get("metadata") or {}
    is_plain = isinstance(version, str) and isinstance(kind, str) and isinstance(metadata, dict)
    if not is_plain or OPEN in obj or str(kind).endswith("List"):
        return None
    return {
        "apiVersion": version,
        "kind": kind,
        "name": metadata.get("name", OPEN),
        "namespace": metadata.get("namespace") or namespace,
        "data": dict(obj),
    }


class _Reader:
    """Reads trees as values, as far as they are written out."""

    def __init__(self, variables: Mapping[str, ast.Node], names: Names) -> None:
        self._variables = variables
        self._names = names
        self._depth = 0
        self._steps = 0

    @property
    def _is_lost(self) -> bool:
        """Whether what is read is nested too deep, or goes on for too long, to be read on."""
        return self._depth >= _DEEPEST or self._steps >= _MOST_STEPS

    def value(self, node: ast.Node) -> Any:
        """Return what a tree says, OPEN for what it does not say."""
        if self._is_lost:
            return OPEN
        self._steps += 1
        self._depth += 1
        try:
            return self._value(node)
        finally:
            self._depth -= 1

    def _value(self, node: ast.Node) -> Any:
        match self._bare(node):
            case ast.Literal(value=value):
                return value
            case ast.ListLiteral(items=items):
                return [OPEN if is_optional else self.value(item) for item, is_optional in items]
            case ast.MapLiteral(entries=entries):
                return {
                    OPEN if is_optional else self._key(key): self.value(value)
                    for key, value, is_optional in entries
                }
        return OPEN

    def _key(self, node: ast.Node) -> str:
        found = self.value(node)
        return found if isinstance(found, str) else OPEN

    def elements(self, node: ast.Node) -> Iterator[Block | None]:
        """Yield the objects in a list; None for those that cannot be read."""
        yield from self._deeper(self._elements, node)

    def _deeper(self, read: Read, node: ast.Node) -> Iterator[Block | None]:
        if self._is_lost:
            yield None
            return
        self._steps += 1
        self._depth += 1
        try:
            yield from read(self._bare(node))
        finally:
            self._depth -= 1

    def _elements(self, node: ast.Node) -> Iterator[Block | None]:
        match node:
            case ast.ListLiteral(items=items):
                for item, is_optional in items:
                    yield from [None] if is_optional else self._deeper(self._object, item)
            case ast.Choice(outcomes=parts) | ast.Chain(is_sum=True, operands=parts):
                for one in parts:
                    yield from self.elements(one)
            case ast.Bind(kind="bind", body=inner) | ast.Comprehension(kind="filter", source=inner):
                yield from self.elements(inner)
            case ast.Comprehension(kind="map", body=body):
                yield from self._deeper(self._object, body)
            case ast.Select(operand=operand, field="items"):
                yield self._copy(self._bare(operand), "list")
            case ast.Ident(name=name) if name in self._names:
                for source, is_element in self._names[name]:
                    yield from [None] if is_element else self.elements(source)
            case _:
                yield None

    def _object(self, node: ast.Node) -> Iterator[Block | None]:
        match node:
            case ast.MapLiteral():
                yield _block(self.value(node))
            case ast.Choice(outcomes=parts):
                for one in parts:
                    yield from self._deeper(self._object, one)
            case ast.Index(operand=operand):
                yield from self.elements(operand)
            case ast.Ident(name=name) if name in self._names:
                for source, is_element in self._names[name]:
                    yield from self._deeper(self._elements if is_element else self._object, source)
            case _:
                yield self._copy(node, "get", "list")

    def _bare(self, node: ast.Node) -> ast.Node:
        """Return what stands behind wrappers and variables of the policy."""
        for _ in range(_DEEPEST):
            match node:
                case ast.Call(target=None, name=name, arguments=[only]) if name in _WRAPPERS:
                    node = only
                case ast.Select(operand=ast.Ident(name="variables"), field=name, test=False) if (
                    name in self._variables
                ):
                    node = self._variables[name]
                case _:
                    return node
        return node

    def _copy(self, node: ast.Node, *verbs: str) -> Block | None:
        """Return what a call reads from the cluster, as a copy of it; None for anything else."""
        if not (isinstance(node, ast.Call) and isinstance(node.target, ast.Ident)):
            return None
        if node.target.name != "resource" or node.name.lower() not in verbs:
            return None
        words = [self.value(one) for one in node.arguments[:2]]
        if len(words) < 2 or not all(isinstance(one, str) for one in words) or OPEN in words:
            return None
        return {"apiVersion": words[0], "resource": words[1], "name": OPEN}
