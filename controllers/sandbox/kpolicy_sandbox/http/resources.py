"""What each verb does to a resource: from a call and a decoded body to an object, a page or a Status."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kpolicy_sandbox.access.reviews import answer
from kpolicy_sandbox.errors import bad_request, method_not_allowed, unsupported_media
from kpolicy_sandbox.objects import delete as deleting
from kpolicy_sandbox.objects import patches, read, write
from kpolicy_sandbox.objects.apply import apply_object
from kpolicy_sandbox.objects.shapes import shape_of
from kpolicy_sandbox.objects.strategic import strategic_merge

if TYPE_CHECKING:
    from collections.abc import Callable

    from kpolicy_sandbox.call import Call

Object = dict[str, Any]
_PATCHES = f"{patches.JSON_PATCH}, {patches.MERGE}, {patches.STRATEGIC}, {patches.APPLY}"


@dataclass(frozen=True, slots=True)
class Body:
    """What came with a request."""

    value: Any
    content_type: str


async def act(call: Call, body: Body) -> tuple[int, Object | read.Page]:
    """Do what a call asks for (all verbs but watch); return the HTTP status and the object or page to show."""
    if call.resource.review and call.verb != "create":
        raise method_not_allowed()
    match call.verb:
        case "get":
            return 200, write.current_of(call)
        case "list":
            return 200, read.list_page(call)
        case "create":
            return 201, await _create(call, body)
        case "update":
            return 200, await write.update(call, lambda _: whole(body))
        case "patch":
            return await patch(call, body)
        case "delete":
            return await _delete(call, body)
        case "deletecollection":
            return await _delete_all(call, body)
    raise method_not_allowed()


async def _create(call: Call, body: Body) -> Object:
    if call.resource.review:
        return answer(call, write.read_body(call, whole(body)))
    return await write.create(call, whole(body))


def whole(body: Body) -> Object:
    """Return the object that a body is. ApiError 400 for anything else."""
    if not isinstance(body.value, dict):
        raise bad_request("the request has no body that holds an object")
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
    raise unsupported_media(_PATCHES)


async def _apply(call: Call, wanted: Object) -> tuple[int, Object]:
    if not call.query.get("fieldManager"):
        raise bad_request(
            "PatchOptions.meta.k8s.io: fieldManager: Required value: is required for apply patch"
        )
    writer = write.writer(call, force=call.query.get("force") == "true")
    shape = shape_of(call.resource)
    wanted = write.read_body(call, wanted)
    if wanted["metadata"].get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")
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
    return 200, _success(details)


async def _delete_all(call: Call, body: Body) -> tuple[int, Object]:
    options = deleting.read_options(body.value)
    gone = await read.delete_collection(call, options, deleting.delete)
    return 200, {
        "kind": call.resource.list_kind,
        "apiVersion": call.resource.api_version,
        "metadata": {"resourceVersion": str(call.cluster.store.revision)},
        "items": gone,
    }


def _success(details: Object) -> Object:
    made: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    return {**made, "details": details} if details else made
