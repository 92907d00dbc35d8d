"""Lists and watches: which objects a request selects, in pages, and every change of them from a resourceVersion on.

Yields plain objects and events; how they are written (JSON, Table, metadata only) is for the `http` room.
"""

from __future__ import annotations

import asyncio
import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from kpolicy_sandbox.errors import ApiError, bad_request, gone
from kpolicy_sandbox.kinds import presented
from kpolicy_sandbox.store import Change, Stale

from .selectors import field_selector, label_selector

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from kpolicy_sandbox.call import Call

Object = dict[str, Any]
BOOKMARK_SECONDS = 30.0
_MOST_WAITING = 20_000


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a list: the objects, the token for the next page, how many are left."""

    items: list[Object]
    revision: str
    token: str = ""
    left: int = 0


def selector_of(call: Call) -> Callable[[Object], bool]:
    """Return the predicate of a call's selectors and name; ApiError 400 for a selector that cannot be read."""
    labels = label_selector(call.query.get("labelSelector", ""))
    fields = field_selector(call.query.get("fieldSelector", ""), call.resource.storage)
    return lambda obj: (labels is None or labels(obj)) and (fields is None or fields(obj))


def list_page(call: Call) -> Page:
    """Return the page that a call asks for. ApiError 410 for a token that is too old."""
    store = call.cluster.store
    selects = selector_of(call)
    found = [obj for obj in store.list(call.resource.storage, call.namespace) if selects(obj)]
    revision = str(store.revision)
    if token := call.query.get("continue"):
        revision, after = _read_token(token)
        if int(revision) < store.oldest:
            raise gone(
                "The provided continue parameter is too old to display a consistent list result."
            )
        found = [obj for obj in found if _key(obj) > after]
    limit = _number(call.query.get("limit", ""))
    made = found[:limit] if limit else found
    left = len(found) - len(made)
    token = _token(revision, _key(made[-1])) if left else ""
    return Page([presented(call.resource, obj) for obj in made], revision, token, left)


def _number(text: str) -> int:
    if not text:
        return 0
    try:
        return int(text)
    except ValueError:
        raise bad_request(f"strconv.ParseInt: parsing {text!r}: invalid syntax") from None


def _key(obj: Object) -> list[str]:
    return [obj["metadata"].get("namespace", ""), obj["metadata"]["name"]]


def _token(revision: str, key: list[str]) -> str:
    return base64.urlsafe_b64encode(orjson.dumps([revision, key])).decode()


def _read_token(token: str) -> tuple[str, list[str]]:
    try:
        revision, key = orjson.loads(base64.urlsafe_b64decode(token))
        return str(int(revision)), [str(part) for part in key]
    except ValueError:
        raise bad_request("continue key is not valid") from None


async def watch(call: Call) -> AsyncIterator[tuple[str, Object]]:
    """Yield type and object of every change; ends at `timeoutSeconds` or when the reader is too slow.

    A resourceVersion that is too old yields one ERROR event with a Status 410.
    """
    store = call.cluster.store
    queue: asyncio.Queue[Change] = asyncio.Queue()
    selects = selector_of(call)
    mine = _relevance(call, selects)
    stop = store.listen(lambda change: queue.put_nowait(change) if mine(change) else None)
    try:
        try:
            for event in _start(call, selects):
                yield event
        except Stale:
            yield "ERROR", gone("too old resource version").status()
            return
        async for event in _live(call, queue, selects):
            yield event
    finally:
        stop()


def _relevance(call: Call, selects: Callable[[Object], bool]) -> Callable[[Change], bool]:
    storage, namespace = call.resource.storage, call.namespace

    def mine(change: Change) -> bool:
        if change.storage != storage:
            return False
        if namespace and change.object["metadata"].get("namespace", "") != namespace:
            return False
        return selects(change.object) or (change.before is not None and selects(change.before))

    return mine


def _start(call: Call, selects: Callable[[Object], bool]) -> list[tuple[str, Object]]:
    """Return what a watch begins with: all objects, or the changes since its resourceVersion."""
    store, resource = call.cluster.store, call.resource
    version = call.query.get("resourceVersion", "")
    initial = call.query.get("sendInitialEvents") == "true"
    if initial or version in {"", "0"}:
        held = store.list(resource.storage, call.namespace)
        events = [("ADDED", presented(resource, obj)) for obj in held if selects(obj)]
        if initial:
            events.append(("BOOKMARK", _bookmark(call, {"k8s.io/initial-events-end": "true"})))
        return events
    mine = _relevance(call, selects)
    since = store.since(_number(version))
    return [event for c in since if mine(c) for event in _events(call, c, selects)]


def _events(
    call: Call, change: Change, selects: Callable[[Object], bool]
) -> list[tuple[str, Object]]:
    now = change.type != "DELETED" and selects(change.object)
    before = change.before is not None and selects(change.before)
    if now:
        kind = "MODIFIED" if before else "ADDED"
        return [(kind, presented(call.resource, change.object))]
    if not before or change.before is None:
        return []
    meta = {
        **change.before["metadata"],
        "resourceVersion": change.object["metadata"]["resourceVersion"],
    }
    return [("DELETED", presented(call.resource, {**change.before, "metadata": meta}))]


async def _live(
    call: Call, queue: asyncio.Queue[Change], selects: Callable[[Object], bool]
) -> AsyncIterator[tuple[str, Object]]:
    loop = asyncio.get_running_loop()
    seconds = _number(call.query.get("timeoutSeconds", "")) or 3600
    end = loop.time() + min(seconds, 7200)
    bookmarks = call.query.get("allowWatchBookmarks") == "true"
    while (left := end - loop.time()) > 0:
        if queue.qsize() > _MOST_WAITING:
            return
        try:
            change = await asyncio.wait_for(queue.get(), min(left, BOOKMARK_SECONDS))
        except TimeoutError:
            if bookmarks:
                yield "BOOKMARK", _bookmark(call)
            continue
        for event in _events(call, change, selects):
            yield event


def _bookmark(call: Call, annotations: dict[str, str] | None = None) -> Object:
    meta: Object = {"resourceVersion": str(call.cluster.store.revision), "creationTimestamp": None}
    if annotations:
        meta["annotations"] = annotations
    resource = call.resource
    return {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": meta}


async def delete_collection(
    call: Call, options: Object, delete: Callable[[Call, Object], Any]
) -> list[Object]:
    """Delete every selected object, each as if alone, and return their last states."""
    made = []
    for obj in list_page(call.on(query={**call.query, "limit": "", "continue": ""})).items:
        meta = obj["metadata"]
        one = call.on(name=meta["name"], namespace=meta.get("namespace", ""))
        try:
            made.append((await delete(one, options))[0])
        except ApiError as error:
            if error.code != 404:
                raise
    return made
