"""The discovery documents of an API server that has a given list of kinds; for `fake.FakeClient`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controllers.kube.kinds import Kind
    from engine.model import Json, Object

_VERBS = ["create", "delete", "get", "list", "patch", "update", "watch"]


def discovery_at(path: str, kinds: Sequence[Kind]) -> Json:
    """Return the legacy discovery document at a path; None where there is none."""
    parts = path.strip("/").split("/")
    if path == "/api":
        return {"kind": "APIVersions", "versions": ["v1"]}
    if path == "/apis":
        groups = sorted({kind.group for kind in kinds if kind.group})
        return {"kind": "APIGroupList", "groups": [_group(group, kinds) for group in groups]}
    if parts[0] == "api" and len(parts) == 2:
        return _resources("", parts[1], kinds)
    if parts[0] == "apis" and len(parts) == 3:
        return _resources(parts[1], parts[2], kinds)
    return None


def _group(name: str, kinds: Sequence[Kind]) -> Object:
    versions = dict.fromkeys(kind.version for kind in kinds if kind.group == name)
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def _resources(group: str, version: str, kinds: Sequence[Kind]) -> Json:
    found = [
        {
            "name": kind.plural,
            "kind": kind.kind,
            "namespaced": kind.namespaced,
            "singularName": kind.singular or kind.kind.lower(),
            "verbs": list(kind.verbs) or _VERBS,
        }
        for kind in kinds
        if (kind.group, kind.version) == (group, version)
    ]
    return {"kind": "APIResourceList", "resources": found} if found else None
