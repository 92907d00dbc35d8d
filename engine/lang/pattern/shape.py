"""What is refused before a pattern is used: nesting without end, and anchors that a rule cannot have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.errors import LimitError, PolicyError

from .anchors import Anchor, parse_key

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.model import Json

_DEEPEST: Final = 100


def check_depth(pattern: Json) -> None:
    """Raise LimitError for a pattern nested so deep that checking it would exhaust the stack."""
    level = [pattern]
    for _ in range(_DEEPEST):
        level = [inner for item in level for inner in _inside(item)]
        if not level:
            return
    raise LimitError(f"pattern nested more than {_DEEPEST} levels deep")


def check_anchors(pattern: Json, *, at: str) -> None:
    """Raise PolicyError, as Kyverno refuses at load, for `+( )` and for an existence anchor without a list.

    `at` is the field of the policy, such as `spec.rules[0].validate.pattern`.
    """
    check_depth(pattern)
    for path, reason in _wrong_anchors(pattern, "/"):
        raise PolicyError(f"path: {at}.{path}.: {reason}")


def _inside(item: Json) -> list[Json]:
    if isinstance(item, dict):
        return list(item.values())
    return item if isinstance(item, list) else []


def _wrong_anchors(pattern: Json, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(pattern, dict):
        for key, value in pattern.items():
            place = f"{path}/{key}"
            anchor, _ = parse_key(key)
            if anchor is Anchor.ADDITION:
                yield place, f"unsupported anchor {key}"
            elif anchor is Anchor.EXISTENCE and not isinstance(value, list):
                yield place, "existence anchor should have value of type list"
            else:
                yield from _wrong_anchors(value, place)
    elif isinstance(pattern, list):
        for index, item in enumerate(pattern):
            yield from _wrong_anchors(item, f"{path}/{index}")
