"""AdmissionReviews as bytes: what is read from the API server and what it is answered.

Apart from deciding, because every endpoint speaks this envelope and none of it knows policies.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import orjson

from controllers.runtime.logs import current_request
from engine.errors import DocumentError, LimitError
from engine.model import Json, UserInfo

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


API_VERSION = "admission.k8s.io/v1"
_NO_LABELS: Mapping[str, str] = {}
_TEXTS = frozenset({str, type(None)})
_ALLOWED = b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":%b,"allowed":true}}'
_MOST_WARNING_BYTES = 4096
_LONGEST_WARNING = 1024


def read_request(body: bytes) -> dict[str, Any]:
    """Return the AdmissionRequest in a body; raises DocumentError for anything else.

    From then on what is logged and traced carries the request's UID. A body nested deeper than the JSON reader allows (1,024 levels) is refused like one that is no JSON.
    """
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise DocumentError(f"the body is not JSON that can be read: {error}") from error
    request = document.get("request") if isinstance(document, dict) else None
    if not isinstance(request, dict) or not isinstance(request.get("uid"), str):
        raise DocumentError("the body is not an AdmissionReview with a request and its UID")
    for name in ("kind", "resource", "userInfo"):
        if not isinstance(request.get(name), dict):
            raise DocumentError(f"the request has no `{name}`")
    for name in ("object", "oldObject"):
        if request.get(name) is not None and not isinstance(request[name], dict):
            raise DocumentError(f"`{name}` of the request is not an object")
    _check_types(request)
    current_request.set(request["uid"])
    return request


def _check_types(request: Mapping[str, Any]) -> None:
    """Refuse what no API server sends: everything behind this reads names as texts and groups as a list of them."""
    info, kind, resource = request["userInfo"], request["kind"], request["resource"]
    groups = info.get("groups") or []
    texts = (
        request.get("name"), request.get("namespace"), request.get("operation"), request.get("subResource"),
        info.get("username"), info.get("uid"),
        kind.get("group"), kind.get("version"), kind.get("kind"),
        resource.get("group"), resource.get("version"), resource.get("resource"),
    )  # fmt: skip
    is_list = isinstance(groups, list)
    if not is_list or not _TEXTS.issuperset(map(type, (*texts, *groups))):
        raise DocumentError("the request has a name or a group that is no text")
    if not isinstance(info.get("extra") or {}, dict):
        raise DocumentError("`userInfo.extra` of the request is not an object")


def user_of(
    info: Mapping[str, Json],
    roles_of: Callable[[str, Sequence[str]], tuple[tuple[str, ...], tuple[str, ...]]],
) -> UserInfo:
    """Return who asks, from a request's `userInfo`, with the roles that `roles_of` knows."""
    username = str(info.get("username") or "")
    groups = tuple(map(str, info.get("groups") or ()))
    roles, cluster_roles = roles_of(username, groups)
    return UserInfo(
        username=username,
        uid=str(info.get("uid") or ""),
        groups=groups,
        extra=info.get("extra") or {},
        roles=roles,
        cluster_roles=cluster_roles,
    )


def allowed(uid: str, warnings: Sequence[str] = (), audit: Mapping[str, str] = _NO_LABELS) -> bytes:
    """Return the answer that lets a request through; `audit` goes into the API server's audit log (A12)."""
    if not warnings and not audit:
        return _ALLOWED % orjson.dumps(uid)
    response: dict[str, Any] = {"uid": uid, "allowed": True}
    return _answer({**response, "auditAnnotations": dict(audit)} if audit else response, warnings)


def denied(uid: str, message: str, warnings: Sequence[str] = ()) -> bytes:
    """Return the answer that refuses a request; always inside HTTP 200, so that no client tries again (A8)."""
    status = {"status": "Failure", "message": message}
    return _answer({"uid": uid, "allowed": False, "status": status}, warnings)


def patched(
    uid: str,
    operations: Sequence[Mapping[str, Json]],
    warnings: Sequence[str] = (),
    audit: Mapping[str, str] = _NO_LABELS,
) -> bytes:
    """Return the answer that lets a request through changed by a JSON patch (RFC 6902); `audit` is as for `allowed`.

    Raises LimitError for values nested deeper than can be written (254 levels), which is fewer than can be read.
    """
    try:
        patch = base64.b64encode(orjson.dumps(operations)).decode()
    except orjson.JSONEncodeError as error:
        raise LimitError("the patch is nested too deep to be written") from error
    response = {"uid": uid, "allowed": True, "patch": patch, "patchType": "JSONPatch"}
    return _answer({**response, "auditAnnotations": dict(audit)} if audit else response, warnings)


def _answer(response: dict[str, Any], warnings: Sequence[str]) -> bytes:
    if warnings:
        response["warnings"] = _bounded(warnings)
    document = {"kind": "AdmissionReview", "apiVersion": API_VERSION, "response": response}
    return orjson.dumps(document)


def _bounded(warnings: Sequence[str]) -> list[str]:
    """Keep warnings to what the API server passes on: 4 KiB in all; each one on one line."""
    kept, size = [], 0
    for warning in warnings:
        text = " ".join(warning.split())[:_LONGEST_WARNING]
        size += len(text.encode())
        if size > _MOST_WARNING_BYTES:
            break
        kept.append(text)
    return kept
