"""The reviews of `authentication.k8s.io` and `authorization.k8s.io`: questions that are answered and never stored."""

from __future__ import annotations

from typing import Any

from kpolicy_sandbox.call import Call, User
from kpolicy_sandbox.errors import bad_request

from .auth import MASTERS, Question, bearer, decide, rules_for

Object = dict[str, Any]


def answer(call: Call, body: Object) -> Object:
    """Return a review with its status. ApiError 400 for one without a question."""
    spec = body.get("spec") or {}
    match call.resource.kind:
        case "SelfSubjectReview":
            status: Object = {"userInfo": call.user.info()}
        case "TokenReview":
            user = bearer(call.cluster, str(spec.get("token", "")))
            status = (
                {"authenticated": True, "user": user.info()} if user else {"authenticated": False}
            )
        case "SelfSubjectRulesReview":
            status = _rules(call, str(spec.get("namespace", "")))
        case "SelfSubjectAccessReview":
            status = _access(call, call.user, spec)
        case _:
            status = _access(call, _subject(spec), spec)
    return {**body, "metadata": {"creationTimestamp": None}, "status": status}


def _subject(spec: Object) -> User:
    if not spec.get("user") and not spec.get("groups"):
        raise bad_request("spec: at least one of user or groups must be specified")
    extra = spec.get("extra") or {}
    return User(spec.get("user", ""), tuple(spec.get("groups") or ()), spec.get("uid", ""), extra)


def _access(call: Call, user: User, spec: Object) -> Object:
    if wanted := spec.get("resourceAttributes"):
        question = Question(
            verb=wanted.get("verb", ""),
            group=wanted.get("group", ""),
            plural=wanted.get("resource", ""),
            namespace=wanted.get("namespace", ""),
            name=wanted.get("name", ""),
            subresource=wanted.get("subresource", ""),
        )
    elif path := spec.get("nonResourceAttributes"):
        question = Question(path.get("verb", ""), path=path.get("path", ""))
    else:
        raise bad_request("spec: resourceAttributes or nonResourceAttributes must be specified")
    why = decide(call.cluster, user, question)
    return {"allowed": True, "reason": why} if why else {"allowed": False}


def _rules(call: Call, namespace: str) -> Object:
    if not namespace:
        raise bad_request("no namespace on request")
    rules = [rule for rule, _ in rules_for(call.cluster, call.user, namespace)]
    if MASTERS in call.user.groups:
        everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
        rules += [everything, {"verbs": ["*"], "nonResourceURLs": ["*"]}]
    resources = [
        {
            key: rule[key]
            for key in ("verbs", "apiGroups", "resources", "resourceNames")
            if key in rule
        }
        for rule in rules
        if rule.get("resources")
    ]
    paths = [
        {key: rule[key] for key in ("verbs", "nonResourceURLs")}
        for rule in rules
        if rule.get("nonResourceURLs")
    ]
    return {"resourceRules": resources, "nonResourceRules": paths, "incomplete": False}
