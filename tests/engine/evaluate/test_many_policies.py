"""Many policies side by side say what each of them says alone, whatever tells them apart, and however they are found."""

from __future__ import annotations

import random

import pytest

from engine.errors import Location
from engine.evaluate import Inputs, PolicySet, evaluate
from engine.evaluate.plans import MANY, Marked
from engine.match.marks import borne
from engine.model import Review, UserInfo
from engine.model import RuleType as T
from engine.parse import parse_policy
from engine.parse.celpolicies import parse_cel_policy
from engine.record import replace

AT = Location("test")
KINDS = ("Pod", "Deployment", "Namespace", "Pod/*", "*")
OPERATIONS = ("CREATE", "UPDATE", "DELETE")
NAMESPACES = ("team-1", "team-2", "other", "team-*", "*-2")
NAMES = ("a", "b", "ab", "a*")
LABELS = {"app": ("x", "y", "?*"), "tier": ("front", "back"), "t*": ("front", "*")}


def some(rng: random.Random, given: tuple[str, ...]) -> list[str]:
    return rng.sample(given, rng.randint(1, 2))


def selector(rng: random.Random) -> dict:
    key = rng.choice(list(LABELS))
    if rng.random() < 0.5 or "*" in key:
        return {"matchLabels": {key: rng.choice(LABELS[key])}}
    operator = rng.choice(("In", "NotIn", "Exists", "DoesNotExist"))
    values = {"values": ["x", "front"]} if operator in ("In", "NotIn") else {}
    return {"matchExpressions": [{"key": key, "operator": operator, **values}]}


def entry(rng: random.Random) -> dict:
    parts = {
        "kinds": lambda: some(rng, KINDS),
        "operations": lambda: some(rng, OPERATIONS),
        "namespaces": lambda: some(rng, NAMESPACES),
        "names": lambda: some(rng, NAMES),
        "name": lambda: rng.choice(NAMES),
        "selector": lambda: selector(rng),
        "namespaceSelector": lambda: selector(rng),
        "annotations": lambda: {"note": rng.choice(("1", "?"))},
    }
    chosen = rng.sample(list(parts), rng.randint(0, 3))
    made: dict = {"resources": {name: parts[name]() for name in chosen}}
    if rng.random() < 0.2:
        made["subjects"] = [{"kind": "User", "name": rng.choice(("jane", "j*", "bob"))}]
    return made


def block(rng: random.Random) -> dict:
    kind = rng.choice(("any", "any", "all", "legacy", "none"))
    if kind == "legacy":
        return entry(rng)
    return {} if kind == "none" else {kind: [entry(rng) for _ in range(rng.randint(1, 2))]}


def classic(rng: random.Random, number: int):
    rules = [
        {
            "name": f"r{at}",
            "match": block(rng),
            "exclude": block(rng) if rng.random() < 0.3 else {},
            **work,
        }
        for at, work in enumerate(rng.sample([VALIDATES, MUTATES, VALIDATES], rng.randint(1, 2)))
    ]
    namespaced = rng.random() < 0.3
    metadata = {
        "name": f"p{number:03d}",
        "annotations": {"pod-policies.kyverno.io/autogen-controllers": "none"},
    }
    if namespaced:
        metadata["namespace"] = rng.choice(("team-1", "team-2"))
    spec = {"rules": rules, **({"applyRules": "One"} if rng.random() < 0.1 else {})}
    kind = "Policy" if namespaced else "ClusterPolicy"
    return parse_policy(
        {"apiVersion": "kyverno.io/v1", "kind": kind, "metadata": metadata, "spec": spec}, at=AT
    )


VALIDATES = {"validate": {"message": "m", "pattern": {"metadata": {"labels": {"app": "x"}}}}}
MUTATES = {
    "mutate": {"patchStrategicMerge": {"metadata": {"labels": {"app": "x", "tier": "back"}}}}
}


def in_cel(rng: random.Random, number: int):
    rule = {"apiGroups": ["", "apps"], "apiVersions": ["v1"], "operations": some(rng, OPERATIONS)}
    rule["resources"] = some(rng, ("pods", "deployments", "namespaces"))
    if rng.random() < 0.2:
        rule["resourceNames"] = some(rng, ("a", "b"))
    if rng.random() < 0.2:
        rule["scope"] = rng.choice(("Namespaced", "Cluster"))
    constraints = {"resourceRules": [rule]}
    plain = {key: value for key, value in LABELS.items() if "*" not in key}
    for name in ("namespaceSelector", "objectSelector"):
        if rng.random() < 0.4:
            key = rng.choice(list(plain))
            constraints[name] = {"matchLabels": {key: plain[key][rng.randint(0, 1)]}}
    if rng.random() < 0.2:
        constraints["excludeResourceRules"] = [{**rule, "resourceNames": ["a"]}]
    spec = {
        "matchConstraints": constraints,
        "validations": [{"expression": "object == null || has(object.metadata.labels)"}],
    }
    namespaced = rng.random() < 0.3
    metadata = {"name": f"c{number:03d}", **({"namespace": "team-1"} if namespaced else {})}
    kind = "NamespacedValidatingPolicy" if namespaced else "ValidatingPolicy"
    return parse_cel_policy(
        {"apiVersion": "policies.kyverno.io/v1", "kind": kind, "metadata": metadata, "spec": spec},
        at=AT,
    )


def obj(rng: random.Random, kind: str) -> dict:
    metadata: dict = {"name": rng.choice(("a", "b", "ab"))}
    if kind != "Namespace":
        metadata["namespace"] = rng.choice(("team-1", "team-2", "other"))
    for name, values in (("labels", {"app": "x", "tier": "front"}), ("annotations", {"note": "1"})):
        if rng.random() < 0.7:
            metadata[name] = {
                key: rng.choice((value, "y")) for key, value in values.items() if rng.random() < 0.7
            }
    return {"kind": kind, "metadata": metadata}


def review(rng: random.Random) -> Review:
    kind, operation = rng.choice(("Pod", "Deployment", "Namespace")), rng.choice(OPERATIONS)
    old = obj(rng, kind) if operation != "CREATE" else None
    return Review(
        object=None if operation == "DELETE" else obj(rng, kind),
        old_object=old,
        operation=operation,
        group="apps" if kind == "Deployment" else "",
        kind=kind,
        subresource=rng.choice(("", "", "status")),
        user=rng.choice((UserInfo(), UserInfo("jane"), UserInfo("bob"))),
        namespace_labels=rng.choice(({}, {"app": "x"}, {"tier": "front", "app": "y"})),
    )


@pytest.mark.parametrize("seed", range(6))
def test_many_say_what_each_says_alone(seed):
    rng = random.Random(seed)
    parsed = [classic(rng, number) for number in range(70)] + [
        in_cel(rng, number) for number in range(70)
    ]
    many = PolicySet.compile(parsed)
    assert not many.problems
    assert many.is_large
    asked = [review(rng) for _ in range(60)]
    said = 0
    for one in asked + asked:
        expected = _asked_one_after_the_other(many, one)
        found = evaluate(many, one, Inputs())
        assert [(r.identity, r.rule, r.status) for r in found.results] == expected
        said += len(expected)
    assert said > 500


def _asked_one_after_the_other(many: PolicySet, one: Review) -> list:
    """Return what small sets say, of which each is asked about the object as the one before left it."""
    alone = [PolicySet((policy,)) for policy in many.policies]
    found, asked = [], one
    for types in ((T.MUTATION,), (T.VALIDATION,)):
        for policy in alone:
            said = evaluate(policy, asked, Inputs(), types=types)
            found += [(r.identity, r.rule, r.status) for r in said.results]
            if said.patched is not asked.target:
                asked = replace(asked, object=said.patched)
    return found


def test_what_a_mutation_adds_is_seen_by_the_rules_after_it():
    labelled = {"resources": {"kinds": ["Pod"], "selector": {"matchLabels": {"app": "x"}}}}
    rest = [{"resources": {"kinds": ["Pod"], "names": [f"n{number}"]}} for number in range(MANY)]
    work = [
        (MUTATES, {"resources": {"kinds": ["Pod"]}}),
        *((VALIDATES, one) for one in rest),
        (VALIDATES, labelled),
    ]
    many = PolicySet.compile(_one_rule(at, match, does) for at, (does, match) in enumerate(work))
    pod = {"kind": "Pod", "metadata": {"name": "a", "namespace": "n"}}
    found = evaluate(many, Review(object=pod, kind="Pod"), Inputs())
    assert [(r.policy, str(r.status)) for r in found.results] == [
        ("p000", "pass"),
        (f"p{MANY + 1:03d}", "pass"),
    ]


def test_what_a_mutation_adds_decides_which_mutations_come_after_it():
    rest = [{"resources": {"kinds": ["Pod"], "names": [f"n{number}*"]}} for number in range(MANY)]

    def labelled(value):
        return {"resources": {"kinds": ["Pod"], "selector": {"matchLabels": {"app": value}}}}

    def adds(value):
        patch = {"metadata": {"labels": {"app": value}}}
        return {"mutate": {"patchStrategicMerge": patch}}

    work = [
        (labelled("z"), adds("never")),
        *((one, adds("other")) for one in rest),
        ({"resources": {"kinds": ["Pod"], "names": ["a*"]}}, adds("x")),
        (labelled("x"), adds("y")),
        (labelled("x"), adds("gone by")),
        (labelled("y"), adds("z")),
    ]
    many = PolicySet.compile(_one_rule(at, match, does) for at, (match, does) in enumerate(work))
    pod = {"kind": "Pod", "metadata": {"name": "abc", "namespace": "n"}}
    found = evaluate(many, Review(object=pod, kind="Pod"), Inputs())
    asked = [f"p{MANY + number:03d}" for number in (1, 2, 4)]
    assert [(r.policy, str(r.status)) for r in found.results] == [(one, "pass") for one in asked]
    assert found.patched["metadata"]["labels"] == {"app": "z"}


@pytest.mark.parametrize(
    ("name", "pattern"), [("web-1", "web-*"), ("web-1", "w?b-1"), ("a", "a"), ("web-", "web-*")]
)
def test_policies_are_found_by_how_the_name_of_an_object_begins(name, pattern):
    names = [f"n{number}-*" for number in range(MANY)] + [pattern, "web-*-of-another", "*x", "z*"]
    matches = [{"resources": {"kinds": ["Pod"], "names": [one]}} for one in names]
    many = PolicySet.compile(_one_rule(at, match) for at, match in enumerate(matches))
    pod = {"kind": "Pod", "metadata": {"name": name, "labels": {"app": "x"}}}
    found = evaluate(many, Review(object=pod, kind="Pod"), Inputs())
    assert [r.policy for r in found.results] == [f"p{MANY:03d}"]


def test_labels_of_a_namespace_count_as_they_are_with_each_review():
    blocks = [
        {"resources": {"kinds": ["Pod"], "namespaceSelector": {"matchLabels": {"n": str(at)}}}}
        for at in range(MANY + 9)
    ]
    many = PolicySet.compile(_one_rule(at, match) for at, match in enumerate(blocks))
    pod = {"kind": "Pod", "metadata": {"name": "a", "namespace": "n", "labels": {"app": "x"}}}
    for number in (3, 4, 3):
        one = Review(object=pod, kind="Pod", namespace_labels={"n": str(number)})
        assert [r.policy for r in evaluate(many, one, Inputs()).results] == [f"p{number:03d}"]


def test_a_changed_policy_counts_at_once_and_others_keep_what_was_worked_out():
    policies = [
        _one_rule(at, {"resources": {"kinds": [kind]}})
        for at, kind in enumerate(["Pod", "Secret"] * MANY)
    ]
    before = PolicySet.compile(policies)
    pod = Review(object={"kind": "Pod", "metadata": {"name": "a", "namespace": "n"}}, kind="Pod")
    secret = Review(object={"kind": "Secret", "metadata": {"name": "a"}}, kind="Secret")
    assert len(evaluate(before, pod, Inputs()).results) == MANY
    plan = before.plan(secret)
    changed = PolicySet.compile([_one_rule(0, {"resources": {"kinds": ["Job"]}})])
    after = PolicySet((*changed.policies, *before.policies[1:]))
    after.carry_over(before)
    assert len(evaluate(after, pod, Inputs()).results) == MANY - 1
    assert after.plan(secret) is plan


def test_an_object_bears_the_labels_that_it_had_before():
    old = {"metadata": {"name": "a", "labels": {"k": "old"}}}
    new = {"metadata": {"name": "a", "labels": {"k": ["no text"]}}}
    marks = set(borne(Review(object=new, old_object=old, kind="Pod")))
    labels = {mark for mark in marks if mark[0] == "label"}
    assert labels == {("label", "k"), ("label", "k", "old")}
    assert ("name", "a") in marks


def _one_rule(number: int, match: dict, does: dict = VALIDATES):
    rule = {"name": "r", "match": {"any": [match]}, **does}
    metadata = {
        "name": f"p{number:03d}",
        "annotations": {"pod-policies.kyverno.io/autogen-controllers": "none"},
    }
    return parse_policy(
        {
            "apiVersion": "kyverno.io/v1",
            "kind": "ClusterPolicy",
            "metadata": metadata,
            "spec": {"rules": [rule]},
        },
        at=AT,
    )


@pytest.mark.parametrize(
    ("selector", "kind", "group"),
    [
        ("namespaceSelector", "Pod", ""),
        ("namespaceSelector", "Deployment", "apps"),
        ("objectSelector", "Pod", ""),
    ],
)
def test_of_many_policies_in_cel_about_pods_only_those_that_select_an_object_are_asked(
    selector, kind, group
):
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"]}
    labels = {"team": "7"}

    def policy(number):
        constraints = {
            "resourceRules": [{**rule, "resources": ["pods"]}],
            selector: {"matchLabels": {"team": str(number)}},
        }
        spec = {"matchConstraints": constraints, "validations": [{"expression": "false"}]}
        head = {"apiVersion": "policies.kyverno.io/v1", "kind": "ValidatingPolicy"}
        return parse_cel_policy({**head, "metadata": {"name": f"c{number}"}, "spec": spec}, at=AT)

    policies = PolicySet.compile([policy(number) for number in range(3 * MANY)])
    made = Review(
        object={"kind": kind, "metadata": {"name": "a", "namespace": "n", "labels": labels}},
        operation="CREATE",
        group=group,
        version="v1",
        kind=kind,
        namespace_labels=labels,
    )

    steps = [
        step
        for part in policies.plan(made)
        for _, found in part.stretches
        for step in (found.of(made) if isinstance(found, Marked) else found)
    ]

    assert [step.rule.policy.name for step in steps] == ["c7"]
