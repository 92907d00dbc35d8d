"""What there is, for kubectl and the API server: groups, versions, resources, and the least of OpenAPI.

The same for everybody who may ask at all; it tells nothing about any report.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import orjson

from controllers.manifests.crds import definition

from .served import GROUPS, SERVED, Served

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.model import Object


@cache
def documents() -> Mapping[str, bytes]:
    """Return everything by path."""
    made: dict[str, Object] = {
        "/apis": {
            "kind": "APIGroupList",
            "apiVersion": "v1",
            "groups": [_group(*one) for one in GROUPS],
        },
        "/openapi/v3": {
            "paths": {
                f"apis/{group}/{version}": {
                    "serverRelativeURL": f"/openapi/v3/apis/{group}/{version}"
                }
                for group, version in GROUPS
            }
        },
    }
    for group, version in GROUPS:
        of_group = [one for one in SERVED if one.kind.group == group]
        made[f"/apis/{group}"] = {"kind": "APIGroup", "apiVersion": "v1", **_group(group, version)}
        made[f"/apis/{group}/{version}"] = {
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": f"{group}/{version}",
            "resources": [_resource(one) for one in of_group],
        }
        made[f"/openapi/v3/apis/{group}/{version}"] = {
            "openapi": "3.0.0",
            "info": {"title": "Reports", "version": version},
            "paths": {one.kind.path(): _path(one) for one in of_group},
            "components": {"schemas": {_name(one): _schema(one) for one in of_group}},
        }
    return {path: orjson.dumps(one) for path, one in made.items()}


def _group(group: str, version: str) -> Object:
    one = {"groupVersion": f"{group}/{version}", "version": version}
    return {"name": group, "versions": [one], "preferredVersion": one}


def _resource(served: Served) -> Object:
    kind = served.kind
    return {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": list(kind.verbs),
        "shortNames": list(kind.short_names),
        "categories": list(kind.categories),
    }


def _path(served: Served) -> Object:
    """Return the operations by which kubectl finds the schema of a kind, and that the server itself checks fields."""
    validation = {"name": "fieldValidation", "in": "query", "schema": {"type": "string"}}
    return {
        "post": {
            "operationId": f"create{served.kind.kind}",
            "parameters": [validation],
            "responses": {"201": {"description": "Created"}},
            "x-kubernetes-group-version-kind": _gvk(served),
        }
    }


def _schema(served: Served) -> Object:
    [version] = definition(served.defined)["spec"]["versions"]
    return {
        **version["schema"]["openAPIV3Schema"],
        "x-kubernetes-group-version-kind": [_gvk(served)],
    }


def _gvk(served: Served) -> Object:
    kind = served.kind
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


def _name(served: Served) -> str:
    reverse = ".".join(reversed(served.kind.group.split(".")))
    return f"{reverse}.{served.kind.version}.{served.kind.kind}"
