"""Documents of the classic kinds: what is read, what is refused, and where the refusal points."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from engine.errors import Location, PolicyError
from engine.model import ActionOverride, PolicyReference
from engine.parse import (
    Fault,
    build_rule,
    parse_cleanup_policy,
    parse_exception,
    parse_policy,
    path_text,
    problems,
    unknown_fields,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

MATCH = {"any": [{"resources": {"kinds": ["Pod"]}}]}
RULE = {"name": "r", "match": MATCH, "validate": {"pattern": {"anything": {"goes": 1}}}}


def policy(spec: dict[str, Any] | None = None, **top: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kyverno.io/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": "p"},
        "spec": {"rules": [RULE]} | (spec or {}),
    } | top


def with_rule(**fields: Any) -> dict[str, Any]:
    return policy({"rules": [RULE | fields]})


def exception(spec: dict[str, Any] | None = None, **top: Any) -> dict[str, Any]:
    references = [{"policyName": "p", "ruleNames": ["r", "autogen-*"]}]
    return {
        "apiVersion": "kyverno.io/v2",
        "kind": "PolicyException",
        "metadata": {"name": "e", "namespace": "n"},
        "spec": {"exceptions": references, "match": MATCH} | (spec or {}),
    } | top


def cleanup(spec: dict[str, Any] | None = None, **top: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kyverno.io/v2",
        "kind": "CleanupPolicy",
        "metadata": {"name": "c", "namespace": "n"},
        "spec": {"schedule": "* * * * *", "match": MATCH} | (spec or {}),
    } | top


def refusal(doc: Any, parse: Any = parse_policy, **options: Any) -> PolicyError:
    with pytest.raises(PolicyError) as caught:
        parse(doc, **options)
    return caught.value


def test_absent_fields_have_their_defaults() -> None:
    made = parse_policy(policy())

    assert made.key == "p"
    assert made.apply_rules == "All"
    assert made.failure_policy == "Fail"
    assert made.failure_action == "Audit"
    assert made.failure_action_overrides == ()
    assert (made.emit_warning, made.admission, made.background) == (False, True, True)
    assert made.rules[0].skip_background_requests is True
    assert made.rules[0].mutate is None
    assert made.raw == policy()


def test_written_fields_are_taken_over() -> None:
    made = parse_policy(
        policy(
            {
                "applyRules": "One",
                "failurePolicy": "Ignore",
                "validationFailureAction": "enforce",
                "validationFailureActionOverrides": [
                    {"action": "audit", "namespaces": ["a", "b"], "namespaceSelector": {}}
                ],
                "emitWarning": True,
                "admission": False,
                "background": False,
            },
            metadata={"name": "p", "annotations": {"a": "b"}, "labels": {"c": "d"}},
        )
    )

    assert made.apply_rules == "One"
    assert made.failure_policy == "Ignore"
    assert made.failure_action == "Enforce"
    assert made.failure_action_overrides == (ActionOverride("Audit", ("a", "b"), {}),)
    assert (made.emit_warning, made.admission, made.background) == (True, False, False)
    assert made.annotations == {"a": "b"}
    assert made.labels == {"c": "d"}


def test_the_webhook_configuration_decides_the_failure_policy() -> None:
    both = {"failurePolicy": "Fail", "webhookConfiguration": {"failurePolicy": "Ignore"}}

    assert parse_policy(policy(both)).failure_policy == "Ignore"


def test_a_rules_action_is_spelt_one_way_and_its_document_stays_as_written() -> None:
    written = {"failureAction": "enforce", "pattern": {}}
    rule = parse_policy(with_rule(validate=written)).rules[0]

    assert rule.validate == {"failureAction": "Enforce", "pattern": {}}
    assert rule.raw["validate"] is written
    assert written["failureAction"] == "enforce"


def test_bodies_of_a_rule_are_taken_over_as_written() -> None:
    fields = {
        "exclude": {"any": []},
        "context": [{"name": "c", "variable": {"value": 1}}],
        "preconditions": {"any": []},
        "celPreconditions": [{"name": "n", "expression": "true"}],
        "imageExtractors": {"Task": [{"path": "/spec"}]},
        "mutate": {},
        "generate": {"kind": "ConfigMap"},
        "verifyImages": [{"imageReferences": ["*"]}],
        "reportProperties": {"a": "b"},
        "skipBackgroundRequests": False,
    }
    rule = build_rule(RULE | fields)

    assert rule.exclude == {"any": []}
    assert rule.context == tuple(fields["context"])  # type: ignore[arg-type] - wrong on purpose
    assert rule.preconditions == {"any": []}
    assert rule.cel_preconditions[0]["expression"] == "true"
    assert rule.image_extractors == {"Task": [{"path": "/spec"}]}
    assert rule.mutate is None
    assert rule.generate == {"kind": "ConfigMap"}
    assert rule.verify_images == ({"imageReferences": ["*"]},)
    assert rule.report_properties == {"a": "b"}
    assert rule.skip_background_requests is False


def test_only_namespaced_kinds_have_a_namespace_and_default_is_theirs() -> None:
    there = {"metadata": {"name": "p", "namespace": "n"}}

    assert parse_policy(policy(kind="Policy", **there)).key == "n/p"
    assert parse_policy(policy(kind="Policy")).key == "default/p"
    assert parse_policy(policy(**there)).key == "p"
    assert parse_cleanup_policy(cleanup(kind="ClusterCleanupPolicy")).key == "c"


@pytest.mark.parametrize("version", ["v2", "v2beta1", "v2alpha1"])
def test_all_versions_of_exceptions_and_cleanup_policies_are_served(version: str) -> None:
    found = parse_exception(exception(apiVersion=f"kyverno.io/{version}"))
    cleaned = parse_cleanup_policy(cleanup(apiVersion=f"kyverno.io/{version}"))

    assert found.api_version == f"kyverno.io/{version}"
    assert found.references == (PolicyReference("p", ("r", "autogen-*")),)
    assert found.key == "n/e"
    assert found.background is True
    assert cleaned.schedule == "* * * * *"


def test_an_exception_is_read_whole() -> None:
    made = parse_exception(
        exception(
            {
                "background": False,
                "conditions": {"any": []},
                "podSecurity": [{"controlName": "Seccomp"}],
            },
            metadata={"name": "e", "creationTimestamp": "2026-01-01T00:00:00Z"},
        )
    )

    assert made.background is False
    assert made.conditions == {"any": []}
    assert made.pod_security == ({"controlName": "Seccomp"},)
    assert made.created_at == "2026-01-01T00:00:00Z"
    assert made.namespace == "default"
    assert made.match == MATCH


def test_a_cleanup_policy_is_read_whole() -> None:
    made = parse_cleanup_policy(
        cleanup(
            {
                "exclude": MATCH,
                "context": [{"name": "x", "variable": {"value": 1}}],
                "conditions": {"all": []},
                "deletionPropagationPolicy": "Orphan",
            },
            status={"lastExecutionTime": "2026-01-01T00:00:00Z"},
        )
    )

    assert made.exclude == MATCH
    assert made.context[0]["name"] == "x"
    assert made.conditions == {"all": []}
    assert made.propagation == "Orphan"
    assert made.last_execution_at == "2026-01-01T00:00:00Z"


def test_an_unknown_field_is_refused_with_its_place_and_the_nearest_name() -> None:
    lines = {("spec", "rules", 0, "validate", "patern"): 17}

    def line_of(path: Sequence[str | int]) -> int:
        return lines[tuple(path)]

    error = refusal(with_rule(validate={"patern": {}}), at=Location("p.yaml", 3), line_of=line_of)

    assert error.message == "unknown field `spec.rules[0].validate.patern`"
    assert error.at == Location("p.yaml", 17, "spec.rules[0].validate.patern")
    assert error.help == "did you mean `pattern`?"


def test_unknown_fields_go_by_when_not_strict_but_wrong_types_do_not() -> None:
    assert parse_policy(with_rule(nonsense=1), strict=False).rules[0].name == "r"
    assert "must be a string" in refusal(with_rule(name=1), strict=False).message


def test_all_unknown_fields_can_be_listed() -> None:
    doc = policy({"Rules": [], "rules": [RULE | {"matches": {}}]}, extra=1)

    assert [(item.path, item.nearest) for item in unknown_fields(doc)] == [
        ("spec.rules[0].matches", "match"),
        ("spec.Rules", "rules"),
        ("extra", ""),
    ]
    assert [item.line for item in unknown_fields(doc, line_of=len)] == [4, 2, 1]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": 5}, "`spec.rules[0].name` must be a string, but is a number"),
        ({"name": "x" * 64}, "`spec.rules[0].name` is longer than 63 characters"),
        ({"match": []}, "`spec.rules[0].match` must be a map, but is a list"),
        ({"match": None}, "`spec.rules[0].match` is required"),
        ({"context": {}}, "`spec.rules[0].context` must be a list, but is a map"),
        ({"context": [{}]}, "`spec.rules[0].context[0].name` is required"),
        (
            {"validate": {"message": True}},
            "`spec.rules[0].validate.message` must be a string, but is true or false",
        ),
        (
            {"skipBackgroundRequests": "yes"},
            "`spec.rules[0].skipBackgroundRequests` must be true or false, but is a string",
        ),
        (
            {"validate": {"failureAction": "deny"}},
            "`spec.rules[0].validate.failureAction` is `deny`, but must be one of `Audit`, `Enforce`, `audit`, `enforce`",
        ),
        (
            {"reportProperties": {"a": 1}},
            "`spec.rules[0].reportProperties.a` must be a string, but is a number",
        ),
        (
            {"verifyImages": [{"attestors": [{"count": 0}]}]},
            "`spec.rules[0].verifyImages[0].attestors[0].count` must be at least 1",
        ),
        (
            {"verifyImages": [{"attestors": [{"count": "1"}]}]},
            "`spec.rules[0].verifyImages[0].attestors[0].count` must be a whole number, but is a string",
        ),
        (
            {"match": {"any": [{"resources": {"selector": {"matchLabels": {"a": 1}}}}]}},
            "`spec.rules[0].match.any[0].resources.selector.matchLabels.a` must be a string, but is a number",
        ),
        ({"preconditions": "x"}, "`spec.rules[0].preconditions` must be a map, but is a string"),
        (
            {"validate": {"foreach": [{"foreach": [{"list": 1}]}]}},
            "`spec.rules[0].validate.foreach[0].foreach[0].list` must be a string, but is a number",
        ),
    ],
)
def test_wrong_types_and_values_are_refused(fields: dict[str, Any], message: str) -> None:
    error = refusal(with_rule(**fields))

    assert error.message == message
    assert error.at.path == message.split("`")[1]


@pytest.mark.parametrize(
    "doc",
    [
        None,
        [],
        {},
        {"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy"},
        policy(apiVersion="kyverno.io/v2"),
        policy(apiVersion="example.com/v1"),
        policy(apiVersion="kyverno.io"),
        policy(kind="PolicyException"),
        policy(kind=["x"]),
        policy(metadata=None),
        policy() | {"spec": "x"},
        exception(),
    ],
)
def test_other_documents_are_no_policies(doc: Any) -> None:
    assert refusal(doc).message


def test_a_version_that_is_not_served_is_named_with_those_that_are() -> None:
    error = refusal(policy(apiVersion="kyverno.io/v2"))

    assert (
        error.message
        == "`kyverno.io/v2 ClusterPolicy` is not a ClusterPolicy or Policy of a known version"
    )
    assert error.help == "known versions are `kyverno.io/v1`, `kyverno.io/v2beta1`"


@pytest.mark.parametrize(
    "fields",
    [
        {"match": {"resources": {"kinds": ["Pod"]}}},
        {"exclude": {"clusterRoles": ["x"]}},
        {"validate": {"allowExistingViolations": True, "pattern": {}}},
        {"verifyImages": [{"key": "x"}]},
    ],
)
def test_deprecated_parts_are_for_v1_only(fields: dict[str, Any]) -> None:
    doc = with_rule(**fields)

    assert parse_policy(doc).rules
    assert "unknown field" in refusal(doc | {"apiVersion": "kyverno.io/v2beta1"}).message


@pytest.mark.parametrize(
    "fields",
    [
        {"validate": {"pattern": {"x": {"y": [1, None]}}, "message": None}},
        {"validate": {"anyPattern": [{"x": 1}]}},
        {"validate": {"assert": {"x": 1}}},
        {"validate": {"cel": {"expressions": [{"expression": "true"}], "generate": True}}},
        {"generate": {"data": {"x": [{"y": 1}]}}},
        {"mutate": {"patchStrategicMerge": {"x": {"y": 1}}}},
        {"preconditions": [{"key": "a", "operator": "In", "value": [1]}]},
        {"preconditions": {"all": [{"key": {"a": 1}, "operator": "Equals", "odd": 1}]}},
        {"verifyImages": [{"attestors": [{"entries": [{"attestor": {"entries": []}}]}]}]},
    ],
)
def test_free_parts_are_not_looked_into(fields: dict[str, Any]) -> None:
    assert parse_policy(with_rule(**fields)).rules


def test_an_entry_of_a_list_is_never_null() -> None:
    assert refusal(policy({"rules": [None]})).message == "`spec.rules[0]` must not be null"
    assert "must not be null" in refusal(exception({"exceptions": [None]}), parse_exception).message


def test_a_whole_number_may_be_written_with_a_point() -> None:
    assert parse_policy(policy({"webhookTimeoutSeconds": 5.0})).rules
    assert "a whole number" in refusal(policy({"webhookTimeoutSeconds": 5.5})).message
    assert "a whole number" in refusal(policy({"webhookTimeoutSeconds": True})).message


def test_bottomless_foreach_is_refused() -> None:
    entry: dict[str, Any] = {"list": "x"}
    for _ in range(5000):
        entry = {"list": "x", "foreach": [entry]}

    assert "nested too deeply" in refusal(with_rule(validate={"foreach": [entry]})).message


def test_problems_tell_their_fault() -> None:
    found = problems(policy({"rules": 1, "odd": 1, "applyRules": "Two"}))

    assert [item.fault for item in found] == [Fault.TYPE, Fault.UNKNOWN, Fault.VALUE]
    assert problems({"kind": "Other"}) == []
    assert path_text(("spec", "rules", 0, "match")) == "spec.rules[0].match"
