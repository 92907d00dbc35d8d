"""Label and field selectors in their query-string form, compiled to predicates on objects.

For lists, watches and `deletecollection`; the grammar is Kubernetes': `a=b,c!=d,e in (f,g),h notin (i),j,!k`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from kpolicy_sandbox.errors import bad_request

Predicate = Callable[[dict[str, Any]], bool]
_NAME = (
    r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?"
)
_TERM = re.compile(
    rf"\s*(?:(?P<no>!)\s*(?P<absent>{_NAME})"
    rf"|(?P<key>{_NAME})\s*(?:(?P<op>==|=|!=)\s*(?P<value>[-A-Za-z0-9_.]*)"
    r"|\s(?P<set>in|notin)\s*\((?P<values>[^)]*)\)"
    r"|(?P<cmp>[<>])\s*(?P<number>-?\d+))?)\s*(?:,|$)"
)


def label_selector(text: str) -> Predicate | None:
    """Compile a label selector; None selects everything. ApiError 400 for what cannot be read."""
    if not text.strip():
        return None
    terms = []
    at = 0
    while at < len(text):
        found = _TERM.match(text, at)
        if not found:
            raise bad_request(f"unable to parse requirement: found '{text[at:]}'")
        terms.append(_term(found))
        at = found.end()
    return lambda obj: _all(terms, obj.get("metadata", {}).get("labels") or {})


def _all(terms: list[Callable[[dict[str, str]], bool]], labels: dict[str, str]) -> bool:
    return all(term(labels) for term in terms)


def _term(found: re.Match[str]) -> Callable[[dict[str, str]], bool]:
    key, value = found["key"], found["value"]
    if found["no"]:
        absent = found["absent"]
        return lambda labels: absent not in labels
    if found["op"] == "!=":
        return lambda labels: labels.get(key) != value
    if found["op"]:
        return lambda labels: labels.get(key) == value
    if found["set"]:
        values = {part.strip() for part in found["values"].split(",")}
        if found["set"] == "in":
            return lambda labels: labels.get(key, ...) in values
        return lambda labels: labels.get(key, ...) not in values
    if found["cmp"]:
        return _compared(key, found["cmp"], int(found["number"]))
    return lambda labels: key in labels


def _compared(key: str, sign: str, number: int) -> Callable[[dict[str, str]], bool]:
    def matches(labels: dict[str, str]) -> bool:
        try:
            held = int(labels[key])
        except (KeyError, ValueError):
            return False
        return held > number if sign == ">" else held < number

    return matches


def matches_selector(selector: dict[str, Any] | None, labels: dict[str, str]) -> bool:
    """Tell whether labels fit a LabelSelector object; an empty or missing one fits everything."""
    if not selector:
        return True
    for key, value in (selector.get("matchLabels") or {}).items():
        if labels.get(key) != value:
            return False
    return all(_expression(one, labels) for one in selector.get("matchExpressions") or ())


def _expression(one: dict[str, Any], labels: dict[str, str]) -> bool:
    key, values = one.get("key", ""), one.get("values") or []
    match one.get("operator"):
        case "In":
            return labels.get(key, ...) in values
        case "NotIn":
            return labels.get(key, ...) not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
    return False


_FIELDS = {
    "/pods": {"spec.nodeName", "status.phase", "spec.restartPolicy", "status.podIP",
              "spec.serviceAccountName", "spec.schedulerName"},
    "/events": {"involvedObject.kind", "involvedObject.namespace", "involvedObject.name",
                "involvedObject.uid", "involvedObject.apiVersion", "involvedObject.fieldPath",
                "involvedObject.resourceVersion", "reason", "type", "source",
                "reportingComponent"},
    "/secrets": {"type"},
    "/namespaces": {"status.phase"},
    "/nodes": {"spec.unschedulable"},
    "batch/jobs": {"status.successful"},
    "apps/replicasets": {"status.replicas"},
}  # fmt: skip


def field_selector(text: str, storage: str) -> Predicate | None:
    """Compile a field selector; ApiError 400 for a field that the resource cannot be selected by."""
    if not text.strip():
        return None
    allowed = {"metadata.name", "metadata.namespace"} | _FIELDS.get(storage, set())
    terms = [_field_term(part, allowed) for part in text.split(",")]
    return lambda obj: all(term(obj) for term in terms)


def _field_term(part: str, allowed: set[str] | frozenset[str]) -> Predicate:
    found = re.fullmatch(r"\s*([^=!]+?)\s*(==|=|!=)\s*(.*?)\s*", part)
    if not found:
        raise bad_request(f"invalid selector: '{part}'; can't understand '{part}'")
    path, sign, value = found.groups()
    if path not in allowed:
        raise bad_request(f"field label not supported: {path}")
    keys = path.split(".")
    return lambda obj: (_text_at(obj, keys) == value) == (sign != "!=")


def _text_at(obj: Any, keys: list[str]) -> str:
    if keys == ["source"]:
        keys = ["source", "component"]
    for key in keys:
        obj = obj.get(key) if isinstance(obj, dict) else None
    if obj is None:
        return ""
    return str(obj).lower() if isinstance(obj, bool) else str(obj)
