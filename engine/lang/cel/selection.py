"""Fields and indices: reading data.

The hot part of every policy. The passing path is plain dictionary access; when that fails, the same step is taken again
with care, to tell a missing key from a wrong type, and to follow optionals, dotted names and escaped names.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from .ast import Ident, Index, Literal, Node, Select
from .compiler import Closure, Compiler, Frame, binding
from .errors import CelError, shown
from .values import GO_TYPES, NONE, TYPES, Optional, Uint, as_key, type_name

if TYPE_CHECKING:
    from typing import TypeGuard

    _Stepping = Select | Index
    _Step = tuple[str, bool, _Stepping]

MISSING: Final = object()
"""What a field or element is that is not there, inside this package."""

_ESCAPES: Final = {"underscores": "__", "dot": ".", "dash": "-", "slash": "/"}
_ESCAPED: Final = re.compile(r"__(underscores|dot|dash|slash)__")
_RESERVED: Final = re.compile(r"__([a-z]+)__")
_KEYS: Final = (str, int, float, bool, Uint)


def path_of(node: Node) -> str:
    """Return the data path that a chain of selections spells (`object.spec.x`), as far as it can be named."""
    names: list[str] = []
    while isinstance(node, Select | Index):
        if isinstance(node, Select):
            names.append(f".{node.field}")
        else:
            names.append(f"[{node.key.value!r}]" if isinstance(node.key, Literal) else "[]")
        node = node.operand
    if isinstance(node, Ident):
        names.append(node.name)
    return "".join(reversed(names)).lstrip(".")


def compile_select(compiler: Compiler, node: Select) -> Closure:
    """Compile `e.f`, `e.?f` and `has(e.f)`."""
    dotted = _qualified(compiler, node)
    if dotted is not None:
        return dotted
    if node.test:
        return _has(compiler, node)
    chain = optional_chain(compiler, node)
    if chain is not None:
        return _wrapped(chain)
    operand = compiler.compile(node.operand)
    root = _root_and_names(compiler, node)
    if root is not None:
        return _path(operand, node, root)
    slot = _plain_local(compiler, node.operand)
    return _plain_select(operand, node) if slot == 0 else _local_select(operand, node, slot)


def _plain_local(compiler: Compiler, node: Node) -> int:
    """Return the slot of a local name that is always filled, else 0."""
    if not isinstance(node, Ident) or node.absolute:
        return 0
    slot, is_lazy = compiler.local(node.name) or (0, True)
    return 0 if is_lazy else slot


def _qualified(compiler: Compiler, node: Select) -> Closure | None:
    """Compile a dotted name that is bound as one name, or that names a type."""
    if node.test or node.optional or not _is_dotted(node):
        return None
    name = path_of(node)
    root = name.partition(".")[0]
    if name in compiler.qualified and compiler.local(root) is None:
        return binding(compiler, name, node.at)
    if name in TYPES and compiler.local(root) is None:
        kind = TYPES[name]
        return lambda _frame: kind
    return None


def _is_dotted(node: Node) -> bool:
    while isinstance(node, Select):
        node = node.operand
    return isinstance(node, Ident)


def _root_and_names(compiler: Compiler, node: Select) -> tuple[str, str, str] | None:
    """Return binding and two fields of `root.a.b`, the commonest shape, where all are plain."""
    inner = node.operand
    if not isinstance(inner, Select) or inner.optional or inner.test:
        return None
    root = inner.operand
    is_bound = isinstance(root, Ident) and (root.absolute or compiler.local(root.name) is None)
    if not is_bound or path_of(inner) in compiler.qualified:
        return None
    assert isinstance(root, Ident)
    return None if root.name in TYPES else (root.name, inner.field, node.field)


def _path(operand: Closure, node: Select, names: tuple[str, str, str]) -> Closure:
    """Compile `root.a.b` without a call per step."""
    root, first, second = names
    careful = _plain_select(operand, node)

    def read(frame: Frame) -> Any:
        try:
            return frame[0][root][first][second]
        except (KeyError, TypeError, IndexError):
            return careful(frame)

    return read


def _plain_select(operand: Closure, node: Select) -> Closure:
    name = node.field

    def read(frame: Frame) -> Any:
        value = operand(frame)
        try:
            return value[name]
        except (KeyError, TypeError, IndexError):
            return _required(value, name, node)

    return read


def _local_select(operand: Closure, node: Select, slot: int) -> Closure:
    name = node.field

    def read(frame: Frame) -> Any:
        try:
            return frame[slot][name]
        except (KeyError, TypeError, IndexError):
            return _required(operand(frame), name, node)

    return read


def _required(value: Any, name: str, node: Select) -> Any:
    found = lookup(value, name, node)
    if found is MISSING:
        raise CelError(f"no such key: {name}", node.at, path_of(node))
    return found


def lookup(value: Any, name: str, node: Select) -> Any:
    """Return a field with care: escaped names, optionals; MISSING when it is not there. Raises CelError."""
    if isinstance(value, dict):
        for spelling in _spellings(name):
            if spelling in value:
                return value[spelling]
        return MISSING
    if type(value) is Optional:
        if not value.present:
            return NONE
        found = lookup(value.value, name, node)
        return NONE if found is MISSING else Optional(found)
    if isinstance(value, list):
        raise CelError("unsupported index type 'string' in list", node.at, path_of(node.operand))
    return MISSING


def _spellings(name: str) -> tuple[str, ...]:
    """Return a field's names: as written, and as Kubernetes escapes names that are no identifiers."""
    if "__" not in name:
        return (name,)
    reserved = _RESERVED.fullmatch(name)
    if reserved is not None:
        return (name, reserved[1])
    return (name, _ESCAPED.sub(lambda found: _ESCAPES[found[1]], name))


def _opened(closure: Closure) -> Closure:
    def read(frame: Frame) -> Any:
        value = closure(frame)
        return value.value if type(value) is Optional else value

    return read


def _missing(_frame: Frame) -> Any:
    return MISSING


def optional_chain(compiler: Compiler, node: Node, otherwise: Node | None = None) -> Closure | None:
    """Compile `e.?a.b[?'c']` to a closure that gives the value or that of `otherwise`; None when it is no such chain.

    What follows an optional selection is optional too, so no step has to make an optional value. Without `otherwise` a
    field that is not there is MISSING.
    """
    steps: list[_Stepping] = []
    first = 0
    while _is_by_text(node):
        steps.append(node)
        first = len(steps) if node.optional else first
        node = node.operand
    while isinstance(node, Select) and not node.test:
        steps.append(node)
        first = len(steps) if node.optional else first
        node = node.operand
    if not first:
        return None
    operand = steps[first - 1].operand
    base, slot = compiler.compile(operand), _plain_local(compiler, operand)
    if isinstance(steps[first - 1], Index):
        base, slot = _opened(base), 0
    instead = _missing if otherwise is None else compiler.compile(otherwise)
    return _chain(base, slot, tuple(_step(step) for step in reversed(steps[:first])), instead)


def _is_by_text(node: Node) -> TypeGuard[Index]:
    """Tell whether a text that stands in the expression is the key of an index."""
    return isinstance(node, Index) and isinstance(node.key, Literal) and type(node.key.value) is str


def _step(node: _Stepping) -> _Step:
    """Return a step's name, and whether a map has the field by that name or not at all."""
    if isinstance(node, Index):
        assert isinstance(node.key, Literal)
        return node.key.value, True, node
    return node.field, len(_spellings(node.field)) == 1, node


def _taken(value: Any, name: str, node: _Stepping) -> Any:
    """Return what a step comes to with care; MISSING where there is nothing. Raises CelError."""
    if isinstance(node, Index):
        return at_index(value, name, node)
    found = lookup(value, name, node)
    if type(found) is Optional:
        return found.value if found.present else MISSING
    return found


def _chain(base: Closure, slot: int, steps: tuple[_Step, ...], otherwise: Closure) -> Closure:
    if len(steps) == 1 and steps[0][1]:
        return _short_chain(base, slot, steps[0], otherwise)

    def read(frame: Frame) -> Any:
        value = frame[slot] if slot else base(frame)
        for name, is_plain, node in steps:
            if type(value) is dict:
                if name in value:
                    value = value[name]
                    continue
                if is_plain:
                    return otherwise(frame)
            value = _taken(value, name, node)
            if value is MISSING:
                return otherwise(frame)
        return value

    return read


def _short_chain(base: Closure, slot: int, step: _Step, otherwise: Closure) -> Closure:
    """Compile a chain of one step to a field whose name says itself, which is most of them."""
    name, _, node = step

    def read(frame: Frame) -> Any:
        value = frame[slot] if slot else base(frame)
        if type(value) is dict:
            return value[name] if name in value else otherwise(frame)
        found = _taken(value, name, node)
        return otherwise(frame) if found is MISSING else found

    return read


def _wrapped(chain: Closure) -> Closure:
    def read(frame: Frame) -> Optional:
        value = chain(frame)
        return NONE if value is MISSING else Optional(value)

    return read


def _has(compiler: Compiler, node: Select) -> Closure:
    name = node.field
    operand = compiler.compile(node.operand)
    slot = _plain_local(compiler, node.operand)

    def test(frame: Frame) -> bool:
        value = operand(frame)
        if type(value) is dict and name in value:
            return True
        found = lookup(value, name, node)
        return found is not MISSING and found is not NONE

    def test_local(frame: Frame) -> bool:
        value = frame[slot]
        return (type(value) is dict and name in value) or test(frame)

    return test_local if slot else test


def compile_index(compiler: Compiler, node: Index) -> Closure:
    """Compile `e[k]` and `e[?k]`."""
    chain = optional_chain(compiler, node)
    if chain is not None:
        return _wrapped(chain)
    operand, key = compiler.compile(node.operand), compiler.compile(node.key)
    if node.optional:
        return _optional_index(operand, key, node)

    def read(frame: Frame) -> Any:
        value, wanted = operand(frame), key(frame)
        if type(wanted) is str and type(value) is dict and wanted in value:
            return value[wanted]
        if type(value) is Optional:
            return _within_optional(value, wanted, node)
        found = at_index(value, wanted, node)
        if found is MISSING:
            raise _not_found(value, wanted, node)
        return found

    return read


def _optional_index(operand: Closure, key: Closure, node: Index) -> Closure:
    def read(frame: Frame) -> Any:
        value, wanted = operand(frame), key(frame)
        if type(value) is Optional:
            return _within_optional(value, wanted, node)
        found = at_index(value, wanted, node)
        return NONE if found is MISSING else Optional(found)

    return read


def _within_optional(value: Optional, wanted: Any, node: Index) -> Optional:
    if not value.present:
        return NONE
    found = at_index(value.value, wanted, node)
    return NONE if found is MISSING else Optional(found)


def at_index(value: Any, wanted: Any, node: Index) -> Any:
    """Return an element or a map's value; MISSING when there is none. Raises CelError for wrong types of keys."""
    if type(wanted) in GO_TYPES:
        raise CelError(f"invalid qualifier type: {GO_TYPES[type(wanted)]}", node.at)
    if isinstance(value, dict):
        if type(wanted) not in _KEYS:
            raise CelError(f"unsupported key type: {type_name(wanted)}", node.at)
        key = as_key(wanted)
        return value[key] if key in value else MISSING  # noqa: SIM401 - `get` would pass by `__missing__` of lazy maps
    if isinstance(value, list):
        number = _position(wanted, node)
        return value[number] if 0 <= number < len(value) else MISSING
    return MISSING


def _position(wanted: Any, node: Index) -> int:
    if type(wanted) is int or type(wanted) is Uint:
        return int(wanted)
    if type(wanted) is float and wanted.is_integer():
        return int(wanted)
    if type(wanted) is float:
        raise CelError(f"unsupported index value {shown(wanted)} in list", node.at)
    raise CelError(f"unsupported index type '{type_name(wanted)}' in list", node.at)


def _not_found(value: Any, wanted: Any, node: Index) -> CelError:
    if isinstance(value, list):
        return CelError(f"index out of bounds: {wanted}", node.at, path_of(node.operand))
    shown = wanted if isinstance(wanted, str) else repr(wanted).lower()
    return CelError(f"no such key: {shown}", node.at, path_of(node.operand))
