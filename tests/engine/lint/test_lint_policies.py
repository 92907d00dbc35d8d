"""Policies that admission refuses, and policies it must not refuse."""

from __future__ import annotations

from typing import Any

import pytest

from engine.lint import Finding, lint_policy
from engine.parse import parse_policy

MATCH = {"any": [{"resources": {"kinds": ["ConfigMap"]}}]}
DENY = {"deny": {"conditions": {"all": [{"key": "a", "operator": "Equals", "value": "a"}]}}}
RULE = {"name": "r", "match": MATCH, "validate": DENY}
GENERATED = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "data": {}}


def policy(*rules: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kyverno.io/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": "p"},
        "spec": {"background": False, "rules": list(rules) or [RULE]} | spec,
    }


def namespaced(*rules: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return policy(*rules, **spec) | {
        "kind": "Policy",
        "metadata": {"name": "p", "namespace": "team"},
    }


def rule(**fields: Any) -> dict[str, Any]:
    return {"name": "r", "match": MATCH} | fields


def found(doc: dict[str, Any], severity: str = "error") -> list[str]:
    return [str(item) for item in lint_policy(parse_policy(doc)) if item.severity == severity]


def test_a_plain_policy_has_no_findings() -> None:
    assert lint_policy(parse_policy(policy())) == ()


def test_a_finding_reads_as_place_and_message() -> None:
    assert str(Finding("error", "wrong", "spec")) == "spec: wrong"
    assert str(Finding("error", "wrong")) == "wrong"


@pytest.mark.parametrize(
    ("doc", "expected"),
    [
        (policy(admission=False, background=True), []),
        (
            policy(admission=False),
            ["spec: Forbidden: disabling both admission and background processing is not allowed"],
        ),
        (
            policy(rule(mutate={"patchStrategicMerge": {}}), admission=False, background=True),
            [
                "spec: Forbidden: disabling admission processing is only allowed with validation policies"
            ],
        ),
        (
            policy(generateExistingOnPolicyUpdate=False),
            [
                (
                    "spec.generateExistingOnPolicyUpdate: Forbidden: deprecated field, define generateExisting under the"
                    " generate rule instead"
                )
            ],
        ),
        (
            policy(webhookTimeoutSeconds=0),
            [
                "spec.webhookTimeoutSeconds: Invalid value: 0: the timeout value must be between 1 and 30 seconds"
            ],
        ),
        (policy(webhookTimeoutSeconds=1), []),
        (policy(webhookConfiguration={"timeoutSeconds": 30}), []),
        (
            policy(webhookConfiguration={"timeoutSeconds": 31}),
            [
                (
                    "spec.webhookConfiguration.timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and"
                    " 30 seconds"
                )
            ],
        ),
        (
            namespaced(validationFailureActionOverrides=[{"action": "Audit"}]),
            [
                (
                    "spec.validationFailureActionOverrides: Forbidden: Use of validationFailureActionOverrides is"
                    " supported only with ClusterPolicy"
                )
            ],
        ),
        (policy(validationFailureActionOverrides=[{"action": "Audit"}]), []),
        (
            policy() | {"metadata": {"name": "x" * 64}},
            [f'metadata.name: Invalid value: "{"x" * 64}": must be no more than 63 characters'],
        ),
        (policy() | {"metadata": {"name": "x" * 63}}, []),
        (
            policy() | {"metadata": {"name": "p", "namespace": "n"}},
            ["metadata.namespace: Forbidden: namespace must not be set for a ClusterPolicy"],
        ),
        (
            policy(RULE, RULE),
            [
                'spec.rules[0].name: Duplicate value: "r": duplicate rule name',
                'spec.rules[1].name: Duplicate value: "r": duplicate rule name',
            ],
        ),
        (policy(RULE | {"name": ""}), ["spec.rules[0].name: Required value: a rule needs a name"]),
    ],
)
def test_the_policy_as_a_whole(doc: dict[str, Any], expected: list[str]) -> None:
    assert found(doc) == expected


@pytest.mark.parametrize(
    ("spec", "warned"),
    [
        ({"validationFailureAction": "enforce"}, ["lower case", "deprecated, use `failureAction`"]),
        ({"failurePolicy": "Fail"}, ["`webhookConfiguration.failurePolicy`"]),
        ({"generateExisting": True}, ["`generateExisting` is deprecated"]),
        ({"validationFailureAction": "Audit"}, ["`validationFailureAction` is deprecated"]),
    ],
)
def test_deprecated_fields_warn_only(spec: dict[str, Any], warned: list[str]) -> None:
    doc = policy(**spec)

    assert found(doc) == []
    said = found(doc, "warning")
    assert len(said) == len(warned)
    assert all(part in text for part, text in zip(warned, said, strict=True))


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (
            {},
            "No operation defined in the rule 'r'.(supported operations: mutate,validate,generate,verifyImages)",
        ),
        ({"mutate": {"patchesJson6902": ""}}, "No operation defined in the rule 'r'."),
        (
            {"validate": DENY, "generate": GENERATED},
            "Multiple operations defined in the rule 'r', only one",
        ),
        ({"validate": {"message": "m"}}, "only one of pattern, anyPattern"),
        ({"validate": {"pattern": {}, "anyPattern": []}}, "only one of pattern, anyPattern"),
        ({"validate": {"anyPattern": {}}}, "anyPattern must be a list"),
        (
            {"mutate": {"patchStrategicMerge": {}, "patchesJson6902": "[]"}},
            "only one of patchStrategicMerge",
        ),
        (
            {"mutate": {"targets": [{}], "patchStrategicMerge": {}}},
            "Required value: a target needs apiVersion",
        ),
        (
            {"generate": GENERATED | {"clone": {"name": "x"}}},
            "only one of generate patterns(data, clone, cloneList and foreach) can be specified",
        ),
        (
            {"generate": {"kind": "ConfigMap", "name": "x"}},
            "Required value: apiVersion of the generated object",
        ),
        ({"validate": {"foreach": [{"pattern": {}}]}}, "Required value: a foreach needs a list"),
        (
            {"validate": DENY, "imageExtractors": {"A": [{"path": "/x"}]}},
            "only allowed with verifyImages",
        ),
        ({"verifyImages": [{"mutateDigest": False}]}, "An image reference is required"),
        (
            {"verifyImages": [{"imageReferences": ["*"]}]},
            "mutateDigest must be set to false for 'Audit'",
        ),
        (
            {"verifyImages": [{"imageReferences": ["{{a}}"], "mutateDigest": False}]},
            "should not have variables in imageReferences",
        ),
        ({"validate": {"pattern": {"+(a)": "1"}}}, "unsupported anchor +(a)"),
        (
            {"validate": {"anyPattern": [{"^(a)": {}}]}},
            "existence anchor should have value of type list",
        ),
        (
            {"mutate": {"patchStrategicMerge": {"metadata": {"labels": {"a": 1}}}}},
            "labels and annotations supports only string",
        ),
        (
            {"mutate": {"patchesJson6902": "- {op: add, path: a}"}},
            "path must begin with a forward slash: spec.rules[0]: a",
        ),
        (
            {"mutate": {"patchesJson6902": "- {op: add, path: '/a/{{x}}'}"}},
            "should not have variables in patchesJSON6902 path section",
        ),
        ({"mutate": {"patchesJson6902": "- [a"}}, "failed to decode the patch"),
        (
            {
                "validate": {
                    "podSecurity": {
                        "level": "baseline",
                        "exclude": [{"controlName": "Capabilities"}],
                    }
                }
            },
            "exclude.images must be specified",
        ),
    ],
)
def test_an_operation_that_cannot_work_is_refused(fields: dict[str, Any], expected: str) -> None:
    said = found(policy(rule(**fields)))

    assert any(expected in text for text in said), said


@pytest.mark.parametrize(
    "fields",
    [
        {"mutate": {"patchStrategicMerge": {}}},
        {
            "mutate": {
                "foreach": [
                    {"list": "a", "patchesJson6902": "- {op: add, path: '/a/{{elementIndex}}'}"}
                ]
            }
        },
        {"mutate": {"patchesJson6902": "- {op: {{request.operation}}"}},
        {"generate": {"apiVersion": "v1", "kind": "X", "name": "x"}},
        {"generate": {"cloneList": {"kinds": ["v1/Secret"]}}},
        {"verifyImages": [{"imageReferences": ["*"], "failureAction": "Enforce"}]},
        {"validate": {"pattern": {"^(a)": []}}},
        {"validate": {"assert": {}}},
    ],
)
def test_unusual_operations_that_work_are_accepted(fields: dict[str, Any]) -> None:
    assert found(policy(rule(**fields))) == []


def test_a_foreach_list_that_cannot_be_read_is_warned_of() -> None:
    doc = policy(rule(validate={"foreach": [{"list": "bad[", "pattern": {}}]}))

    assert found(doc) == []
    assert "failed to parse JMESPath bad[" in found(doc, "warning")[0]


def test_deeply_nested_foreach_is_refused() -> None:
    entry: dict[str, Any] = {"list": "a", "pattern": {}}
    for _ in range(12):
        entry = {"list": "a", "foreach": [entry]}

    assert any(
        "nested deeper" in text for text in found(policy(rule(validate={"foreach": [entry]})))
    )


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"name": "x"}, "exactly one of variable, configMap"),
        ({"name": "x", "variable": {"value": 1}, "configMap": {"name": "c"}}, "exactly one of"),
        (
            {"name": "x", "variable": {"value": None}},
            "a variable must define a value or a jmesPath expression",
        ),
        (
            {"name": "x", "variable": {"value": 1, "default": 2}},
            "a variable must define a default value only when",
        ),
        (
            {"name": "x", "variable": {"jmesPath": "length("}},
            "failed to parse JMESPath length(: SyntaxError: Incomplete expression",
        ),
        (
            {"name": "x", "apiCall": {"method": "GET"}},
            "a context entry must define a urlPath or a service",
        ),
        (
            {"name": "x", "apiCall": {"urlPath": "/x", "service": {"url": "u"}}},
            "a URL cannot be used for service",
        ),
        (
            {"name": "x", "apiCall": {"urlPath": "/x", "data": [{"key": "a", "value": 1}]}},
            "only POST may define a data",
        ),
    ],
)
def test_a_context_entry_that_cannot_be_loaded_is_refused(
    entry: dict[str, Any], expected: str
) -> None:
    said = found(policy(rule(validate=DENY, context=[entry])))

    assert any(expected in text for text in said), said


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{{ request.object.x }}", None),
        ("{{ known }} {{ known.a[0] }}", None),
        ("{{ length(x) }}", None),
        ("{{ nope }}", "variable nope must match regex"),
        ("{{ }}", "invalid query (nil)"),
        ("{{ request..x }}", "invalid JMESPath query request..x: SyntaxError: Expected identifier"),
        (
            "{{ element.a }}",
            "variable 'element.a' present outside of foreach at path /validate/message",
        ),
        ("{{ elementIndex }}", "variable 'elementIndex' present outside of foreach"),
        (r"\{{ nope }}", None),
        ("{{ request.object.{{ nope }} }}", "variable nope must match regex"),
        ("$(./../deny)", None),
        ("$(/nowhere)", "got nil resolved variable $(/nowhere) at path /validate/message: <nil>"),
        ("$(./../number)", "NotResolvedReferenceErr,reference $(./../number) not resolved"),
        (r"\$(/nowhere)", None),
    ],
)
def test_variables_and_references_of_a_message(text: str, expected: str | None) -> None:
    context = [{"name": "known", "variable": {"value": 1}}]
    written = {"message": text, "assert": None, **DENY}
    doc = policy(rule(validate=written, context=context))
    if "number" in text:
        doc["spec"]["rules"][0]["validate"]["elementScope"] = 5
        doc["spec"]["rules"][0]["validate"]["message"] = text.replace("number", "elementScope")
        expected = expected.replace("number", "elementScope") if expected else None
    said = [
        str(item)
        for item in lint_policy(parse_policy(doc, strict=False))
        if item.severity == "error"
    ]

    assert (said == []) if expected is None else any(expected in one for one in said), said


def test_target_is_known_where_a_rule_has_targets() -> None:
    patch = {"patchStrategicMerge": {"a": "{{ target.x }}"}}
    targets = [{"apiVersion": "v1", "kind": "Secret"}]

    assert found(policy(rule(mutate=patch | {"targets": targets}))) == []
    assert "variable target.x must match" in found(policy(rule(mutate=patch)))[0]


_LABELLED = {"patchStrategicMerge": {"metadata": {"labels": {"a": "b"}}}}
_UNTARGETED = (
    "spec.rules[0].mutate.targets: Required value: targets have to be specified when"
    " mutateExistingOnPolicyUpdate is set"
)


def test_a_rule_that_changes_what_is_there_says_what_that_is() -> None:
    own = rule(mutate=_LABELLED | {"mutateExistingOnPolicyUpdate": True})

    assert found(policy(own)) == [_UNTARGETED]
    assert found(policy(rule(mutate=_LABELLED), mutateExistingOnPolicyUpdate=True)) == [_UNTARGETED]


@pytest.mark.parametrize("field", ["name", "namespace"])
def test_no_target_is_named_by_a_target(field: str) -> None:
    patch = {"patchStrategicMerge": {"metadata": {"labels": {"a": "{{ target.metadata.name }}"}}}}
    target = {"apiVersion": "v1", "kind": "Secret", "name": "x", "namespace": "y"}
    said = found(policy(rule(mutate=patch | {"targets": [target | {field: "{{ target.metadata.name }}"}]})))  # fmt: skip
    assert len(said) == 1
    assert "policy contains invalid variables: invalid variables defined at mutate.targets[0]: variable target.metadata.name must match regex" in said[0]  # fmt: skip
    for fine in ("{{ request.object.metadata.name }}", "{{ known.data.x }}"):
        context = [{"name": "known", "configMap": {"name": "c", "namespace": "d"}}]
        named = patch | {"targets": [target | {field: fine}]}
        assert found(policy(rule(mutate=named, context=context))) == []


def test_a_rule_that_says_it_leaves_alone_what_is_there_needs_no_targets() -> None:
    own = rule(mutate=_LABELLED | {"mutateExistingOnPolicyUpdate": False})

    assert found(policy(own, mutateExistingOnPolicyUpdate=True)) == []


def test_match_and_exclude_take_no_variables() -> None:
    block = {"any": [{"resources": {"kinds": ["ConfigMap"], "names": ["{{ request.x }}"]}}]}

    assert (
        'rule "r" should not have variables in match section'
        in found(policy(RULE | {"match": block}))[0]
    )
    assert (
        'rule "r" should not have variables in exclude section'
        in found(policy(RULE | {"exclude": block}))[0]
    )


@pytest.mark.parametrize(
    "variable",
    [
        "serviceAccountName",
        "serviceAccountNamespace",
        "request.userInfo",
        "request.roles",
        "request.clusterRoles",
    ],
)
def test_background_scans_know_no_requester(variable: str) -> None:
    written = rule(validate=DENY | {"message": f"{{{{ {variable} }}}}"})

    assert found(policy(written)) == []
    assert found(policy(written, background=True))[0].endswith(
        "only select variables are allowed in background mode. Set spec.background=false to disable background mode for"
        f" this policy rule: variable {{{{ {variable} }}}} is not allowed "
    )


@pytest.mark.parametrize("field", ["subjects", "roles", "clusterRoles"])
def test_background_scans_cannot_filter_by_requester(field: str) -> None:
    filters = {"subjects": [{"kind": "User", "name": "x"}], "roles": ["a:b"], "clusterRoles": ["x"]}
    block = {"any": [{"resources": {"kinds": ["ConfigMap"]}, field: filters[field]}]}
    excluded = {"any": [{field: filters[field]}]}

    assert found(policy(RULE | {"match": block})) == []
    assert (
        f"spec/rules/0/match/any/0/{field} "
        in found(policy(RULE | {"match": block}, background=True))[0]
    )
    assert (
        f"spec/rules/0/exclude/any/0/{field} "
        in found(policy(RULE | {"exclude": excluded}, background=True))[0]
    )


@pytest.mark.parametrize(
    ("match", "exclude", "is_empty"),
    [
        (MATCH, {}, True),
        (MATCH, {"any": [{}]}, False),
        (MATCH, MATCH, True),
        (MATCH, {"any": [{"resources": {"namespaces": ["x"]}}]}, False),
        ({"all": MATCH["any"]}, {"all": MATCH["any"]}, False),
        ({"resources": {"kinds": ["A"]}}, {"any": [{"resources": {"namespaces": ["x"]}}]}, False),
        ({"resources": {"kinds": ["A"]}}, {"resources": {"namespaces": ["x"]}}, False),
        ({"resources": {"kinds": ["A"]}}, {"resources": {"kinds": ["A", "B"]}}, True),
        ({"resources": {"kinds": ["A", "C"]}}, {"resources": {"kinds": ["A", "B"]}}, False),
        (
            {"resources": {"kinds": ["A"], "namespaces": ["x"]}},
            {"resources": {"kinds": ["A"]}},
            True,
        ),
        (
            {"resources": {"kinds": ["A"]}},
            {"resources": {"kinds": ["A"], "namespaces": ["x"]}},
            False,
        ),
    ],
)
def test_a_rule_that_excludes_all_it_matches_is_refused(
    match: Any, exclude: Any, is_empty: bool
) -> None:
    said = found(policy(RULE | {"match": match, "exclude": exclude}))

    assert said == (["spec.rules[0]: Rule is matching an empty set"] if is_empty else [])


def test_v2beta1_has_no_in_and_not_in() -> None:
    deny = {"deny": {"conditions": {"any": [{"key": "a", "operator": "In", "value": ["a"]}]}}}
    doc = policy(rule(validate=deny))

    assert found(doc) == []
    assert (
        "entered value of `operator` is invalid"
        in found(doc | {"apiVersion": "kyverno.io/v2beta1"})[0]
    )


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (
            {"match": {"any": [{"resources": {"kinds": ["ConfigMap"], "namespaces": ["x"]}}]}},
            "Filtering namespaces",
        ),
        (
            {"match": {"any": [{"resources": {"kinds": ["v1/Namespace"]}}]}},
            "cluster-scoped kind `v1/Namespace`",
        ),
        (
            {"validate": None, "generate": GENERATED | {"namespace": "other"}},
            "expected: team, received: other",
        ),
        (
            {"validate": None, "generate": GENERATED | {"namespace": "{{ request.x }}"}},
            "expected: team, received: {{",
        ),
        (
            {
                "validate": None,
                "generate": {
                    **GENERATED,
                    "data": None,
                    "namespace": "team",
                    "clone": {"name": "x", "namespace": "other"},
                },
            },
            "clone.namespace: Forbidden",
        ),
        (
            {
                "validate": None,
                "mutate": {
                    "targets": [{"apiVersion": "v1", "kind": "Secret", "namespace": "other"}],
                    "patchStrategicMerge": {},
                },
            },
            "This field can be ignored or should have value of the namespace",
        ),
        (
            {"context": [{"name": "c", "configMap": {"name": "c", "namespace": "other"}}]},
            "may read ConfigMaps of its namespace",
        ),
        (
            {"context": [{"name": "c", "apiCall": {"urlPath": "/api/v1/namespaces/other/pods"}}]},
            "must lie in `/namespaces/team/`",
        ),
        (
            {"context": [{"name": "c", "apiCall": {"urlPath": "/api/v1/nodes"}}]},
            "must lie in `/namespaces/team/`",
        ),
        (
            {
                "context": [
                    {"name": "c", "apiCall": {"urlPath": "/api/v1/namespaces/team/../other/pods"}}
                ]
            },
            "must lie in",
        ),
        (
            {
                "context": [
                    {"name": "c", "apiCall": {"urlPath": "/api/v1/namespaces/team/%2e%2e/x"}}
                ]
            },
            "must lie in",
        ),
        (
            {
                "context": [
                    {"name": "c", "apiCall": {"urlPath": "/api/v1/nodes?x=/namespaces/team/"}}
                ]
            },
            "must lie in",
        ),
    ],
)
def test_a_namespaced_policy_stays_in_its_namespace(fields: dict[str, Any], expected: str) -> None:
    said = found(namespaced(RULE | fields))

    assert any(expected in text for text in said), said


def test_a_namespaced_policy_may_use_its_own_namespace() -> None:
    context = [
        {"name": "c", "configMap": {"name": "c", "namespace": "team"}},
        {"name": "a", "apiCall": {"urlPath": "/api/v1/namespaces/team/pods?limit=1"}},
        {"name": "b", "apiCall": {"urlPath": "/api/v1/namespaces/team"}},
    ]
    generated = GENERATED | {"namespace": "team"}

    assert found(namespaced(RULE | {"context": context})) == []
    assert found(namespaced(rule(generate=generated))) == []


@pytest.mark.parametrize("operator", ["In", "NotIn"])
def test_a_deprecated_operator_is_warned_of_in_upstreams_words(operator: str) -> None:
    conditions = {"any": [{"key": "a", "operator": operator, "value": ["a"]}]}
    doc = policy(rule(validate={"deny": {"conditions": conditions}}))
    [warning] = found(doc, "warning")
    assert warning.startswith(
        f"Operator {operator} has been deprecated and will be removed soon. Use Any{operator} or All{operator}"
    )
    [finding] = lint_policy(parse_policy(doc))
    assert finding.path == "spec.rules[0].validate.deny.conditions.any[0].operator"
    assert found(doc) == []


def test_an_operator_in_use_is_not_warned_of() -> None:
    conditions = {"any": [{"key": "a", "operator": "AnyIn", "value": ["a"]}]}
    assert found(policy(rule(validate={"deny": {"conditions": conditions}})), "warning") == []


KEYS = {"keys": {"publicKeys": "k"}}
EVERY = {"any": [{"resources": {"kinds": ["*"]}}]}


def verifying(*entries: Any, **fields: Any) -> dict[str, Any]:
    attestors = [{"entries": list(entries)} | fields]
    block = {"imageReferences": ["*"], "failureAction": "Enforce", "attestors": attestors}
    return {"verifyImages": [block]}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (verifying(), "attestors[0]: Invalid value: An entry is required"),
        (verifying(KEYS, count=2), "Invalid value: Count cannot exceed available entries"),
        (verifying(KEYS | {"certificates": {"cert": "c"}}), "or a nested attestor is required"),
        (verifying({}), "or a nested attestor is required"),
        (verifying({"keys": {}}), "A public key, kms key or secret is required"),
        (verifying({"certificates": {}}), "A certificate or certificate chain is required"),
        (verifying({"keyless": {"issuer": "i"}}), "Either Rekor URL or roots are required"),
        (verifying({"keyless": {"rekor": {}}}), "An URL is required"),
        (
            verifying({"attestor": {"entries": [{"keys": {}}]}}),
            "attestor.entries[0]: Invalid value: A public key",
        ),
        (
            {"verifyImages": [{**verifying(KEYS)["verifyImages"][0], "type": "Notary"}]},
            "Keys field is not allowed for type notary",
        ),
    ],
)
def test_an_attestor_that_can_vouch_for_nothing_is_refused(
    fields: dict[str, Any], expected: str
) -> None:
    assert any(expected in text for text in found(policy(rule(**fields))))
    assert found(policy(rule(**verifying(KEYS)))) == []


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"validate": {"foreach": [{"list": "a", "pattern": {}}]}}, "does not support rule type"),
        ({"generate": GENERATED}, "does not support rule type"),
        (verifying(KEYS), "does not support rule type"),
        ({"validate": {"pattern": {"spec": {}}}}, "can only deal with the metadata field"),
        ({"mutate": {"patchStrategicMerge": {"spec": {}}}}, "can only deal with the metadata"),
    ],
)
def test_a_rule_for_every_kind_keeps_to_what_all_kinds_have(
    fields: dict[str, Any], expected: str
) -> None:
    assert any(expected in text for text in found(policy(rule(**fields) | {"match": EVERY})))


def test_a_rule_for_every_kind_is_for_requests_and_names_no_other_kind() -> None:
    named = rule(match=EVERY, validate={"pattern": {"metadata": {"name": "?*"}}})
    assert found(policy(named)) == []
    assert (
        "wildcard policy not allowed in background mode" in found(policy(named, background=True))[0]
    )
    both = {"any": [{"resources": {"kinds": ["*", "Pod"]}}]}
    assert "can not deal with more than one kind" in found(policy(named | {"match": both}))[0]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"context": [{"name": "", "variable": {"value": 1}}]}, "a name is required for context"),
        (
            {"context": [{"name": "request.x", "variable": {"value": 1}}]},
            "entry name request.x is invalid as it conflicts with a pre-defined variable request",
        ),
        (
            {"context": [{"name": "c", "configMap": {"name": "c"}}]},
            "a namespace is required for configMap context entry",
        ),
        (
            {"context": [{"name": "c", "imageRegistry": {"reference": ""}}]},
            "a reference is required for imageRegistry context entry",
        ),
        (
            {
                "preconditions": {
                    "all": [
                        {
                            "key": "{{ request.operation }}",
                            "operator": "AnyIn",
                            "value": ["CREATE", "MAKE"],
                        }
                    ]
                }
            },
            "unknown value 'MAKE' found under the 'value' field. Only the following values are allowed: [CREATE, UPDATE, DELETE, CONNECT]",
        ),
        (
            {"match": {"any": [{"resources": {"kinds": ["Pod"], "name": "a", "names": ["b"]}}]}},
            'Invalid value: "a": Both name and names can not be specified together',
        ),
        (
            {"validate": {"foreach": [{"list": "a"}]}},
            "only one of pattern, anyPattern, deny, foreach",
        ),
        ({"validate": {"foreach": [{"list": "a", "pattern": {}, **DENY}]}}, "only one of pattern"),
    ],
)
def test_what_means_nothing_or_two_things_in_a_rule_is_refused(
    fields: dict[str, Any], expected: str
) -> None:
    assert any(expected in text for text in found(policy(RULE | fields)))


def test_what_an_operation_is_compared_with_may_be_a_variable() -> None:
    asked = {"key": "{{request.operation}}", "operator": "Equals", "value": "{{ request.name }}"}

    assert found(policy(RULE | {"preconditions": {"all": [asked]}})) == []


def overridden(*pairs: tuple[str, str]) -> dict[str, Any]:
    listed = [{"action": action, "namespaces": [name]} for action, name in pairs]
    return policy(validationFailureActionOverrides=listed)


def test_a_namespace_has_one_action() -> None:
    at = "spec.validationFailureActionOverrides[1].namespaces"

    assert found(overridden(("Enforce", "a"), ("Audit", "b"), ("audit", "b*"))) == []
    assert found(overridden(("Enforce", "a"), ("Audit", "a"))) == [
        f"{at}: conflicting namespaces found in path: {at}: a"
    ]
    assert found(overridden(("Enforce", "a*"), ("Audit", "ab"))) == [
        f"{at}: wildcard pattern 'a*' matches with namespace 'ab'"
    ]


def test_a_copy_needs_the_name_of_its_source() -> None:
    copied = {"apiVersion": "v1", "kind": "Secret", "name": "x", "clone": {"namespace": "n"}}

    assert "name cannot be empty" in found(policy(rule(generate=copied)))[0]


def test_a_namespaced_policy_may_leave_its_namespace_to_targets_out() -> None:
    target = {"apiVersion": "v1", "kind": "ConfigMap", "name": "c"}

    assert found(namespaced(rule(mutate={"targets": [target], "patchStrategicMerge": {}}))) == []


def test_conditions_in_cel_beside_another_operation_are_warned_of() -> None:
    said = found(
        policy(RULE | {"celPreconditions": [{"name": "n", "expression": "false"}]}), "warning"
    )

    assert "count for validate.cel only" in said[0]
