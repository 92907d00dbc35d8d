"""Every observed answer of Kyverno's podSecurity rules, against the engine's."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from engine.errors import PolicyError
from engine.podsecurity import compile_pod_security

HERE = Path(__file__).parent
SHARED = Path(os.environ.get("KPOLICY_SHARED") or HERE.parents[3] / "shared")
TABLE = SHARED / "observed" / "podsecurity.jsonl"
GROUP = re.compile(r"\(Forbidden reason: .*?\]\)")


def answer(row: dict[str, Any]) -> dict[str, Any]:
    """Return what the engine says in the shape of a row."""
    try:
        check = compile_pod_security(row["rule"]["validate"]["podSecurity"])
    except PolicyError as error:
        return {"status": "rejected", "message": error.message}
    outcome = check(row["object"], "r")
    return {
        "status": outcome.status.value,
        "message": outcome.message,
        "properties": dict(outcome.properties),
    }


def comparable(entry: dict[str, Any], *, in_order: bool) -> Any:
    """Return status, message and properties; the parts that have no order sorted unless `in_order`.

    `none` stands for a policy that the API server's schema refuses, which is a refusal here.
    """
    if entry["status"] == "none" or "Unsupported value" in (entry["message"] or ""):
        return "refused by the schema"
    found = dict(entry.get("properties") or {})
    groups: list[str] = GROUP.findall(entry["message"])
    frame = GROUP.sub("", entry["message"])
    if in_order or not found:
        return entry["status"], frame, groups, found
    controls = sorted(found.pop("controls").split(","))
    details = sorted(map(json.dumps, json.loads(found.pop("controlsJSON"))))
    return entry["status"], frame, sorted(groups), found, controls, details


def test_every_observed_pod_security_answer_is_given() -> None:
    if not TABLE.is_file():
        pytest.skip(f"{TABLE} is not there; set KPOLICY_SHARED to the folder that holds observed/")
    rows = [json.loads(line) for line in TABLE.read_text().splitlines()]
    differing = {}
    for index, row in enumerate(rows):
        in_order = "exclude" not in row["rule"]["validate"]["podSecurity"]
        ours = comparable(answer(row), in_order=in_order)
        if ours != comparable(row, in_order=in_order):
            differing[index] = ours

    listed = json.loads((HERE / "podsecurity-differences.json").read_text())
    expected = {entry["row"] for entry in listed}
    assert set(differing) == expected, {
        row: differing.get(row) for row in set(differing) ^ expected
    }
    assert len(differing) <= 0.015 * len(rows)
