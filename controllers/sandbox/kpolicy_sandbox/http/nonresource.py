"""Paths that are no resources: health, version, discovery, OpenAPI, and the sandbox's own switches below `/sandbox`."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from kpolicy_sandbox import errors
from kpolicy_sandbox.access import tokens
from kpolicy_sandbox.access.rbac import MASTERS
from kpolicy_sandbox.call import User
from kpolicy_sandbox.clock import parse_duration

from . import discovery, openapi

if TYPE_CHECKING:
    from kpolicy_sandbox.cluster import Cluster

Object = dict[str, Any]
HEALTH = {"/healthz", "/livez", "/readyz"}
VERSION = {
    "major": "1",
    "minor": "32",
    "gitVersion": "v1.32.4+kpolicy-sandbox",
    "gitCommit": "0" * 40,
    "gitTreeState": "clean",
    "buildDate": "2025-04-22T16:03:58Z",
    "goVersion": "none",
    "compiler": "none",
    "platform": "kpolicy/sandbox",
}


def answer(cluster: Cluster, path: str, accept: str) -> tuple[Any, str]:
    """Return what a GET of a path answers, and its media type. ApiError 404 for nothing."""
    registry = cluster.registry
    match [part for part in path.split("/") if part]:
        case []:
            paths = [
                "/api",
                "/api/v1",
                "/apis",
                "/openapi/v2",
                "/openapi/v3",
                "/sandbox/clock",
                "/version",
            ]
            return {"paths": paths}, ""
        case ["version"]:
            return VERSION, ""
        case ["api" | "apis" as root]:
            return _roots(cluster, accept, core=root == "api")
        case ["api", "v1"]:
            return discovery.resource_list(registry, "", "v1"), ""
        case ["apis", group] if group in registry.groups():
            return discovery.group(registry, group), ""
        case ["apis", group, version] if version in registry.groups().get(group, ()):
            return discovery.resource_list(registry, group, version), ""
        case ["openapi", "v2"]:
            return b"", openapi.V2
        case ["openapi", "v3"]:
            return openapi.index(registry), ""
        case ["openapi", "v3", *below]:
            return openapi.document(registry, "/".join(below)), ""
        case ["sandbox", "clock"]:
            return _clock(cluster), ""
    raise errors.no_such_path()


def _roots(cluster: Cluster, accept: str, *, core: bool) -> tuple[Any, str]:
    if version := discovery.aggregated_version(accept):
        media = f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
        return discovery.aggregated(cluster.registry, version, core=core), media
    if core:
        return discovery.core_versions(), ""
    return discovery.group_list(cluster.registry), ""


def _clock(cluster: Cluster) -> Object:
    ahead = int(cluster.clock.offset.total_seconds())
    return {"now": cluster.clock.stamp(), "ahead": f"{ahead}s"}


def switch(cluster: Cluster, user: User, path: str, body: Any) -> Object:
    """Do what a POST below `/sandbox` asks for; administrators only. ApiError for the rest."""
    if not path.startswith("/sandbox/"):
        raise (
            errors.method_not_allowed()
            if path in HEALTH | {"/version", "/api", "/apis"}
            else errors.no_such_path()
        )
    if MASTERS not in user.groups:
        raise errors.forbidden(
            "sandbox", "", "", f'User "{user.name}" is no administrator of this sandbox'
        )
    wanted = body if isinstance(body, dict) else {}
    match path:
        case "/sandbox/clock":
            return _advance(cluster, wanted)
        case "/sandbox/users":
            return _user(cluster, wanted)
        case "/sandbox/services":
            return _services(cluster, wanted)
    raise errors.no_such_path()


def _advance(cluster: Cluster, wanted: Object) -> Object:
    by = parse_duration(str(wanted.get("forward", "")))
    if by is None or by < timedelta():
        raise errors.bad_request(
            "forward: a duration such as `4h` or `90s` is needed; time never goes back"
        )
    try:
        cluster.clock.advance(by)
    except OverflowError as error:
        raise errors.bad_request("forward: that is further than the calendar reaches") from error
    cluster.store.set_fact("clock-offset", str(cluster.clock.offset.total_seconds()))
    return _clock(cluster)


def _user(cluster: Cluster, wanted: Object) -> Object:
    name, groups = wanted.get("name"), wanted.get("groups") or []
    if not isinstance(name, str) or not name or not all(isinstance(one, str) for one in groups):
        raise errors.bad_request("name: a user needs a name, and groups are a list of names")
    if name.startswith("system:"):
        raise errors.bad_request(
            "name: names that begin with `system:` belong to the cluster itself"
        )
    return {
        "name": name,
        "groups": groups,
        "token": tokens.issue(cluster.token_key, User(name, tuple(groups))),
    }


def _services(cluster: Cluster, wanted: Object) -> Object:
    for name, address in wanted.items():
        if not isinstance(address, str) or not address.startswith("127.0.0.1:"):
            raise errors.ApiError(
                400, "BadRequest", f"`{name}`: services can only be at 127.0.0.1:PORT"
            )
        cluster.services[name] = address
    return dict(cluster.services)
