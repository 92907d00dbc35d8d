"""Who makes a request: by bearer token or client certificate, and whom they impersonate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kpolicy_sandbox.call import User, service_account
from kpolicy_sandbox.errors import ApiError

from . import tokens
from .rbac import Question, demand

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from multidict import CIMultiDictProxy

    from kpolicy_sandbox.cluster import Cluster

    Headers = CIMultiDictProxy[str]

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
    claims = tokens.read(cluster.token_key, token)
    if claims is None:
        return None
    if bound := claims.get("kubernetes.io"):
        name = bound["serviceaccount"]["name"]
        account = cluster.store.get("/serviceaccounts", bound["namespace"], name)
        if account is None or account["metadata"]["uid"] != bound["serviceaccount"]["uid"]:
            return None
    return _known(tokens.user_of(claims))


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
