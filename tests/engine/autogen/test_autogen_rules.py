"""Rules for pod controllers: which are made, what they are called, what their text says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from engine.autogen import ANNOTATION, count, expand, generated_rules, reason_against
from engine.errors import LimitError
from engine.parse import parse_policy

if TYPE_CHECKING:
    from engine.model import Policy, Rule

POD = {"any": [{"resources": {"kinds": ["Pod"]}}]}
ALL_TEMPLATED = [
    "apps/v1/DaemonSet",
    "apps/v1/Deployment",
    "batch/v1/Job",
    "apps/v1/ReplicaSet",
    "v1/ReplicationController",
    "apps/v1/StatefulSet",
]


def policy(*rules: dict[str, Any], controllers: str | None = None) -> Policy:
    annotations = {} if controllers is None else {ANNOTATION: controllers}
    written = [{"name": f"r{number}", "match": POD} | rule for number, rule in enumerate(rules)]
    return parse_policy(
        {
            "apiVersion": "kyverno.io/v1",
            "kind": "ClusterPolicy",
            "metadata": {"name": "p", "annotations": annotations},
            "spec": {"rules": written},
        }
    )


def names(made: Policy) -> list[str]:
    return [rule.name for rule in expand(made)]


def kinds(rule: Rule) -> list[str]:
    return list(rule.match["any"][0]["resources"]["kinds"])


PATTERN = {"validate": {"pattern": {"spec": {"a": "1"}}}}


def test_a_pod_rule_is_extended_to_all_seven_controllers() -> None:
    own, templated, cron = expand(policy(PATTERN))

    assert own.name == "r0"
    assert templated.name == "autogen-r0"
    assert kinds(templated) == ALL_TEMPLATED
    assert templated.validate == {"pattern": {"spec": {"template": {"spec": {"a": "1"}}}}}
    assert cron.name == "autogen-cronjob-r0"
    assert kinds(cron) == ["batch/v1/CronJob"]
    assert cron.validate is not None
    assert cron.validate["pattern"]["spec"]["jobTemplate"]["spec"]["template"] == {
        "spec": {"a": "1"}
    }


@pytest.mark.parametrize(
    ("controllers", "templated", "has_cron"),
    [
        ("none", None, False),
        (" none ", None, False),
        ("", None, False),
        (",", None, False),
        ("Deployment", ["apps/v1/Deployment"], False),
        (" Job , CronJob", ["batch/v1/Job"], True),
        ("CronJob", None, True),
        ("Deployment,none", ["apps/v1/Deployment"], False),
        ("Deployment,Foo", ["apps/v1/Deployment"], False),
        ("Foo", ["Foo"], False),
        ("deployment", ["deployment"], False),
        ("all", ALL_TEMPLATED, True),
    ],
)
def test_the_annotation_chooses_the_controllers(
    controllers: str, templated: list[str] | None, has_cron: bool
) -> None:
    found = {
        rule.name: kinds(rule) for rule in generated_rules(policy(PATTERN, controllers=controllers))
    }

    assert found.get("autogen-r0") == templated
    assert ("autogen-cronjob-r0" in found) is has_cron


def rule_for(resources: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {**PATTERN, "match": {"any": [{"resources": resources}]}, **more}


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        (rule_for({"kinds": ["Pod"], "name": "x"}), "filters by name"),
        (rule_for({"kinds": ["Pod"], "names": ["x"]}), "filters by name"),
        (rule_for({"kinds": ["Pod"], "selector": {}}), "filters by labels or annotations"),
        (
            rule_for({"kinds": ["Pod"], "annotations": {"a": "b"}}),
            "filters by labels or annotations",
        ),
        (rule_for({"kinds": ["Pod", "Job"]}), "lists Pod beside other kinds"),
        (rule_for({"kinds": ["Job", "v1/Pod"]}), "lists Pod beside other kinds"),
        ({**PATTERN, "exclude": {"all": [{"resources": {"names": ["x"]}}]}}, "filters by name"),
        ({**PATTERN, "match": {"resources": {"kinds": ["Pod"], "name": "x"}}}, "filters by name"),
        ({"generate": {"kind": "ConfigMap"}}, "generates"),
        ({"mutate": {"patchesJson6902": "[]"}}, "uses patchesJson6902"),
        (
            {"mutate": {"foreach": [{"list": "x"}, {"patchesJson6902": "[]"}]}},
            "uses patchesJson6902",
        ),
    ],
)
def test_one_rule_can_speak_against_the_whole_policy(rule: dict[str, Any], reason: str) -> None:
    made = policy(PATTERN, rule)

    assert names(made) == ["r0", "r1"]
    assert reason_against(made.rules) == f"rule `r1` {reason}"


@pytest.mark.parametrize(
    "rule",
    [
        rule_for({"kinds": ["v1/Pod"]}),
        rule_for({"kinds": ["*"]}),
        rule_for({"kinds": ["Pod/exec"]}),
        rule_for({"kinds": ["ConfigMap", "Job"]}),
        {**PATTERN, "exclude": {"any": [{"resources": {"kinds": ["Deployment"]}}]}},
        {"validate": {"manifests": {"attestors": []}}},
        {"mutate": {"patchStrategicMerge": {"a": 1}, "targets": [{"kind": "Secret"}]}},
    ],
)
def test_a_rule_of_another_sort_is_left_alone_without_hindering_others(
    rule: dict[str, Any],
) -> None:
    assert names(policy(rule)) == ["r0"]
    assert names(policy(rule, PATTERN)) == ["r0", "r1", "autogen-r1", "autogen-cronjob-r1"]


def test_own_rules_named_like_generated_ones_give_way() -> None:
    own = {**PATTERN, "name": "autogen-r0"}

    assert names(policy(PATTERN, own)) == ["r0", "autogen-r0", "autogen-cronjob-r0"]
    assert names(policy(own)) == ["autogen-r0"]
    assert names(policy(own, controllers="none")) == ["autogen-r0"]


def test_names_are_cut_to_63_characters() -> None:
    found = names(policy({**PATTERN, "name": "x" * 63}))

    assert found[1] == "autogen-" + "x" * 55
    assert found[2] == "autogen-cronjob-" + "x" * 47


def test_texts_follow_the_pod_into_the_template() -> None:
    rule = {
        "preconditions": {
            "all": [
                {"key": "{{ request.object.metadata.name }}", "operator": "Equals", "value": "a"}
            ]
        },
        "context": [{"name": "c", "variable": {"jmesPath": "request.oldObject.spec.x"}}],
        "validate": {
            "message": "{{ request.object.spec.x }} {{ request.object.kind }} object.spec",
            "deny": {
                "conditions": {
                    "any": [
                        {
                            "key": "{{request.oldObject.metadata.x}}",
                            "operator": "Equals",
                            "value": 1,
                        }
                    ]
                }
            },
        },
    }
    templated, cron = generated_rules(policy(rule))

    assert templated.context[0]["variable"]["jmesPath"] == "request.oldObject.spec.template.spec.x"
    assert (
        templated.preconditions["all"][0]["key"]
        == "{{ request.object.spec.template.metadata.name }}"
    )
    assert templated.validate is not None
    assert cron.validate is not None
    assert (
        templated.validate["message"]
        == "{{ request.object.spec.template.spec.x }} {{ request.object.kind }} object.spec"
    )
    assert (
        cron.validate["deny"]["conditions"]["any"][0]["key"]
        == "{{request.oldObject.spec.jobTemplate.spec.template.metadata.x}}"
    )


def test_cel_texts_follow_too_with_or_without_request() -> None:
    rule = {
        "validate": {
            "cel": {
                "expressions": [
                    {"expression": "object.spec.a == oldObject.metadata.b && request.object.spec.c"}
                ]
            }
        }
    }
    templated, _cron = generated_rules(policy(rule))

    assert templated.validate is not None
    assert (
        templated.validate["cel"]["expressions"][0]["expression"]
        == "object.spec.template.spec.a == oldObject.spec.template.metadata.b && request.object.spec.template.spec.c"
    )


def test_references_in_a_message_follow_the_pattern() -> None:
    rule = {
        "validate": {
            "message": "is $(./pattern/spec/a) not pattern",
            "pattern": {"spec": {"a": "1"}},
        }
    }
    several = {
        "validate": {"message": "$(/anyPattern/0/spec/a)", "anyPattern": [{"spec": {"a": "1"}}]}
    }
    first, _, second, _ = generated_rules(policy(rule, several))

    assert first.validate is not None
    assert second.validate is not None
    assert first.validate["message"] == "is $(./pattern/spec/template/spec/a) not pattern"
    assert second.validate["message"] == "$(/anyPattern/0/spec/template/spec/a)"


def test_patches_in_nested_foreach_are_wrapped_where_they_stand() -> None:
    patch = {"patchStrategicMerge": {"spec": {"x": 1}}}
    rule = {
        "mutate": {
            "foreach": [{"list": "a", "order": "Ascending", "foreach": [{"list": "b", **patch}]}]
        }
    }
    templated, _cron = generated_rules(policy(rule))

    assert templated.mutate == {
        "foreach": [
            {
                "list": "a",
                "order": "Ascending",
                "foreach": [
                    {"list": "b", "patchStrategicMerge": {"spec": {"template": {"spec": {"x": 1}}}}}
                ],
            }
        ]
    }


def test_other_entries_keep_their_kinds_in_templates_but_not_for_cron_jobs() -> None:
    match = {"any": [POD["any"][0], {"resources": {"kinds": ["ConfigMap"]}}]}
    templated, cron = generated_rules(policy({**PATTERN, "match": match}))

    assert templated.match["any"][1]["resources"]["kinds"] == ["ConfigMap"]
    assert cron.match["any"][1]["resources"]["kinds"] == ["batch/v1/CronJob"]


def test_a_legacy_block_and_its_exclude_name_the_controllers() -> None:
    rule = {
        **PATTERN,
        "match": {"resources": {"kinds": ["Pod"], "namespaces": ["a"]}},
        "exclude": {"resources": {"namespaces": ["b"]}},
    }
    templated, _cron = generated_rules(policy(rule))

    assert templated.match == {"resources": {"kinds": ALL_TEMPLATED, "namespaces": ["a"]}}
    assert templated.exclude == {"resources": {"namespaces": ["b"]}}


def test_everything_else_of_the_rule_stays() -> None:
    rule = {
        "validate": {"failureAction": "Enforce", "allowExistingViolations": False, "pattern": {}},
        "reportProperties": {"a": "b"},
        "skipBackgroundRequests": False,
    }
    templated, _cron = generated_rules(policy(rule))

    assert templated.validate is not None
    assert templated.validate["failureAction"] == "Enforce"
    assert templated.validate["allowExistingViolations"] is False
    assert templated.report_properties == {"a": "b"}
    assert templated.skip_background_requests is False


def test_the_written_policy_is_left_as_it_was() -> None:
    made = policy(PATTERN)
    expand(made)

    assert made.rules[0].raw == {"name": "r0", "match": POD, **PATTERN}
    assert PATTERN == {"validate": {"pattern": {"spec": {"a": "1"}}}}


def test_a_bottomless_rule_is_an_engine_error() -> None:
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"a": deep}

    with pytest.raises(LimitError, match="nested too deeply"):
        expand(policy({"validate": {"pattern": deep}}))


@pytest.mark.parametrize(
    ("asked", "left"),
    [
        (None, ["r0", "autogen-r0", "autogen-cronjob-r0"]),
        ({"Pod", "Service"}, ["r0"]),
        ({"Deployment"}, ["r0", "autogen-r0"]),
        ({"CronJob"}, ["r0", "autogen-cronjob-r0"]),
    ],
)
def test_for_some_kinds_only_the_rules_that_may_concern_them_are_made(
    asked: set[str] | None, left: list[str]
) -> None:
    made = policy(PATTERN)

    assert [rule.name for rule in expand(made, asked)] == left
    assert count(made) == 3


def test_a_rule_with_a_filter_for_more_than_pods_is_made_for_all_kinds() -> None:
    of_others = {"any": [*POD["any"], {"resources": {"kinds": ["Service"]}}]}
    everywhere = {"any": [*POD["any"], {"resources": {"namespaces": ["team-*"]}}]}

    for match in (of_others, everywhere):
        made = policy(PATTERN | {"match": match})
        assert expand(made, {"Service"}) == expand(made)


def test_own_rules_named_like_generated_ones_give_way_whatever_kinds_are_asked_for() -> None:
    made = policy(PATTERN, PATTERN | {"name": "autogen-r0"})

    assert [rule.name for rule in expand(made, {"Pod"})] == ["r0"]


def test_rules_for_kinds_of_the_annotation_that_nobody_knows_are_always_made() -> None:
    made = policy(PATTERN, controllers="Rollout")

    assert [rule.name for rule in expand(made, {"Rollout"})] == ["r0", "autogen-r0"]
