"""Documents of the CEL kinds: which groups and versions are known, and what they become."""

from __future__ import annotations

import pytest

from engine.errors import PolicyError
from engine.parse import unknown_fields
from engine.parse.celpolicies import PARSERS, parse_binding, parse_cel_exception, parse_cel_policy
from engine.parse.schema.celkinds import CEL_SPECS
from tests.engine.celpolicies.documents import KUBERNETES, KYVERNO, document

REFERENCES = {"policyRefs": [{"name": "p", "kind": "ValidatingPolicy"}]}


def test_every_known_kind_has_a_parser() -> None:
    assert {group: set(kinds) for group, kinds in PARSERS.items()} == {
        group: set(kinds) for group, kinds in CEL_SPECS.items()
    }


@pytest.mark.parametrize("version", ["v1", "v1beta1", "v1alpha1"])
def test_every_served_version_is_read(version: str) -> None:
    policy = document(f"policies.kyverno.io/{version}", "ValidatingPolicy", "p", {})

    assert parse_cel_policy(policy).api_version == f"policies.kyverno.io/{version}"


@pytest.mark.parametrize(
    "api_version", ["policies.kyverno.io/v9", "kyverno.io/v1", "example.com/v1", KUBERNETES]
)
def test_other_groups_and_versions_are_refused(api_version: str) -> None:
    with pytest.raises(PolicyError, match="of a known version"):
        parse_cel_policy(document(api_version, "ValidatingPolicy", "p", {}))


def test_a_classic_exception_is_none_of_cel() -> None:
    with pytest.raises(PolicyError):
        parse_cel_exception(document("kyverno.io/v2", "PolicyException", "e", {}))


@pytest.mark.parametrize("doc", [None, [], "x", {"apiVersion": KYVERNO}])
def test_what_is_no_policy_is_refused(doc: object) -> None:
    with pytest.raises(PolicyError):
        parse_cel_policy(doc)


def test_a_namespaced_policy_without_a_namespace_is_in_default() -> None:
    assert parse_cel_policy(document(KYVERNO, "NamespacedValidatingPolicy", "p", {})).key == "default/p"  # fmt: skip
    assert parse_cel_policy(document(KYVERNO, "ValidatingPolicy", "p", {}, namespace="x")).key == "p"  # fmt: skip


def test_admission_and_background_can_be_switched_off() -> None:
    off = {"admission": {"enabled": False}, "background": {"enabled": False}}
    policy = parse_cel_policy(document(KYVERNO, "ValidatingPolicy", "p", {"evaluation": off}))

    assert (policy.admission, policy.background) == (False, False)


def test_an_exception_becomes_a_value() -> None:
    spec = {**REFERENCES, "images": ["a"], "allowedValues": ["v"], "expiresAt": "2026-01-01T00:00:00Z"}  # fmt: skip
    found = parse_cel_exception(document(KYVERNO, "PolicyException", "e", spec, namespace="n"))

    assert (found.key, found.references) == ("n/e", (("p", "ValidatingPolicy"),))
    assert (found.images, found.allowed_values) == (("a",), ("v",))
    assert (found.report_result, found.expires_at) == ("skip", "2026-01-01T00:00:00Z")


def test_a_binding_becomes_a_value() -> None:
    spec = {"policyName": "p", "validationActions": ["Warn"]}
    found = parse_binding(document(KUBERNETES, "ValidatingAdmissionPolicyBinding", "b", spec))

    assert (found.policy_name, found.policy_kind) == ("p", "ValidatingAdmissionPolicy")
    assert found.actions == ("Warn",)


def test_unknown_fields_are_named_with_the_nearest_known_one() -> None:
    (found,) = unknown_fields(document(KYVERNO, "ValidatingPolicy", "p", {"validation": []}))

    assert (found.path, found.nearest) == ("spec.validation", "validations")
