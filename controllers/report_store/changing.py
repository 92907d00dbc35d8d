"""What a create, an update or a delete makes of a report, or why it is refused: the API server's rules for any object."""

from __future__ import annotations

import re
import secrets
import uuid
from typing import TYPE_CHECKING, Any, Final

import orjson

from controllers.kube import AlreadyExists, Conflict, Invalid, KubeError, NotFound
from engine.fields import part
from engine.lang import rfc3339
from engine.model import Status

from .queries import MOST_LISTED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from engine.model import Object

    from .served import Served

LARGEST: Final = 1536 * 1024
"""Bytes of a report, or of some that come together: what etcd takes of any object."""

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_LONGEST_NAME: Final = 253
_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
_GIVEN: Final = ("name", "namespace", "labels", "annotations", "ownerReferences")
_FIELDS: Final = (
    "metadata",
    "scope",
    "scopeSelector",
    "source",
    "configuration",
    "results",
    "summary",
)
_RESULTS: Final = frozenset(map(str, Status))


def read_body(body: bytes) -> Object:
    """Return the object in a request, of which nothing is known yet; raises KubeError for what is none."""
    if len(body) > LARGEST:
        raise too_large(f"a request may have {LARGEST} bytes")
    try:
        given = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Invalid(f"the body is not JSON: {error}") from error
    if not isinstance(given, dict):
        raise Invalid("the body is no object")
    return given


def listed(given: Object) -> list[Any]:
    """Return the items of a list of reports that are written at once; raises KubeError for what is none."""
    items = given.get("items")
    if not isinstance(items, list) or not all(isinstance(one, dict) for one in items):
        raise Invalid("items is not a list of objects")
    if len(items) > MOST_LISTED:
        raise too_large(f"a list may have {MOST_LISTED} reports")
    return items


def version_of(item: Mapping[str, Any]) -> Any:
    """Return the version that a report of a list replaces, nothing where it is to be created."""
    return part(item, "metadata").get("resourceVersion")


def namespace_of(item: Mapping[str, Any]) -> str:
    """Return the namespace that a report of a list names; raises Invalid where it names none."""
    namespace = part(item, "metadata").get("namespace")
    if not isinstance(namespace, str) or not _LABEL.fullmatch(namespace):
        raise Invalid("a report of the list names no namespace")
    return namespace


def checked(given: Object, served: Served, namespace: str, name: str = "") -> Object:
    """Return a report as it is to be kept; raises Invalid for what is none, or is another's."""
    for key, wanted in (("apiVersion", served.kind.api_version), ("kind", served.kind.kind)):
        if given.get(key, wanted) != wanted:
            raise Invalid(f"the {key} in the body is not `{wanted}`")
    metadata = given.get("metadata")
    if not isinstance(metadata, dict):
        raise Invalid("the body has no metadata")
    if metadata.get("namespace", namespace) not in (namespace, None):
        raise Invalid(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    named = metadata.get("name") or name or _generated(metadata.get("generateName"))
    if name and named != name:
        raise Invalid(
            f"the name of the object (`{named}`) does not match the name on the URL (`{name}`)"
        )
    report = {key: given[key] for key in _FIELDS if given.get(key) is not None}
    report["metadata"] = _metadata(metadata, str(named), namespace)
    _check(report, served)
    return report


def _generated(prefix: Any) -> str:
    if not prefix:
        raise invalid("metadata.name: Required value: name or generateName is required")
    return f"{prefix}{''.join(secrets.choice(_ALPHABET) for _ in range(5))}"


def _metadata(given: Mapping[str, Any], name: str, namespace: str) -> Object:
    made = {key: given[key] for key in _GIVEN if given.get(key)}
    made["name"] = name
    if namespace:
        made["namespace"] = namespace
    return {**made, **{key: given[key] for key in ("uid", "resourceVersion") if given.get(key)}}


def _check(report: Object, served: Served) -> None:
    """Raise Invalid for a report of which the store could not tell what it says."""
    metadata, what = report["metadata"], served.kind.kind
    name = metadata["name"]
    if len(name) > _LONGEST_NAME or not _NAME.fullmatch(name):
        raise invalid(
            f'{what} "{name}" is invalid: metadata.name: Invalid value: a lowercase RFC 1123 subdomain is needed'
        )
    for field in ("labels", "annotations"):
        texts = metadata.get(field) or {}
        if not isinstance(texts, dict) or not all(isinstance(one, str) for one in texts.values()):
            raise Invalid(f"metadata.{field} is not a map of texts")
    if not isinstance(report.get("scope") or {}, dict):
        raise Invalid("scope is no reference to an object")
    rows = report.get("results") or []
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise Invalid("results is not a list of results")
    for number, row in enumerate(rows):
        if row.get("result") is not None and row["result"] not in _RESULTS:
            raise invalid(
                f'{what} "{name}" is invalid: results[{number}].result: Unsupported value'
            )


def creating(report: Object, now: datetime) -> Callable[[Object | None], Object | None]:
    """Return what creates a report: raises AlreadyExists, and Invalid for one that names a version."""
    if report["metadata"].get("resourceVersion"):
        raise Invalid("resourceVersion should not be set on objects to be created")

    def apply(there: Object | None) -> Object:
        if there is not None:
            name = report["metadata"]["name"]
            raise AlreadyExists(f'report "{name}" already exists', details={"name": name})
        made = {"uid": str(uuid.uuid4()), "creationTimestamp": rfc3339.write(now), "generation": 1}
        return {**report, "metadata": {**report["metadata"], **made}}

    return apply


def updating(report: Object) -> Callable[[Object | None], Object | None]:
    """Return what replaces a report: raises NotFound, and Conflict where it is not the one that was read."""
    given = report["metadata"]

    def apply(there: Object | None) -> Object:
        if there is None:
            raise missing(given["name"])
        old = there["metadata"]
        for field in ("uid", "resourceVersion"):
            if given.get(field, old[field]) != old[field]:
                raise _changed(given["name"])
        kept = {key: old[key] for key in ("uid", "creationTimestamp", "resourceVersion")}
        body = {key: value for key, value in report.items() if key != "metadata"}
        is_same = body == {key: value for key, value in there.items() if key != "metadata"}
        generation = old.get("generation", 1) + (not is_same)
        return {**report, "metadata": {**given, **kept, "generation": generation}}

    return apply


def deleting(
    name: str, preconditions: Mapping[str, Any]
) -> Callable[[Object | None], Object | None]:
    """Return what deletes a report: raises NotFound, and Conflict where it is not the one that is meant."""

    def apply(there: Object | None) -> None:
        if there is None:
            raise missing(name)
        for field in ("uid", "resourceVersion"):
            if preconditions.get(field, there["metadata"][field]) != there["metadata"][field]:
                raise _changed(name)

    return apply


def missing(name: str) -> NotFound:
    """Return the refusal of a report that is not there."""
    return NotFound(f'report "{name}" not found', details={"name": name})


def _changed(name: str) -> Conflict:
    return Conflict(
        f'Operation cannot be fulfilled on report "{name}": the object has been modified; please apply your changes to the latest version and try again',
        details={"name": name},
    )


def too_large(text: str) -> KubeError:
    """Return the refusal of a body that is larger than what is taken."""
    return KubeError(text, status=413, reason="RequestEntityTooLarge")


def invalid(text: str) -> Invalid:
    """Return the refusal of what is written well and says what may not be."""
    return Invalid(text, status=422, reason="Invalid")
