"""Real signed manifests, as published with upstream's own tests, get upstream's answers without a network."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from engine.lang.yaml import load_all
from engine.manifests import compile_manifests
from engine.model import Outcome, Status

SHARED = Path(os.environ.get("KPOLICY_SHARED") or Path(__file__).parents[4] / "shared")
CASES = SHARED / "chainsaw/kyverno/test/conformance/chainsaw"
CLI = SHARED / "conformance/kyverno/test/cli/test/manifests/verify-signature"
NOW = datetime(2026, 3, 1, tzinfo=UTC)


def values(path: Path) -> list[Any]:
    if not path.exists():
        pytest.skip(f"published manifests not found at {path}; set KPOLICY_SHARED")
    return [one.value for one in load_all(path.read_bytes())]


def judge(policy: Path, obj: Any, rule: str = "") -> Outcome:
    rules = values(policy)[0]["spec"]["rules"]
    (block,) = [one["validate"]["manifests"] for one in rules if rule in ("", one["name"])]
    return compile_manifests(block)(obj, None, NOW)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("validate-yaml", [Status.FAIL, Status.PASS, Status.PASS]),
        ("validate-yaml-multi-sig", [Status.FAIL, Status.ERROR, Status.PASS]),
    ],
)
def test_the_command_line_case_is_answered_as_published(rule: str, expected: list[Status]) -> None:
    objects = values(CLI / "resources.yaml")

    assert [judge(CLI / "policies.yaml", one, rule).status for one in objects] == expected


@pytest.mark.parametrize("folder", ["multi-signatures", "multi-signatures(deprecated)"])
@pytest.mark.parametrize(
    ("name", "status", "text"),
    [
        (
            "no-signature",
            Status.FAIL,
            "YAML manifest not found for this resource: message not found",
        ),
        ("one-signature", Status.ERROR, "verification failed for 1 signature. all trials: ["),
        ("two-signatures", Status.PASS, "verifiedCount 2; requiredCount 2"),
        (
            "bad-signatures",
            Status.FAIL,
            '{"items":[{"key":"spec.selector.app","values":{"after":"NotMyApp","before":"MyApp"}}]}',
        ),
    ],
)
def test_the_cluster_case_is_answered_as_published(
    folder: str, name: str, status: Status, text: str
) -> None:
    case = CASES / "verify-manifests" / folder
    resource = "resource-" + name + ".yaml"

    outcome = judge(case / "policy.yaml", values(case / resource)[0])

    assert outcome.status is status
    assert text in outcome.message


DEFAULTS: dict[str, Any] = {
    "dnsPolicy": "ClusterFirst",
    "restartPolicy": "Always",
    "schedulerName": "default-scheduler",
    "terminationGracePeriodSeconds": 30,
    "securityContext": {},
}
CONTAINER_DEFAULTS = {
    "imagePullPolicy": "IfNotPresent",
    "resources": {},
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
}


def signed_deployment() -> Any:
    return values(CASES / "validate/e2e/yaml-signing/chainsaw-step-02-apply-1-1.yaml")[0]


def defaulted(deployment: Any, **pod: Any) -> Any:
    """Add what the API server adds before webhooks see a Deployment."""
    spec = deployment["spec"]
    inner = spec["template"]["spec"]
    container = {
        **inner["containers"][0],
        **CONTAINER_DEFAULTS,
        "ports": [{"containerPort": 80, "protocol": "TCP"}],
    }
    template = {
        "metadata": {**spec["template"]["metadata"], "creationTimestamp": None},
        "spec": {**inner, **DEFAULTS, "containers": [container], **pod},
    }
    added = {
        "progressDeadlineSeconds": 600,
        "revisionHistoryLimit": 10,
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%"}},
        "template": template,
    }
    metadata = {
        **deployment["metadata"],
        "namespace": "default",
        "uid": "u",
        "generation": 1,
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:spec": {}}}],
    }
    return {**deployment, "metadata": metadata, "spec": {**spec, **added}, "status": {}}


def test_the_published_deployment_verifies_as_written_and_as_the_api_server_completes_it() -> None:
    policy = CASES / "validate/e2e/yaml-signing/policy.yaml"

    assert judge(policy, signed_deployment()).status is Status.PASS
    assert judge(policy, defaulted(signed_deployment())).status is Status.PASS
    unsigned = values(CASES / "validate/e2e/yaml-signing/bad.yaml")[0]
    assert judge(policy, unsigned).status is Status.FAIL


@pytest.mark.parametrize(
    ("pod", "path"),
    [
        ({"securityContext": {"runAsUser": 0}}, "spec.template.spec.securityContext.runAsUser"),
        ({"hostNetwork": True}, "spec.template.spec.hostNetwork"),
        ({"hostPID": False}, "spec.template.spec.hostPID"),
        ({"serviceAccountName": "default"}, "spec.template.spec.serviceAccountName"),
        ({"tolerations": [{}]}, "spec.template.spec.tolerations.0"),
    ],
)
def test_additions_to_the_published_deployment_are_refused(pod: dict[str, Any], path: str) -> None:
    policy = CASES / "validate/e2e/yaml-signing/policy.yaml"

    outcome = judge(policy, defaulted(signed_deployment(), **pod))

    assert outcome.status is Status.FAIL
    assert f'"key":"{path}"' in outcome.message


def test_the_published_exception_with_shortened_annotations_is_refused_clearly() -> None:
    folder = SHARED / "seeds/signed-exceptions"
    (obj,) = values(folder / "exception-davepolex-signed.yaml")

    outcome = judge(folder / "policy-validate-polex.yaml", obj)

    assert outcome.status is Status.ERROR
    assert "illegal base64 data at input byte 8" in outcome.message
