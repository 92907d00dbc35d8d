"""Literals of lists, maps and messages.

Messages are maps: `Object{…}` and `JSONPatch{…}` of mutating policies become what they describe. The well-known types
of protocol buffers become the values they stand for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from .errors import CelError
from .values import Optional, Uint, as_key, type_name
from .wellknown import MAKERS

if TYPE_CHECKING:
    from .ast import ListLiteral, MapLiteral, MessageLiteral
    from .compiler import Compiler
    from .frames import Closure, Frame

_KEYS: Final = (str, int, Uint, bool)


def compile_list(compiler: Compiler, node: ListLiteral) -> Closure:
    """Compile `[a, ?b]`."""
    items = tuple((compiler.compile(item), optional) for item, optional in node.items)
    if not any(optional for _, optional in items):
        plain = tuple(item for item, _ in items)
        if not plain:
            return lambda _: []
        return lambda frame: [item(frame) for item in plain]

    def build(frame: Frame) -> list[Any]:
        built: list[Any] = []
        for item, optional in items:
            value = item(frame)
            if not optional:
                built.append(value)
            elif _unwrapped(value, node.at).present:
                built.append(value.value)
        return built

    return build


def _unwrapped(value: Any, at: int) -> Optional:
    if type(value) is Optional:
        return value
    raise CelError(
        f"cannot initialize optional entry from non-optional value {type_name(value)}", at
    )


def compile_map(compiler: Compiler, node: MapLiteral) -> Closure:
    """Compile `{key: value, ?key: optional}`."""
    entries = tuple(
        (compiler.compile(key), compiler.compile(value), optional, key.at)
        for key, value, optional in node.entries
    )

    def build(frame: Frame) -> dict[Any, Any]:
        built: dict[Any, Any] = {}
        for key, value, optional, at in entries:
            name, content = key(frame), value(frame)
            if type(name) not in _KEYS:
                raise CelError(f"unsupported key type: {type_name(name)}", at)
            name = as_key(name)
            if optional and not _unwrapped(content, at).present:
                continue
            if name in built:
                raise CelError("map has a repeated key", at)
            built[name] = content.value if optional else content
        return built

    return build


def compile_message(compiler: Compiler, node: MessageLiteral) -> Closure:
    """Compile `Type{field: value}`; of types that nobody knows, CelSyntaxError."""
    fields = tuple(
        (name, compiler.compile(value), optional, at) for name, value, optional, at in node.entries
    )
    make = _maker(compiler, node)

    def build(frame: Frame) -> Any:
        built: dict[str, Any] = {}
        for name, value, optional, at in fields:
            content = value(frame)
            if not optional:
                built[name] = content
            elif _unwrapped(content, at).present:
                built[name] = content.value
        return built if make is None else make(built, node.at)

    return build


def _maker(compiler: Compiler, node: MessageLiteral) -> Any:
    name = node.name
    if name in ("Object", "JSONPatch") or name.startswith("Object."):
        return None
    if name in MAKERS:
        return MAKERS[name]
    raise compiler.error(f"undeclared reference to '{name}' (in container '')", node)
