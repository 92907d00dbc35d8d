"""Makes a sandbox look as a cluster does on a working day: people are denied, ask, agree, use codes, postpone timers.

Everything is done through the API as the person who does it, with the code of the commands, so that the audit trail, the
reports and the Events are what the engine writes and nothing is made up.
"""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import AsyncExitStack, aclosing, suppress
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from controllers.kube import Discovery, connect, load_access
from controllers.kube.clock import ServerClock
from controllers.kube.errors import AlreadyExists, KubeError
from controllers.kube.kinds import (
    CLUSTER_POLICIES,
    CLUSTER_ROLE_BINDINGS,
    CODE_USES,
    GRANTS,
    NAMESPACES,
    POLICY_REPORTS,
)
from engine.errors import EngineError
from engine.grants.circumstances import state_of
from engine.lang.yaml import load_all
from kubectl_kpolicy.actions.catalog import action_of
from kubectl_kpolicy.actions.executor import ActionExecutor
from kubectl_kpolicy.cluster.cleanup import LISTING as CLEANUP
from kubectl_kpolicy.cluster.fetching import fetch
from kubectl_kpolicy.grants import decisions, requests
from kubectl_kpolicy.output.time_format import absolute
from kubectl_kpolicy.session.identity import Identity, who_am_i

from . import fixtures
from .fixtures import ALICE, BOB, CAROL

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from pathlib import Path

    from controllers.kube import Client
    from controllers.kube.client import Event
    from controllers.kube.kinds import Kind
    from engine.model import Object

PATIENCE = 60.0
_RBAC = "rbac.authorization.k8s.io"


def furnish(folder: Path) -> None:
    """Bring people, objects, requests and codes into the sandbox of a folder; raises EngineError."""
    asyncio.run(_furnish(folder))


def kubeconfig_of(folder: Path, name: str) -> Path:
    """Return where the kubeconfig of a person lies, once the sandbox is furnished."""
    return folder / f"kubeconfig-{name}"


async def _furnish(folder: Path) -> None:
    async with AsyncExitStack() as stack:
        clock = ServerClock()
        admin = connect(load_access(str(folder / "kubeconfig")), clock=clock)
        stack.push_async_callback(admin.close)
        clients: dict[str, Client] = {}
        for person in fixtures.PEOPLE:
            path = await _kubeconfig(admin, folder, person.name)
            client = clients[person.name] = connect(load_access(str(path)), clock=clock)
            stack.push_async_callback(client.close)
        try:
            async with asyncio.timeout(PATIENCE):
                await _Day(admin, clients, clock).pass_by()
        except TimeoutError as error:
            raise EngineError(f"the engine did nothing for {PATIENCE:.0f} s", help=f"see `{folder / 'engine.log'}`") from error  # fmt: skip


async def _kubeconfig(admin: Client, folder: Path, name: str) -> Path:
    """Write the kubeconfig of a person, for that person's eyes."""
    made = await admin.raw("POST", "/sandbox/users", {"name": name, "groups": []})
    config = json.loads((folder / "kubeconfig").read_text())
    config["users"] = [{"name": name, "user": {"token": made["token"]}}]
    config["contexts"][0]["context"]["user"] = name
    path = kubeconfig_of(folder, name)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w") as file:
        json.dump(config, file, indent=2)
    return path


class _Day:
    """What happens, in its order."""

    def __init__(self, admin: Client, clients: dict[str, Client], clock: ServerClock) -> None:
        self._admin, self._clients, self._clock = admin, clients, clock
        self._discovery = Discovery(admin)

    async def pass_by(self) -> None:
        await self._discovery.refresh()
        for name in fixtures.NAMESPACES:
            with suppress(AlreadyExists):
                await self._admin.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})  # fmt: skip
        await self._create(fixtures.ROLES)
        for person in fixtures.PEOPLE:
            for role in person.roles:
                await self._bind(person.name, role)
        await self._create(fixtures.WORKLOADS)
        await self._create(fixtures.LIMITS)
        await self._create(fixtures.POLICIES)
        await self._create(fixtures.TIMERS)
        await self._create(fixtures.EXCEPTIONS.replace("{in 9m}", absolute(self._clock.now() + timedelta(minutes=9))))  # fmt: skip
        await self._until(CLUSTER_POLICIES, _is_ready, 4)
        await self._be_denied()
        await self._ask()
        await self._use_codes()
        await self._mind_timers()
        await self._until(POLICY_REPORTS, lambda one: bool(one.get("results")), 6)

    async def _bind(self, name: str, role: str) -> None:
        binding = {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": f"demo-{name}-{role.replace(':', '-')}"},
            "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role},
            "subjects": [{"apiGroup": _RBAC, "kind": "User", "name": name}],
        }
        with suppress(AlreadyExists):
            await self._admin.create(CLUSTER_ROLE_BINDINGS, binding)

    async def _create(self, text: str) -> None:
        for document in load_all(text):
            obj: Any = document.value
            kind = self._discovery.find(obj["apiVersion"], obj["kind"])
            if kind is None:
                raise EngineError(f"the sandbox has no {obj['kind']}", help="start it with `sandbox up --engine`")  # fmt: skip
            with suppress(AlreadyExists):
                await self._admin.create(kind, obj)

    async def _until(self, kind: Kind, holds: Callable[[Object], bool], count: int) -> None:
        """Wait until so many objects of a kind are as wanted."""
        found: set[str] = set()
        watched = cast("AsyncGenerator[Event]", self._admin.watch(kind, ""))
        async with aclosing(watched) as events:
            async for event in events:
                metadata = event.object.get("metadata") or {}
                if event.type in ("ADDED", "MODIFIED") and holds(event.object):
                    found.add(f"{metadata.get('namespace')}/{metadata.get('name')}")
                if len(found) >= count:
                    return

    async def _be_denied(self) -> None:
        """Let people run into the policies, as they do before they ask."""
        for name, text, times in ((ALICE.name, fixtures.SHELL, 2), (CAROL.name, fixtures.INDEXER, 1)):  # fmt: skip
            for _ in range(times):
                await self._is_denied(name, text)

    async def _is_denied(self, name: str, text: str) -> str:
        """Return the text of a denial; until the engine is asked about new policies it may still pass."""
        obj: Any = load_all(text)[0].value
        kind = self._discovery.find(obj["apiVersion"], obj["kind"])
        assert kind is not None, "Pods there are everywhere"
        while True:
            try:
                await self._clients[name].create(kind, obj, dry_run=True)
            except KubeError as error:
                if "blocked" in error.message:
                    break
                raise
            await asyncio.sleep(0.05)
        try:
            await self._clients[name].create(kind, obj)
        except KubeError as error:
            return error.message
        raise EngineError(f"{obj['kind']} {obj['metadata']['name']} was to be denied")

    async def _ask(self) -> None:
        """Leave one request waiting, one granted for a while and one that was refused."""
        await self._request(CAROL.name, "run-as-nonroot", "non-root", "Pod/reindex", "search", "2h", "the index is rebuilt after yesterday's crash")  # fmt: skip
        granted = await self._request(ALICE.name, "team-label", "has-team", "Deployment/ledger", "payments", "50m", "ownership of the ledger moves this week")  # fmt: skip
        refused = await self._request(CAROL.name, "no-latest-tag", "pinned-tag", "Deployment/crawler", "search", "4h", "it has always been like this")  # fmt: skip
        me = await who_am_i(self._clients[BOB.name])
        for place, verdict, said in ((granted, "approve", "as agreed with both teams"), (refused, "deny", "pin the tag, it takes a minute")):  # fmt: skip
            await self._until(GRANTS, partial(_waits, place[1]), 1)
            await decisions.decide(self._clients[BOB.name], place, verdict, me, said)

    async def _request(
        self, name: str, policy: str, rule: str, target: str, namespace: str, length: str, reason: str
    ) -> tuple[str, str]:  # fmt: skip
        kind, _, object_name = target.partition("/")
        ask = requests.Ask(policy, (rule,), kind, object_name, namespace, length, reason)
        client = self._clients[name]
        made = await requests.hand_in(client, requests.manifest(ask, await who_am_i(client)))
        return namespace, made["metadata"]["name"]

    async def _use_codes(self) -> None:
        """Issue three codes as bob: one waits for alice, one she has used, one is void."""
        import secrets

        from engine.codes import issued_code
        from kubectl_kpolicy.codes import bringing, issuing

        bob = self._clients[BOB.name]
        codes = []
        for user, rest in ((ALICE.name, "trace-shell"), (ALICE.name, "trace-shell"), (CAROL.name, "reindex")):  # fmt: skip
            policy, rule, place = ("no-host-namespaces", "host-pid", "payments") if user == ALICE.name else ("run-as-nonroot", "non-root", "search")  # fmt: skip
            wanted = issuing.Wanted(user, policy, (rule,), "Pod", rest, place, "the trace of the night is needed")  # fmt: skip
            code = issued_code(secrets.token_bytes(32))
            ends = self._clock.now() + timedelta(minutes=25)
            made = await issuing.issue(bob, issuing.document(code, wanted, BOB.name, ends, "kyverno"), self._clock.now())  # fmt: skip
            codes.append((code, made["metadata"]["name"]))
        await issuing.void(bob, codes[2][1], "kyverno", BOB.name)
        obj: Any = load_all(fixtures.SHELL)[0].value
        await bringing.bring(
            self._clients[ALICE.name], bringing.carrying(obj, codes[0][0]), "payments"
        )
        await self._until(CODE_USES, lambda _: True, 1)

    async def _mind_timers(self) -> None:
        """Let bob postpone one timer and pause another."""
        client, me = self._clients[BOB.name], Identity(BOB.name)
        now = self._clock.now()
        world = await fetch(client, (*CLEANUP.needs, *CLEANUP.wants), now)
        doer = ActionExecutor(client, self._clock.now, me)
        for name, action, form in (
            ("old-imports", "cleanup-pause", {"reason": "the import of March is checked again"}),
            ("scratch", "cleanup-postpone", {"for": "3h", "reason": "still in use"}),
        ):
            rows = [row for row in CLEANUP.rows(world, now) if name in (row.text("name"), row.text("by").rpartition("/")[2])]  # fmt: skip
            for outcome in await doer.perform(action_of(action), rows, form):
                if not outcome.done:
                    raise EngineError(f"{action} of {outcome.row}: {outcome.text}")


def _waits(name: str, grant: Object) -> bool:
    return grant["metadata"]["name"] == name and state_of(grant) == "pending"


def _is_ready(policy: Object) -> bool:
    conditions = (policy.get("status") or {}).get("conditions") or ()
    return any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions)
