"""Request bodies: JSON, YAML or Kubernetes' protobuf, whatever the client calls it, decoded to plain values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from kpolicy_sandbox.errors import bad_request, unsupported_media
from kpolicy_sandbox.objects.patches import APPLY, JSON_PATCH, MERGE, STRATEGIC
from kpolicy_sandbox.schema.protobuf import MAGIC, MEDIA_TYPE, decode

if TYPE_CHECKING:
    from kpolicy_sandbox.kinds import Registry

_YAML = {"application/yaml", APPLY}
_JSON = {"", "application/json", "application/octet-stream", JSON_PATCH, MERGE, STRATEGIC}


def decoded(raw: bytes, content_type: str, registry: Registry) -> Any:
    """Return what a body holds, None for an empty one. ApiError 400 or 415 for one that cannot be read."""
    if not raw:
        return None
    if content_type == MEDIA_TYPE or raw.startswith(MAGIC):
        return decode(raw, lambda version, kind: _type_of(registry, version, kind))
    if content_type in _YAML:
        return _yaml(raw)
    if content_type not in _JSON:
        raise unsupported_media(f"application/json, application/yaml, {MEDIA_TYPE}")
    try:
        return orjson.loads(raw)
    except ValueError as error:
        raise bad_request(f"the body of the request is not JSON: {error}") from error


def _yaml(raw: bytes) -> Any:
    from .yaml import load

    try:
        return load(raw)
    except ValueError as error:
        raise bad_request(f"the body of the request is not YAML: {error}") from error


_OTHERS = {
    ("meta.k8s.io/v1", "DeleteOptions"): "meta.v1.DeleteOptions",
    ("v1", "DeleteOptions"): "meta.v1.DeleteOptions",
    ("policy/v1", "Eviction"): "policy.v1.Eviction",
    ("autoscaling/v1", "Scale"): "autoscaling.v1.Scale",
    ("authentication.k8s.io/v1", "TokenRequest"): "authentication.v1.TokenRequest",
    ("v1", "Binding"): "core.v1.Binding",
}


def _type_of(registry: Registry, api_version: str, kind: str) -> str:
    if named := _OTHERS.get((api_version, kind)):
        return named
    group, _, version = api_version.rpartition("/")
    resource = registry.by_kind(group, version, kind)
    return resource.type if resource else ""
