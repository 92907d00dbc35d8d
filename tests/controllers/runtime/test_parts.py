"""The small parts: bounded queues, figures, chance, evaluation with answers from outside."""

from __future__ import annotations

import asyncio
import base64
import gc
import platform
import subprocess
import sys
import weakref
from typing import Any

import pytest

from controllers import starting
from controllers.kube import KubeError
from controllers.kube.kinds import SECRETS
from controllers.manifests.written import REVIEW_KEY
from controllers.runtime import metrics as figures
from controllers.runtime.entropy import fixed_key, seed_of, shared_key
from controllers.runtime.evaluating import evaluate_with
from controllers.runtime.metrics import Metrics, bucket_of
from controllers.runtime.queues import BackgroundQueue
from controllers.store.policies import read_policy
from engine.errors import LimitError
from engine.evaluate import Answer, Inputs, PolicySet
from engine.model import review_of
from tests.controllers.kube.fake import FakeClient

ADMISSION = ("Pod", "shop", "create", "true", "validate")


def test_work_goes_on_after_one_piece_of_it_broke() -> None:
    async def go() -> None:
        done = []
        background_queue = BackgroundQueue(Metrics(), workers=1)
        background_queue.start()

        async def broken() -> None:
            raise RuntimeError

        async def fine() -> None:
            done.append(1)

        assert background_queue.add(broken)
        assert background_queue.add(fine)
        await background_queue.finish()
        await background_queue.stop()
        assert done == [1]

    asyncio.run(go())


def took(metrics: Metrics, name: str, labels: tuple[str, ...], seconds: float) -> None:
    metrics.histogram(name, labels).add(bucket_of(seconds), seconds)


def test_figures_are_shown_under_upstreams_names() -> None:
    metrics = Metrics()
    metrics.count("kyverno_admission_requests", ADMISSION)
    took(metrics, "kyverno_admission_review_duration_seconds", ADMISSION, 0.02)
    metrics.gauge("kyverno_info", lambda: [(("1",), 1.0)])
    text = metrics.exposition().decode()

    assert 'kyverno_admission_requests_total{request_allowed="true",request_webhook="validate",resource_kind="Pod"' in text  # fmt: skip
    assert 'le="0.025"' in text
    assert "kyverno_admission_review_duration_seconds_sum" in text
    assert 'kyverno_info{version="1"} 1.0' in text
    with pytest.raises(KeyError):
        metrics.gauge("nobody_knows", list)


def test_label_values_from_requests_cannot_fill_the_memory(monkeypatch: Any) -> None:
    monkeypatch.setattr(figures, "MOST_SERIES", 2)
    metrics = Metrics()
    for number in range(5):
        metrics.count("kpolicy_reviews_refused", (str(number),))
        took(metrics, "kyverno_http_requests_duration_seconds", ("GET", str(number)), 1)

    assert metrics.value("kpolicy_reviews_refused", ("overflow",)) == 3
    assert b'http_url="overflow"' in metrics.exposition()


def test_figures_of_workers_are_added_to_those_of_their_parent() -> None:
    parent, worker = Metrics(), Metrics()
    for metrics in (parent, worker, worker):
        metrics.count("kyverno_admission_requests", ADMISSION)
        took(metrics, "kyverno_admission_review_duration_seconds", ADMISSION, 0.02)
    parent.show("worker 0", worker.dump())
    parent.show("worker 0", worker.dump())
    lines = parent.exposition().decode().splitlines()

    assert [line.rpartition(" ")[2] for line in lines if line.startswith("kyverno_admission_requests_total")] == ["3.0"]  # fmt: skip
    assert [line.rpartition(" ")[2] for line in lines if line.startswith("kyverno_admission_review_duration_seconds_count")] == ["3.0"]  # fmt: skip


def test_every_replica_draws_from_one_key_that_nobody_can_guess() -> None:
    async def go() -> None:
        client = FakeClient()
        first = await shared_key(client, "kyverno")
        assert first == await shared_key(client, "kyverno")
        assert len(first) == 32
        assert first != await shared_key(FakeClient(), "kyverno")
        secret = await client.get(SECRETS, REVIEW_KEY, "kyverno")
        await client.update(SECRETS, {**secret, "data": {"key": base64.b64encode(b"short").decode()}})  # fmt: skip
        with pytest.raises(KubeError, match="does not hold a key"):
            await shared_key(client, "kyverno")

    asyncio.run(go())


def test_seeds_follow_from_key_and_request_alone() -> None:
    key = fixed_key("a")

    assert seed_of(key, "1") == seed_of(key, "1")
    assert len({seed_of(key, "1"), seed_of(key, "2"), seed_of(fixed_key("b"), "1")}) == 3


def test_answers_that_never_satisfy_end_in_an_error() -> None:
    rule = {
        "name": "r",
        "match": {"any": [{"resources": {"kinds": ["Pod"]}}]},
        "context": [{"name": "c", "configMap": {"name": "a", "namespace": "b"}}],
        "validate": {"message": "{{ c.data.x }}", "deny": {"conditions": {"all": [{"key": "{{ c.data.x }}", "operator": "Equals", "value": "1"}]}}},
    }  # fmt: skip
    policy = read_policy({"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": {"name": "p"}, "spec": {"rules": [rule]}})  # fmt: skip
    review = review_of({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}})

    class Forgetful:
        def confirm(self, findings: Any) -> None:
            pass

        async def resolve(self, _lookups: Any, _tenant: str = "") -> dict[Any, Answer]:
            return {}

    with pytest.raises(LimitError):
        asyncio.run(evaluate_with(Forgetful(), PolicySet.compile([policy]), review, Inputs()))


def test_a_kind_that_may_not_be_watched_is_told_once_with_what_helps(caplog: pytest.LogCaptureFixture) -> None:  # fmt: skip
    from controllers.kube.accounts import Job
    from controllers.starting import warner

    warn = warner(Job.REPORTS)
    for problem in ("secrets is forbidden: no", "", "secrets is forbidden: no", "the server is away"):  # fmt: skip
        warn(SECRETS, problem)
    first, second = (record.getMessage() for record in caplog.records)
    assert first.startswith(
        "secrets cannot be watched for reports, so objects of this kind are not scanned"
    )
    assert "rbac.kyverno.io/aggregate-to-reports-controller: true gives the right" in first
    assert second.endswith("the server is away")


def test_the_first_policy_written_in_cel_waits_for_no_code_to_be_loaded() -> None:
    read = """
import sys
import weakref
from controllers import starting
from controllers.store.policies import read_policy
from engine.evaluate import compile_policy
starting._load_evaluators()
known = set(sys.modules)
for kind, spec in (
    ("ValidatingPolicy", {"validations": [{"expression": "object.kind == 'Pod'"}]}),
    ("MutatingPolicy", {"mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": "[]"}}]}),
    ("GeneratingPolicy", {"generate": [{"expression": "generator.Apply('x', [])"}]}),
):
    matched = {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]}
    policy = {"apiVersion": "policies.kyverno.io/v1", "kind": kind, "metadata": {"name": "first"}}
    compile_policy(read_policy({**policy, "spec": {"matchConstraints": matched, **spec}}))
print(*sorted(set(sys.modules) - known))
"""
    said = subprocess.run(
        [sys.executable, "-c", read], capture_output=True, text=True, timeout=60, check=True
    )
    assert said.stdout.split() == []


@pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="other C libraries keep no freed memory"
)
def test_memory_that_a_rush_took_is_returned_after_it() -> None:
    rush = """
import asyncio
from pathlib import Path
from controllers import starting

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

async def main():
    await asyncio.sleep(0)
    starting.RETURNED_EVERY = 0.0
    taken = [bytes(8192) for _ in range(8192)]
    kept = taken[::64]
    taken.clear()
    before = resident()
    returning = asyncio.create_task(starting.return_freed())
    for _ in range(10):
        await asyncio.sleep(0)
    returning.cancel()
    print(before, resident(), len(kept))

asyncio.run(main())
"""
    before, after, _ = map(
        int,
        subprocess.run(
            [sys.executable, "-c", rush], capture_output=True, text=True, timeout=60, check=True
        ).stdout.split(),
    )
    assert after < before - (32 << 20)


class _Circle:
    def __init__(self) -> None:
        self.itself = self


@pytest.mark.parametrize(("longest", "is_left"), [(60.0, False), (-1.0, True)])
def test_circles_that_outlived_collections_are_collected_where_that_is_quick(
    longest: float, *, is_left: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(starting, "RETURNED_EVERY", 0.0)
    monkeypatch.setattr(starting, "LONGEST_COLLECTION", longest)

    async def go() -> None:
        returning = asyncio.create_task(starting.return_freed())
        for _ in range(3):
            await asyncio.sleep(0)
        circle = _Circle()
        gc.collect()
        seen = weakref.ref(circle)
        del circle
        for _ in range(3):
            await asyncio.sleep(0)
        returning.cancel()
        assert (seen() is not None) is is_left

    asyncio.run(go())
