"""Discovery: which groups, versions and resources there are, in the aggregated form and in the older one."""

from __future__ import annotations

from typing import Any

from kpolicy_sandbox.kinds import VERBS, Registry, Resource

Object = dict[str, Any]
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
    }
    if resource.short_names:
        made["shortNames"] = list(resource.short_names)
    if resource.categories:
        made["categories"] = list(resource.categories)
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
    groups = [group(registry, name) for name in registry.groups() if name]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def group(registry: Registry, name: str) -> Object:
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
    made: Object = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(resource.verbs if resource.review else VERBS),
    }
    if resource.short_names:
        made["shortNames"] = list(resource.short_names)
    if resource.categories:
        made["categories"] = list(resource.categories)
    return made
