"""`python -m tests.bench.webhook_server KIND`: a webhook server on one core, for the benchmark to send reviews to.

`aiohttp` only decodes and allows, behind aiohttp's server as its users write it: the yardstick; `decode` does that behind ours; `no-op` does not even decode and refuses what `REFUSED` stands
in, so that one can see that it is asked. The others are the webhook with policies of one kind. Prints its port (and for `no-op`
whom to trust), then answers until its input ends, and then its peak memory in KiB.
"""

from __future__ import annotations

import asyncio
import base64
import os
import sys
from datetime import UTC, datetime
from typing import Any

import orjson
from aiohttp import web

from controllers.kube import Discovery, SystemClock
from controllers.kube.kinds import CEL_POLICIES, CLUSTER_POLICIES, NAMESPACES
from controllers.kube.reflector import Informers
from controllers.runtime import logs
from controllers.runtime.cluster_cache import WATCHED, ClusterCache
from controllers.runtime.metrics import Metrics
from controllers.runtime.options import Options
from controllers.runtime.process import Runtime
from controllers.runtime.queues import BackgroundQueue
from controllers.starting import settle_memory
from controllers.webhook import envelope
from controllers.webhook.certificates import Certificates, first_certificates
from controllers.webhook.server import Routes, WebhookServer
from controllers.webhook.serving import Serving
from controllers.webhook.tls import ServerTls
from engine.evaluate import Answer
from engine.lang.yaml import load_all
from tests.controllers.kube.fake import FakeClient

from . import subjects

LANES = {
    "aiohttp": "validate/fail",
    "decode": "validate/fail",
    "nothing matches": "validate/fail",
    "one validates": "validate/fail",
    "one ValidatingPolicy": "validate/fail/vpol",
    "one mutates": "mutate/fail",
    "one MutatingPolicy": "mutate/fail/mpol",
    "16 validate": "validate/fail",
    "16 ValidatingPolicies": "validate/fail/vpol",
    "16 validate, refused": "validate/fail",
    "16 ValidatingPolicies, refused": "validate/fail/vpol",
    "16 validate, codes offered, refused": "validate/fail",
}
"""The kinds of server, and the path at which each is asked."""

IS_REFUSED = ", refused"
"""How kinds end that are asked about a Pod which violates one of their policies, and log what they answer."""

_CODES = ", codes offered"
"""How kinds end that offer a code with what they refuse, to somebody who may redeem it."""

_OFFERS = {
    "apiVersion": "kpolicy.io/v1alpha1",
    "kind": "GrantPolicy",
    "metadata": {"name": "codes"},
    "spec": {"codes": {"mode": "acknowledge", "duration": "10m", "strict": True}},
}
_LABEL = "app.kubernetes.io/name"
_PODS = {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["pods"]}]}  # fmt: skip


def policies(kind: str) -> list[dict[str, Any]]:
    """Return the policies of one kind of server, all of them enforced; those in CEL say what the classic ones say."""
    if kind == "16 ValidatingPolicies":
        return [document.value for document in load_all(subjects.STANDARDS_IN_CEL.read_text())]
    if kind == "one ValidatingPolicy":
        expression = f"object.metadata.?labels[?'{_LABEL}'].orValue('') != ''"
        spec = {"validationActions": ["Deny"], "validations": [{"expression": expression, "message": "m"}]}  # fmt: skip
        return [_in_cel("ValidatingPolicy", spec)]
    if kind == "one MutatingPolicy":
        expression = (
            f"has(object.metadata.labels) && '{_LABEL}' in object.metadata.labels ? Object{{}} : "
            f"Object{{metadata: Object.metadata{{labels: {{'{_LABEL}': 'x'}}}}}}"
        )
        mutation = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}  # fmt: skip
        return [_in_cel("MutatingPolicy", {"mutations": [mutation]})]
    if kind == "16 validate":
        return [enforced(document.value) for path in subjects.STANDARDS for document in load_all(path.read_text())]  # fmt: skip
    rule: dict[str, Any] = {"name": "r", "match": {"any": [{"resources": {"kinds": ["Pod"]}}]}}
    if kind == "nothing matches":
        rule["match"]["any"][0]["resources"]["namespaces"] = ["elsewhere"]
    if kind == "one mutates":
        rule["mutate"] = {"patchStrategicMerge": {"metadata": {"labels": {f"+({_LABEL})": "x"}}}}
    else:
        rule["validate"] = {"message": "m", "pattern": {"metadata": {"labels": {_LABEL: "?*"}}}}
    made = {"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": {"name": "p"}, "spec": {"rules": [rule]}}  # fmt: skip
    return [enforced(made)]


def _in_cel(kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": kind,
        "metadata": {"name": "p"},
        "spec": {"matchConstraints": _PODS, **spec},
    }


def enforced(policy: dict[str, Any]) -> dict[str, Any]:
    rules = [
        {**rule, "validate": {**rule["validate"], "failureAction": "Enforce"}}
        if "validate" in rule
        else rule
        for rule in policy["spec"]["rules"]
    ]
    return {**policy, "spec": {**policy["spec"], "rules": rules}}


_KINDS = {kind.kind: kind for kind in (CLUSTER_POLICIES, *CEL_POLICIES)}


class NobodyToAsk:
    def confirm(self, findings: Any) -> None:
        pass

    async def resolve(self, lookups: Any, tenant: str = "") -> dict[Any, Answer]:
        return {one: Answer.failed("nobody to ask") for one in lookups}


async def _webhook(kind: str, certificates: Certificates) -> tuple[int, Any]:
    client, clock, metrics = FakeClient(), SystemClock(), Metrics()
    cache = ClusterCache(Discovery(client), metrics)
    if kind.endswith(IS_REFUSED):
        logs.configure("info", logs.TEXT, kind, open(os.devnull, "w"))  # noqa: PTH123, SIM115 - as long as the process
    rules = kind.removesuffix(IS_REFUSED)
    if rules.endswith(_CODES):
        client.put(_OFFERS)
        client.reviews["SubjectAccessReview"] = lambda _spec: {"allowed": True}
    for policy in policies(rules.removesuffix(_CODES)):
        metadata = {**policy["metadata"], "uid": policy["metadata"]["name"]}
        cache.put(_KINDS[policy["kind"]], {**policy, "metadata": metadata})
    for name in ("kube-system", *(f"team-{index}" for index in range(40))):
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "uid": name, "labels": {"a": "b"}}}  # fmt: skip
        cache.put(NAMESPACES, client.put(space))
    for one in WATCHED:
        cache.listed(one)
    assert not cache.policies.snapshot.problems
    runtime = Runtime(
        client, clock, cache, metrics, NobodyToAsk(), Informers(client), BackgroundQueue(metrics),
        b"k" * 32, options=Options(host="127.0.0.1", port=0),
    )  # fmt: skip
    runtime.background_queue.start()
    serving = Serving(runtime, certificates.leaf, sink=None)
    await serving.start()
    return serving.port, serving


async def _decoding_in_aiohttp(certificates: Certificates) -> tuple[int, Any]:
    async def review(request: web.Request) -> web.Response:
        uid = orjson.loads(await request.read())["request"]["uid"]
        response = {"uid": uid, "allowed": True}
        answer = {
            "apiVersion": envelope.API_VERSION,
            "kind": "AdmissionReview",
            "response": response,
        }
        return web.Response(body=orjson.dumps(answer), content_type="application/json")

    application = web.Application()
    application.router.add_post(f"/{LANES['aiohttp']}", review)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(
        runner, "127.0.0.1", 0, ssl_context=ServerTls(certificates.leaf).context
    ).start()
    return runner.addresses[0][1], runner


async def _decoding(certificates: Certificates) -> tuple[int, Any]:
    async def review(_rest: str, body: bytes, _budget: float) -> bytes:
        return envelope.allowed(envelope.read_request(body)["uid"])

    server = WebhookServer(
        Routes({"validate": review, "mutate": review}),
        host="127.0.0.1",
        tls=ServerTls(certificates.leaf).context,
    )
    await server.start()
    return server.port, server


REFUSED = b'"hostPID":true'
_UID = b'"uid":"'


async def _answering(certificates: Certificates) -> tuple[int, Any]:
    async def review(_rest: str, body: bytes, _budget: float) -> bytes:
        # the first UID of a review is that of its request
        uid = body.partition(_UID)[2].partition(b'"')[0].decode()
        return envelope.denied(uid, "refused") if REFUSED in body else envelope.allowed(uid)

    server = WebhookServer(
        Routes({"validate": review}), host="127.0.0.1", tls=ServerTls(certificates.leaf).context
    )
    await server.start()
    return server.port, server


def _peak() -> int:
    with open("/proc/self/status") as status:  # noqa: PTH123 - one line of a file that is none
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))


async def main(kind: str) -> None:
    """Serve until standard input ends, then print the peak memory."""
    certificates = first_certificates(["127.0.0.1"], datetime.now(UTC))
    simple = {"aiohttp": _decoding_in_aiohttp, "decode": _decoding, "no-op": _answering}
    port, _held = (
        await simple[kind](certificates) if kind in simple else await _webhook(kind, certificates)
    )
    settle_memory()
    trusted = [base64.b64encode(certificates.bundle).decode()] if kind == "no-op" else []
    print(port, *trusted, flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    print(_peak(), flush=True)


if __name__ == "__main__":
    if sys.argv[1] != "no-op":
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    asyncio.run(main(sys.argv[1]))
