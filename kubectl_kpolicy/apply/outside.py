"""A cluster and registries behind `apply` and `test`: what policies ask of them, and the objects that policies look at.

Imported only where `--cluster` or `--registry` was given: it brings the HTTP library along. Commands are written without
asyncio; one runner here turns their questions into calls.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

from controllers.kube import connect
from controllers.kube.discovery import Discovery
from controllers.kube.errors import KubeError
from controllers.kube.kinds import NAMESPACES, Kind
from controllers.kube.store import trimmed
from controllers.lookups.assembling import for_person
from engine.errors import EngineError
from kubectl_kpolicy.output.misuse import Misuse

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Coroutine, Mapping

    from controllers.kube import Access
    from controllers.kube.client import Client
    from controllers.lookups.answering import Lookups
    from engine.evaluate import Answer, Lookup
    from engine.model import Object

    Take = Callable[[str], bool]

T = TypeVar("T")
_AT_ONCE = 8
_LEFT_OUT = frozenset({"events", "leases", "componentstatuses", "bindings"})


class Outside:
    """Asks on behalf of one run of a command, a cluster where there is access to one; `problems` says what could not be listed. Close it at the end."""

    def __init__(self, access: Access | None, *, registry: bool = False) -> None:
        self.problems: list[EngineError] = []
        self._runner = asyncio.Runner()
        self._client: Client | None = None
        self._discovery: Discovery | None = None
        try:
            self._lookups = self._run(self._opened(access, registry=registry))
        except EngineError:
            self._runner.close()
            raise

    def close(self) -> None:
        """Release connections and end the event loop."""
        try:
            self._run(self._closed())
        finally:
            self._runner.close()

    def resolve(self, lookups: Collection[Lookup]) -> Mapping[Lookup, Answer]:
        """Return an answer to each question; absent ones where neither flag covers it."""
        return self._run(self._lookups.resolve(lookups))

    def objects(
        self,
        is_wanted: Take,
        *,
        namespace: str = "",
        names: Collection[str] = (),
        wide: bool = True,
    ) -> list[Object]:
        """Return the objects of the cluster whose kinds are wanted: of one namespace or all, of some names or all.

        `wide` includes objects that live in no namespace. Kinds that cannot be listed stand in `problems`.
        """
        kinds = [
            kind for kind in self._kinds() if is_wanted(kind.kind) and (kind.namespaced or wide)
        ]
        found = self._run(self._listed(kinds, namespace))
        return [obj for obj in found if not names or obj["metadata"].get("name") in names]

    def of_kinds(self, groups: Collection[str], names: Collection[str]) -> list[Object]:
        """Return the objects of these kinds in these groups; kinds that cannot be listed stand in `problems`."""
        kinds = [kind for kind in self._kinds() if kind.group in groups and kind.kind in names]
        return self._run(self._listed(kinds, ""))

    def named(self, text: str, namespace: str) -> Object:
        """Return the object that `KIND/NAME` means; raises Misuse, EngineError for an unknown kind, and KubeError."""
        kind, slash, name = text.partition("/")
        if not (slash and kind and name):
            raise Misuse(f"`{text}` names no object", help="write KIND/NAME, such as deploy/web")
        found = None if self._discovery is None else self._discovery.named(kind)
        if found is None or self._client is None:
            raise EngineError(f"the server has no kind `{kind}`", help="kubectl api-resources")
        place = namespace if found.namespaced else ""
        return trimmed(self._run(self._client.get(found, name, place)))

    def namespaces(self) -> list[Object]:
        """Return all Namespaces, whose labels policies select by; raises KubeError."""
        client = self._client
        return [] if client is None else list(self._run(client.list_all(NAMESPACES)).items)

    def _kinds(self) -> list[Kind]:
        if self._discovery is None:
            return []
        return [
            kind
            for kind in self._discovery.matching("*", "*", "*", preferred=True)
            if "list" in kind.verbs and kind.plural not in _LEFT_OUT
        ]

    async def _listed(self, kinds: list[Kind], namespace: str) -> list[Object]:
        room = asyncio.Semaphore(_AT_ONCE)

        async def one(kind: Kind) -> list[Object]:
            assert self._client is not None
            place = namespace if kind.namespaced else ""
            async with room:
                try:
                    page = await self._client.list_all(kind, place)
                except KubeError as error:
                    self.problems.append(error.reworded(f"cannot list {kind}: {error.message}"))
                    return []
            return [trimmed(obj) for obj in page.items]

        parts = await asyncio.gather(*map(one, kinds))
        return [obj for part in parts for obj in part]

    async def _opened(self, access: Access | None, *, registry: bool) -> Lookups:
        if access is not None:
            self._client = connect(access)
            self._discovery = Discovery(self._client)
            try:
                await self._discovery.refresh()
            except EngineError:
                await self._client.close()
                raise
        return for_person(client=self._client, discovery=self._discovery, registry=registry)

    async def _closed(self) -> None:
        await self._lookups.close()
        if self._client is not None:
            await self._client.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)
