"""A Client that speaks HTTP to a real API server (or to the sandbox).

Apart from `client` because it imports aiohttp. What may be repeated and what goes out beside the request is decided in
`transport`; here requests are formed and answers read.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Self

import aiohttp
import orjson

from engine.collector import collector_off
from engine.errors import EngineError
from engine.lang import json as strict_json

from . import transport
from .client import APPLY, MERGE, Client, Event, ListPage
from .clock import Clock, SystemClock
from .errors import KubeError, NotFound, error_of, misses_object, not_served
from .paths import checked_path
from .transport import CONNECT_SECONDS, JSON, REQUEST_SECONDS, Transport, hang_up, unreachable

if TYPE_CHECKING:
    from engine.model import Json, Object

    from .access import Access
    from .kinds import Kind

FIELD_MANAGER = "kpolicy"
SILENCE_SECONDS = 15.0
"""How long after its announced end a watch may stay silent before the connection counts as dead."""
OnQuery = Callable[[str, "Kind", str], None]
_LARGE = 256 * 1024
"""Bytes of an answer from which on the collector of garbage costs more than decoding it."""
_METADATA = "application/json;as=PartialObjectMetadata{};g=meta.k8s.io;v=v1,application/json"


class HttpClient(Client):
    """See `client.Client`. Made by `kube.connect`; close it when done, or use it as an async context manager.

    `on_query` is told of every question about objects: what is done, the kind and the namespace; it must not wait.
    """

    def __init__(
        self,
        access: Access,
        *,
        clock: Clock | None = None,
        request_seconds: float = REQUEST_SECONDS,
        silence_seconds: float = SILENCE_SECONDS,
    ) -> None:
        self.access = access
        self._silence = silence_seconds
        self._clock: Clock = clock or SystemClock()
        self._transport = Transport(access, self._clock, request_seconds)
        self.on_query: OnQuery = _nobody_counts

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self._transport.close()

    async def get(
        self, kind: Kind, name: str, namespace: str = "", *, subresource: str = ""
    ) -> Object:
        """Return one object; raises NotFound."""
        self.on_query("get", kind, namespace)
        return _object(await self._call("GET", kind.path(namespace, name, subresource)))

    async def list(
        self,
        kind: Kind,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 0,
        resume: str = "",
        metadata_only: bool = False,
        sort_by: str = "",
        only: Sequence[tuple[str, str]] = (),
    ) -> ListPage:
        """Return one page of objects; raises Gone for an old `resume` token."""
        self.on_query("list", kind, namespace)
        query = _query(
            labelSelector=label_selector,
            fieldSelector=field_selector,
            limit=str(limit or ""),
            sortBy=sort_by,
            only=",".join("/".join(filter(None, place)) for place in only),
            **{"continue": resume},
        )
        accept = _METADATA.format("List") if metadata_only else JSON
        answer = await self._call("GET", kind.path(namespace), query=query, accept=accept)
        answer = _object(answer)
        metadata = answer.get("metadata") or {}
        return ListPage(
            [_named(item, kind) for item in answer.get("items") or ()],
            str(metadata.get("resourceVersion") or ""),
            str(metadata.get("continue") or ""),
            int(metadata.get("remainingItemCount") or 0),
            str(metadata.get("sortedBy") or ""),
        )

    async def watch(
        self,
        kind: Kind,
        resource_version: str = "",
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        timeout_seconds: int = 300,
        metadata_only: bool = False,
    ) -> AsyncIterator[Event]:
        """Yield events until the server ends the stream; raises Gone, Unreachable, or what the server says."""
        self.on_query("watch", kind, namespace)
        query = _query(
            watch="true",
            allowWatchBookmarks="true",
            resourceVersion=resource_version,
            timeoutSeconds=str(timeout_seconds),
            labelSelector=label_selector,
            fieldSelector=field_selector,
        )
        accept = _METADATA.format("") if metadata_only else JSON
        limits = aiohttp.ClientTimeout(
            total=None, sock_connect=CONNECT_SECONDS, sock_read=timeout_seconds + self._silence
        )
        response = await self._transport.open(
            "GET", kind.path(namespace), query, None, accept, limits
        )
        # watches end every few minutes, and what they have read has made their connections' buffers large
        transport.use_up(response)
        try:
            async for document in documents(unhurried(response.content.iter_any(), self._clock)):
                yield _event(document, kind)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise unreachable(self.access.server, error) from error
        finally:
            hang_up(response)

    async def create(
        self, kind: Kind, obj: Object, *, dry_run: bool = False, subresource: str = ""
    ) -> Object:
        """Create an object; raises AlreadyExists, Invalid."""
        metadata = obj.get("metadata") or {}
        name = str(metadata.get("name") or "") if subresource else ""
        namespace = str(metadata.get("namespace") or "")
        self.on_query("create", kind, namespace)
        path = kind.path(namespace, name, subresource)
        return _object(await self._call("POST", path, query=_writing(dry_run), body=obj))

    async def update(
        self, kind: Kind, obj: Object, *, subresource: str = "", dry_run: bool = False
    ) -> Object:
        """Replace an object; raises Conflict."""
        metadata = obj.get("metadata") or {}
        namespace = str(metadata.get("namespace") or "")
        self.on_query("update", kind, namespace)
        path = kind.path(namespace, str(metadata.get("name") or ""), subresource)
        return _object(await self._call("PUT", path, query=_writing(dry_run), body=obj))

    async def patch(
        self,
        kind: Kind,
        name: str,
        namespace: str,
        patch: Json,
        *,
        content_type: str = MERGE,
        subresource: str = "",
        dry_run: bool = False,
        field_manager: str = "",
        force: bool = False,
    ) -> Object:
        """Change an object; raises NotFound, Conflict, Invalid."""
        self.on_query("patch", kind, namespace)
        query = _writing(dry_run, field_manager)
        if content_type == APPLY:
            query["force"] = "true" if force else "false"
        path = kind.path(namespace, name, subresource)
        answer = await self._call("PATCH", path, query=query, body=patch, content_type=content_type)
        return _object(answer)

    async def delete(
        self,
        kind: Kind,
        name: str,
        namespace: str = "",
        *,
        uid: str = "",
        propagation: str = "",
        dry_run: bool = False,
    ) -> None:
        """Delete an object, with `uid` only that very one; raises NotFound, Conflict."""
        self.on_query("delete", kind, namespace)
        options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if uid:
            options["preconditions"] = {"uid": uid}
        if propagation:
            options["propagationPolicy"] = propagation
        query = {"dryRun": "All"} if dry_run else {}
        await self._call("DELETE", kind.path(namespace, name), query=query, body=options)

    async def raw(
        self, method: str, path: str, body: Json = None, *, limit: int = 0, timeout: float = 0
    ) -> Json:
        """Call a path of this server and return the decoded answer; raises Invalid for any other path."""
        data = await self._transport.send(
            method, checked_path(path), body=body, limit=limit, seconds=timeout
        )
        if not data:
            return None
        try:
            return strict_json.load(data, limits=transport.limits_of(limit))
        except EngineError:
            text = data.decode(errors="replace").strip()
            if text.startswith(("{", "[")):
                raise KubeError("the server's answer is not readable as JSON") from None
            return text

    async def review(self, kind: Kind, spec: Mapping[str, Any], namespace: str = "") -> Object:
        """Create a review and return its status."""
        self.on_query("create", kind, namespace)
        body = {"apiVersion": kind.api_version, "kind": kind.kind, "spec": spec}
        answer = _object(await self._call("POST", kind.path(namespace), body=body))
        status = answer.get("status")
        return status if isinstance(status, dict) else {}

    async def _call(self, method: str, path: str, **details: Any) -> Json:
        try:
            data = await self._transport.send(method, path, **details)
        except NotFound as error:
            if misses_object(error, path):
                raise
            raise not_served(error, path) from error
        try:
            return _value(data)
        except orjson.JSONDecodeError as error:
            raise KubeError("the server's answer is not readable as JSON") from error


def _value(data: bytes) -> Json:
    """Return the value of a JSON text; of a long list the collector would walk through what is there again and again as it grows."""
    if len(data) < _LARGE:
        return orjson.loads(data)
    with collector_off():
        return orjson.loads(data)


def _nobody_counts(operation: str, kind: Kind, namespace: str) -> None:
    """Take no note of a question."""


def _query(**pairs: str) -> dict[str, str]:
    return {key: value for key, value in pairs.items() if value}


def _writing(dry_run: bool, field_manager: str = "") -> dict[str, str]:
    """Return the query of a write; nobody reads a warning about unknown fields, so the server need not look for them."""
    query = {"fieldManager": field_manager or FIELD_MANAGER, "fieldValidation": "Ignore"}
    if dry_run:
        query["dryRun"] = "All"
    return query


def _object(answer: Json) -> Object:
    if not isinstance(answer, dict):
        raise KubeError("the server's answer is not an object")
    return answer


def _named(item: Object, kind: Kind) -> Object:
    """Return a list's item with the kind it has: lists of built-in kinds leave it out, metadata has another."""
    if item.get("kind") == kind.kind and item.get("apiVersion") == kind.api_version:
        return item
    return {**item, "apiVersion": kind.api_version, "kind": kind.kind}


def _event(document: Json, kind: Kind) -> Event:
    if not isinstance(document, dict) or not isinstance(document.get("object"), dict):
        raise KubeError("the server sent a watch event that is none")
    if document.get("type") == "ERROR":
        raise error_of(int(document["object"].get("code") or 500), document["object"])
    return Event(str(document.get("type")), _named(document["object"], kind))


# Watch streams: one JSON document per line, arriving in pieces of any size, read the more at once the quicker they come.

_LONGEST_LINE = 32 * 1024 * 1024
QUICK: Final = 0.01
"""Seconds within which a part comes after another one in a rush."""

REST: Final = 0.05
"""Seconds for which parts gather in a rush."""


async def unhurried(parts: AsyncIterator[bytes], clock: Clock) -> AsyncIterator[bytes]:
    """Yield parts; while they come in quick succession let some gather, because a process that is woken for each costs more."""
    asked_at = clock.monotonic()
    async for part in parts:
        waited = clock.monotonic() - asked_at
        yield part
        if waited < QUICK:
            await clock.sleep(REST)
        asked_at = clock.monotonic()


async def documents(parts: AsyncIterator[bytes]) -> AsyncIterator[Json]:
    """Yield the documents of a stream; raise KubeError for a line that is not JSON or endless."""
    pending: list[bytes] = []
    size = 0
    async for part in parts:
        *lines, rest = part.split(b"\n")
        for line in lines:
            pending.append(line)
            text = b"".join(pending)
            pending, size = [], 0
            if text.strip():
                yield _decoded(text)
        if rest:
            pending.append(rest)
            size += len(rest)
            if size > _LONGEST_LINE:
                raise KubeError("the server sent a watch event without an end")


def _decoded(text: bytes) -> Json:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise KubeError("the server sent a watch event that is not JSON") from error
