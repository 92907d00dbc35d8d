"""Two replicas of the webhook on one cluster of memory with codes turned on: what tests of codes stand on."""

from __future__ import annotations

import asyncio
import re
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import orjson

from controllers.kube.kinds import CODE_USES, GRANT_POLICIES, NAMESPACES, ONE_TIME_CODES
from controllers.webhook.caller import Caller, current_caller
from controllers.webhook.one_time_codes import OneTimeCodes
from controllers.webhook.reviewing import Reviewer

from .staging import Stage, body, hesitating, pod, policy, staged

CODE = re.compile(r"(?:[0-9A-Z]{4}-){4}[0-9A-Z]{4}")
KEY = b"k" * 32
CHIP = {"username": "chip", "groups": ["dev", "system:authenticated"]}


def grant_policy(mode: str = "acknowledge", name: str = "codes", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kpolicy.io/v1alpha1", "kind": "GrantPolicy", "metadata": {"name": name},
        "spec": {"codes": {"mode": mode, "duration": "10m"}, **spec},
    }  # fmt: skip


def space(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "uid": f"uid-of-{name}"}}  # fmt: skip


@dataclass
class Gate:
    """Two replicas of the webhook on one cluster."""

    stage: Stage
    replicas: tuple[Reviewer, Reviewer]
    may_redeem: bool = True
    asked: int = 0
    route: str = "fail"

    async def ask(self, obj: dict[str, Any], *, replica: int = 0, user: Any = CHIP, **fields: Any) -> Any:  # fmt: skip
        made = orjson.loads(orjson.dumps(obj))
        self.asked += 1
        made["metadata"].setdefault("uid", f"object-{self.asked}")
        sent = body(made, userInfo=user, **fields)
        return orjson.loads(await self.replicas[replica].review("validate", self.route, sent, 5.0))["response"]  # fmt: skip

    async def offered(self, obj: dict[str, Any] | None = None, **fields: Any) -> str:
        """Return the code that a denial offers."""
        answer = await self.ask(obj or pod(), **fields)
        assert not answer["allowed"]
        found = CODE.search(answer["status"]["message"])
        assert found is not None, answer
        return found[0]

    def uses(self) -> list[dict[str, Any]]:
        return self.stage.client.stored(CODE_USES)

    def state(self) -> list[Any]:
        return [self.stage.client.stored(kind) for kind in (CODE_USES, ONE_TIME_CODES, NAMESPACES, GRANT_POLICIES)]  # fmt: skip


@asynccontextmanager
async def gate(*objects: dict[str, Any], policies: tuple[dict[str, Any], ...] = ()):
    uid = {"uid": "uid-of-policy"}
    known = [{**one, "metadata": {**one["metadata"], **uid}} for one in policies or (policy(),)]
    async with staged(*known) as stage:
        for obj in (space("kube-system"), space("shop"), space("other"), *(objects or (grant_policy(),))):  # fmt: skip
            stage.client.put(obj)
        hesitating(stage.client)
        made = Gate(stage, (reviewer_of(stage), reviewer_of(stage)))
        stage.client.reviews["SubjectAccessReview"] = lambda _spec: {"allowed": made.may_redeem}
        token = current_caller.set(Caller.CERTIFICATE)
        try:
            yield made
        finally:
            current_caller.reset(token)


def reviewer_of(stage: Stage) -> Reviewer:
    codes = OneTimeCodes(stage.cache, stage.client, stage.client.clock, "kyverno", KEY)
    return Reviewer(
        stage.cache, stage.client, stage.resolver, stage.client.clock, stage.metrics, stage.background_queue,
        key=KEY, sink=stage.sink, codes=codes,
    )  # fmt: skip


def run(play: Any, *objects: Any, policies: Any = ()) -> None:
    async def within() -> None:
        async with gate(*objects, policies=policies) as made:
            await play(made)

    asyncio.run(asyncio.wait_for(within(), 30))


def with_code(*codes: str, obj: dict[str, Any] | None = None) -> dict[str, Any]:
    made = orjson.loads(orjson.dumps(obj or pod()))
    made["metadata"].setdefault("annotations", {})["kpolicy.io/code"] = ",".join(codes)
    return made


def message(answer: Any) -> str:
    return str(answer["status"]["message"])
