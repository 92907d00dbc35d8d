"""Role-based access control: which rules hold for a user, and whether they allow what is asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kpolicy_sandbox.errors import ApiError, forbidden

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kpolicy_sandbox.call import User
    from kpolicy_sandbox.cluster import Cluster

Object = dict[str, Any]
MASTERS = "system:masters"
GROUP = "rbac.authorization.k8s.io"


@dataclass(frozen=True, slots=True)
class Question:
    """What somebody wants to do: with a resource, or (`path`) with a URL that is none."""

    verb: str
    group: str = ""
    plural: str = ""
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    path: str = ""


def decide(cluster: Cluster, user: User, question: Question) -> str:
    """Return why it is allowed, "" when it is not."""
    if MASTERS in user.groups:
        return f"allowed for members of {MASTERS}"
    for rule, why in rules_for(cluster, user, question.namespace):
        if allows(rule, question):
            return f"RBAC: {why}"
    return ""


def demand(cluster: Cluster, user: User, question: Question) -> None:
    """Raise ApiError 403 when it is not allowed."""
    if decide(cluster, user, question):
        return
    if question.path:
        text = f'forbidden: User "{user.name}" cannot {question.verb} path "{question.path}"'
        raise ApiError(403, "Forbidden", text)
    below = f"/{question.subresource}" if question.subresource else ""
    place = (
        f'in the namespace "{question.namespace}"' if question.namespace else "at the cluster scope"
    )
    why = (
        f'User "{user.name}" cannot {question.verb} resource "{question.plural}{below}" '
        f'in API group "{question.group}" {place}'
    )
    raise forbidden(question.plural, question.group, question.name, why)


def rules_for(cluster: Cluster, user: User, namespace: str) -> Iterator[tuple[Object, str]]:
    """Yield the rules that hold for a user (everywhere, and in a namespace), each with the binding it comes from."""
    store = cluster.store
    for binding in store.list(f"{GROUP}/clusterrolebindings"):
        if subject := _subject(binding, user, ""):
            yield from _rules(cluster, binding, "ClusterRoleBinding", subject)
    if not namespace:
        return
    for binding in store.list(f"{GROUP}/rolebindings", namespace):
        if subject := _subject(binding, user, namespace):
            yield from _rules(cluster, binding, "RoleBinding", subject)


def _rules(
    cluster: Cluster, binding: Object, kind: str, subject: str
) -> Iterator[tuple[Object, str]]:
    reference, meta = binding["roleRef"], binding["metadata"]
    space = meta.get("namespace", "")
    named = f"{meta['name']}/{space}" if space else meta["name"]
    why = f'allowed by {kind} "{named}" of {reference["kind"]} "{reference["name"]}" to {subject}'
    for rule in role_rules(cluster, reference, space):
        yield rule, why


def role_rules(cluster: Cluster, reference: Object, namespace: str) -> list[Object]:
    """Return the rules of the role that a binding refers to; none when there is no such role."""
    if reference.get("kind") == "ClusterRole":
        role = cluster.store.get(f"{GROUP}/clusterroles", "", reference.get("name", ""))
    else:
        role = cluster.store.get(f"{GROUP}/roles", namespace, reference.get("name", ""))
    found: list[Object] = (role or {}).get("rules") or []
    return found


def _subject(binding: Object, user: User, namespace: str) -> str:
    for subject in binding.get("subjects") or ():
        kind, name = subject.get("kind"), subject.get("name")
        if kind == "User" and name == user.name:
            return f'User "{name}"'
        if kind == "Group" and name in user.groups:
            return f'Group "{name}"'
        if kind == "ServiceAccount":
            space = subject.get("namespace") or namespace
            if user.name == f"system:serviceaccount:{space}:{name}":
                return f'ServiceAccount "{name}/{space}"'
    return ""


def allows(rule: Object, question: Question) -> bool:
    """Tell whether a rule allows what is asked."""
    verbs = rule.get("verbs") or ()
    if "*" not in verbs and question.verb not in verbs:
        return False
    if question.path:
        return any(_path_fits(path, question.path) for path in rule.get("nonResourceURLs") or ())
    groups = rule.get("apiGroups") or ()
    if "*" not in groups and question.group not in groups:
        return False
    if not any(_resource_fits(word, question) for word in rule.get("resources") or ()):
        return False
    names = rule.get("resourceNames") or ()
    return not names or question.name in names


def _resource_fits(word: str, question: Question) -> bool:
    if word == "*":
        return True
    if not question.subresource:
        return word == question.plural
    return word in {f"{question.plural}/{question.subresource}", f"*/{question.subresource}"}


def _path_fits(pattern: str, path: str) -> bool:
    if pattern.endswith("*"):
        return path.startswith(pattern[:-1])
    return pattern == path
