"""What could be done to a cluster through us: the kinds that our accounts may write, taken from the roles as they are shipped.

Added to them are what the samples have people give our accounts. A subresource counts as its whole object. The bodies are the
smallest that the API server takes; a kind that is new in a role and has none here fails the matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from controllers.manifests.bundle import Choice, installed
from engine.lang import yaml

MARK: Final = "matrix"
"""The annotation by which a change is recognised."""

CANARY: Final = "canary-of-"
_SAMPLES: Final = Path(__file__).parents[2] / "controllers" / "manifests" / "samples"
_WRITING: Final = frozenset({"create", "update", "patch", "delete"})
_ADDED: Final = "rbac.kyverno.io/aggregate-to-"
_COMPONENT: Final = "app.kubernetes.io/component"
_ANSWERED: Final = frozenset({"subjectaccessreviews", "serviceaccounts/token"})
"""What is asked of the API server with `create` and never stored."""

_RBAC: Final = "rbac.authorization.k8s.io"
_MATCH: Final = {"any": [{"resources": {"kinds": ["Secret"], "names": ["nothing"]}}]}
_RULES: Final = [{"name": "r", "match": _MATCH, "validate": {"message": "m", "pattern": {"metadata": {"name": "?*"}}}}]  # fmt: skip
_CEL: Final = {
    "matchConstraints": {"resourceRules": [{"apiGroups": ["x.io"], "apiVersions": ["v1"], "resources": ["xs"], "operations": ["CREATE"]}]},
    "validations": [{"expression": "true"}],
}  # fmt: skip
_CONSTRAINED: Final = {"matchConstraints": _CEL["matchConstraints"]}
_NATIVE: Final = _CEL["matchConstraints"]
NO_PATCH: Final = '[JSONPatch{op: "test", path: "/kind", value: "none"}]'
"""An expression that gives a list of patches and changes nothing."""
_OF_CEL: Final[dict[str, dict[str, Any]]] = {
    "validatingpolicies": _CEL,
    "mutatingpolicies": {
        "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"], "resourceNames": ["nothing"]}]},
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": '[JSONPatch{op: "add", path: "/data/a", value: "b"}]'}}],
    },
    "generatingpolicies": {
        "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"], "resourceNames": ["nothing"]}]},
        "generate": [{"expression": "true"}],
    },
    "deletingpolicies": {
        "schedule": "0 0 1 1 *",
        "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["secrets"], "resourceNames": ["nothing"]}]},
    },
    "imagevalidatingpolicies": {
        **_CONSTRAINED, "attestors": [{"name": "a", "notary": {"certs": {"value": "x"}}}], "validations": [{"expression": "true"}],
    },
}  # fmt: skip
"""The specs of policies written in CEL, by the kind of the cluster; those of namespaces are the same."""
_TARGET: Final = {"kind": "Pod", "name": "p"}


@dataclass(frozen=True, slots=True)
class Effect:
    """A kind that something is done to; `variant` tells bodies and places of one kind apart that differ in danger."""

    group: str
    plural: str
    variant: str = ""

    def __str__(self) -> str:
        return ".".join(filter(None, (self.plural, self.group))) + (f" ({self.variant})" if self.variant else "")  # fmt: skip

    @property
    def body(self) -> dict[str, Any]:
        """The fields of an object beside its metadata."""
        return BODIES[self.group, self.plural, self.variant]


BODIES: Final[dict[tuple[str, str, str], dict[str, Any]]] = {
    ("", "configmaps", ""): {"data": {"a": "b"}},
    ("", "configmaps", "ours"): {"data": {"judged": "{}"}},
    ("", "events", ""): {"involvedObject": {"kind": "Pod", "name": "p"}, "reason": "r", "message": "m", "type": "Normal"},
    ("", "limitranges", ""): {"spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}}]}},
    ("", "namespaces", ""): {},
    ("", "resourcequotas", ""): {"spec": {"hard": {"pods": "1000"}}},
    ("", "secrets", ""): {"data": {"a": "Yg=="}, "type": "Opaque"},
    ("", "serviceaccounts", ""): {},
    ("admissionregistration.k8s.io", "mutatingadmissionpolicies", ""): {"spec": {"matchConstraints": _NATIVE, "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": NO_PATCH}}], "reinvocationPolicy": "Never"}},
    ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings", ""): {"spec": {"policyName": "nothing"}},
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations", ""): {"webhooks": []},
    ("admissionregistration.k8s.io", "validatingadmissionpolicies", ""): {"spec": {"matchConstraints": _NATIVE, "validations": [{"expression": "true"}]}},
    ("admissionregistration.k8s.io", "validatingadmissionpolicybindings", ""): {"spec": {"policyName": "nothing", "validationActions": ["Audit"]}},
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations", ""): {"webhooks": []},
    ("coordination.k8s.io", "leases", ""): {"spec": {"holderIdentity": "nobody"}},
    ("kpolicy.io", "auditnotes", ""): {"spec": {"actor": "eve", "at": "2026-11-22T00:00:00Z", "verb": "create"}},
    ("kpolicy.io", "auditsegments", ""): {"spec": {"records": []}},
    ("kpolicy.io", "codeclaims", ""): {"spec": {"user": "eve", "uses": []}},
    ("kpolicy.io", "codeuses", ""): {"spec": {"usedAt": "2026-11-22T00:00:00Z", "user": "eve"}},
    ("kpolicy.io", "grants", ""): {"spec": {"requester": "eve", "policy": "p", "rules": ["r"], "duration": "1h", "target": _TARGET}},
    ("kpolicy.io", "grantpolicies", ""): {"spec": {"maxDuration": "1h"}},
    ("kpolicy.io", "onetimecodes", ""): {"spec": {"user": "eve", "verifier": "v", "expiresAt": "2026-11-22T00:00:00Z", "binding": {"policy": "p"}}},
    ("kyverno.io", "cleanuppolicies", ""): {"spec": {"schedule": "0 0 1 1 *", "match": _MATCH}},
    ("kyverno.io", "clustercleanuppolicies", ""): {"spec": {"schedule": "0 0 1 1 *", "match": _MATCH}},
    ("kyverno.io", "clusterpolicies", ""): {"spec": {"rules": _RULES}},
    ("kyverno.io", "policies", ""): {"spec": {"rules": _RULES}},
    ("kyverno.io", "globalcontextentries", ""): {"spec": {"kubernetesResource": {"version": "v1", "resource": "configmaps", "namespace": "shop"}}},
    ("kyverno.io", "policyexceptions", ""): {"spec": {"exceptions": [{"policyName": "no-host", "ruleNames": ["r"]}], "match": _MATCH}},
    ("kyverno.io", "policyexceptions", "granted"): {"spec": {"exceptions": [{"policyName": "no-host", "ruleNames": ["r"]}], "match": _MATCH}},
    ("kyverno.io", "updaterequests", ""): {"spec": {"requestType": "generate", "policy": "nothing"}},
    ("networking.k8s.io", "ingressclasses", ""): {"spec": {"controller": "x.io/c"}},
    ("networking.k8s.io", "ingresses", ""): {"spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}},
    ("networking.k8s.io", "networkpolicies", ""): {"spec": {"podSelector": {}}},
    ("openreports.io", "clusterreports", ""): {"results": []},
    ("openreports.io", "reports", ""): {"results": []},
    **{("policies.kyverno.io", f"{scope}{plural}", ""): {"spec": spec} for plural, spec in _OF_CEL.items() for scope in ("", "namespaced")},
    ("policies.kyverno.io", "policyexceptions", ""): {"spec": {"policyRefs": [{"name": "nothing", "kind": "ValidatingPolicy"}]}},
    ("policies.kyverno.io", "policyexceptions", "granted"): {"spec": {"policyRefs": [{"name": "nothing", "kind": "ValidatingPolicy"}]}},
    (_RBAC, "clusterrolebindings", ""): {"roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": "cluster-admin"}},
    (_RBAC, "clusterroles", ""): {"rules": []},
    (_RBAC, "rolebindings", ""): {"roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": "view"}},
    (_RBAC, "rolebindings", "strong"): {"roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": "cluster-admin"}},
    (_RBAC, "roles", ""): {"rules": []},
    (_RBAC, "roles", "strong"): {"rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]},
    ("wgpolicyk8s.io", "clusterpolicyreports", ""): {"results": []},
    ("wgpolicyk8s.io", "policyreports", ""): {"results": []},
}  # fmt: skip
GRANTED: Final = {"kpolicy.io/grant": "shop/g"}


@cache
def written_kinds() -> frozenset[tuple[str, str]]:
    """Return (group, plural) of everything that any of our accounts may create, change or delete."""
    found: set[tuple[str, str]] = set()
    for role in [*_shipped(), *_added()]:
        for rule in role.get("rules") or ():
            if _WRITING.isdisjoint(rule["verbs"]):
                continue
            found |= {
                ("" if group == "*" else group, plural.partition("/")[0])
                for group in rule["apiGroups"]
                for plural in rule["resources"]
                if plural not in _ANSWERED
            }
    return frozenset(found)


def effects() -> list[Effect]:
    """Return every effect there is, in a fixed order; raises KeyError for a kind without a body."""
    known = sorted(BODIES)
    found = written_kinds()
    if missing := found - {(group, plural) for group, plural, _ in known}:
        raise KeyError(f"no body for what our accounts may write: {sorted(missing)}")
    return [Effect(*key) for key in known if key[:2] in found]


def _shipped() -> list[dict[str, Any]]:
    roles = [one for one in installed(Choice()) if one["kind"] in ("ClusterRole", "Role")]
    return [one for one in roles if (one["metadata"].get("labels") or {}).get(_COMPONENT) != "rbac"]


def _added() -> list[dict[str, Any]]:
    """Return the roles of the samples that the roles of our accounts collect."""
    found = [one.value for path in sorted(_SAMPLES.rglob("*.yaml")) for one in yaml.load_all(path.read_bytes())]  # fmt: skip
    return [one for one in found if one["kind"] == "ClusterRole" and any(map(_is_collected, (one["metadata"].get("labels") or {}).items()))]  # fmt: skip


def _is_collected(label: tuple[str, str]) -> bool:
    key, value = label
    return key.startswith(_ADDED) or (key == _COMPONENT and value.endswith("-controller"))
