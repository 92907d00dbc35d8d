"""What exactly is wrong with an object, as a digest: what a code is for, so that nothing else passes with it.

A rule reports its first miss only, so the paths that it names do not say everything that is wrong. Therefore the whole body
of the object counts, and of its metadata what the rule looked at; a rule that names no path may have looked at all of it.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

from engine.lang.gotext import compact_json

from .binding import fingerprint

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.model import Json, Object

CODE_ANNOTATION: Final = "kpolicy.io/code"
MOST_CODES: Final = 8
_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_NOT_BODY: Final = frozenset({"metadata", "status"})
_TOKEN: Final = "kube-api-access-"  # noqa: S105 - the beginning of a volume's name


def carried_codes(obj: Object | None) -> tuple[str, ...]:
    """Return the texts that an object carries as codes, at most eight."""
    annotations = _part(_part(obj or {}, "metadata"), "annotations")
    given = annotations.get(CODE_ANNOTATION)
    texts = given.split(",") if isinstance(given, str) else []
    return tuple(text.strip() for text in texts[:MOST_CODES] if text.strip())


def body_digest(obj: Object) -> str:
    """Return a digest of everything but metadata and status.

    The API server gives every Pod a volume for its token with a random name; it is counted by what it holds, not by its name.
    """
    body = {key: value for key, value in obj.items() if key not in _NOT_BODY}
    text = compact_json(_even(body))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def violation_of(obj: Object, misses: Iterable[tuple[str, str]]) -> str:
    """Return the fingerprint of what is wrong with an object, from (rule, path) of each miss."""
    listed: list[tuple[str, str, Json]] = [("", "body", body_digest(obj))]
    metadata = _part(obj, "metadata")
    shown = {
        "labels": metadata.get("labels"),
        "annotations": {
            key: value
            for key, value in _part(metadata, "annotations").items()
            if key not in (CODE_ANNOTATION, _APPLIED)
        },
    }
    for rule, path in misses:
        value = _at(obj, path) if path.startswith("/metadata") else None if path else shown
        listed.append((rule, path, value))
    return fingerprint(listed, ())


def _even(value: Any) -> Any:
    """Return a value in which names of token volumes are all the same."""
    if isinstance(value, dict):
        name = value.get("name")
        named = isinstance(name, str) and name.startswith(_TOKEN)
        found = {key: _even(item) for key, item in value.items()}
        return {**found, "name": _TOKEN} if named else found
    return [_even(item) for item in value] if isinstance(value, list) else value


def _at(obj: Object, path: str) -> Any:
    found: Any = obj
    for step in filter(None, path.split("/")):
        if isinstance(found, dict):
            found = found.get(step)
        elif isinstance(found, list) and step.isdecimal() and int(step) < len(found):
            found = found[int(step)]
        else:
            return None
    return found


def _part(obj: Any, key: str) -> dict[str, Any]:
    found = obj.get(key) if isinstance(obj, dict) else None
    return found if isinstance(found, dict) else {}
