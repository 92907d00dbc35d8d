"""The ways through us that policies of policies.kyverno.io open: their rules are expressions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from engine.vocabulary import AUTOGEN
from tests.matrix.actors import CONTROL, OWN
from tests.matrix.effects import MARK, NO_PATCH, Effect
from tests.matrix.ways import Way

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.matrix.cells import Cell
    from tests.matrix.place import Place

_GROUP = "policies.kyverno.io"
_GENERATING: Final = {
    "name": "r",
    "match": {"any": [{"resources": {"kinds": ["Pod"], "names": ["nothing"]}}]},
    "generate": {"apiVersion": "v1", "kind": "Secret", "name": "s", "namespace": OWN, "data": {}},
}


class _ByExpression(Way):
    """A policy of policies.kyverno.io; the subclasses say which requests it is about, and what it does."""

    @property
    def written(self) -> Effect:
        return Effect(_GROUP, f"{self.form.lower().removesuffix('y')}ies")

    @property
    def within(self) -> str:
        return OWN if self.form.startswith("Namespaced") else ""

    def document(self, at: Place, cell: Cell) -> dict[str, Any]:
        place = {"namespace": self.within} if self.within else {}
        return {
            "apiVersion": f"{_GROUP}/v1",
            "kind": self.form,
            "metadata": {"name": f"by-{cell.name}", **place},
            "spec": self.spec(at, cell),
        }

    def spec(self, at: Place, cell: Cell) -> dict[str, Any]:
        """Return what the policy of a cell does."""
        raise NotImplementedError

    def constrained_to_trigger(self, cell: Cell) -> dict[str, Any]:
        """Return the constraints of a policy that the everyday thing sets off."""
        return _constraints(Effect("", "configmaps"), "v1", self.trigger(cell), "CREATE")


class GenerateByExpression(_ByExpression):
    """A generating policy makes an object that its expression writes out."""

    word = "generate by expression"
    forms = ("NamespacedGeneratingPolicy", "GeneratingPolicy")
    verbs = ("create",)

    def spec(self, at: Place, cell: Cell) -> dict[str, Any]:
        return {
            "matchConstraints": self.constrained_to_trigger(cell),
            "generate": [{"expression": self.expression(at, cell)}],
        }

    def expression(self, at: Place, cell: Cell) -> str:
        made = at.object_of(cell.effect, cell.namespace, cell.name)
        notes = {**made["metadata"]["annotations"], MARK: self.word}
        kind = at.resource(cell.effect)
        head = {"apiVersion": kind.api_version, "kind": kind.kind}
        metadata = {"name": cell.name, "annotations": notes}
        return self.applied(cell, json.dumps({**head, "metadata": metadata, **cell.effect.body}))

    def applied(self, cell: Cell, text: str) -> str:
        """Return the call that generates an object; that of a policy of a namespace cannot name another one."""
        place = "" if self.within else f'"{cell.namespace}", '
        return f"generator.Apply({place}[{text}])"


class GenerateByCondition(GenerateByExpression):
    """A generating policy makes an object in passing, while it looks whether it is about a trigger at all."""

    word = "generate by condition"

    def spec(self, at: Place, cell: Cell) -> dict[str, Any]:
        return {
            "matchConstraints": self.constrained_to_trigger(cell),
            "matchConditions": [{"name": "made", "expression": self.expression(at, cell)}],
            "generate": [{"expression": "true"}],
        }


class MutateByExpression(_ByExpression):
    """A mutating policy changes what somebody else writes."""

    word = "mutate by expression"
    forms = ("NamespacedMutatingPolicy", "MutatingPolicy")
    verbs = ("update",)

    def spec(self, at: Place, cell: Cell) -> dict[str, Any]:
        return {"matchConstraints": _of_cell(at, cell), "mutations": [self.mutation()]}

    def mutation(self) -> dict[str, Any]:
        """Return the patch that leaves the mark."""
        path = f"/metadata/annotations/{MARK}"
        patch = f'[JSONPatch{{op: "add", path: "{path}", value: "{self.word}"}}]'
        return {"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}

    async def set_off(self, at: Place, cells: Sequence[Cell]) -> None:
        for cell in cells:
            if not cell.refusal:
                path = at.path(cell.effect, cell.namespace, cell.name)
                await at.patch(CONTROL, path, {"metadata": {"annotations": {"touched": "1"}}})


class MutateExistingByExpression(MutateByExpression):
    """A mutating policy changes an object that nobody writes just now, which its constraints name."""

    word = "mutate existing by constraints"

    def spec(self, at: Place, cell: Cell) -> dict[str, Any]:
        return {
            "evaluation": {"mutateExisting": {"enabled": True}},
            "matchConstraints": self.constrained_to_trigger(cell),
            "targetMatchConstraints": self.targets(at, cell),
            "mutations": [self.mutation()],
        }

    def targets(self, at: Place, cell: Cell) -> dict[str, Any]:
        """Return what says which objects are changed."""
        return _of_cell(at, cell)

    async def set_off(self, at: Place, cells: Sequence[Cell]) -> None:
        await Way.set_off(self, at, cells)


class RetargetByExpression(MutateExistingByExpression):
    """The same, where an expression fetches the target: what is asked when the policy is written cannot know it."""

    word = "mutate existing by expression"

    def targets(self, at: Place, cell: Cell) -> dict[str, Any]:
        kind = at.resource(cell.effect)
        call = f'resource.Get("{kind.api_version}", "{kind.plural}", "{cell.namespace}", "{cell.name}")'
        return {"expression": call}


class WidenByExpression(MutateByExpression):
    """A mutating policy changes by an annotation of somebody else's policy which objects that one concerns."""

    word = "widen by expression"
    forms = ("MutatingPolicy",)

    def cannot(self, effect: Effect) -> str:
        is_repeated = effect.group == "kyverno.io" and effect.plural in (
            "clusterpolicies",
            "policies",
        )
        return "" if is_repeated else "nothing of its metadata has it concern other objects"

    def prepare(self, at: Place, cell: Cell) -> None:
        """Have a policy there that does more than the actor may."""
        super().prepare(at, cell)
        path = (at.resource(cell.effect).storage, cell.namespace, cell.name)
        at.store.put(path[0], {**at.store.get(*path), "spec": {"rules": [_GENERATING]}})

    def mutation(self) -> dict[str, Any]:
        patch = f'[JSONPatch{{op: "add", path: "/metadata/annotations/{AUTOGEN.replace("/", "~1")}", value: "Deployment"}}]'
        return {"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}

    def happened(self, at: Place, cell: Cell) -> bool:
        found = at.seen(cell.effect, cell.namespace, cell.name) or {"metadata": {}}
        return AUTOGEN in (found["metadata"].get("annotations") or {})

    async def may(self, at: Place, cell: Cell) -> bool:
        """Ask whether the actor may change the annotation himself."""
        self.prepare(at, cell)
        path = at.path(cell.effect, cell.namespace, cell.name) + "?dryRun=All"
        status, _ = await at.patch(
            cell.actor, path, {"metadata": {"annotations": {AUTOGEN: "Deployment"}}}
        )
        return status < 300


class GenerateNative(Way):
    """A policy has the API server judge by a native policy, which our account writes for it."""

    word = "native generation"
    forms = ("ClusterPolicy", "ValidatingPolicy", "MutatingPolicy")
    verbs = ("create",)
    within = ""

    @property
    def written(self) -> Effect:
        group = "kyverno.io" if self.form == "ClusterPolicy" else _GROUP
        return Effect(group, f"{self.form.lower().removesuffix('y')}ies")

    def cannot(self, effect: Effect) -> str:
        family = "mutatingadmission" if self.form == "MutatingPolicy" else "validatingadmission"
        is_made = effect.plural.startswith(family) and effect.group == _ADMISSION
        return (
            "" if is_made else "a policy becomes a native policy and its binding, and nothing else"
        )

    def document(self, at: Place, cell: Cell) -> dict[str, Any]:
        group = self.written.group
        return {
            "apiVersion": f"{group}/v1",
            "kind": self.form,
            "metadata": {"name": f"by-{cell.name}"},
            "spec": _NATIVE_SPECS[self.form],
        }

    async def set_off(self, at: Place, cells: Sequence[Cell]) -> None:
        await at.quiet(1.5)

    def happened(self, at: Place, cell: Cell) -> bool:
        prefix = {"ClusterPolicy": "cpol", "ValidatingPolicy": "vpol"}.get(self.form, "mpol")
        suffix = "-binding" if cell.effect.plural.endswith("bindings") else ""
        return at.seen(cell.effect, "", f"{prefix}-by-{cell.name}{suffix}") is not None


_ADMISSION: Final = "admissionregistration.k8s.io"
_RULE: Final = {
    "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
    "resources": ["configmaps"], "resourceNames": ["nothing"],
}  # fmt: skip
_CHECK: Final = [{"expression": "true"}]
_MATCHED: Final = {"any": [{"resources": {"kinds": ["ConfigMap"], "names": ["nothing"]}}]}
_NATIVE_SPECS: Final[dict[str, dict[str, Any]]] = {
    "ClusterPolicy": {
        "rules": [{"name": "r", "match": _MATCHED, "validate": {"cel": {"generate": True, "expressions": _CHECK}}}],
    },
    "ValidatingPolicy": {
        "autogen": {"validatingAdmissionPolicy": {"enabled": True}},
        "matchConstraints": {"resourceRules": [_RULE]},
        "validations": _CHECK,
    },
    "MutatingPolicy": {
        "autogen": {"mutatingAdmissionPolicy": {"enabled": True}},
        "matchConstraints": {"resourceRules": [{**_RULE, "apiGroups": ["x.io"], "resources": ["xs"]}]},
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": NO_PATCH}}],
    },
}  # fmt: skip


def _of_cell(at: Place, cell: Cell) -> dict[str, Any]:
    return _constraints(cell.effect, at.resource(cell.effect).version, cell.name, "*")


def _constraints(effect: Effect, version: str, name: str, operation: str) -> dict[str, Any]:
    rule = {
        "apiGroups": [effect.group],
        "apiVersions": [version],
        "operations": [operation],
        "resources": [effect.plural],
        "resourceNames": [name],
    }
    return {"resourceRules": [rule]}


KINDS_OF_WAY: Final = (
    GenerateByExpression,
    GenerateByCondition,
    MutateByExpression,
    MutateExistingByExpression,
    RetargetByExpression,
    WidenByExpression,
    GenerateNative,
)
WAYS_OF_CEL: Final = tuple(made(form) for made in KINDS_OF_WAY for form in made.forms)
