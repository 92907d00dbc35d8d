"""The API: a request by whom it is from in, an answer out, as a Kubernetes API server gives it. It knows no HTTP library.

Every request to a resource passes `Rights` first; what stands in a path, a query or a body is believed by nobody before.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import orjson

from controllers.kube import Clock, Invalid, KubeError, NotFound
from controllers.manifests.crds import definition

from . import changing
from .batch import Write
from .forms import SUCCESS, Form, Rendering, form_of, status_of
from .queries import SEVERITY, page_asked, token
from .rights import Action, Rights
from .selecting import Selector, selector_of
from .served import GROUPS, SERVED, Served, served_at
from .watching import Watch, Watched, watched_from

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence

    from engine.model import Object

    from .feed import Feed
    from .requester import Requester
    from .storage import Storage

_COLLECTION: Final = {"GET": "list", "POST": "create"}
_OBJECT: Final = {"GET": "get", "PUT": "update", "DELETE": "delete"}


@dataclass(frozen=True, slots=True)
class Call:
    """A request. `path` is decoded, `query` holds the first value of each name."""

    method: str
    path: str
    requester: Requester | None
    query: Mapping[str, str] = field(default_factory=dict)
    accept: str = ""
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer: a document, or the parts of a stream as they come."""

    status: int
    body: bytes = b""
    parts: AsyncGenerator[bytes] | None = None
    retry_after: int = 0


@dataclass(frozen=True, slots=True)
class _Target:
    """What a call is about."""

    served: Served
    namespace: str
    name: str
    verb: str
    form: Form


class Api:
    """Answers calls of the API server: says whether somebody may, reads and writes reports, lists and watches."""

    def __init__(self, storage: Storage, feed: Feed, rights: Rights, clock: Clock) -> None:
        self._storage, self._feed, self._rights, self._clock = storage, feed, rights, clock

    async def answer(self, call: Call) -> Answer:
        """Answer a call; what is refused is answered with a Status."""
        try:
            return await self._answer(call)
        except KubeError as error:
            return refusal(error)

    async def _answer(self, call: Call) -> Answer:
        if call.requester is None:
            raise KubeError("Unauthorized", status=401, reason="Unauthorized")
        document = documents().get(call.path.rstrip("/"))
        if document is not None and call.method in ("GET", "HEAD"):
            return Answer(200, document)
        target = _target(call)
        selector = selector_of(call.query)
        action = Action(target.verb, target.served, target.namespace, target.name or selector.name)
        await self._rights.check(call.requester, action)
        match target.verb:
            case "get":
                body = await self._storage.get((target.namespace, target.name))
                return Answer(200, self._rendering(target).one(body))
            case "list":
                return await self._list(call, target)
            case "watch":
                return self._watch(call, target, selector, action)
        return await self._write(call, target)

    async def _list(self, call: Call, target: _Target) -> Answer:
        asked = page_asked(call.query, _space(target))
        page = await self._storage.page(asked)
        said = {
            "continue": token(page.version, page.last) if page.last is not None else "",
            "remainingItemCount": page.remaining,
            "sortedBy": SEVERITY if asked.is_worst_first else "",
        }
        metadata = {"resourceVersion": str(page.version), **{k: v for k, v in said.items() if v}}
        return Answer(200, self._rendering(target).many(page.bodies, metadata))

    def _watch(self, call: Call, target: _Target, selector: Selector, action: Action) -> Answer:
        requester = call.requester
        assert requester is not None
        watched = Watched(
            selector,
            _space(target),
            self._rendering(target),
            lambda: self._rights.check(requester, action),
        )
        watch = Watch(watched, watched_from(call.query), self._storage, self._clock)
        return Answer(200, parts=watch.lines(self._feed))

    async def _write(self, call: Call, target: _Target) -> Answer:
        is_tried_only = bool(call.query.get("dryRun"))
        if call.query.get("dryRun") not in (None, "", "All"):
            raise Invalid("dryRun: Unsupported value")
        served, namespace, name = target.served, target.namespace, target.name
        if target.verb == "delete":
            apply = changing.deleting(name, _preconditions(call.body))
        else:
            given = changing.read_body(call.body)
            if target.verb == "create" and given.get("kind") == f"{served.kind.kind}List":
                return await self._write_together(
                    call, target, changing.listed(given), is_tried_only
                )
            if served.kind.namespaced and not namespace:
                raise _not_allowed()
            report = changing.checked(given, served, namespace, name)
            name = report["metadata"]["name"]
            apply = (
                changing.updating(report)
                if target.verb == "update"
                else changing.creating(report, self._clock.now())
            )
        body = await self._storage.write(Write((namespace, name), apply, is_tried_only))
        status = 201 if target.verb == "create" else 200
        return Answer(status, self._rendering(target).one(body))

    async def _write_together(
        self, call: Call, target: _Target, items: Sequence[Any], is_tried_only: bool
    ) -> Answer:
        """Create or, where they name the version that they replace, update some reports; answers with a Status for each."""
        served = target.served
        assert call.requester is not None
        if any(map(changing.version_of, items)):
            await self._rights.check(call.requester, Action("update", served, target.namespace))
        now = self._clock.now()

        async def written(item: Any) -> bytes:
            try:
                namespace = target.namespace
                if served.kind.namespaced and not namespace:
                    namespace = changing.namespace_of(item)
                report = changing.checked(item, served, namespace)
                apply = (
                    changing.updating(report)
                    if changing.version_of(item)
                    else changing.creating(report, now)
                )
                place = (namespace, report["metadata"]["name"])
                await self._storage.write(Write(place, apply, is_tried_only))
            except KubeError as error:
                return status_of(error)
            return SUCCESS

        answers = await asyncio.gather(*map(written, items))
        head = b'{"kind":"List","apiVersion":"v1","metadata":{},"items":['
        return Answer(200, head + b",".join(answers) + b"]}")

    def _rendering(self, target: _Target) -> Rendering:
        return Rendering(target.served, target.form, self._clock.now())


def refusal(error: KubeError) -> Answer:
    """Return an error as the answer that clients understand."""
    return Answer(error.status or 500, status_of(error), retry_after=int(error.retry_after or 0))


def _target(call: Call) -> _Target:
    """Return what a path means; raises NotFound for one that means nothing, and KubeError for what is not done there."""
    parts = call.path.strip("/").split("/")
    if len(parts) < 4 or parts[0] != "apis":
        raise _nothing()
    group, version, rest = parts[1], parts[2], parts[3:]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) >= 3:
        namespace, rest = rest[1], rest[2:]
    served = served_at(group, version, rest[0])
    if served is None or len(rest) > 2 or (namespace and not served.kind.namespaced):
        raise _nothing()
    name = rest[1] if len(rest) == 2 else ""
    verb = (_OBJECT if name else _COLLECTION).get(call.method)
    if verb == "list" and call.query.get("watch") in ("true", "1"):
        verb = "watch"
    if verb is None or (name and served.kind.namespaced and not namespace):
        raise _not_allowed()
    form = form_of(call.accept, call.query.get("includeObject", ""))
    return _Target(served, namespace, name, verb, form)


def _not_allowed() -> KubeError:
    text = "the server does not allow this method on the requested resource"
    return KubeError(text, status=405, reason="MethodNotAllowed")


def _nothing() -> NotFound:
    return NotFound("the server could not find the requested resource")


def _space(target: _Target) -> str | None:
    """Return the namespace of what is listed: empty for the cluster's own reports, None for those of all namespaces."""
    return target.namespace or None if target.served.kind.namespaced else ""


def _preconditions(body: bytes) -> Mapping[str, str]:
    """Return what a DeleteOptions demands; a body in another form than JSON demands nothing that could be read."""
    if not body.strip():
        return {}
    try:
        found = orjson.loads(body).get("preconditions") or {}
    except (orjson.JSONDecodeError, AttributeError) as error:
        raise Invalid(
            "the body is no DeleteOptions in JSON", status=415, reason="UnsupportedMediaType"
        ) from error
    return {key: str(value) for key, value in found.items() if value}


# What there is, for kubectl and the API server: groups, versions, resources, and the least of OpenAPI.
#
# The same for everybody who may ask at all; it tells nothing about any report.


@cache
def documents() -> Mapping[str, bytes]:
    """Return everything by path."""
    made: dict[str, Object] = {
        "/apis": {
            "kind": "APIGroupList",
            "apiVersion": "v1",
            "groups": [_group(*one) for one in GROUPS],
        },
        "/openapi/v3": {
            "paths": {
                f"apis/{group}/{version}": {
                    "serverRelativeURL": f"/openapi/v3/apis/{group}/{version}"
                }
                for group, version in GROUPS
            }
        },
    }
    for group, version in GROUPS:
        of_group = [one for one in SERVED if one.kind.group == group]
        made[f"/apis/{group}"] = {"kind": "APIGroup", "apiVersion": "v1", **_group(group, version)}
        made[f"/apis/{group}/{version}"] = {
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": f"{group}/{version}",
            "resources": [_resource(one) for one in of_group],
        }
        made[f"/openapi/v3/apis/{group}/{version}"] = {
            "openapi": "3.0.0",
            "info": {"title": "Reports", "version": version},
            "paths": {one.kind.path(): _path(one) for one in of_group},
            "components": {"schemas": {_name(one): _schema(one) for one in of_group}},
        }
    return {path: orjson.dumps(one) for path, one in made.items()}


def _group(group: str, version: str) -> Object:
    one = {"groupVersion": f"{group}/{version}", "version": version}
    return {"name": group, "versions": [one], "preferredVersion": one}


def _resource(served: Served) -> Object:
    kind = served.kind
    return {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": list(kind.verbs),
        "shortNames": list(kind.short_names),
        "categories": list(kind.categories),
    }


def _path(served: Served) -> Object:
    """Return the operations by which kubectl finds the schema of a kind, and that the server itself checks fields."""
    validation = {"name": "fieldValidation", "in": "query", "schema": {"type": "string"}}
    return {
        "post": {
            "operationId": f"create{served.kind.kind}",
            "parameters": [validation],
            "responses": {"201": {"description": "Created"}},
            "x-kubernetes-group-version-kind": _gvk(served),
        }
    }


def _schema(served: Served) -> Object:
    [version] = definition(served.defined)["spec"]["versions"]
    return {
        **version["schema"]["openAPIV3Schema"],
        "x-kubernetes-group-version-kind": [_gvk(served)],
    }


def _gvk(served: Served) -> Object:
    kind = served.kind
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


def _name(served: Served) -> str:
    reverse = ".".join(reversed(served.kind.group.split(".")))
    return f"{reverse}.{served.kind.version}.{served.kind.kind}"
