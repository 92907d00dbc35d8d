"""Attributes of one entry, and how entries join into match and exclude."""

from __future__ import annotations

from typing import Any

import pytest

from engine.errors import PolicyError
from engine.match import compile_any_all, compile_match
from engine.model import Review, UserInfo, review_of

JANE = UserInfo(
    username="jane", groups=("dev", "ops"), roles=("a:reader",), cluster_roles=("view", "edit")
)
BOT = UserInfo(username="system:serviceaccount:dev:bot", groups=("system:serviceaccounts",))


def pod(**fields: Any) -> Review:
    metadata = {
        "name": "web-1",
        "namespace": "dev",
        "labels": {"app": "web"},
        "annotations": {"note/x": "yes", "empty": ""},
    } | fields.pop("metadata", {})
    return review_of({"apiVersion": "v1", "kind": "Pod", "metadata": metadata}, **fields)


def namespace(name: str = "dev", **fields: Any) -> Review:
    obj = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    return review_of(obj, **fields)


def resources(**attributes: Any) -> dict[str, Any]:
    return {"any": [{"resources": attributes}]}


def applies(match: dict[str, Any], review: Review, exclude: dict[str, Any] | None = None) -> bool:
    """Ask a compiled match, and that its reason agrees with its answer."""
    matcher = compile_match(match, exclude or {})
    answer = matcher.applies(review)

    assert (matcher.refusal(review) is None) is answer
    return answer


@pytest.mark.parametrize(
    "attributes",
    [
        {"name": "web-1"},
        {"name": "w?b*"},
        {"names": ["nope", "web*"]},
        {"names": ["a*", "b*", "web-1"]},
        {"namespaces": ["dev"]},
        {"namespaces": ["x", "d*"]},
        {"annotations": {"note/x": "yes"}},
        {"annotations": {"note/*": "y?s"}},
        {"annotations": {"empty": "*"}},
        {"annotations": {"note/x": "yes", "empty": ""}},
        {"selector": {"matchLabels": {"app": "w*"}}},
        {"selector": {}},
        {"operations": ["UPDATE", "CREATE"]},
        {"name": "web-1", "namespaces": ["dev"], "kinds": ["Pod"]},
    ],
)
def test_an_attribute_fits(attributes: dict[str, Any]) -> None:
    assert applies(resources(**attributes), pod())


@pytest.mark.parametrize(
    "attributes",
    [
        {"name": "web"},
        {"name": "WEB-1"},
        {"names": ["web", "x"]},
        {"names": ["a*", "b*"]},
        {"names": [""]},
        {"name": "web-1", "names": ["db"]},
        {"name": "db", "names": ["web-1"]},
        {"namespaces": ["de"]},
        {"namespaces": ["x*", "DEV"]},
        {"annotations": {"note/x": "no"}},
        {"annotations": {"empty": "?*"}},
        {"annotations": {"note/x": "yes", "nope": "*"}},
        {"selector": {"matchLabels": {"app": "db"}}},
        {"operations": ["UPDATE"]},
        {"kinds": ["Job"], "name": "web-1"},
        {"kinds": ["Pod"], "name": "web-1", "namespaces": ["prod"]},
        {"kinds": ["Pod"], "operations": ["DELETE"]},
    ],
)
def test_an_attribute_does_not_fit(attributes: dict[str, Any]) -> None:
    assert not applies(resources(**attributes), pod())


def test_the_generated_name_counts_while_there_is_no_name() -> None:
    review = pod(metadata={"name": "", "generateName": "web-"})

    assert applies(resources(names=["web-"]), review)
    assert not applies(resources(names=["web-"]), pod(metadata={"generateName": "web-"}))


def test_a_namespace_is_compared_by_its_own_name() -> None:
    assert applies(resources(namespaces=["d*"]), namespace("dev"))
    assert not applies(resources(namespaces=["d*"]), namespace("prod"))


def test_labels_and_annotations_that_are_no_maps_count_as_none() -> None:
    broken = pod(metadata={"labels": ["x"], "annotations": "x"})

    assert not applies(resources(selector={"matchLabels": {"*": "*"}}), broken)
    assert applies(resources(selector={"matchLabels": {}}), broken)
    assert not applies(resources(annotations={"*": "*"}), broken)


def test_the_old_object_counts_only_when_there_is_no_new_one() -> None:
    old = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "old"}}
    match = resources(names=["old"])

    assert applies(match, Review(None, old, operation="DELETE", kind="Pod"))
    assert not applies(match, pod(old_object=old, operation="UPDATE"))


def test_a_namespace_selector_reads_the_labels_of_the_namespace() -> None:
    match = resources(namespaceSelector={"matchLabels": {"env": "d*"}})

    assert applies(match, pod(namespace_labels={"env": "dev"}))
    assert not applies(match, pod(namespace_labels={"env": "prod"}))
    assert not applies(match, pod())


def test_a_namespace_selector_never_fits_a_namespace_in_a_rule() -> None:
    selects = resources(namespaceSelector={})

    assert applies(selects, pod())
    assert not applies(selects, namespace(namespace_labels={"env": "dev"}))
    assert applies(resources(kinds=["*"]), namespace(), exclude=selects)


def test_a_namespace_selector_is_ignored_for_a_namespace_in_an_exception() -> None:
    block = resources(namespaceSelector={"matchLabels": {"env": "dev"}})

    assert compile_any_all(block).test(namespace())
    assert not compile_any_all(block).test(pod())
    assert compile_any_all(block).test(pod(namespace_labels={"env": "dev"}))


def subjects(*entries: tuple[str, ...]) -> dict[str, Any]:
    fields = ("kind", "name", "namespace")
    listed = [dict(zip(fields, entry, strict=False)) for entry in entries]
    return {"resources": {"kinds": ["Pod"]}, "subjects": listed}


@pytest.mark.parametrize(
    ("entry", "user"),
    [
        (subjects(("User", "jane")), JANE),
        (subjects(("User", "j*")), JANE),
        (subjects(("Group", "ops")), JANE),
        (subjects(("Group", "o?s")), JANE),
        (subjects(("User", "bob"), ("Group", "dev")), JANE),
        (subjects(("ServiceAccount", "bot", "dev")), BOT),
        (subjects(("ServiceAccount", "b*", "d*")), BOT),
        (subjects(("User", "system:serviceaccount:dev:bot")), BOT),
        ({"resources": {"kinds": ["Pod"]}, "roles": ["x:y", "a:reader"]}, JANE),
        ({"resources": {"kinds": ["Pod"]}, "clusterRoles": ["edit"]}, JANE),
        ({"clusterRoles": ["view"], "roles": ["a:reader"]}, JANE),
        ({"clusterRoles": ["view"], "subjects": [{"kind": "User", "name": "jane"}]}, JANE),
    ],
)
def test_a_requester_fits(entry: dict[str, Any], user: UserInfo) -> None:
    block = {"any": [entry]}

    assert applies(block, pod(user=user))
    assert not applies(resources(kinds=["Pod"]), pod(user=user), exclude=block)
    assert compile_any_all(block).test(pod(user=user))


@pytest.mark.parametrize(
    ("entry", "user"),
    [
        (subjects(("User", "dev")), JANE),
        (subjects(("Group", "jane")), JANE),
        (subjects(("user", "jane")), JANE),
        (subjects(("ServiceAccount", "bot", "other")), BOT),
        (subjects(("ServiceAccount", "bo", "dev")), BOT),
        (subjects(("ServiceAccount", "*", "*")), JANE),
        (subjects(("ServiceAccount", "*", "*")), UserInfo(username="system:serviceaccount:a:b:c")),
        (subjects(("ServiceAccount", "*", "*")), UserInfo(username="system:serviceaccount:a")),
        (subjects(("ServiceAccount", "bot", "dev")), UserInfo(username="x" * 22 + "dev:bot")),
        ({"resources": {"kinds": ["Pod"]}, "roles": ["a:*"]}, JANE),
        ({"resources": {"kinds": ["Pod"]}, "roles": ["reader"]}, JANE),
        ({"resources": {"kinds": ["Pod"]}, "roles": ["view"]}, JANE),
        ({"resources": {"kinds": ["Pod"]}, "clusterRoles": ["v*"]}, JANE),
        ({"resources": {"kinds": ["Pod"]}, "clusterRoles": ["a:reader"]}, JANE),
        ({"clusterRoles": ["view"], "roles": ["a:other"]}, JANE),
        ({"clusterRoles": ["other"], "roles": ["a:reader"]}, JANE),
        ({"clusterRoles": ["view"], "subjects": [{"kind": "User", "name": "bob"}]}, JANE),
        ({"resources": {"kinds": ["Job"]}, "clusterRoles": ["view"]}, JANE),
    ],
)
def test_a_requester_does_not_fit(entry: dict[str, Any], user: UserInfo) -> None:
    block = {"any": [entry]}

    assert not applies(block, pod(user=user))
    assert applies(resources(kinds=["Pod"]), pod(user=user), exclude=block)
    assert not compile_any_all(block).test(pod(user=user))


def test_an_unknown_requester_is_matched_by_resources_alone() -> None:
    entry = subjects(("User", "jane"))

    assert applies({"any": [entry]}, pod())
    assert not applies({"any": [entry]}, pod(user=UserInfo(uid="7")))
    assert not applies({"any": [{"clusterRoles": ["view"]}]}, pod())


def test_an_unknown_requester_is_neither_excluded_nor_excepted() -> None:
    for entry in (subjects(("User", "*")), {"subjects": [{"kind": "User", "name": "*"}]}):
        assert applies(resources(kinds=["Pod"]), pod(), exclude={"any": [entry]})
        assert not compile_any_all({"any": [entry]}).test(pod())


def test_any_needs_one_entry_and_all_needs_every_entry() -> None:
    yes, no = {"resources": {"kinds": ["Pod"]}}, {"resources": {"kinds": ["Job"]}}
    named = {"resources": {"names": ["web*"]}}

    assert applies({"any": [no, yes]}, pod())
    assert applies({"any": [no, no, yes]}, pod())
    assert not applies({"any": [no, no, no]}, pod())
    assert not applies({"any": [no, no]}, pod())
    assert applies({"all": [yes, named]}, pod())
    assert applies({"all": [yes, named, yes]}, pod())
    assert not applies({"all": [yes, no]}, pod())
    assert not applies({"all": [yes, named, no]}, pod())
    assert not applies({"all": [no, yes, named]}, pod())


def test_exclude_is_read_like_match() -> None:
    match = resources(kinds=["Pod"])
    yes, no = {"resources": {"namespaces": ["dev"]}}, {"resources": {"namespaces": ["x"]}}

    assert not applies(match, pod(), exclude={"any": [no, yes]})
    assert applies(match, pod(), exclude={"any": [no, no]})
    assert not applies(match, pod(), exclude={"all": [yes, yes]})
    assert applies(match, pod(), exclude={"all": [yes, no]})
    assert not applies(match, pod(), exclude=yes)
    assert applies(match, pod(), exclude=no)
    assert not applies(match, pod(), exclude={"any": [yes], "all": [no]})


def test_the_legacy_block_is_one_entry() -> None:
    legacy = {"resources": {"kinds": ["Pod"], "namespaces": ["dev"]}}

    assert applies(legacy, pod())
    assert not applies(legacy, pod(metadata={"namespace": "prod"}))
    assert applies({"any": [], "resources": {"kinds": ["Pod"]}}, pod())
    assert applies({"any": None, "all": [], "resources": {"kinds": ["Pod"]}}, pod())


@pytest.mark.parametrize(
    "empty",
    [
        {},
        {"any": []},
        {"all": []},
        {"any": [{}]},
        {"all": [{}]},
        {"resources": {}},
        {"any": [{"resources": {"kinds": []}}]},
        {"any": [{"subjects": [], "roles": []}]},
    ],
)
def test_an_empty_block_matches_and_excludes_nothing(empty: dict[str, Any]) -> None:
    assert not applies(empty, pod())
    assert applies(resources(kinds=["Pod"]), pod(), exclude=empty)
    assert not compile_any_all(empty).test(pod())


def test_an_empty_entry_fails_an_all_block_and_is_passed_over_in_an_any_block() -> None:
    entry = {"resources": {"kinds": ["Pod"]}}

    assert not applies({"all": [entry, {}]}, pod())
    assert applies(entry, pod(), exclude={"all": [entry, {}]})
    assert applies({"any": [{}, entry]}, pod())


def test_any_and_all_together_match_nothing() -> None:
    entry = {"resources": {"kinds": ["Pod"]}}

    assert not applies({"any": [entry], "all": [entry]}, pod())
    assert not compile_any_all({"any": [entry], "all": [entry]}).test(pod())


def test_operations_are_ignored_in_exceptions() -> None:
    block = resources(kinds=["Pod"], operations=["DELETE"])

    assert compile_any_all(block).test(pod(operation="CREATE"))
    assert compile_any_all(resources(operations=["DELETE"])).test(pod(operation="CREATE"))
    assert not applies(block, pod(operation="CREATE"))
    assert applies(block, pod(operation="DELETE"))
    assert applies(resources(kinds=["Pod"]), pod(operation="CREATE"), exclude=block)


def test_a_namespaced_policy_reaches_its_own_namespace_only() -> None:
    matcher = compile_match(resources(kinds=["*"]), {}, policy_namespace="dev")

    assert matcher.applies(pod())
    assert not matcher.applies(pod(metadata={"namespace": "prod"}))
    assert not matcher.applies(namespace("dev"))
    assert matcher.refusal(namespace("dev")) == "the object is not in the policy's namespace `dev`"


def test_a_refusal_names_what_does_not_fit() -> None:
    any_of = {"any": [{"resources": {"kinds": ["Job"]}}, {"resources": {"names": ["x"]}}]}
    legacy = {"resources": {"kinds": ["Pod"], "namespaces": ["x"]}}
    excludes = {"any": [{"resources": {"names": ["x"]}}, {}, {"resources": {"names": ["web*"]}}]}
    every_pod = resources(kinds=["Pod"])

    def refusal(match: dict[str, Any], exclude: dict[str, Any]) -> str | None:
        return compile_match(match, exclude).refusal(pod())

    assert refusal(any_of, {}) == "not matched by any[0]: kinds, any[1]: names"
    assert refusal(legacy, {}) == "not matched by resources: namespaces"
    assert (
        refusal({"all": [every_pod["any"][0], {}]}, {})
        == "not matched by all[1]: nothing is asked for"
    )
    assert refusal({}, {}) == "not matched by nothing is asked for"
    assert refusal(every_pod, excludes) == "excluded by exclude.any[2]"
    assert refusal(every_pod, {"all": [every_pod["any"][0]]}) == "excluded by exclude.all"
    assert refusal(every_pod, {"resources": {"kinds": ["Pod"]}}) == "excluded by exclude"
    assert refusal(every_pod, {}) is None


@pytest.mark.parametrize(
    ("match", "kinds"),
    [
        (resources(kinds=["Pod", "v1/Job"]), {"Pod", "Job"}),
        (resources(kinds=["Pod", "*Set"]), None),
        (resources(names=["x"]), None),
        ({"any": [{"resources": {"kinds": ["Pod"]}}, {"resources": {"names": ["x"]}}]}, None),
        (
            {"any": [{"resources": {"kinds": ["A"]}}, {"resources": {"kinds": ["B"]}}, {}]},
            {"A", "B"},
        ),
        ({"all": [{"resources": {"kinds": ["A", "B"]}}, {"resources": {"kinds": ["B"]}}]}, {"B"}),
        ({"all": [{"resources": {"names": ["x"]}}, {"resources": {"kinds": ["B"]}}]}, {"B"}),
        ({"resources": {"kinds": ["Pod"]}}, {"Pod"}),
        ({}, set()),
    ],
)
def test_a_matcher_knows_the_kinds_it_can_match(
    match: dict[str, Any], kinds: set[str] | None
) -> None:
    assert compile_match(match, {}).kinds == kinds


@pytest.mark.parametrize(
    ("match", "name"),
    [
        ({"any": {}}, "any"),
        ({"all": "x"}, "all"),
        ({"resources": []}, "resources"),
        (resources(kinds="Pod"), "kinds"),
        (resources(kinds=[1]), "kinds"),
        (resources(name=1), "name"),
        (resources(names="x"), "names"),
        (resources(namespaces={"a": 1}), "namespaces"),
        (resources(operations="CREATE"), "operations"),
        (resources(annotations=[]), "annotations"),
        (resources(annotations={"a": True}), "annotations"),
        (resources(selector="x"), "selector"),
        ({"any": [{"roles": "x"}]}, "roles"),
        ({"any": [{"clusterRoles": [1]}]}, "clusterRoles"),
        ({"any": [{"subjects": {}}]}, "subjects"),
        ({"any": [{"subjects": ["x"]}]}, "subjects"),
        ({"any": [{"subjects": [{"kind": "User", "name": 1}]}]}, "subjects.name"),
        (
            {"any": [{"subjects": [{"kind": "ServiceAccount", "name": "x", "namespace": 1}]}]},
            "subjects.namespace",
        ),
    ],
)
def test_a_filter_of_the_wrong_type_is_refused_and_never_ignored(
    match: dict[str, Any], name: str
) -> None:
    with pytest.raises(PolicyError, match=f"^`{name}` must be a"):
        compile_match(match, {})
    with pytest.raises(PolicyError, match=f"^`{name}` must be a"):
        compile_match({}, match)


def test_an_entry_of_the_wrong_type_is_named_by_its_block() -> None:
    with pytest.raises(PolicyError, match=r"^`match` must be a map"):
        compile_match({"any": ["x"]}, {})
    with pytest.raises(PolicyError, match=r"^`exclude` must be a map"):
        compile_match({}, {"any": ["x"]})


@pytest.mark.parametrize(
    ("entry", "attribute"),
    [
        ({"resources": {"operations": ["UPDATE"]}}, "operations"),
        ({"resources": {"kinds": ["Job"]}}, "kinds"),
        ({"resources": {"name": "x"}}, "name"),
        ({"resources": {"names": ["x"]}}, "names"),
        ({"resources": {"namespaces": ["x"]}}, "namespaces"),
        ({"resources": {"annotations": {"x": "x"}}}, "annotations"),
        ({"resources": {"selector": {"matchLabels": {"x": "x"}}}}, "selector"),
        ({"resources": {"namespaceSelector": {"matchLabels": {"x": "x"}}}}, "namespaceSelector"),
        ({"roles": ["x:y"]}, "roles"),
        ({"clusterRoles": ["x"]}, "clusterRoles"),
        ({"subjects": [{"kind": "User", "name": "x"}]}, "subjects"),
    ],
)
def test_a_refusal_names_the_attribute(entry: dict[str, Any], attribute: str) -> None:
    said = compile_match({"all": [entry]}, {}).refusal(pod(user=JANE))

    assert said == f"not matched by all[0]: {attribute}"
