"""Subresources: what lies below an object's path and is no object of its own."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from kpolicy_sandbox import errors
from kpolicy_sandbox.access import tokens
from kpolicy_sandbox.call import Call, service_account
from kpolicy_sandbox.objects import delete as deleting
from kpolicy_sandbox.objects import write
from kpolicy_sandbox.objects.patches import JSON_PATCH, json_patch, merge_patch
from kpolicy_sandbox.schema.unknown import prune

from .resources import Body, act, patch, whole

Object = dict[str, Any]
_CANNOT = {
    "log": "show logs: its Pods do not run, they only look as if",
    "exec": "run commands in a Pod: its Pods do not run, they only look as if",
    "attach": "attach to a Pod: its Pods do not run, they only look as if",
    "portforward": "forward ports: its Pods do not run, they only look as if",
    "proxy": "forward requests: nothing runs behind its objects",
}
_SHORTEST, _USUAL = 600, 3600


async def act_below(call: Call, body: Body) -> tuple[int, Object]:
    """Do what a call asks of a subresource; return the HTTP status and the object to show. ApiError 404, 405, 501."""
    resource, name = call.resource, call.subresource
    if name in _CANNOT and name in resource.subresources:
        write.current_of(call)
        raise errors.not_implemented(_CANNOT[name])
    if name == "status" and resource.has_status:
        return await _status(call, body)
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
            return await _part_of_pod(call, body)
    raise errors.method_not_allowed()


def _or_empty(body: Body) -> Object:
    return {} if body.value is None else whole(body)


async def _status(call: Call, body: Body) -> tuple[int, Object]:
    if call.verb == "get":
        return 200, write.current_of(call)
    if call.verb == "update":
        return 200, await write.update(call, lambda _: whole(body))
    if call.verb == "patch":
        return await patch(call, body)
    raise errors.method_not_allowed()


async def _part_of_pod(call: Call, body: Body) -> tuple[int, Object]:
    code, shown = await act(call, body)
    assert isinstance(shown, dict), "neither a list nor a watch has a name"
    return code, shown


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
    if body.content_type == JSON_PATCH:
        made: Object = json_patch(scale, body.value)
        return made
    merged: Object = merge_patch(scale, whole(body))
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
    spec = _typed("authentication.v1.TokenRequest", request).get("spec") or {}
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
    made = tokens.issue(call.cluster.token_key, user, seconds, bound)
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


def _typed(name: str, body: Object) -> Object:
    return prune(name, {"kind": name.rpartition(".")[2], **body})[0]


async def _evict(call: Call, eviction: Object) -> Object:
    options = deleting.read_options(eviction.get("deleteOptions"))
    await deleting.delete(call.on(subresource="", verb="delete"), options)
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
