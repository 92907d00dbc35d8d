"""`$(path)` references: a pattern text may repeat the text of another place of the same pattern (row P-30).

A reference is resolved against the pattern, not the object, before the pattern is compiled. Kyverno also resolves them
when a policy is loaded, then with paths counted from the rule, which is why absolute paths cannot work in both.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from engine.errors import EvaluationError, PolicyError

from .anchors import parse_key
from .operand import range_ends, split_operator
from .shape import check_depth

if TYPE_CHECKING:
    from engine.model import Json

_REFERENCE = re.compile(r"^\$\(.[^ ]*\)|[^\\]\$\(.[^ ]*\)")
_ESCAPED = re.compile(r"\\\$\([^ ]*\)")


def resolve_references(pattern: Json, *, at: str = "") -> Json:
    """Return the pattern with its references replaced; the same object when there are none.

    `at` is the path of the pattern in the document that references count from. Raises EvaluationError with Kyverno's
    words (without `variable substitution failed: `) for a reference to nothing or to something other than text, LimitError
    for a pattern nested too deep.
    """
    check_depth(pattern)
    if not _holds_reference(pattern):
        return pattern
    leaves: dict[str, Json] = {}
    _collect(pattern, at, leaves)
    return _replace(pattern, at, leaves)


def check_references(pattern: Json, rule_name: str, *, at: str = "/validate/pattern") -> None:
    """Raise PolicyError with the refusal that Kyverno gives at load for references that cannot be resolved."""
    try:
        resolve_references(pattern, at=at)
    except EvaluationError as error:
        text = f"variable substitution failed for rule {rule_name}: {error.message}"
        raise PolicyError(f"policy contains invalid variables: {text}") from error


def _holds_reference(value: Json) -> bool:
    if isinstance(value, str):
        return "$(" in value
    if isinstance(value, dict):
        return any("$(" in key or _holds_reference(item) for key, item in value.items())
    return isinstance(value, list) and any(_holds_reference(item) for item in value)


def _collect(value: Json, path: str, leaves: dict[str, Json]) -> None:
    """Note the value of every leaf under its path without anchors; the path of a map gives its own key."""
    if isinstance(value, dict):
        for key in sorted(value):
            place = f"{path}/{parse_key(key)[1]}"
            leaves[place] = key
            _collect(value[key], place, leaves)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _collect(item, f"{path}/{index}", leaves)
    else:
        leaves[path] = value


def _replace(value: Json, path: str, leaves: dict[str, Json]) -> Json:
    if isinstance(value, dict):
        return {
            _text(key, f"{path}/{key}", leaves): _replace(item, f"{path}/{key}", leaves)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_replace(item, f"{path}/{index}", leaves) for index, item in enumerate(value)]
    return _text(value, path, leaves) if isinstance(value, str) else value


def _text(text: str, path: str, leaves: dict[str, Json]) -> str:
    for found in _REFERENCE.findall(text):
        lead, reference = ("", found) if found.startswith("$(") else (found[0], found[1:])
        text = text.replace(found, lead + _resolved(reference, path, leaves), 1)
    return _ESCAPED.sub(lambda found: found[0][1:], text)


def _resolved(reference: str, path: str, leaves: dict[str, Json]) -> str:
    target = reference.strip("$()")
    operator, place = split_operator(target)
    if not place:
        raise EvaluationError(
            f"failed to resolve {reference} at path {path}: expected path, found empty reference"
        )
    absolute = place if place.startswith("/") else _joined(path, place)
    value = leaves.get(absolute)
    if value is None:
        raise EvaluationError(f"got nil resolved variable {reference} at path {path}: <nil>")
    if not isinstance(value, str) or range_ends(target):
        raise EvaluationError(
            f"NotResolvedReferenceErr,reference {reference} not resolved at path {path}"
        )
    return operator + value


def _joined(path: str, relative: str) -> str:
    steps: list[str] = []
    for step in f"{path}/{relative}".split("/"):
        if step == "..":
            del steps[-1:]
        elif step not in ("", "."):
            steps.append(step)
    return "/" + "/".join(steps)
