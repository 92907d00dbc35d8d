"""Authentication and authorization: by bearer token or client certificate, with impersonation, and by RBAC.

Tokens are signed with the sandbox's own key, for users and for ServiceAccounts, and checked without any list of them. They have the form
of a JWT (HS256) because clients look into ServiceAccount tokens. Life is counted in real time, so that moving the sandbox's clock
forward throws nobody out.

Nobody gives away rights that they do not have: writing a role needs its rules (or the verb `escalate`), writing a binding needs the
rules of the role it names (or the verb `bind`).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from kpolicy_sandbox.call import User, service_account
from kpolicy_sandbox.errors import ApiError, forbidden

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from multidict import CIMultiDictProxy

    from kpolicy_sandbox.call import Call
    from kpolicy_sandbox.cluster import Cluster

    Headers = CIMultiDictProxy[str]

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
    asked_for = _questions(rules, call.namespace)
    missing = [_shown(one) for one in asked_for if not any(allows(rule, one) for rule in held)]
    if missing:
        groups = " ".join(call.user.groups)
        why = (
            f'user "{call.user.name}" (groups=["{groups}"]) is attempting to grant RBAC permissions not currently held:\n'
            + "\n".join(missing)
        )
        raise forbidden(call.resource.plural, GROUP, call.name or name, why)


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


Claims = dict[str, Any]


def issue(key: bytes, user: User, seconds: int = 0, bound: Claims | None = None) -> str:
    """Return a token that makes its bearer a user; `seconds` 0 means for as long as the sandbox lives."""
    now = int(time.time())
    claims: Claims = {"iss": "kpolicy-sandbox", "sub": user.name, "iat": now, "nbf": now}
    if seconds:
        claims["exp"] = now + seconds
    if user.groups:
        claims["groups"] = list(user.groups)
    if user.uid:
        claims["uid"] = user.uid
    claims.update(bound or {})
    signed = f"{_text(orjson.dumps({'alg': 'HS256', 'typ': 'JWT'}))}.{_text(orjson.dumps(claims))}"
    return f"{signed}.{_signature(key, signed)}"


def read(key: bytes, token: str) -> Claims | None:
    """Return what a token claims; None when we did not sign it or its time is over."""
    signed, _, signature = token.rpartition(".")
    if not hmac.compare_digest(_signature(key, signed).encode(), signature.encode()):
        return None
    claims: Claims = orjson.loads(_bytes(signed.partition(".")[2]))
    return claims if claims.get("exp", time.time() + 1) > time.time() else None


def user_of(claims: Claims) -> User:
    """Return the user that a token makes its bearer."""
    if bound := claims.get("kubernetes.io"):
        account = bound["serviceaccount"]
        return service_account(bound["namespace"], account["name"], account["uid"])
    return User(claims["sub"], tuple(claims.get("groups", ())), claims.get("uid", ""))


def _signature(key: bytes, signed: str) -> str:
    return _text(hmac.new(key, signed.encode(), hashlib.sha256).digest())


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


EVERYBODY = "system:authenticated"
_EXTRA = "impersonate-extra-"


def authenticate(cluster: Cluster, headers: Headers, certificate: Mapping[str, Any] | None) -> User:
    """Return who asks. ApiError 401 for nobody we know, 403 for an impersonation that is not allowed."""
    user = _by_token(cluster, headers.get("Authorization", "")) or _by_certificate(certificate)
    if user is None:
        raise ApiError(401, "Unauthorized", "Unauthorized")
    return _impersonated(cluster, user, headers)


def _by_token(cluster: Cluster, header: str) -> User | None:
    scheme, _, token = header.partition(" ")
    if scheme.lower() != "bearer":
        return None
    return bearer(cluster, token.strip())


def bearer(cluster: Cluster, token: str) -> User | None:
    """Return the user of a token; None for a token that is not valid, or whose ServiceAccount is gone."""
    claims = read(cluster.token_key, token)
    if claims is None:
        return None
    if bound := claims.get("kubernetes.io"):
        name = bound["serviceaccount"]["name"]
        account = cluster.store.get("/serviceaccounts", bound["namespace"], name)
        if account is None or account["metadata"]["uid"] != bound["serviceaccount"]["uid"]:
            return None
    return _known(user_of(claims))


def _by_certificate(certificate: Mapping[str, Any] | None) -> User | None:
    if not certificate:
        return None
    parts = [part for group in certificate.get("subject", ()) for part in group]
    names = [value for key, value in parts if key == "commonName"]
    groups = tuple(value for key, value in parts if key == "organizationName")
    return _known(User(names[0], groups)) if names else None


def _known(user: User) -> User:
    if EVERYBODY in user.groups:
        return user
    return User(user.name, (*user.groups, EVERYBODY), user.uid, user.extra)


def _impersonated(cluster: Cluster, user: User, headers: Headers) -> User:
    name = headers.get("Impersonate-User", "")
    groups = headers.getall("Impersonate-Group", [])
    uid = headers.get("Impersonate-Uid", "")
    extra: dict[str, list[str]] = {}
    for key, value in headers.items():
        if key.lower().startswith(_EXTRA):
            extra.setdefault(key[len(_EXTRA) :].lower(), []).append(value)
    if not name:
        if groups or uid or extra:
            raise ApiError(500, "InternalError", "requested impersonation without a user name")
        return user
    _may_impersonate(cluster, user, name, groups)
    for key in extra:
        demand(
            cluster,
            user,
            Question("impersonate", "authentication.k8s.io", "userextras", subresource=key),
        )
    if uid:
        demand(cluster, user, Question("impersonate", "authentication.k8s.io", "uids", name=uid))
    return _person(name, groups, uid, extra)


def _may_impersonate(cluster: Cluster, user: User, name: str, groups: Sequence[str]) -> None:
    if account := _account(name):
        question = Question("impersonate", "", "serviceaccounts", account[0], account[1])
    else:
        question = Question("impersonate", "", "users", name=name)
    demand(cluster, user, question)
    for group in groups:
        demand(cluster, user, Question("impersonate", "", "groups", name=group))


def _account(name: str) -> tuple[str, str] | None:
    parts = name.split(":")
    is_account = len(parts) == 4 and parts[:2] == ["system", "serviceaccount"]
    return (parts[2], parts[3]) if is_account else None


def _person(name: str, groups: Sequence[str], uid: str, extra: dict[str, list[str]]) -> User:
    account = _account(name)
    if account and not groups:
        made = service_account(*account, uid)
        return User(made.name, made.groups, uid, extra)
    return _known(User(name, tuple(groups), uid, extra))
