"""The objects of a grant as conditions in CEL: what the match of a classic exception says of kind, namespace, name and labels.

Written without optional types and macros of ours, so that any server of policies.kyverno.io reads them alike.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from engine.lang import wildcard
from engine.match.kinds import parse_kind
from engine.match.selectors import key_error, value_error

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .model import Grant

EITHER: Final = "(object == null ? oldObject : object)"
"""The object that is asked about; what is deleted is there as it was."""
_METADATA: Final = f"{EITHER}.metadata"
_LABELS: Final = f"{_METADATA}.labels"
_NEVER: Final = "false"
_NAME: Final = f'(has({_METADATA}.name) ? {_METADATA}.name : has({_METADATA}.generateName) ? {_METADATA}.generateName : "")'
_SPECIAL: Final = re.compile(r"([^\w\s/-])", re.ASCII)


def conditions_of(grant: Grant, *, is_asked: bool) -> list[dict[str, str]]:
    """Return named conditions that hold for the objects of a grant and for nothing else.

    `is_asked` says that policies of the kind are asked about requests, which may be for a part of an object: a grant is not.
    """
    found = [
        *_kind(grant.kind),
        ("namespace", _namespace(grant)),
        *([("name", _fits(_NAME, grant.target))] if grant.target else []),
        *((f"label-{number}", one) for number, one in enumerate(_labels(grant.selector or {}), 1)),
    ]
    if is_asked:
        whole = '(request == null || !has(request.subResource) || request.subResource == "")'
        found.append(("whole-object", whole))
    return [{"name": name, "expression": expression} for name, expression in found]


def _kind(text: str) -> Iterator[tuple[str, str]]:
    """Yield the conditions on kind, group and version (row A-32)."""
    wanted = parse_kind(text)
    yield "kind", _fits(f"{EITHER}.kind", wanted.kind)
    if (wanted.group, wanted.version) == ("*", "*"):
        return
    group = (
        "(.*/)?" if wanted.group == "*" else f"{_pattern(wanted.group)}/" if wanted.group else ""
    )
    yield (
        "version",
        f"{EITHER}.apiVersion.matches({_quoted(f'^{group}{_pattern(wanted.version)}$')})",
    )


def _namespace(grant: Grant) -> str:
    """Return the condition on the namespace; a Namespace counts as lying in itself, as classic exceptions have it."""
    field = "name" if parse_kind(grant.kind).kind == "Namespace" else "namespace"
    at = f"{_METADATA}.{field}"
    return f"has({at}) && {at} == {_quoted(grant.namespace)}"


def _labels(selector: Mapping[str, Any]) -> Iterator[str]:
    """Yield the conditions of a label selector; what Kubernetes would refuse is met by nothing (row A-37)."""
    for key, value in (selector.get("matchLabels") or {}).items():
        yield _pair(str(key), str(value))
    for one in selector.get("matchExpressions") or ():
        yield _expression(one) if isinstance(one, dict) else _NEVER


def _pair(key: str, value: str) -> str:
    if wildcard.has_wildcard(key) or wildcard.has_wildcard(value):
        fits = f"{_fits('k', key)} && {_fits(f'{_LABELS}[k]', value)}"
        return f"has({_LABELS}) && {_LABELS}.exists(k, {fits})"
    if key_error(key) or value_error(value):
        return _NEVER
    return f"{_has(key)} && {_LABELS}[{_quoted(key)}] == {_quoted(value)}"


def _expression(block: dict[str, Any]) -> str:
    key, values = str(block.get("key") or ""), [str(one) for one in block.get("values") or ()]
    if key_error(key) or any(map(value_error, values)):
        return _NEVER
    among = f"({_has(key)} && {_LABELS}[{_quoted(key)}] in [{', '.join(map(_quoted, values))}])"
    match block.get("operator"):
        case "In" if values:
            return among
        case "NotIn" if values:
            return f"!{among}"
        case "Exists" if not values:
            return f"({_has(key)})"
        case "DoesNotExist" if not values:
            return f"!({_has(key)})"
    return _NEVER


def _has(key: str) -> str:
    return f"has({_LABELS}) && {_quoted(key)} in {_LABELS}"


def _fits(value: str, pattern: str) -> str:
    """Return the test of a text by a name with wildcards."""
    if wildcard.has_wildcard(pattern):
        return f"{value}.matches({_quoted(f'(?s)^{_pattern(pattern)}$')})"
    return f"{value} == {_quoted(pattern)}"


def _pattern(text: str) -> str:
    """Return a name with wildcards as a regular expression (RE2)."""
    escaped = _SPECIAL.sub(r"\\\1", text)
    return escaped.replace("\\*", ".*").replace("\\?", ".")


def _quoted(text: str) -> str:
    # INVARIANT: whatever people write into a request is a literal here, and never part of an expression
    return json.dumps(text, ensure_ascii=False)
