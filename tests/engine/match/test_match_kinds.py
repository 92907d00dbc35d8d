"""Kinds as policies write them, and what each of them reaches."""

from __future__ import annotations

import pytest

from engine.match import KindFilter, compile_match, is_version, parse_kind
from engine.match.kinds import plain_kinds
from engine.model import Review


def reaches(kind: str, group: str, version: str, name: str, subresource: str = "") -> bool:
    """Ask one kind text, through the filter and through a compiled match alike."""
    by_filter = parse_kind(kind).matches(group, version, name, subresource)
    review = Review({}, group=group, version=version, kind=name, subresource=subresource)
    by_match = compile_match({"any": [{"resources": {"kinds": [kind]}}]}, {}).applies(review)

    assert by_filter == by_match
    return by_match


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Pod", KindFilter("*", "*", "Pod")),
        ("*", KindFilter("*", "*", "*")),
        ("*/*", KindFilter("*", "*", "*", "*")),
        ("*/scale", KindFilter("*", "*", "*", "scale")),
        ("*/Pod", KindFilter("*", "*", "Pod")),
        ("v1/Pod", KindFilter("*", "v1", "Pod")),
        ("v10/Widget", KindFilter("*", "v10", "Widget")),
        ("v1beta12/Widget", KindFilter("*", "v1beta12", "Widget")),
        ("Pod/exec", KindFilter("*", "*", "Pod", "exec")),
        ("Pod.exec", KindFilter("*", "*", "Pod", "exec")),
        ("Pod/*", KindFilter("*", "*", "Pod", "*")),
        ("v1/Pod/exec", KindFilter("*", "v1", "Pod", "exec")),
        ("v1/Pod.exec", KindFilter("*", "v1", "Pod", "exec")),
        ("*/Pod/exec", KindFilter("*", "*", "Pod", "exec")),
        ("*/*/*", KindFilter("*", "*", "*", "*")),
        ("apps/v1/Deployment", KindFilter("apps", "v1", "Deployment")),
        ("/v1/Pod", KindFilter("", "v1", "Pod")),
        ("apps/*/*", KindFilter("apps", "*", "*")),
        ("apps/v1/Deployment/scale", KindFilter("apps", "v1", "Deployment", "scale")),
        ("apps/v1/Deployment.scale", KindFilter("apps", "v1", "Deployment", "scale")),
        ("example.com/v1/Widget", KindFilter("example.com", "v1", "Widget")),
        ("apps/Deployment", KindFilter("*", "*", "apps", "Deployment")),
        ("a/b/c/d/e", KindFilter("", "", "", "")),
        ("", KindFilter("*", "*", "")),
    ],
)
def test_each_form_of_a_kind_is_read(text: str, expected: KindFilter) -> None:
    assert parse_kind(text) == expected


@pytest.mark.parametrize("text", ["v1", "v10", "v1alpha1", "v2beta12", "*"])
def test_a_version_is_told_by_its_form(text: str) -> None:
    assert is_version(text)


@pytest.mark.parametrize(
    "text", ["", "v", "V1", "v1beta", "v1gamma1", "1", "v1x", "xv1", "v*", "**"]
)
def test_anything_else_is_not_a_version(text: str) -> None:
    assert not is_version(text)


@pytest.mark.parametrize(
    ("kind", "target"),
    [
        ("Pod", ("", "v1", "Pod")),
        ("P?d", ("", "v1", "Pod")),
        ("*", ("apps", "v1", "Deployment")),
        ("*/*", ("apps", "v1", "Deployment", "scale")),
        ("*/*", ("apps", "v1", "Deployment")),
        ("*/scale", ("apps", "v1", "Deployment", "scale")),
        ("Deployment/sc*", ("apps", "v1", "Deployment", "scale")),
        ("v1/Deployment", ("apps", "v1", "Deployment")),
        ("apps/v1/Deployment", ("apps", "v1", "Deployment")),
        ("a*/v1/Deployment", ("apps", "v1", "Deployment")),
        ("apps/v?/Deployment", ("apps", "v1", "Deployment")),
        ("Pod", ("", "v1", "Pod", "ephemeralcontainers")),
        ("v1/Pod", ("", "v1", "Pod", "ephemeralcontainers")),
        ("Pod/ephemeralcontainers", ("", "v1", "Pod", "ephemeralcontainers")),
        ("*", ("", "v1", "Pod", "ephemeralcontainers")),
    ],
)
def test_a_kind_reaches(kind: str, target: tuple[str, ...]) -> None:
    assert reaches(kind, *target)


@pytest.mark.parametrize(
    ("kind", "target"),
    [
        ("Pod", ("", "v1", "Pods")),
        ("pod", ("", "v1", "Pod")),
        ("Pod", ("", "v1", "Pod", "exec")),
        ("P*", ("", "v1", "Pod", "exec")),
        ("v1/Pod", ("", "v1", "Pod", "exec")),
        ("*", ("", "v1", "Pod", "exec")),
        ("*/scale", ("apps", "v1", "Deployment")),
        ("*/scale", ("apps", "v1", "Deployment", "status")),
        ("Pod/exec", ("", "v1", "Pod")),
        ("v1/Deployment", ("extensions", "v1beta1", "Deployment")),
        ("apps/v1/Deployment", ("extensions", "v1", "Deployment")),
        ("apps/v1/Deployment", ("apps", "v2", "Deployment")),
        ("/v1/Pod", ("apps", "v1", "Pod")),
        ("*/v1/Pod", ("", "v1", "Pod")),
        ("Deployment", ("apps", "v1", "Deployment", "ephemeralcontainers")),
        ("Pod/exec", ("", "v1", "Pod", "ephemeralcontainers")),
        ("", ("", "v1", "Pod")),
        ("a/b/c/d/e", ("", "", "Pod")),
    ],
)
def test_a_kind_does_not_reach(kind: str, target: tuple[str, ...]) -> None:
    assert not reaches(kind, *target)


def test_several_kinds_are_alternatives() -> None:
    match = compile_match({"any": [{"resources": {"kinds": ["Pod", "apps/v1/Deployment"]}}]}, {})

    assert match.applies(Review({}, version="v1", kind="Pod"))
    assert match.applies(Review({}, group="apps", version="v1", kind="Deployment"))
    assert not match.applies(Review({}, group="x", version="v1", kind="Deployment"))
    assert not match.applies(Review({}, version="v1", kind="Service"))


@pytest.mark.parametrize(
    ("kind", "plain"),
    [
        ("Pod", True),
        ("*", False),
        ("P?d", False),
        ("v1/Pod", False),
        ("/*/Pod", False),
        ("Pod/x", False),
    ],
)
def test_only_a_bare_kind_is_plain(kind: str, plain: bool) -> None:
    assert parse_kind(kind).is_plain is plain


def test_kind_names_are_known_unless_one_is_a_wildcard() -> None:
    assert plain_kinds([parse_kind("v1/Pod"), parse_kind("Job")]) == {"Pod", "Job"}
    assert plain_kinds([parse_kind("v1/Pod"), parse_kind("*Set")]) is None
