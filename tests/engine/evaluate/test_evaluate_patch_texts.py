"""JSON patches with variables: values fill the fields that the policy wrote, and make no others."""

from __future__ import annotations

from typing import Any

import pytest

from engine.evaluate import Inputs, PolicySet, evaluate
from engine.model import Status, review_of
from tests.engine.evaluate.builders import NOW, config_map, decide, policy

X = "{{ request.object.data.x }}"
OWNED = [
    'a", owned: "yes',
    'a"}\n- {op: add, path: /data/owned, value: "yes',
    "a'\n- op: add\n  path: /data/owned\n  value: 'yes",
    "a\n- op: add\n  path: /data/owned\n  value: yes",
    "a\n  path: /data/owned",
    "{owned: yes}",
    "&owned yes",
    "variable3quoted",
]


def _patched(text: str, obj: dict[str, Any]) -> Any:
    (result,) = decide(policy({"name": "r", "mutate": {"patchesJson6902": text}}), obj).results
    assert result.status is Status.PASS, result.message
    assert result.patched is not None
    return result.patched["data"]


@pytest.mark.parametrize(
    "text",
    [
        f'- {{op: add, path: /data/z, value: "{X}"}}',
        f'- op: add\n  path: /data/z\n  value: "{X}"',
        f"- op: add\n  path: /data/z\n  value: '{X}'",
        f"- op: add\n  path: /data/z\n  value: {X}",
        f"- op: add\n  value: {X}\n  path: /data/z\n",
        f"- op: add\n  path: /data/z\n  value: >-\n    {X}",
    ],
)
@pytest.mark.parametrize("value", OWNED)
def test_a_value_is_the_value_of_the_field_and_nothing_more(text: str, value: str) -> None:
    assert _patched(text, config_map(x=value)) == {"x": value, "z": value}


def test_values_stand_in_paths_keys_and_texts_as_they_are() -> None:
    obj = config_map(x='a" b', y="k")
    text = f"""
    - op: add
      path: /data/k-{{{{ request.object.data.y }}}}
      value: "is {X}, \\{{{{ y }}}}"
    - op: add
      path: "/data/{X}"
      value: {{"in {X}": 1}}
    """

    found = _patched(text, obj)

    assert found == {**obj["data"], "k-k": 'is a" b, {{ y }}', 'a" b': {'in a" b': 1}}


@pytest.mark.parametrize(
    ("value", "quoted", "plain"),
    [
        ("5", "5", 5),
        ("true", "true", True),
        ("nginx:1.2", "nginx:1.2", "nginx:1.2"),
        ("", "", None),
    ],
)
@pytest.mark.parametrize("other", ["word", "two words"])
def test_a_value_of_one_word_is_read_as_in_kyverno(
    value: str, quoted: str, plain: Any, other: str
) -> None:
    text = f"""
    - {{op: add, path: /data/q, value: "{X}"}}
    - op: add
      path: /data/p
      value: {X}
    - {{op: add, path: /data/o, value: "{{{{ request.object.data.y }}}}"}}
    """

    found = _patched(text, config_map(x=value, y=other))

    assert (found["q"], found["p"], found["o"]) == (quoted, plain, other)


def test_maps_and_lists_stand_as_themselves_without_quotes() -> None:
    obj = config_map(x={"a": ['"', "b: c"]})

    assert _patched(f"- op: add\n  path: /data/z\n  value: {X}", obj)["z"] == obj["data"]["x"]


def test_the_switch_puts_values_into_the_text_as_kyverno_does() -> None:
    text = f'- {{op: add, path: /data/z, value: "{X}"}}'
    compiled = PolicySet.compile([policy({"name": "r", "mutate": {"patchesJson6902": text}})])
    obj = config_map(x=OWNED[1])

    found = evaluate(compiled, review_of(obj), Inputs(now=NOW, resolve_values=True))

    assert found.patched["data"]["owned"] == "yes"


def test_a_patch_that_cannot_be_read_without_its_values_takes_words_only() -> None:
    text = f"- {{op: add, path: /data/z, value: [{X}}}"

    (result,) = decide(
        policy({"name": "r", "mutate": {"patchesJson6902": text}}),
        config_map(x="1], path: /data/a"),
    ).results

    assert result.status is Status.ERROR
    assert "special characters" in result.message
