"""What is out of a policy's reach: of every policy's, and of one namespace's."""

from __future__ import annotations

from typing import Any

import pytest

from engine.reach import Effect, Target, is_granted, out_of_reach, target_of

WRITING = [effect for effect in Effect if effect is not Effect.LOOK_UP]


def exception(group: str = "kyverno.io", **annotations: str) -> dict[str, Any]:
    return {
        "apiVersion": f"{group}/v2",
        "kind": "PolicyException",
        "metadata": {"name": "x", "namespace": "shop", "annotations": annotations},
    }


GRANTED = {"kpolicy.io/grant": "shop/hot-fix"}
OUT_OF_EVERY_REACH = (
    Target("kpolicy.io", "Grant", True, "shop", "hot-fix"),
    Target("kpolicy.io", "GrantPolicy", False, "", "all"),
    Target("kpolicy.io", "AuditSegment"),
    Target("kpolicy.io", "NotThereYet"),
    Target("kyverno.io", "UpdateRequest", True, "kyverno", "ur-1"),
    Target("admissionregistration.k8s.io", "ValidatingAdmissionPolicy", False, "", "kpolicy-grants"),
    Target("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding", False, "", "kpolicy-codes"),
    Target("admissionregistration.k8s.io", "ValidatingWebhookConfiguration", False, "", "kyverno-resource-validating-webhook-cfg"),
    Target("admissionregistration.k8s.io", "MutatingWebhookConfiguration", None, None, "kpolicy-grant-validating-webhook-cfg"),
    Target("admissionregistration.k8s.io", "ValidatingWebhookConfiguration", False, "", "x", ({"metadata": {"annotations": {"kpolicy.io/owner": "kpolicy"}}},)),
    target_of(exception(**GRANTED)),
    target_of(exception("policies.kyverno.io", **GRANTED)),
    target_of(exception(**GRANTED), exception()),
    target_of(exception(), exception(**GRANTED)),
)  # fmt: skip


@pytest.mark.parametrize("effect", WRITING)
@pytest.mark.parametrize("target", OUT_OF_EVERY_REACH)
@pytest.mark.parametrize("within", ["", "shop"])
def test_what_people_decide_is_out_of_every_policys_reach(
    effect: Effect, target: Target, within: str
) -> None:
    assert out_of_reach(effect, target, within)


@pytest.mark.parametrize("target", OUT_OF_EVERY_REACH)
def test_policies_of_the_cluster_may_read_what_they_may_not_touch(target: Target) -> None:
    assert out_of_reach(Effect.LOOK_UP, target) is None


@pytest.mark.parametrize("effect", Effect)
@pytest.mark.parametrize(
    "target",
    [
        target_of(exception()),
        Target("kyverno.io", "ClusterCleanupPolicy", False, "", "x"),
        Target("admissionregistration.k8s.io", "ValidatingWebhookConfiguration", False, "", "of-a-vendor"),
        Target("rbac.authorization.k8s.io", "RoleBinding", True, "other", "x"),
        Target("", "Namespace", False, "", "x"),
    ],
)  # fmt: skip
def test_everything_else_is_for_the_rights_of_a_cluster_policys_author(
    effect: Effect, target: Target
) -> None:
    assert out_of_reach(effect, target) is None


@pytest.mark.parametrize("effect", Effect)
@pytest.mark.parametrize(
    "target",
    [
        Target("", "ConfigMap", True, "other", "x"),
        Target("", "ConfigMap", None, "other", "x"),
        Target("", "ConfigMap", True, "", "x"),
        Target("", "Node", None, "shop", "x"),
        Target("example.org", "Thing", False, "shop", "x"),
        Target("", "Namespace", False, "shop", "other"),
        Target("admissionregistration.k8s.io", "ValidatingWebhookConfiguration", None, "shop", "of-a-vendor"),
        target_of(exception()),
        target_of(exception("policies.kyverno.io")),
        Target("kyverno.io", "Policy", True, "shop", "x"),
        Target("kyverno.io", "CleanupPolicy", True, "shop", "x"),
        Target("policies.kyverno.io", "NamespacedValidatingPolicy", True, "shop", "x"),
        Target("kpolicy.io", "Grant", True, "shop", "x"),
    ],
)  # fmt: skip
def test_a_policy_of_a_namespace_has_that_namespace_and_nothing_of_the_cluster(
    effect: Effect, target: Target
) -> None:
    assert out_of_reach(effect, target, "shop")


@pytest.mark.parametrize("effect", Effect)
def test_a_policy_of_a_namespace_has_what_lies_in_it(effect: Effect) -> None:
    assert out_of_reach(effect, Target("", "ConfigMap", True, "shop", "x"), "shop") is None
    assert out_of_reach(effect, Target("", "ConfigMap", None, None), "shop") is None
    assert out_of_reach(effect, Target(None, ""), "shop") is None


def test_a_policy_of_a_namespace_may_read_that_namespace_itself_and_not_change_it() -> None:
    own = Target("", "Namespace", False, "", "shop")
    assert out_of_reach(Effect.LOOK_UP, own, "shop") is None
    assert out_of_reach(Effect.MUTATE_EXISTING, own, "shop")


def test_a_kind_of_the_name_of_one_of_the_cluster_but_of_another_group_has_a_namespace() -> None:
    node = Target("cluster.example.org", "Node", None, "shop", "x")
    assert out_of_reach(Effect.GENERATE, node, "shop") is None


def test_an_exception_owned_by_a_grant_carries_it_whatever_its_annotations_say() -> None:
    made = exception()
    assert not is_granted(made)
    made["metadata"]["ownerReferences"] = [{"apiVersion": "kpolicy.io/v1alpha1", "kind": "Grant"}]
    assert is_granted(made)


def test_the_reason_says_who_may_not_do_what() -> None:
    found = out_of_reach(Effect.GENERATE, Target("", "Node", None, "shop", "x"), "shop")
    assert found == "a policy of namespace `shop` may not generate `Node`, which is of no namespace"
    granted = out_of_reach(Effect.MUTATE_EXISTING, target_of(exception(**GRANTED)))
    assert granted == "no policy may change an exception that carries a grant"


@pytest.mark.parametrize(
    ("effect", "verb"),
    [
        (Effect.GENERATE, "generate"),
        (Effect.CLONE, "copy"),
        (Effect.MUTATE, "mutate"),
        (Effect.MUTATE_EXISTING, "change"),
        (Effect.CLEAN_UP, "clean up"),
        (Effect.EXPIRE, "expire"),
        (Effect.LOOK_UP, "read"),
    ],
)
def test_each_effect_has_its_verb_in_the_reason(effect: Effect, verb: str) -> None:
    elsewhere = Target("", "ConfigMap", True, "other", "x")
    everywhere = Target("", "ConfigMap", True, "", "x")

    assert out_of_reach(effect, elsewhere, "shop") == f"a policy of namespace `shop` may not {verb} objects of namespace `other`"  # fmt: skip
    assert out_of_reach(effect, everywhere, "shop") == f"a policy of namespace `shop` may not {verb} objects of all namespaces"  # fmt: skip


def test_the_reason_names_what_is_guarded() -> None:
    group = "admissionregistration.k8s.io"
    named = Target(group, "ValidatingAdmissionPolicy", False, "", "kpolicy-grants")
    unknown = Target(group, "", None, None, "kpolicy-grants")

    assert out_of_reach(Effect.MUTATE, named) == "no policy may mutate ValidatingAdmissionPolicy `kpolicy-grants`, which guards what people decide"  # fmt: skip
    assert out_of_reach(Effect.MUTATE, unknown) == "no policy may mutate an object `kpolicy-grants`, which guards what people decide"  # fmt: skip
    assert out_of_reach(Effect.MUTATE, Target("kpolicy.io", "Grant")) == "no policy may mutate objects of kpolicy.io"  # fmt: skip
    assert out_of_reach(Effect.MUTATE, Target("kyverno.io", "UpdateRequest")) == "no policy may mutate objects of kind UpdateRequest"  # fmt: skip
    policies = "policies, exceptions or configurations of admission, as `{}` is"
    assert out_of_reach(Effect.LOOK_UP, Target("kyverno.io", "Policy"), "shop").endswith(policies.format("Policy"))  # fmt: skip
    assert out_of_reach(Effect.LOOK_UP, Target("kyverno.io", ""), "shop").endswith(policies.format("kyverno.io"))  # fmt: skip


def test_what_is_known_of_a_kind_counts_for_more_than_its_name() -> None:
    node = Target("", "Node", True, "shop", "x")
    assert out_of_reach(Effect.GENERATE, node, "shop") is None
    assert (
        out_of_reach(Effect.LOOK_UP, Target("", "Namespace", True, "shop", "shop"), "shop") is None
    )
    assert out_of_reach(Effect.LOOK_UP, Target(None, "Node", None, "shop", "x"), "shop")


@pytest.mark.parametrize("metadata", [None, [], "x", {"annotations": []}, {"ownerReferences": None}, {"ownerReferences": ["x", None]}])  # fmt: skip
def test_an_object_whose_metadata_is_no_map_carries_no_grant(metadata: Any) -> None:
    assert not is_granted({"kind": "PolicyException", "metadata": metadata})


def test_a_target_is_where_its_last_state_says() -> None:
    found = target_of({"metadata": {"namespace": "other"}}, exception(), is_namespaced=True)

    assert (found.group, found.kind) == ("kyverno.io", "PolicyException")
    assert (found.namespace, found.name, found.is_namespaced) == ("shop", "x", True)
    assert target_of({}).namespace == target_of({}).name == target_of({}).group == ""


@pytest.mark.parametrize("name", ["kyverno-of-somebody", "somebody-webhook-cfg", "kpolic"])
def test_configurations_of_others_are_no_guards_of_ours(name: str) -> None:
    target = Target("admissionregistration.k8s.io", "ValidatingWebhookConfiguration", False, "", name)  # fmt: skip

    assert [out_of_reach(effect, target) for effect in WRITING] == [None] * len(WRITING)
