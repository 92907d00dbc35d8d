"""What each verb does to a resource and to its subresources: from a call and a decoded body to an object, a page or a Status."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from kpolicy_sandbox import errors
from kpolicy_sandbox.access import auth
from kpolicy_sandbox.access.reviews import answer
from kpolicy_sandbox.call import Call, service_account
from kpolicy_sandbox.objects import delete as deleting
from kpolicy_sandbox.objects import patches, read, write
from kpolicy_sandbox.objects.apply import apply_object
from kpolicy_sandbox.objects.shapes import shape_of
from kpolicy_sandbox.objects.strategic import strategic_merge
from kpolicy_sandbox.schema.unknown import prune

if TYPE_CHECKING:
    from collections.abc import Callable

Object = dict[str, Any]
_SUCCESS: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
_PATCHES = f"{patches.JSON_PATCH}, {patches.MERGE}, {patches.STRATEGIC}, {patches.APPLY}"


@dataclass(frozen=True, slots=True)
class Body:
    """What came with a request."""

    value: Any
    content_type: str


async def act(call: Call, body: Body) -> tuple[int, Object | read.Page]:
    """Do what a call asks for (all verbs but watch); return the HTTP status and the object or page to show."""
    if call.resource.review and call.verb != "create":
        raise errors.method_not_allowed()
    match call.verb:
        case "get":
            return 200, write.current_of(call)
        case "list":
            return 200, read.list_page(call)
        case "create":
            if call.resource.review:
                return 201, answer(call, write.read_body(call, whole(body)))
            return 201, await write.create(call, whole(body))
        case "update":
            return 200, await write.update(call, lambda _: whole(body))
        case "patch":
            return await patch(call, body)
        case "delete":
            return await _delete(call, body)
        case "deletecollection":
            return await _delete_all(call, body)
    raise errors.method_not_allowed()


def whole(body: Body) -> Object:
    """Return the object that a body is. ApiError 400 for anything else."""
    if not isinstance(body.value, dict):
        raise errors.bad_request("the request has no body that holds an object")
    return body.value


async def patch(call: Call, body: Body) -> tuple[int, Object]:
    """Patch an object, or create it by server-side apply; return the HTTP status and the object."""
    if body.content_type == patches.APPLY:
        return await _apply(call, whole(body))
    return 200, await write.update(call, change_of(call, body))


def change_of(call: Call, body: Body) -> Callable[[Object], Object]:
    """Return the function that a patch (other than apply) is. ApiError 415 for a kind of patch that the resource has not."""
    value = body.value
    match body.content_type:
        case t if t == patches.JSON_PATCH:
            return lambda current: patches.json_patch(current, value)
        case t if t == patches.MERGE:
            return lambda current: patches.merge_patch(current, whole(body))
        case t if t in {patches.STRATEGIC, "", "application/json"} and call.resource.custom is None:
            shape = shape_of(call.resource)
            return lambda current: strategic_merge(shape, current, whole(body))
    raise errors.unsupported_media(_PATCHES)


async def _apply(call: Call, wanted: Object) -> tuple[int, Object]:
    if not call.query.get("fieldManager"):
        raise errors.bad_request(
            "PatchOptions.meta.k8s.io: fieldManager: Required value: is required for apply patch"
        )
    writer = write.writer(call, force=call.query.get("force") == "true")
    shape = shape_of(call.resource)
    wanted = write.read_body(call, wanted)
    if wanted["metadata"].get("managedFields"):
        raise errors.bad_request("metadata.managedFields must be nil")
    wanted = {**wanted, "metadata": {**wanted["metadata"], "name": call.name}}
    store, resource = call.cluster.store, call.resource
    if store.get(resource.storage, call.namespace, call.name) is None and not call.subresource:
        made = apply_object(shape, {"metadata": {}}, wanted, writer)
        return 201, await write.create(call, made, applied=True)
    changed = await write.update(
        call, lambda current: apply_object(shape, current, wanted, writer), applied=True
    )
    return 200, changed


async def _delete(call: Call, body: Body) -> tuple[int, Object]:
    obj, gone = await deleting.delete(call, deleting.read_options(body.value))
    if not gone or call.resource.storage == "/pods":
        return 200, obj
    details = {"name": call.name, "kind": call.resource.plural, "uid": obj["metadata"]["uid"]}
    if call.resource.group:
        details["group"] = call.resource.group
    return 200, {**_SUCCESS, "details": details}


async def _delete_all(call: Call, body: Body) -> tuple[int, Object]:
    options = deleting.read_options(body.value)
    gone = await read.delete_collection(call, options, deleting.delete)
    return 200, {
        "kind": call.resource.list_kind,
        "apiVersion": call.resource.api_version,
        "metadata": {"resourceVersion": str(call.cluster.store.revision)},
        "items": gone,
    }


_CANNOT = {
    "log": "show logs: its Pods do not run, they only look as if",
    "exec": "run commands in a Pod: its Pods do not run, they only look as if",
    "attach": "attach to a Pod: its Pods do not run, they only look as if",
    "portforward": "forward ports: its Pods do not run, they only look as if",
    "proxy": "forward requests: nothing runs behind its objects",
}
_SHORTEST, _USUAL = 600, 3600


async def act_below(call: Call, body: Body) -> tuple[int, Object | read.Page]:
    """Do what a call asks of a subresource; return the HTTP status and the object to show. ApiError 404, 405, 501."""
    resource, name = call.resource, call.subresource
    if name in _CANNOT and name in resource.subresources:
        write.current_of(call)
        raise errors.not_implemented(_CANNOT[name])
    if name == "status" and resource.has_status:
        if call.verb not in {"get", "update", "patch"}:
            raise errors.method_not_allowed()
        return await act(call, body)
    if name == "scale" and resource.has_scale:
        return await _scale(call, body)
    if name not in resource.subresources:
        raise errors.no_such_path()
    match name, call.verb:
        case "token", "create":
            return 201, _token(call, _or_empty(body))
        case "eviction", "create":
            return 201, await _evict(call, _or_empty(body))
        case "ephemeralcontainers", _:
            return await act(call, body)
    raise errors.method_not_allowed()


def _or_empty(body: Body) -> Object:
    return {} if body.value is None else whole(body)


async def _scale(call: Call, body: Body) -> tuple[int, Object]:
    if call.verb == "get":
        return 200, _scale_of(write.current_of(call))
    if call.verb not in {"update", "patch"}:
        raise errors.method_not_allowed()

    def change(current: Object) -> Object:
        scale = _changed_scale(_scale_of(current), call, body)
        spec = scale.get("spec") if isinstance(scale, dict) else None
        replicas = spec.get("replicas", 0) if isinstance(spec, dict) else None
        if not isinstance(replicas, int) or replicas < 0:
            raise errors.bad_request("spec.replicas: must be a number that is not negative")
        return {**current, "spec": {**current["spec"], "replicas": replicas}}

    return 200, _scale_of(await write.update(call, change))


def _changed_scale(scale: Object, call: Call, body: Body) -> Object:
    if call.verb == "update":
        return whole(body)
    if body.content_type == patches.JSON_PATCH:
        made: Object = patches.json_patch(scale, body.value)
        return made
    merged: Object = patches.merge_patch(scale, whole(body))
    return merged


def _scale_of(obj: Object) -> Object:
    spec, status, meta = obj["spec"], obj.get("status") or {}, obj["metadata"]
    labels = (spec.get("selector") or {}).get("matchLabels") or {}
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: meta[key] for key in kept if key in meta},
        "spec": {"replicas": spec.get("replicas", 0)},
        "status": {
            "replicas": status.get("replicas", 0),
            "selector": ",".join(f"{key}={value}" for key, value in labels.items()),
        },
    }


def _token(call: Call, request: Object) -> Object:
    account = write.current_of(call)
    request = prune("authentication.v1.TokenRequest", {"kind": "TokenRequest", **request})[0]
    spec = request.get("spec") or {}
    seconds = spec.get("expirationSeconds") or _USUAL
    if seconds < _SHORTEST:
        text = f"may not specify a duration less than {_SHORTEST // 60} minutes"
        raise errors.ApiError(
            422,
            "Invalid",
            f'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: {seconds}: {text}',
        )
    meta = account["metadata"]
    bound = {
        "aud": spec.get("audiences") or ["https://kubernetes.default.svc"],
        "kubernetes.io": {
            "namespace": call.namespace,
            "serviceaccount": {"name": call.name, "uid": meta["uid"]},
        },
    }
    user = replace(service_account(call.namespace, call.name), groups=())
    made = auth.issue(call.cluster.token_key, user, seconds, bound)
    end = datetime.now(UTC) + timedelta(seconds=seconds)
    return {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {
            "name": call.name,
            "namespace": call.namespace,
            "creationTimestamp": call.cluster.clock.stamp(),
        },
        "spec": {"audiences": bound["aud"], "expirationSeconds": seconds},
        "status": {"token": made, "expirationTimestamp": end.strftime("%Y-%m-%dT%H:%M:%SZ")},
    }


async def _evict(call: Call, eviction: Object) -> Object:
    options = deleting.read_options(eviction.get("deleteOptions"))
    await deleting.delete(call.on(subresource="", verb="delete"), options)
    return {**_SUCCESS, "code": 201}
