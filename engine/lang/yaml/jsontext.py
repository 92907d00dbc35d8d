"""The fast path of the document reader: a text that is JSON, read by a JSON parser, with the results YAML would give.

kubectl's answers and CI pipelines are JSON; reading them as YAML costs five times as much. Numbers are brought to the form they
have after Kubernetes' way through YAML (`1.0` is the integer 1), so that nobody can tell which path a text took.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.lang import json

from .document import Document
from .scalars import INT64_MAX, through_json

if TYPE_CHECKING:
    from engine.lang.limits import Limits


def load_json(text: str, file: str, limits: Limits) -> list[Document] | None:
    """Return the one document of a JSON text, or None where the text is something else; raise DocumentError if too deep."""
    body = text.lstrip(" \t\r\n")
    if body[:1] not in ("{", "["):
        return None
    import orjson  # here, because loading it takes a tenth of what small commands take

    try:
        value = orjson.loads(body)
    except ValueError:
        return None
    json.check_depth(value, limits, file)
    _settle(value)
    line = text.count("\n", 0, len(text) - len(body)) + 1
    return [Document(value, line, file, text=text, end=len(text))]


def _settle(value: Any) -> None:
    """Bring the numbers inside a freshly read value to their form after YAML, in place; nobody else holds it yet."""
    entries = value.items() if type(value) is dict else enumerate(value)
    for key, child in entries:
        kind = type(child)
        if kind is dict or kind is list:
            _settle(child)
        elif kind is float or (kind is int and child > INT64_MAX):
            value[key] = through_json(child)
