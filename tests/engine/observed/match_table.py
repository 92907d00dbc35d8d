"""Reads `match.jsonl` rows into what the engine takes: a policy document and a review."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from engine.model import NOBODY, Review, UserInfo

HERE = Path(__file__).parent
SHARED = Path(os.environ.get("KPOLICY_SHARED") or HERE.parents[3] / "shared")
LABELS = {"dev": {"env": "dev", "team": "core-1"}, "prod-eu": {"env": "prod"}}
CLUSTER_SCOPED = {"Namespace", "ClusterRole"}


def observed_rows(table: str) -> list[dict[str, Any]]:
    """Return the rows of an observed table, or skip the test where the tables are not at hand."""
    path = SHARED / "observed" / f"{table}.jsonl"
    if not path.is_file():
        pytest.skip(f"{path} is not there; set KPOLICY_SHARED to the folder that holds observed/")
    return [json.loads(line) for line in path.read_text().splitlines()]


def assert_only_listed_rows_differ(table: str, differing: dict[int, str], total: int) -> None:
    """Require 98.5 % equal rows, and exactly the listed ones different."""
    listed = HERE / f"{table}-differences.json"
    expected = {entry["row"] for entry in json.loads(listed.read_text())}

    assert set(differing) == expected, {
        row: differing.get(row) for row in set(differing) ^ expected
    }
    assert len(differing) <= 0.015 * total


def user_of(row: dict[str, Any]) -> UserInfo:
    info = row.get("userinfo")
    if not info:
        return NOBODY
    who = info.get("userInfo", {})
    return UserInfo(
        username=who.get("username", ""),
        uid=who.get("uid", ""),
        groups=tuple(who.get("groups", ())),
        extra=who.get("extra", {}),
        roles=tuple(info.get("roles", ())),
        cluster_roles=tuple(info.get("clusterRoles", ())),
    )


def review_of_row(row: dict[str, Any]) -> Review:
    obj = row["object"]
    subresource = row.get("subresource") or {}
    parent = subresource.get("of") or f"{obj['apiVersion']}/{obj['kind']}"
    *group, version, kind = parent.split("/")
    metadata = dict(obj["metadata"])
    if kind not in CLUSTER_SCOPED:
        metadata.setdefault("namespace", "default")
    obj = {**obj, "metadata": metadata}
    operation = row.get("operation", "CREATE")
    return Review(
        object=None if operation == "DELETE" else obj,
        old_object=None if operation == "CREATE" else obj,
        operation=operation,
        group="".join(group),
        version=version,
        kind=kind,
        subresource=subresource.get("name", ""),
        user=user_of(row),
        namespace_labels=LABELS.get(metadata.get("namespace", ""), {}),
    )


def policy_of_row(row: dict[str, Any]) -> dict[str, Any]:
    """Return the policy of a row: a deny rule that always fails."""
    rule: dict[str, Any] = {
        "name": "r",
        "match": row["match"],
        "validate": {
            "message": "x",
            "deny": {"conditions": {"all": [{"key": 1, "operator": "Equals", "value": 1}]}},
        },
    }
    if "exclude" in row:
        rule["exclude"] = row["exclude"]
    choice = row.get("autogen_controllers", "none")
    key = "pod-policies.kyverno.io/autogen-controllers"
    annotations = {} if choice == "default" else {key: choice}
    return {
        "apiVersion": "kyverno.io/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": "p", "annotations": annotations},
        "spec": {"background": False, "rules": [rule]},
    }
