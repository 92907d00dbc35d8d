"""What may stand in the metadata of an object of any kind: names, labels, annotations, owners."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from kpolicy_sandbox.errors import Cause, invalid_field, required_field

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kpolicy_sandbox.kinds import Resource

Object = dict[str, Any]
SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with "
    "an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an "
    "alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with "
    "an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
KEY_TEXT = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_LABEL_NAMED = {"Namespace", "Service"}
_FREE_NAMED = {"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"}


def check_metadata(resource: Resource, meta: Object) -> Iterator[Cause]:
    """Yield what is wrong with the metadata of an object."""
    yield from _name(resource, str(meta.get("name", "")))
    for key, value in (meta.get("labels") or {}).items():
        yield from _key("metadata.labels", key)
        if not _VALUE.fullmatch(value) or len(value) > 63:
            yield invalid_field("metadata.labels", value, VALUE_TEXT)
    for key in meta.get("annotations") or ():
        yield from _key("metadata.annotations", key.lower())
    for number, owner in enumerate(meta.get("ownerReferences") or ()):
        for field in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(field):
                yield required_field(
                    f"metadata.ownerReferences[{number}].{field}", f"{field} must not be empty"
                )


def _name(resource: Resource, name: str) -> Iterator[Cause]:
    if not name:
        yield required_field("metadata.name", "name or generateName is required")
    elif resource.kind in _FREE_NAMED:
        if "/" in name or "%" in name or name in {".", ".."}:
            yield invalid_field("metadata.name", name, "may not contain '/'")
    elif resource.kind in _LABEL_NAMED:
        if not LABEL.fullmatch(name):
            yield invalid_field("metadata.name", name, LABEL_TEXT)
        elif len(name) > 63:
            yield invalid_field("metadata.name", name, "must be no more than 63 characters")
    elif not SUBDOMAIN.fullmatch(name):
        yield invalid_field("metadata.name", name, SUBDOMAIN_TEXT)
    elif len(name) > 253:
        yield invalid_field("metadata.name", name, "must be no more than 253 characters")


def _key(path: str, key: str) -> Iterator[Cause]:
    prefix, slash, name = key.rpartition("/")
    if slash and not SUBDOMAIN.fullmatch(prefix):
        yield invalid_field(path, key, f"prefix part {SUBDOMAIN_TEXT}")
    if not name:
        yield invalid_field(path, key, "name part must be non-empty")
    elif not _QUALIFIED.fullmatch(name):
        yield invalid_field(path, key, KEY_TEXT)
    elif len(name) > 63:
        yield invalid_field(path, key, "name part must be no more than 63 characters")
