"""The faults that checks report, with Kyverno's words for each; apart from the checks so that those stay readable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import LimitError
from engine.lang import gotext

from .fault import Fault

if TYPE_CHECKING:
    from engine.model import Json


def differs(value: Json, pattern: Json) -> Fault:
    """Report a value that a scalar pattern does not allow."""
    return Fault(
        lambda path: (
            f"resource value '{_shown(value)}' does not match '{_shown(pattern)}' at path {path}"
        )
    )


def not_a_map(value: Json) -> Fault:
    """Report something else where the pattern has a map."""
    return Fault(
        lambda path: (
            f"pattern and resource have different structures. Path: {path}. "
            f"Expected map[string]interface {{}}, found {_type_name(value)}"
        )
    )


def not_a_list() -> Fault:
    """Report something else where the pattern has a list."""
    return Fault(
        lambda path: (
            f"validation rule failed at path {path}, resource does not satisfy the expected overlay pattern"
        )
    )


def empty_pattern() -> Fault:
    """Report a list that meets an empty list pattern, which nothing satisfies (row P-14)."""
    return Fault(lambda _path: "pattern Array empty")


def too_short(found: int, wanted: int) -> Fault:
    """Report a list with fewer elements than a pattern that goes by position (row P-14)."""
    return Fault(
        lambda _path: (
            f"validate Array failed, array length mismatch, resource Array len is {found} "
            f"and pattern Array len is {wanted}"
        ),
        placed=False,
    )


def not_found(key: str) -> Fault:
    """Report a key that must be there and not null (row P-11); the path stays that of the map around it."""
    return Fault(lambda path: f"{path}/{key} not found")


def condition_missing(key: str) -> Fault:
    """Report that the key of a condition is absent (row P-01)."""
    return Fault(lambda _path: "conditional anchor key doesn't exist in the resource", key)


def not_allowed(key: str) -> Fault:
    """Report a key that must be absent (row P-04)."""
    return Fault(
        lambda path: f"negation anchor matched in resource: {path} is not allowed",
        key,
    )


def no_element_fits() -> Fault:
    """Report a list of which no element satisfies an existence anchor (row P-05)."""
    return Fault(lambda path: f"existence anchor validation failed at path {path}")


def unsuitable(what: str, value: Json, expected: str) -> Fault:
    """Report a `resource` or `pattern` of a type that an existence anchor cannot work with."""
    return Fault(lambda _path: f"invalid {what} type {_type_name(value)}: {expected}")


def _shown(value: Json) -> str:
    # A mismatch must stay a mismatch, so a value that cannot be written out does not turn it into an error.
    try:
        return gotext.plain(value)
    except LimitError as error:
        return f"({error.message})"


def _type_name(value: Json) -> str:
    if value is None:
        return "<nil>"
    if isinstance(value, dict):
        return "map[string]interface {}"
    if isinstance(value, list):
        return "[]interface {}"
    return {bool: "bool", int: "int64", float: "float64"}.get(type(value), "string")
