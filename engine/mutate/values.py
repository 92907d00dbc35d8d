"""What both patch languages need to know of plain values: absence, equality as JSON has it, private copies, names of kinds.

Apart because Python's own `==` takes `True` for `1` and its recursion has no bound.
"""

from __future__ import annotations

import json
from enum import Enum
from typing import TYPE_CHECKING, Final

from engine.errors import EvaluationError, LimitError
from engine.lang.gotext import compact_json

if TYPE_CHECKING:
    from engine.model import Json

DEEPEST: Final = 100
"""Levels of lists and mappings that a patch may have; half of what the document reader lets through, far more than any needs."""


class Absent(Enum):
    """The type of `ABSENT`: a field that is not there, as opposed to one that holds null."""

    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT


def same(left: Json, right: Json) -> bool:
    """Tell whether two values are the same JSON: `1` equals `1.0` but neither `true` nor `"1"`; map order does not count.

    Works without recursion, so that depth is no matter.
    """
    pairs = [(left, right)]
    while pairs:
        one, other = pairs.pop()
        if one is other:
            continue
        if isinstance(one, dict):
            if not isinstance(other, dict) or one.keys() != other.keys():
                return False
            pairs.extend([(value, other[key]) for key, value in one.items()])
        elif isinstance(one, list):
            if not isinstance(other, list) or len(one) != len(other):
                return False
            pairs.extend(zip(one, other, strict=True))
        elif not _same_scalars(one, other):
            return False
    return True


def _same_scalars(left: Json, right: Json) -> bool:
    if isinstance(left, bool) or isinstance(right, bool):
        return False
    return bool(left == right)


def thawed(value: Json, depth: int = 0) -> Json:
    """Return a copy whose lists and mappings are all new, so that it may be changed; LimitError when too deep."""
    if isinstance(value, dict):
        check_level(depth)
        return {key: thawed(child, depth + 1) for key, child in value.items()}
    if isinstance(value, list):
        check_level(depth)
        return [thawed(child, depth + 1) for child in value]
    return value


def check_level(depth: int) -> None:
    """Raise LimitError beyond the deepest level that is processed."""
    if depth >= DEEPEST:
        raise too_deep()


def too_deep() -> LimitError:
    """Make the error for values nested beyond the bound."""
    return LimitError(f"value nested more than {DEEPEST} levels deep")


def scalar_text(value: Json) -> str:
    """Write a scalar as a merge key is compared: `80` and `"80"` are one key; null, maps and lists have none (empty text)."""
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, dict | list):
        return ""
    return compact_json(value)


def kind_name(value: Json) -> str:
    """Name the kind of node a value is, as in the texts of `wrong_kind`."""
    if isinstance(value, dict):
        return "MappingNode"
    return "SequenceNode" if isinstance(value, list) else "ScalarNode"


def wrong_kind(expected: str, found: Json) -> EvaluationError:
    """Make the error for a map, list or scalar that meets another kind of value; Kyverno's text, its line break included."""
    return EvaluationError(
        f"wrong node kind: expected {expected} but got {kind_name(found)}: node contents:\n{_flow(found)}\n"
    )


def _flow(value: Json, depth: int = 0) -> str:
    if isinstance(value, dict):
        check_level(depth)
        entries = (f"{_flow(key)}: {_flow(value[key], depth + 1)}" for key in sorted(value))
        return f"{{{', '.join(entries)}}}"
    if isinstance(value, list):
        check_level(depth)
        return f"[{', '.join([_flow(item, depth + 1) for item in value])}]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else compact_json(value)
