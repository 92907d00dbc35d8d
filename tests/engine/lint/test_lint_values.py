"""Rules that may decide otherwise than in Kyverno because values are data: which are named, and which are left in peace."""

from __future__ import annotations

from typing import Any

import pytest

from engine.lint.values import rereadings

LOOKED_UP = {"name": "settings", "configMap": {"name": "settings", "namespace": "a"}}
DERIVED = {"name": "text", "variable": {"value": "{{ settings.data.text }}"}}
GIVEN = {"name": "own", "variable": {"value": "a {{ request.name }}"}}


def rule(message: str, *context: dict[str, Any], **entry: Any) -> dict[str, Any]:
    more = [{"name": "v", "variable": entry}] if entry else []
    return {"name": "r", "context": [*context, *more], "validate": {"message": message, "deny": {}}}


@pytest.mark.parametrize(
    "text",
    [
        "see {{ settings.data.text }}",
        "see {{ text }}",
        "{{ settings.data.{{ request.name }} }}",
        "{{ {{ own }} }}",
        "a {{ to_upper('{{ settings.data.text }}') }}",
    ],
)
def test_texts_that_kyverno_may_read_again_or_put_together_are_named(text: str) -> None:
    assert rereadings(rule(text, LOOKED_UP, DERIVED, GIVEN)) == [text]


@pytest.mark.parametrize(
    "text",
    [
        "no variable",
        "{{ settings.data.text }}",
        "team {{ request.object.metadata.labels.team }}",
        "see {{ own }}",
        "{{ settings.data.\"{{ request.name }}\" || 'x' }}",
        "{{ element.list[{{ elementIndex }}] }}",
        r"\{{ settings.data.text }}",
    ],
)
def test_texts_whose_values_nobody_is_known_to_write_as_templates_are_not(text: str) -> None:
    assert rereadings(rule(text, LOOKED_UP, DERIVED, GIVEN)) == []


def test_paths_that_are_put_together_are_named() -> None:
    assert rereadings(rule("m", value={"a": 1}, jmesPath="a.{{ request.name }}"))
    assert not rereadings(rule("m", value=["a"], jmesPath="[?@ == '{{ request.name }}']"))


def test_a_rule_nested_without_end_is_left_aside() -> None:
    assert rereadings(rule("{{ " * 80 + "a" + " }}" * 80)) == []
