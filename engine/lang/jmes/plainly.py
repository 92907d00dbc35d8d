"""Trees of the expressions that most policies have: a path of names, then some names, with a text for where there is nothing.

Apart from the parser, because that loads the `jmespath` package, which takes as long as all else that a short command does. What
is read here has the very tree that the parser gives it; everything else is left to the parser.
"""

from __future__ import annotations

import re
from typing import Any, Final

_NAME: Final = "[A-Za-z_][A-Za-z0-9_]*"
_PLAIN: Final = re.compile(
    rf"({_NAME}(?:\.{_NAME})*)(?:\.\[({_NAME}(?:, *{_NAME})*)\])?(\[\])?(?: *\|\| *'([^'\\]*)')?"
)


def plain_tree(text: str) -> dict[str, Any] | None:
    """Return the tree of `a.b.[c, d][] || 'text'`, of which all but the path may be missing; None for any other expression."""
    found = _PLAIN.fullmatch(text)
    if found is None:
        return None
    path, chosen, flattened, default = found.groups()
    steps = _fields(path.split("."))
    if chosen is not None:
        names = chosen.replace(" ", "").split(",")
        steps.append({"type": "multi_select_list", "children": _fields(names)})
    tree = steps[0] if len(steps) == 1 else {"type": "subexpression", "children": steps}
    if flattened is not None:
        identity = {"type": "identity", "children": []}
        tree = {"type": "projection", "children": [{"type": "flatten", "children": [tree]}, identity]}  # fmt: skip
    if default is None:
        return tree
    literal: dict[str, Any] = {"type": "literal", "value": default, "children": []}
    return {"type": "or_expression", "children": [tree, literal]}


def _fields(names: list[str]) -> list[dict[str, Any]]:
    return [{"type": "field", "children": [], "value": name} for name in names]
