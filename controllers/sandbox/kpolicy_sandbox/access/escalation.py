"""Nobody gives away rights that they do not have: the check on roles and bindings that RBAC makes before it stores them.

Writing a role needs its rules (or the verb `escalate`), writing a binding needs the rules of the role it names (or the verb `bind`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kpolicy_sandbox.errors import forbidden

from .rbac import GROUP, MASTERS, Question, allows, decide, role_rules, rules_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kpolicy_sandbox.call import Call

Object = dict[str, Any]
_ROLES = {"roles", "clusterroles"}
_BINDINGS = {"rolebindings", "clusterrolebindings"}


def check_rights(call: Call, obj: Object, old: Object | None) -> None:
    """Raise ApiError 403 when a role or binding would give more than the writer has; other objects pass."""
    if call.resource.group != GROUP or MASTERS in call.user.groups:
        return
    if call.resource.plural in _ROLES and (old or {}).get("rules") != obj.get("rules"):
        _check(
            call,
            obj["metadata"].get("name", ""),
            "escalate",
            call.resource.plural,
            obj.get("rules") or [],
        )
    if call.resource.plural in _BINDINGS and not _same_binding(old, obj):
        reference = obj.get("roleRef") or {}
        plural = "clusterroles" if reference.get("kind") == "ClusterRole" else "roles"
        rules = role_rules(call.cluster, reference, call.namespace)
        _check(call, reference.get("name", ""), "bind", plural, rules)


def _same_binding(old: Object | None, new: Object) -> bool:
    return old is not None and all(
        old.get(part) == new.get(part) for part in ("subjects", "roleRef")
    )


def _check(call: Call, name: str, verb: str, plural: str, rules: list[Object]) -> None:
    asked = Question(verb, GROUP, plural, call.namespace, name)
    if decide(call.cluster, call.user, asked):
        return
    held = [rule for rule, _ in rules_for(call.cluster, call.user, call.namespace)]
    missing = [_shown(one) for one in _questions(rules, call.namespace) if not _held(held, one)]
    if missing:
        groups = " ".join(call.user.groups)
        why = (
            f'user "{call.user.name}" (groups=["{groups}"]) is attempting to grant RBAC permissions not currently held:\n'
            + "\n".join(missing)
        )
        raise forbidden(call.resource.plural, GROUP, call.name or name, why)


def _held(held: list[Object], question: Question) -> bool:
    return any(allows(rule, question) for rule in held)


def _questions(rules: list[Object], namespace: str) -> Iterator[Question]:
    for rule in rules:
        for verb in rule.get("verbs") or ():
            for path in rule.get("nonResourceURLs") or ():
                yield Question(verb, path=path)
            for group in rule.get("apiGroups") or ():
                for word in rule.get("resources") or ():
                    plural, _, below = word.partition("/")
                    for name in rule.get("resourceNames") or ("",):
                        yield Question(verb, group, plural, namespace, name, below)


def _shown(question: Question) -> str:
    if question.path:
        return f'{{NonResourceURLs:["{question.path}"], Verbs:["{question.verb}"]}}'
    below = f"/{question.subresource}" if question.subresource else ""
    named = f', ResourceNames:["{question.name}"]' if question.name else ""
    return (
        f'{{APIGroups:["{question.group}"], Resources:["{question.plural}{below}"]{named}, '
        f'Verbs:["{question.verb}"]}}'
    )
