r"""Paths into objects as kubectl writes them, for `-o jsonpath=` and `-o custom-columns=`: fields, indexes, `[*]`, text around.

`{.metadata.name}`, `{.items[*].policy}`, `{.metadata.labels['a.b/c']}`, `{"\n"}`; `range` and filters are not part of it and are
refused by name.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import orjson

from .misuse import Misuse

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_SUCH_AS = "such as {.metadata.name} or {.items[*].policy}"
_STEP = re.compile(r"\.?([A-Za-z_][\w-]*)|\[(\d+|\*)\]|\['((?:[^'\\]|\\.)*)'\]|\.\*")
_PART = re.compile(r"\{([^{}]*)\}|([^{}]+)")


def find(value: Any, path: str) -> list[Any]:
    """Return everything that a path leads to; nothing where it leads nowhere. Raises EngineError for a path it cannot read."""
    found = [value]
    index = 1 if path.startswith("$") else 0
    while index < len(path) and path[index:] != ".":
        step = _STEP.match(path, index)
        if step is None:
            raise Misuse(f"cannot read the path `{path}` at `{path[index:]}`", help=_SUCH_AS)
        found = [one for value in found for one in _stepped(value, step)]
        index = step.end()
    return found


def _stepped(value: Any, step: re.Match[str]) -> Iterable[Any]:
    name, index, quoted = step.groups()
    if name is not None or quoted is not None:
        key = name if name is not None else re.sub(r"\\(.)", r"\1", quoted)
        return [value[key]] if isinstance(value, dict) and key in value else []
    if index is None or index == "*":
        return value.values() if isinstance(value, dict) else value if isinstance(value, list) else []  # fmt: skip
    return value[int(index) :][:1] if isinstance(value, list) else []


def jsonpath(value: Any, template: str) -> str:
    """Return a template filled in; raises EngineError."""
    if template and "{" not in template:
        template = f"{{{template}}}"
    if _PART.sub("", template):
        raise Misuse(f"a brace without its other one in `{template}`", help=_SUCH_AS)
    return "".join(_filled(value, inner, text) for inner, text in _PART.findall(template))


def _filled(value: Any, inner: str, text: str) -> str:
    inner = inner.strip()
    if not inner:
        return text
    if inner.startswith(('"', "'")):
        return inner[1:-1].replace("\\n", "\n").replace("\\t", "\t")
    if inner.startswith(("range", "end")) or "?(" in inner:
        raise Misuse(f"`{{{inner}}}` is not supported", help="use -o json and jq, or [*] in a path")
    return " ".join(map(shown, find(value, inner)))


def shown(value: Any) -> str:
    """Return a value as kubectl prints it: texts bare, everything else as JSON."""
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def columns(objects: Sequence[Any], spec: str, *, heads: bool) -> list[list[str]]:
    """Return the lines of `custom-columns=HEAD:.path,…`; `<none>` where a path leads nowhere. Raises EngineError."""
    pairs = [one.partition(":") for one in spec.split(",") if one]
    if not pairs or any(not path for _, _, path in pairs):
        raise Misuse(f"cannot read `{spec}` as columns", help="such as -o custom-columns=NAME:.metadata.name,RULE:.rule")  # fmt: skip
    lines = [[head for head, _, _ in pairs]] if heads else []
    for obj in objects:
        found = (",".join(map(shown, find(obj, path.strip("{}")))) for _, _, path in pairs)
        lines.append([one or "<none>" for one in found])
    return lines
