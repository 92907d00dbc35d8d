"""What lint says of ImageValidatingPolicies: what they may read, what cannot work, what is accepted and not used."""

from __future__ import annotations

from typing import Any

import pytest

from engine.lint.imagepolicies import lint_image_policy
from tests.engine.celpolicies.test_image_validating_policies import by_key, policy


def said(*given: str, **spec: Any) -> list[tuple[str, str]]:
    return [(str(one.severity), one.path) for one in lint_image_policy(policy(*given, **spec))]


def test_a_sound_policy_has_no_findings() -> None:
    assert said() == []


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"validations": [{"expression": "nothing > 1"}]}, "spec.validations[0].expression"),
        ({"validations": []}, "spec.validations"),
        ({"images": [{"name": "a", "expression": "images.x"}]}, "spec.images[0].expression"),
        ({"matchImageReferences": [{"expression": "object.x"}]}, "spec.matchImageReferences[0].expression"),
        ({"matchConditions": [{"name": "a", "expression": "attestors.x"}]}, "spec.matchConditions[0].expression"),
        ({"attestors": [{"name": "a", "cosign": {"key": {"expression": "x"}}}]}, "spec.attestors[0].cosign.key.expression"),
        ({"attestors": [{"name": "a", "cosign": {}}]}, "spec.attestors[0].cosign"),
        ({"attestors": [{"name": "a", "cosign": {"keyless": {"identities": []}}}]}, "spec.attestors[0].cosign.keyless.identities"),
        ({"attestations": [{"name": "a"}]}, "spec.attestations[0]"),
        ({"evaluation": {"mode": "JSON"}, "validations": [{"expression": "variables.x"}]}, "spec.validations[0].expression"),
    ],
    ids=str,
)  # fmt: skip
def test_what_cannot_work_is_an_error_with_its_place(spec: Any, path: str) -> None:
    assert ("error", path) in said(**spec)


def test_what_is_accepted_and_not_used_is_warned_of() -> None:
    key = by_key()
    key["cosign"]["key"]["kms"] = "awskms://x"

    assert said(attestors=[key]) == [("warning", "spec.attestors[0].cosign.key.kms")]
