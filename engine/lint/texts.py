"""Every text of a rule with its place, which is what checks of variables and references go over."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.model import Json

DEEPEST = 200
"""Levels of a policy part that are read; rendering refuses anything deeper."""


class Text(NamedTuple):
    """A string of a document and its slash path; `is_key` for the name of a field."""

    path: str
    text: str
    is_key: bool = False


def texts(value: Json, path: str = "", *, without: frozenset[str] = frozenset()) -> Iterator[Text]:
    """Yield all strings below `value` but those below the paths in `without`."""
    stack: list[tuple[str, Json, int]] = [(path, value, 0)]
    while stack:
        at, node, depth = stack.pop()
        if at in without or depth > DEEPEST:
            continue
        if isinstance(node, str):
            yield Text(at, node)
        elif isinstance(node, list):
            below = [(f"{at}/{index}", item, depth + 1) for index, item in enumerate(node)]
            stack.extend(reversed(below))
        elif isinstance(node, dict):
            yield from (Text(f"{at}/{key}", key, is_key=True) for key in node if "{{" in key)
            below = [(f"{at}/{key}", item, depth + 1) for key, item in node.items()]
            stack.extend(reversed(below))


def context_names(value: Json) -> list[str]:
    """Return the names of all context entries of a rule, those of its foreach blocks and targets included."""
    found: list[str] = []
    stack: list[tuple[Json, int]] = [(value, 0)]
    while stack:
        node, depth = stack.pop()
        if depth > DEEPEST:
            continue
        if isinstance(node, list):
            stack.extend((item, depth + 1) for item in node)
        elif isinstance(node, dict):
            listed = node.get("context")
            entries = listed if isinstance(listed, list) else ()
            found += [
                str(entry["name"])
                for entry in entries
                if isinstance(entry, dict) and "name" in entry
            ]
            stack.extend((item, depth + 1) for item in node.values())
    return found
