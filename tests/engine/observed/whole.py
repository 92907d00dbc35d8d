"""Asks the whole engine, from policy document to answer, as the observed probes were asked of Kyverno."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from engine.errors import NOWHERE, EngineError
from engine.evaluate import Inputs, PolicySet, evaluate
from engine.lint import lint_policy
from engine.model import NOBODY, Review, UserInfo, review_of
from engine.mutate.handler import NOTHING_APPLIED
from engine.parse import parse_policy

HERE = Path(__file__).parent
SHARED = Path(os.environ.get("KPOLICY_SHARED", HERE.parents[3] / "shared"))
_NO_INPUTS = Inputs()
NAMESPACES = {"dev": {"env": "dev", "team": "core-1"}, "prod-eu": {"env": "prod"}}


@dataclass
class Answer:
    """What came of one probe: `refused`, `none`, or a rule's status; with message and object."""

    status: str
    message: str = ""
    patched: Any = None
    properties: Any = None
    rules: tuple[str, ...] = ()
    variables: dict[str, Any] = field(default_factory=dict)


def rows(table: str) -> list[dict[str, Any]]:
    """Return the rows of an observed table, or skip the test where the tables are not at hand."""
    path = SHARED / "observed" / f"{table}.jsonl"
    if not path.exists():
        pytest.skip(f"{path} is not here; set KPOLICY_SHARED to the folder that holds `observed`")
    return [json.loads(line) for line in path.read_text().splitlines()]


def differences(table: str, at: Path = HERE) -> dict[int, str]:
    """Return the rows that may differ as listed `at` a place, with the reason of each."""
    path = at / f"{table}-differences.json"
    if not path.exists():
        return {}
    return {item["row"]: item["reason"] for item in json.loads(path.read_text())}


def policy_of(rule: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """Return a policy of one rule named `r`, matching every kind unless the rule says otherwise (`*` itself allows less of a rule)."""
    match = rule.get("match") or {"any": [{"resources": {"kinds": ["?*"]}}]}
    return {
        "apiVersion": "kyverno.io/v1",
        "kind": "ClusterPolicy",
        "metadata": {
            "name": "p",
            "annotations": {"pod-policies.kyverno.io/autogen-controllers": "none"},
        },
        "spec": {"background": False, **spec, "rules": [{"name": "r", **rule, "match": match}]},
    }


def ask(
    policy: dict[str, Any],
    obj: dict[str, Any],
    *,
    user: UserInfo = NOBODY,
    operation: str = "CREATE",
    inputs: Inputs = _NO_INPUTS,
    **review: Any,
) -> Answer:
    """Return the answer of the first rule of `policy` on `obj`."""
    try:
        parsed = parse_policy(policy, at=NOWHERE)
    except EngineError as error:
        return Answer("refused", error.message)
    errors = [item for item in lint_policy(parsed) if item.severity == "error"]
    if errors:
        return Answer("refused", errors[0].message)
    compiled = PolicySet.compile([parsed])
    if compiled.problems:
        return Answer("refused", compiled.problems[0].error.message)
    evaluation = evaluate(compiled, _review(obj, user, operation, **review), inputs, trace=True)
    assert not evaluation.missing
    if not evaluation.results:
        return Answer("none")
    first = evaluation.results[0]
    names = tuple(result.rule for result in evaluation.results)
    values = {
        step.text: step.value
        for trace in evaluation.traces
        for step in trace.steps
        if step.kind == "variable"
    }
    # a rule that finds nothing to change leaves the object, which then stands in no result
    patched = obj if first.message == NOTHING_APPLIED else first.patched
    return Answer(first.status.value, first.message, patched, dict(first.properties), names, values)


def _review(obj: dict[str, Any], user: UserInfo, operation: str, **more: Any) -> Review:
    namespace = (obj.get("metadata") or {}).get("namespace", "")
    old = obj if operation == "DELETE" else None
    new = None if operation == "DELETE" else obj
    review = review_of(
        obj,
        user=user,
        operation=operation,
        old_object=old,
        namespace_labels=NAMESPACES.get(namespace, {}),
        **more,
    )
    return review if new is obj else _deleted(review)


def _deleted(review: Review) -> Review:
    """The command line keeps the object in both places of a DELETE but leaves `request.namespace` empty."""
    return replace(review, object=None)


def user_of(info: dict[str, Any] | None) -> UserInfo:
    """Return the user of a probe's `userinfo`."""
    if not info:
        return NOBODY
    who = info.get("userInfo") or {}
    return UserInfo(
        username=who.get("username", ""),
        uid=who.get("uid", ""),
        groups=tuple(who.get("groups") or ()),
        extra=who.get("extra") or {},
        roles=tuple(info.get("roles") or ()),
        cluster_roles=tuple(info.get("clusterRoles") or ()),
    )


def compare(
    table: str, verdicts: dict[int, str | None], share: float = 0.985, at: Path = HERE
) -> None:
    """Check that enough rows agree and that those that differ are exactly the listed ones.

    `verdicts` maps a row's number to None where it agrees, else to what differs.
    """
    missed = {row: text for row, text in verdicts.items() if text is not None}
    listed = differences(table, at)
    unlisted = {row: text for row, text in missed.items() if row not in listed}
    assert not unlisted, "\n".join(f"row {row}: {text}" for row, text in unlisted.items())
    healed = [row for row in listed if row in verdicts and row not in missed]
    assert not healed, f"rows {healed} agree now: take them off {table}-differences.json"
    assert len(missed) <= (1 - share) * len(verdicts)
