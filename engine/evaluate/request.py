"""The data under `request`, `images` and the service account names, as policies see one review (row V-08)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.lang.jmes.env import Env
from engine.lang.variables import Scope

from .inputs import Inputs, dotted_path
from .lookups import HostLookup

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.lang.chance import Chance
    from engine.model import Json, Object, Review, UserInfo

_ACCOUNT = "system:serviceaccount:"


def images_in(obj: Object, extractors: Json = None) -> Json:
    """Return the variable `images` of an object; what reads references is loaded with the first rule that asks."""
    from engine.images import extract_images

    return extract_images(obj, extractors) if extractors else extract_images(obj)


def scope_of(review: Review, inputs: Inputs, chance: Chance) -> Scope:
    """Make the scope from which each rule evaluated on `review` gets a child of its own."""
    env = Env(now=inputs.now, chance=chance, is_external_host=_host_asker(inputs))
    data: dict[str, Json] = {"request": request_of(review)}
    if not review.user.is_empty:
        _add_service_account(data, review.user.username)
    scope = Scope(data, env, is_delete=review.operation == "DELETE", rereads=inputs.resolve_values)
    scope.defer("images", lambda _: images_in(review.target))
    for key, value in inputs.variables.items():
        scope.set_path(dotted_path(key), value)
    if inputs.variables:
        scope.is_delete = scope.data["request"].get("operation") == "DELETE"
    return scope


def request_of(review: Review) -> dict[str, Json]:
    """Return the AdmissionRequest of `review` with roles beside it; what is not known is left out, not null."""
    made = dict(review.request)
    if review.operation:
        made.setdefault("operation", review.operation)
    if review.object is not None:
        made["object"] = review.object
    if review.old_object is not None:
        made["oldObject"] = review.old_object
    made.setdefault("namespace", _namespace(review))
    if not review.user.is_empty:
        made.setdefault("userInfo", _user_info(review.user))
        if review.user.roles:
            made["roles"] = list(review.user.roles)
        if review.user.cluster_roles:
            made["clusterRoles"] = list(review.user.cluster_roles)
    return made


def _namespace(review: Review) -> str:
    metadata = (review.object or {}).get("metadata")
    return str((metadata or {}).get("namespace") or "") if isinstance(metadata, dict) else ""


def _user_info(user: UserInfo) -> dict[str, Json]:
    known = {
        "username": user.username,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": dict(user.extra),
    }
    return {key: value for key, value in known.items() if value}


def _add_service_account(data: dict[str, Json], username: str) -> None:
    account = username.removeprefix(_ACCOUNT) if username.startswith(_ACCOUNT) else ""
    namespace, colon, name = account.partition(":")
    data["serviceAccountName"] = name if colon else ""
    data["serviceAccountNamespace"] = namespace if colon else ""


def _host_asker(inputs: Inputs) -> Callable[[str], bool]:
    def ask(host: str) -> bool:
        return bool(inputs.ask(HostLookup(host)).value)

    return ask
