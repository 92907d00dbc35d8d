"""Each of six ways of tampering with the audit trail is named by `audit verify`, with the record and exit code 1 (row 12)."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from controllers.kube.kinds import AUDIT_SEGMENTS, PODS
from tests.e2e.tiers import ROOT

from .stage import code_for, hold, pod, staged, tried, until

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.e2e.tiers import Tier

    from .stage import Say, Stage

    Records = list[dict[str, Any]]

USES = 8
_GUARDS = ("kpolicy-audit-segments", "kpolicy-records")


def run(tier: Tier, say: Say) -> None:
    """Let things happen, stop everything, take the guards away as an administrator can, and tamper."""
    with staged(tier, replicas=1) as stage:
        asyncio.run(_happen(stage))
        stage.stop()
        for name in _GUARDS:
            tier.kubectl("delete", "validatingadmissionpolicybinding", name)
        segment = _only_segment(tier)
        asyncio.run(_unguarded(tier, segment))
        whole = _verify(tier)
        hold(whole[0] == 0, "the trail is whole", whole)
        head = segment["spec"]["records"][-1]
        point = f"{head['seq']}:{head['hash']}"
        for what, (change, word, named) in TAMPERED.items():
            _write(tier, segment, change(json.loads(json.dumps(segment["spec"]["records"]))))
            code, told = _verify(tier, "--seals", f"--checkpoint={point}")
            record = named if named > 0 else head["seq"] + named
            hold(code == 1 and f"{word} at record {record} " in told, f"{what} is named", (code, told))  # fmt: skip
            say(f"{what}: exit 1, {told.splitlines()[0]}")
        _write(tier, segment, _rechained(segment["spec"]["records"]))
        code, told = _verify(tier, "--seals")
        hold(
            code == 1 and "seal" in told, "a trail that was chained anew is told by its seal", told
        )
        code, told = _verify(tier, f"--checkpoint={point}")
        hold(code == 1 and "rewritten at record" in told, "and by a checkpoint", told)
        say(f"edited and chained anew: exit 1, {told.splitlines()[0]}")
        _write(tier, segment, segment["spec"]["records"])
        code, told = _verify(tier, "--seals", f"--checkpoint={point}")
        hold(code == 0, "as it was it is whole again", told)


async def _unguarded(tier: Tier, segment: dict[str, Any]) -> None:
    """Wait until the API server has learned that its guards are gone: it reads bindings by a watch."""

    async def gone() -> bool:
        try:
            _write(tier, segment, segment["spec"]["records"][:1], "--dry-run=server")
        except RuntimeError as error:
            # which of the two it has learned about first is chance
            is_guard = any(f"ValidatingAdmissionPolicy '{name}'" in str(error) for name in _GUARDS)
            hold(is_guard, "only the guards refuse", error)
            return False
        return True

    await until(gone, 30, "the guards are gone")


def _edited(records: Records) -> Records:
    records[3]["actor"] = "somebody-else"
    return records


def _deleted(records: Records) -> Records:
    return records[:3] + records[4:]


def _reordered(records: Records) -> Records:
    records[3], records[4] = records[4], records[3]
    return records


def _inserted(records: Records) -> Records:
    return [*records[:4], {**records[3], "id": "forged", "actor": "eve"}, *records[4:]]


def _cut(records: Records) -> Records:
    return records[:-2]


def _rolled_back(records: Records) -> Records:
    return records[:3]


# How it is done, what it is called, and at which record; counted from the end where that is below zero.
TAMPERED: dict[str, tuple[Callable[[Records], Records], str, int]] = {
    "edited": (_edited, "edited", 4),
    "deleted": (_deleted, "deleted", 4),
    "reordered": (_reordered, "moved", 4),
    "inserted": (_inserted, "moved", 4),
    "cut off": (_cut, "cut", -2),
    "rolled back": (_rolled_back, "cut", 3),
}


def _rechained(records: Records) -> Records:
    """Forge as somebody who knows how records are chained, but not the key of the seals."""
    from engine.audit import Checkpoint, append

    made: Records = []
    for entry in json.loads(json.dumps(records)):
        entry["actor"] = "eve"
        head = Checkpoint(made[-1]["seq"], made[-1]["hash"]) if made else None
        made.append(append({key: value for key, value in entry.items() if key not in ("seq", "hash")}, head))  # fmt: skip
    return made


async def _happen(stage: Stage) -> None:
    """Use codes until there are enough records."""
    admin = stage.client()
    for number in range(USES):
        person = stage.client(f"person-{number}")
        code = await code_for(person, pod(f"p-{number}"))
        hold(not await tried(person, PODS, pod(f"p-{number}", code)), "a code is taken")
        await person.close()

    async def recorded() -> bool:
        items = (await admin.list_all(AUDIT_SEGMENTS)).items
        return sum(len(one["spec"]["records"]) for one in items) >= USES

    await until(recorded, 30, "everything is on record")
    await admin.close()


def _only_segment(tier: Tier) -> dict[str, Any]:
    [found] = tier.read("auditsegments", "-A")["items"]
    hold(len(found["spec"]["records"]) >= USES, "everything is on record")
    made: dict[str, Any] = found
    return made


def _write(tier: Tier, segment: dict[str, Any], records: Records, *flags: str) -> None:
    """Write what an attacker may: everything but the seal."""
    live = tier.read("auditsegments", segment["metadata"]["name"], "-n", segment["metadata"]["namespace"])  # fmt: skip
    live["spec"] = {**segment["spec"], "records": records}
    tier.kubectl("replace", "-f", "-", *flags, given=json.dumps(live))


def _verify(tier: Tier, *flags: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "kubectl_kpolicy", "audit", "verify", *flags],
        env={**os.environ, "KUBECONFIG": str(tier.kubeconfig), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr
