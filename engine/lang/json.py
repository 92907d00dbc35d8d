"""Strict JSON as the API server sends it: one value, no extras, bounded in size and depth, one kind of error.

For AdmissionReviews, arguments of expressions and the JSON half of the document reader. Apart from `orjson` itself because
callers need the engine's own error and a bound on depth that their recursion can stand.
"""

from __future__ import annotations

from typing import Any

from engine.errors import DocumentError, Location

from .work import LIMITS, Limits


def load(text: str | bytes, *, file: str = "", limits: Limits = LIMITS) -> Any:
    """Return the value of a JSON text; raise DocumentError for anything else and for what is too large or too deep.

    Numbers stay as written: `1.0` is a float; integers beyond 64 bits are floats, as in Go. Of equal keys the last one counts.
    """
    import orjson  # here, because loading it takes a tenth of what small commands take

    if len(text) > limits.size:
        raise DocumentError(f"larger than {limits.size} bytes", at=Location(file))
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        reason = error.msg.partition(": line ")[0]
        if "depth limit" in reason:
            reason = too_deep(limits)
        raise DocumentError(reason, at=Location(file, error.lineno)) from error
    check_depth(value, limits, file)
    return value


def check_depth(value: Any, limits: Limits = LIMITS, file: str = "") -> None:
    """Raise DocumentError where lists and mappings nest deeper than the bound; walks level by level, without recursion."""
    level = [value] if type(value) in (dict, list) else []
    for _ in range(limits.depth):
        if not level:
            return
        level = [
            child
            for part in level
            for child in (part.values() if type(part) is dict else part)
            if type(child) is dict or type(child) is list
        ]
    if level:
        raise DocumentError(too_deep(limits), at=Location(file))


def too_deep(limits: Limits) -> str:
    """Return the text of the error for nesting beyond the bound."""
    return f"nested deeper than {limits.depth} levels"
