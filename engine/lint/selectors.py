"""Label selectors that Kubernetes would refuse, with the API server's words (rows A-37, X-01).

At evaluation such a selector matches nothing; a policy with one is refused, so that nobody relies on it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from engine.lang import wildcard
from engine.match import key_error, value_error

from .findings import Finding, error

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.model import Block

_SIZES = {"In": True, "NotIn": True, "Exists": False, "DoesNotExist": False}
_SET_TEXTS = {
    True: "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
    False: "values: Invalid value: {}: values set must be empty for exists and does not exist",
}


def check_selector(selector: Block | None, path: str) -> Iterator[Finding]:
    """Yield what is wrong with a `selector`; an empty one is wrong because it would select everything."""
    if selector is None:
        return
    pairs, expressions = selector.get("matchLabels"), selector.get("matchExpressions")
    if not pairs and not expressions:
        yield error(path, "Invalid value: {}: The requirements are not specified in selector")
        return
    shown = _as_go_writes(selector)
    for key, value in (pairs or {}).items():
        if why := _pair_error(str(key), value or ""):
            yield error(path, f"Invalid value: {shown}: {why}")
    for entry in expressions or ():
        if why := _expression_error(entry):
            yield error(path, f"Invalid value: {shown}: {why}")


def _pair_error(key: str, value: str) -> str:
    """Return what is wrong with a pair after wildcards became `0`, as upstream replaces them."""
    key, value = (_without_wildcards(text) for text in (key, value))
    if why := key_error(key):
        return f'key: Invalid value: "{key}": {why}'
    if why := value_error(value):
        return f'values[0][{key}]: Invalid value: "{value}": {why}'
    return ""


def _without_wildcards(text: str) -> str:
    return text.replace("*", "0").replace("?", "0") if wildcard.has_wildcard(text) else text


def _expression_error(entry: Block) -> str:
    operator, values = entry.get("operator") or "", entry.get("values") or []
    key = entry.get("key") or ""
    if operator not in _SIZES:
        return f'"{operator}" is not a valid label selector operator'
    if bool(values) is not _SIZES[operator]:
        return _SET_TEXTS[_SIZES[operator]].format(json.dumps(values))
    if why := key_error(key):
        return f'key: Invalid value: "{key}": {why}'
    for index, value in enumerate(values):
        if why := value_error(value):
            return f'values[{index}][{key}]: Invalid value: "{value}": {why}'
    return ""


def _as_go_writes(selector: Block) -> str:
    """Write a selector as Go serialises it: fields in their order, empty ones left out."""
    fields = {name: selector.get(name) for name in ("matchLabels", "matchExpressions")}
    if isinstance(listed := fields["matchExpressions"], list):
        names = ("key", "operator", "values")
        fields["matchExpressions"] = [
            {name: entry[name] for name in names if entry.get(name)} for entry in listed
        ]
    kept = {name: value for name, value in fields.items() if value}
    return json.dumps(kept, separators=(",", ":"))
