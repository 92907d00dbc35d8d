"""Where proofs play: a server with the engine's replicas before it, people who ask, and reviews posted past the API server."""

from __future__ import annotations

import asyncio
import json
import re
import ssl
import uuid
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import aiohttp

from controllers.kube import connect, load_access
from controllers.kube.access import Impersonation
from tests.e2e import engine
from tests.e2e.scenario import ScenarioError
from tests.e2e.server.balancer import balanced
from tests.e2e.server.processes import free_ports
from tests.e2e.tiers import REAL

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from controllers.kube import Client
    from tests.e2e.server.processes import Process
    from tests.e2e.tiers import Tier

    Say = Callable[[str], None]

CODE = re.compile(r"(?:[0-9A-Z]{4}-){4}[0-9A-Z]{4}")
PEOPLE = "people"
REFUSED = "the code is not accepted"
_FURNITURE = """
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: no-host, annotations: {pod-policies.kyverno.io/autogen-controllers: none}}
spec:
  background: false
  rules:
  - name: host-pid
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate: {failureAction: Enforce, message: no host PID, pattern: {spec: {"=(hostPID)": false}}}
---
apiVersion: kpolicy.io/v1alpha1
kind: GrantPolicy
metadata: {name: default}
spec: {maxDuration: 4h, approvers: [{users: [bob]}], codes: {mode: acknowledge, duration: 1h}}
---
apiVersion: v1
kind: Namespace
metadata: {name: other}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: people-edit}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: people}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: people-redeem}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "kpolicy:codes:redeem"}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: people}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: bob-issues}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "kpolicy:codes:issue"}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: bob}]
"""
_RIGHTS = """
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: own-kinds}
rules:
- {apiGroups: [kpolicy.io], resources: ["*"], verbs: ["*"]}
- {apiGroups: [kyverno.io], resources: [policyexceptions], verbs: [create, patch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: own-kinds}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: own-kinds}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: Group, name: people}
- {apiGroup: rbac.authorization.k8s.io, kind: Group, name: "system:authenticated"}
"""


class Broken(ScenarioError):  # noqa: N818 - it names the verdict
    """A promise does not hold; the text says which and what was seen."""


def hold(holds: object, promise: str, seen: object = "") -> None:
    """Raise Broken where a promise does not hold."""
    if not holds:
        raise Broken(f"{promise}; seen: {seen}" if seen != "" else promise)


@dataclass(slots=True)
class Stage:
    """A server and the replicas that its webhooks point to; `led_to` are the ports that new connections are led to."""

    tier: Tier
    ports: list[int]
    led_to: list[int]
    address: str
    flags: tuple[str, ...] = ()
    replicas: dict[int, Process] = field(default_factory=dict)
    metrics: list[int] = field(default_factory=list)

    def start(self, number: int, *flags: str) -> None:
        """Start a replica and wait until it is ready."""
        self.replicas[number] = engine.start(
            self.tier,
            f"replica-{number}",
            f"--metrics-port={self.metrics[number]}",
            *self.flags,
            *flags,
            port=self.ports[number],
            address=self.address,
        )
        if self.ports[number] not in self.led_to:
            self.led_to.append(self.ports[number])

    def end(self, number: int) -> None:
        """Tell a replica to end and wait for it; as with a Service, new connections are led to the others from then on."""
        self.led_to.remove(self.ports[number])
        self.replicas[number].stop(60)

    def stop(self) -> None:
        """Stop every replica."""
        for process in self.replicas.values():
            process.stop()

    def client(self, user: str = "", *groups: str) -> Client:
        """Return a client that asks as a user, as the administrator without one; close it."""
        access = load_access(str(self.tier.kubeconfig))
        if user:
            access = replace(access, impersonate=Impersonation(user, (PEOPLE, *groups, "system:authenticated")))  # fmt: skip
        return connect(access)


@contextmanager
def staged(tier: Tier, *flags: str, replicas: int = 2, roles: str = "") -> Iterator[Stage]:
    """Install what is shipped, run replicas behind one address, and furnish the cluster."""
    engine.install(tier)
    with ExitStack() as stack:
        ports, metrics = free_ports(replicas), free_ports(replicas)
        led_to = list(ports)
        address = f"https://127.0.0.1:{stack.enter_context(balanced(led_to))}"
        stage = Stage(tier, ports, led_to, address, flags, metrics=metrics)
        stack.callback(stage.stop)
        for number in range(replicas):
            stage.start(number, *([f"--roles={roles}"] if roles else []))
        furnish(tier)
        yield stage


def furnish(tier: Tier) -> None:
    """Apply the policy that refuses, the limits of codes and grants, and people's rights; wait until it refuses."""
    tier.kubectl("apply", "-f", "-", given=_FURNITURE)
    tier.kubectl("wait", "--for=condition=Ready", "clusterpolicy/no-host", "--timeout=60s")


def spaces(tier: Tier, count: int) -> list[str]:
    """Make namespaces and wait until Pods can be made there: one alone holds a hundred codes that can still be used."""
    names = [f"space-{number}" for number in range(count)]
    items = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in names]  # fmt: skip
    tier.kubectl("apply", "-f", "-", given=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))  # fmt: skip
    for name in names if tier.name == REAL else ():
        tier.kubectl("wait", "--for=create", "serviceaccount/default", "-n", name, "--timeout=60s")
    return names


def furniture_of_rights(tier: Tier) -> None:
    """Let people write grants, and robots, too, so that what refuses them is no lack of rights."""
    tier.kubectl("apply", "-f", "-", given=_RIGHTS)


def pod(name: str, *codes: str, namespace: str = "default", **spec: Any) -> dict[str, Any]:
    """Return a Pod that the policy refuses, carrying codes."""
    annotations = {"annotations": {"kpolicy.io/code": ",".join(codes)}} if codes else {}
    named = {"generateName": name} if name.endswith("-") else {"name": name}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**named, "namespace": namespace, **annotations},
        "spec": {"hostPID": True, "containers": [{"name": "c", "image": "busybox"}], **spec},
    }


def review(obj: dict[str, Any], user: str, **fields: Any) -> dict[str, Any]:
    """Return the AdmissionReview that an API server sends when a person creates a Pod."""
    metadata = {"uid": str(uuid.uuid4()), "creationTimestamp": "2026-01-01T00:00:00Z", **obj["metadata"]}  # fmt: skip
    request = {
        "uid": str(uuid.uuid4()),
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "name": metadata.get("name", ""),
        "namespace": metadata["namespace"],
        "operation": "CREATE",
        "userInfo": {"username": user, "groups": [PEOPLE, "system:authenticated"]},
        "object": {**obj, "metadata": metadata},
        "oldObject": None,
        "dryRun": False,
        **fields,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


class Poster:
    """Posts reviews to replicas directly, as whoever holds a certificate."""

    def __init__(self, stage: Stage, session: aiohttp.ClientSession) -> None:
        self._stage, self._session = stage, session

    async def post(self, replica: int, sent: dict[str, Any], path: str = "validate/fail") -> tuple[int, str]:  # fmt: skip
        """Return status and body of the answer."""
        url = f"https://127.0.0.1:{self._stage.ports[replica]}/{path}?timeout=30s"
        async with self._session.post(url, data=json.dumps(sent)) as answer:
            return answer.status, await answer.text()

    async def ask(self, replica: int, sent: dict[str, Any]) -> dict[str, Any]:
        """Return the response to a review."""
        status, text = await self.post(replica, sent)
        hold(status == 200, "a review is answered", f"{status} {text}")
        found: dict[str, Any] = json.loads(text)["response"]
        return found

    async def offered(self, replica: int, obj: dict[str, Any], user: str) -> str:
        """Return the code that the denial of an object offers to a person."""
        answer = await self.ask(replica, review(obj, user))
        found = CODE.search(answer.get("status", {}).get("message", ""))
        hold(found, "a denial offers a code", answer)
        return found[0] if found else ""


@asynccontextmanager
async def posting(stage: Stage, certificate: tuple[str, str] | None) -> AsyncIterator[Poster]:
    """Yield a poster that shows a certificate (paths of certificate and key), or none."""
    context = ssl.create_default_context()
    context.check_hostname = False
    # who is asked is a port of ours; whether its own certificate is good is not what is proved here
    context.verify_mode = ssl.CERT_NONE
    if certificate:
        context.load_cert_chain(*certificate)
    connector = aiohttp.TCPConnector(ssl=context, limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:
        yield Poster(stage, session)


async def until(ask: Callable[[], Any], seconds: float, what: str) -> Any:
    """Return the first answer that is true; raises Broken after so many seconds."""
    end = asyncio.get_running_loop().time() + seconds
    while not (answer := await ask()):
        hold(asyncio.get_running_loop().time() < end, f"not within {seconds:.0f} s: {what}")
        await asyncio.sleep(0.2)
    return answer


async def tried(client: Client, kind: Any, obj: dict[str, Any], **options: Any) -> str:
    """Create an object; return why it was refused, nothing where it was not."""
    from controllers.kube import KubeError

    try:
        await client.create(kind, obj, **options)
    except KubeError as error:
        return error.message or "refused"
    return ""


async def code_for(client: Client, obj: dict[str, Any]) -> str:
    """Return the code that the API server's refusal of an object offers."""
    from controllers.kube.kinds import PODS

    said = await tried(client, PODS, obj, dry_run=True)
    found = CODE.search(said)
    hold(found, "a denial offers a code", said)
    return found[0] if found else ""
