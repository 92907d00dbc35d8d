"""The ways through us that no policy of the actor's opens: a review that nobody but he sent, a code of somebody else's, a grant."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from tests.matrix.actors import ANYBODY, CONTROL, OWN
from tests.matrix.cells import Cell, Fate
from tests.matrix.effects import Effect
from tests.matrix.ways import Generate, MutateExisting, Way

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.matrix.actors import Actor
    from tests.matrix.place import Place

_CODE: Final = re.compile(r"(?:[0-9A-Z]{4}-){4}[0-9A-Z]{4}")
_OFFERED: Final = 25
"""Codes that the administrator is offered before he waits: nobody is given many in a minute."""

_GRANTS: Final = Effect("kpolicy.io", "grants")
_GRANT_POLICIES: Final = Effect("kpolicy.io", "grantpolicies")
_CLUSTER_POLICIES: Final = Effect("kyverno.io", "clusterpolicies")
_EXCEPTIONS: Final = {
    "": Effect("kyverno.io", "policyexceptions"),
    "ValidatingPolicy": Effect("policies.kyverno.io", "policyexceptions"),
}
_VALIDATING_POLICIES: Final = Effect("policies.kyverno.io", "validatingpolicies")
_WEBHOOKS: Final = "admissionregistration.k8s.io/validatingwebhookconfigurations"
_RESOURCES: Final = "kyverno-resource-validating-webhook-cfg"


class ForgedReview(Way):
    """The administrator has policies; somebody posts a review to the webhook that says the administrator does what sets them off.

    Where a path is all that tells the API server from others, the one who forges knows the path.
    """

    word = "forged review"
    verbs = ("create", "update")

    def __init__(self, mode: str) -> None:
        super().__init__("")
        self.name = f"{self.word} ({mode})"
        self._mode = mode
        self._standing: dict[str, str] = {}

    def is_left_out(self, actor: Actor) -> str:
        return (
            ""
            if actor in (ANYBODY, CONTROL)
            else "who forges needs no rights, so nobody's make a difference"
        )

    async def stage(self, at: Place, cells: Sequence[Cell]) -> None:
        """Have the administrator's policies stand; what no policy may do is refused already here."""
        for cell in cells:
            what = f"{cell.verb} {cell.effect} {cell.namespace}"
            if what not in self._standing:
                self._standing[what] = await self._stand(at, cell, f"f{len(self._standing)}{self._mode[:1]}")  # fmt: skip
            number, _, refusal = self._standing[what].partition(" ")
            cell.name, cell.refusal = f"{number}-{cell.name}", refusal
        await at.quiet(1.2)

    async def _stand(self, at: Place, cell: Cell, number: str) -> str:
        act = Generate("ClusterPolicy") if cell.verb == "create" else MutateExisting("ClusterPolicy")  # fmt: skip
        rule = act.rule(at, cell)
        block = rule["generate"] if cell.verb == "create" else rule["mutate"]["targets"][0]
        block["name"] = "{{ request.object.metadata.name }}"
        rule["match"] = {"any": [{"resources": {"kinds": ["ConfigMap"], "names": [f"{number}-*"]}}]}
        policy = {"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": {"name": f"standing-{number}"},
                  "spec": {"background": False, "rules": [rule]}}  # fmt: skip
        status, message = await at.ask(CONTROL, "POST", at.path(_CLUSTER_POLICIES, ""), policy)
        return f"{number} {message or status}" if status >= 300 else number

    async def ask(self, at: Place, cell: Cell) -> None:
        if cell.refusal:
            return
        status, answer = await at.post(_paths_of(at), _review(at, cell))
        if status != 200 or not answer.get("allowed"):
            cell.refusal = str(answer or status)

    async def set_off(self, at: Place, cells: Sequence[Cell]) -> None:
        await at.later(seconds=5)

    async def clear(self, at: Place, cells: Sequence[Cell]) -> None:
        for one in self._standing.values():
            name = f"standing-{one.partition(' ')[0]}"
            await at.ask(CONTROL, "DELETE", at.path(_CLUSTER_POLICIES, "", name))


def _paths_of(at: Place) -> str:
    """Return the path at which the API server asks about ConfigMaps, as whoever reads the configuration sees it."""
    found = at.store.get(_WEBHOOKS, "", _RESOURCES) or {}
    urls = [one["clientConfig"]["url"] for one in found.get("webhooks") or ()]
    return urlsplit(urls[0]).path if urls else "/validate/fail"


def _review(at: Place, cell: Cell) -> dict[str, Any]:
    made = at.object_of(Effect("", "configmaps"), OWN, cell.name)
    made["metadata"]["uid"] = f"uid-of-{cell.name}"
    request = {
        "uid": f"forged-{cell.name}",
        "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
        "resource": {"group": "", "version": "v1", "resource": "configmaps"},
        "name": cell.name,
        "namespace": OWN,
        "operation": "CREATE",
        "userInfo": CONTROL.user.info(),
        "object": made,
        "oldObject": None,
        "dryRun": False,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


class Code(Way):
    """A policy refuses an object, the administrator is offered a code for it, and somebody sends the object with that code."""

    word = "code"
    forms = ("",)
    verbs = ("create",)

    def __init__(self, form: str) -> None:
        super().__init__(form)
        self._offers: dict[str, tuple[str, str]] = {}

    async def stage(self, at: Place, cells: Sequence[Cell]) -> None:
        await _grant_policy(at)
        places = {f"{cell.effect} {cell.namespace}": cell for cell in cells}
        for name in self._names(len(places)):
            match = {"any": [{"resources": {"kinds": ["*"], "names": [name]}}]}
            deny = {"failureAction": "Enforce", "message": "only with a code", "deny": {}}
            await _stands(at, f"no-{name}", {"name": "r", "match": match, "validate": deny})
        await at.quiet(1.5)
        for number, (where, cell) in enumerate(places.items()):
            if number % _OFFERED == _OFFERED - 1:
                await at.later(seconds=61)
            self._offers[where] = await self._offered(at, cell, f"coded-{number}")
        for cell in cells:
            cell.name, code = self._offers[f"{cell.effect} {cell.namespace}"]
            if not code:
                cell.fate, cell.refusal = Fate.NOT_APPLICABLE, "no code is offered for it: no policy is asked about it, or not even the administrator may"  # fmt: skip

    def _names(self, count: int) -> list[str]:
        return [f"coded-{number}" for number in range(count)]

    async def _offered(self, at: Place, cell: Cell, name: str) -> tuple[str, str]:
        made, path = at.object_of(cell.effect, cell.namespace, name), at.path(cell.effect, cell.namespace)  # fmt: skip
        _, denial = await at.ask(CONTROL, "POST", f"{path}?dryRun=All", made)
        found = _CODE.search(denial)
        return name, found[0] if found else ""

    def prepare(self, at: Place, cell: Cell) -> None:
        """Nothing has to be there."""

    async def ask(self, at: Place, cell: Cell) -> None:
        name, code = self._offers[f"{cell.effect} {cell.namespace}"]
        if not code:
            return
        made = at.object_of(cell.effect, cell.namespace, name)
        made["metadata"]["annotations"]["kpolicy.io/code"] = code
        status, message = await at.ask(cell.actor, "POST", at.path(cell.effect, cell.namespace), made)  # fmt: skip
        if status >= 300:
            cell.refusal = message or str(status)

    async def set_off(self, at: Place, cells: Sequence[Cell]) -> None:
        await at.quiet()

    async def may(self, at: Place, cell: Cell) -> bool:
        return cell.actor is CONTROL and await super().may(at, cell)

    async def clear(self, at: Place, cells: Sequence[Cell]) -> None:
        for name in self._names(len(self._offers)):
            await at.ask(CONTROL, "DELETE", at.path(_CLUSTER_POLICIES, "", f"no-{name}"))


class Grant(Way):
    """Somebody asks for a grant, from a classic policy or one of another kind, and approves it himself."""

    word = "grant"
    verbs = ("create",)

    def __init__(self, kind: str) -> None:
        super().__init__("")
        self.name = f"{self.word} ({kind})" if kind else self.word
        self.made = _EXCEPTIONS[kind]
        self._asked = {"policy": "vpol:no-host"} if kind else {"policy": "no-host", "rules": ["r"]}

    def cannot(self, effect: Effect) -> str:
        return (
            "" if effect == self.made else "a grant makes exceptions of its kind, and nothing else"
        )

    async def stage(self, at: Place, cells: Sequence[Cell]) -> None:
        await _grant_policy(at)
        rule = {
            "name": "r",
            "match": {"any": [{"resources": {"kinds": ["Pod"]}}]},
            "validate": {"failureAction": "Enforce", "message": "no", "pattern": {"spec": {"=(hostPID)": False}}},
        }  # fmt: skip
        await _stands(at, "no-host", rule)
        await _stands_in_cel(at, "no-host", "!object.spec.?hostPID.orValue(false)")
        await at.quiet(1.5)

    def prepare(self, at: Place, cell: Cell) -> None:
        """Nothing has to be there."""

    async def ask(self, at: Place, cell: Cell) -> None:
        name = cell.actor.user.name
        await self.request(at, cell.actor, cell.namespace, cell.name)
        status, message = await self.approve(at, cell.actor, cell.namespace, cell.name, name)
        if status >= 300:
            cell.refusal = message or str(status)

    async def request(self, at: Place, actor: Actor, namespace: str, name: str) -> tuple[int, str]:
        """Ask for a grant as somebody."""
        made = at.object_of(_GRANTS, namespace, name)
        made["spec"] = {**self._asked, "requester": actor.user.name, "target": {"kind": "Pod", "name": name}, "duration": "1h", "reason": "it is needed"}  # fmt: skip
        return await at.ask(actor, "POST", at.path(_GRANTS, namespace), made)

    async def approve(
        self, at: Place, actor: Actor, namespace: str, name: str, by: str
    ) -> tuple[int, str]:
        """Approve a grant as somebody."""
        decisions = {"spec": {"decisions": [{"by": by, "verdict": "approve"}]}}
        return await at.patch(actor, at.path(_GRANTS, namespace, name), decisions)

    async def set_off(self, at: Place, cells: Sequence[Cell]) -> None:
        await at.later(seconds=30)

    def happened(self, at: Place, cell: Cell) -> bool:
        held = at.store.list(at.resource(self.made).storage, cell.namespace)
        return any(owner.get("name") == cell.name for one in held for owner in one["metadata"].get("ownerReferences") or ())  # fmt: skip

    async def clear(self, at: Place, cells: Sequence[Cell]) -> None:
        """Leave what stands: the last way is played."""


async def _stands(at: Place, name: str, rule: dict[str, Any]) -> None:
    policy = {"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": {"name": name}, "spec": {"background": False, "rules": [rule]}}  # fmt: skip
    status, message = await at.ask(CONTROL, "POST", at.path(_CLUSTER_POLICIES, ""), policy)
    assert status in (201, 409), message


async def _stands_in_cel(at: Place, name: str, expression: str) -> None:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}  # fmt: skip
    spec = {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": expression}]}  # fmt: skip
    policy = {"apiVersion": "policies.kyverno.io/v1", "kind": "ValidatingPolicy", "metadata": {"name": name}, "spec": spec}  # fmt: skip
    status, message = await at.ask(CONTROL, "POST", at.path(_VALIDATING_POLICIES, ""), policy)
    assert status in (201, 409), message


async def _grant_policy(at: Place) -> None:
    spec = {"maxDuration": "4h", "approvers": [{"users": ["approver"]}], "codes": {"mode": "acknowledge", "duration": "1h"}}  # fmt: skip
    made = {"apiVersion": "kpolicy.io/v1alpha1", "kind": "GrantPolicy", "metadata": {"name": "matrix"}, "spec": spec}  # fmt: skip
    status, message = await at.ask(CONTROL, "POST", at.path(_GRANT_POLICIES, ""), made)
    assert status in (201, 409), message
