"""An API server of memory that does to webhooks what real ones do: asks again, asks in parallel, stores late, loses answers.

The facts are those of `docs/semantics.md`, by their numbers. Objects are kept by `FakeClient`; what is added is the
admission chain, with its repetitions drawn by chance. It evaluates no rights and none of its own admission policies: people here
write only what those let them write.
"""

from __future__ import annotations

import asyncio
import uuid
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from controllers.kube import AlreadyExists, Conflict, Forbidden, Kind, KubeError, NotFound
from controllers.kube.errors import Unreachable
from controllers.kube.kinds import CONFIG_MAPS, GRANT_POLICIES, GRANTS, PODS, POLICY_EXCEPTIONS
from tests.controllers.kube.fake import FakeClient
from tests.controllers.kube.memory import copied, merged

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from .replica import Replica

PATHS = {
    PODS.plural: "validate/fail",
    CONFIG_MAPS.plural: "validate/fail",
    GRANTS.plural: "grantvalidate",
    GRANT_POLICIES.plural: "grantvalidate",
    POLICY_EXCEPTIONS.plural: "exceptionvalidate",
}
_GENERATED = 8


@dataclass(slots=True)
class Mood:
    """How likely the server does what it may do."""

    sibling: float = 0.0
    conflict: float = 0.0
    stale: float = 0.0
    again: float = 0.0
    twice: float = 0.0
    late: float = 0.0
    collision: float = 0.0


class ApiServer:
    """The server. `person` gives the connection of somebody, `own` that of our accounts; `replicas` answer its webhooks."""

    def __init__(self, chance: random.Random, clock: Any, kinds: tuple[Kind, ...]) -> None:
        self.chance = chance
        self.etcd = FakeClient(kinds=kinds, clock=clock)
        self.etcd.reviews["SubjectAccessReview"] = lambda spec: {"allowed": _may(spec)}
        self.etcd.reviews["SelfSubjectReview"] = lambda _: {"userInfo": {}}
        self.mood = Mood()
        self.replicas: list[Replica] = []
        self.witness: list[tuple[str, str]] = []
        self._late: set[asyncio.Task[None]] = set()

    def person(self, user: str, groups: tuple[str, ...] = ()) -> Connection:
        return Connection(self, user, (*groups, "system:authenticated"))

    def own(self, user: str) -> Connection:
        return Connection(self, user, ("system:serviceaccounts", "system:authenticated"))

    async def admit(
        self, kind: Kind, operation: str, obj: Any, old: Any, who: Connection, *, dry_run: bool
    ) -> None:
        """Ask all webhooks at once; every one is heard out (A2). Raises Forbidden, and KubeError where ours is not there."""
        path = PATHS.get(kind.plural)
        if path is None or (kind == CONFIG_MAPS and obj["metadata"]["namespace"] == "kyverno"):
            return
        asked = [self._ours(path, _review(kind, operation, obj, old, who, dry_run=dry_run))]
        if kind.plural in ("pods", "configmaps"):
            asked.append(self._sibling())
        self.chance.shuffle(asked)
        said = await asyncio.gather(*asked, return_exceptions=True)
        for one in said:
            if isinstance(one, BaseException):
                raise one

    async def _ours(self, path: str, sent: dict[str, Any]) -> None:
        body = orjson.dumps(sent)
        if self.chance.random() < self.mood.twice:
            # the connection was lost after the request was sent, and the transport sends the same again (A8)
            with suppress(ConnectionError):
                lost = asyncio.ensure_future(self._picked().review(path, body))
                lost.add_done_callback(lambda one: None if one.cancelled() else one.exception())
                await asyncio.sleep(self.chance.uniform(0.0, 0.02))
        try:
            answer = orjson.loads(await self._picked().review(path, body))["response"]
        except ConnectionError as error:
            raise KubeError(f"failed calling webhook: {error}", status=500) from None
        for value in (answer.get("auditAnnotations") or {}).items():
            self.witness.append(value)
        if not answer["allowed"]:
            text = (answer.get("status") or {}).get("message", "")
            raise Forbidden(f"admission webhook denied the request: {text}", status=403)

    def _picked(self) -> Replica:
        return self.chance.choice(self.replicas)

    async def _sibling(self) -> None:
        """Another webhook, which may refuse after ours has agreed."""
        refuses = self.chance.random() < self.mood.sibling
        await asyncio.sleep(self.chance.uniform(0.0, 0.05))
        if refuses:
            raise Forbidden("another webhook denied the request", status=403)

    def later(self, work: Callable[[], Any]) -> None:
        """Store something after whoever asked was told that it failed (A9)."""

        async def store() -> None:
            await asyncio.sleep(self.chance.uniform(0.1, 20.0))
            with suppress(KubeError):
                work()

        task = asyncio.create_task(store())
        self._late.add(task)
        task.add_done_callback(self._late.discard)

    def disturb(self, kind: Kind, obj: Any) -> None:
        """Let somebody else write an object between the reviews and the storage."""
        with suppress(NotFound):
            table = self.etcd._table(kind)
            key = (obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
            found = table.objects.get(key)
            if found is not None:
                made = copied(found)
                labels = made["metadata"].setdefault("labels", {})
                labels["proxy"] = str(int(labels.get("proxy", "0")) + 1)
                self.etcd.put(made)

    def chances(self, likely: float) -> bool:
        return self.chance.random() < likely


class Connection:
    """Somebody's connection; see `controllers.kube.Client`. Writes go through admission."""

    def __init__(self, server: ApiServer, user: str, groups: tuple[str, ...]) -> None:
        self._server, self.user, self.groups = server, user, groups

    def __getattr__(self, name: str) -> Any:
        return getattr(self._server.etcd, name)

    async def close(self) -> None:
        """End nothing: other connections go on."""

    async def create(
        self, kind: Kind, obj: Any, *, dry_run: bool = False, subresource: str = ""
    ) -> Any:
        server = self._server
        if subresource or kind.plural not in PATHS:
            return await server.etcd.create(kind, obj, dry_run=dry_run, subresource=subresource)
        for _ in range(_GENERATED):
            made = {"apiVersion": kind.api_version, "kind": kind.kind, **copied(obj)}
            metadata = made["metadata"]
            if not metadata.get("name"):
                metadata["name"] = f"{metadata['generateName']}{server.chance.randrange(16**5):05x}"
            metadata["uid"] = _uid(server.chance)  # before validating admission (A7)
            metadata["creationTimestamp"] = server.etcd._memory.stamp()
            for _ in range(2 if server.chances(server.mood.again) else 1):
                await server.admit(kind, "CREATE", made, None, self, dry_run=dry_run)
            drawn = bool(metadata.get("generateName"))
            if drawn and server.chances(server.mood.collision):
                continue  # the name is taken, another one is drawn and everything asked again (A6)
            if not dry_run and server.chances(server.mood.late):
                server.later(lambda made=made: _created(server, kind, made))
                raise Unreachable("the request timed out")
            return _created(server, kind, made, dry_run=dry_run)
        raise AlreadyExists("no name was free", status=409)

    async def update(
        self, kind: Kind, obj: Any, *, subresource: str = "", dry_run: bool = False
    ) -> Any:
        if subresource or kind.plural not in PATHS:
            return await self._server.etcd.update(kind, obj, subresource=subresource, dry_run=dry_run)  # fmt: skip
        metadata = obj["metadata"]
        wanted = metadata.get("resourceVersion")

        def change(old: Any) -> Any:
            if wanted and wanted != old["metadata"]["resourceVersion"]:
                raise Conflict("the object has been modified", status=409)
            return {**copied(obj), "metadata": {**copied(obj)["metadata"], "uid": old["metadata"]["uid"]}}  # fmt: skip

        return await self._changed(kind, metadata["name"], metadata.get("namespace", ""), change, dry_run)  # fmt: skip

    async def patch(
        self,
        kind: Kind,
        name: str,
        namespace: str,
        patch: Any,
        *,
        subresource: str = "",
        dry_run: bool = False,
        **options: Any,
    ) -> Any:
        if subresource or kind.plural not in PATHS:
            return await self._server.etcd.patch(kind, name, namespace, patch, subresource=subresource, dry_run=dry_run, **options)  # fmt: skip

        def change(old: Any) -> Any:
            return merged(copied(old), copied(patch))

        return await self._changed(kind, name, namespace, change, dry_run)

    async def _changed(
        self, kind: Kind, name: str, namespace: str, change: Callable[[Any], Any], dry_run: bool
    ) -> Any:
        """Ask within the storage's own retries, from what may be an older version at first (A3, A4, A5)."""
        server, stale = self._server, server_stale(self._server, kind, name, namespace)
        for _ in range(20):
            old = stale or copied(server.etcd._memory.one(server.etcd._table(kind), name, namespace))  # fmt: skip
            made = change(old)
            try:
                for _ in range(2 if server.chances(server.mood.again) else 1):
                    await server.admit(kind, "UPDATE", made, old, self, dry_run=dry_run)
            except Forbidden:
                if stale is None:
                    raise
                stale = None
                continue
            if server.chances(server.mood.conflict):
                server.disturb(kind, made)
            now = server.etcd._memory.one(server.etcd._table(kind), name, namespace)
            stale = None
            if now["metadata"]["resourceVersion"] != old["metadata"]["resourceVersion"]:
                continue
            made["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
            if not dry_run and server.chances(server.mood.late):
                await server.etcd.update(kind, made)
                raise Unreachable("the request timed out")
            return await server.etcd.update(kind, made, dry_run=dry_run)
        raise Conflict("the object changes all the time", status=409)


def server_stale(server: ApiServer, kind: Kind, name: str, namespace: str) -> Any:
    """Return an earlier version of an object, where the server's cache happens to have one still."""
    table = server.etcd._table(kind)
    old = [before for _, event, before in table.events[-30:] if before and event.object["metadata"]["name"] == name and event.object["metadata"].get("namespace", "") == namespace and event.type == "MODIFIED"]  # fmt: skip
    current = table.objects.get((namespace, name))
    if not old or current is None or not server.chances(server.mood.stale):
        return None
    return copied(old[-1]) if old[-1]["metadata"]["uid"] == current["metadata"]["uid"] else None


def _created(server: ApiServer, kind: Kind, made: Any, *, dry_run: bool = False) -> Any:
    table = server.etcd._table(kind)
    key = (made["metadata"].get("namespace", ""), made["metadata"]["name"])
    if key in table.objects:
        raise AlreadyExists(f"{kind} {key[1]} already exists", status=409, reason="AlreadyExists")
    return server.etcd._memory.store(table, copied(made), None, dry_run=dry_run)


def _review(
    kind: Kind, operation: str, obj: Any, old: Any, who: Connection, *, dry_run: bool
) -> dict[str, Any]:
    request = {
        "uid": _uid(who._server.chance),  # of this call alone (A1)
        "kind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
        "resource": {"group": kind.group, "version": kind.version, "resource": kind.plural},
        "name": obj["metadata"]["name"],
        "namespace": obj["metadata"].get("namespace", ""),
        "operation": operation,
        "userInfo": {"username": who.user, "groups": list(who.groups)},
        "object": obj,
        "oldObject": old,
        "dryRun": dry_run,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def _uid(chance: random.Random) -> str:
    return str(uuid.UUID(int=chance.getrandbits(128)))


def _may(spec: Any) -> bool:
    """Let people of the group `people` redeem, and our own accounts everything."""
    groups = spec.get("groups") or ()
    return "people" in groups or str(spec.get("user") or "").startswith("system:serviceaccount:kyverno")  # fmt: skip
