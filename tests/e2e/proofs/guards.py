"""With every Pod of ours down the API server itself keeps four eyes, ends that only come nearer, and records (rows 14 and 19)."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from controllers.kube import KubeError
from controllers.kube.accounts import Job, account_user
from controllers.kube.client import APPLY
from controllers.kube.kinds import (
    AUDIT_SEGMENTS,
    CODE_USES,
    GRANTS,
    ONE_TIME_CODES,
    POLICY_EXCEPTIONS,
)
from tests.e2e import engine

from .stage import Stage, furniture_of_rights, hold

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from tests.e2e.tiers import Tier

    from .stage import Say

MERGE, JSON_PATCH = "application/merge-patch+json", "application/json-patch+json"
END, LATER, SOONER = "2030-03-01T12:00:00Z", "2030-03-01T12:00:01Z", "2030-03-01T11:00:00Z"
_EXPIRY, _TTL = "kpolicy.io/expires-at", "cleanup.kyverno.io/ttl"
CONTROLLER = account_user(engine.NAMESPACE, Job.GRANTS)
ADMISSION = account_user(engine.NAMESPACE, Job.ADMISSION)
BACKGROUND = account_user(engine.NAMESPACE, Job.BACKGROUND)
_ACCOUNTS = "system:serviceaccounts"


def run(tier: Tier, say: Say) -> None:
    """Install everything, start nothing, and try."""
    engine.install(tier)
    furniture_of_rights(tier)
    stage = Stage(tier, [], [], "")
    asyncio.run(_all(stage, say))


async def _all(stage: Stage, say: Say) -> None:
    for part in (_four_eyes, _ends, _states, _records, _codes):
        say(await part(stage))


async def _refused(work: Awaitable[Any], what: str) -> int:
    """Hold that something is refused by admission, not by RBAC or as nonsense; return 1 for counting."""
    try:
        await work
    except KubeError as error:
        hold("denied request" in error.message, f"refused by a guard: {what}", error.message)
        return 1
    hold(False, f"refused: {what}", "done")
    return 0


def _grant(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kpolicy.io/v1alpha1", "kind": "Grant", "metadata": {"name": name, "namespace": "default"},
        "spec": {"requester": "ada", "policy": "no-host", "rules": ["host-pid"], "target": {"kind": "Pod", "name": "web"},
                 "duration": "1h", "reason": "because it must be", **spec},
    }  # fmt: skip


def _vote(by: str, **more: Any) -> dict[str, Any]:
    return {"by": by, "verdict": "approve", **more}


async def _four_eyes(stage: Stage) -> str:
    ada, bob, count = stage.client("ada"), stage.client("bob"), 0
    await ada.create(GRANTS, _grant("mine"))
    for what, votes in {"own name": [_vote("ada")], "another name": [_vote("bob")], "groups of others": [_vote("ada", groups=["leads"])],
                        "both": [_vote("ada"), _vote("bob")]}.items():  # fmt: skip
        body = {"spec": {"decisions": votes}}
        count += await _refused(ada.patch(GRANTS, "mine", "default", body), f"merge patch, {what}")
        ops = [{"op": "add", "path": "/spec/decisions", "value": votes}]
        count += await _refused(
            ada.patch(GRANTS, "mine", "default", ops, content_type=JSON_PATCH),
            f"JSON patch, {what}",
        )
        live = await ada.get(GRANTS, "mine", "default")
        count += await _refused(
            ada.update(GRANTS, {**live, "spec": {**live["spec"], "decisions": votes}}),
            f"PUT, {what}",
        )
        applied = _grant("mine", decisions=votes)
        count += await _refused(
            ada.patch(
                GRANTS,
                "mine",
                "default",
                applied,
                content_type=APPLY,
                field_manager="ada",
                force=True,
            ),
            f"apply, {what}",
        )
        count += await _refused(
            ada.create(GRANTS, _grant("born-approved", decisions=votes)), f"created so, {what}"
        )
    count += await _refused(
        ada.create(GRANTS, _grant("hers", requester="bob")), "in another's name"
    )
    for change in (
        {"requester": "bob"},
        {"duration": "9h"},
        {"rules": ["*"]},
        {"target": {"kind": "Pod", "name": "*"}},
    ):
        for who, client in (("ada", ada), ("bob", bob)):
            count += await _refused(
                client.patch(GRANTS, "mine", "default", {"spec": change}), f"{who} changes {change}"
            )
    await bob.patch(GRANTS, "mine", "default", {"spec": {"decisions": [_vote("bob")]}})
    count += await _refused(
        bob.patch(GRANTS, "mine", "default", {"spec": {"decisions": []}}), "bob takes it back"
    )
    count += await _refused(
        ada.patch(GRANTS, "mine", "default", {"spec": {"decisions": [_vote("bob"), _vote("cyd")]}}),
        "a second vote by ada for cyd",
    )
    robot = stage.client("system:serviceaccount:ci:bot")
    count += await _refused(
        robot.patch(
            GRANTS,
            "mine",
            "default",
            {"spec": {"decisions": [_vote("bob"), _vote("system:serviceaccount:ci:bot")]}},
        ),
        "a service account approves",
    )
    for client in (ada, bob, robot):
        await client.close()
    return f"four eyes: {count} ways of approving alone or changing a request refused; bob's approval passes"


async def _ends(stage: Stage) -> str:
    admin, count = stage.client(), 0
    made = {
        "apiVersion": "kyverno.io/v2", "kind": "PolicyException",
        "metadata": {"name": "granted", "namespace": "default", "annotations": {_EXPIRY: END, "kpolicy.io/grant": "default/mine"}},
        "spec": {"exceptions": [{"policyName": "no-host", "ruleNames": ["host-pid"]}],
                 "match": {"any": [{"resources": {"kinds": ["Pod"], "names": ["web"], "namespaces": ["default"]}}]}},
    }  # fmt: skip
    ours, neighbour = stage.client(CONTROLLER, _ACCOUNTS), stage.client(BACKGROUND, _ACCOUNTS)
    plain = {**made, "metadata": {"name": "plain", "namespace": "default"}}
    await admin.create(POLICY_EXCEPTIONS, plain)
    for who, client in (("administrator", admin), ("background account", neighbour)):
        count += await _refused(client.create(POLICY_EXCEPTIONS, made), f"{who} makes one by grant")
        turned = {"metadata": {"annotations": made["metadata"]["annotations"]}}
        count += await _refused(
            client.patch(POLICY_EXCEPTIONS, "plain", "default", turned), f"{who} turns one into it"
        )
    labelled = {"metadata": {"labels": {_TTL: "1h"}}}
    await admin.patch(POLICY_EXCEPTIONS, "plain", "default", labelled)
    for value in ("2h", None, "1d", "soon"):
        longer = {"metadata": {"labels": {_TTL: value}}}
        count += await _refused(
            admin.patch(POLICY_EXCEPTIONS, "plain", "default", longer), f"label {value}"
        )
    nearer = {"metadata": {"labels": {_TTL: "30m"}}}
    await admin.patch(POLICY_EXCEPTIONS, "plain", "default", nearer)
    await ours.create(POLICY_EXCEPTIONS, made)
    wrong = {
        "later": {"metadata": {"annotations": {_EXPIRY: LATER}}},
        "never": {"metadata": {"annotations": {_EXPIRY: None}}},
        "no instant": {"metadata": {"annotations": {_EXPIRY: "tomorrow"}}},
        "without its grant": {"metadata": {"annotations": {"kpolicy.io/grant": None}}},
        "another grant's": {"metadata": {"annotations": {"kpolicy.io/grant": "default/other"}}},
        "wider": {"spec": {"exceptions": [{"policyName": "no-host", "ruleNames": ["*"]}]}},
    }
    for what, body in wrong.items():
        for kind in ("v2", "v2beta1"):
            served = type(POLICY_EXCEPTIONS)(
                "kyverno.io", kind, "policyexceptions", "PolicyException"
            )
            count += await _refused(
                admin.patch(served, "granted", "default", body), f"merge patch of {kind}, {what}"
            )
            live = await admin.get(served, "granted", "default")
            count += await _refused(
                admin.update(served, _merged(live, body)), f"PUT of {kind}, {what}"
            )
            document = _merged(
                {key: live[key] for key in ("apiVersion", "kind", "spec")}
                | {
                    "metadata": {
                        "name": "granted",
                        "namespace": "default",
                        "annotations": live["metadata"]["annotations"],
                    }
                },
                body,
            )
            if None not in document["metadata"]["annotations"].values() and set(
                document["metadata"]["annotations"]
            ) == set(live["metadata"]["annotations"]):
                count += await _refused(
                    admin.patch(
                        served,
                        "granted",
                        "default",
                        document,
                        content_type=APPLY,
                        field_manager="x",
                        force=True,
                    ),
                    f"apply of {kind}, {what}",
                )
    path = f"/metadata/annotations/{_EXPIRY.replace('/', '~1')}"
    for ops in (
        [{"op": "replace", "path": path, "value": LATER}],
        [{"op": "remove", "path": path}],
        [{"op": "remove", "path": "/metadata/annotations"}],
    ):
        count += await _refused(
            admin.patch(POLICY_EXCEPTIONS, "granted", "default", ops, content_type=JSON_PATCH),
            f"JSON patch {ops[0]['op']}",
        )
    try:
        await admin.patch(
            POLICY_EXCEPTIONS,
            "granted",
            "default",
            {"metadata": {"annotations": {_EXPIRY: LATER}}},
            subresource="status",
        )
    except KubeError:
        count += 1
    live = await admin.get(POLICY_EXCEPTIONS, "granted", "default")
    hold(
        live["metadata"]["annotations"][_EXPIRY] == END,
        "the end stands where it stood",
        live["metadata"],
    )
    await admin.patch(
        POLICY_EXCEPTIONS, "granted", "default", {"metadata": {"annotations": {_EXPIRY: SOONER}}}
    )
    count += await _refused(
        admin.patch(POLICY_EXCEPTIONS, "granted", "default", wrong["later"]), "back to where it was"
    )
    for client in (admin, ours, neighbour):
        await client.close()
    return f"ends of granted exceptions: {count} ways of making them or moving them out refused to an administrator (merge, JSON patch, PUT, apply, status; v2 and v2beta1); nearer passes"


def _merged(obj: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    made = json.loads(json.dumps(obj))
    for key, value in (patch.get("metadata") or {}).get("annotations", {}).items():
        if value is None:
            made["metadata"]["annotations"].pop(key)
        else:
            made["metadata"]["annotations"][key] = value
    made["spec"].update(patch.get("spec") or {})
    return made


async def _states(stage: Stage) -> str:
    admin, ours, count = stage.client(), stage.client(CONTROLLER, _ACCOUNTS), 0
    neighbour = stage.client(BACKGROUND, _ACCOUNTS)
    active = {"status": {"state": "active", "expiresAt": END}}
    for who, client in (("administrator", admin), ("background account", neighbour)):
        count += await _refused(
            client.patch(GRANTS, "mine", "default", active, subresource="status"),
            f"{who} makes it active",
        )
    await ours.patch(GRANTS, "mine", "default", active, subresource="status")
    for client in (admin, ours):
        for status in ({"expiresAt": LATER}, {"expiresAt": None}):
            count += await _refused(
                client.patch(GRANTS, "mine", "default", {"status": status}, subresource="status"),
                f"{status}",
            )
    await ours.patch(
        GRANTS, "mine", "default", {"status": {"state": "expired"}}, subresource="status"
    )
    count += await _refused(
        ours.patch(
            GRANTS, "mine", "default", {"status": {"state": "active"}}, subresource="status"
        ),
        "again active",
    )
    for client in (admin, ours, neighbour):
        await client.close()
    return f"states of grants: {count} forged or lengthened refused, to administrators and to the controllers' own account"


async def _records(stage: Stage) -> str:
    admin, ours, count = stage.client(), stage.client(CONTROLLER, _ACCOUNTS), 0
    answering, neighbour = stage.client(ADMISSION, _ACCOUNTS), stage.client(BACKGROUND, _ACCOUNTS)
    use = {
        "apiVersion": "kpolicy.io/v1alpha1",
        "kind": "CodeUse",
        "metadata": {"name": "use-x", "namespace": "kyverno"},
        "spec": {"user": "ada", "usedAt": END},
    }
    segment = {
        "apiVersion": "kpolicy.io/v1alpha1",
        "kind": "AuditSegment",
        "metadata": {"name": "audit-1", "namespace": "kyverno"},
        "spec": {"records": [{"seq": 1}]},
    }
    for kind, obj, maker in ((CODE_USES, use, answering), (AUDIT_SEGMENTS, segment, ours)):
        for who, client in (("an administrator", admin), ("the background account", neighbour)):
            count += await _refused(client.create(kind, obj), f"{who} forges {kind.kind}")
        await maker.create(kind, obj)
        name = obj["metadata"]["name"]
        spec = {"spec": {"user": "eve", "records": [{"seq": 2}]}}
        count += await _refused(
            admin.patch(kind, name, "kyverno", spec), f"an administrator edits {kind.kind}"
        )
        count += await _refused(
            admin.delete(kind, name, "kyverno"), f"an administrator deletes {kind.kind}"
        )
        count += await _refused(
            ours.patch(kind, name, "kyverno", spec), f"the controllers edit {kind.kind}"
        )
    count += await _refused(
        admin.patch(
            CODE_USES, "use-x", "kyverno", {"status": {"state": "Confirmed"}}, subresource="status"
        ),
        "an administrator confirms a use",
    )
    for client in (admin, ours, answering, neighbour):
        await client.close()
    return f"records: {count} forged, edited or deleted ones refused"


async def _codes(stage: Stage) -> str:
    bob, count = stage.client("bob"), 0
    soon = f"{datetime.now(UTC) + timedelta(hours=1):%Y-%m-%dT%H:%M:%SZ}"

    def code(name: str, **spec: Any) -> dict[str, Any]:
        given = {
            "user": "ada",
            "issuedBy": "bob",
            "expiresAt": soon,
            "verifier": "v",
            "binding": {"policy": "p"},
            **spec,
        }
        return {
            "apiVersion": "kpolicy.io/v1alpha1",
            "kind": "OneTimeCode",
            "metadata": {"name": name, "namespace": "kyverno"},
            "spec": given,
        }

    count += await _refused(
        bob.create(ONE_TIME_CODES, code("code-a", user="bob")), "a code for oneself"
    )
    count += await _refused(
        bob.create(ONE_TIME_CODES, code("code-b", issuedBy="cyd")), "a code in another's name"
    )
    count += await _refused(
        bob.create(ONE_TIME_CODES, code("code-c", issuedBy="")), "a code in nobody's name"
    )
    count += await _refused(
        bob.create(ONE_TIME_CODES, code("code-e", expiresAt=END)), "a code for years"
    )
    await bob.create(ONE_TIME_CODES, code("code-d"))
    admin = stage.client()
    for change in ({"user": "bob"}, {"expiresAt": LATER}, {"verifier": "w"}):
        count += await _refused(
            admin.patch(ONE_TIME_CODES, "code-d", "kyverno", {"spec": change}),
            f"a code is changed: {change}",
        )
    for said in ({"state": "void", "voidedBy": "bob"}, {"state": "used", "usedBy": "ada"}):
        count += await _refused(
            admin.patch(
                ONE_TIME_CODES, "code-d", "kyverno", {"status": said}, subresource="status"
            ),
            f"somebody else is said to have done it: {said}",
        )
    await admin.patch(
        ONE_TIME_CODES, "code-d", "kyverno", {"status": {"state": "void"}}, subresource="status"
    )
    count += await _refused(
        admin.patch(
            ONE_TIME_CODES,
            "code-d",
            "kyverno",
            {"status": {"state": "issued"}},
            subresource="status",
        ),
        "a void code is made good",
    )
    await bob.close()
    await admin.close()
    return f"codes: {count} for oneself, in another's name, changed or made good again refused"
