"""Which reviews a policy written in CEL concerns, and why not the others."""

from __future__ import annotations

from typing import Any

import pytest

from engine.evaluate.cel.constraints import compile_constraints
from engine.model import Review, review_of
from tests.engine.celpolicies.documents import config_map, pod, rule

NAMESPACE = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": "dev", "labels": {"tier": "own"}},
}
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
TIER = {"matchLabels": {"tier": "prod"}}


def _applies(review: Review, *rules: Any, **block: Any) -> bool:
    found = compile_constraints({"resourceRules": list(rules), **block})
    assert found.applies(review) is (found.refusal(review) is None)
    return found.applies(review)


def _pod(**review: Any) -> Review:
    return review_of(pod(), **review)


def test_a_rule_names_group_version_resource_and_operation() -> None:
    assert _applies(_pod(), rule("pods"))
    assert not _applies(_pod(), rule("pods", group="apps"))
    assert not _applies(_pod(), rule("pods", apiVersions=["v2"]))
    assert not _applies(_pod(), rule("services"))
    assert not _applies(_pod(operation="DELETE"), rule("pods"))


@pytest.mark.parametrize("field", ["apiGroups", "apiVersions", "operations"])
def test_a_star_and_nothing_at_all_mean_everything(field: str) -> None:
    assert _applies(_pod(operation="CREATE"), rule("pods", **{field: ["*"]}))
    assert _applies(_pod(operation="CREATE"), rule("pods", **{field: []}))


@pytest.mark.parametrize(
    ("resource", "whole", "log"),
    [
        ("pods", True, False),
        ("pods/log", False, True),
        ("pods/*", True, True),
        ("*", True, False),
        ("*/*", True, True),
        ("*/log", False, True),
        ("services/*", False, False),
    ],
)
def test_subresources_are_asked_for_by_name(resource: str, whole: bool, log: bool) -> None:
    assert _applies(_pod(), rule(resource)) is whole
    assert _applies(_pod(subresource="log"), rule(resource)) is log


def test_one_of_several_rules_is_enough() -> None:
    assert _applies(_pod(), rule("services"), rule("pods"))


def test_what_a_request_says_of_its_resource_counts_more_than_its_kind() -> None:
    request = {"resource": {"group": "", "version": "v1", "resource": "oddities"}}

    assert _applies(_pod(request=request), rule("oddities"))
    assert not _applies(_pod(request=request), rule("pods"))


def test_resource_names_are_exact() -> None:
    assert _applies(_pod(), rule("pods", resourceNames=["x", "y"]))
    assert not _applies(_pod(), rule("pods", resourceNames=["*"]))


@pytest.mark.parametrize(
    ("scope", "namespaced", "wide"), [("*", 1, 1), ("Namespaced", 1, 0), ("Cluster", 0, 1)]
)
def test_scope_parts_what_lives_in_namespaces(scope: str, namespaced: bool, wide: bool) -> None:
    asked = rule("*", scope=scope)

    assert _applies(_pod(), asked) is bool(namespaced)
    assert _applies(review_of(NODE), asked) is bool(wide)
    assert _applies(review_of(NAMESPACE), asked) is bool(wide)


def test_exclusions_take_out_what_the_rules_let_in() -> None:
    excluded = [rule("pods", resourceNames=["x"])]

    assert not _applies(_pod(), rule("pods"), excludeResourceRules=excluded)
    assert _applies(review_of(config_map()), rule("*"), excludeResourceRules=excluded)


def test_a_namespace_selector_looks_at_the_labels_of_the_namespace() -> None:
    assert _applies(_pod(namespace_labels={"tier": "prod"}), rule("*"), namespaceSelector=TIER)
    assert not _applies(_pod(namespace_labels={"tier": "x"}), rule("*"), namespaceSelector=TIER)
    assert not _applies(_pod(), rule("*"), namespaceSelector=TIER)


def test_a_namespace_counts_by_its_own_labels_and_other_wide_objects_always_fit() -> None:
    own = {"matchLabels": {"tier": "own"}}

    assert _applies(review_of(NAMESPACE), rule("*"), namespaceSelector=own)
    assert not _applies(review_of(NAMESPACE), rule("*"), namespaceSelector=TIER)
    assert _applies(review_of(NODE), rule("*"), namespaceSelector=TIER)


def test_an_object_selector_fits_the_new_or_the_old_object() -> None:
    new, old = pod(tier="x"), pod(tier="prod")
    update = Review(object=new, old_object=old, operation="UPDATE", kind="Pod")

    assert _applies(update, rule("*"), objectSelector=TIER)
    assert not _applies(review_of(new), rule("*"), objectSelector=TIER)
    assert _applies(review_of(old), rule("*"), objectSelector=TIER)


def test_without_rules_a_policy_concerns_nothing_and_a_binding_everything() -> None:
    assert not compile_constraints({}).applies(_pod())
    assert compile_constraints({}, open_without_rules=True).applies(_pod())


def test_a_namespaced_policy_concerns_its_own_namespace() -> None:
    block = {"resourceRules": [rule("pods")]}

    assert compile_constraints(block, namespace="dev").applies(_pod())
    assert not compile_constraints(block, namespace="ops").applies(_pod())
    assert "ops" in str(compile_constraints(block, namespace="ops").refusal(_pod()))


@pytest.mark.parametrize("open_without_rules", [True, False])
def test_a_document_that_is_no_object_concerns_no_policy_for_objects(
    open_without_rules: bool,
) -> None:
    payload = Review(object={}, operation="", payload="JSON")
    everything = {"resourceRules": [rule("*/*", group="*", apiVersions=["*"], operations=["*"])]}

    assert not compile_constraints(everything).applies(payload)
    assert not compile_constraints({}, open_without_rules=open_without_rules).applies(payload)
