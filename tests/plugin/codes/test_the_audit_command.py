"""`kubectl kpolicy audit` on a sandbox: a whole trail is whole, six kinds of tampering have names, exports lose nothing."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest

from controllers.kube.kinds import AUDIT_SEGMENTS, NAMESPACES, SECRETS
from controllers.store.audit import AuditTrail, seal_key
from tests.plugin.grants.staging import Said, Stage, play

if TYPE_CHECKING:
    from collections.abc import Callable

KEY = b"r" * 32
COUNT = 6
Records = list[dict[str, Any]]


def edited(records: Records) -> Records:
    return [{**one, "actor": "eve"} if one["seq"] == 3 else one for one in records]


def deleted(records: Records) -> Records:
    return [one for one in records if one["seq"] != 3]


def moved(records: Records) -> Records:
    return [records[0], records[2], records[1], *records[3:]]


def inserted(records: Records) -> Records:
    return [*records[:2], {**records[1], "id": "new"}, *records[2:]]


def cut(records: Records) -> Records:
    return records[:-2]


def rolled_back(records: Records) -> Records:
    from engine.audit import Checkpoint, append

    before = records[3]
    head = Checkpoint(before["seq"], before["hash"])
    made = append({"id": "other", "actor": "eve", "verb": "v"}, head)
    return [*records[:4], made, append({"id": "more", "verb": "v"}, Checkpoint(made["seq"], made["hash"]))]  # fmt: skip


async def trail(stage: Stage) -> dict[str, Any]:
    """Write a trail and return its segment."""
    await stage.admin.create(NAMESPACES, {"metadata": {"name": "kyverno"}})
    key = base64.b64encode(KEY).decode()
    await stage.admin.create(SECRETS, {"metadata": {"name": "kpolicy-review-key", "namespace": "kyverno"}, "data": {"key": key}})  # fmt: skip
    writer = AuditTrail(stage.admin, "kyverno", seal_key(KEY))
    for number in range(1, COUNT + 1):
        entry = {"id": f"n{number}", "time": "2026-11-21T10:00:00Z", "actor": "ada", "verb": "request", "result": "ok", "object": {"kind": "Grant", "namespace": "a", "name": f"g{number}"}}  # fmt: skip
        await writer.record(entry)
    [segment] = (await stage.admin.list_all(AUDIT_SEGMENTS)).items
    return segment


async def ask(stage: Stage, *words: str) -> Said:
    return await stage.run("root", "audit", *words, groups=("system:masters",))


@pytest.fixture
def on_stage(tmp_path, capsys, monkeypatch):
    return lambda act: play(tmp_path, capsys, monkeypatch, act)


def test_a_whole_trail_is_whole_with_its_seals_and_checkpoint(on_stage):
    async def act(stage: Stage) -> None:
        segment = await trail(stage)
        last = segment["spec"]["records"][-1]
        said = await ask(stage, "verify", "--seals", "--checkpoint", f"{last['seq']}:{last['hash']}")  # fmt: skip
        assert (said.code, said.out) == (0, f"{COUNT} records in 1 segment: whole\n")

    on_stage(act)


@pytest.mark.parametrize(
    ("change", "kind", "seq"),
    [(edited, "edited", 3), (deleted, "deleted", 3), (moved, "deleted", 2), (inserted, "moved", 2), (cut, "cut", 4), (rolled_back, "rewritten", 6)],
)  # fmt: skip
def test_tampering_has_a_name_and_exit_code_1(on_stage, change: Callable[[Records], Records], kind: str, seq: int):  # fmt: skip
    async def act(stage: Stage) -> None:
        segment = await trail(stage)
        last = segment["spec"]["records"][-1]
        records = change(segment["spec"]["records"])
        await stage.admin.update(AUDIT_SEGMENTS, {**segment, "spec": {**segment["spec"], "records": records}})  # fmt: skip
        said = await ask(stage, "verify", "-o", "json", "--checkpoint", f"{last['seq']}:{last['hash']}")  # fmt: skip
        found = json.loads(said.out)
        assert (said.code, found["whole"]) == (1, False)
        assert (found["findings"][0]["kind"], found["findings"][0]["seq"]) == (kind, seq)
        sealed = await ask(stage, "verify", "--seals", "-o", "json")
        if change not in (edited, deleted, moved, inserted):
            assert [one["kind"] for one in json.loads(sealed.out)["findings"]] == ["unsealed"]
        later = await ask(stage, "verify", "--from", "99", "-o", "json")
        assert (later.code, json.loads(later.out)["findings"]) == (0, [])

    on_stage(act)


def test_an_export_has_every_record_in_order(on_stage):
    async def act(stage: Stage) -> None:
        await trail(stage)
        lines = (await ask(stage, "export")).out.splitlines()
        assert [json.loads(line)["seq"] for line in lines] == list(range(1, COUNT + 1))
        assert len((await ask(stage, "export", "--format", "csv")).out.splitlines()) == COUNT + 1
        cef = (await ask(stage, "export", "--format", "cef")).out.splitlines()
        assert (len(cef), cef[0].startswith("CEF:0|")) == (COUNT, True)
        shown = await ask(stage, "log", "--actor", "ada", "-o", "json")
        assert len(json.loads(shown.out)["items"]) == COUNT

    on_stage(act)
