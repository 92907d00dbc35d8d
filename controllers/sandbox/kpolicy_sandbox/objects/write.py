"""Creating and changing objects: the whole way from a decoded body to the store, the same for people and for controllers.

Order on create: checks of the body → defaults → built-in admission → mutating webhooks → defaults → name, UID, strategy →
validation → validating webhooks → store. An update runs all of it inside a loop that starts again when somebody else wrote
meanwhile and the request did not insist on a resourceVersion, as a real API server does.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from kpolicy_sandbox import errors
from kpolicy_sandbox.access.auth import check_rights
from kpolicy_sandbox.admission.webhook_client import Subject
from kpolicy_sandbox.cluster import suffix
from kpolicy_sandbox.kinds import presented, stored_form
from kpolicy_sandbox.store import Stale

from .checks import check, check_update
from .defaults import with_defaults
from .managed_fields import Writer, record_update
from .shapes import shape_of
from .strategies import admit, counts_generations, prepare_create, prepare_update

if TYPE_CHECKING:
    from collections.abc import Callable

    from kpolicy_sandbox.call import Call
    from kpolicy_sandbox.kinds import Resource

Object = dict[str, Any]
_SYSTEM = ("uid", "creationTimestamp", "generation", "deletionTimestamp", "selfLink")
_KEPT = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")
_ATTEMPTS = 8


def read_body(call: Call, obj: Any) -> Object:
    """Return a decoded body as an object of the call's resource, without unknown fields. ApiError for one that is none."""
    resource = call.resource
    if not isinstance(obj, dict):
        raise errors.bad_request("the body is not an object")
    obj = {"apiVersion": resource.api_version, "kind": resource.kind, **obj}
    if (obj["apiVersion"], obj["kind"]) != (resource.api_version, resource.kind):
        raise errors.bad_request(
            f'{obj["kind"]} in version "{obj["apiVersion"]}" cannot be handled as a {resource.kind}: '
            f"the API version in the data ({obj['apiVersion']}) does not match the expected API version ({resource.api_version})"
        )
    obj = _pruned(call, obj)
    meta = {key: value for key, value in (obj.get("metadata") or {}).items() if value is not None}
    if resource.namespaced:
        if meta.get("namespace", call.namespace) != call.namespace and meta.get("namespace"):
            raise errors.bad_request(
                "the namespace of the provided object does not match the namespace sent on the request"
            )
        meta["namespace"] = call.namespace
    else:
        meta.pop("namespace", None)
    return {**obj, "metadata": meta}


def _pruned(call: Call, obj: Object) -> Object:
    from kpolicy_sandbox.schema.unknown import prune

    resource = call.resource
    if resource.custom is not None:
        made, unknown = resource.custom.prune(obj)
    else:
        made, unknown = prune(resource.type, obj)
    pruned: Object = made
    mode = call.query.get("fieldValidation") or "Warn"
    words = [f'unknown field "{path}"' for path in unknown]
    if words and mode == "Strict":
        raise errors.bad_request(
            f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: '
            f"strict decoding error: {', '.join(words)}"
        )
    if mode == "Warn":
        call.warnings += [word for word in words if word not in call.warnings]
    return pruned


def defaulted(resource: Resource, obj: Object) -> Object:
    """Return an object with the defaults of its kind or of its schema."""
    if resource.custom is not None:
        made: Object = resource.custom.default(obj)
        return made
    return with_defaults(resource, obj)


async def create(call: Call, body: Any, *, applied: bool = False) -> Object:
    """Create an object and return it as stored (on a dry run: as it would be).

    `applied` says that the body comes with managed fields of its own (server-side apply).
    """
    resource, cluster = call.resource, call.cluster
    obj = read_body(call, body)
    if obj["metadata"].get("resourceVersion"):
        raise errors.bad_request("resourceVersion should not be set on objects to be created")
    given = obj["metadata"]
    meta = {key: value for key, value in given.items() if key not in _SYSTEM}
    obj = defaulted(resource, {**obj, "metadata": meta})
    _check_name(call, obj)
    check_namespace(call)
    obj = admit(resource, obj)
    if not applied:
        obj = record_update(shape_of(resource), None, obj, writer(call))
    check_rights(call, obj, None)
    obj = await cluster.admission.mutate(call, Subject("CREATE", obj, None))
    obj = defaulted(resource, read_body(call, obj))
    for attempt in range(_ATTEMPTS):
        made = _born(call, obj)
        validate(call, made)
        await cluster.admission.validate(call, Subject("CREATE", made, None))
        check_namespace(call)
        try:
            return _keep_new(call, made)
        except errors.ApiError:
            if obj["metadata"].get("name") or attempt == _ATTEMPTS - 1:
                raise
    raise AssertionError("the last attempt returns or raises")


def _check_name(call: Call, obj: Object) -> None:
    name = obj["metadata"].get("name", "")
    if call.name and name != call.name:
        raise errors.bad_request(
            f"the name of the object ({name}) does not match the name on the URL ({call.name})"
        )


def check_namespace(call: Call) -> None:
    """Refuse to create in a namespace that is not there (404) or on its way out (403)."""
    if not call.resource.namespaced:
        return
    space = call.cluster.store.get("/namespaces", "", call.namespace)
    if space is None:
        raise errors.not_found("namespaces", "", call.namespace)
    if space["metadata"].get("deletionTimestamp"):
        why = f"unable to create new content in namespace {call.namespace} because it is being terminated"
        raised = errors.forbidden(call.resource.plural, call.resource.group, call.name, why)
        raised.details["causes"] = [
            {
                "reason": "NamespaceTerminating",
                "message": f"namespace {call.namespace} is being terminated",
                "field": "metadata.namespace",
            }
        ]
        raise raised


def _born(call: Call, obj: Object) -> Object:
    """Return an object with what only the server gives: name, UID, time of creation, generation."""
    meta = {**obj["metadata"], "uid": str(uuid.uuid4())}
    if not meta.get("name") and meta.get("generateName"):
        meta["name"] = meta["generateName"][:58] + suffix()
    if not meta.get("name"):
        cause = errors.required_field("metadata.name", "name or generateName is required")
        raise errors.invalid(call.resource.kind, call.resource.group, "", [cause])
    meta["creationTimestamp"] = call.cluster.clock.stamp()
    if counts_generations(call.resource):
        meta["generation"] = 1
    return prepare_create(call.cluster, call.resource, {**obj, "metadata": meta})


def validate(call: Call, obj: Object) -> None:
    """Refuse an object that is not valid (422)."""
    resource = call.resource
    check(resource, obj, call.cluster.expressions)
    if resource.custom is not None and (causes := resource.custom.validate(call, obj)):
        raise errors.invalid(resource.kind, resource.group, obj["metadata"]["name"], causes)


def _keep_new(call: Call, obj: Object) -> Object:
    resource, store = call.resource, call.cluster.store
    meta = obj["metadata"]
    if store.get(resource.storage, meta.get("namespace", ""), meta["name"]):
        raise errors.already_exists(resource.plural, resource.group, meta["name"])
    if call.dry_run:
        return obj
    return presented(resource, store.put(resource.storage, stored_form(resource, obj), ""))


def writer(call: Call, *, force: bool = False) -> Writer:
    """Return who writes, for the record of managed fields."""
    stamp = call.cluster.clock.stamp()
    return Writer(call.field_manager, call.resource.api_version, call.subresource, stamp, force)


async def update(
    call: Call, change: Callable[[Object], Object], *, applied: bool = False
) -> Object:
    """Change an object and return it as stored; `change` gets it in the version of the call and returns the new one.

    `applied` says that the change has written down managed fields itself. ApiError 404, 409, 422 or a webhook's denial.
    """
    for attempt in range(_ATTEMPTS):
        current = current_of(call)
        new = read_body(call, change(current))
        asked = new["metadata"].get("resourceVersion", "")
        made = await _changed(call, current, new, applied=applied)
        try:
            return _keep_changed(call, current, made)
        except Stale:
            # only a change that did not name the resourceVersion itself may be done again on what is there now
            named = asked and asked != current["metadata"]["resourceVersion"]
            if attempt == _ATTEMPTS - 1 or (named or (call.verb == "update" and asked)):
                raise errors.conflict(
                    call.resource.plural, call.resource.group, call.name
                ) from None
    raise AssertionError("the last attempt returns or raises")


def current_of(call: Call) -> Object:
    """Return the object that a call is about, in the call's version. ApiError 404."""
    resource = call.resource
    found = call.cluster.store.get(resource.storage, call.namespace, call.name)
    if found is None:
        raise errors.not_found(resource.plural, resource.group, call.name)
    return presented(resource, found)


async def _changed(call: Call, current: Object, new: Object, *, applied: bool) -> Object:
    resource, admission = call.resource, call.cluster.admission
    _check_identity(call, current, new)
    check_rights(call, new, current)
    new = _system_fields(call, current, new)
    new = defaulted(resource, prepare_update(resource, new))
    if not applied:
        new = record_update(shape_of(resource), current, new, writer(call))
    new = await admission.mutate(call, Subject("UPDATE", new, current))
    new = defaulted(resource, prepare_update(resource, read_body(call, new)))
    new = _with_generation(call, current, _system_fields(call, current, new))
    validate(call, new)
    if not call.subresource:
        check_update(resource, current, new)
    await admission.validate(call, Subject("UPDATE", new, current))
    return new


def _check_identity(call: Call, current: Object, new: Object) -> None:
    resource, meta, held = call.resource, new["metadata"], current["metadata"]
    version = meta.get("resourceVersion", "")
    if meta.get("name", call.name) != call.name:
        raise errors.bad_request(
            f"the name of the object ({meta.get('name')}) does not match the name on the URL ({call.name})"
        )
    if version and version != held["resourceVersion"]:
        raise errors.conflict(resource.plural, resource.group, call.name)
    if not version and call.verb == "update" and resource.custom is not None:
        cause = errors.invalid_field(
            "metadata.resourceVersion", "", "must be specified for an update"
        )
        cause["message"] = "Invalid value: 0x0: must be specified for an update"
        raise errors.invalid(resource.kind, resource.group, call.name, [cause])
    if meta.get("uid") and meta["uid"] != held["uid"]:
        why = (
            f"Precondition failed: UID in precondition: {meta['uid']}, "
            f"UID in object meta: {held['uid']}"
        )
        raise errors.conflict(resource.plural, resource.group, call.name, why)


_WITH_STATUS = dict.fromkeys(("Pod", "Node"), ("managedFields", "labels", "annotations"))
"""What of the metadata is written with the status: of most kinds nothing that people write."""


def _system_fields(call: Call, current: Object, new: Object) -> Object:
    """Put back what a request cannot change: identity, and status or everything but status."""
    held = current["metadata"]
    meta = {
        key: value for key, value in new["metadata"].items() if key not in (*_KEPT, "generation")
    }
    kept = {key: held[key] for key in (*_KEPT, "generation") if key in held}
    meta = {**meta, **kept, "name": held["name"], "resourceVersion": held["resourceVersion"]}
    if held.get("deletionTimestamp"):
        _check_finalizers(call, held, meta)
    if call.subresource == "status":
        open_fields = _WITH_STATUS.get(call.resource.kind, ("managedFields",))
        written = {key: meta[key] for key in open_fields if key in meta}
        meta = {**{key: value for key, value in held.items() if key not in open_fields}, **written}
        made = {key: value for key, value in current.items() if key != "status"}
        status = {"status": new["status"]} if "status" in new else {}
        return {**made, "metadata": meta, **status}
    made = {**new, "metadata": meta}
    if call.resource.storage == "/namespaces" and call.subresource != "finalize":
        made["spec"] = current.get("spec", {})
    if call.resource.has_status and call.subresource != "ephemeralcontainers":
        made.pop("status", None)
        if "status" in current:
            made["status"] = current["status"]
    return made


def _check_finalizers(call: Call, held: Object, meta: Object) -> None:
    more = set(meta.get("finalizers") or ()) - set(held.get("finalizers") or ())
    if more:
        shown = ", ".join(f'"{one}"' for one in sorted(more))
        why = f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{shown}}}"
        cause = errors.forbidden_field("metadata.finalizers", why)
        raise errors.invalid(call.resource.kind, call.resource.group, call.name, [cause])


def _with_generation(call: Call, current: Object, new: Object) -> Object:
    if not counts_generations(call.resource) or _spec(call, current) == _spec(call, new):
        return new
    number = current["metadata"].get("generation", 0) + 1
    return {**new, "metadata": {**new["metadata"], "generation": number}}


def _spec(call: Call, obj: Object) -> Object:
    left_out = {"metadata", "apiVersion"} | ({"status"} if call.resource.has_status else set())
    return {key: value for key, value in obj.items() if key not in left_out}


def _keep_changed(call: Call, current: Object, new: Object) -> Object:
    resource, store = call.resource, call.cluster.store
    if _same(current, new):
        return current
    version = current["metadata"]["resourceVersion"]
    if call.dry_run:
        return new
    if finished(new):
        held = store.get(resource.storage, call.namespace, call.name)
        if held is None or held["metadata"]["resourceVersion"] != version:
            raise Stale
        store.remove(resource.storage, call.namespace, call.name)
        return new
    return presented(resource, store.put(resource.storage, stored_form(resource, new), version))


def finished(obj: Object) -> bool:
    """Tell whether an object that is being deleted has nothing left that holds it."""
    held = obj["metadata"]
    spaced = obj.get("kind") == "Namespace" and (obj.get("spec") or {}).get("finalizers")
    return bool(held.get("deletionTimestamp")) and not held.get("finalizers") and not spaced


def _same(current: Object, new: Object) -> bool:
    """Tell whether a write changes nothing but times of managed fields."""
    if current == new:
        return True
    return _bare(current) == _bare(new)


def _bare(obj: Object) -> Object:
    meta = obj["metadata"]
    entries = [
        {key: value for key, value in one.items() if key != "time"}
        for one in meta.get("managedFields") or ()
    ]
    return {**obj, "metadata": {**meta, "managedFields": entries}}
