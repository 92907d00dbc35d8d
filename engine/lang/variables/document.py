"""A part of a policy with variables anywhere in it: keys, values, lists.

`compile_document` looks at the whole part once. What holds no variable is shared by all renderings; only the branches
with variables are built anew for an object.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from engine.errors import EvaluationError, LimitError
from engine.lang.lazy_regex import regex

from .template import Template, has_variables

if TYPE_CHECKING:
    from engine.model.json import Json

    from .scope import Scope

Render = Callable[["Scope", str, str], "Json"]

MAX_DEPTH = 200
"""Nesting of a policy part; far beyond any real one, and safely below Python's own limit."""

_PLAIN = regex(r"[A-Za-z_][A-Za-z0-9_]*\Z")


class Document:
    """A compiled part of a policy; `is_constant` says that it holds no variable."""

    __slots__ = ("_render", "is_constant", "source")

    def __init__(self, source: Json, render: Render | None) -> None:
        self.source = source
        self._render = render
        self.is_constant = render is None

    def render(self, scope: Scope, path: str = "", current: str = "") -> Json:
        """Return the part with every variable replaced; raises EvaluationError naming the path that failed.

        `path` is put before paths in messages; `current` is the JMESPath below the object that `{{ @ }}` starts from.
        """
        return self.source if self._render is None else self._render(scope, path, current)


def compile_document(source: Json) -> Document:
    """Compile any decoded part of a policy; raises LimitError when it is nested too deeply."""
    return Document(source, _compile(source, 0))


def _compile(node: Json, depth: int) -> Render | None:
    if depth > MAX_DEPTH:
        raise LimitError(f"policy part is nested deeper than {MAX_DEPTH} levels")
    if isinstance(node, str):
        return Template(node).render if has_variables(node) else None
    if isinstance(node, dict):
        return _compile_map(node, depth)
    if isinstance(node, list):
        return _compile_list(node, depth)
    return None


def _compile_map(node: dict[str, Json], depth: int) -> Render | None:
    keys = {key: Template(key) for key in node if isinstance(key, str) and has_variables(key)}
    values = {key: made for key, value in node.items() if (made := _compile(value, depth + 1))}
    if not keys and not values:
        return None

    def render(scope: Scope, path: str, current: str) -> Json:
        out = {}
        for key, value in node.items():
            below = f"{path}/{key}"
            name = key
            if key in keys:
                name = keys[key].render(scope, path, current)
                if not isinstance(name, str):
                    raise EvaluationError(
                        f"expected string after substituting variables in key {key}"
                    )
            made = values.get(key)
            out[name] = value if made is None else made(scope, below, current + _step(name))
        return out

    return render


def _compile_list(node: list[Json], depth: int) -> Render | None:
    items = [_compile(item, depth + 1) for item in node]
    if not any(items):
        return None

    def render(scope: Scope, path: str, current: str) -> Json:
        return [
            item if made is None else made(scope, f"{path}/{index}", f"{current}[{index}]")
            for index, (item, made) in enumerate(zip(node, items, strict=True))
        ]

    return render


def _step(key: str) -> str:
    """Return the JMESPath step to a key; anchors around a key are no part of it."""
    if key.endswith(")") and "(" in key:
        key = key[key.index("(") + 1 : -1]
    quoted = key.replace("\\", "\\\\").replace('"', '\\"')
    return f".{key}" if _PLAIN.match(key) else f'."{quoted}"'
