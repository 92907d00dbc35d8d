"""Calling one webhook: the AdmissionReview as `admission.k8s.io/v1` has it, over HTTPS to a URL or to a Service's local address.

Knows TLS and HTTP; whether a webhook is called at all, and what its answer means for the request, is the chain's.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import aiohttp
import orjson

from kpolicy_sandbox.kinds import presented

if TYPE_CHECKING:
    from pathlib import Path

    from kpolicy_sandbox.call import Call
    from kpolicy_sandbox.kinds import Resource

    from .rules import Match

Object = dict[str, Any]
ADDRESS = "sandbox.kpolicy.io/address"
_LARGEST = 8 << 20


class CallFailed(Exception):  # noqa: N818 - the webhook's call failed, nothing here is in error
    """A webhook could not be asked, or gave no answer that can be read."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What a review is about: the objects in the request's version, and the options of the request."""

    operation: str
    obj: Object | None
    old: Object | None
    options: Object | None = None


@dataclass(slots=True)
class Caller:
    """Keeps one HTTP session and one TLS context per CA bundle; `certificate` is what the server shows to webhooks."""

    certificate: tuple[Path, Path] | None = None
    _session: aiohttp.ClientSession | None = None
    _contexts: dict[str, ssl.SSLContext] = field(default_factory=dict)

    async def ask(self, call: Call, match: Match, subject: Subject) -> Object:
        """Return the `response` of a webhook's AdmissionReview. CallFailed for anything else."""
        review = review_of(call, match, subject)
        seconds = match.hook.get("timeoutSeconds") or 10
        try:
            answer = await self._post(call, match.hook, review, seconds)
        except TimeoutError as error:
            url = self._target(call, match.hook, seconds)[0]
            raise CallFailed(f'Post "{url}": context deadline exceeded') from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            url = self._target(call, match.hook, seconds)[0]
            raise CallFailed(f'Post "{url}": {error}') from error
        return _response(answer, review["request"]["uid"])

    async def _post(self, call: Call, hook: Object, review: Object, seconds: int) -> Any:
        if self._session is None:
            self._session = aiohttp.ClientSession()
        url, real, host = self._target(call, hook, seconds)
        async with self._session.post(
            real,
            data=orjson.dumps(review),
            headers={"Content-Type": "application/json", "Accept": "application/json"},
            ssl=self._context(hook["clientConfig"].get("caBundle", ""))
            if url.startswith("https")
            else False,
            server_hostname=host,
            timeout=aiohttp.ClientTimeout(total=seconds),
            allow_redirects=False,
        ) as answer:
            text = await answer.content.read(_LARGEST)
            if answer.status != 200:
                raise CallFailed(
                    f"an error on the server ({text[:200].decode(errors='replace')!r}) has prevented the request from succeeding"
                    if answer.status >= 500
                    else "the server rejected our request for an unknown reason"
                )
            return orjson.loads(text)

    def _target(self, call: Call, hook: Object, seconds: int) -> tuple[str, str, str | None]:
        """Return the webhook's URL as messages show it, the URL that is really asked, and the name that its certificate must have."""
        config = hook.get("clientConfig") or {}
        if url := config.get("url"):
            return f"{url}?timeout={seconds}s", f"{url}?timeout={seconds}s", None
        service = config.get("service") or {}
        host = f"{service.get('name')}.{service.get('namespace')}.svc"
        path = str(service.get("path") or "/").lstrip("/")
        shown = f"https://{host}:{service.get('port', 443)}/{path}?timeout={seconds}s"
        address = _address(call, str(service.get("namespace")), str(service.get("name")))
        return shown, f"https://{address}/{path}?timeout={seconds}s", host

    def _context(self, bundle: str) -> ssl.SSLContext:
        if bundle not in self._contexts:
            made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            if bundle:
                made.load_verify_locations(cadata=base64.b64decode(bundle).decode())
            else:
                made.load_default_certs()
            if self.certificate:
                made.load_cert_chain(*self.certificate)
            self._contexts[bundle] = made
        return self._contexts[bundle]

    async def close(self) -> None:
        """Close the session."""
        if self._session is not None:
            await self._session.close()
            self._session = None


def _address(call: Call, namespace: str, name: str) -> str:
    """Return where a Service really listens: by the table of local addresses, or by an annotation on the Service."""
    known = call.cluster.services.get(f"{namespace}/{name}")
    service = call.cluster.store.get("/services", namespace, name)
    if known is None and service is None:
        raise CallFailed(f'service "{name}" not found')
    annotations = ((service or {}).get("metadata") or {}).get("annotations") or {}
    known = known or annotations.get(ADDRESS)
    if not known:
        raise CallFailed(f'no endpoints available for service "{name}"')
    return urlsplit(known).netloc if "//" in known else known


def review_of(call: Call, match: Match, subject: Subject) -> Object:
    """Return the AdmissionReview that a webhook gets; objects are in the version that its rule names."""
    wanted, asked = match.resource, call.resource
    named = subject.obj or subject.old or {}
    request: Object = {
        "uid": str(uuid.uuid4()),
        "kind": _kind(call, wanted.group, wanted.version),
        "resource": _named(wanted),
        "requestKind": _kind(call, asked.group, asked.version),
        "requestResource": _named(asked),
        "operation": subject.operation,
        "userInfo": call.user.info(),
        "object": presented(wanted, subject.obj) if subject.obj else None,
        "oldObject": presented(wanted, subject.old) if subject.old else None,
        "dryRun": call.dry_run,
        "options": subject.options or _options(call, subject.operation),
    }
    if call.subresource:
        request["subResource"] = request["requestSubResource"] = call.subresource
    if name := call.name or named.get("metadata", {}).get("name", ""):
        request["name"] = name
    if call.resource.namespaced:
        request["namespace"] = call.namespace
    elif call.resource.storage == "/namespaces" and name:
        request["namespace"] = name
    return {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}


def _named(resource: Resource) -> Object:
    return {"group": resource.group, "version": resource.version, "resource": resource.plural}


def _kind(call: Call, group: str, version: str) -> Object:
    below = call.resource.subresources.get(call.subresource)
    if below and call.resource.storage == "/pods":
        api_version, _, kind = below.partition(" ")
        group, _, version = api_version.rpartition("/")
        return {"group": group, "version": version, "kind": kind}
    if call.subresource == "scale":
        return {"group": "autoscaling", "version": "v1", "kind": "Scale"}
    return {"group": group, "version": version, "kind": call.resource.kind}


def _options(call: Call, operation: str) -> Object:
    kinds = {"CREATE": "CreateOptions", "UPDATE": "UpdateOptions", "DELETE": "DeleteOptions"}
    kind = "PatchOptions" if call.verb == "patch" else kinds.get(operation, "")
    if not kind:
        return {}
    made: Object = {"kind": kind, "apiVersion": "meta.k8s.io/v1"}
    if call.query.get("fieldManager"):
        made["fieldManager"] = call.query["fieldManager"]
    if call.query.get("fieldValidation"):
        made["fieldValidation"] = call.query["fieldValidation"]
    if call.dry_run:
        made["dryRun"] = ["All"]
    return made


def _response(answer: Any, uid: str) -> Object:
    if not isinstance(answer, dict) or answer.get("kind") != "AdmissionReview":
        raise CallFailed("expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview")
    response = answer.get("response")
    if not isinstance(response, dict):
        raise CallFailed("webhook response was absent")
    if response.get("uid") != uid:
        raise CallFailed(f'expected response.uid="{uid}", got "{response.get("uid", "")}"')
    return response


async def all_of(calls: list[Any]) -> list[Any]:
    """Run calls side by side and return what each gave or raised, in their order."""
    return await asyncio.gather(*calls, return_exceptions=True)
