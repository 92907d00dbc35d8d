"""A compiled pattern: the one thing that rules hold on to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.errors import EvaluationError, LimitError
from engine.lang.lazy_regex import regex

from .anchors import parse_key
from .operand import range_ends, split_operator
from .tree import compile_element

if TYPE_CHECKING:
    from engine.model import Json

    from .entries import Check
    from .mismatches import Fault, Miss


class CompiledPattern:
    """A pattern ready to be checked; it holds no state of a check, so one may serve many threads.

    Its closures are made with the first check, because most rules of autogen are never asked. Its references are resolved and
    its depth is bounded before, so that nothing can be wrong with it by then. `fault` is what `check` finishes the report of, for
    those who ask often.
    """

    __slots__ = ("fault",)

    fault: Check

    def __init__(self, pattern: Json) -> None:
        def first(resource: Json) -> Fault | None:
            self.fault = check = compile_element(pattern)
            return check(resource)

        self.fault = first

    def check(self, resource: Json) -> Miss | None:
        """Return None when the resource satisfies the pattern, else what keeps it from that."""
        fault = self.fault(resource)
        return None if fault is None else fault.miss()


def compile_pattern(pattern: Json) -> CompiledPattern:
    """Compile a pattern without variables; `$(…)` references are resolved here (row P-30).

    Raises EvaluationError for a reference that leads nowhere (Kyverno's words, to be put after `variable substitution
    failed: `) and LimitError for a pattern nested too deep.
    """
    return CompiledPattern(resolve_references(pattern))


def compile_rendered(pattern: Json) -> CompiledPattern:
    """Compile a pattern whose references were resolved before its variables: what looks like one now came with a value.

    Raises LimitError for a pattern nested too deep.
    """
    check_depth(pattern)
    return CompiledPattern(pattern)


# What is refused before a pattern is used: nesting without end, and anchors that a rule cannot have.

_DEEPEST: Final = 100


def check_depth(pattern: Json) -> None:
    """Raise LimitError for a pattern nested so deep that checking it would exhaust the stack."""
    level = [pattern]
    for _ in range(_DEEPEST):
        level = [inner for item in level for inner in _inside(item)]
        if not level:
            return
    raise LimitError(f"pattern nested more than {_DEEPEST} levels deep")


def _inside(item: Json) -> list[Json]:
    if isinstance(item, dict):
        return list(item.values())
    return item if isinstance(item, list) else []


# `$(path)` references: a pattern text may repeat the text of another place of the same pattern (row P-30).
#
# A reference is resolved against the pattern, not the object, before the pattern is compiled. Kyverno also resolves them
# when a policy is loaded, then with paths counted from the rule, which is why absolute paths cannot work in both.

_REFERENCE = regex(r"^\$\(.[^ ]*\)|[^\\]\$\(.[^ ]*\)")
_ESCAPED = regex(r"\\\$\([^ ]*\)")


def resolve_references(pattern: Json) -> Json:
    """Return the pattern with its references replaced; the same object when there are none.

    Raises EvaluationError with Kyverno's
    words (without `variable substitution failed: `) for a reference to nothing or to something other than text, LimitError
    for a pattern nested too deep.
    """
    check_depth(pattern)
    if not _holds_reference(pattern):
        return pattern
    leaves: dict[str, Json] = {}
    _collect(pattern, "", leaves)
    return _replace(pattern, "", leaves)


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
    if "$(" not in text:
        return text
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
