"""Requests that are alike are known again, for as long as what they were worked out by stays as it is."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.kube import Discovery, kinds
from controllers.runtime.cluster_cache import ClusterCache
from controllers.runtime.metrics import Metrics
from controllers.webhook.sorts import Sort, Sorts
from controllers.webhook.timing import Timing
from tests.controllers.kube.fake import FakeClient

RULE = {
    "name": "r",
    "match": {"any": [{"resources": {"kinds": ["ConfigMap"]}}]},
    "validate": {"failureAction": "Enforce", "message": "m", "pattern": {"data": "?*"}},
}


def policy(name: str = "p") -> dict[str, Any]:
    return {"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": {"name": name}, "spec": {"rules": [RULE]}}  # fmt: skip


def settings(**data: str) -> dict[str, Any]:
    return {"metadata": {"name": "kyverno", "namespace": "kyverno"}, "data": data}


def binding(user: str) -> dict[str, Any]:
    return {
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "b"},
        "roleRef": {"kind": "ClusterRole", "name": "editors"},
        "subjects": [{"kind": "User", "name": user}],
    }


def request(name: str = "c", **fields: Any) -> dict[str, Any]:
    return {
        "uid": "u",
        "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
        "resource": {"group": "", "version": "v1", "resource": "configmaps"},
        "name": name,
        "namespace": "shop",
        "operation": "CREATE",
        "userInfo": {"username": "jane", "groups": ["developers"]},
        "object": {"metadata": {"name": name}},
        **fields,
    }


@pytest.fixture
def cache() -> ClusterCache:
    made = ClusterCache(Discovery(FakeClient()), Metrics())
    made.put(kinds.CLUSTER_POLICIES, policy())
    return made


@pytest.fixture
def sorts(cache: ClusterCache) -> Sorts:
    return Sorts(cache, Timing(Metrics()), frozenset())


def sort(sorts: Sorts, **fields: Any) -> Sort:
    found = sorts.of("validate", "fail", request(**fields))
    assert found is not None
    return found


def test_requests_that_differ_in_name_and_object_are_of_one_sort(sorts: Sorts) -> None:
    assert sort(sorts, name="c") is sort(sorts, name="d", uid="v", dryRun=True)


@pytest.mark.parametrize(
    "other",
    [
        {"namespace": "team"},
        {"operation": "UPDATE"},
        {"kind": {"group": "x", "version": "v1", "kind": "ConfigMap"}},
        {"userInfo": {"username": "jane", "groups": ["owners"]}},
        {"userInfo": {"username": "jane", "uid": "developers"}},
        {"userInfo": {"username": "joe", "groups": ["developers"]}},
    ],
)
def test_requests_that_differ_in_anything_else_are_not(sorts: Sorts, other: dict[str, Any]) -> None:
    assert sort(sorts) is not sort(sorts, **other)


def test_no_policy_is_asked_about_kinds_and_at_paths_that_none_concerns(sorts: Sorts) -> None:
    pods = request(kind={"group": "", "version": "v1", "kind": "Pod"})
    assert sorts.of("validate", "fail", pods) is None
    assert sorts.of("mutate", "fail", request()) is None
    assert sorts.of("validate", "nowhere", request()) is None


def test_what_changes_in_the_cluster_counts_from_the_next_request_on(
    cache: ClusterCache, sorts: Sorts
) -> None:
    first = sort(sorts)
    cache.put(kinds.CLUSTER_POLICIES, policy("q"))
    second = sort(sorts)
    assert [len(one.policies.policies) for one in (first, second)] == [1, 2]

    cache.put(kinds.CLUSTER_ROLE_BINDINGS, binding("jane"))
    assert sort(sorts).review(request(), {}).user.cluster_roles == ("editors",)
    assert second.review(request(), {}).user.cluster_roles == ()

    cache.put(kinds.CONFIG_MAPS, settings(excludeUsernames="jane"))
    assert sorts.of("validate", "fail", request()) is None
    cache.put(kinds.CONFIG_MAPS, settings())
    assert sort(sorts).filter is None


def test_filters_by_name_are_asked_about_each_request(cache: ClusterCache, sorts: Sorts) -> None:
    cache.put(kinds.CONFIG_MAPS, settings(resourceFilters="[ConfigMap,shop,kube-*]"))
    found = sort(sorts)
    assert found.filter is not None
    for name, is_filtered in (("kube-root", True), ("mine", False)):
        asked = request(name)
        assert found.filter(found.review(asked, {}), asked) is is_filtered


def test_what_a_login_tells_beside_names_is_that_of_each_request(sorts: Sorts) -> None:
    plain = request()
    told = request(userInfo={**plain["userInfo"], "extra": {"pod": ["a"]}})
    found = sort(sorts)
    assert found.review(told, {}).user.extra == {"pod": ["a"]}
    assert found.review(plain, {}).user.extra == {}


def test_requests_with_long_texts_are_answered_and_not_remembered(sorts: Sorts) -> None:
    groups = [f"group-{number}" for number in range(1000)]
    user = {"username": "jane", "groups": groups}
    assert sort(sorts, userInfo=user) is not sort(sorts, userInfo=user)
    assert sort(sorts, userInfo=user).review(request(), {}).user.groups == tuple(groups)
