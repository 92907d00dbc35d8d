"""What upstream's end-to-end tests ask of a cluster and of the engine beside the usual, by their area and their files, and giving it to them."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from controllers.kube.accounts import ACCOUNTS, Job

from . import engine

if TYPE_CHECKING:
    from .tiers import Tier

_GROUP = "admissionregistration.k8s.io"
_OLDER = f"{_GROUP}/v1beta1=true,{_GROUP}/v1alpha1=true"
_WEBHOOKS = re.compile(r"^kind: (Validating|Mutating)WebhookConfiguration$", re.MULTILINE)
_SELECTED = {
    "namespaceSelector": {
        "matchExpressions": [
            {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": [name]}
            for name in ("kube-system", "kyverno")
        ]
    }
}
"""What upstream's installation for these tests keeps away from webhooks."""


def _role(part: str, resources: list[str], verbs: list[str], group: str = "") -> dict[str, Any]:
    """Return a ClusterRole that a part's own role collects, as people of a cluster add rights."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {
            "name": f"tests:{part}:{resources[0]}",
            "labels": {f"rbac.kyverno.io/aggregate-to-{part}": "true"},
        },
        "rules": [{"apiGroups": [group], "resources": resources, "verbs": verbs}],
    }


_ROLES = (
    _role("cleanup-controller", ["pods"], ["list", "watch", "delete"]),
    _role(
        "background-controller",
        ["namespaces", "pods", "secrets"],
        ["get", "list", "watch", "create", "update", "patch", "delete"],
    ),
    _role(
        "background-controller",
        ["clusterrolebindings"],
        ["get", "list", "watch", "update"],
        "rbac.authorization.k8s.io",
    ),
    _role(
        "background-controller", ["roles"], ["create", "update", "delete"], "iam.aws.crossplane.io"
    ),
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "tests:view"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [
            {
                "kind": "ServiceAccount",
                "name": ACCOUNTS[Job.BACKGROUND],
                "namespace": engine.NAMESPACE,
            }
        ],
    },
)
"""Tests of TTL labels, generation and mutation of these kinds give no rights of their own: upstream's installation for them has
these, `view` for who generates bindings to it among them."""


@dataclass(frozen=True, slots=True)
class Setup:
    """`flags` of the controllers, APIs that the server serves besides its own choice, whether the library's kinds are installed.

    With `as_service` the controllers are reached by their Service, with the selectors of upstream's chart: that is what tests see
    that compare webhooks.
    """

    name: str
    flags: tuple[str, ...] = ()
    runtime_config: str = ""
    as_service: bool = False
    library: bool = False


_NATIVE = ("--generateMutatingAdmissionPolicy", "--mutatingAdmissionPolicyReports")
_V1 = Setup("native", _NATIVE, as_service=True)
_BEFORE_V1 = Setup("native-before-v1", _NATIVE, _OLDER, as_service=True)
_BY_AREA = {
    "generate-mutating-admission-policy-v1": _V1,
    "mutating-admission-policy-reports-v1": _V1,
    "generate-mutating-admission-policy": _BEFORE_V1,
    "generate-mutating-admission-policy-alpha": _BEFORE_V1,
    "mutating-admission-policy-reports": _BEFORE_V1,
    "mutating-admission-policy-reports-alpha": _BEFORE_V1,
    "force-failure-policy-ignore": Setup(
        "force-failure-policy-ignore", ("--forceFailurePolicyIgnore",), as_service=True
    ),
    "policy-exceptions-disabled": Setup(
        "policy-exceptions-disabled", ("--enablePolicyException=false",)
    ),
}
_LIBRARY = Setup("library", library=True)
_WEBHOOKS_COMPARED = Setup("webhooks-compared", as_service=True)
_USUAL = Setup("usual")


def home() -> Path:
    """Return the folder with the tests."""
    shared = Path(__file__).parents[3] / "shared"
    return Path(os.environ.get("KPOLICY_CHAINSAW", shared / "chainsaw"))


def needed(test: dict[str, Any]) -> Setup:
    """Return what a test of the index needs."""
    if test["area"] in _BY_AREA:
        return _BY_AREA[test["area"]]
    if test["file"].startswith("policies/"):
        return _LIBRARY
    files = (home() / test["file"]).parent.glob("*.yaml")
    compares = any(_WEBHOOKS.search(one.read_text()) for one in files)
    return _WEBHOOKS_COMPARED if compares else _USUAL


def furnish(tier: Tier, setup: Setup, host: str) -> None:
    """Install what the tests expect of a cluster: our parts, a Node of the usual name, the library's kinds, `host` as our Service."""
    node: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": "kind-control-plane",
            "labels": {"kubernetes.io/hostname": "kind-control-plane"},
        },
    }
    tier.kubectl("apply", "-f", "-", given=json.dumps(node))
    status = {"status": {"capacity": {"cpu": "8", "memory": "16Gi", "pods": "110"}}}
    tier.kubectl(
        "patch", "node", "kind-control-plane", "--subresource=status", "-p", json.dumps(status)
    )
    give_rights(tier)
    engine.install(tier, settings={"webhooks": json.dumps(_SELECTED)} if setup.as_service else None)
    if setup.as_service:
        tier.kubectl("delete", "service", "kyverno-svc", "-n", "kyverno", "--ignore-not-found")
        tier.kubectl(
            "create",
            "service",
            "externalname",
            "kyverno-svc",
            "-n",
            "kyverno",
            f"--external-name={host}",
        )
    if setup.library:
        install_library_kinds(tier)


def give_rights(tier: Tier) -> None:
    """Add the rights that the tests take for granted to those that are shipped."""
    for role in _ROLES:
        tier.kubectl("apply", "-f", "-", given=json.dumps(role))


def install_library_kinds(tier: Tier) -> None:
    """Install the kinds of the library's tests: last, because after each the server describes itself anew, and whoever applies waits."""
    crds = str(home() / "policies" / ".chainsaw" / "crds")
    tier.kubectl("apply", "--server-side", "--validate=false", "-f", crds)
