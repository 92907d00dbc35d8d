"""`$(path)` references of patterns and messages that lead nowhere.

A reference is a path in the rule's own document: absolute, or relative to where it stands. What it leads to must be
there, and must be text where it is a scalar.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .findings import Finding, error
from .texts import texts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.model import Json, Rule

_REFERENCE = re.compile(r"(?:^|[^\\])(\$\([^ ]*?\))")
_ANCHORED = re.compile(r"[+<=X^]?\((.+)\)\Z")


def check_references(rule: Rule, path: str) -> Iterator[Finding]:
    """Yield references of one rule that can never be resolved."""
    for found in texts(rule.raw):
        for reference in _REFERENCE.findall(found.text):
            why = _fault(rule, reference, found.path)
            if why:
                yield error(
                    path,
                    f"policy contains invalid variables: variable substitution failed for rule {rule.name}: {why}",
                )


def _fault(rule: Rule, reference: str, at: str) -> str:
    value = _follow(rule.raw, _absolute(reference[2:-1], at))
    if value is None:
        return f"got nil resolved variable {reference} at path {at}: <nil>"
    if isinstance(value, bool | int | float):
        return f"NotResolvedReferenceErr,reference {reference} not resolved at path {at}"
    return ""


def _absolute(path: str, at: str) -> list[str]:
    """Return the steps of a reference from the rule's root; a relative one starts at the text that holds it."""
    if path.startswith("/"):
        return [step for step in path.split("/") if step]
    steps = at.split("/")[1:]
    for step in path.split("/"):
        if step == "..":
            steps = steps[:-1]
        elif step not in (".", ""):
            steps.append(step)
    return steps


def _follow(value: Json, steps: list[str]) -> Json:
    for step in steps:
        if isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        elif isinstance(value, dict):
            value = _field(value, step)
        else:
            return None
    return value


def _field(block: dict[str, Json], name: str) -> Json:
    """Return a field by its name with or without an anchor around it."""
    if name in block:
        return block[name]
    for key, value in block.items():
        if (anchored := _ANCHORED.match(key)) and anchored[1] == name:
            return value
    return None
