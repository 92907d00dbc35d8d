"""The five published scenarios, decided without a cluster: every text, object and verdict that they promise.

Runs on the project's own samples and, where the published files are at hand, on those too.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from controllers.manifests import SAMPLES
from engine.errors import Location
from engine.evaluate import Inputs, PolicySet, evaluate
from engine.lang.yaml import load_all
from engine.lint import lint_policy
from engine.model import RuleResult, Status, UserInfo, review_of
from engine.parse import parse_exception, parse_policy
from tests.demo.cluster import answer_from

NOW = datetime(2026, 11, 21, 10, 18, tzinfo=UTC)
ADMISSION = "system:serviceaccount:kyverno:kyverno-admission-controller"
SHARED = Path(os.environ.get("KPOLICY_SHARED", Path(__file__).parents[3] / "shared"))
RUNNER = "system:serviceaccount:gitlab:gitlab-runner-ephemeral-env"

PUBLISHED = {
    "one-time-codes/1-journal.yaml": "otp/1-journal.yaml",
    "one-time-codes/2-host-namespaces.yaml": "otp/2-policy-disallow-host-namespaces-otp.yaml",
    "one-time-codes/3-journal-keeper.yaml": "otp/3-policy-manage-otp-list.yaml",
    "one-time-codes/4-deployment.yaml": "otp/4-bad-deployment.yaml",
    "one-time-codes/5-deployment-with-code.yaml": "otp/5-bad-deployment-with-code.yaml",
    "temporary-exceptions/2-automate-cleanup.yaml": "temporary-exceptions/2-policy-automate-cleanup.yaml",
    "temporary-exceptions/3-exception.yaml": "temporary-exceptions/3-exception-emergency-busybox.yaml",
    "environments/2-namespace-admin.yaml": "ephemeral-environments/2-policy-add-rbac-rules-env-volee.yaml",
    "environments/3-privileged-all.yaml": "ephemeral-environments/3-policy-disallow-privileged-all-match.yaml",
    "environments/3-privileged-legacy.yaml": "ephemeral-environments/3-policy-disallow-privileged-legacy-match.yaml",
    "environments/4-registries.yaml": "ephemeral-environments/4-policy-restrict-image-registries.yaml",
    "pod-security/1-default-label.yaml": "pod-security/1-policy-mutate-pss-labels.yaml",
    "pod-security/2-allowed-labels.yaml": "pod-security/2-policy-validate-pss-labels.yaml",
    "pod-security/3-namespace.yaml": "pod-security/3-namespace-policy-test.yaml",
    "jobs/1-ttl.yaml": "jobs/1-policy-add-ttl-jobs.yaml",
    "jobs/2-requests-limits.yaml": "jobs/2-policy-require-requests-limits.yaml",
    "jobs/3-spread.yaml": "jobs/3-policy-spread-pods.yaml",
    "jobs/4-job.yaml": "jobs/4-job-pi.yaml",
    "signed-exceptions/policy.yaml": "signed-exceptions/policy-validate-polex.yaml",
}


@dataclass
class Files:
    """Where the scenario's files are read from."""

    published: bool

    def load(self, name: str) -> list[dict[str, Any]]:
        path = SAMPLES / name
        if self.published and name in PUBLISHED:
            path = SHARED / "seeds" / PUBLISHED[name]
        return [document.value for document in load_all(path.read_text(), file=str(path))]

    def policy(self, name: str) -> Any:
        (document,) = self.load(name)
        parsed = parse_policy(document, at=Location(name))
        assert [item for item in lint_policy(parsed) if item.severity == "error"] == []
        return parsed


@pytest.fixture(params=["samples", "published"])
def files(request: pytest.FixtureRequest) -> Files:
    """The project's samples, then the published files."""
    if request.param == "published" and not (SHARED / "seeds").exists():
        pytest.skip(
            f"{SHARED / 'seeds'} is not here; set KPOLICY_SHARED to the folder that holds it"
        )
    return Files(request.param == "published")


def decide(
    policies: list[Any],
    obj: dict[str, Any],
    *,
    cluster: list[dict[str, Any]] | None = None,
    user: str = "jane",
    now: datetime = NOW,
    seed: bytes = b"",
    exceptions: tuple[Any, ...] = (),
) -> list[RuleResult]:
    """Evaluate until every question is answered from `cluster`."""
    compiled = PolicySet.compile(policies, exceptions)
    assert not compiled.problems
    review = review_of(obj, user=UserInfo(username=user, groups=("developers",)))
    answers: dict[Any, Any] = {}
    while True:
        found = evaluate(compiled, review, Inputs(now=now, seed=seed, answers=answers))
        if not found.missing:
            return found.results
        answers = {**answers, **{item: answer_from(item, cluster or []) for item in found.missing}}


def labelled(obj: dict[str, Any], **labels: str) -> dict[str, Any]:
    metadata = obj["metadata"]
    return {**obj, "metadata": {**metadata, "labels": {**metadata.get("labels", {}), **labels}}}


REFUSED = (
    "validation error: Sharing the host namespaces is disallowed. The fields spec.hostNetwork, spec.hostIPC, "
    "and spec.hostPID must be unset or set to `false`. To get around this, you may use a one-time pass code "
    '"{code}" assigned as the value of a label with key "otp". Use of this code will be recorded along with '
    "your username. rule host-namespaces-otp failed at path /spec/template/spec/hostIPC/"
)


def test_a_refusal_hands_out_a_code(files: Files) -> None:
    journal = files.load("one-time-codes/1-journal.yaml")
    policy = files.policy("one-time-codes/2-host-namespaces.yaml")
    (deployment,) = files.load("one-time-codes/4-deployment.yaml")

    (result,) = decide([policy], deployment, cluster=journal)
    (other,) = decide([policy], deployment, cluster=journal, seed=b"another review")

    code = re.search(r'"([0-9a-z]{8})"', result.message)
    assert code
    assert result.message == REFUSED.format(code=code.group(1))
    assert (result.rule, result.status, result.enforce) == (
        "host-namespaces-otp",
        Status.FAIL,
        True,
    )
    assert code.group(1) not in other.message


def test_an_unknown_code_is_refused_without_a_new_one(files: Files) -> None:
    journal = files.load("one-time-codes/1-journal.yaml")
    policy = files.policy("one-time-codes/2-host-namespaces.yaml")
    (deployment,) = files.load("one-time-codes/5-deployment-with-code.yaml")

    (result,) = decide([policy], deployment, cluster=journal)

    assert result.rule == "invalid-otp"
    assert result.message == "The code uq1s17g8 is invalid or has already been used."


def test_a_known_code_lets_the_deployment_through_and_is_written_down_as_used(files: Files) -> None:
    journal = files.load("one-time-codes/1-journal.yaml")
    policies = [
        files.policy("one-time-codes/2-host-namespaces.yaml"),
        files.policy("one-time-codes/3-journal-keeper.yaml"),
    ]
    (deployment,) = files.load("one-time-codes/5-deployment-with-code.yaml")

    results = decide(policies, labelled(deployment, otp="ua8v92pg"), cluster=journal, user="dale")

    by_rule = {result.rule: result for result in results}
    assert by_rule["invalid-otp"].status is Status.SKIP
    assert by_rule["host-namespaces-otp"].status is Status.SKIP
    (target,) = by_rule["manage-otp"].targets
    codes = target.after["data"]["codes"].strip()
    assert codes.splitlines() == ["- ua8v92pg-2026-11-21T10:18:00Z-dale", "- 9akvm2o7"]


def test_a_used_code_is_an_unknown_code(files: Files) -> None:
    policy = files.policy("one-time-codes/2-host-namespaces.yaml")
    (deployment,) = files.load("one-time-codes/5-deployment-with-code.yaml")
    namespace, journal = files.load("one-time-codes/1-journal.yaml")
    used = {**journal, "data": {"codes": "- ua8v92pg-2026-11-21T10:18:00Z-dale\n- 9akvm2o7"}}

    (result,) = decide([policy], labelled(deployment, otp="ua8v92pg"), cluster=[namespace, used])

    assert result.message == "The code ua8v92pg is invalid or has already been used."


VIOLATION = {
    "apiVersion": "v1",
    "kind": "Event",
    "metadata": {"name": "disallow-host-namespaces-otp.17a", "namespace": "default"},
    "reason": "PolicyViolation",
    "message": "Deployment default/busybox: [host-namespaces-otp] fail (blocked); "
    + REFUSED.format(code="4y4jwr3j"),
}


def test_the_violation_event_brings_the_code_into_the_journal(files: Files) -> None:
    journal = files.load("one-time-codes/1-journal.yaml")
    policy = files.policy("one-time-codes/3-journal-keeper.yaml")

    (result,) = decide([policy], VIOLATION, cluster=journal, user=ADMISSION)

    (target,) = result.targets
    assert target.after["data"]["codes"].splitlines() == ["- ua8v92pg", "- 9akvm2o7", "- 4y4jwr3j"]


def test_an_event_that_somebody_else_writes_brings_no_code_into_the_journal() -> None:
    samples = Files(published=False)
    journal = samples.load("one-time-codes/1-journal.yaml")
    policy = samples.policy("one-time-codes/3-journal-keeper.yaml")

    results = decide([policy], VIOLATION, cluster=journal, user="jane")

    assert not any(result.targets for result in results)


def test_an_exception_generates_its_own_end_four_hours_ahead(files: Files) -> None:
    policy = files.policy("temporary-exceptions/2-automate-cleanup.yaml")
    (made_for,) = files.load("temporary-exceptions/3-exception.yaml")

    (result,) = decide([policy], made_for)

    (made,) = result.generated
    assert made["kind"] == "ClusterCleanupPolicy"
    assert made["spec"]["schedule"] == "18 14 21 11 6"
    assert re.fullmatch(r"polex-falcon-dev-emergency-busybox-[0-9a-z]{8}", made["metadata"]["name"])
    (entry,) = made["spec"]["match"]["any"]
    assert entry["resources"] == {
        "kinds": ["PolicyException"],
        "namespaces": ["falcon-dev"],
        "names": ["emergency-busybox"],
    }
    labels = made["metadata"]["labels"]
    assert labels["kyverno.io/automated"] == "true"
    assert labels["app.kubernetes.io/managed-by"] == "kyverno"
    assert {key.removeprefix("generate.kyverno.io/") for key in labels if "generate." in key} == {
        "policy-name",
        "policy-namespace",
        "rule-name",
        "trigger-group",
        "trigger-kind",
        "trigger-namespace",
        "trigger-uid",
        "trigger-version",
    }


def test_the_exception_covers_that_pod_of_that_user_alone(files: Files) -> None:
    (document,) = files.load("temporary-exceptions/3-exception.yaml")
    exception = parse_exception(document, at=Location("exception"))
    policy = parse_policy(
        {
            "apiVersion": "kyverno.io/v1",
            "kind": "ClusterPolicy",
            "metadata": {"name": "disallow-host-namespaces"},
            "spec": {
                "rules": [
                    {
                        "name": "host-namespaces",
                        "match": {"any": [{"resources": {"kinds": ["Pod"]}}]},
                        "validate": {"pattern": {"spec": {"=(hostIPC)": False}}},
                    }
                ]
            },
        },
        at=Location("policy"),
    )

    def status(name: str, user: str) -> Status:
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "falcon-dev"},
            "spec": {"hostIPC": True},
        }
        (result,) = decide([policy], pod, user=user, exceptions=(exception,))
        return result.status

    assert status("emergency-busybox", "chip") is Status.SKIP
    assert status("emergency-busybox", "dale") is Status.FAIL
    assert status("another", "chip") is Status.FAIL


def test_a_namespace_of_the_runner_gets_a_role_binding(files: Files) -> None:
    policy = files.policy("environments/2-namespace-admin.yaml")
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "env-7"}}

    (result,) = decide([policy], namespace, user=RUNNER)

    (made,) = result.generated
    assert (made["kind"], made["metadata"]["name"]) == ("RoleBinding", "ephemeral-namespace-admin")
    assert made["metadata"]["namespace"] == "env-7"
    assert made["roleRef"]["name"] == "cluster-admin"
    assert decide([policy], namespace, user="jane") == []


PRIVILEGED = (
    "validation error: Privileged mode is disallowed. The fields spec.containers[*].securityContext.privileged "
    "and spec.initContainers[*].securityContext.privileged must not be set to true. "
    "rule priviledged-containers failed at path /spec/containers/0/securityContext/privileged/"
)


@pytest.mark.parametrize("form", ["all", "legacy"])
def test_privileged_pods_are_refused_unless_excluded(files: Files, form: str) -> None:
    policy = files.policy(f"environments/3-privileged-{form}.yaml")
    pods = files.load("environments/5-pods.yaml")

    answers = {
        (p["metadata"]["namespace"], p["metadata"]["name"]): decide([policy], p) for p in pods
    }

    (refused,) = answers["default", "toolbox"]
    assert refused.message == PRIVILEGED
    assert refused.enforce is (form == "all")
    assert answers["debug", "toolbox"] == answers["gitlab", "runner-7"] == []


def test_a_policy_that_excludes_pods_by_name_is_not_extended(files: Files) -> None:
    policy = files.policy("environments/3-privileged-all.yaml")

    (compiled,) = PolicySet.compile([policy]).policies

    assert [rule.rule.name for rule in compiled.rules] == ["priviledged-containers"]


def test_the_registry_rule_is_extended_without_touching_the_policy(files: Files) -> None:
    policy = files.policy("environments/4-registries.yaml")
    pod = files.load("environments/5-pods.yaml")[0]

    (compiled,) = PolicySet.compile([policy]).policies
    (result,) = decide([policy], pod)

    assert [rule.rule.name for rule in compiled.rules][1:] == [
        "autogen-validate-registries",
        "autogen-cronjob-validate-registries",
    ]
    assert len(policy.raw["spec"]["rules"]) == 1
    assert result.message == (
        "validation error: Images may only come from our internal enterprise registry. "
        "rule validate-registries failed at path /spec/containers/0/image/"
    )


def test_namespaces_get_the_restricted_level(files: Files) -> None:
    policies = [
        files.policy("pod-security/1-default-label.yaml"),
        files.policy("pod-security/2-allowed-labels.yaml"),
    ]
    plain = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "plain"}}

    results = decide(policies, plain)

    assert [result.status for result in results] == [Status.PASS, Status.PASS]
    assert results[0].patched["metadata"]["labels"] == {
        "pod-security.kubernetes.io/enforce": "restricted"
    }


def test_the_privileged_level_is_refused(files: Files) -> None:
    policy = files.policy("pod-security/2-allowed-labels.yaml")
    (namespace,) = files.load("pod-security/3-namespace.yaml")

    (result,) = decide([policy], namespace)

    assert result.enforce
    assert result.message == (
        "validation error: the privileged pod security level is not allowed. rule check-restricted "
        "failed at path /metadata/labels/pod-security.kubernetes.io/enforce/"
    )


def test_jobs_get_a_time_to_live(files: Files) -> None:
    (job,) = files.load("jobs/4-job.yaml")

    (result,) = decide([files.policy("jobs/1-ttl.yaml")], job)

    assert result.patched["spec"]["ttlSecondsAfterFinished"] == 90


def test_deployments_are_spread_and_missing_limits_reported(files: Files) -> None:
    (deployment,) = files.load("jobs/5-deployment.yaml")
    policies = [files.policy("jobs/2-requests-limits.yaml"), files.policy("jobs/3-spread.yaml")]

    spread, limits = decide(policies, deployment)

    pod = spread.patched["spec"]["template"]["spec"]
    assert spread.message == "mutated Deployment/spread in namespace default"
    assert pod["topologySpreadConstraints"] == [
        {
            "labelSelector": {"matchLabels": {"app": "spread"}},
            "maxSkew": 1,
            "topologyKey": "distributed",
            "whenUnsatisfiable": "DoNotSchedule",
        }
    ]
    assert limits.rule == "autogen-validate-resources"
    assert limits.message == (
        "validation error: CPU and memory resource requests and limits are required. rule "
        "autogen-validate-resources failed at path "
        "/spec/template/spec/containers/0/resources/limits/"
    )


def test_an_unsigned_exception_is_refused(files: Files) -> None:
    policy = files.policy("signed-exceptions/policy.yaml")
    (exception,) = files.load("signed-exceptions/exception.yaml")

    (result,) = decide([policy], exception)

    assert (result.status, result.enforce) == (Status.FAIL, True)
    assert "YAML manifest not found for this resource: message not found" in result.message
