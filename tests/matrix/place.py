"""Where the matrix plays: a sandbox with everything that is shipped, a whole replica in the same process whose time can be moved."""

from __future__ import annotations

import asyncio
import time
import uuid
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

import aiohttp

from controllers.kube.clock import SystemClock
from controllers.lookups.registry.images import Images
from controllers.manifests.bundle import Choice, installed
from controllers.replica import Replica
from controllers.runtime.options import EACH, OWN, read_options
from controllers.starting import clock_of, connected
from engine.images import ImageData
from kpolicy_sandbox.call import service_account
from kpolicy_sandbox.pki import CALLER
from kpolicy_sandbox.server import Sandbox
from kubectl_kpolicy.session.expressions import EngineExpressions
from tests.controllers.sandbox.serving import Api
from tests.engine.images.test_image_verification import payload_of, signed
from tests.engine.manifests.private_sigstore import new_key, pem_of
from tests.matrix.actors import ANYBODY, CONTROL, FOREIGN, actors, rights_of
from tests.matrix.actors import OWN as OWN_NAMESPACE
from tests.matrix.effects import CANARY, GRANTED, Effect, effects

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from controllers.kube import Clock
    from kpolicy_sandbox.kinds import Resource
    from kpolicy_sandbox.store import Change
    from tests.matrix.actors import Actor

_KEY: Final = new_key()
_DIGEST: Final = "sha256:" + "ab" * 32
SIGNING_KEY: Final = pem_of(_KEY)
SIGNED_IMAGE: Final = "ghcr.io/acme/app:v1"
"""The one image that there is, signed with the key."""
_OURS: Final = Choice().namespace
_QUIET: Final = 0.6
_NOISE: Final = ("/events", "coordination.k8s.io/leases")
_QUICK: Final = ("--host=127.0.0.1", "--port=0", "--metrics-port=-1", "--server-url=auto", "--drain=50ms", "--workers=0", "--backgroundScan=false")  # fmt: skip
_CHANGE: Final = ["get", "list", "watch", "create", "update", "patch", "delete"]


class Place:
    """A sandbox and who speaks to it."""

    def __init__(self, sandbox: Sandbox, session: aiohttp.ClientSession) -> None:
        self.sandbox = sandbox
        self.store = sandbox.cluster.store
        self._apis = {one.name: Api(sandbox, session, one.user) for one in actors()}
        self._apis[ANYBODY.name].headers = {}
        self.session = session
        self.port = 0
        self.clock: Clock = SystemClock()
        self._asked: dict[tuple[str, ...], bool] = {}
        self._changed = time.monotonic()
        self.store.listen(self._note)

    def _note(self, change: Change) -> None:
        if change.storage not in _NOISE:
            self._changed = time.monotonic()

    async def quiet(self, seconds: float = _QUIET, most: float = 60.0) -> None:
        """Wait until nothing was written for a while."""
        self._changed, end = time.monotonic(), time.monotonic() + most
        while (left := self._changed + seconds - time.monotonic()) > 0 and time.monotonic() < end:
            await asyncio.sleep(left)

    def resource(self, effect: Effect) -> Resource:
        found = self.sandbox.cluster.registry.any_version(effect.group, effect.plural)
        assert found is not None, f"{effect} is not served"
        return found

    def namespaces_of(self, effect: Effect) -> tuple[str, ...]:
        """Return where effects on a kind are tried: the own and a foreign namespace, or the cluster; or where we keep our own."""
        if effect.variant == "ours":
            return (_OURS,)
        return (OWN_NAMESPACE, FOREIGN) if self.resource(effect).namespaced else ("",)

    def path(self, effect: Effect, namespace: str, name: str = "") -> str:
        kind = self.resource(effect)
        root = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
        within = f"/namespaces/{namespace}" if namespace else ""
        return f"{root}{within}/{kind.plural}" + (f"/{name}" if name else "")

    def object_of(self, effect: Effect, namespace: str, name: str) -> dict[str, Any]:
        """Return an object of a kind, with a canary that only who may read it knows."""
        kind = self.resource(effect)
        given = GRANTED if effect.variant == "granted" else {}
        metadata: dict[str, Any] = {"name": name, "annotations": {"canary": CANARY + name, **given}}
        if namespace:
            metadata["namespace"] = namespace
        return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **effect.body}  # fmt: skip

    def put(self, effect: Effect, namespace: str, name: str) -> None:
        """Have an object there, past everybody who could object."""
        made = self.object_of(effect, namespace, name)
        made["metadata"] |= {"uid": str(uuid.uuid4()), "creationTimestamp": self.sandbox.clock.stamp(), "generation": 1}  # fmt: skip
        self.store.put(self.resource(effect).storage, made)

    def seen(self, effect: Effect, namespace: str, name: str) -> dict[str, Any] | None:
        """Return an object as it is stored."""
        found = self.store.get(self.resource(effect).storage, namespace, name)
        return None if found is None or found["metadata"].get("deletionTimestamp") else found

    async def ask(self, actor: Actor, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, str]:  # fmt: skip
        """Ask the API server as somebody; returns status and message."""
        status, found = await self._apis[actor.name](method, path, body, **headers)
        return status, str((found or {}).get("message") or "")

    async def patch(self, actor: Actor, path: str, body: Any) -> tuple[int, str]:
        return await self.ask(actor, "PATCH", path, body, Content_Type="application/merge-patch+json")  # fmt: skip

    async def post(self, path: str, review: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Post a review to the webhook itself, as anybody can who reaches it; returns status and response."""
        url = f"https://127.0.0.1:{self.port}{path}?timeout=10s"
        async with self.session.post(url, json=review, ssl=False) as answer:
            if answer.content_type != "application/json" or answer.status != 200:
                return answer.status, {}
            return answer.status, (await answer.json()).get("response") or {}

    async def may(self, actor: Actor, verb: str, effect: Effect, namespace: str) -> bool:
        """Return whether somebody may do a thing himself, as the API server says; where rights are not all, as it does in a dry run."""
        key = (actor.name, verb, str(effect), namespace)
        if key not in self._asked:
            is_allowed = await self._has_right(actor, verb, effect, namespace)
            self._asked[key] = is_allowed and await self._succeeds(actor, verb, effect, namespace)
        return self._asked[key]

    async def _has_right(self, actor: Actor, verb: str, effect: Effect, namespace: str) -> bool:
        attributes = {"verb": verb, "group": effect.group, "resource": effect.plural, "namespace": namespace}  # fmt: skip
        spec = {"user": actor.user.name, "groups": list(actor.user.groups), "resourceAttributes": attributes}  # fmt: skip
        body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}  # fmt: skip
        answer = await self._apis[CONTROL.name].post("/apis/authorization.k8s.io/v1/subjectaccessreviews", body)  # fmt: skip
        return answer["status"]["allowed"] is True

    async def _succeeds(self, actor: Actor, verb: str, effect: Effect, namespace: str) -> bool:
        """Try a thing in a dry run: what rights are escalated by, and what guards say, is no matter of rights alone."""
        if verb == "get":
            return True
        query, twin = "?dryRun=All", f"twin-{uuid.uuid4().hex[:6]}"
        if verb == "create":
            answer = await self.ask(actor, "POST", self.path(effect, namespace) + query, self.object_of(effect, namespace, twin))  # fmt: skip
        else:
            self.put(effect, namespace, twin)
            path = self.path(effect, namespace, twin) + query
            answer = await (self.ask(actor, "DELETE", path) if verb == "delete" else self.patch(actor, path, {"metadata": {"annotations": {"twin": "x"}}}))  # fmt: skip
            self.store.remove(self.resource(effect).storage, namespace, twin)
        return answer[0] < 300

    async def later(self, **by: float) -> None:
        """Let time pass, and everything happen that was waiting for it."""
        self.sandbox.clock.advance(timedelta(**by))
        async with asyncio.timeout(30):
            # the controllers learn the time from the next answer that they get
            while self.clock.now() < self.sandbox.clock.now() - timedelta(seconds=5):
                await asyncio.sleep(0.1)
        await self.quiet(2.0)


@asynccontextmanager
async def place(folder: Path) -> AsyncIterator[Place]:
    """Yield a sandbox with everything installed, but nothing running yet."""
    async with (
        Sandbox.start(folder, expressions=EngineExpressions()) as sandbox,
        aiohttp.ClientSession() as session,
    ):
        made = Place(sandbox, session)
        for obj in _furniture():
            await _apply(made, obj)
        await made.quiet(0.3)
        yield made


@asynccontextmanager
async def running(at: Place, *flags: str) -> AsyncIterator[Replica]:
    """Run a replica as the shipped account; without flags it knows the API server by its certificate."""
    sandbox, names = at.sandbox, [one["metadata"]["name"] for one in installed(Choice()) if one["kind"] == "ServiceAccount"]  # fmt: skip
    own, each = ("kyverno-admission-controller", EACH), ("kyverno-background-controller", OWN)
    name, accounts = own if own[0] in names else each
    known = (f"--client-ca={sandbox.files.authority}", f"--client-name={CALLER}")
    kubeconfig = sandbox.kubeconfig_of(service_account("kyverno", name))
    options = read_options([f"--kubeconfig={kubeconfig}", f"--accounts={accounts}", *_QUICK, *(flags or known)], {})  # fmt: skip
    clock = clock_of(options)
    async with AsyncExitStack() as stack:
        stack.enter_context(patch.object(Images, "signatures", _signatures))
        client, all_accounts = await connected(options, clock)
        stack.push_async_callback(client.close)
        stack.push_async_callback(all_accounts.close)
        made = Replica(options, client, clock=clock, accounts=all_accounts)
        task = asyncio.create_task(made.run())
        try:
            async with asyncio.timeout(60):
                while not (made.is_leading or task.done()):
                    await asyncio.sleep(0.05)
            if task.done():
                task.result()
            at.port, at.clock = made.port, clock
            await at.quiet(1.0)
            yield made
        finally:
            made.stop.set()
            await asyncio.wait_for(asyncio.gather(task, return_exceptions=True), 60)


async def _signatures(images: Images, lookup: Any) -> ImageData:
    """Answer as a registry would that has the one image."""
    return ImageData(_DIGEST, (signed(_KEY, payload_of(_DIGEST)),))


async def _apply(at: Place, obj: dict[str, Any]) -> None:
    registry = at.sandbox.cluster.registry
    kind = registry.by_api_version(obj["apiVersion"], obj["kind"])
    assert kind is not None, obj["kind"]
    effect = Effect(kind.group, kind.plural)
    status, message = await at.ask(CONTROL, "POST", at.path(effect, obj["metadata"].get("namespace", "")), obj)  # fmt: skip
    assert status in (201, 409), f"{obj['kind']} {obj['metadata']['name']}: {message}"


def _furniture() -> Iterator[dict[str, Any]]:
    for obj in installed(Choice()):
        if obj["kind"] != "Deployment":
            yield obj
    for name in (OWN_NAMESPACE, FOREIGN):
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    yield from _widest_rights()
    for actor in actors():
        yield from rights_of(actor)


def _widest_rights() -> Iterator[dict[str, Any]]:
    """Yield all that a careless owner of a cluster could give the accounts that act for policies: whatever any of our accounts has."""
    by_group: dict[str, set[str]] = {}
    for one in effects():
        by_group.setdefault(one.group, set()).add(one.plural)
    rules: list[dict[str, Any]] = [
        {"apiGroups": [group], "resources": sorted(plurals), "verbs": _CHANGE}
        for group, plurals in by_group.items()
    ]
    rules.append({"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles", "clusterroles"], "verbs": ["bind", "escalate"]})  # fmt: skip
    for job in ("background", "cleanup"):
        labels = {f"rbac.kyverno.io/aggregate-to-{job}-controller": "true"}
        yield {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": f"matrix:{job}", "labels": labels}, "rules": rules}  # fmt: skip
