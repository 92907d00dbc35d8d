"""Codes that people issue by hand or agree to, against what grant policies let."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from engine.codes.requests import APPROVED
from engine.errors import PolicyError
from engine.grants import issuing_policy, parse_grant_policy, parse_issued
from engine.grants.issuing import LONGEST
from engine.record import replace

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
POD = {"kind": "Pod", "namespace": "shop", "name": "web"}


def policy(name="default", mode="acknowledge", **spec):
    codes = {"mode": mode, **spec.pop("codes", {})}
    return parse_grant_policy({"metadata": {"name": name}, "spec": {"approvers": [{"users": ["bob"], "groups": ["leads"]}], "codes": codes, **spec}})  # fmt: skip


def code(rules=("r",), of="no-root", target=None, **spec):
    ends = NOW + spec.pop("lives", timedelta(minutes=15))
    binding = {"policy": of, "rules": list(rules), "object": {**POD, **(target or {})}}
    given = {"user": "ada", "issuedBy": "bob", "expiresAt": ends.isoformat(), "verifier": "v", "binding": binding, **spec}  # fmt: skip
    return parse_issued({"metadata": {"name": "code-x", "creationTimestamp": NOW.isoformat()}, "spec": given}, NOW)  # fmt: skip


def why(issued, *policies):
    found, refusals = issuing_policy(issued, policies or (policy(),))
    assert (found is not None) or refusals
    return "; ".join(map(str, refusals))


def test_a_code_within_a_grant_policy_may_be_issued_by_one_of_its_approvers():
    assert why(code()) == ""
    assert why(code(issuedBy="cyd", issuedByGroups=["leads"])) == ""
    assert why(code(rules=()), policy(policies=["no-*"])) == ""
    assert why(code(issuedBy="anybody"), policy(approvers=[])) == ""


@pytest.mark.parametrize(
    ("changes", "rules", "text"),
    [
        ({"issuedBy": "eve"}, {}, "`eve` is on no level of approvers of grantpolicy/default"),
        ({"issuedBy": "eve", "issuedByGroups": ["dev"]}, {}, "is on no level of approvers"),
        ({"issuedBy": "ada"}, {}, "nobody issues a code for oneself"),
        ({"issuedBy": ""}, {"approvers": []}, "a service account issues no codes"),
        ({"issuedBy": "system:serviceaccount:ci:bot"}, {"approvers": []}, "a service account issues no codes"),
        ({"user": "system:serviceaccount:ci:bot"}, {}, "is no person"),
        ({"user": ""}, {}, "nobody issues a code for oneself"),
        ({"lives": timedelta(hours=5)}, {}, "later than 4h from now, the maximum of grantpolicy/default"),
        ({"lives": timedelta(days=26_000)}, {"codes": {"maxDuration": "3000d"}}, "later than 7d from now"),
        ({"lives": timedelta(minutes=15)}, {"codes": {"maxDuration": "10m"}}, "later than 10m from now"),
        ({}, {"mode": "off"}, "has one-time codes off"),
        ({}, {"mode": "approve"}, "has codes agreed to by what they are for"),
        ({"verifier": APPROVED}, {}, "need no approval"),
        ({}, {"codes": {"strict": True}}, "are claimed and not issued by hand"),
        ({}, {"policies": ["other"]}, "no grant policy lets `ada` have codes for `no-root`"),
        ({}, {"rules": ["other"]}, "no grant policy lets"),
        ({"rules": ("r", "s")}, {"rules": ["r"]}, "no grant policy lets"),
        ({}, {"namespaces": ["bank"]}, "no grant policy lets"),
        ({}, {"requesters": {"users": ["dale"]}}, "no grant policy lets"),
        ({"target": {"name": "web-*"}}, {}, "a code is for one object and named rules"),
        ({"target": {"kind": "*"}}, {}, "a code is for one object"),
        ({"target": {"name": ""}}, {}, "a code is for one object"),
        ({"rules": ("*",)}, {}, "a code is for one object"),
    ],
)  # fmt: skip
def test_each_limit_of_a_code_names_itself(changes, rules, text):
    assert text in why(code(**changes), policy(**rules))


def test_groups_of_the_user_count_once_they_are_known():
    few = policy(requesters={"groups": ["ops"]})

    assert why(code(), few) == ""
    assert why(replace(code(), groups=frozenset({"ops"})), few) == ""
    assert "no grant policy lets" in why(replace(code(), groups=frozenset({"dev"})), few)


def test_an_agreement_is_limited_like_a_code():
    agree = policy(mode="approve")

    assert why(code(verifier=APPROVED), agree) == ""
    assert why(code(verifier=APPROVED, user="system:serviceaccount:ci:bot"), agree) == ""
    assert "4h" in why(code(verifier=APPROVED, lives=timedelta(days=3)), agree)
    assert "nobody approves an own request" in why(code(verifier=APPROVED, user="bob"), agree)
    assert "on no level" in why(code(verifier=APPROVED, issuedBy="eve"), agree)


def test_the_first_policy_that_lets_a_code_counts_and_else_the_nearest_refuses():
    short, long = policy("a", codes={"maxDuration": "10m"}), policy("b")

    assert issuing_policy(code(), (long, short))[0] is long
    assert issuing_policy(code(issuedBy="eve", lives=LONGEST), (policy("c", mode="off"), short))[0] is short  # fmt: skip


def test_an_end_that_is_none_is_no_end():
    with pytest.raises(PolicyError):
        code(expiresAt="for ever")
