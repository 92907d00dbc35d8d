"""The target of reviews: bytes that somebody posts to the webhook, decided under the samples that people install.

Every answer is a review's answer, whatever was posted; a refusal because `the policy engine failed` is a finding.
"""

from __future__ import annotations

import asyncio
import logging
import zlib
from contextlib import AsyncExitStack
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import orjson

from engine.errors import DocumentError
from engine.lang import yaml
from tests.controllers.webhook.staging import staged
from tests.fuzz import trees
from tests.fuzz.corpora import CORPUS, seeds_of
from tests.fuzz.target import Target

if TYPE_CHECKING:
    from random import Random

    from tests.controllers.webhook.staging import Stage

_SAMPLES: Final = CORPUS.parents[2] / "controllers" / "manifests" / "samples"
_KINDS: Final = ("ClusterPolicy", "Policy", "PolicyException")
_OPERATIONS: Final = ("CREATE", "UPDATE", "DELETE", "CONNECT", "", "create")
_LANES: Final = ("fail", "ignore")
_STAGES: Final = ("validate", "mutate")


def policies() -> list[dict[str, Any]]:
    """Return the policies and exceptions of the samples, and those written for this."""
    files = [*sorted(_SAMPLES.rglob("*.yaml")), CORPUS.parent / "policies.yaml"]
    found = [one.value for path in files for one in yaml.load_all(path.read_bytes())]
    return [one for one in found if one.get("kind") in _KINDS]


class _Heard(logging.Handler):
    """Remembers the error that somebody caught and logged: it is as much a finding as one that came through."""

    error: BaseException | None = None

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[1]:
            self.error = record.exc_info[1]


_HEARD: Final = _Heard()


@cache
def _stage() -> tuple[asyncio.Runner, Stage, AsyncExitStack]:
    """Return a loop and a webhook on it that last as long as the process."""
    logger = logging.getLogger("controllers")
    logger.addHandler(_HEARD)
    logger.propagate = False
    runner, kept = asyncio.Runner(), AsyncExitStack()
    return runner, runner.run(kept.enter_async_context(staged(*policies(), queue=10))), kept


def _review(data: bytes) -> str:
    runner, stage, _ = _stage()
    seed = zlib.crc32(data)
    try:
        answered = runner.run(_answered(stage, data, seed))
    except DocumentError:
        return "no review"
    finally:
        stage.sink.results_.clear()
        stage.sink.triggered_.clear()
        stage.resolver.asked.clear()
    document = orjson.loads(answered)
    assert set(document) == {"kind", "apiVersion", "response"}, "no answer of a review"
    response = document["response"]
    assert isinstance(response["uid"], str), "no UID"
    assert isinstance(response["allowed"], bool), "neither allowed nor denied"
    if _HEARD.error is not None:
        error, _HEARD.error = _HEARD.error, None
        raise error
    assert b"policy engine failed" not in answered, "the engine failed"
    return f"allowed {response['allowed']}"


async def _answered(stage: Stage, data: bytes, seed: int) -> bytes:
    answer = await stage.reviewer.review(_STAGES[seed % 2], _LANES[seed // 2 % 2], data, 5.0)
    await stage.background_queue.finish()
    return answer


@cache
def _readable() -> tuple[bytes, ...]:
    return tuple(one for one in seeds_of("review") if b'"uid":' in one and b'"object"' in one)


def _made(chance: Random) -> bytes:
    seed = chance.choice(_readable())
    try:
        return _changed(chance, orjson.loads(seed))
    except RecursionError:
        # a deep seed within itself is deeper than can be written
        return seed


def _changed(chance: Random, request: dict[str, Any]) -> bytes:
    if chance.random() < 0.7:
        inner = request["request"]
        inner["operation"] = chance.choice(_OPERATIONS[:3])
        for name in ("object", "oldObject"):
            if inner.get(name):
                inner[name] = trees.changed(chance, inner[name])
        if chance.random() < 0.3:
            inner["oldObject"] = inner.get("object")
        if chance.random() < 0.1:
            inner["userInfo"] = trees.changed(chance, inner.get("userInfo") or {})
        return trees.packed(request)
    return trees.packed(trees.changed(chance, request))


TARGETS: Final = (Target("review", _review, _made),)
