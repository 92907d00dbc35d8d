"""Documents that `create` drafts from flags: exception, test file, values file, user info, more rights for a controller (row K-11).

Texts in, objects out; the flags and the writing are the command's. Apart from it so that the console can draft the same objects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import vocabulary
from engine.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from engine.model import Object

CLI_VERSION = "cli.kyverno.io/v1alpha1"
_SELECTORS = ("kind", "name", "namespace", "operation")
"""What a filter may name; the field for its values is the word in the plural."""


def exception(
    name: str,
    namespace: str,
    *,
    references: Sequence[str],
    any_of: Sequence[str],
    all_of: Sequence[str],
    background: bool = True,
) -> Object:
    """Return a PolicyException; a reference is `policy,rule,…`, a filter `kind=K,name=N,…`.

    Raises EngineError where a text has another form or nothing is matched.
    """
    match = {
        key: [_resources(text) for text in texts]
        for key, texts in (("any", any_of), ("all", all_of))
        if texts
    }
    if not match:
        raise EngineError(
            "an exception needs resources it is for",
            help='add --any "kind=Pod,name=test-*" or --all',
        )
    return {
        "apiVersion": vocabulary.KYVERNO_V2,
        "kind": "PolicyException",
        "metadata": {"name": name, **({"namespace": namespace} if namespace else {})},
        "spec": {
            "background": background,
            "match": match,
            "exceptions": [_reference(text) for text in references],
        },
    }


def _reference(text: str) -> Object:
    policy, *rules = _parts(text)
    if not policy or not rules:
        raise EngineError(
            f"`{text}` is no policy with rules", help='write --policy-rules "policy,rule-1,rule-2"'
        )
    return {"policyName": policy, "ruleNames": rules}


def _resources(text: str) -> Object:
    """Return one resource filter; a key may be given several times."""
    found: dict[str, list[str]] = {}
    for part in _parts(text):
        key, equals, value = part.partition("=")
        if key not in _SELECTORS or not equals or not value:
            known = ", ".join(_SELECTORS)
            raise EngineError(
                f"`{part}` is no resource filter", help=f"write key=value with one of {known}"
            )
        found.setdefault(f"{key}s", []).append(value)
    return {"resources": found}


def test_file(
    name: str,
    *,
    policies: Sequence[str],
    resources: Sequence[str],
    values: str,
    expected: Iterable[tuple[str, str]],
) -> Object:
    """Return a test file; `expected` pairs a result with `policy,rule,resource[,namespace[,kind]]`."""
    return {
        "apiVersion": CLI_VERSION,
        "kind": "Test",
        "metadata": {"name": name},
        "policies": list(policies),
        "resources": list(resources),
        **({"variables": values} if values else {}),
        "results": [_result(result, text) for result, text in expected],
    }


def _result(result: str, text: str) -> Object:
    parts = _parts(text)
    if not 3 <= len(parts) <= 5 or not all(parts[:3]):
        raise EngineError(
            f"`{text}` is no expected result",
            help="write policy,rule,resource,namespace,kind; the last two may be left out",
        )
    policy, rule, resource, namespace, kind = (*parts, "", "")[:5]
    return {
        "policy": policy,
        "rule": rule,
        **({"kind": kind} if kind else {}),
        "resources": [f"{namespace}/{resource}" if namespace else resource],
        "result": result,
    }


def values_file(
    *,
    global_values: Sequence[str],
    namespaces: Sequence[str],
    rules: Sequence[str],
    resources: Sequence[str],
) -> Object:
    """Return a values file (row K-07) from `k=v`, `namespace,k=v…` and `policy,name,k=v…` texts."""
    policies: dict[str, Object] = {}
    for field, texts in (("resources", resources), ("rules", rules)):
        for text in texts:
            policy, entry = _named_values(text)
            policies.setdefault(policy, {"name": policy}).setdefault(field, []).append(entry)
    optional = {
        "globalValues": _pairs(global_values),
        "policies": list(policies.values()),
        "namespaceSelector": [_labels(text) for text in namespaces],
    }
    return {
        "apiVersion": CLI_VERSION,
        "kind": "Values",
        "metadata": {"name": "values"},
        **{field: value for field, value in optional.items() if value},
    }


def _named_values(text: str) -> tuple[str, Object]:
    policy, name, *pairs = (*_parts(text), "", "")[: max(len(_parts(text)), 2)]
    if not policy or not name or "=" in policy + name:
        raise EngineError(
            f"`{text}` names no policy and rule or resource", help="write policy,name,key=value"
        )
    return policy, {"name": name, "values": _pairs(pairs)}


def _labels(text: str) -> Object:
    name, *pairs = _parts(text)
    return {"name": name, "labels": _pairs(pairs)}


def _pairs(texts: Iterable[str]) -> dict[str, Any]:
    found = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise EngineError(f"`{text}` is no assignment", help="write key=value")
        found[key] = value
    return found


def user_info(
    username: str, *, groups: Sequence[str], roles: Sequence[str], cluster_roles: Sequence[str]
) -> Object:
    """Return a user info file (row K-08)."""
    return {
        "apiVersion": CLI_VERSION,
        "kind": "UserInfo",
        "metadata": {"name": "user-info"},
        "clusterRoles": list(cluster_roles),
        "roles": list(roles),
        "userInfo": {"username": username, "groups": list(groups)},
    }


def cluster_role(
    name: str,
    *,
    controllers: Sequence[str],
    api_groups: Sequence[str],
    resources: Sequence[str],
    verbs: Sequence[str],
) -> Object:
    """Return a ClusterRole whose rules are added to those of controllers; each text may be several words with commas between.

    Raises EngineError where a controller is not known, or where a resource or verb has no name.
    """
    from controllers.kube.accounts import CONTROLLERS

    wanted = _listed(controllers)
    for one in wanted:
        if one not in CONTROLLERS:
            raise EngineError(
                f"unknown controller `{one}`", help=f"there are {', '.join(CONTROLLERS)}"
            )
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {
            "name": name,
            "labels": {f"{vocabulary.RIGHTS_FOR}{one}": "true" for one in wanted},
        },
        "rules": [
            {
                "apiGroups": _listed(api_groups),
                "resources": _named(resources, "resource"),
                "verbs": _named(verbs, "verb"),
            }
        ],
    }


def _named(texts: Sequence[str], what: str) -> list[str]:
    found = _listed(texts)
    if not all(found):
        raise EngineError(f"`{','.join(texts)}` names no {what} between commas", help=f"write {what}s with commas between them")  # fmt: skip
    return found


def _listed(texts: Iterable[str]) -> list[str]:
    return [part for text in texts for part in _parts(text)]


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]
