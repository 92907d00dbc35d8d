"""One request from the wire to the answer: who asks, what for, whether they may, and how the outcome is written."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson
from aiohttp import web

from kpolicy_sandbox import errors
from kpolicy_sandbox.access.auth import Question, authenticate, demand
from kpolicy_sandbox.call import Call, User
from kpolicy_sandbox.objects.patches import APPLY, JSON_PATCH, MERGE, STRATEGIC
from kpolicy_sandbox.objects.read import Page, selector_of, watch
from kpolicy_sandbox.schema.protobuf import MAGIC, MEDIA_TYPE, decode

from . import answers, nonresource
from .resources import Body, act, act_below

if TYPE_CHECKING:
    from kpolicy_sandbox.cluster import Cluster
    from kpolicy_sandbox.kinds import Registry

_LOG = logging.getLogger(__name__)
_HOSTS = {"127.0.0.1", "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"}
_TRUE = {"true", "1"}


@dataclass(frozen=True, slots=True)
class Handler:
    """Answers every request to the sandbox."""

    cluster: Cluster

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        """Answer a request; whatever goes wrong becomes a Status object."""
        try:
            return await self._answer(request)
        except errors.ApiError as error:
            return _written(error.status(), error.code)
        except ConnectionResetError:
            # nobody is there any more to be answered
            raise
        except Exception as error:
            # the client gets an answer whatever happens here, and the log says where it happened
            _LOG.exception("a request failed inside the sandbox")
            return _written(errors.internal(str(error)).status(), 500)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        _check_host(request)
        if request.path in nonresource.HEALTH:
            return web.Response(text="ok")
        user = authenticate(self.cluster, request.headers, _certificate(request))
        place = place_of(request.path)
        if place is None:
            return await self._plain(request, user)
        call = self._call(request, user, place)
        _authorize(call)
        if call.verb == "watch":
            return await _watch(call, request)
        body = await self._body(request)
        try:
            code, shown = await (act_below(call, body) if call.subresource else act(call, body))
        except errors.ApiError as error:
            return _written(error.status(), error.code, call.warnings)
        form = answers.form_of(request.headers.get("Accept", ""), request.query)
        made = (
            answers.list_in(form, call, shown)
            if isinstance(shown, Page)
            else answers.object_in(form, call, shown)
        )
        return _written(made, code, call.warnings)

    async def _plain(self, request: web.Request, user: User) -> web.Response:
        if request.method == "POST":
            body = await self._body(request)
            return _written(nonresource.switch(self.cluster, user, request.path, body.value), 200)
        if request.method not in {"GET", "HEAD"}:
            raise errors.method_not_allowed()
        if not request.path.startswith("/sandbox/"):
            demand(self.cluster, user, Question("get", path=request.path))
        made, media = nonresource.answer(
            self.cluster, request.path, request.headers.get("Accept", "")
        )
        raw = made if isinstance(made, bytes) else answers.encoded(made)
        return web.Response(body=raw, headers={"Content-Type": media or "application/json"})

    def _call(self, request: web.Request, user: User, place: Place) -> Call:
        resource = self.cluster.registry.find(place.group, place.version, place.plural)
        if resource is None or (place.namespace and not resource.namespaced):
            raise errors.no_such_path()
        verb = verb_of(request.method, place, watching=request.query.get("watch", "") in _TRUE)
        if not verb:
            raise errors.method_not_allowed()
        if request.query.get("dryRun", "All") not in {"All", ""}:
            raise errors.bad_request('dryRun: Unsupported value: supported values: "All"')
        if resource.namespaced and not place.namespace and verb not in {"list", "watch"}:
            raise errors.method_not_allowed()
        return Call(
            cluster=self.cluster,
            user=user,
            verb=verb,
            resource=resource,
            namespace=place.namespace,
            name=place.name,
            subresource=place.subresource,
            query=dict(request.query),
            agent=request.headers.get("User-Agent", ""),
        )

    async def _body(self, request: web.Request) -> Body:
        raw = await request.read()
        content_type = request.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        return Body(_decoded(raw, content_type, self.cluster.registry), content_type)


def _check_host(request: web.Request) -> None:
    """Refuse requests under a foreign name: a page in a browser must not reach the sandbox by a name of its own."""
    if request.host.rpartition(":")[0].strip("[]") not in _HOSTS and request.host not in _HOSTS:
        raise errors.ApiError(403, "Forbidden", "this name is not the sandbox's")


def _certificate(request: web.Request) -> Any:
    transport = request.transport
    tls = transport.get_extra_info("ssl_object") if transport else None
    return tls.getpeercert() if tls else None


def _authorize(call: Call) -> None:
    resource = call.resource
    # a namespace's own rights are asked in that namespace, as RBAC does
    namespace = call.name if resource.storage == "/namespaces" else call.namespace
    question = Question(
        call.verb, resource.group, resource.plural, namespace, call.name, call.subresource
    )
    demand(call.cluster, call.user, question)


def _written(value: Any, code: int, warnings: list[str] | None = None) -> web.Response:
    answer = web.Response(
        body=answers.encoded(value), status=code, headers={"Content-Type": "application/json"}
    )
    for text in warnings or ():
        answer.headers.add("Warning", f'299 - "{_quoted(text)}"')
    return answer


def _quoted(text: str) -> str:
    """Return a text as it may stand in a header: quotes escaped, no line ends, not endless."""
    clean = "".join(char if char.isprintable() else " " for char in text[:4096])
    return clean.replace("\\", "\\\\").replace('"', '\\"')


async def _watch(call: Call, request: web.Request) -> web.StreamResponse:
    selector_of(call)
    form = answers.form_of(request.headers.get("Accept", ""), request.query)
    stream = web.StreamResponse(headers={"Content-Type": "application/json"})
    stream.enable_chunked_encoding()
    await stream.prepare(request)
    async for kind, obj in watch(call):
        shown = obj if kind == "ERROR" else answers.object_in(form, call, obj)
        await stream.write(answers.encoded({"type": kind, "object": shown}))
    return stream


# Request bodies: JSON, YAML or Kubernetes' protobuf, whatever the client calls it, decoded to plain values.


_YAML = {"application/yaml", APPLY}
_JSON = {"", "application/json", "application/octet-stream", JSON_PATCH, MERGE, STRATEGIC}


def _decoded(raw: bytes, content_type: str, registry: Registry) -> Any:
    """Return what a body holds, None for an empty one. ApiError 400 or 415 for one that cannot be read."""
    if not raw:
        return None
    if content_type == MEDIA_TYPE or raw.startswith(MAGIC):
        return decode(raw, lambda version, kind: _type_of(registry, version, kind))
    if content_type in _YAML:
        return _yaml(raw)
    if content_type not in _JSON:
        raise errors.unsupported_media(f"application/json, application/yaml, {MEDIA_TYPE}")
    try:
        return orjson.loads(raw)
    except ValueError as error:
        raise errors.bad_request(f"the body of the request is not JSON: {error}") from error


def _yaml(raw: bytes) -> Any:
    from .yaml import load

    try:
        return load(raw)
    except ValueError as error:
        raise errors.bad_request(f"the body of the request is not YAML: {error}") from error


_OTHERS = {
    ("meta.k8s.io/v1", "DeleteOptions"): "meta.v1.DeleteOptions",
    ("v1", "DeleteOptions"): "meta.v1.DeleteOptions",
    ("policy/v1", "Eviction"): "policy.v1.Eviction",
    ("autoscaling/v1", "Scale"): "autoscaling.v1.Scale",
    ("authentication.k8s.io/v1", "TokenRequest"): "authentication.v1.TokenRequest",
    ("v1", "Binding"): "core.v1.Binding",
}


def _type_of(registry: Registry, api_version: str, kind: str) -> str:
    if named := _OTHERS.get((api_version, kind)):
        return named
    resource = registry.by_api_version(api_version, kind)
    return resource.type if resource else ""


# Takes a URL path apart the way Kubernetes does: group, version, namespace, resource, name, subresource.


_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch"}
_OF_NAMESPACES = {"status", "finalize"}


@dataclass(frozen=True, slots=True)
class Place:
    """What a path names."""

    group: str
    version: str
    plural: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    rest: str = ""


def place_of(path: str) -> Place | None:
    """Return the resource that a path names; None for a path that names none."""
    parts = [part for part in path.split("/") if part]
    match parts:
        case ["api", "v1", *below] if below:
            return _below("", "v1", below)
        case ["apis", group, version, *below] if below:
            return _below(group, version, below)
    return None


def _below(group: str, version: str, parts: list[str]) -> Place | None:
    namespace = ""
    # anything shorter is the namespace itself, which lies in no namespace
    if parts[0] == "namespaces" and len(parts) > 2 and parts[2] not in _OF_NAMESPACES:
        namespace, parts = parts[1], parts[2:]
    plural, name, below, *rest = [*parts, "", "", ""]
    return Place(group, version, plural, namespace, name, below, "/".join(filter(None, rest)))


def verb_of(method: str, place: Place, *, watching: bool) -> str:
    """Return the verb of a request as RBAC names it; "" for a method that there is not."""
    if method in {"GET", "HEAD"}:
        if place.name:
            return "get"
        return "watch" if watching else "list"
    if method == "DELETE":
        return "delete" if place.name else "deletecollection"
    return _VERBS.get(method, "")
