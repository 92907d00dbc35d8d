"""Values files (row K-07) and `--set`: variables given by hand, namespace labels, and kinds that stand for subresources.

What a file says is kept apart by reach: everywhere, for one resource of one policy, for one rule, for the elements of
one rule's foreach. Keys are dotted paths into the data that policies see.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.autogen import names_of
from engine.errors import DocumentError
from engine.model import Object, UserInfo
from engine.record import field, record

from .names import labels_of, name_of
from .shapes import ANY, HEAD, LABELS, MAP, TEXT, check_shape

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from engine.lang.yaml import Document

_API_RESOURCE = {
    "group": TEXT, "version": TEXT, "kind": TEXT, "name": TEXT, "singularName": TEXT,
    "namespaced": ANY, "verbs": ANY, "shortNames": ANY, "categories": ANY,
    "storageVersionHash": TEXT,
}  # fmt: skip

SPEC = {
    "globalValues": MAP,
    "policies": [
        {
            "name": TEXT,
            "resources": [{"name": TEXT, "values": MAP}],
            "rules": [{"name": TEXT, "values": MAP, "foreachValues": MAP}],
        }
    ],
    "namespaceSelector": [{"name": TEXT, "labels": LABELS}],
    "namespaces": [MAP],
    "subresources": [{"subresource": _API_RESOURCE, "parentResource": _API_RESOURCE}],
}
FILE = {**HEAD, **SPEC}

Values = dict[str, Any]
GVK = tuple[str, str, str]


@record
class Parent:
    """The kind behind a kind that stands for a subresource: `Scale` is `scale` of `Deployment`."""

    group: str
    version: str
    kind: str
    subresource: str


@record
class ValueSet:
    """Everything one values file, inline block and `--set` give."""

    everywhere: Values = field(default_factory=dict)
    resources: Mapping[tuple[str, str], Values] = field(default_factory=dict)
    rules: Mapping[tuple[str, str], Values] = field(default_factory=dict)
    foreach: Mapping[tuple[str, str], Mapping[str, Sequence[Any]]] = field(default_factory=dict)
    overrides: Values = field(default_factory=dict)
    namespace_labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    namespaces: Mapping[str, Object] = field(default_factory=dict)
    parents: Mapping[GVK, Parent] = field(default_factory=dict)

    def for_policy(self, policy: str, resource: str) -> Values:
        """Return the variables of one policy on one resource: global, then the resource's own, then `--set`."""
        own = self.resources.get((policy, resource))
        if not own and not self.overrides:
            return self.everywhere
        return {**self.everywhere, **(own or {}), **self.overrides}


NO_VALUES = ValueSet()


def read_values(document: Document, *, overrides: Values | None = None) -> ValueSet:
    """Read a values file; raises DocumentError for unknown fields and wrong types."""
    return values_of(check_shape(document, FILE, what="values file"), overrides=overrides)


def values_of(spec: Mapping[str, Any], *, overrides: Values | None = None) -> ValueSet:
    """Make a ValueSet of checked values: those of a file, or those that stand inside a test."""
    policies = spec.get("policies") or ()
    rules = [(policy, rule) for policy in policies for rule in policy.get("rules") or ()]
    return ValueSet(
        everywhere=dict(spec.get("globalValues") or {}),
        resources=_resource_values(policies),
        rules=_by_rule(rules, "values"),
        foreach=_by_rule(rules, "foreachValues"),
        overrides=overrides or {},
        namespace_labels=_namespace_labels(spec),
        namespaces={name_of(namespace): namespace for namespace in spec.get("namespaces") or ()},
        parents=_parents(spec.get("subresources") or ()),
    )


def _resource_values(policies: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], Values]:
    found: dict[tuple[str, str], Values] = {}
    for policy in policies:
        for resource in policy.get("resources") or ():
            key = (str(policy.get("name")), str(resource.get("name")))
            found.setdefault(key, {}).update(resource.get("values") or {})
    return {key: values for key, values in found.items() if values}


def _by_rule(
    rules: Iterable[tuple[Mapping[str, Any], Mapping[str, Any]]], name: str
) -> dict[tuple[str, str], Values]:
    found: dict[tuple[str, str], Values] = {}
    for policy, rule in rules:
        if given := rule.get(name):
            for variant in names_of(str(rule.get("name"))):
                found.setdefault((str(policy.get("name")), variant), given)
    return found


def _namespace_labels(spec: Mapping[str, Any]) -> dict[str, Mapping[str, str]]:
    found: dict[str, Mapping[str, str]] = {}
    for namespace in spec.get("namespaces") or ():
        found[name_of(namespace)] = labels_of(namespace)
    for selector in spec.get("namespaceSelector") or ():
        found[str(selector.get("name", ""))] = selector.get("labels") or {}
    return found


def _parents(subresources: Iterable[Mapping[str, Any]]) -> dict[GVK, Parent]:
    found: dict[GVK, Parent] = {}
    for pair in subresources:
        child, parent = pair.get("subresource") or {}, pair.get("parentResource") or {}
        _, _, subresource = str(child.get("name", "")).partition("/")
        found[_gvk(child)] = Parent(*_gvk(parent), subresource)
    return found


def _gvk(resource: Mapping[str, Any]) -> GVK:
    return (
        str(resource.get("group") or ""),
        str(resource.get("version") or ""),
        str(resource.get("kind") or ""),
    )


def parse_sets(texts: Iterable[str]) -> Values:
    """Read `--set a=1,b.c=x` as Kyverno does: comma-separated pairs, values are strings; raises DocumentError."""
    found: Values = {}
    for text in texts:
        for pair in text.split(","):
            key, equals, value = pair.partition("=")
            if not equals or not key.strip():
                raise DocumentError(
                    f"cannot read `{pair}` of --set", help="write it as variable=value"
                )
            found[key.strip()] = value.strip()
    return found


# UserInfo files (row K-08): who makes the request.

USER_FILE = {
    **HEAD,
    "roles": [TEXT],
    "clusterRoles": [TEXT],
    "userInfo": {"username": TEXT, "uid": TEXT, "groups": [TEXT], "extra": ANY},
}


def read_user(document: Document) -> UserInfo:
    """Read a UserInfo file; raises DocumentError for unknown fields and wrong types."""
    found: dict[str, Any] = check_shape(document, USER_FILE, what="user info file")
    user = found.get("userInfo") or {}
    return UserInfo(
        username=user.get("username") or "",
        uid=user.get("uid") or "",
        groups=tuple(user.get("groups") or ()),
        extra=user.get("extra") or {},
        roles=tuple(found.get("roles") or ()),
        cluster_roles=tuple(found.get("clusterRoles") or ()),
    )
