"""Runs every folder here that holds `policy.yaml`, `objects.yaml` and `expect.yaml`; adding a case needs no Python.

`expect.yaml`: `results`, each with policy, rule, resource (`namespace/Kind/name`), result and, where it matters, message;
optionally `operation`, `user` (as in a UserInfo file), `namespaces` (labels by name), `now`, and `patched` objects.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from engine.model import NOBODY, UserInfo
from kubectl_kpolicy.apply.documents import objects_of, sort_documents
from kubectl_kpolicy.apply.names import resource_path
from kubectl_kpolicy.apply.processor import Processor, Setting
from kubectl_kpolicy.apply.scope import Scopes
from kubectl_kpolicy.session.sources import read_paths

FOLDER = Path(__file__).parent
CASES = sorted(path.parent for path in FOLDER.glob("*/expect.yaml"))


def _user(spec):
    if not spec:
        return NOBODY
    info = spec.get("userInfo") or {}
    return UserInfo(
        username=info.get("username", ""),
        groups=tuple(info.get("groups") or ()),
        roles=tuple(spec.get("roles") or ()),
        cluster_roles=tuple(spec.get("clusterRoles") or ()),
    )


def _now(text):
    return datetime.fromisoformat(text) if text else datetime(2026, 8, 21, tzinfo=UTC)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_gives_exactly_the_expected_results(case):
    (expect,) = (document.value for document in read_paths([case / "expect.yaml"]))
    loaded = sort_documents(read_paths([case / "policy.yaml"]))
    assert loaded.problems == []
    setting = Setting(
        now=_now(expect.get("now")),
        user=_user(expect.get("user")),
        namespace_labels=expect.get("namespaces") or {},
    )
    processor = Processor(loaded.policies, loaded.exceptions, setting=setting)
    assert processor.problems == ()
    scopes = Scopes()
    answers = [
        answer
        for obj in objects_of(read_paths([case / "objects.yaml"]))
        for answer in processor.apply(scopes.placed(obj), operation=expect.get("operation") or "")
    ]
    found = [
        {
            "policy": result.policy,
            "rule": result.rule,
            "resource": resource_path(answer.object),
            "result": str(result.status),
            "message": result.message,
        }
        for answer in answers
        for result in answer.results
    ]
    wanted = expect["results"]
    assert [
        {**row, "message": one.get("message", row["message"])}
        for one, row in zip(wanted, found, strict=False)
    ] == found
    assert [
        {key: row[key] for key in ("policy", "rule", "resource", "result")} for row in found
    ] == [{key: one[key] for key in ("policy", "rule", "resource", "result")} for one in wanted]
    for obj in expect.get("patched") or ():
        assert obj in [answer.patched for answer in answers]
