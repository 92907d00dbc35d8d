"""Label selectors compiled into tests of a label map, with Kyverno's wildcards in `matchLabels` (row A-37).

A pair with a wildcard holds when some label fits both its key and its value. `matchExpressions` know no wildcards. A
selector that Kubernetes would refuse matches nothing, whatever its other parts say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.lang import wildcard
from engine.lang.lazy_regex import regex

from .combine import every, never
from .shapes import mapping, sequence, text, texts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from engine.model import Json

    LabelTest = Callable[[Mapping[str, Json]], bool]


def compile_selector(selector: Json) -> LabelTest:
    """Compile a LabelSelector; an empty one matches every label map.

    Raises PolicyError when a part has the wrong type.
    """
    block = mapping(selector, "selector")
    pairs = mapping(block.get("matchLabels"), "selector.matchLabels")
    expressions = sequence(block.get("matchExpressions"), "selector.matchExpressions")
    found = [
        *(_pair(key, text(value, "selector.matchLabels")) for key, value in pairs.items()),
        *(_expression(mapping(item, "selector.matchExpressions")) for item in expressions),
    ]
    tests = tuple(test for test in found if test is not None)
    return every(tests) if len(tests) == len(found) else never


def _pair(key: str, value: str) -> LabelTest | None:
    """Return the test of one `matchLabels` pair, None when Kubernetes refuses the pair."""
    if wildcard.has_wildcard(key) or wildcard.has_wildcard(value):
        return some_pair(key, value)
    if key_error(key) or value_error(value):
        return None
    return lambda labels: labels.get(key) == value


def some_pair(key: str, value: str) -> LabelTest:
    """Return a test whether some entry of a map fits both wildcards (annotations too, row A-36)."""
    fits_value = wildcard.compiled(value)
    if not wildcard.has_wildcard(key):
        return lambda labels: isinstance(found := labels.get(key), str) and fits_value(found)
    fits_key = wildcard.compiled(key)
    return lambda labels: any(
        isinstance(found, str) and fits_key(name) and fits_value(found)
        for name, found in labels.items()
    )


def _expression(block: Mapping[str, Json]) -> LabelTest | None:
    """Return the test of one `matchExpressions` entry, None when Kubernetes refuses it."""
    key = text(block.get("key"), "selector.matchExpressions.key")
    operator = text(block.get("operator"), "selector.matchExpressions.operator")
    listed = texts(block.get("values"), "selector.matchExpressions.values")
    values = frozenset(listed)
    if key_error(key) or any(value_error(value) for value in values):
        return None
    match operator:
        case "In" if values:
            return lambda labels: labels.get(key) in values
        case "NotIn" if values:
            return lambda labels: labels.get(key) not in values
        case "Exists" if not values:
            return lambda labels: key in labels
        case "DoesNotExist" if not values:
            return lambda labels: key not in labels
    return None


# What Kubernetes accepts as a label key and a label value, with the API server's own words.
#
# Selectors that break these rules match nothing when they are evaluated and are refused when a policy is checked; both
# places ask here. Rules: `k8s.io/apimachinery/pkg/util/validation`.

_NAME = regex(r"(?:[A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_SUBDOMAIN = regex(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
_NAME_LIMIT = 63
_PREFIX_LIMIT = 253

_NAME_TEXT = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
    " (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is"
    " '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and"
    " end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is"
    " '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_PREFIX_TEXT = (
    "prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and"
    " must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is"
    r" '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)


def key_error(key: str) -> str | None:
    """Return what is wrong with a label key, or None."""
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        return f"a qualified name {_NAME_TEXT} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
    if slash:
        if not prefix:
            return "prefix part must be non-empty"
        if len(prefix) > _PREFIX_LIMIT:
            return f"prefix part must be no more than {_PREFIX_LIMIT} characters"
        if not _SUBDOMAIN.fullmatch(prefix):
            return _PREFIX_TEXT
    if not name:
        return "name part must be non-empty"
    if len(name) > _NAME_LIMIT:
        return f"name part must be no more than {_NAME_LIMIT} characters"
    return None if _NAME.fullmatch(name) else f"name part {_NAME_TEXT}"


def value_error(value: str) -> str | None:
    """Return what is wrong with a label value, or None."""
    if len(value) > _NAME_LIMIT:
        return f"must be no more than {_NAME_LIMIT} characters"
    return None if not value or _NAME.fullmatch(value) else _VALUE_TEXT
