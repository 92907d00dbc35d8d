"""Paths that are no resources: health, version, discovery, OpenAPI, and the sandbox's own switches below `/sandbox`."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from kpolicy_sandbox import errors
from kpolicy_sandbox.access import auth
from kpolicy_sandbox.access.auth import MASTERS
from kpolicy_sandbox.call import User
from kpolicy_sandbox.clock import parse_duration

from . import openapi

if TYPE_CHECKING:
    from kpolicy_sandbox.cluster import Cluster
    from kpolicy_sandbox.kinds import Registry, Resource

Object = dict[str, Any]
HEALTH = {"/healthz", "/livez", "/readyz"}
_PATHS = ["/api", "/api/v1", "/apis", "/openapi/v2", "/openapi/v3", "/sandbox/clock", "/version"]
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
            return {"paths": _PATHS}, ""
        case ["version"]:
            return VERSION, ""
        case ["api" | "apis" as root]:
            return _roots(cluster, accept, core=root == "api")
        case ["api", "v1"]:
            return resource_list(registry, "", "v1"), ""
        case ["apis", group] if group in registry.groups():
            return api_group(registry, group), ""
        case ["apis", group, version] if version in registry.groups().get(group, ()):
            return resource_list(registry, group, version), ""
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
    if version := aggregated_version(accept):
        media = f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
        return aggregated(cluster.registry, version, core=core), media
    if core:
        return core_versions(), ""
    return group_list(cluster.registry), ""


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
        "token": auth.issue(cluster.token_key, User(name, tuple(groups))),
    }


def _services(cluster: Cluster, wanted: Object) -> Object:
    for name, address in wanted.items():
        if not isinstance(address, str) or not address.startswith("127.0.0.1:"):
            raise errors.ApiError(
                400, "BadRequest", f"`{name}`: services can only be at 127.0.0.1:PORT"
            )
        cluster.services[name] = address
    return dict(cluster.services)


_VERBS_BELOW = {
    "status": ["get", "patch", "update"],
    "scale": ["get", "patch", "update"],
    "log": ["get"],
    "ephemeralcontainers": ["get", "patch", "update"],
}


def aggregated_version(accept: str) -> str:
    """Return the version of aggregated discovery that an Accept header names first; "" for none."""
    for entry in accept.split(","):
        if "g=apidiscovery.k8s.io" in entry and "as=APIGroupDiscoveryList" in entry:
            for version in ("v2", "v2beta1"):
                if f"v={version};" in f"{entry.replace(' ', '')};":
                    return version
    return ""


def aggregated(registry: Registry, version: str, *, core: bool) -> Object:
    """Return the `APIGroupDiscoveryList` of the core group or of all others."""
    groups = {name: found for name, found in registry.groups().items() if (name == "") == core}
    items = [
        {
            "metadata": {"name": group, "creationTimestamp": None}
            if group
            else {"creationTimestamp": None},
            "versions": [_version(registry, group, one) for one in versions],
        }
        for group, versions in groups.items()
    ]
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"apidiscovery.k8s.io/{version}",
        "metadata": {},
        "items": items,
    }


def _version(registry: Registry, group: str, version: str) -> Object:
    resources = [_resource(one) for one in registry.in_version(group, version)]
    return {"version": version, "freshness": "Current", "resources": resources}


def _resource(resource: Resource) -> Object:
    made: Object = {
        "resource": resource.plural,
        "responseKind": _kind(resource.group, resource.version, resource.kind),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": list(resource.verbs),
        **_further_names(resource),
    }
    if below := subresources(resource):
        made["subresources"] = [
            {"subresource": name, "responseKind": _kind(*kind), "verbs": _below(name)}
            for name, kind in below.items()
        ]
    return made


def subresources(resource: Resource) -> dict[str, tuple[str, str, str]]:
    """Return the subresources of a resource, each with group, version and kind of its bodies."""
    found: dict[str, tuple[str, str, str]] = {}
    if resource.has_status:
        found["status"] = (resource.group, resource.version, resource.kind)
    if resource.has_scale:
        found["scale"] = ("autoscaling", "v1", "Scale")
    for name, body in resource.subresources.items():
        api_version, _, kind = body.partition(" ")
        group, _, version = api_version.rpartition("/")
        found[name] = (group, version, kind)
    return found


def _below(name: str) -> list[str]:
    return _VERBS_BELOW.get(name, ["create"])


def _kind(group: str, version: str, kind: str) -> Object:
    return {"group": group, "version": version, "kind": kind}


def core_versions() -> Object:
    """Return the answer of `/api` for clients without aggregated discovery."""
    addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1"}]
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses}


def group_list(registry: Registry) -> Object:
    """Return the answer of `/apis` for clients without aggregated discovery."""
    groups = [api_group(registry, name) for name in registry.groups() if name]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def api_group(registry: Registry, name: str) -> Object:
    """Return one group with its versions, the preferred one first."""
    versions = [
        {"groupVersion": f"{name}/{version}", "version": version}
        for version in registry.groups()[name]
    ]
    return {
        "kind": "APIGroup",
        "apiVersion": "v1",
        "name": name,
        "versions": versions,
        "preferredVersion": versions[0],
    }


def resource_list(registry: Registry, name: str, version: str) -> Object:
    """Return the resources of one group and version, subresources as rows of their own."""
    rows: list[Object] = []
    for resource in registry.in_version(name, version):
        rows.append(_row(resource))
        for below, (group_, version_, kind) in subresources(resource).items():
            row: Object = {
                "name": f"{resource.plural}/{below}",
                "singularName": "",
                "namespaced": resource.namespaced,
                "kind": kind,
                "verbs": _below(below),
            }
            if (group_, version_) != (name, version):
                row.update(group=group_, version=version_)
            rows.append(row)
    shown = f"{name}/{version}" if name else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": shown, "resources": rows}


def _row(resource: Resource) -> Object:
    return {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(resource.verbs),
        **_further_names(resource),
    }


def _further_names(resource: Resource) -> Object:
    names = {"shortNames": resource.short_names, "categories": resource.categories}
    return {key: list(words) for key, words in names.items() if words}
