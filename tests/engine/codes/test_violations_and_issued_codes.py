"""What a code is for, as a digest: every change of the body counts, of the metadata what a rule looked at; codes by chance."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.codes import (
    body_digest,
    canonical,
    carried_codes,
    is_code,
    is_left_as_it_was,
    issued_code,
    issued_name,
    shown,
    use_name,
    verifier_of,
    violation_of,
)
from engine.errors import LimitError
from engine.model.result import Forgiven

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "labels": {"x": "1"}}, "spec": {"hostPID": True, "containers": [{"name": "c", "image": "i"}]}}  # fmt: skip
MISS = [("r", "/spec/hostPID/")]


def changed(**metadata):
    return {**POD, "metadata": {**POD["metadata"], **metadata}}


@given(st.dictionaries(st.text(max_size=8), st.one_of(st.text(max_size=8), st.integers()), min_size=1))  # fmt: skip
def test_any_change_of_the_body_is_another_violation(extra):
    other = {**POD, "spec": {**POD["spec"], "more": extra}}
    assert body_digest(other) != body_digest(POD)
    assert violation_of(other, MISS) != violation_of(POD, MISS)


def test_metadata_and_status_are_no_part_of_the_body():
    assert body_digest(changed(labels={"y": "2"}, uid="u")) == body_digest(POD)
    assert body_digest({**POD, "status": {"phase": "Running"}}) == body_digest(POD)


def test_a_label_counts_only_where_the_rule_looked_at_it_or_may_have():
    other = changed(labels={"x": "2"})
    assert violation_of(other, MISS) == violation_of(POD, MISS)
    assert violation_of(other, [("r", "/metadata/labels/x/")]) != violation_of(POD, [("r", "/metadata/labels/x/")])  # fmt: skip
    assert violation_of(other, [("r", "")]) != violation_of(POD, [("r", "")])


def test_the_code_itself_is_no_part_of_what_it_is_for():
    carrying = changed(annotations={"kpolicy.io/code": "x", "kubectl.kubernetes.io/last-applied-configuration": "{}"})  # fmt: skip
    assert violation_of(carrying, [("r", "")]) == violation_of(changed(annotations={}), [("r", "")])


def test_another_rule_is_another_violation_and_their_order_is_none():
    assert violation_of(POD, [("s", "/spec/hostPID/")]) != violation_of(POD, MISS)
    both = [("r", ""), ("s", "/spec/")]
    assert violation_of(POD, both) == violation_of(POD, both[::-1])


def mounted(name, source):
    volume = {"name": name, source: {}}
    container = {"name": "c", "image": "i", "volumeMounts": [{"name": name, "mountPath": "/x"}]}
    return {**POD, "spec": {"volumes": [volume], "containers": [container]}}


HOSTILE = st.sampled_from(["name", 'a"name', "kube-api-access-x", 'kube-api-access-"', '{"name":"kube-api-access-', '","name":"kube-api-access-a"', "\\", '"', "<", "\u2028", "\ud800"])  # fmt: skip
TREES = st.recursive(HOSTILE | st.integers(0, 3), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(HOSTILE, inner, max_size=3), max_leaves=8)  # fmt: skip


def drawn_anew(value, end):
    """Return a value in which volumes for tokens have names with another end."""
    if isinstance(value, list):
        return [drawn_anew(one, end) for one in value]
    if not isinstance(value, dict):
        return value
    name = value.get("name")
    drawn = {"name": f"kube-api-access-{end}"} if isinstance(name, str) and name.startswith("kube-api-access-") else {}  # fmt: skip
    return {**{key: drawn_anew(one, end) for key, one in value.items()}, **drawn}


@given(TREES, TREES)
@example({'a"name': "kube-api-access-x"}, {'a"name': "kube-api-access-y"})
@example(['{"name":"kube-api-access-x"'], ['{"name":"kube-api-access-y"'])
def test_bodies_that_differ_in_drawn_names_only_are_one_violation_and_no_text_counts_as_such_a_name(one, other):  # fmt: skip
    is_same = drawn_anew(one, "") == drawn_anew(other, "")
    assert (body_digest({"spec": one}) == body_digest({"spec": other})) is is_same
    assert body_digest({"spec": drawn_anew(one, 'x"y')}) == body_digest({"spec": one})


def test_the_drawn_name_of_a_token_volume_does_not_count_but_what_it_is_does():
    one, other = (mounted(f"kube-api-access-{end}", "projected") for end in ("abcde", "fghij"))
    assert body_digest(one) == body_digest(other)
    assert body_digest(one) != body_digest(mounted("kube-api-access-abcde", "hostPath"))
    assert body_digest(mounted("a", "projected")) != body_digest(mounted("b", "projected"))


@pytest.mark.parametrize("path", ["/metadata/labels/nosuch/0/x", "/metadata/ownerReferences/9/", "/metadata/"])  # fmt: skip
def test_a_path_that_leads_nowhere_is_a_violation_like_any_other(path):
    assert violation_of(POD, [("r", path)]) == violation_of(POD, [("r", path)])


@pytest.mark.parametrize("annotations", [None, {}, {"kpolicy.io/code": 7}, {"kpolicy.io/code": " , ,"}])  # fmt: skip
def test_an_object_without_codes_carries_none(annotations):
    assert carried_codes(changed(annotations=annotations)) == ()
    assert carried_codes(None) == ()


def nested(levels: int) -> Any:
    value: Any = {}
    for number in range(levels):
        value = [value] if number % 2 else {"a": value}
    return value


def test_what_is_nested_too_deeply_has_no_digest_and_is_not_known_to_be_left_as_it_was():
    deep = {**POD, "spec": nested(700)}

    with pytest.raises(LimitError, match="nested more than"):
        body_digest(deep)
    assert not is_left_as_it_was(deep, deep, Forgiven((), ()), None)
    assert is_left_as_it_was(POD, POD, Forgiven((), ()), None)


def test_at_most_eight_codes_are_looked_at():
    carried = carried_codes(changed(annotations={"kpolicy.io/code": ",".join(map(str, range(20)))}))
    assert carried == tuple(map(str, range(8)))


@given(st.binary(min_size=12, max_size=40))
def test_an_issued_code_is_read_back_and_known_by_its_verifier_only(chance):
    code = issued_code(chance)
    assert canonical(shown(code)) == code
    assert is_code(code, verifier_of(code))
    assert not is_code(code, "")
    assert len({issued_name(code), use_name(code), verifier_of(code)}) == 3
    assert code.lower() not in issued_name(code) + verifier_of(code)


def test_too_little_chance_makes_no_code():
    with pytest.raises(ValueError, match="too little chance"):
        issued_code(b"short")
