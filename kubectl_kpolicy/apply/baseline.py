"""Findings that are known and accepted for now: a list as `check -o json` and `violations -o json` print it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import DocumentError, Location, reason_of

if TYPE_CHECKING:
    from engine.model import Object

Identity = tuple[str, str, str, str, str]
"""Policy, rule, and kind, namespace and name of the object."""


def read_baseline(name: str) -> set[Identity]:
    """Return the findings of a file; raises DocumentError for one that is no such list."""
    from engine.lang.yaml import load

    try:
        value = load(Path(name).read_bytes(), file=name)
    except OSError as error:
        raise DocumentError(f"cannot read `{name}`: {reason_of(error)}") from error
    items = value.get("items") if isinstance(value, dict) else None
    if not isinstance(items, list) or any(_is_no_finding(one) for one in items):
        raise DocumentError(
            "this is no list of findings",
            at=Location(name),
            help="make one with `kubectl kpolicy check -f FILE -o json`",
        )
    return {identity_of(one) for one in items}


def _is_no_finding(value: object) -> bool:
    return not isinstance(value, dict) or value.get("kind") != "Violation"


def identity_of(finding: Object) -> Identity:
    """Return what tells a finding from others; messages may change without its being another one."""
    resource = finding.get("resource") or {}
    return (
        str(finding.get("policy", "")),
        str(finding.get("rule", "")),
        str(resource.get("kind", "")),
        str(resource.get("namespace", "")),
        str(resource.get("name", "")),
    )
