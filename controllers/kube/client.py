"""The one small interface to an API server: raw dicts in, raw dicts out.

Everything in the cluster parts and in the plugin that needs a server takes a `Client`. `http.HttpClient` speaks to real
ones; tests have one of memory, so that nobody patches anything.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from .errors import KubeError, NotFound

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

    from engine.model import Json, Object

    from .kinds import Kind

T = TypeVar("T")

PAGE = 500
"""Objects asked for at once: what kubectl asks for, and what a server can cut without strain."""

MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"


@dataclass(frozen=True, slots=True)
class ListPage:
    """Objects of one list answer; `resume` is the token for the next page, empty on the last.

    `sorted_by` is the order that the server says it answered in, empty for that of names.
    """

    items: Sequence[Object]
    resource_version: str = ""
    resume: str = ""
    remaining: int = 0
    sorted_by: str = ""


@dataclass(frozen=True, slots=True)
class Event:
    """One watch event: ADDED, MODIFIED, DELETED with the object, or BOOKMARK with only a resource version."""

    type: str
    object: Object


class Client(Protocol):
    """What can be asked of an API server. Every method may raise KubeError and below, and nothing else."""

    async def get(
        self, kind: Kind, name: str, namespace: str = "", *, subresource: str = ""
    ) -> Object:
        """Return one object; raises NotFound."""

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
        """Return one page of objects, of all namespaces when none is given; raises Gone for an old `resume` token.

        `sort_by` asks a report store for the first page of an order, `only` for what there is at some places (namespace, name); other
        servers pass over both.
        """

    async def list_all(
        self,
        kind: Kind,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        metadata_only: bool = False,
    ) -> ListPage:
        """Return all objects, fetched page by page; raises Gone when they changed too much meanwhile."""
        items: list[Object] = []
        resume = ""
        while True:
            page = await self.list(
                kind,
                namespace,
                label_selector=label_selector,
                field_selector=field_selector,
                limit=PAGE,
                resume=resume,
                metadata_only=metadata_only,
            )
            items.extend(page.items)
            resume = page.resume
            if not resume:
                return ListPage(items, page.resource_version)

    def watch(
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
        """Yield events after `resource_version`, bookmarks included, until the server ends the stream.

        Raises Gone when the version is too old, Unreachable when the connection stays silent beyond the time-out.
        """

    async def create(
        self, kind: Kind, obj: Object, *, dry_run: bool = False, subresource: str = ""
    ) -> Object:
        """Create an object in the namespace it names and return it as stored; raises AlreadyExists, Invalid.

        With a subresource (`token`, `eviction`) the object's own name says whose.
        """

    async def update(
        self, kind: Kind, obj: Object, *, subresource: str = "", dry_run: bool = False
    ) -> Object:
        """Replace an object; raises Conflict when its resourceVersion is not the stored one."""

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
        """Change an object by a merge, JSON, strategic or apply patch; `force` is for apply patches only."""

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
        """Delete an object; with `uid` only that very one, otherwise Conflict; raises NotFound."""

    async def raw(
        self, method: str, path: str, body: Json = None, *, limit: int = 0, timeout: float = 0
    ) -> Json:
        """Call a path of the server, `/…?query`, and return the decoded answer.

        `limit` bounds the bytes of the answer, `timeout` the seconds; raises Invalid for paths that lead elsewhere.
        """

    async def review(self, kind: Kind, spec: Mapping[str, Any], namespace: str = "") -> Object:
        """Create a review (SubjectAccessReview, TokenReview, …) and return its status."""

    async def close(self) -> None:
        """Release connections; the client cannot be used afterwards."""


async def find(client: Client, kind: Kind, name: str, namespace: str = "") -> Object | None:
    """Return one object, None where there is none; raises KubeError."""
    with suppress(NotFound):
        return await client.get(kind, name, namespace)
    return None


async def retried(tries: int, work: Callable[[], Awaitable[T]], *errors: type[KubeError]) -> T:
    """Return what work gives that is done again after one of these errors; raises what the last try raises."""
    for _ in range(tries - 1):
        with suppress(*errors):
            return await work()
    return await work()
