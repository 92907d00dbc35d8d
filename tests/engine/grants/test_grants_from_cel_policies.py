"""Grants from policies written in CEL: which can be asked for, and that their exceptions cover what classic ones would."""

from __future__ import annotations

from datetime import timedelta
from itertools import product
from typing import Any

import pytest

from engine.evaluate import Inputs
from engine.evaluate.cel.bindings import Bindings
from engine.evaluate.cel.exceptions import compile_cel_exception
from engine.exceptions import compile_exception
from engine.grants import (
    Circumstances,
    chosen_policy,
    exception_of,
    parse_grant,
    parse_grant_policy,
)
from engine.lang import rfc3339
from engine.model import Review, review_of
from engine.parse import parse_exception
from engine.parse.celpolicies import parse_cel_exception
from engine.record import replace

NOW = rfc3339.read("2026-11-21T10:00:00Z")
assert NOW is not None
CIRCUMSTANCES = Circumstances(NOW)


def grant(policy: str = "vpol:team", **spec: Any) -> Any:
    target = {"kind": "Pod", "name": "web", **spec.pop("target", {})}
    obj = {
        "metadata": {"name": "g", "namespace": "shop", "uid": "u"},
        "spec": {"requester": "ada", "policy": policy, "target": target, "duration": "1h", "reason": "it is needed", **spec},
    }  # fmt: skip
    return parse_grant(obj)


def refused(asked: Any, **spec: Any) -> str:
    policy = parse_grant_policy({"metadata": {"name": "default"}, "spec": spec})
    return "\n".join(map(str, chosen_policy(asked, [policy], CIRCUMSTANCES)[1]))


KINDS = {
    "vpol:team": ("team", "ValidatingPolicy"),
    "nvpol:shop/team": ("team", "NamespacedValidatingPolicy"),
    "mpol:team": ("team", "MutatingPolicy"),
    "nmpol:shop/team": ("team", "NamespacedMutatingPolicy"),
    "gpol:team": ("team", "GeneratingPolicy"),
    "ngpol:shop/team": ("team", "NamespacedGeneratingPolicy"),
    "dpol:team": ("team", "DeletingPolicy"),
    "ndpol:shop/team": ("team", "NamespacedDeletingPolicy"),
    "ivpol:team": ("team", "ImageValidatingPolicy"),
    "nivpol:shop/team": ("team", "NamespacedImageValidatingPolicy"),
}


@pytest.mark.parametrize("policy", KINDS)
def test_a_grant_from_each_kind_causes_an_exception_of_its_group(policy: str) -> None:
    assert refused(grant(policy)) == ""
    made = exception_of(grant(policy), NOW + timedelta(hours=1))
    read = parse_cel_exception(made)
    assert read.references == (KINDS[policy],)
    compiled = compile_cel_exception(read)
    assert compiled.ends == NOW + timedelta(hours=1)
    assert not compiled.lends


REFUSED = {
    "of a kind that is not there": (grant("xpol:team"), "`xpol:` of `xpol:team` is no short name"),
    "of a namespaced kind without namespace": (grant("nvpol:team"), "write nvpol:NAMESPACE/NAME"),
    "of a cluster kind in a namespace": (grant("vpol:shop/team"), "write vpol:NAME"),
    "with a wildcard": (grant("vpol:te*"), "exceptions name policies written in CEL exactly"),
    "with a rule": (grant(rules=["r"]), "`vpol:team` is one rule, which has no name"),
    "for a part of an object": (grant(target={"kind": "Pod/exec"}), "`Pod/exec` is a part of an object"),
    "of another namespace": (grant("nvpol:ops/team"), "ask with -n ops"),
    "of another namespace, classic": (grant("ops/team", rules=["r"]), "ask with -n ops"),
    "with uses that nobody counts": (grant("mpol:team", uses=2), "a MutatingPolicy refuses no requests"),
    "for every object": (grant(target={"name": "*"}), "allows no wildcards"),
}  # fmt: skip


@pytest.mark.parametrize("how", REFUSED)
def test_a_request_that_could_mean_nothing_is_refused(how: str) -> None:
    asked, reason = REFUSED[how]
    assert reason in refused(asked)


@pytest.mark.parametrize("policies", [["team"], ["vpol:*"], ["*"], ["vpol:team"]])
def test_a_grant_policy_names_a_policy_by_its_name_or_with_its_kind(policies: list[str]) -> None:
    assert refused(grant(), policies=policies) == ""
    assert refused(grant(rules=["*"]), policies=policies) == ""


@pytest.mark.parametrize("spec", [{"policies": ["ivpol:*"]}, {"policies": ["other"]}, {"rules": ["check-*"]}])  # fmt: skip
def test_a_grant_policy_for_others_or_for_single_rules_lets_nobody_ask(spec: Any) -> None:
    assert "no grant policy lets `ada` ask for `vpol:team`" in refused(grant(), **spec)


def pod(**metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "shop", **metadata}}  # fmt: skip


OBJECTS: list[dict[str, Any]] = [
    pod(),
    pod(namespace="ops"),
    pod(name="web-1", labels={"app": "web", "tier": "front"}),
    pod(name='w"e\\b', labels={"app": "db"}),
    {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "web-", "namespace": "shop"}},
    {"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "shop"}},
    {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"}},
    {"apiVersion": "apps/v1beta1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"}},
    {"apiVersion": "x.io/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"}},
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}},
    {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "web"}},
]  # fmt: skip
TARGETS: list[dict[str, Any]] = [
    {"kind": "Pod", "name": "web"},
    {"kind": "Pod", "name": "web*"},
    {"kind": "Pod", "name": "web-?"},
    {"kind": "Pod", "name": "?*"},
    {"kind": "*", "name": "web"},
    {"kind": "v1/Pod", "name": ""},
    {"kind": "Deployment", "name": "web"},
    {"kind": "apps/v1/Deployment", "name": "web"},
    {"kind": "apps/*/Deployment", "name": "web"},
    {"kind": "*/v1/D*", "name": "web"},
    {"kind": "v1/Deployment", "name": "web"},
    {"kind": "Namespace", "name": "shop"},
    {"kind": "Pod", "name": '" || true || "'},
    {"kind": 'Pod" || true || "', "name": "web"},
    {"kind": "Pod", "name": "", "selector": {"matchLabels": {"app": "web"}}},
    {"kind": "Pod", "name": "", "selector": {"matchLabels": {"app": "w*", "t*": "*"}}},
    {"kind": "Pod", "name": "", "selector": {"matchLabels": {"app": '" || true || "'}}},
    {"kind": "Pod", "name": "", "selector": {"matchLabels": {"not a key": "web"}}},
    *(
        {"kind": "Pod", "name": "", "selector": {"matchExpressions": [{"key": "app", "operator": operator, "values": values}]}}
        for operator in ("In", "NotIn", "Exists", "DoesNotExist", "Near")
        for values in ([], ["web", "x"])
    ),
]  # fmt: skip


@pytest.mark.parametrize(("target", "obj"), list(product(TARGETS, OBJECTS)))
def test_the_exception_covers_what_a_classic_one_for_the_same_objects_covers(
    target: dict[str, Any], obj: dict[str, Any]
) -> None:
    ends = NOW + timedelta(hours=1)
    classic = exception_of(grant("team", rules=["r"], target=target), ends)
    of_cel = exception_of(grant(target=target), ends)
    wanted = compile_exception(parse_exception(classic, strict=False)).matches
    made = compile_cel_exception(parse_cel_exception(of_cel))
    created = review_of(obj)
    deleted = replace(created, operation="DELETE", object=None, old_object=obj)
    for review in (created, deleted):
        assert _covers(made, review) is wanted(review)


@pytest.mark.parametrize("subresource", ["status", "exec"])
def test_the_exception_does_not_cover_a_part_of_its_object(subresource: str) -> None:
    made = compile_cel_exception(
        parse_cel_exception(exception_of(grant(), NOW + timedelta(hours=1)))
    )
    review = review_of(pod())
    assert _covers(made, review)
    assert not _covers(made, replace(review, subresource=subresource))


def test_an_exception_that_is_to_be_disregarded_covers_nothing() -> None:
    made = compile_cel_exception(
        parse_cel_exception(exception_of(grant(), NOW + timedelta(hours=1)))
    )
    inputs = Inputs(now=NOW, disregarded=frozenset({"shop/grant-g"}))
    assert made.covers(Bindings(review_of(pod()), inputs, {}))
    inputs = replace(inputs, disregarded=frozenset({"cel:shop/grant-g"}))
    assert not made.covers(Bindings(review_of(pod()), inputs, {}))


def _covers(made: Any, review: Review) -> bool:
    assert NOW is not None
    return bool(made.covers(Bindings(review, Inputs(now=NOW), {})))
