"""Paths of API servers that policies write: checked, so that they stay paths of that server.

For `Client.raw` and for whoever judges what a policy may ask. A path goes out beside our credentials; nothing in it may
name another host, climb, or read differently to us than to the server.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from .errors import Invalid

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from engine.model import Json, Object

_LONGEST = 8192
_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f\\#]")
_SAFE = "/%:@!$&'()*+,;=~?-._"


def checked_path(text: str) -> str:
    """Return a path and query ready to be sent; raise Invalid for what is not plainly a path of the API server.

    Refused are other hosts (`//host`, `http://…`), `.` and `..` in any spelling, empty segments, encoded slashes,
    fragments, backslashes and control characters.
    """
    path, _, query = text.partition("?")
    if not path.startswith("/") or len(text) > _LONGEST or _FORBIDDEN.search(text):
        raise _refused(text)
    for part in path[1:].removesuffix("/").split("/"):
        plain = unquote(part)
        if plain in ("", ".", "..") and path != "/":
            raise _refused(text)
        if "/" in plain or "%" in plain or _FORBIDDEN.search(plain):
            raise _refused(text)
    sent = quote(path, safe=_SAFE)
    return f"{sent}?{quote(query, safe=_SAFE)}" if query else sent


def segments(text: str) -> list[str]:
    """Return the decoded segments of a path; raise Invalid as `checked_path` does."""
    path = checked_path(text).partition("?")[0]
    return [unquote(part) for part in path.strip("/").split("/") if part]


def _refused(text: str) -> Invalid:
    shown = "".join(char if char.isprintable() else "?" for char in text[:200])
    return Invalid(f"`{shown}` is not a path of the API server")


# Label and field selectors as the API takes them: texts in queries.
#
# `text_of` writes a policy's LabelSelector for a query, `parse_labels`, `label_requirements` and `field_tests`
# read what a query holds, for servers of our own. Grammar: Kubernetes' `labels.Parse` and `fields.ParseSelector`.

_SET = re.compile(r"(?P<key>[^\s!=,()]+)\s+(?P<op>in|notin)\s*\((?P<values>[^()]*)\)")
_PAIR = re.compile(r"(?P<key>[^\s!=,()]+)\s*(?P<op>==|=|!=)\s*(?P<value>[^\s!=,()]*)")
_PRESENCE = re.compile(r"(?P<absent>!?)\s*(?P<key>[^\s!=,()]+)")

_OPERATORS = {"In": "in", "NotIn": "notin", "Exists": "", "DoesNotExist": "!"}


def text_of(selector: Json) -> str:
    """Return a LabelSelector as the text of a query; raise Invalid for what no server would take."""
    if not selector:
        return ""
    if not isinstance(selector, dict):
        raise Invalid("a label selector must be a map")
    pairs = selector.get("matchLabels") or {}
    parts = [f"{key}={value}" for key, value in sorted(pairs.items())]
    for one in selector.get("matchExpressions") or ():
        operator = _OPERATORS.get(str(one.get("operator")))
        key, values = str(one.get("key") or ""), one.get("values") or ()
        if operator is None or not key:
            raise Invalid("a label selector holds an unknown operator")
        if operator in ("in", "notin"):
            parts.append(f"{key} {operator} ({','.join(str(value) for value in values)})")
        else:
            parts.append(f"{operator}{key}")
    return ",".join(parts)


@dataclass(frozen=True, slots=True)
class Requirement:
    """One part of a label selector: `is_wanted` whether the label must be there with one of `values` (None: any), or must not."""

    key: str
    is_wanted: bool
    values: frozenset[str] | None = None

    def holds(self, labels: Mapping[str, Any]) -> bool:
        """Tell whether a label map fulfils it; a label that is absent has none of the values."""
        found = self.key in labels
        if found and self.values is not None:
            found = labels[self.key] in self.values
        return found is self.is_wanted


@dataclass(frozen=True, slots=True)
class FieldTest:
    """One part of a field selector: the field at `path` equals `value`, or does not; one that is absent is empty."""

    path: str
    value: str
    is_equal: bool = True

    def holds(self, obj: Object) -> bool:
        """Tell whether an object fulfils it."""
        found: Any = obj
        for key in self.path.split("."):
            found = found.get(key) if isinstance(found, dict) else None
        text = (
            str(found).lower() if isinstance(found, bool) else "" if found is None else str(found)
        )
        return (text == self.value) is self.is_equal


def parse_labels(text: str) -> Callable[[Mapping[str, Any]], bool]:
    """Return the test of a label map that a query's `labelSelector` asks for; raise Invalid when it is none."""
    tests = label_requirements(text)
    return lambda labels: all(test.holds(labels) for test in tests)


def label_requirements(text: str) -> tuple[Requirement, ...]:
    """Return what a query's `labelSelector` asks for, part by part; raise Invalid when it is none."""
    return tuple(map(_requirement, _parts(text)))


def _parts(text: str) -> list[str]:
    """Split at commas outside of parentheses."""
    parts, start, depth = [], 0, 0
    for index, char in enumerate(text):
        depth += {"(": 1, ")": -1}.get(char, 0)
        if char == "," and not depth:
            parts.append(text[start:index])
            start = index + 1
    parts.append(text[start:])
    if len(parts) == 1 and not parts[0].strip():
        return []
    return [part.strip() for part in parts]


def _requirement(part: str) -> Requirement:
    if found := _SET.fullmatch(part):
        values = frozenset(value.strip() for value in found["values"].split(","))
        return Requirement(found["key"], found["op"] == "in", values)
    if found := _PAIR.fullmatch(part):
        return Requirement(found["key"], found["op"] != "!=", frozenset({found["value"]}))
    if found := _PRESENCE.fullmatch(part):
        return Requirement(found["key"], not found["absent"])
    raise Invalid(f"unable to parse requirement: `{part[:100]}`")


def field_tests(text: str) -> tuple[FieldTest, ...]:
    """Return what a query's `fieldSelector` asks for, part by part; raise Invalid when it is none."""
    return tuple(map(_field_test, _parts(text)))


def _field_test(part: str) -> FieldTest:
    found = re.fullmatch(r"([^\s=!]+)\s*(==|!=|=)\s*(.*)", part)
    if found is None:
        raise Invalid(f"invalid field selector: `{part[:100]}`")
    return FieldTest(found[1], found[3], found[2] != "!=")
